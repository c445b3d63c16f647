//! What is worth knowing about the process and the machine: the metadata, under the keys, that a Python process has
//! too.

use std::fs::read_to_string;

/// Metadata about this process; one that is not known is not there.
pub(crate) fn of_process() -> Vec<(String, String)> {
    let cpu_info = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let metadata = [
        ("process_name", process_name()),
        ("command", command()),
        ("host", line_of("/proc/sys/kernel/hostname")),
        ("os", os()),
        ("cpu", values_in(&cpu_info, "model name").next().unwrap_or_default().to_string()),
        (
            "cpu_count",
            Some(values_in(&cpu_info, "processor").count())
                .filter(|n| *n > 0)
                .map_or_else(String::new, |n| n.to_string()),
        ),
        ("gpus", gpus()),
    ];
    let of_launcher = crate::recorder::launcher_facts(|variable| std::env::var(variable).ok());
    let of_launcher = of_launcher.into_iter().map(|(key, value)| (key, value.to_string()));
    let known = metadata.into_iter().chain(of_launcher).filter(|(_, value)| !value.is_empty());
    known.map(|(key, value)| (key.into(), value)).collect()
}

fn process_name() -> String {
    let program = std::env::args_os().next().unwrap_or_default();
    let name = std::path::Path::new(&program).file_name().unwrap_or(&program).to_string_lossy().into_owned();
    if name.is_empty() { "process".into() } else { name }
}

/// Its words, with zeros in between.
fn command() -> String {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    words.join("\0")
}

fn os() -> String {
    let words = [line_of("/proc/sys/kernel/ostype"), line_of("/proc/sys/kernel/osrelease")];
    let known: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
    if known.is_empty() { String::new() } else { format!("{}-{}", known.join("-"), std::env::consts::ARCH) }
}

/// NVIDIA's kernel module lists its devices without waking them.
fn gpus() -> String {
    let folders = std::fs::read_dir("/proc/driver/nvidia/gpus").into_iter().flatten().flatten();
    let mut files: Vec<_> = folders.map(|folder| folder.path().join("information")).collect();
    files.sort();
    let texts = files.iter().filter_map(|file| read_to_string(file).ok());
    let models: Vec<String> = texts.filter_map(|text| Some(values_in(&text, "Model").next()?.to_string())).collect();
    models.join("; ")
}

fn line_of(file: &str) -> String {
    read_to_string(file).unwrap_or_default().trim().to_string()
}

/// The values of the lines `key : value`.
fn values_in<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.filter(move |(found, _)| found.trim() == key).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_processes_have_the_same_keys() {
        let python = include_str!("../../../python/stepscope/_facts.py");
        let recorded = of_process();
        assert!(recorded.len() >= 5, "{recorded:?}");
        for (key, _) in recorded {
            assert!(python.contains(&format!("\"{key}\"")), "{key}");
        }
    }

    #[test]
    fn values_are_what_stands_behind_the_colon() {
        let text = "processor\t: 0\nmodel name\t: Some CPU: fast\n\nprocessor\t: 1\n";
        assert_eq!(values_in(text, "model name").collect::<Vec<_>>(), ["Some CPU: fast"]);
        assert_eq!(values_in(text, "processor").count(), 2);
    }
}

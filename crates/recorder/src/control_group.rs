//! What the process' control group takes of memory and processors, and may take by its own limits and those of the groups
//! around it. Version 2 of the system's interface, or version 1.

use crate::host_counters::{Counters, field, number};
use std::path::{Path, PathBuf};

/// Where the system says what the process' control group takes.
#[derive(Default)]
pub(crate) struct Group {
    /// Which groups the process is in, as the system says it.
    groups: String,
    memory: Option<PathBuf>,
    /// The group, and those around it.
    cpu: Vec<PathBuf>,
}

impl Group {
    /// Reads what holds now. A process may have been put into another group since.
    pub(crate) fn counters(&mut self) -> Counters {
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        if groups != self.groups {
            *self = Self::of(groups);
        }
        let mut found = self.memory.as_deref().map_or_else(Vec::new, memory);
        found.extend(cpu(&self.cpu));
        found
    }

    fn of(groups: String) -> Self {
        let find = |controller: &str, files: [&str; 2]| {
            let has_file = |folder: &Path| files.iter().any(|file| folder.join(file).exists());
            let candidates = group_folders(&groups, controller);
            candidates.into_iter().find(|(_, folder)| has_file(folder))
        };
        let memory = find("memory", ["memory.current", "memory.usage_in_bytes"]).map(|(_, folder)| folder);
        let cpu = find("cpu", ["cpu.stat", "cpu.cfs_quota_us"]);
        let around = |(root, folder): (PathBuf, PathBuf)| {
            let folders = folder.ancestors().take_while(|folder| folder.starts_with(&root));
            folders.map(Path::to_path_buf).collect()
        };
        Self { memory, cpu: cpu.map_or_else(Vec::new, around), groups }
    }
}

/// The folders in which a controller's files of the process may be, by its `/proc/self/cgroup`, each behind the root that
/// it is in: of the group, or, where a container sees only its own, of the root.
fn group_folders(groups: &str, controller: &str) -> Vec<(PathBuf, PathBuf)> {
    let mut folders = Vec::new();
    for line in groups.lines() {
        let mut words = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (words.next(), words.next(), words.next()) else { continue };
        let root = match controllers {
            "" => PathBuf::from("/sys/fs/cgroup"),
            _ if controllers.split(',').any(|of| of == controller) => Path::new("/sys/fs/cgroup").join(controllers),
            _ => continue,
        };
        folders.push((root.clone(), root.join(path.trim_start_matches('/'))));
        folders.push((root.clone(), root));
    }
    folders
}

fn read(folder: &Path, file: &str) -> Option<String> {
    std::fs::read_to_string(folder.join(file)).ok()
}

fn memory(folder: &Path) -> Counters {
    let bytes = |file: &str| number(read(folder, file).as_deref().map(str::trim));
    let limit = bytes("memory.max").or_else(|| bytes("memory.limit_in_bytes"));
    let all = [
        ("control group memory (bytes)", bytes("memory.current").or_else(|| bytes("memory.usage_in_bytes"))),
        // Where there is none, the system writes a number that no machine has.
        ("control group memory limit (bytes)", limit.filter(|bytes| *bytes < 1 << 60)),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.into(), value?))).collect()
}

/// The smallest quota of a group and those around it, in thousandths of a processor, and how often the group that has it
/// was stopped by it; without any, how often the innermost group was that says it.
fn cpu(folders: &[PathBuf]) -> Counters {
    let quotas = folders.iter().filter_map(|folder| Some((quota(folder)?, folder)));
    let (quota, of) = quotas.min_by_key(|(quota, _)| *quota).unzip();
    let stats = folders.iter().filter(|folder| of.is_none_or(|of| of == *folder));
    let stat = stats.filter_map(|folder| read(folder, "cpu.stat")).find(|stat| field(stat, "nr_throttled").is_some());
    let stat = stat.unwrap_or_default();
    let throttled_us = field(&stat, "throttled_usec").and_then(|us| us.checked_mul(1_000));
    let all = [
        ("control group CPU quota (millicores)", quota),
        ("control group CPU periods", field(&stat, "nr_periods")),
        ("control group CPU periods throttled", field(&stat, "nr_throttled")),
        ("control group CPU throttled (ns)", throttled_us.or_else(|| field(&stat, "throttled_time"))),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.into(), value?))).collect()
}

/// A group's quota: `cpu.max` is `max 100000` or `150000 100000`; version 1 has a file for each, and -1 for none.
fn quota(folder: &Path) -> Option<i64> {
    let text = read(folder, "cpu.max").or_else(|| {
        let [quota, period] = ["cpu.cfs_quota_us", "cpu.cfs_period_us"].map(|file| read(folder, file));
        Some(format!("{} {}", quota?, period?))
    })?;
    let mut words = text.split_ascii_whitespace();
    let (quota_us, period_us) = (number(words.next())?, number(words.next())?);
    (quota_us >= 0 && period_us > 0).then(|| quota_us.saturating_mul(1_000) / period_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, files: &[(&str, &str)]) -> PathBuf {
        std::fs::create_dir_all(folder).unwrap();
        files.iter().for_each(|(file, text)| std::fs::write(folder.join(file), text).unwrap());
        folder.to_path_buf()
    }

    fn lines(counters: Counters) -> Vec<String> {
        counters.into_iter().map(|(name, value)| format!("{name}: {value}")).collect()
    }

    #[test]
    fn folders_of_a_group_are_those_of_its_controller() {
        let folders = |text: &str, controller| {
            group_folders(text, controller).iter().map(|(_, path)| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(folders("0::/job/a\n", "memory"), ["/sys/fs/cgroup/job/a", "/sys/fs/cgroup"]);
        let old = "4:memory:/job\n2:cpu,cpuacct:/\n0::/\n";
        assert_eq!(folders(old, "memory")[..2], ["/sys/fs/cgroup/memory/job", "/sys/fs/cgroup/memory"]);
        assert_eq!(folders(old, "cpu")[0], "/sys/fs/cgroup/cpu,cpuacct/");
    }

    #[test]
    fn the_smallest_quota_of_a_group_and_those_around_it_counts_with_its_own_throttling() {
        let base = std::env::temp_dir().join(format!("stepscope-control-group-{}", std::process::id()));
        let stat = |periods| format!("usage_usec 5\nnr_periods {periods}\nnr_throttled 3\nthrottled_usec 40\n");
        let root = write(&base, &[("cpu.stat", "usage_usec 9\n")]);
        let pod = write(&base.join("pod"), &[("cpu.max", "150000 100000\n"), ("cpu.stat", &stat(7))]);
        let job = write(&base.join("pod/job"), &[("cpu.max", "max 100000\n"), ("cpu.stat", &stat(2))]);
        let expected = [
            "control group CPU quota (millicores): 1500",
            "control group CPU periods: 7",
            "control group CPU periods throttled: 3",
            "control group CPU throttled (ns): 40000",
        ];
        assert_eq!(lines(cpu(&[job.clone(), pod.clone(), root.clone()])), expected);
        write(&job, &[("cpu.max", "50000 200000\n")]);
        assert_eq!(
            lines(cpu(&[job.clone(), pod, root.clone()]))[..2],
            ["control group CPU quota (millicores): 250", "control group CPU periods: 2"]
        );
        write(&job, &[("cpu.max", "max 100000\n")]);
        assert_eq!(lines(cpu(&[job, root.clone()]))[0], "control group CPU periods: 2");
        assert_eq!(lines(cpu(&[root])), Vec::<String>::new());
        std::fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn version_1_says_the_same_in_other_files() {
        let base = std::env::temp_dir().join(format!("stepscope-control-group-1-{}", std::process::id()));
        let quota = |quota| [("cpu.cfs_quota_us", quota), ("cpu.cfs_period_us", "100000\n")];
        let stat = ("cpu.stat", "nr_periods 4\nnr_throttled 1\nthrottled_time 77\n");
        let job = write(&base, &[&quota("80000\n")[..], &[stat]].concat());
        let expected = [
            "control group CPU quota (millicores): 800",
            "control group CPU periods: 4",
            "control group CPU periods throttled: 1",
            "control group CPU throttled (ns): 77",
        ];
        assert_eq!(lines(cpu(std::slice::from_ref(&job))), expected);
        write(&job, &quota("-1\n"));
        assert_eq!(lines(cpu(std::slice::from_ref(&job))), expected[1..]);
        std::fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_process_whose_groups_nobody_knows_has_no_counters() {
        assert!(Group::of("?\n".into()).cpu.is_empty());
    }
}

//! What a person named: a run, a trace file, or a folder that holds several of them.

use std::path::{Path, PathBuf};
use stepscope_engine::{Joining, is_job};

/// Runs of one folder that are listed at most.
const MAX_RUNS: usize = 1_000;
/// Endings of trace files, packed or not. What a file is, its content says when it is read.
const ENDINGS: [&str; 4] = [".json", ".trace", ".pickle", ".pkl"];
const PACKINGS: [&str; 4] = ["", ".gz", ".zst", ".zip"];

/// The runs and trace files that lie in the folder `path`, by name; itself where there are none.
pub(crate) fn runs_in(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = entries(path).into_iter().filter(|entry| is_run_or_trace(entry)).collect();
    found.truncate(MAX_RUNS);
    // Reading the folder itself then says what is wrong with it.
    if found.is_empty() { vec![path.into()] } else { found }
}

/// Whether `path` is a folder of several runs, in which more may appear. The traces of a job's ranks are one run.
pub(crate) fn is_collection(path: &Path, joining: &Joining) -> bool {
    stepscope_store::is_folder(path) && !is_run(path) && !is_dftracer(path) && !is_job(path, joining)
}

/// What a person calls the run at `path`.
pub(crate) fn name_of(path: &Path) -> String {
    let path = if path.file_name().is_some() {
        path.to_path_buf()
    } else {
        stepscope_store::canonicalize(path).unwrap_or(path.into())
    };
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// What names the run at `path` in links: the beginning of its name, so that a person knows it, and a sum of its whole
/// path, so that no other has it. It is never a number alone.
pub(crate) fn key_of(path: &Path) -> String {
    let whole =
        stepscope_store::canonicalize(path).or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.into());
    // FNV-1a: the same in every version of the program.
    let sum = whole
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    let name: String = name_of(path).chars().take(40).map(|c| if is_plain(c) { c } else { '_' }).collect();
    format!("{name}-{:08x}", (sum >> 32) ^ (sum & 0xffff_ffff))
}

fn is_run_or_trace(path: &Path) -> bool {
    if stepscope_store::is_folder(path) { is_run(path) || is_dftracer(path) } else { has_ending(path, &ENDINGS) }
}

/// A folder as our recorder makes them.
fn is_run(path: &Path) -> bool {
    stepscope_store::exists(&path.join("run.json"))
        || stepscope_store::is_folder(&path.join("raw"))
        || entries(path).iter().any(|entry| {
            let name = entry.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("rank=") && stepscope_store::is_folder(entry)
        })
}

/// A folder of DFTracer's files, which are one trace.
fn is_dftracer(path: &Path) -> bool {
    entries(path).iter().any(|entry| has_ending(entry, &[".pfw"]))
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let is_hidden = name.starts_with('.');
    !is_hidden
        && endings.iter().any(|ending| PACKINGS.iter().any(|packing| name.ends_with(&format!("{ending}{packing}"))))
}

/// What lies in a folder, by name; nothing where it cannot be read.
fn entries(path: &Path) -> Vec<PathBuf> {
    stepscope_store::list(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    #[test]
    fn a_folder_is_a_run_or_holds_several() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (run, file) in [
            ("b", "run.json"),
            ("c/raw", "x.capture"),
            ("d/rank=0", "p.parquet"),
            ("e", "t.pfw.gz"),
            ("f", "notes.txt"),
        ] {
            create_dir_all(at(run)).unwrap();
            write(at(run).join(file), "").unwrap();
        }
        for file in ["a.pt.trace.json.gz", "snapshot.pickle", "z.json", "README.md", ".hidden.json"] {
            write(at(file), "").unwrap();
        }
        let names: Vec<String> = runs_in(folder.path()).iter().map(|path| name_of(path)).collect();
        assert_eq!(names, ["a.pt.trace.json.gz", "b", "c", "d", "e", "snapshot.pickle", "z.json"]);
        let is_several = |path: &Path| is_collection(path, &Joining::default());
        for single in ["b", "c", "d", "e", "z.json", "not there"] {
            assert!(!is_several(&at(single)), "{single}");
        }
        assert!(is_several(folder.path()) && is_several(&at("f")));
        assert_eq!(runs_in(&at("f")), [at("f")]);
        let keys: Vec<String> = runs_in(folder.path()).iter().map(|path| key_of(path)).collect();
        assert!(keys[0].starts_with("a.pt.trace.json.gz-") && keys[0].len() == 27, "{keys:?}");
        assert_eq!(key_of(&folder.path().join("b/../b")), keys[1]);
        assert_ne!(key_of(&folder.path().join("c/raw/../../x/b")), keys[1]);
    }
}

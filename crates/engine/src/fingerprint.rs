//! Whether an input has changed: names, lengths and times of its files, which works on network disks, too.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Files of a run that are looked at most.
const MAX_FILES: usize = 20_000;
/// Folders below a run that are looked into.
const MAX_DEPTH: usize = 4;

/// What an input's files look like from outside.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fingerprint(Vec<(PathBuf, u64, u128)>);

impl Fingerprint {
    /// Of the file or folder at `path`.
    pub fn of(path: &Path) -> Self {
        let mut files = Vec::new();
        add(path, 0, &mut files);
        files.sort_unstable();
        Self(files)
    }

    /// Its files, each with its length in bytes and its time in ns since 1970, by path.
    pub fn files(&self) -> impl Iterator<Item = (&Path, u64, u128)> {
        self.0.iter().map(|(path, bytes, modified_ns)| (path.as_path(), *bytes, *modified_ns))
    }

    /// True when nothing is there.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn add(path: &Path, depth: usize, files: &mut Vec<(PathBuf, u64, u128)>) {
    let Ok(metadata) = stepscope_store::metadata(path) else { return };
    if !metadata.is_folder {
        let modified = metadata.modified.unwrap_or(SystemTime::UNIX_EPOCH);
        files.push((path.into(), metadata.len, modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()));
        return;
    }
    if depth > MAX_DEPTH {
        return;
    }
    for entry in stepscope_store::list(path).unwrap_or_default() {
        if files.len() >= MAX_FILES {
            return;
        }
        // What this program keeps beside traces changes nothing of them.
        if !entry.file_name().unwrap_or_default().to_string_lossy().starts_with('.') {
            add(&entry, depth + 1, files);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_or_appears_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("raw/a"), folder.path().join("raw/b"));
        std::fs::create_dir(folder.path().join("raw")).unwrap();
        std::fs::write(&a, "1").unwrap();
        let first = Fingerprint::of(folder.path());
        assert_eq!(Fingerprint::of(folder.path()), first);
        std::fs::write(&a, "22").unwrap();
        let grown = Fingerprint::of(folder.path());
        std::fs::write(&b, "").unwrap();
        let more = Fingerprint::of(folder.path());
        assert!(first != grown && grown != more && !more.is_empty());
        assert!(Fingerprint::of(&folder.path().join("gone")).is_empty());
    }
}

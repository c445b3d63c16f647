//! The search for a vendor's library.

use crate::Library;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The vendor's library, and where it was found: the first of [`of_library`] that is loaded already, else that can be.
///
/// # Errors
/// What the loader says of the last.
pub(crate) fn open(
    variable: &str,
    stem: &str,
    given: &[PathBuf],
    names: &[&str],
) -> Result<(Library, PathBuf), String> {
    Library::first_of(&of_library(variable, stem, given, names))
}

/// In order: what the environment's `variable` names, and then nothing else; what the process has loaded under a name
/// that begins with `stem`; what was `given`; what the system's loader finds under `names`.
fn of_library(variable: &str, stem: &str, given: &[PathBuf], names: &[&str]) -> Vec<PathBuf> {
    if let Some(path) = std::env::var_os(variable).filter(|path| !path.is_empty()) {
        return vec![path.into()];
    }
    let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
    let mut candidates = mapped(&maps, stem);
    candidates.extend(given.iter().filter(|path| has_stem(path, stem)).cloned());
    candidates.extend(names.iter().map(PathBuf::from));
    candidates
}

/// True where the environment's `variable` names a library: it is used as it is, whatever else is here.
pub(crate) fn is_named(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|path| !path.is_empty())
}

fn has_stem(path: &Path, stem: &str) -> bool {
    path.file_name().is_some_and(|name| name.as_bytes().starts_with(stem.as_bytes()))
}

/// The files of `/proc/self/maps` whose names begin with `stem`, each once.
fn mapped(maps: &[u8], stem: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for line in maps.split(|byte| *byte == b'\n') {
        let Some(start) = line.iter().position(|byte| *byte == b'/') else { continue };
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(&line[start..]));
        if has_stem(&path, stem) && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_loaded_comes_first_then_what_is_given_then_the_system() {
        let maps = b"7f00-7f01 r-xp 00000000 08:01 11 /a b/libpti_view.so.1.2\n\
                     7f01-7f02 rw-p 00001000 08:01 11 /a b/libpti_view.so.1.2\n\
                     7f02-7f03 rw-p 00000000 00:00 0 [heap]\n7f03-7f04 r--p 00000000 08:01 12 /b/libpti.so\n";
        assert_eq!(mapped(maps, "libpti_view.so"), [PathBuf::from("/a b/libpti_view.so.1.2")]);
        let given = ["/c/libpti_view.so.0".into(), "/c/libcupti.so.13".into()];
        let candidates = of_library("STEPSCOPE_NO_SUCH_VARIABLE", "libpti_view.so", &given, &["libpti_view.so.1"]);
        assert_eq!(candidates, [PathBuf::from("/c/libpti_view.so.0"), PathBuf::from("libpti_view.so.1")]);
        let itself = of_library("STEPSCOPE_NO_SUCH_VARIABLE", "libc.so", &[], &[]);
        assert!(itself.iter().any(|path| path.is_absolute()), "{itself:?}");
    }
}

//! Where the Python package lies, with what `record` puts into recorded processes.

use std::path::{Path, PathBuf};

/// The environment variable that names the package's folder.
pub(crate) const PACKAGE_VARIABLE: &str = "STEPSCOPE_PACKAGE";
/// The library in the package that the system loads into recorded processes. It is empty, so that every C library can load
/// it, and names the one that records calls on files as its auxiliary, which glibc loads in front of it.
const FILES_LIBRARY: &str = "libstepscope_preload.so";
/// The folder in the package whose `sitecustomize.py` a recorded Python runs first.
const INJECTED: &str = "_inject";

/// The package's folder: what `STEPSCOPE_PACKAGE` says, else near this program, as installed or in a checkout. `None`
/// when there is no such folder with something to inject.
pub(crate) fn find_package() -> Option<PathBuf> {
    if let Some(package) = std::env::var_os(PACKAGE_VARIABLE) {
        return Some(PathBuf::from(package)).filter(|package| is_package(package));
    }
    let program = std::env::current_exe().ok()?;
    let program = program.canonicalize().unwrap_or(program);
    candidates(&program).into_iter().find(|package| is_package(package))
}

/// The library by which calls on files are recorded, when the package has it.
pub(crate) fn files_library(package: &Path) -> Option<PathBuf> {
    Some(package.join(FILES_LIBRARY)).filter(|library| library.is_file())
}

/// The folder to put in front of Python's search path.
pub(crate) fn injected_folder(package: &Path) -> PathBuf {
    package.join(INJECTED)
}

pub(crate) fn is_package(package: &Path) -> bool {
    injected_folder(package).join("sitecustomize.py").is_file()
}

fn candidates(program: &Path) -> Vec<PathBuf> {
    let mut candidates = Vec::new();
    // Inside the package, or beside the library folder of the Python environment that it was installed into.
    if let Some(prefix) = program.ancestors().nth(2) {
        candidates.push(prefix.to_path_buf());
        candidates.extend(site_packages(prefix).map(|folder| folder.join("stepscope")));
    }
    // A checkout: the program lies in its build folder, or cargo runs it.
    let in_checkout = |folder: &Path| folder.join("python").join("stepscope");
    candidates.extend(program.ancestors().skip(1).map(in_checkout));
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let built_from = cfg!(debug_assertions).then(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    for folder in manifest.iter().chain(&built_from) {
        candidates.extend(folder.ancestors().take(3).map(in_checkout));
    }
    candidates
}

pub(crate) fn site_packages(prefix: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
    let pythons = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("python"));
    let windows = prefix.join("Lib").join("site-packages");
    pythons.map(|entry| entry.path().join("site-packages")).chain([windows])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_an_environment_finds_the_package_of_that_environment() {
        let prefix = tempfile::tempdir().unwrap();
        let package = prefix.path().join("lib/python3.12/site-packages/stepscope");
        std::fs::create_dir_all(package.join(INJECTED)).unwrap();
        std::fs::write(package.join(INJECTED).join("sitecustomize.py"), "").unwrap();
        let found = candidates(&prefix.path().join("bin/stepscope")).into_iter().find(|package| is_package(package));
        assert_eq!(found, Some(package));
    }
}

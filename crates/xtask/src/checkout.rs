//! The checkout: where it is, and the files that belong to it.

use crate::child;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The checkout's root folder: that which cargo was started in. Where several checkouts build into one folder, the program may
/// have been compiled in another one.
pub(crate) fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        Path::new(&package).ancestors().nth(2).expect("this crate is in crates/xtask").into()
    });
    &ROOT
}

/// Where a program lies that cargo built for release.
pub(crate) fn built(program: &str) -> PathBuf {
    target().join("release").join(program)
}

/// Where cargo builds: `CARGO_TARGET_DIR`, by default `target`.
pub(crate) fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// `cargo`, to be run in the checkout.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root());
    command
}

/// Builds programs for release. Dependencies have the features of the whole workspace, as in the tests, so that they are
/// compiled once.
pub(crate) fn build(programs: &[&str]) -> Result<(), String> {
    let mut command = cargo();
    command.args(["build", "--quiet", "--release", "--workspace"]);
    programs.iter().for_each(|program| _ = command.args(["--bin", program]));
    child::run(&mut command)
}

/// A file of the checkout.
pub(crate) struct File {
    /// Path from the root, with `/`.
    pub(crate) path: String,
    /// What is in it.
    pub(crate) bytes: Vec<u8>,
}

impl File {
    /// Its text; what is not UTF-8 is replaced.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Its path split at `/`.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &str> {
        self.path.split('/')
    }
}

/// The files that belong to the project, by path.
pub(crate) struct Checkout {
    /// All of them, sorted by path.
    pub(crate) files: Vec<File>,
}

impl Checkout {
    /// Reads every file that git has or would take.
    pub(crate) fn read() -> Result<Self, String> {
        let mut git = Command::new("git");
        git.current_dir(root()).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let listed = child::read(&mut git).ok_or("git cannot list the files of this checkout")?;
        let mut files = Vec::new();
        for path in String::from_utf8_lossy(&listed).split_terminator('\0') {
            let on_disk: PathBuf = root().join(path);
            // A file that was deleted but not committed is listed too.
            if on_disk.is_file() {
                let bytes = std::fs::read(&on_disk).map_err(|error| format!("cannot read {path}: {error}"))?;
                files.push(File { path: path.to_string(), bytes });
            }
        }
        Ok(Self::of(files))
    }

    fn of(mut files: Vec<File>) -> Self {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Self { files }
    }

    /// A checkout of `(path, text)`, for tests.
    #[cfg(test)]
    pub(crate) fn sample(files: &[(&str, &str)]) -> Self {
        Self::of(files.iter().map(|(path, text)| File { path: (*path).into(), bytes: (*text).into() }).collect())
    }

    /// The file at `path`.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.binary_search_by(|file| file.path.as_str().cmp(path)).ok().map(|index| &self.files[index])
    }

    /// True when a file or a folder is at `path`.
    pub(crate) fn has(&self, path: &str) -> bool {
        let is_inside = |file: &File| file.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        path.is_empty() || self.file(path).is_some() || self.files.iter().any(is_inside)
    }

    /// The files whose name ends in `.extension`.
    pub(crate) fn with_extension<'a>(&'a self, extension: &'a str) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |file| file.path.strip_suffix(extension).is_some_and(|stem| stem.ends_with('.')))
    }
}

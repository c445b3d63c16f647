//! What recorded processes need to record their calls on files: which folders, and, of all processes whatever they are, a
//! library that the system loads before all others.

use super::options::Options;
use crate::failure::Failure;
use crate::package::files_library;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The environment variable with the libraries that the system loads first.
const PRELOAD: &str = "LD_PRELOAD";
/// Those with folders, which our library reads.
const INCLUDE: &str = "STEPSCOPE_IO_INCLUDE";
const EXCLUDE: &str = "STEPSCOPE_IO_EXCLUDE";
/// And how much of the past is kept of calls, ns.
const RING: &str = "STEPSCOPE_IO_RING";
/// And that calls on sockets are recorded, too.
const SOCKETS: &str = "STEPSCOPE_IO_SOCKETS";

/// What the program's environment has beside the rest.
pub(super) fn environment(package: &Path, options: &Options) -> Result<Vec<(&'static str, OsString)>, Failure> {
    let (included, excluded) = options.folders();
    let mut environment = vec![(INCLUDE, joined(included)), (EXCLUDE, joined(excluded))];
    if options.is_io() {
        let library = files_library(package).ok_or_else(|| {
            Failure::new(format!("the package in {} has no library that records files", package.display()))
                .hint("pip install stepscope, or leave --io out")
        })?;
        // Some libraries that stand before the C library insist on being the first.
        let mut preload = std::env::var_os(PRELOAD).filter(|before| !before.is_empty()).unwrap_or_default();
        if !preload.is_empty() {
            preload.push(":");
        }
        preload.push(library);
        environment.push((PRELOAD, preload));
        environment.extend(options.has_sockets().then(|| (SOCKETS, "1".into())));
        environment.extend(options.ring_ns().map(|ns| (RING, ns.to_string().into())));
    }
    Ok(environment)
}

/// Absolute paths with colons between them.
fn joined(folders: &[PathBuf]) -> OsString {
    let absolute = |folder: &PathBuf| std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
    folders.iter().map(absolute).map(PathBuf::into_os_string).collect::<Vec<_>>().join(&OsString::from(":"))
}

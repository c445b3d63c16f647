//! Tables that are made once and kept: beside what they were made of, else in the user's cache.

use super::write_tables;
use crate::ExportError;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use stepscope_engine::{EngineError, Fingerprint, OpenOptions, OpenedRun, Ranks};

/// Raised when what tables hold changes, but not their columns.
const FORMAT: u32 = 1;
/// The folder beside the traces.
const FOLDER: &str = ".stepscope";
/// In a folder of tables that is kept: what it was made of.
const MADE_OF: &str = "made-of";

/// The tables of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptTables {
    /// Their folder.
    pub folder: PathBuf,
    /// Whether they were made now.
    pub is_new: bool,
}

/// The tables of what `paths` name: those that are kept, as long as nothing has changed, else new ones of the run that
/// `open` gives. A folder of tables is what it is.
///
/// # Errors
/// What the readers say of the files; [`ExportError::Write`] where they can be kept nowhere.
pub fn kept_tables(
    paths: &[PathBuf],
    options: &OpenOptions,
    open: impl FnOnce() -> Result<OpenedRun, EngineError>,
) -> Result<KeptTables, ExportError> {
    if let [only] = paths
        && is_tables(only)
    {
        return Ok(KeptTables { folder: only.clone(), is_new: false });
    }
    let places = places(paths, options);
    let made_of = made_of(paths, options);
    let is_of_these = |folder: &&PathBuf| std::fs::read_to_string(folder.join(MADE_OF)).is_ok_and(|of| of == made_of);
    if let Some(folder) = places.iter().find(is_of_these) {
        return Ok(KeptTables { folder: folder.clone(), is_new: false });
    }
    let run = open()?;
    let mut failure = None;
    for folder in places {
        match keep(&run, paths, options, &folder) {
            Ok(()) => return Ok(KeptTables { folder, is_new: true }),
            Err(error @ ExportError::Write { .. }) => failure = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(failure.unwrap_or_else(|| ExportError::Write {
        path: paths.first().cloned().unwrap_or_default(),
        source: std::io::Error::other("there is no folder in which tables can be kept: set XDG_CACHE_HOME"),
    }))
}

/// Whether a folder has the tables of a run.
fn is_tables(path: &Path) -> bool {
    ["slice", "track", "finding"].iter().all(|table| stepscope_store::is_folder(&path.join(table)))
}

fn keep(run: &OpenedRun, paths: &[PathBuf], options: &OpenOptions, folder: &Path) -> Result<(), ExportError> {
    let failed = |source| ExportError::Write { path: folder.into(), source };
    std::fs::create_dir_all(folder.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    // Nothing but tables is in it, and of none that are half replaced it says what they were made of.
    let _ = std::fs::remove_file(folder.join(MADE_OF));
    write_tables(run, &Ranks::default(), folder)?;
    // What grows is another run the next time.
    if run.is_live() {
        return Ok(());
    }
    // Opening a run may have completed its files.
    std::fs::write(folder.join(MADE_OF), made_of(paths, options)).map_err(failed)
}

/// Where the tables may be, the best place first.
fn places(paths: &[PathBuf], options: &OpenOptions) -> Vec<PathBuf> {
    let mut places = Vec::new();
    let is_plain = options.spelled() == OpenOptions::default().spelled();
    if let [only] = paths
        && is_plain
        && !stepscope_store::is_remote(only)
    {
        places.push(match (only.is_dir(), only.parent(), only.file_name()) {
            (false, Some(parent), Some(name)) => parent.join(FOLDER).join(format!("{}.tables", name.to_string_lossy())),
            _ => only.join(FOLDER).join("tables"),
        });
    }
    let name = paths.first().and_then(|path| path.file_name()).unwrap_or_default().to_string_lossy().into_owned();
    let whole: Vec<PathBuf> =
        paths.iter().map(|path| stepscope_store::canonicalize(path).unwrap_or_else(|_| path.clone())).collect();
    let sum = crc32c::crc32c(format!("{whole:?} {}", options.spelled().join(" ")).as_bytes());
    places.extend(stepscope_store::cache_folder().map(|cache| cache.join("tables").join(format!("{name}.{sum:08x}"))));
    places
}

/// What tables depend on: the program, how files are joined, and each file with its length and its time.
fn made_of(paths: &[PathBuf], options: &OpenOptions) -> String {
    let columns = crc32c::crc32c(format!("{:?}", super::table_descriptions()).as_bytes());
    let mut text = format!("{} {FORMAT} {columns:08x}\n{}\n", env!("CARGO_PKG_VERSION"), options.spelled().join(" "));
    for path in paths {
        for (file, bytes, modified_ns) in Fingerprint::of(path).files() {
            // The same from whatever folder the program is called.
            let _ = writeln!(text, "{bytes} {modified_ns} {}", file.strip_prefix(path).unwrap_or(file).display());
        }
    }
    text
}

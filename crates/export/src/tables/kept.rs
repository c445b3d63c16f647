//! Tables that are made once and kept: beside what they were made of, else in the user's cache. A folder's name tells of
//! which state of the files it is, and nothing in it changes: who reads it is not disturbed by who makes the next one.

use super::write_tables;
use crate::ExportError;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use stepscope_engine::{EngineError, Fingerprint, OpenOptions, OpenedRun, Ranks};

/// Raised when what tables hold changes, but not their columns.
const FORMAT: u32 = 1;
/// The folder beside the traces.
const FOLDER: &str = ".stepscope";
/// How often a run is read that changes meanwhile.
const TRIES: usize = 3;
/// Tables of an earlier state are kept as long: queries may still read them.
const KEPT_FOR: Duration = Duration::from_secs(600);
/// What was begun and not ended for as long is taken for abandoned.
const LEFT_FOR: Duration = Duration::from_secs(6 * 3600);

/// The tables of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptTables {
    /// Their folder.
    pub folder: PathBuf,
    /// Whether they were made now.
    pub is_new: bool,
}

impl KeptTables {
    /// Those that are there already.
    fn of(folder: PathBuf) -> Self {
        Self { folder, is_new: false }
    }

    /// What `stepscope-sql` is told of them: what the run is called in answers, and what it is made of, for analyses.
    pub fn told(&self, name: &str, inputs: &[PathBuf]) -> Vec<OsString> {
        // The first `=` ends the name.
        let mut tables = OsString::from(format!("--tables={}=", name.replace('=', "_")));
        tables.push(&self.folder);
        let inputs = inputs.iter().map(|input| {
            let mut told = OsString::from("--input=");
            told.push(input);
            told
        });
        std::iter::once(tables).chain(inputs).collect()
    }
}

/// The tables of what `paths` name: those that are kept, as long as nothing has changed, else new ones of the run that
/// `open` gives. A folder of tables is what it is, also in a store.
///
/// # Errors
/// What the readers say of the files; [`ExportError::Write`] where they can be kept nowhere.
pub fn kept_tables(
    paths: &[PathBuf],
    options: &OpenOptions,
    open: impl Fn() -> Result<OpenedRun, EngineError>,
) -> Result<KeptTables, ExportError> {
    if let [only] = paths
        && is_tables(only)
    {
        return Ok(KeptTables::of(only.clone()));
    }
    let places = places(paths, options);
    let mut state = state(paths, options);
    for last in (1..=TRIES).map(|nth| nth == TRIES) {
        if let Some(folder) = known(&places, &state) {
            return Ok(KeptTables::of(folder));
        }
        let run = open()?;
        // Opening a run may have completed its files; what was read is certain once nothing has changed meanwhile.
        let opened = self::state(paths, options);
        if opened == state || run.is_live() || last {
            let write = |folder: &Path| write_tables(&run, &Ranks::default(), folder).map(drop);
            return keep(&places, &state, &write, &|| !run.is_live() && self::state(paths, options) == state);
        }
        state = opened;
    }
    unreachable!("the last try gives tables")
}

/// Whether a folder has the tables of a run.
fn is_tables(path: &Path) -> bool {
    ["slice", "track", "finding"].iter().all(|table| stepscope_store::is_folder(&path.join(table)))
}

/// The tables of this state, where they are kept.
fn known(places: &[Place], state: &str) -> Option<PathBuf> {
    places.iter().map(|place| place.of(state)).find(|folder| folder.is_dir())
}

/// Has tables written into the first place that takes them. They are of this state if that `is_certain` then.
fn keep(
    places: &[Place],
    state: &str,
    write: &dyn Fn(&Path) -> Result<(), ExportError>,
    is_certain: &dyn Fn() -> bool,
) -> Result<KeptTables, ExportError> {
    let mut failure = None;
    for place in places {
        match place.keep(state, write, is_certain) {
            Ok(folder) => return Ok(KeptTables { folder, is_new: true }),
            Err(error @ ExportError::Write { .. }) => failure = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(failure.unwrap_or_else(|| ExportError::Write {
        path: PathBuf::from("tables"),
        source: std::io::Error::other("there is no folder in which tables can be kept: set XDG_CACHE_HOME"),
    }))
}

/// Where tables of a run may be.
struct Place {
    folder: PathBuf,
    /// What their names begin with.
    name: String,
}

impl Place {
    /// The folder of the tables of a state.
    fn of(&self, state: &str) -> PathBuf {
        self.folder.join(format!("{}-{state}", self.name))
    }

    fn keep(
        &self,
        state: &str,
        write: &dyn Fn(&Path) -> Result<(), ExportError>,
        is_certain: &dyn Fn() -> bool,
    ) -> Result<PathBuf, ExportError> {
        let failed = |source| ExportError::Write { path: self.folder.clone(), source };
        std::fs::create_dir_all(&self.folder).map_err(failed)?;
        self.clear(state);
        let made = tempfile::Builder::new().prefix(".making-").tempdir_in(&self.folder).map_err(failed)?;
        let tables = made.path().join("tables");
        write(&tables)?;
        // What is still recorded, or has changed since it was opened, is asked anew the next time.
        let folder = match is_certain() {
            true => self.of(state),
            false => {
                self.of(&format!("{state}-of-{}", made.path().display().to_string().rsplit('-').next().unwrap_or("")))
            }
        };
        match std::fs::rename(&tables, &folder) {
            // Somebody else was quicker.
            Err(_) if folder.is_dir() => Ok(folder),
            renamed => renamed.map(|()| folder).map_err(failed),
        }
    }

    /// Removes tables of other states that nobody reads any more, and what was never ended.
    fn clear(&self, state: &str) {
        let kept = self.of(state);
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_old = |longest: Duration| {
                let modified = entry.metadata().and_then(|metadata| metadata.modified());
                let age = modified.ok().and_then(|modified| SystemTime::now().duration_since(modified).ok());
                age.is_some_and(|age| age > longest)
            };
            let is_earlier = name.starts_with(&format!("{}-", self.name)) && entry.path() != kept && is_old(KEPT_FOR);
            if is_earlier || name.starts_with(".making-") && is_old(LEFT_FOR) {
                // It takes room, and harms nobody.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// Where the tables may be, the best place first.
fn places(paths: &[PathBuf], options: &OpenOptions) -> Vec<Place> {
    let mut places = Vec::new();
    let is_plain = options.spelled() == OpenOptions::default().spelled();
    if let [only] = paths
        && is_plain
        && !stepscope_store::is_remote(only)
    {
        places.push(match (only.is_dir(), only.parent(), only.file_name()) {
            (false, Some(parent), Some(name)) => {
                Place { folder: parent.join(FOLDER), name: format!("{}.tables", name.to_string_lossy()) }
            }
            _ => Place { folder: only.join(FOLDER), name: "tables".into() },
        });
    }
    let name = paths.first().and_then(|path| path.file_name()).unwrap_or_default().to_string_lossy().into_owned();
    let whole: Vec<PathBuf> =
        paths.iter().map(|path| stepscope_store::canonicalize(path).unwrap_or_else(|_| path.clone())).collect();
    let name = format!("{name}-{}", sum(&format!("{whole:?} {}", options.spelled().join(" "))));
    places.extend(stepscope_store::cache_folder().map(|cache| Place { folder: cache.join("tables"), name }));
    places
}

/// What tables depend on, as a word: the program, how files are joined, and each file with its length and its time.
fn state(paths: &[PathBuf], options: &OpenOptions) -> String {
    let mut text = format!("{} {FORMAT} {:?}\n", env!("CARGO_PKG_VERSION"), super::table_descriptions());
    let _ = writeln!(text, "{}", options.spelled().join(" "));
    for path in paths {
        for (file, bytes, modified_ns) in Fingerprint::of(path).files() {
            // The same from whatever folder the program is called.
            let _ = writeln!(text, "{bytes} {modified_ns} {}", file.strip_prefix(path).unwrap_or(file).display());
        }
    }
    sum(&text)
}

fn sum(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests;

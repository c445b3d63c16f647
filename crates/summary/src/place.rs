//! Where a summary is kept, and whether it is still of what it was made of.

use crate::file::tables_from_bytes;
use crate::{Summary, SummaryError, from_bytes, table_from_bytes, to_bytes};
use bytes::Bytes;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;
use stepscope_analyses::{Table, catalogue};
use stepscope_store::Metadata;

/// Raised when what a summary holds changes its meaning.
const FORMAT: u32 = 9;
/// The folder beside the traces.
const FOLDER: &str = ".stepscope";
/// How much of the beginning and of the end of a trace is compared.
const COMPARED_BYTES: u64 = 65_536;

/// Where the summary of one trace is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Beside the trace, then in the user's cache.
    paths: Vec<PathBuf>,
    /// The sum of what the trace and this program are.
    of: u64,
}

impl Place {
    /// That of what is called `name` in `folder` and consists of `files`, and of what else it depends on, as text.
    ///
    /// # Errors
    /// When a file cannot be looked at.
    pub fn of(folder: &Path, name: &str, files: &[PathBuf], surroundings: &str) -> io::Result<Self> {
        let beside = folder.join(FOLDER).join(format!("{name}.parquet"));
        // All folders' traces share the cache, and many of them have the same name.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let whole = stepscope_store::canonicalize(folder)?.join(name);
        let mut sum = Sum::default();
        sum.add(whole.as_os_str().as_encoded_bytes());
        let cached = stepscope_store::cache_folder()
            .map(|folder| folder.join("summaries").join(format!("{name}.{:016x}.parquet", sum.0)));
        Ok(Self { paths: std::iter::once(beside).chain(cached).collect(), of: sum_of(files, surroundings)? })
    }

    /// The summary kept there; `None` without one that can be used. Results of analyses are read when they are asked for.
    pub fn read(&self) -> Option<Summary> {
        let summary = self.paths.iter().find_map(|path| from_bytes(stepscope_store::read(path).ok()?, self.of).ok())?;
        Some(Summary { place: Some(self.clone()), ..summary })
    }

    /// The result of the analysis called `name` in the summary kept there.
    pub(crate) fn read_table(&self, name: &str) -> Option<Table> {
        self.paths
            .iter()
            .find_map(|path| table_from_bytes(stepscope_store::read(path).ok()?, self.of, name).ok())
            .flatten()
    }

    /// Keeps a summary in place of an earlier one: beside the trace if possible, else in the user's cache. Where that can
    /// be done, results of analyses are read from there and let go of.
    pub fn write(&self, summary: &mut Summary) {
        let Ok(bytes) = to_bytes(summary, self.of) else { return };
        if self.paths.iter().any(|path| write_to(path, &bytes).is_ok()) {
            summary.tables = Vec::new();
            summary.place = Some(self.clone());
        }
    }

    /// The sum of what the trace and the program are: what the file of its summary has.
    pub fn sum(&self) -> u64 {
        self.of
    }

    /// The summary that another process has made of the same, and whose file has these bytes. Kept as by
    /// [`write`](Self::write) where `is_kept`.
    ///
    /// # Errors
    /// When it is none, or that of something else.
    pub fn take(&self, bytes: Vec<u8>, is_kept: bool) -> Result<Summary, SummaryError> {
        let bytes = Bytes::from(bytes);
        let mut summary = from_bytes(bytes.clone(), self.of)?;
        if is_kept && self.paths.iter().any(|path| write_to(path, &bytes).is_ok()) {
            summary.place = Some(self.clone());
        } else {
            summary.tables = tables_from_bytes(bytes, self.of)?;
        }
        Ok(summary)
    }
}

/// The sum of what this program is.
pub fn of_program() -> u64 {
    sum_of_program().0
}

/// Writes a file that others can read where the trace can be read, of which no half is ever seen.
fn write_to(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if stepscope_store::is_remote(path) {
        return stepscope_store::write(path, bytes.to_vec());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix(".writing").permissions(permissions(folder)?).tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// Those of new files, as far as the folder's own rights go.
#[cfg(unix)]
fn permissions(folder: &Path) -> io::Result<fs::Permissions> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::Permissions::from_mode(folder.metadata()?.permissions().mode() & 0o666 | 0o600))
}

#[cfg(not(unix))]
fn permissions(folder: &Path) -> io::Result<fs::Permissions> {
    Ok(folder.metadata()?.permissions())
}

/// What files and this program are: the length of each file, its version in a store or else its time and its first and last
/// bytes; what else they depend on; the program's version, and what its analyses are.
fn sum_of(files: &[PathBuf], surroundings: &str) -> io::Result<u64> {
    let mut sum = sum_of_program();
    sum.add(surroundings.as_bytes());
    files.iter().try_for_each(|path| add_file(&mut sum, path))?;
    Ok(sum.0)
}

/// The program's version, and what its analyses are.
fn sum_of_program() -> Sum {
    static OF_PROGRAM: OnceLock<Sum> = OnceLock::new();
    *OF_PROGRAM.get_or_init(|| {
        let mut sum = Sum::default();
        sum.add(env!("CARGO_PKG_VERSION").as_bytes());
        sum.add(&FORMAT.to_le_bytes());
        catalogue().iter().for_each(|analysis| sum.add(analysis.source.as_bytes()));
        sum
    })
}

fn add_file(sum: &mut Sum, path: &Path) -> io::Result<()> {
    let Metadata { len, modified, version, .. } = stepscope_store::metadata(path)?;
    sum.add(&len.to_le_bytes());
    if let Some(version) = version {
        // A list of objects says it without quotes in some stores, and times by another unit than the object itself.
        sum.add(version.trim_matches('"').as_bytes());
        return Ok(());
    }
    let modified =
        modified.unwrap_or(SystemTime::UNIX_EPOCH).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    sum.add(&modified.as_nanos().to_le_bytes());
    let mut file = stepscope_store::open(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(COMPARED_BYTES).read_to_end(&mut bytes)?;
    file.seek(SeekFrom::Start(len.saturating_sub(COMPARED_BYTES)))?;
    file.take(COMPARED_BYTES).read_to_end(&mut bytes)?;
    sum.add(&bytes);
    Ok(())
}

/// FNV-1a: the same in every version of the program.
#[derive(Clone, Copy)]
struct Sum(u64);

impl Default for Sum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        let add = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 = bytes.iter().fold(self.0, add);
    }
}

//! A trace into a file of any format.

use crate::background_writer::write_in_background;
use crate::chrome::{write_chrome_of_recording, write_chrome_window};
use crate::gzip::write_packed;
use crate::{
    Destination, ExportError, Format, ProfileOptions, write_chrome, write_chrome_of_rank, write_perfetto, write_slices,
    write_tables,
};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use stepscope_base::Span;
use stepscope_engine::{OpenedRun, Ranks, RecordingRows};
use stepscope_trace::Trace;

/// Writes `trace` to `path`. What lies there is replaced when `is_replacing`, by then whole, and is an error otherwise.
///
/// # Errors
/// [`ExportError::Exists`], [`ExportError::Write`]; `path` is then as it was.
pub fn save_trace(trace: &Trace, path: &Path, format: Format, is_replacing: bool) -> Result<(), ExportError> {
    if is_taken(path) && !is_replacing {
        return Err(ExportError::Exists { path: path.into() });
    }
    Destination::write(path, |out| write_trace(trace, format, out))
}

/// Writes the tables of some ranks of `run` into the folder `path`. Those that lie there are replaced when `is_replacing`,
/// and are an error otherwise, as is anything else in it; what else lies there stays. Gives the number of slices.
///
/// # Errors
/// [`ExportError::Exists`], [`ExportError::Read`], [`ExportError::Write`].
pub fn save_tables(run: &OpenedRun, ranks: &Ranks, path: &Path, is_replacing: bool) -> Result<u64, ExportError> {
    let is_taken = match stepscope_store::list(path) {
        Ok(entries) => !entries.is_empty(),
        Err(_) => is_taken(path),
    };
    if is_taken && !is_replacing {
        return Err(ExportError::Exists { path: path.into() });
    }
    write_tables(run, ranks, path)
}

/// Whether something is at `path`, a link that leads nowhere as well.
fn is_taken(path: &Path) -> bool {
    path.symlink_metadata().is_ok() || stepscope_store::is_remote(path) && stepscope_store::exists(path)
}

/// Writes `recording` to `path` as Chrome JSON, without a trace; what lies there is replaced. Gives the first number
/// that no operator has, or `None` when a whole trace has to be read instead.
///
/// # Errors
/// [`ExportError::Write`]; `path` is then as it was, as it is when there is no answer.
pub fn save_recording(
    recording: &RecordingRows,
    options: ProfileOptions,
    path: &Path,
    is_packed: bool,
) -> Result<Option<i64>, ExportError> {
    let mut is_told = true;
    let mut next_id = None;
    let saved = save_chrome(path, is_packed, |out| {
        next_id = write_chrome_of_recording(recording, options, out)?;
        is_told = next_id.is_some();
        // So nothing gets the name.
        is_told.then_some(()).ok_or(io::ErrorKind::Unsupported.into())
    });
    if is_told { saved.map(|()| next_id) } else { Ok(None) }
}

/// Writes what a profile recorded within `window`, in times of `trace`, to `path` as Chrome JSON; what lies there is
/// replaced. Gives the first number that no operator has.
///
/// # Errors
/// [`ExportError::Write`]; `path` is then as it was.
pub fn save_window(
    trace: &Trace,
    window: Option<Span>,
    options: ProfileOptions,
    path: &Path,
    is_packed: bool,
) -> Result<i64, ExportError> {
    let mut next_id = options.first_id;
    save_chrome(path, is_packed, |out| {
        next_id = write_chrome_window(trace, window, options, out)?;
        Ok(())
    })?;
    Ok(next_id)
}

fn save_chrome(
    path: &Path,
    is_packed: bool,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), ExportError> {
    match is_packed {
        true => Destination::write(path, |out| write_packed(out, write)),
        false => Destination::write_large(path, |out| write_in_background(out, write)),
    }
}

/// What stands for the rank in the name of a file for each.
pub const RANK_PLACE: &str = "{rank}";

/// Writes Chrome JSON of each of `ranks` to a file of its own: `path` has `{rank}` where its name tells which. Gives the
/// files, by rank.
///
/// # Errors
/// As [`save_trace`]; nothing is written when one of the files is there already and is not to be replaced.
/// [`ExportError::NotByRank`] for other formats.
pub fn save_ranks(
    trace: &Trace,
    ranks: impl Iterator<Item = u32>,
    path: &Path,
    is_replacing: bool,
) -> Result<Vec<PathBuf>, ExportError> {
    let name = path.to_string_lossy();
    let Format::Chrome { is_packed } = Format::of_path(path)? else {
        return Err(ExportError::NotByRank { path: path.into() });
    };
    let of_rank = |rank: u32| (rank, PathBuf::from(name.replace(RANK_PLACE, &rank.to_string())));
    let files: Vec<(u32, PathBuf)> = ranks.map(of_rank).collect();
    if let Some((_, taken)) = files.iter().find(|(_, path)| !is_replacing && is_taken(path)) {
        return Err(ExportError::Exists { path: taken.clone() });
    }
    for (rank, path) in &files {
        Destination::write(path, |out| match is_packed {
            true => write_packed(out, |out| write_chrome_of_rank(trace, *rank, out)),
            false => write_in_background(out, |out| write_chrome_of_rank(trace, *rank, out)),
        })?;
    }
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

/// Writes `trace` into a stream of bytes.
///
/// # Errors
/// When `out` cannot be written to, or the format is a folder.
pub fn write_trace(trace: &Trace, format: Format, out: &mut (dyn Write + Send)) -> io::Result<()> {
    match format {
        Format::Chrome { is_packed: false } => write_in_background(out, |out| write_chrome(trace, out)),
        Format::Chrome { is_packed: true } => write_packed(out, |out| write_chrome(trace, out)),
        Format::Perfetto { is_packed: false } => write_perfetto(trace, out),
        Format::Perfetto { is_packed: true } => write_packed(out, |out| write_perfetto(trace, out)),
        Format::Slices => write_slices(trace, out),
        Format::Tables => Err(io::ErrorKind::IsADirectory.into()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn packed_is_what_is_not_packed() {
        let trace = drawn("rank 0 cpu 1 aabb\nrank 0 stream 7 .CC.");
        let bytes = |format| {
            let mut bytes = Vec::new();
            write_trace(&trace, format, &mut bytes).unwrap();
            bytes
        };
        let unpacked = |bytes: &[u8]| {
            let mut unpacked = Vec::new();
            GzDecoder::new(bytes).read_to_end(&mut unpacked).unwrap();
            unpacked
        };
        assert_eq!(unpacked(&bytes(Format::Chrome { is_packed: true })), bytes(Format::Chrome { is_packed: false }));
        assert_eq!(
            unpacked(&bytes(Format::Perfetto { is_packed: true })),
            bytes(Format::Perfetto { is_packed: false })
        );
    }

    #[test]
    fn what_lies_there_is_replaced_only_when_asked() {
        let folder = tempfile::tempdir().unwrap();
        let trace = drawn("rank 0 cpu 1 aabb");
        let run = OpenedRun::of(trace.clone());
        let [slices, tables] = ["a.parquet", "tables"].map(|name| folder.path().join(name));
        let tables = |is_replacing| save_tables(&run, &Ranks::default(), &tables, is_replacing).map(drop);
        let slices = |is_replacing| save_trace(&trace, &slices, Format::Slices, is_replacing);
        for save in [&slices as &dyn Fn(bool) -> Result<(), ExportError>, &tables] {
            save(false).unwrap();
            assert!(matches!(save(false), Err(ExportError::Exists { .. })));
            save(true).unwrap();
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        assert!(std::fs::read_dir(folder.path().join("tables")).unwrap().count() > 1);
    }

    /// A disk that is full after some bytes.
    pub(crate) struct Full(pub(crate) usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_told_as_one_in_every_format() {
        let trace = drawn("rank 0 cpu 1 aabb\nrank 0 stream 7 .CC.");
        for is_packed in [false, true] {
            for format in [Format::Chrome { is_packed }, Format::Perfetto { is_packed }, Format::Slices] {
                let error = write_trace(&trace, format, &mut Full(20)).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{format:?}");
            }
        }
    }
}

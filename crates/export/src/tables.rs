//! The tables of a run as Parquet: a folder for each table, in it a file for each rank.
//!
//! Times count from the start of the trace; the Unix time of that moment stands in each file's metadata. Texts are
//! dictionary-encoded. Slices and tracks have ids that hold in the whole run, whatever ranks were read with them.

mod devices;
mod kept;
mod moments;
mod sheet;
mod slices;
mod source;
mod statements;

use crate::{Destination, ExportError};
pub use kept::{KeptTables, kept_tables};
use sheet::Sheet;
pub(crate) use sheet::plain_error;
use source::Source;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use stepscope_engine::{OpenedRun, Ranks, each};
use stepscope_trace::Trace;

/// Rows of a file at most, so that the files of a large rank are written beside each other.
const PART_ROWS: usize = 1 << 22;

type MakeSheet = for<'a> fn(&'a Source<'a>) -> Sheet<'a>;

/// Those whose rows belong to ranks. To add a table, add its function here.
const OF_RANKS: &[MakeSheet] = &[
    slices::slice,
    slices::op,
    slices::track,
    slices::thread,
    slices::process,
    moments::step,
    devices::kernel,
    devices::copy,
    devices::launch,
    devices::sync,
    statements::collective,
    statements::io_call,
    statements::flow,
    moments::memory,
    moments::counter,
    moments::sample,
    moments::instant,
];

/// Those of the whole run.
const OF_RUN: &[MakeSheet] = &[statements::finding];

/// What a table is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableDescription {
    /// Its name, and that of its folder.
    pub name: &'static str,
    /// What a row is.
    pub row: &'static str,
    /// Its columns.
    pub columns: Vec<ColumnDescription>,
}

/// What a column of a table is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnDescription {
    /// Its name.
    pub name: String,
    /// What it counts: the units of results, and `id` for what names something.
    pub unit: &'static str,
    /// What it means.
    pub doc: &'static str,
}

/// What the tables are, in the order of their documentation.
pub fn table_descriptions() -> Vec<TableDescription> {
    let trace = Trace::default();
    let source = Source::new(&trace);
    let described = |make: &MakeSheet| {
        let sheet = make(&source);
        let columns = sheet.columns().map(|(name, unit, doc)| ColumnDescription { name: name.into(), unit, doc });
        TableDescription { name: sheet.name, row: sheet.doc, columns: columns.collect() }
    };
    OF_RANKS.iter().chain(OF_RUN).map(described).collect()
}

/// Writes the table of slices as one Parquet file.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_slices(trace: &Trace, out: &mut (dyn Write + Send)) -> io::Result<()> {
    let source = Source::new(trace);
    slices::slice(&source).write_all(trace, out)
}

/// Writes every table of a run, or of some of its ranks, as `TABLE/rank-R.parquet` into the folder `path`, which is made
/// when it is not there. Of a run of many files, one rank after the other is then in memory. The folder appears with all
/// of them or not at all. In one that is there, each table is replaced by itself; where only some ranks are asked for, their
/// files alone, so that several processes can write the tables of a run together. Gives the number of slices.
///
/// # Errors
/// What the readers say of the files; [`ExportError::Write`].
pub fn write_tables(run: &OpenedRun, ranks: &Ranks, path: &Path) -> Result<u64, ExportError> {
    let failed = |source| ExportError::Write { path: path.into(), source };
    if stepscope_store::is_remote(path) {
        // A store has no folders: what begins with the same name is one.
        return write_all(run, ranks, path);
    }
    let name = path.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
    // Processes of other machines, which write other ranks, may have the same number.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let beside = path.with_file_name(format!(".{}.{}-{now}.part", name.to_string_lossy(), std::process::id()));
    std::fs::create_dir(&beside).map_err(failed)?;
    let written = write_all(run, ranks, &beside);
    let finished = written.and_then(|slices| moved(&beside, path, ranks).map_err(failed).map(|()| slices));
    // What is left of it is of no use; a failure that led here is told.
    let _ = std::fs::remove_dir_all(&beside);
    finished
}

/// Gives what lies in `from`, the tables of `ranks`, its place in `to`.
fn moved(from: &Path, to: &Path, ranks: &Ranks) -> io::Result<()> {
    if let Some(done) = took_place(from, to) {
        return done;
    }
    for table in std::fs::read_dir(from)? {
        let table = table?;
        let (table, place) = (table.path(), to.join(table.file_name()));
        if ranks.are_all() && place.is_dir() {
            std::fs::remove_dir_all(&place)?;
        }
        match took_place(&table, &place) {
            Some(done) => done?,
            None => moved_files(&table, &place, ranks)?,
        }
    }
    Ok(())
}

/// Gives a folder its place; `None` where another one has it, with something in it.
fn took_place(from: &Path, to: &Path) -> Option<io::Result<()>> {
    match std::fs::rename(from, to) {
        Err(_) if to.is_dir() => None,
        done => Some(done),
    }
}

/// Gives the files of a table their places among those of other ranks.
fn moved_files(from: &Path, to: &Path, ranks: &Ranks) -> io::Result<()> {
    for earlier in std::fs::read_dir(to)? {
        let name = earlier?.file_name();
        let is_replaced = rank_of(Path::new(&name)).is_some_and(|rank| ranks.has(rank));
        if is_replaced && !from.join(&name).exists() {
            std::fs::remove_file(to.join(&name))?;
        }
    }
    std::fs::read_dir(from)?.try_for_each(|file| {
        let file = file?;
        std::fs::rename(file.path(), to.join(file.file_name()))
    })
}

fn write_all(run: &OpenedRun, ranks: &Ranks, folder: &Path) -> Result<u64, ExportError> {
    let mut slices = 0;
    if run.has_all_events() {
        slices += write_ranks(run.trace(), run.trace(), ranks, folder)?;
    } else {
        for rank in run.trace().ranks().into_iter().filter(|rank| ranks.has(*rank)) {
            let events = run.events(&rank.into())?;
            slices += write_ranks(run.trace(), &events, &rank.into(), folder)?;
        }
    }
    let source = Source::new(run.trace());
    let sheets: Vec<Sheet<'_>> = OF_RUN.iter().map(|make| make(&source)).collect();
    write_sheets(run.trace(), &sheets, &Ranks::default(), folder)?;
    Ok(slices)
}

/// Writes the rows that `trace` has of these ranks of a run; gives the number of their slices.
fn write_ranks(run: &Trace, trace: &Trace, ranks: &Ranks, folder: &Path) -> Result<u64, ExportError> {
    let source = Source::new(trace);
    let sheets: Vec<Sheet<'_>> = OF_RANKS.iter().map(|make| make(&source)).collect();
    write_sheets(run, &sheets, ranks, folder)?;
    let asked = trace.tracks.iter().filter(|track| ranks.has(trace.processes[track.process.index()].rank));
    Ok(asked.map(|track| track.slices.len() as u64).sum())
}

/// Writes the rows of these ranks of each table, each file on its own, on all processors.
fn write_sheets(run: &Trace, sheets: &[Sheet<'_>], ranks: &Ranks, folder: &Path) -> Result<(), ExportError> {
    let mut files = Vec::new();
    for sheet in sheets {
        let of_table = folder.join(sheet.name);
        if !stepscope_store::is_remote(folder) {
            std::fs::create_dir_all(&of_table)
                .map_err(|source| ExportError::Write { path: of_table.clone(), source })?;
        }
        let mut parts = sheet.parts(PART_ROWS);
        // So that a table without rows can be read as well.
        if parts.is_empty() {
            parts.extend(run.ranks().first().map(|rank| (Some(*rank), Vec::new())));
        }
        let mut before = None;
        let mut number = 0;
        for (rank, rows) in parts.into_iter().filter(|(rank, _)| rank.is_none_or(|rank| ranks.has(rank))) {
            number = if before == Some(rank) { number + 1 } else { 0 };
            before = Some(rank);
            files.push((sheet, of_table.join(file_name(rank, number)), rows));
        }
    }
    // The largest first, so that no processor is left with one at the end.
    files.sort_by_key(|(_, _, rows)| std::cmp::Reverse(rows.len()));
    let write = |(sheet, path, rows): &(&Sheet<'_>, PathBuf, Vec<u32>)| {
        Destination::write(path, |out| sheet.write(run, rows, out))
    };
    each(files.len(), usize::MAX, |at| write(&files[at])).into_iter().collect()
}

fn file_name(rank: Option<u32>, number: u32) -> PathBuf {
    match (rank, number) {
        (None, _) => "run.parquet".into(),
        (Some(rank), 0) => format!("rank-{rank}.parquet").into(),
        (Some(rank), number) => format!("rank-{rank}-{number}.parquet").into(),
    }
}

/// The rank that a file is of, by its name.
fn rank_of(file: &Path) -> Option<u32> {
    file.file_stem()?.to_str()?.strip_prefix("rank-")?.split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests;

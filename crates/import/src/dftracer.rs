//! DFTracer's traces: a row of JSON a line, one file a process or one for several, plain or gzipped.
//!
//! Five dialects are in use, and files that mix them. None says what it is, so each row is read by what it has:
//!
//! | dialect | rows | files and hosts | `tid` | forked workers |
//! |---|---|---|---|---|
//! | up to 1.0.4 | `[`, every number a string | `fname`, `hostname` in full | thread + process | filed under the parent |
//! | 1.0.5, wheel | `[`, numbers | `fname`, `hostname` in full | thread + process | filed under the parent |
//! | 1.0.5, source | `[` `]`, `ph:"M"` names hashes | 16-bit hashes, which collide | thread | filed under the parent |
//! | 1.0.8, 1.0.9 | the same; rows behind `]` | 64-bit hashes, integer or hexadecimal | thread | filed under the parent |
//! | 2.x | no list, `ph` and `type` are integers | hexadecimal hashes | thread | a file of their own |
//!
//! The text goes through these stages: [`sniff`] (is it DFTracer's), [`stretches`] (a stretch of text at a time, going
//! on after broken places), [`readers`] (several at once), [`row`] and [`quick`] (members), [`typed`] (numbers), [`rows`]
//! (what each row is), with [`calls`], [`hashes`],
//! [`processes`], [`repeats`], [`iterations`] and [`samples`] for what takes more than one row to know.

mod calls;
mod hashes;
mod iterations;
mod processes;
mod quick;
mod readers;
mod repeats;
mod row;
mod rows;
mod samples;
mod sniff;
mod stretches;
#[cfg(test)]
mod tests;
mod typed;

/// The tokenizer that all readers of JSON share.
use crate::json::{bytes, numbers, scanner, text};

use crate::ImportError;
use crate::input;
use crate::jobs::{self, FileOfJob};
use crate::progress::Progress;
use crate::window::{Begun, Blocks};
use rows::Rows;
pub(crate) use sniff::is_dftracer;
use std::path::{Path, PathBuf};
use stepscope_trace::{FindingCode, Trace, TraceBuilder};
use stretches::Stretches;

/// Reads a text.
pub(crate) fn read(path: &Path, name: String, blocks: &mut dyn Blocks) -> Trace {
    let mut rows = Rows::new(builder(path, name));
    add_input(&mut rows, path, blocks);
    rows.finish()
}

/// Opens a folder as one run when files of DFTracer lie in it; other files are passed over. `None` when there are none.
/// Unless `is_one_job`, of the files of several days those of the largest job are read, and the others a finding.
///
/// # Errors
/// When the folder cannot be listed, or a file of it not be opened.
pub(crate) fn open_folder(
    path: &Path,
    name: String,
    is_one_job: bool,
    progress: &Progress,
) -> Result<Option<Trace>, ImportError> {
    let failed = |source| ImportError::Read { path: path.into(), source };
    let mut files = stepscope_store::list(path).map_err(failed)?;
    files.retain(|file| stepscope_store::is_file(file));
    let (rows, files) = read_files(builder(path, name.clone()), &files, progress);
    if files.is_empty() {
        return Ok(None);
    }
    let jobs = jobs::jobs(&files);
    let (kept, others) = jobs.split_first().expect("there are files, and each is of a job");
    if is_one_job || others.is_empty() {
        return Ok(Some(rows.finish()));
    }
    // Only after reading is it known when each file was written.
    drop(rows);
    let kept: Vec<PathBuf> = kept.files.iter().map(|at| files[*at].path.clone()).collect();
    let (mut rows, _) = read_files(builder(path, name), &kept, progress);
    others.iter().for_each(|job| rows.builder.findings.add(FindingCode::OtherJob, || jobs::told(&files, job)));
    Ok(Some(rows.finish()))
}

/// The rows of those of `files` that are DFTracer's, and what tells the job of each.
fn read_files(builder: TraceBuilder, files: &[PathBuf], progress: &Progress) -> (Rows, Vec<FileOfJob>) {
    let (mut rows, mut read) = (Rows::new(builder), Vec::new());
    let mut ahead = None;
    for (at, path) in files.iter().enumerate() {
        // What cannot be decompressed may be anything; only DFTracer's files are of interest here.
        let Ok(opened) = ahead.take().unwrap_or_else(|| input::open(path, progress)) else { continue };
        let mut begun = Begun::of(opened.blocks);
        if sniff::is_dftracer(begun.head()) {
            // Decompressing the next one begins meanwhile.
            ahead = files.get(at + 1).map(|next| input::open(next, progress));
            add_input(&mut rows, path, &mut begun);
            read.push(FileOfJob { path: path.clone(), times: rows.times_of_file(), ..FileOfJob::default() });
        }
    }
    (rows, read)
}

/// Whether files of DFTracer lie in a folder. In a store, where each look takes long, those are looked at that are named
/// like one, else the first file.
pub(crate) fn is_folder(path: &Path) -> bool {
    let is_dftracer = |path: &PathBuf| {
        let opened = input::open(path, &Progress::default());
        opened.is_ok_and(|input| sniff::is_dftracer(Begun::of(input.blocks).head()))
    };
    let mut paths = stepscope_store::list(path).unwrap_or_default();
    paths.retain(|path| stepscope_store::is_file(path));
    if stepscope_store::is_remote(path) {
        let is_named = |path: &PathBuf| path.to_string_lossy().trim_end_matches(".gz").ends_with(".pfw");
        match paths.iter().any(is_named) {
            true => paths.retain(is_named),
            false => paths.truncate(1),
        }
    }
    paths.iter().any(is_dftracer)
}

fn builder(path: &Path, name: String) -> TraceBuilder {
    let mut builder = TraceBuilder::new(name);
    builder.sources = vec![path.display().to_string()];
    builder
}

/// Adds the rows of one input.
fn add_input(rows: &mut Rows, path: &Path, blocks: &mut dyn Blocks) {
    let label = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    rows.begin_file(label);
    let mut stretches = Stretches::new(rows);
    let source_error = stretches.read(blocks);
    let at_byte = stretches.end();
    if let Some(source_error) = source_error {
        let location = rows.location(at_byte);
        rows.builder.findings.add(FindingCode::TruncatedInput, || format!("{source_error} {location}"));
    }
}

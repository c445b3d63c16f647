//! Traces as PyTorch's profiler writes them, of any size: one step of training, [repeated](../data/README.md).
//!
//! Each step has ids and a number of its own, and times that pass now faster and now slower: see [`Warp`]. As in a file of
//! Kineto, section after section is written, each over all steps: the operators of a thread, memory, Python calls, and
//! runtime calls with the work that they launch. Rows that name processes and threads are written once.

#[cfg(test)]
mod tests;
mod warp;

use crate::row_copies::{RowCopies, Shift};
use flate2::read::GzDecoder;
use memchr::memmem;
use std::io::{self, Read, Write};
use std::ops::Range;
use warp::Warp;

/// How much to write. Steps are written whole: the result is as near as whole steps allow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Size {
    /// About this many bytes.
    Bytes(u64),
    /// About this many rows of `traceEvents`.
    Events(u64),
}

/// What was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Written {
    /// Bytes of text.
    pub(crate) bytes: u64,
    /// Rows of `traceEvents`.
    pub(crate) events: u64,
    /// Steps of training.
    pub(crate) steps: u64,
}

const STEP: &[u8] = include_bytes!("../data/training_step.json.gz");
/// From the end of a step's last row to the next step.
const BETWEEN_NS: i64 = 1_000;

/// Writes a trace of about the wanted size; every number in it follows from `seed`.
pub(crate) fn write(seed: u64, size: Size, out: &mut dyn Write) -> io::Result<Written> {
    let mut text = Vec::new();
    GzDecoder::new(STEP).read_to_end(&mut text)?;
    let job = Job::of(&text, seed)?;
    let steps = job.steps_for(size);
    let mut bytes = 0;
    let mut put = |text: &[u8]| {
        bytes += text.len() as u64;
        out.write_all(text)
    };
    put(job.rows.before())?;
    let mut copy = Vec::new();
    let mut end_ns = 0;
    for section in &job.sections {
        let mut start_ns = job.step_ns.start;
        for step in 0..steps {
            copy.clear();
            start_ns = job.copy(section, step, start_ns, &mut copy) + BETWEEN_NS;
            copy.extend_from_slice(job.rows.separator());
            put(&copy)?;
        }
        end_ns = start_ns;
    }
    copy.clear();
    let later_ns = end_ns - job.step_ns.end;
    let time = |ns| if ns <= job.step_ns.start { ns } else { ns + later_ns };
    job.rows.copy(job.around.clone(), &Shift { number: 0, time: &time }, &mut copy);
    put(&copy)?;
    put(job.rows.after())?;
    Ok(Written { bytes, events: job.events(steps), steps })
}

/// The step, and how it is repeated.
struct Job<'a> {
    rows: RowCopies<'a>,
    /// Each is written for all steps before the next.
    sections: Vec<Range<usize>>,
    /// What is written once, after them.
    around: Range<usize>,
    step_ns: Range<i64>,
    seed: u64,
}

impl<'a> Job<'a> {
    fn of(text: &'a [u8], seed: u64) -> io::Result<Self> {
        let rows = RowCopies::of(text)?;
        let kinds: Vec<&[u8]> = (0..rows.len()).map(|row| kind(rows.row(row))).collect();
        let mut sections = Vec::new();
        for kinds in kinds.chunk_by(|a, b| a == b) {
            let begin = sections.last().map_or(0, |last: &Range<usize>| last.end);
            sections.push(begin..begin + kinds.len());
        }
        let around = sections.pop().ok_or_else(|| io::Error::other("a step without rows"))?;
        let spans = || rows.spans(0..around.start);
        let first_ns = spans().map(|span| span.start).min().unwrap_or(0);
        let last_ns = spans().map(|span| span.end).max().unwrap_or(0);
        Ok(Self { rows, sections, around, step_ns: first_ns..last_ns, seed })
    }

    /// Adds one step's rows of a section; when the step ends that begins at `start_ns`.
    fn copy(&self, section: &Range<usize>, step: u64, start_ns: i64, out: &mut Vec<u8>) -> i64 {
        let Range { start: first_ns, end: last_ns } = self.step_ns;
        let warp = Warp::of(self.seed, step, last_ns - first_ns);
        let time = |ns| start_ns + warp.at(ns - first_ns);
        self.rows.copy(section.clone(), &Shift { number: step as i64, time: &time }, out);
        time(last_ns)
    }

    /// How many steps come nearest to the size.
    fn steps_for(&self, size: Size) -> u64 {
        let nearest = |wanted: u64, of_step: u64| ((wanted + of_step / 2) / of_step).max(1);
        match size {
            Size::Events(wanted) => nearest(wanted, self.events(1) - self.around.len() as u64),
            // Numbers have more digits later: the step in the middle counts.
            Size::Bytes(wanted) => (0..3).fold(1, |steps, _| nearest(wanted, self.bytes_of(steps / 2))),
        }
    }

    fn bytes_of(&self, step: u64) -> u64 {
        let mut copy = Vec::new();
        for section in &self.sections {
            self.copy(section, step, self.step_ns.start, &mut copy);
        }
        copy.len() as u64
    }

    fn events(&self, steps: u64) -> u64 {
        self.around.start as u64 * steps + self.around.len() as u64
    }
}

/// What rows of one section have in common, and empty for those that are written once.
fn kind(row: &[u8]) -> &[u8] {
    match value(row, b"\"cat\": \"", b'"') {
        b"cpu_op" | b"user_annotation" | b"fwdbwd" => value(row, b"\"tid\": ", b','),
        kind @ (b"cpu_instant_event" | b"python_function") => kind,
        b"" | b"Trace" => b"",
        _ => b"device",
    }
}

/// What follows `key`, up to `end`.
fn value<'a>(row: &'a [u8], key: &[u8], end: u8) -> &'a [u8] {
    let value = memmem::find(row, key).map_or(&[][..], |at| &row[at + key.len()..]);
    &value[..memchr::memchr(end, value).unwrap_or(value.len())]
}

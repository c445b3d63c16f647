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
pub(crate) const BETWEEN_NS: i64 = 1_000;

/// The text of the one step that there is.
pub(crate) fn step() -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    GzDecoder::new(STEP).read_to_end(&mut text)?;
    Ok(text)
}

/// Writes a trace of about the wanted size; every number in it follows from `seed`.
pub(crate) fn write(seed: u64, size: Size, out: &mut dyn Write) -> io::Result<Written> {
    let text = step()?;
    let steps = Steps::of(&text)?;
    let Range { start: first_ns, end: last_ns } = steps.step_ns;
    let warp = |step| Warp::of(seed, step, last_ns - first_ns);
    // Numbers have more digits later: the step in the middle counts.
    let bytes_of = |step| {
        let warp = warp(step);
        steps.bytes_of(step, &|ns| first_ns + warp.at(ns - first_ns))
    };
    let count = match size {
        Size::Events(wanted) => nearest(wanted, steps.events(1) - steps.around.len() as u64),
        Size::Bytes(wanted) => (0..3).fold(1, |count, _| nearest(wanted, bytes_of(count / 2))),
    };
    let starts_ns: Vec<i64> = (0..count)
        .scan(first_ns, |next_ns, step| {
            let start_ns = *next_ns;
            *next_ns += warp(step).at(last_ns - first_ns) + BETWEEN_NS;
            Some(start_ns)
        })
        .collect();
    let time_of = |step: u64| -> Box<dyn Fn(i64) -> i64> {
        let (warp, start_ns) = (warp(step), starts_ns[step as usize]);
        Box::new(move |ns| start_ns + warp.at(ns - first_ns))
    };
    steps.write(count, &time_of, out)
}

/// How many steps come nearest to what is wanted.
pub(crate) fn nearest(wanted: u64, of_step: u64) -> u64 {
    ((wanted + of_step / 2) / of_step).max(1)
}

/// From a time of the one step that there is to that of one of the steps that are written.
pub(crate) type TimeOf<'a> = dyn Fn(u64) -> Box<dyn Fn(i64) -> i64 + 'a> + 'a;

/// A step, and how it is repeated.
pub(crate) struct Steps<'a> {
    rows: RowCopies<'a>,
    /// Each is written for all steps before the next.
    sections: Vec<Range<usize>>,
    /// What is written once, after them.
    around: Range<usize>,
    /// From its first to its last moment.
    pub(crate) step_ns: Range<i64>,
}

impl<'a> Steps<'a> {
    /// The step that `text` is.
    ///
    /// # Errors
    /// When the text has no rows.
    pub(crate) fn of(text: &'a [u8]) -> io::Result<Self> {
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
        Ok(Self { rows, sections, around, step_ns: first_ns..last_ns })
    }

    /// Writes a trace of this number of steps, each at its times.
    pub(crate) fn write(&self, steps: u64, time_of: &TimeOf<'_>, out: &mut dyn Write) -> io::Result<Written> {
        let mut bytes = 0;
        let mut put = |text: &[u8]| {
            bytes += text.len() as u64;
            out.write_all(text)
        };
        put(self.rows.before())?;
        let mut copy = Vec::new();
        for section in &self.sections {
            for step in 0..steps {
                copy.clear();
                self.rows.copy(section.clone(), &Shift { number: step as i64, time: &time_of(step) }, &mut copy);
                copy.extend_from_slice(self.rows.separator());
                put(&copy)?;
            }
        }
        copy.clear();
        let Range { start: first_ns, end: last_ns } = self.step_ns;
        let earlier_ns = time_of(0)(first_ns) - first_ns;
        let later_ns = time_of(steps - 1)(last_ns) + BETWEEN_NS - last_ns;
        let time = |ns| ns + if ns <= first_ns { earlier_ns } else { later_ns };
        self.rows.copy(self.around.clone(), &Shift { number: 0, time: &time }, &mut copy);
        put(&copy)?;
        put(self.rows.after())?;
        Ok(Written { bytes, events: self.events(steps), steps })
    }

    /// Bytes of one step.
    pub(crate) fn bytes_of(&self, step: u64, time: &dyn Fn(i64) -> i64) -> u64 {
        let mut copy = Vec::new();
        for section in &self.sections {
            self.rows.copy(section.clone(), &Shift { number: step as i64, time }, &mut copy);
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

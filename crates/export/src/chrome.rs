//! Chrome JSON as today's Kineto writes it, so that whatever reads a trace of `torch.profiler` reads it.
//!
//! Times are microseconds with three decimals, exact to the nanosecond. What the form has no place for stands in the
//! argument `Stepscope`, as words that our own reader understands and others pass over: kinds that only a name would
//! tell (`dataloader`, `optimizer`, `host_sync`, `io`), `communication`, `unfinished`.

mod arrows;
mod closing;
mod device_args;
mod head;
mod host_args;
mod ids;
mod json;
mod labels;
mod profile;
mod recording;
mod recording_arrows;
mod samples;
mod slice_prefixes;
mod slices;
mod stack_samples;
mod step_marks;

use crate::numbering::Numbering;
use json::Json;
use profile::Profile;
pub use profile::ProfileOptions;
pub(crate) use recording::write_chrome_of_recording;
use std::io::{self, Write};
use stepscope_base::Span;
use stepscope_trace::{DeviceId, SliceId, Trace, TrackId, TrackKind};

/// Text is handed on when this much is there.
const CHUNK_BYTES: usize = 1 << 18;
/// Text is written when this much is there, while what follows may change it.
const MOST_OPEN_BYTES: usize = 4 * CHUNK_BYTES;

/// Writes `trace` as Chrome JSON. Memory beyond the trace does not grow with the text.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_chrome(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    write_document(&mut Document::new(trace, None, None, out))
}

/// Writes what a profile recorded within `window`, with what Kineto writes of such: where the window begins and ends,
/// and numbers of rows. Gives the first number that no operator has.
///
/// # Errors
/// When `out` cannot be written to.
pub(crate) fn write_chrome_window(
    trace: &Trace,
    window: Option<Span>,
    options: ProfileOptions,
    out: &mut dyn Write,
) -> io::Result<i64> {
    let mut document = Document::new(trace, None, window, out);
    let ids = &mut document.profile.insert(Profile::new(options)).ids;
    ids.give_to(trace);
    let next_id = ids.next();
    write_document(&mut document)?;
    Ok(next_id)
}

/// Writes what is of one rank, as a job's own profiler writes a file a rank. All ranks count time from the same moment.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_chrome_of_rank(trace: &Trace, rank: u32, out: &mut dyn Write) -> io::Result<()> {
    write_document(&mut Document::new(trace, Some(rank), None, out))
}

fn write_document(document: &mut Document<'_>) -> io::Result<()> {
    head::write(document);
    labels::write(document)?;
    slices::write(document)?;
    samples::write(document)?;
    stack_samples::write(document)?;
    step_marks::write(document)?;
    arrows::write(document)?;
    document.finish()
}

/// A document under way.
struct Document<'a> {
    trace: &'a Trace,
    /// The only rank that is written; all without one.
    rank: Option<u32>,
    /// When it was recorded, where that is to be said.
    window: Option<Span>,
    numbers: Numbering,
    /// What is written only of a profile.
    profile: Option<Profile>,
    json: Json,
    out: &'a mut dyn Write,
}

impl<'a> Document<'a> {
    fn new(trace: &'a Trace, rank: Option<u32>, window: Option<Span>, out: &'a mut dyn Write) -> Self {
        let is_asked = |of: u32| rank.is_none_or(|rank| rank == of);
        let numbers = Numbering::of_ranks(trace, i64::MIN..=i64::MAX, is_asked);
        Document { trace, rank, window, numbers, profile: None, json: Json::default(), out }
    }

    /// Writes what stands behind all events.
    fn finish(&mut self) -> io::Result<()> {
        if let Some(window) = self.window {
            closing::write(self, window)?;
        }
        self.json.raw("\n]");
        stack_samples::write_frames(self)?;
        self.json.raw("}\n");
        self.flush()
    }

    /// Whether what is of a rank is written.
    fn has_rank(&self, rank: u32) -> bool {
        self.rank.is_none_or(|asked| asked == rank)
    }

    /// Whether what lies on a track is written.
    fn has_track(&self, track: TrackId) -> bool {
        self.has_rank(self.trace.rank_of_track(track))
    }

    /// Ends an event; what has gathered is handed on when it is enough.
    fn end_event(&mut self) -> io::Result<()> {
        self.json.close();
        let is_open = self.profile.as_ref().is_some_and(Profile::is_open);
        let enough = if is_open { MOST_OPEN_BYTES } else { CHUNK_BYTES };
        if self.json.len() >= enough { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(self.json.bytes())?;
        self.json.clear();
        self.profile.iter_mut().for_each(Profile::forget_text);
        Ok(())
    }

    /// Begins an event that lies at `row`, a (pid, tid).
    fn begin_event(&mut self, phase: &str, category: &str, name: &str, (pid, tid): (i64, i64)) {
        self.json.raw(",\n");
        self.json.open(None);
        self.json.text("ph", phase);
        if !category.is_empty() {
            self.json.text("cat", category);
        }
        self.json.text("name", name);
        self.json.int("pid", pid);
        self.json.int("tid", tid);
    }

    /// The (pid, tid) of a track: a process and a thread, or a device and a stream.
    fn row(&self, track: TrackId) -> (i64, i64) {
        let of = &self.trace.tracks[track.index()];
        match of.kind {
            TrackKind::Thread | TrackKind::Other => {
                (self.numbers.pid[of.process.index()], self.numbers.tid[track.index()])
            }
            TrackKind::Stream | TrackKind::StreamSync | TrackKind::Projection => {
                (of.device.map_or(0, |device| self.device(device)), of.stream.unwrap_or(-1))
            }
        }
    }

    /// The (pid, tid) of a slice.
    fn row_of(&self, slice: SliceId) -> (i64, i64) {
        self.row(self.trace.slices.track[slice.index()])
    }

    fn device(&self, device: DeviceId) -> i64 {
        self.numbers.device[device.index()]
    }

    /// What joins an op with what happened inside it, and a call of Python with those it made.
    fn id_of(&self, slice: SliceId) -> i64 {
        self.profile.as_ref().map_or_else(|| joining_id(slice), |profile| profile.ids.of_slice(slice))
    }
}

/// What joins an API call with the device work it enqueued, and where nothing else numbers them any other slices.
fn joining_id(slice: SliceId) -> i64 {
    i64::from(slice.0) + 1
}

#[cfg(test)]
mod tests;

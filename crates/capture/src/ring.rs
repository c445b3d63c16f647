//! A ring: a capture that keeps the last moments only. Segments that are old enough are evicted and used again.
//!
//! ```text
//! segments   │ 0: names, metadata … │ 1: evicted │ 2: 40 s ago │ 3: 10 s ago │ 4: now │
//!              never evicted      to be used     ├──────── the window ─────────────┤
//!                                  again
//! ```
//!
//! Before a segment is evicted, the definitions in it are carried over into a segment that belongs to no thread
//! ([`NO_THREAD`](crate::layout::NO_THREAD)), and the header says up to which moment records may be missing. So the
//! file is whole at every moment, whenever its process is killed.

use crate::decode::{body_len, short_len};
use crate::huge::prefer_large_pages;
use crate::layout::{HEADER_BYTES, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC, Tag};
use crate::{Capture, State};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

/// What a ring kept of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingWindow {
    /// How much of the past was asked for, ns.
    pub asked_ns: i64,
    /// From here on everything is there, monotonic ns; `None` when nothing was evicted.
    pub since_ns: Option<i64>,
    /// Ranges that ended within the window and are left out, since their begin was evicted.
    pub lost_begins: u64,
}

/// What a ring and a copy of one say about themselves; moments in monotonic ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingState {
    pub(crate) asked_ns: i64,
    /// Everything up to here may be missing; `None` when nothing was evicted.
    pub(crate) since_ns: Option<i64>,
    /// When the copy was requested, which may be long before it was made; `None` for a ring.
    pub(crate) requested_ns: Option<i64>,
}

impl Capture {
    /// Leaves what lies within the window of a ring.
    pub(crate) fn keep_window(&mut self, ring: RingState, lost_begins: impl Iterator<Item = i64>) {
        let RingState { asked_ns, since_ns, requested_ns } = ring;
        // A thread that records little keeps a segment for long: what it has from long ago would stand alone.
        let oldest_ns = requested_ns.unwrap_or(self.last_ns).saturating_sub(asked_ns.saturating_mul(2));
        let start_ns = since_ns.unwrap_or(i64::MIN).max(oldest_ns);
        let before = (self.events.len(), self.steps.len(), self.optimizer_steps.len());
        self.events.retain_mut(|event| event.end_ns >= start_ns);
        self.steps.retain(|step| step.end_ns >= start_ns);
        self.optimizer_steps.retain(|mark| mark.time_ns >= start_ns);
        self.memory.retain(|event| event.time_ns >= start_ns);
        self.io.retain(|call| call.end_ns >= start_ns);
        self.stack_samples.retain(|sample| sample.time_ns >= start_ns);
        self.device.retain(|activity| activity.record.span().is_none_or(|(_, end_ns)| end_ns >= start_ns));
        let is_cut = before != (self.events.len(), self.steps.len(), self.optimizer_steps.len());
        self.ring = Some(RingWindow {
            asked_ns,
            since_ns: (since_ns.is_some() || is_cut).then_some(start_ns),
            lost_begins: lost_begins.filter(|time_ns| *time_ns >= start_ns).count() as u64,
        });
    }

    /// True when the process worked on after the last record: it was killed, runs, or this is a copy of its ring.
    pub fn is_cut(&self) -> bool {
        self.state != State::Closed || self.metadata.iter().any(|(key, _)| key == SNAPSHOT_REASON)
    }
}

/// The metadata key that a copy of a ring has: why it was kept.
pub(crate) const SNAPSHOT_REASON: &str = "kept_because";

/// The bytes of a capture. A ring may be written meanwhile: what was evicted while it was read is left out.
pub(crate) fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(file.metadata()?.len()).unwrap_or(0).saturating_add(1))?;
    prefer_large_pages(&mut bytes);
    file.read_to_end(&mut bytes)?;
    if is_ring(&bytes) {
        leave_out_given_up(&file, &mut bytes)?;
    }
    Ok(bytes)
}

/// Whether a capture that begins with these bytes is a ring.
pub(crate) fn is_ring(header: &[u8]) -> bool {
    header.len() >= HEADER_BYTES && header[128..136] != [0; 8]
}

/// Reads the header and those of all segments again: a segment that has another one now is half old, half new.
#[cfg(unix)]
fn leave_out_given_up(file: &File, bytes: &mut [u8]) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;

    let segment_bytes = u32::from_le_bytes(bytes[16..20].try_into().unwrap_or_default()) as usize;
    let (header, segments) = bytes.split_at_mut(HEADER_BYTES);
    for (index, segment) in segments.chunks_mut(segment_bytes.max(SEGMENT_HEADER_BYTES)).enumerate() {
        let mut now = [0; SEGMENT_HEADER_BYTES];
        let at = (HEADER_BYTES + index * segment_bytes) as u64;
        if segment.len() < now.len() || file.read_exact_at(&mut now, at).is_err() {
            continue;
        }
        if now != segment[..SEGMENT_HEADER_BYTES] {
            segment[..8].fill(0);
        }
    }
    // Last: what was evicted until now is what the segments above lack.
    file.read_exact_at(header, 0)
}

#[cfg(not(unix))]
fn leave_out_given_up(_: &File, _: &mut [u8]) -> std::io::Result<()> {
    Ok(())
}

/// The records of a segment that later records need, each with its first word.
pub fn definitions(segment: &[u8]) -> Vec<&[u8]> {
    let is_definition = |(tag, _): &(Tag, Range<usize>)| tag.is_definition();
    records_of(segment).filter(is_definition).filter_map(|(_, place)| segment.get(place)).collect()
}

/// Where the last record of a segment ends.
#[cfg(target_os = "linux")]
fn end_of_records(segment: &[u8]) -> usize {
    records_of(segment).last().map_or(SEGMENT_HEADER_BYTES, |(_, place)| place.end).min(segment.len())
}

/// The records of a segment and their places, up to what is none.
pub(crate) fn records_of(segment: &[u8]) -> impl Iterator<Item = (Tag, Range<usize>)> {
    let is_segment = segment.get(4..8).is_some_and(|magic| magic == SEGMENT_MAGIC.to_le_bytes());
    let mut at = if is_segment { SEGMENT_HEADER_BYTES } else { segment.len() };
    std::iter::from_fn(move || {
        let tag = Tag::from_byte(*segment.get(at)?)?;
        let long_len = || Some(8 + body_len(tag, segment.get(at + 8..)?)?);
        let place = at..at + short_len(tag).or_else(long_len)?;
        at = place.end;
        Some((tag, place))
    })
}

#[cfg(target_os = "linux")]
pub use writing::Snapshot;

/// The writing half.
#[cfg(target_os = "linux")]
mod writing;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::layout::first_word;

    #[test]
    fn records_end_where_the_last_one_does_that_is_published() {
        let words = [u64::from(SEGMENT_MAGIC) << 32, 0, first_word(9, Tag::Thread), 0, 0, 0];
        let mut segment: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        assert_eq!(end_of_records(&segment), segment.len());
        // An open begin, whose second half ends with zeros.
        segment.extend([Tag::TimedBegin as u8, 5, 0, 0, 3, 0, 0, 0]);
        let end = segment.len();
        // The body of a record whose first word is not there yet, and what nobody has written.
        segment.resize(end + 8, 0);
        segment.extend([7; 16]);
        segment.resize(4096, 0);
        assert_eq!(end_of_records(&segment), end);
        assert_eq!(end_of_records(&[0; 4096]), SEGMENT_HEADER_BYTES);
    }
}

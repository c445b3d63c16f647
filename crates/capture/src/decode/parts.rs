//! From segments to parts: the records of one thread within one segment.

use super::process::is_of_process;
use super::record::{Record, half_at, read_record, word_at};
use super::replay::begins_event;
use crate::layout::{SEGMENT_HEADER_BYTES, SEGMENT_MAGIC, Tag};
use crate::short::Reference;

/// One thread's records within one segment.
pub(super) struct Part<'a> {
    /// The thread's number in the file.
    pub(super) ordinal: u32,
    /// The part's number within the thread.
    part: u32,
    /// Its records, from the `Thread` record on.
    pub(super) records: Records<'a>,
    /// How many of them begin an event.
    pub(super) events: usize,
    /// Those that are not the thread's own but say something about the process.
    pub(super) of_process: Vec<Record<'a>>,
}

/// Records, decoded where they lie. What a begin says of its end comes as a record of its own.
#[derive(Clone)]
pub(super) struct Records<'a> {
    segment: &'a [u8],
    at: usize,
    end: usize,
    reference: Option<Reference>,
    /// The end that the last begin said. What the op was called with comes first.
    end_of_last: Option<Record<'static>>,
}

impl<'a> Records<'a> {
    /// Those of a segment from the `Thread` record at `at` on.
    pub(super) fn between(segment: &'a [u8], at: usize, end: usize) -> Self {
        Self { segment, at, end, reference: None, end_of_last: None }
    }

    /// Whether what comes next is what the last op was called with.
    #[inline]
    fn is_at_inputs(&self) -> bool {
        self.at < self.end
            && half_at(self.segment, self.at).is_some_and(|half| half as u8 == Tag::InputsReference as u8)
    }

    /// Whether what comes next is a record, whole or damaged.
    fn has_more(&self) -> bool {
        self.end_of_last.is_some() || half_at(self.segment, self.at).is_some_and(|half| half != 0)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Record<'a>> {
        if self.end_of_last.is_some() && !self.is_at_inputs() {
            return self.end_of_last.take();
        }
        if self.at >= self.end {
            return None;
        }
        let (record, len) = read_record(self.segment, self.at, self.reference.as_ref())?;
        if record.tag == Tag::Thread {
            self.reference = Some(Reference::at_thread(record.ticks));
        }
        if let Some(reference) = &mut self.reference {
            reference.ticks = record.ticks;
            record.begin.iter().for_each(|begin| reference.note(begin));
        }
        if record.ended.is_some() {
            self.end_of_last = record.end();
        }
        self.at += len;
        Some(record)
    }
}

/// The parts of all segments, by thread and in the order of each thread; and what cannot be read, in words. What was
/// recorded after `until_ticks` is left out.
pub(super) fn parts_of(bytes: &[u8], segment_bytes: usize, until_ticks: Option<u64>) -> (Vec<Part<'_>>, Vec<String>) {
    let (mut parts, mut damaged) = (Vec::new(), Vec::new());
    for (index, segment) in bytes.chunks(segment_bytes).enumerate() {
        damaged.extend(read_segment(segment, index, until_ticks, &mut parts).err());
    }
    parts.sort_by_key(|part| (part.ordinal, part.part));
    (parts, damaged)
}

/// Splits a segment into the parts of the threads that used it.
fn read_segment<'a>(
    segment: &'a [u8],
    index: usize,
    until_ticks: Option<u64>,
    parts: &mut Vec<Part<'a>>,
) -> Result<(), String> {
    match word_at(segment, 0) {
        Some(0) | None => return Ok(()),
        Some(first) if first == u64::from(SEGMENT_MAGIC) << 32 | index as u64 => {}
        Some(_) => return Err(format!("segment {index} has a damaged header")),
    }
    let mut records = Records::between(segment, SEGMENT_HEADER_BYTES, segment.len());
    let parts_before = parts.len();
    while records.has_more() {
        let at = records.at;
        let Some(record) = records.next() else {
            return Err(format!("segment {index} cannot be decoded from byte {at}"));
        };
        if until_ticks.is_some_and(|until| record.ticks > until) && !record.tag.is_definition() {
            return Ok(());
        }
        if record.tag == Tag::Thread {
            let (ordinal, part) = record.halves(0);
            let records = Records::between(segment, at, at);
            parts.push(Part { ordinal, part, records, events: 0, of_process: Vec::new() });
        }
        let Some(part) = parts[parts_before..].last_mut() else {
            return Err(format!("segment {index} does not begin with a thread"));
        };
        part.records.end = records.at;
        part.events += usize::from(begins_event(record.tag));
        if is_of_process(record.tag) {
            part.of_process.push(record);
        }
    }
    Ok(())
}

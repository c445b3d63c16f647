//! The first pass over a capture: records are stepped over by their lengths, and only what holds for the process, and where
//! each thread's records are, is taken in.

use super::{PartOnDisk, StreamedThread};
use crate::clock::TickClock;
use crate::decode::process::{ProcessRecords, is_of_process};
use crate::decode::record::{Record, half_at, read_long, short_len, word_at};
use crate::device::CompactReports;
use crate::layout::{NO_THREAD, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC, Tag};
use crate::{ProfilerState, Sample, Thread};
use std::collections::BTreeMap;

/// What is known of a thread.
#[derive(Clone, Default)]
pub(super) struct Known {
    /// The part that says the next two, and the system's number of the thread and its handle.
    part: u32,
    tid: u64,
    handle: u32,
    framework_thread: u64,
    /// The part that says its name, and the name.
    name: (u32, String),
}

/// What the first pass finds.
#[derive(Default)]
pub(super) struct Scan {
    pub(super) process: ProcessRecords,
    pub(super) parts: Vec<PartOnDisk>,
    /// By the thread's number in the file.
    pub(super) threads: BTreeMap<u32, Known>,
    pub(super) reports: CompactReports,
    pub(super) ends_elsewhere: Vec<u64>,
    /// The thread's number in the file, ticks, and number of each.
    pub(super) profiler_states: Vec<(u32, u64, u64)>,
    /// The part, name, ticks and value of each.
    pub(super) samples: Vec<(PartOnDisk, u32, u64, i64)>,
}

impl Scan {
    /// Takes in a segment; `None` when it is damaged.
    pub(super) fn take(&mut self, segment: &[u8], index: usize) -> Option<()> {
        match word_at(segment, 0) {
            Some(0) | None => return Some(()),
            Some(first) => (first == u64::from(SEGMENT_MAGIC) << 32 | index as u64).then_some(())?,
        }
        let (mut at, mut has_part) = (SEGMENT_HEADER_BYTES, false);
        while let Some(half) = half_at(segment, at).filter(|half| *half != 0) {
            let mut is_heard = true;
            let len = match SHORT_LENS[usize::from(half as u8)] {
                0 => {
                    let (record, len) = read_long(segment, at, Tag::from_byte(half as u8)?)?;
                    has_part |= record.tag == Tag::Thread;
                    is_heard = self.learn(&record, index, at)?;
                    len
                }
                len => usize::from(len),
            };
            at += len;
            // A short record counts from the thread's.
            let part = self.parts.last_mut().filter(|_| has_part && at <= segment.len())?;
            part.end = at;
            part.is_heard |= is_heard;
            part.reports.1 = self.reports.rows.len();
        }
        Some(())
    }

    /// Takes in what a long record says of the process; whether a listener hears of it. `None` when only the whole capture
    /// tells.
    fn learn(&mut self, record: &Record, segment: usize, at: usize) -> Option<bool> {
        match record.tag {
            Tag::Thread => {
                let (ordinal, part) = record.halves(0);
                let (first_ticks, reports) = (record.ticks, (self.reports.rows.len(), self.reports.rows.len()));
                let is_heard = false;
                self.parts.push(PartOnDisk { ordinal, part, segment, at, end: at, first_ticks, is_heard, reports });
                let thread = self.threads.entry(ordinal).or_default();
                if part >= thread.part {
                    let (tid, handle) = record.halves(1);
                    (thread.part, thread.tid, thread.handle) = (part, u64::from(tid), handle);
                }
                thread.framework_thread = thread.framework_thread.max(record.word(2));
            }
            Tag::ThreadName => {
                let PartOnDisk { ordinal, part, .. } = self.parts.last()?;
                let known = &mut self.threads.entry(*ordinal).or_default().name;
                if *part >= known.0 {
                    *known = (*part, record.text(8, record.halves(0).0 as usize));
                }
            }
            Tag::Device => self.reports.learn(|at| record.word(at))?,
            Tag::EndElsewhere => {
                self.ends_elsewhere.push(record.ticks);
                return Some(true);
            }
            Tag::ProfilerState => {
                self.profiler_states.push((self.parts.last()?.ordinal, record.ticks, record.word(0)));
            }
            Tag::Counter => {
                let part = self.parts.last()?;
                self.samples.push((*part, record.halves(0).0, record.ticks, record.word(1) as i64));
            }
            tag if is_of_process(tag) => {
                self.process.learn(record);
                return Some(tag == Tag::InputsInPlace);
            }
            _ => return Some(true),
        }
        Some(false)
    }
}

/// By tag; 0 for long records and for what is no tag.
const SHORT_LENS: [u8; 256] = {
    let mut lens = [0; 256];
    let short = [
        Tag::ShortBegin,
        Tag::ShortBeginBackward,
        Tag::TimedBegin,
        Tag::TimedBeginSame,
        Tag::TimedBeginNext,
        Tag::ShortEnd,
        Tag::ShortCallEnd,
        Tag::Pad,
        Tag::InputsReference,
    ];
    let mut at = 0;
    while at < short.len() {
        lens[short[at] as usize] = match short_len(short[at]) {
            Some(len) => len as u8,
            None => panic!("it is short"),
        };
        at += 1;
    }
    lens
};

/// Threads by ordinal, each with its parts in order, and so are then the reports. Definitions that a ring carried over
/// belong to none.
pub(super) fn threads_of(
    mut parts: Vec<PartOnDisk>,
    known: &BTreeMap<u32, Known>,
    reports: &mut CompactReports,
) -> Vec<StreamedThread> {
    parts.sort_by_key(|part| (part.ordinal, part.part));
    let has_reports = |part: &&PartOnDisk| part.reports.0 < part.reports.1;
    let of_parts: Vec<_> = parts.iter().filter(has_reports).collect();
    // Segments of two threads that write at the same time lie among each other.
    if !of_parts.is_sorted_by_key(|part| part.reports.0) || of_parts.iter().any(|part| part.ordinal == NO_THREAD) {
        let of_parts = of_parts.into_iter().filter(|part| part.ordinal != NO_THREAD);
        reports.rows = of_parts.flat_map(|part| &reports.rows[part.reports.0..part.reports.1]).copied().collect();
    }
    let of_threads = parts.chunk_by(|a, b| a.ordinal == b.ordinal).filter(|parts| parts[0].ordinal != NO_THREAD);
    let thread = |(ordinal, parts): (u32, &[PartOnDisk])| {
        let Known { tid, handle, framework_thread, name: (_, name), .. } =
            known.get(&parts[0].ordinal).cloned().unwrap_or_default();
        let thread = Thread { ordinal, tid, framework_thread, name, handle };
        StreamedThread { thread, parts: parts.to_vec() }
    };
    (0..).zip(of_threads).map(thread).collect()
}

/// What was sampled, in the order that a capture promises.
pub(super) fn samples_of(found: &[(PartOnDisk, u32, u64, i64)], clock: &TickClock) -> Vec<Sample> {
    let mut found: Vec<_> = found.iter().collect();
    found.sort_by_key(|(part, ..)| (part.ordinal, part.part));
    let mut samples = Vec::with_capacity(found.len());
    for (thread, of_thread) in (0..).zip(found.chunk_by(|a, b| a.0.ordinal == b.0.ordinal)) {
        let sample = |(_, name, ticks, value): &&(_, u32, u64, i64)| Sample {
            thread,
            name: *name,
            time_ns: clock.monotonic_ns(*ticks),
            value: *value,
        };
        samples.extend(of_thread.iter().map(sample));
    }
    samples.sort_by_key(|sample| (sample.time_ns, sample.name));
    samples
}

/// Profiler states in the order that a capture promises, by the threads' numbers in the file.
pub(super) fn profiler_states_of(found: &[(u32, u64, u64)], ordinals: &[u32], clock: &TickClock) -> Vec<ProfilerState> {
    let state = |(ordinal, ticks, number): &(u32, u64, u64)| {
        let thread = ordinals.binary_search(ordinal).ok()? as u32;
        Some(ProfilerState { thread, since_ns: clock.monotonic_ns(*ticks), number: *number })
    };
    let mut states: Vec<ProfilerState> = found.iter().filter_map(state).collect();
    states.sort_by_key(|state| (state.thread, state.since_ns));
    states
}

//! The first pass over a capture: records are stepped over by their lengths, and only what holds for the process, and
//! where each thread's records are, is taken in.

use super::{PartOnDisk, StreamedThread};
use crate::clock::TickClock;
use crate::decode::process::{ProcessRecords, is_of_process};
use crate::decode::record::{Record, half_at, read_long, short_len, word_at};
use crate::device::CompactActivities;
use crate::layout::{HEADER_BYTES, NO_THREAD, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC, Tag};
use crate::{ProfilerState, Sample, Thread};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Seek, SeekFrom};

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

/// The first pass over a capture; `None` for what is damaged.
pub(super) fn scan(file: &mut (impl Read + Seek), segment_bytes: usize) -> std::io::Result<Option<Scan>> {
    let Some(scan) = scan_until(file, segment_bytes, None)? else { return Ok(None) };
    // It may be written while it is read: of one thread a later segment may be there and an earlier one not whole. The
    // second time all is there that the first time was, and what came later is left out.
    let left: Vec<&PartOnDisk> = scan.left_parts().collect();
    for part in left {
        if has_grown(file, segment_bytes, part)? {
            return scan_until(file, segment_bytes, Some(scan.reached()));
        }
    }
    Ok(Some(scan))
}

fn scan_until(
    file: &mut (impl Read + Seek),
    segment_bytes: usize,
    until: Option<BTreeMap<u32, (u32, usize)>>,
) -> std::io::Result<Option<Scan>> {
    file.seek(SeekFrom::Start(HEADER_BYTES as u64))?;
    let mut scan = Scan { until, ..Scan::default() };
    let mut segment = Vec::with_capacity(segment_bytes);
    for index in 0.. {
        segment.clear();
        file.by_ref().take(segment_bytes as u64).read_to_end(&mut segment)?;
        if segment.is_empty() {
            break;
        }
        if scan.take(&segment, index).is_none() {
            return Ok(None);
        }
    }
    // Parts that began later.
    scan.parts.retain(|part| part.at < part.end);
    Ok(Some(scan))
}

/// Whether something follows a part where nothing did.
fn has_grown(file: &mut (impl Read + Seek), segment_bytes: usize, part: &PartOnDisk) -> std::io::Result<bool> {
    let mut next = [0; 4];
    if part.end + next.len() > segment_bytes {
        return Ok(false);
    }
    file.seek(SeekFrom::Start((HEADER_BYTES + part.segment * segment_bytes + part.end) as u64))?;
    match file.read_exact(&mut next) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| next != [0; 4]),
    }
}

/// What the first pass finds.
#[derive(Default)]
pub(super) struct Scan {
    pub(super) process: ProcessRecords,
    pub(super) parts: Vec<PartOnDisk>,
    /// By the thread's number in the file.
    pub(super) threads: BTreeMap<u32, Known>,
    pub(super) activities: CompactActivities,
    pub(super) ends_elsewhere: Vec<u64>,
    /// The thread's number in the file, ticks, and number of each.
    pub(super) profiler_states: Vec<(u32, u64, u64)>,
    /// The part, name, ticks and value of each.
    pub(super) samples: Vec<(PartOnDisk, u32, u64, i64)>,
    /// By the thread's number in the file: its last part, and where in its segment that ends. What comes later is left
    /// out but for definitions, and so are threads that are not named; `None` takes all.
    until: Option<BTreeMap<u32, (u32, usize)>>,
}

impl Scan {
    /// Takes in a segment; `None` when it is damaged.
    fn take(&mut self, segment: &[u8], index: usize) -> Option<()> {
        match word_at(segment, 0) {
            Some(0) | None => return Some(()),
            Some(first) => (first == u64::from(SEGMENT_MAGIC) << 32 | index as u64).then_some(())?,
        }
        let (mut at, mut has_part, mut until) = (SEGMENT_HEADER_BYTES, false, usize::MAX);
        while let Some(half) = half_at(segment, at).filter(|half| *half != 0) {
            let mut is_visited = true;
            let len = match SHORT_LENS[usize::from(half as u8)] {
                0 => {
                    let (record, len) = read_long(segment, at, Tag::from_byte(half as u8)?)?;
                    if record.tag == Tag::Thread {
                        (has_part, until) = (true, self.end_of_part(&record));
                    }
                    if at + len <= until || record.tag == Tag::Thread || record.tag.is_definition() {
                        is_visited = self.learn(&record, index, at)?;
                    }
                    len
                }
                len => usize::from(len),
            };
            at += len;
            // A short record counts from the thread's.
            let part = self.parts.last_mut().filter(|_| has_part && at <= segment.len())?;
            if at <= until {
                part.end = at;
                part.is_visited |= is_visited;
                part.activities.1 = self.activities.rows.len();
            }
        }
        Some(())
    }

    /// Where the part that begins with this record ends, when only some of the capture is read.
    fn end_of_part(&self, record: &Record) -> usize {
        let (ordinal, part) = record.halves(0);
        let Some(until) = &self.until else { return usize::MAX };
        match until.get(&ordinal) {
            Some((last, _)) if part < *last => usize::MAX,
            Some((last, end)) if part == *last => *end,
            _ => 0,
        }
    }

    /// How far each thread has come: what `until` takes.
    fn reached(&self) -> BTreeMap<u32, (u32, usize)> {
        let mut reached = BTreeMap::new();
        for part in &self.parts {
            let last = reached.entry(part.ordinal).or_insert((part.part, part.end));
            *last = (*last).max((part.part, part.end));
        }
        reached
    }

    /// Parts that a thread had left for a later one when that was read, and at whose end nothing was when they were
    /// read themselves. Something may have come in between.
    fn left_parts(&self) -> impl Iterator<Item = &PartOnDisk> {
        let reached = self.reached();
        let is_last_of_segment =
            |at: usize| self.parts.get(at + 1).is_none_or(|next| next.segment != self.parts[at].segment);
        let of_segments = (0..self.parts.len()).filter(move |at| is_last_of_segment(*at)).map(|at| &self.parts[at]);
        of_segments.filter(move |part| reached[&part.ordinal].0 > part.part)
    }

    /// Takes in what a long record says of the process; whether a visitor visits it. `None` when the whole
    /// capture has to be decoded instead.
    fn learn(&mut self, record: &Record, segment: usize, at: usize) -> Option<bool> {
        match record.tag {
            Tag::Thread => {
                let (ordinal, part) = record.halves(0);
                let (first_ticks, activities) =
                    (record.ticks, (self.activities.rows.len(), self.activities.rows.len()));
                let is_visited = false;
                self.parts.push(PartOnDisk {
                    ordinal,
                    part,
                    segment,
                    at,
                    end: at,
                    first_ticks,
                    is_visited,
                    activities,
                });
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
            Tag::Device => self.activities.learn(|at| record.word(at))?,
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

/// Threads by ordinal, each with its parts in order, and so are then the activity records. Definitions that a ring
/// carried over belong to none.
pub(super) fn threads_of(
    mut parts: Vec<PartOnDisk>,
    known: &BTreeMap<u32, Known>,
    activities: &mut CompactActivities,
) -> Vec<StreamedThread> {
    parts.sort_by_key(|part| (part.ordinal, part.part));
    let has_device_activities = |part: &&PartOnDisk| part.activities.0 < part.activities.1;
    let of_parts: Vec<_> = parts.iter().filter(has_device_activities).collect();
    // Segments of two threads that write at the same time lie among each other.
    if !of_parts.is_sorted_by_key(|part| part.activities.0) || of_parts.iter().any(|part| part.ordinal == NO_THREAD) {
        let of_parts = of_parts.into_iter().filter(|part| part.ordinal != NO_THREAD);
        activities.rows =
            of_parts.flat_map(|part| &activities.rows[part.activities.0..part.activities.1]).copied().collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::tests::made::{SEGMENT, capture_bytes, made_thread};
    use crate::ring::records_of;
    use proptest::prelude::*;
    use std::io::Cursor;

    /// A file to which more is written after its first segment was read.
    struct Growing {
        early: Vec<u8>,
        file: Cursor<Vec<u8>>,
        is_early: bool,
    }

    impl Read for Growing {
        fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
            let at = self.file.position() as usize;
            let read = self.file.read(bytes)?;
            if self.is_early && at < HEADER_BYTES + SEGMENT {
                bytes[..read].copy_from_slice(&self.early[at..at + read]);
            } else {
                self.is_early = false;
            }
            Ok(read)
        }
    }

    impl Seek for Growing {
        fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
            self.file.seek(to)
        }
    }

    proptest! {
        #[test]
        fn what_is_written_between_two_reads_leaves_no_gap(
            threads in prop::collection::vec(made_thread(), 1..5),
            kept in 0.0..1.0,
        ) {
            let whole = [vec![0; HEADER_BYTES], capture_bytes(&threads)].concat();
            let Some(last) = scan(&mut Cursor::new(&whole), SEGMENT).unwrap() else { return Ok(()) };
            // The first segment as it was when it had some of its records, the first one at least.
            let ends: Vec<usize> = records_of(&whole[HEADER_BYTES..][..SEGMENT]).map(|(_, place)| place.end).collect();
            let end = ends[(kept * ends.len() as f64) as usize];
            let mut early = whole.clone();
            early[HEADER_BYTES + end..HEADER_BYTES + SEGMENT].fill(0);
            let found = scan(&mut Growing { early, file: Cursor::new(whole), is_early: true }, SEGMENT).unwrap().unwrap();
            let places = |scan: &Scan| -> Vec<_> {
                scan.parts.iter().map(|part| (part.ordinal, part.part, part.segment, part.at, part.end)).collect()
            };
            let mut expected = places(&last);
            if expected.iter().all(|(ordinal, part, ..)| (*ordinal, *part) != (0, 1)) {
                // Nobody can tell that there is more.
                expected[0].4 = end;
            } else {
                prop_assert_eq!(&found.process.names, &last.process.names);
            }
            prop_assert_eq!(places(&found), expected);
        }
    }
}

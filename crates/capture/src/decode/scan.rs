//! The first pass over a capture: short records are stepped over by their lengths, and what holds for the process, who
//! the threads are, and where each one's records lie is taken in.

use super::activities::{ReadActivities, TEXT};
use super::events::Window;
use super::parts::Part;
use super::process::{ProcessRecords, is_of_process};
use super::rare_events::{RareRecord, Rarely};
use super::record::{Record, half_at, read_long, short_len, word_at};
use super::segments::Segments;
use super::texts::Texts;
use crate::Thread;
use crate::clock::TickClock;
use crate::device::ActivityList;
use crate::io::IoRecord;
use crate::layout::{NO_THREAD, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC, Tag};
use crate::stack_samples::unpack;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Result;

/// What is known of a thread.
#[derive(Clone, Default, Debug)]
struct KnownThread {
    /// The part that says the next two, and the system's number of the thread and its handle.
    part: u32,
    tid: u64,
    handle: u32,
    framework_thread: u64,
    /// The part that says its name, and the name.
    name: (u32, String),
}

/// How far each thread had come: its last part, and where in its segment that ends.
type Reached = BTreeMap<u32, (u32, usize)>;

/// What the first pass finds.
#[derive(Default, Debug)]
pub(crate) struct Scan {
    pub(crate) process: ProcessRecords,
    /// By thread, and in the order of each.
    pub(super) parts: Vec<Part>,
    /// By the thread's number in the file.
    threads: BTreeMap<u32, KnownThread>,
    /// By the device's clock and with the device's names of threads, in the order of parts.
    activities: ReadActivities,
    /// Names that stand in records, behind the defined names of the process.
    pub(super) texts: Texts,
    /// What else threads recorded that is rare, in no order.
    rare: Vec<RareRecord>,
    /// Ticks at which ranges ended that began on another thread.
    pub(super) ends_elsewhere: Vec<u64>,
    /// The system's numbers of threads that others wrote of.
    others: BTreeSet<u32>,
    /// Places that cannot be read, in words.
    pub(crate) damaged: Vec<String>,
    /// What comes later is left out but for definitions, and so are threads that are not named; `None` takes all.
    until: Option<Reached>,
}

impl Scan {
    /// The first pass over `segments`, which may be written while they are read.
    pub(crate) fn of(segments: &Segments, segment_bytes: usize) -> Result<Self> {
        let scan = Self::until(segments, segment_bytes, None)?;
        // Of one thread a later segment may be there and an earlier one not whole. The second time all is there that
        // the first time was, and what came later is left out.
        for part in scan.left_parts() {
            if has_grown(segments, segment_bytes, part)? {
                return Self::until(segments, segment_bytes, Some(scan.reached()));
            }
        }
        Ok(scan)
    }

    fn until(segments: &Segments, segment_bytes: usize, until: Option<Reached>) -> Result<Self> {
        let mut scan = Self { until, ..Self::default() };
        let mut buffer = Vec::new();
        for index in 0.. {
            let segment = segments.read(index * segment_bytes, segment_bytes, &mut buffer)?;
            if segment.is_empty() {
                break;
            }
            let damage = scan.take(segment, index).err();
            scan.damaged.extend(damage);
        }
        scan.process.call_stops.sort_unstable();
        scan.name_rest();
        // Parts that began later.
        scan.parts.retain(|part| part.at < part.end);
        scan.sort_by_thread();
        Ok(scan)
    }

    /// Takes in a segment. The error says, in words, which part cannot be read.
    fn take(&mut self, segment: &[u8], index: usize) -> std::result::Result<(), String> {
        match word_at(segment, 0) {
            Some(0) | None => return Ok(()),
            Some(first) if first == u64::from(SEGMENT_MAGIC) << 32 | index as u64 => {}
            Some(_) => return Err(format!("segment {index} has a damaged header")),
        }
        let (mut at, mut has_part, mut until) = (SEGMENT_HEADER_BYTES, false, usize::MAX);
        while let Some(half) = half_at(segment, at).filter(|half| *half != 0) {
            let damaged = || format!("segment {index} cannot be decoded from byte {at}");
            let (mut is_replayed, mut begins) = (true, 0);
            let len = match usize::from(SHORT_LENS[usize::from(half as u8)]) {
                0 => {
                    let tag = Tag::from_byte(half as u8).ok_or_else(damaged)?;
                    let (record, len) = read_long(segment, at, tag).ok_or_else(damaged)?;
                    if tag == Tag::Thread {
                        (has_part, until) = (true, self.end_of_part(&record));
                    }
                    if !has_part {
                        return Err(format!("segment {index} does not begin with a thread"));
                    }
                    if at + len <= until || tag == Tag::Thread || tag.is_definition() {
                        (is_replayed, begins) = self.learn(&record, index, at);
                    }
                    len
                }
                // A short record counts from the thread's.
                len if !has_part || at + len > segment.len() => return Err(damaged()),
                len => {
                    begins = len / BYTES_OF_SHORT_BEGIN;
                    len
                }
            };
            at += len;
            let Some(part) = self.parts.last_mut() else { continue };
            if at <= until {
                part.end = at;
                part.begins += begins;
                part.is_replayed |= is_replayed;
                part.activities.1 = self.activities.list.len();
            }
        }
        Ok(())
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

    fn reached(&self) -> Reached {
        let mut reached = BTreeMap::new();
        for part in &self.parts {
            let last = reached.entry(part.ordinal).or_insert((part.number, part.end));
            *last = (*last).max((part.number, part.end));
        }
        reached
    }

    /// Parts that a thread had left for a later one when that was read, and at whose end nothing was when they were
    /// read themselves. Something may have come in between.
    fn left_parts(&self) -> impl Iterator<Item = &Part> {
        let reached = self.reached();
        let mut last_of_segments: BTreeMap<usize, &Part> = BTreeMap::new();
        for part in &self.parts {
            let last = last_of_segments.entry(part.segment).or_insert(part);
            if part.at > last.at {
                *last = part;
            }
        }
        last_of_segments.into_values().filter(move |part| reached[&part.ordinal].0 > part.number)
    }

    /// Takes in what a long record says of the process. Gives whether replaying it tells something of its thread, and
    /// how many events it begins.
    fn learn(&mut self, record: &Record, segment: usize, at: usize) -> (bool, usize) {
        match record.tag {
            Tag::Thread => {
                let (ordinal, number) = record.halves(0);
                self.parts.push(Part {
                    ordinal,
                    number,
                    segment,
                    at,
                    end: at,
                    first_ticks: record.ticks,
                    begins: 0,
                    is_replayed: false,
                    activities: (self.activities.list.len(), self.activities.list.len()),
                });
                let thread = self.threads.entry(ordinal).or_default();
                if number >= thread.part {
                    let (tid, handle) = record.halves(1);
                    (thread.part, thread.tid, thread.handle) = (number, u64::from(tid), handle);
                }
                thread.framework_thread = thread.framework_thread.max(record.word(2));
                return (false, 0);
            }
            Tag::ThreadName => {
                if let Some(Part { ordinal, number, .. }) = self.parts.last() {
                    let known = &mut self.threads.entry(*ordinal).or_default().name;
                    if *number >= known.0 {
                        *known = (*number, record.text(8, record.halves(0).0 as usize));
                    }
                }
            }
            Tag::Device => {
                self.activities.learn(record, &mut self.texts);
                return (false, 0);
            }
            Tag::EndElsewhere => self.ends_elsewhere.push(record.ticks),
            Tag::Begin | Tag::BeginSequence | Tag::BeginBackward => return (true, 1),
            Tag::BeginText => {
                self.texts.learn(record.text(8, record.halves(0).0 as usize));
                return (true, 1);
            }
            Tag::CollectiveText => _ = self.texts.learn(record.text(16, record.halves(0).0 as usize)),
            Tag::StepBegin => self.add_rare(record, Rarely::StepBegin(record.word(0) as i64)),
            Tag::StepEnd => self.add_rare(record, Rarely::StepEnd(record.word(0) as i64)),
            Tag::StepDropped => self.add_rare(record, Rarely::StepDropped),
            Tag::OptimizerStep => self.add_rare(record, Rarely::OptimizerStep(None)),
            Tag::NumberedOptimizerStep => self.add_rare(record, Rarely::OptimizerStep(Some(record.word(0) as i64))),
            Tag::Counter => self.add_rare(record, Rarely::Sample(record.halves(0).0, record.word(1) as i64)),
            Tag::StackSample => {
                let (tid, sample) = unpack([0, 1, 2].map(|at| record.word(at)));
                self.others.insert(tid);
                self.add_rare(record, Rarely::StackSample(tid, sample));
            }
            Tag::ProfilerState => self.add_rare(record, Rarely::ProfilerState(record.word(0))),
            Tag::Io => self.others.extend(IoRecord::other_thread(|at| record.word(at))),
            tag if is_of_process(tag) => {
                self.process.learn(record);
                return (tag == Tag::InputsInPlace, 0);
            }
            _ => {}
        }
        (true, 0)
    }

    fn add_rare(&mut self, record: &Record, says: Rarely) {
        let rare = |part: &Part| RareRecord { thread: part.ordinal, part: part.number, ticks: record.ticks, says };
        self.rare.extend(self.parts.last().map(rare));
    }

    /// Puts names that stand in records behind the defined ones. A sample whose name has no definition has one that says
    /// so, an activity record has none.
    fn name_rest(&mut self) {
        let defined = self.process.names.len() as u32;
        self.process.defined_names = defined;
        let first = self.texts.append_to(&mut self.process.names);
        for rare in &mut self.rare {
            if let Rarely::Sample(name, _) = &mut rare.says {
                *name = Some(*name).filter(|name| *name < defined).unwrap_or(self.texts.lost());
            }
        }
        let all = self.process.names.len() as u32;
        for name in self.activities.list.about_mut().filter_map(|activity| activity.record.name_mut()) {
            *name = name.and_then(|id| match id & TEXT {
                0 => Some(id).filter(|id| *id < defined),
                // A damaged record has such an id without a text.
                _ => first.checked_add(id & !TEXT).filter(|id| *id < all),
            });
        }
    }

    /// Threads by ordinal: the numbers in the file that have a part, in their order; behind them those that only others
    /// wrote of.
    pub(crate) fn threads(&self) -> Vec<Thread> {
        let thread = |(ordinal, number): (u32, u32)| {
            let KnownThread { tid, handle, framework_thread, name: (_, name), .. } =
                self.threads.get(&number).cloned().unwrap_or_default();
            Thread { ordinal, tid, framework_thread, name, handle }
        };
        let mut threads: Vec<Thread> = (0..).zip(self.thread_numbers()).map(thread).collect();
        let known: BTreeSet<u64> = threads.iter().map(|thread| thread.tid).collect();
        for tid in self.others.iter().map(|tid| u64::from(*tid)).filter(|tid| !known.contains(tid)) {
            let (ordinal, name) = (threads.len() as u32, format!("thread {tid}"));
            threads.push(Thread { ordinal, tid, name, ..Thread::default() });
        }
        threads
    }

    /// Rare records, each with the ordinal of its thread: by thread, and in the order of each.
    pub(super) fn rare_records(&self) -> impl Iterator<Item = (u32, RareRecord)> {
        let numbers: Vec<u32> = self.thread_numbers().collect();
        self.rare.iter().filter_map(move |rare| Some((numbers.binary_search(&rare.thread).ok()? as u32, *rare)))
    }

    /// Takes the activity records, by the device's clock and with the device's names of threads.
    pub(crate) fn take_activities(&mut self) -> ActivityList {
        std::mem::take(&mut self.activities).list
    }

    /// When recording was switched, by time.
    pub(crate) fn windows(&self, clock: &TickClock) -> Vec<Window> {
        let window = |(ticks, is_on, cycle): &(u64, bool, u64)| Window {
            time_ns: clock.monotonic_ns(*ticks),
            is_on: *is_on,
            cycle: *cycle,
        };
        let mut windows: Vec<Window> = self.process.windows.iter().map(window).collect();
        windows.sort_by_key(|window| window.time_ns);
        windows
    }

    /// The parts of each thread, by ordinal.
    pub(super) fn of_threads(&self) -> impl Iterator<Item = &[Part]> {
        self.parts.chunk_by(|a, b| a.ordinal == b.ordinal)
    }

    fn thread_numbers(&self) -> impl Iterator<Item = u32> {
        self.of_threads().map(|parts| parts[0].ordinal)
    }

    /// Brings parts and activity records into the order of threads, and of each into that of its parts. Definitions that
    /// a ring carried over belong to no thread.
    fn sort_by_thread(&mut self) {
        self.parts.sort_by_key(|part| (part.ordinal, part.number));
        self.parts.retain(|part| part.ordinal != NO_THREAD);
        self.rare.sort_by_key(|rare| (rare.thread, rare.part));
        let with_activities: Vec<&Part> =
            self.parts.iter().filter(|part| part.activities.0 < part.activities.1).collect();
        let is_complete = with_activities.iter().map(|part| part.activities.1 - part.activities.0).sum::<usize>()
            == self.activities.list.len();
        // Segments of two threads that write at the same time lie among each other.
        if !is_complete || !with_activities.is_sorted_by_key(|part| part.activities.0) {
            let ranges = with_activities.iter().map(|part| part.activities.0..part.activities.1);
            self.activities.list.select(ranges);
        }
    }
}

/// Whether something follows a part where nothing did.
fn has_grown(segments: &Segments, segment_bytes: usize, part: &Part) -> Result<bool> {
    let len = segment_bytes.saturating_sub(part.end).min(4);
    let mut buffer = Vec::new();
    let next = segments.read(part.segment * segment_bytes + part.end, len, &mut buffer)?;
    Ok(next.len() == 4 && next != [0; 4])
}

const BYTES_OF_SHORT_BEGIN: usize = 8;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::tests::made::{SEGMENT, capture_bytes, made_thread};
    use crate::layout::HEADER_BYTES;
    use crate::ring::records_of;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_between_two_reads_leaves_no_gap(
            threads in prop::collection::vec(made_thread(), 1..5),
            kept in 0.0..1.0,
        ) {
            let whole = [vec![0; HEADER_BYTES], capture_bytes(&threads)].concat();
            let last = Scan::of(&Segments::InMemory(whole.clone()), SEGMENT).unwrap();
            // The first segment as it was when it had some of its records, the first one at least.
            let ends: Vec<usize> = records_of(&whole[HEADER_BYTES..][..SEGMENT]).map(|(_, place)| place.end).collect();
            let end = ends[(kept * ends.len() as f64) as usize];
            let mut early = whole.clone();
            early[HEADER_BYTES + end..HEADER_BYTES + SEGMENT].fill(0);
            let found = Scan::of(&Segments::Growing(early.into(), whole), SEGMENT).unwrap();
            let places = |scan: &Scan| -> Vec<_> {
                scan.parts.iter().map(|part| (part.ordinal, part.number, part.segment, part.at, part.end)).collect()
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

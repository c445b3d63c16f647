//! A capture that is listened to: each thread's ranges as they begin and end, without a list of them.
//!
//! The file is read twice, a segment at a time into the same memory. The first pass steps over records by their lengths
//! and takes in only what holds for the process; the second replays the parts that somebody asks for.

mod ranges;

pub use ranges::{Ranges, ThreadSurvey};

use super::parts::Records;
use super::process::{ProcessRecords, is_of_process};
use super::record::{Record, half_at, read_long, short_len, word_at};
use super::replay::sequence_number;
use crate::clock::{TickClock, TickCursor};
use crate::device::CompactReports;
use crate::layout::{HEADER_BYTES, NO_THREAD, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC, Tag, scope};
use crate::read::HeaderFields;
use crate::short::Begin;
use crate::{Capture, CaptureError, Inputs, MemoryEvent, Sample, Thread, Window};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What hears of a thread's records, in their order. Calls of Python and of modules have a stack of their own, and their
/// begins are written late.
pub trait Listener {
    /// An op or a label begins.
    fn begin(&mut self, at_ns: i64, begin: &Begin);
    /// The innermost open one was called with this row of the inputs.
    fn set_inputs(&mut self, row: Option<u32>);
    /// The innermost open one ends; of one whose begin is not among the records, nobody has heard.
    fn end(&mut self, at_ns: i64);
    /// A labelled step begins.
    fn begin_step(&mut self, at_ns: i64, number: i64);
    /// The labelled step of this number ends.
    fn end_step(&mut self, at_ns: i64, number: i64);
    /// Something happened that cannot be understood from this thread's records in their order: whoever wants to know
    /// reads the whole capture.
    fn give_up(&mut self);
    /// The range ends that has so many open ones inside it.
    fn end_outer(&mut self, _at_ns: i64, _inside: usize) {
        self.give_up();
    }
    /// A call begins, whose name may be lost.
    fn begin_call(&mut self, _at_ns: i64, _ticks: u64, _begin: &Begin) {}
    /// The innermost open call ends.
    fn end_call(&mut self, _at_ns: i64) {}
    /// The innermost open range is a collective, with this name for a description; none when that is lost, or no name.
    fn set_collective(&mut self, _description: Option<u32>, _sequence_number: Option<i64>) {}
    /// An optimizer has stepped.
    fn optimizer_step(&mut self, _at_ns: i64, _number: Option<i64>) {}
    /// Memory was allocated or freed, or could not be.
    fn memory(&mut self, _event: &MemoryEvent) {}
    /// Whether what was recorded behind the times that were asked for still matters.
    fn wants_more(&self) -> bool {
        false
    }
}

/// A capture on disk, and all of it that holds for the whole process.
#[derive(Debug)]
pub struct StreamedCapture {
    file: File,
    path: PathBuf,
    header: HeaderFields,
    process: ProcessRecords,
    /// How many names there are.
    names: u32,
    clock: TickClock,
    threads: Vec<StreamedThread>,
    samples: Vec<Sample>,
    /// Whether devices' profilers reported something, and what of it can be placed.
    has_reports: bool,
    reports: CompactReports,
    /// When ranges ended that began on another thread.
    ends_elsewhere: Vec<i64>,
}

/// A thread, and where its records are, in their order.
#[derive(Debug)]
struct StreamedThread {
    thread: Thread,
    parts: Vec<PartOnDisk>,
}

/// One thread's records within one segment.
#[derive(Clone, Copy, Debug)]
struct PartOnDisk {
    ordinal: u32,
    part: u32,
    segment: usize,
    at: usize,
    end: usize,
    first_ticks: u64,
    /// Whether a listener hears of any of its records.
    is_heard: bool,
    /// Its reports: from, to.
    reports: (usize, usize),
}

impl StreamedCapture {
    /// The capture at `path`, of which only what was written up to now counts.
    ///
    /// `None` for what has to be read as a whole: rings, files with damage, and names that were lost.
    ///
    /// # Errors
    /// When the file cannot be read, is no capture, or is of a newer version.
    pub fn open(path: &Path) -> Result<Option<Self>, CaptureError> {
        let io = |source| CaptureError::Io { action: "read", source, path: path.into() };
        let mut file = File::open(path).map_err(io)?;
        let mut header = Vec::new();
        file.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut header).map_err(io)?;
        let header = HeaderFields::read(&header, path)?;
        if header.is_ring() {
            return Ok(None);
        }
        let mut scan = Scan::default();
        let mut segment = Vec::with_capacity(header.segment_bytes);
        for index in 0.. {
            segment.clear();
            file.by_ref().take(header.segment_bytes as u64).read_to_end(&mut segment).map_err(io)?;
            if segment.is_empty() {
                break;
            }
            if scan.take(&segment, index).is_none() {
                return Ok(None);
            }
        }
        scan.process.call_stops.sort_unstable();
        let is_lost = |name: u32| name as usize >= scan.process.names.len();
        if scan.samples.iter().any(|(_, name, ..)| is_lost(*name)) {
            return Ok(None);
        }
        let moments = if header.has_rate() { scan.process.clock_points.as_slice() } else { &[] };
        let clock = TickClock::new(header.opened, moments.iter().copied());
        let ends_elsewhere = scan.ends_elsewhere.iter().map(|ticks| clock.monotonic_ns(*ticks)).collect();
        let mut reports = scan.reports;
        let has_reports = !reports.rows.is_empty();
        let mut threads = threads_of(scan.parts, &scan.threads, &mut reports);
        let mut known: Vec<Thread> = threads.iter().map(|thread| thread.thread.clone()).collect();
        let reports = super::device::finish_compact(reports, &scan.process, &clock, &mut known);
        let added = known.drain(threads.len()..).map(|thread| StreamedThread { thread, parts: Vec::new() });
        threads.extend(added);
        Ok(Some(Self {
            file,
            path: path.into(),
            header,
            names: scan.process.names.len() as u32,
            samples: samples_of(&scan.samples, &clock),
            clock,
            threads,
            has_reports,
            reports,
            process: scan.process,
            ends_elsewhere,
        }))
    }

    /// Monotonic clock when the capture was opened.
    pub fn opened_ns(&self) -> i64 {
        self.header.opened.monotonic_ns
    }

    /// A moment at which the process is known to have lived, and not necessarily the last one.
    pub fn lived_until_ns(&self) -> i64 {
        let moments = self.process.clock_points.iter().map(|point| self.clock.monotonic_ns(point.ticks));
        moments.fold(self.opened_ns(), i64::max)
    }

    /// The keys of facts about the process, sorted.
    pub fn keys_of_facts(&self) -> impl Iterator<Item = &str> {
        self.process.keys_of_facts()
    }

    /// Names that begins refer to.
    pub fn names(&self) -> &[String] {
        &self.process.names
    }

    /// What ops were called with, which [`Listener::set_inputs`] refers to.
    pub fn inputs(&self) -> &[Inputs] {
        self.process.inputs.list()
    }

    /// When recording was switched, by time.
    pub fn windows(&self) -> Vec<Window> {
        let window = |(ticks, is_on, cycle): &(u64, bool, u64)| Window {
            time_ns: self.clock.monotonic_ns(*ticks),
            is_on: *is_on,
            cycle: *cycle,
        };
        let mut windows: Vec<Window> = self.process.windows.iter().map(window).collect();
        windows.sort_by_key(|window| window.time_ns);
        windows
    }

    /// Threads, by ordinal.
    pub fn threads(&self) -> impl ExactSizeIterator<Item = &Thread> {
        self.threads.iter().map(|thread| &thread.thread)
    }

    /// Whether devices' profilers reported something, also where it cannot be placed.
    pub fn has_reports(&self) -> bool {
        self.has_reports
    }

    /// What devices' profilers reported, in the order in which it was written, by the clock and the threads of the
    /// capture.
    pub fn reports(&self) -> &CompactReports {
        &self.reports
    }

    /// True when within `times` a range ended that began on another thread.
    pub fn has_ends_elsewhere(&self, times: &Range<i64>) -> bool {
        self.ends_elsewhere.iter().any(|at_ns| times.contains(at_ns))
    }

    /// Lets `listener` hear what the thread with this ordinal recorded within `times`, and some of what it recorded around
    /// them.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn listen(&self, thread: u32, times: &Range<i64>, listener: &mut impl Listener) -> Result<(), CaptureError> {
        self.listen_to_parts(thread, times, listener).map(|_| ())
    }

    /// The same; gives the parts that were heard.
    fn listen_to_parts(
        &self,
        thread: u32,
        times: &Range<i64>,
        listener: &mut impl Listener,
    ) -> Result<Range<usize>, CaptureError> {
        let Some(StreamedThread { parts, .. }) = self.threads.get(thread as usize) else { return Ok(0..0) };
        let begins_at = |part: &PartOnDisk| self.clock.monotonic_ns(part.first_ticks);
        // What ends a part begins the next one, and the first record behind a part's begin may be a little older.
        let is_over = |at: usize| parts.get(at + 1).is_some_and(|next| begins_at(next) < times.start);
        let is_behind = |at: usize| begins_at(&parts[at]) >= times.end;
        let first = (0..parts.len()).find(|at| !is_over(*at)).unwrap_or(parts.len());
        let mut last = first;
        let mut replay = self.replay_to(thread, listener);
        let mut bytes = vec![0; self.header.segment_bytes];
        while last < parts.len() && (last == 0 || !is_behind(last - 1) || replay.listener.wants_more()) {
            if parts[last].is_heard {
                self.replay_part(&parts[last], &mut bytes, &mut replay)?;
            }
            last += 1;
        }
        Ok(first..last)
    }

    fn replay_to<'a, L: Listener>(&'a self, thread: u32, listener: &'a mut L) -> Replay<'a, L> {
        Replay { thread, names: self.names, process: &self.process, clock: self.clock.cursor(), listener }
    }

    /// Reads a part into `bytes` and replays it.
    fn replay_part(
        &self,
        part: &PartOnDisk,
        bytes: &mut [u8],
        replay: &mut Replay<'_, impl Listener>,
    ) -> Result<(), CaptureError> {
        let io = |source| CaptureError::Io { action: "read", source, path: self.path.clone() };
        let mut file = &self.file;
        let segment = HEADER_BYTES + part.segment * self.header.segment_bytes;
        file.seek(SeekFrom::Start((segment + part.at) as u64)).map_err(io)?;
        file.read_exact(&mut bytes[part.at..part.end]).map_err(io)?;
        Records::between(&bytes[..part.end], part.at, part.end).for_each(|record| replay.take(&record));
        Ok(())
    }

    /// The capture but for what its threads recorded. It takes names and inputs along: [`names`](Self::names) and
    /// [`inputs`](Self::inputs) are empty from then on.
    pub fn take_capture(&mut self) -> Capture {
        let damaged = self.process.inputs.damage().into_iter().collect();
        Capture {
            last_ns: self.lived_until_ns(),
            facts: self.process.facts(),
            threads: self.threads().cloned().collect(),
            names: std::mem::take(&mut self.process.names),
            overloads: std::mem::take(&mut self.process.overloads),
            inputs: self.process.inputs.take_list(),
            samples: std::mem::take(&mut self.samples),
            windows: self.windows(),
            damaged,
            ..self.header.empty_capture()
        }
    }
}

/// What is known of a thread.
#[derive(Clone, Default)]
struct Known {
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
struct Scan {
    process: ProcessRecords,
    parts: Vec<PartOnDisk>,
    /// By the thread's number in the file.
    threads: BTreeMap<u32, Known>,
    reports: CompactReports,
    ends_elsewhere: Vec<u64>,
    /// The part, name, ticks and value of each.
    samples: Vec<(PartOnDisk, u32, u64, i64)>,
}

impl Scan {
    /// Takes in a segment; `None` when it is damaged.
    fn take(&mut self, segment: &[u8], index: usize) -> Option<()> {
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
    let short =
        [Tag::ShortBegin, Tag::ShortBeginBackward, Tag::ShortEnd, Tag::ShortCallEnd, Tag::Pad, Tag::InputsReference];
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
fn threads_of(
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
fn samples_of(found: &[(PartOnDisk, u32, u64, i64)], clock: &TickClock) -> Vec<Sample> {
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

/// Tells a listener what records say.
struct Replay<'a, L> {
    thread: u32,
    names: u32,
    process: &'a ProcessRecords,
    clock: TickCursor<'a>,
    listener: &'a mut L,
}

impl<L: Listener> Replay<'_, L> {
    #[inline(always)]
    fn take(&mut self, record: &Record) {
        match record.tag {
            Tag::Begin | Tag::BeginSequence | Tag::BeginBackward => match &record.begin {
                Some(begin) if scope::is_call(begin.scope) => {
                    self.listener.begin_call(self.clock.monotonic_ns(record.ticks), record.ticks, begin);
                }
                Some(begin) if begin.name < self.names => {
                    self.listener.begin(self.clock.monotonic_ns(record.ticks), begin);
                }
                _ => self.listener.give_up(),
            },
            Tag::End => self.listener.end(self.clock.monotonic_ns(record.ticks)),
            Tag::InputsReference => self.listener.set_inputs(self.process.inputs.row(record.body)),
            Tag::CallEnd => self.listener.end_call(self.clock.monotonic_ns(record.ticks)),
            _ => self.take_rare(record),
        }
    }

    #[inline(never)]
    fn take_rare(&mut self, record: &Record) {
        let at_ns = self.clock.monotonic_ns(record.ticks);
        match record.tag {
            Tag::InputsInPlace => {
                let bytes = record.bytes(8, record.halves(0).0 as usize);
                self.listener.set_inputs(self.process.inputs.row_in_place(bytes));
            }
            Tag::StepBegin => self.listener.begin_step(at_ns, record.word(0) as i64),
            Tag::StepEnd => self.listener.end_step(at_ns, record.word(0) as i64),
            // Which name a text is only the whole capture tells.
            Tag::BeginText => self.listener.give_up(),
            Tag::EndOuter => self.listener.end_outer(at_ns, record.word(0) as usize),
            Tag::Collective => {
                let name = Some(record.halves(0).0).filter(|name| *name < self.names);
                self.listener.set_collective(name, sequence_number(record));
            }
            Tag::CollectiveText => self.listener.set_collective(None, sequence_number(record)),
            Tag::OptimizerStep => self.listener.optimizer_step(at_ns, None),
            Tag::NumberedOptimizerStep => self.listener.optimizer_step(at_ns, Some(record.word(0) as i64)),
            Tag::Memory | Tag::MemoryReserved | Tag::OutOfMemory => {
                let event = MemoryEvent::of_record(record.tag, self.thread, at_ns, |at| record.word(at));
                event.iter().for_each(|event| self.listener.memory(event));
            }
            _ => {}
        }
    }
}

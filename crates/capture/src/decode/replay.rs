//! One thread's records, replayed with the stack that their writer kept.

use super::event_list::{PackedEvent, Rare};
use super::events::CollectiveOf;
use super::inputs::InputsTable;
use super::parts::{Part, Records, ReplayedParts};
use super::process::is_of_process;
use super::record::Record;
use super::scan::Scan;
use super::segments::Segments;
use super::texts::Texts;
use crate::clock::{TickClock, TickCursor};
use crate::huge::prefer_large_pages;
use crate::io::{IoCall, IoRecord};
use crate::layout::{OpenPlace, Tag, scope};
use crate::memory::MemoryEvent;
use crate::short::Begin;
use std::io::Result;

/// What one thread recorded. Ends that were not recorded are not set yet.
pub(super) struct ThreadRecords {
    /// Its ordinal.
    pub(super) thread: u32,
    /// In the order in which they began.
    pub(super) events: Vec<PackedEvent>,
    pub(super) rares: Vec<Rare>,
    pub(super) memory: Vec<MemoryEvent>,
    pub(super) io: Vec<IoCall>,
    /// What it wrote of other threads, each with the system's number of that thread.
    pub(super) io_of_others: Vec<(u32, IoCall)>,
    /// Start in ticks, and index, of events that did not end on this thread.
    pub(super) left_open: Vec<(u64, usize)>,
    pub(super) ends_elsewhere: Vec<EndElsewhere>,
    /// When ranges ended whose begin is not there, ns.
    pub(super) lost_begins: Vec<i64>,
}

/// The end of an event that began on another thread.
pub(super) struct EndElsewhere {
    /// The thread that ended it.
    pub(super) thread: u32,
    pub(super) name: Option<u32>,
    /// The framework's id of that thread.
    pub(super) origin: u64,
    pub(super) ticks: u64,
    pub(super) ns: i64,
}

/// The number within its group that a collective's record says.
pub(super) fn sequence_number(record: &Record) -> Option<i64> {
    record.word(1).checked_sub(1).map(|number| number as i64)
}

/// Takes the events of a thread, of which none is open, and leaves an empty list.
pub(super) type TakeEvents<'a> = &'a mut dyn FnMut(&mut Vec<PackedEvent>, &mut Vec<Rare>);

/// Replays the thread that becomes number `thread` of `scan`. Where there is a `take`, it gets the events whenever there
/// are many of them and none is open; the last ones stay.
///
/// # Errors
/// When a segment cannot be read.
pub(super) fn replay(
    thread: u32,
    replayed: &ReplayedParts<'_>,
    (segments, segment_bytes): (&Segments, usize),
    scan: &Scan,
    clock: &TickClock,
    take: Option<TakeEvents<'_>>,
) -> Result<ThreadRecords> {
    let mut events = Vec::new();
    if take.is_none() {
        events.reserve_exact(replayed.events());
        prefer_large_pages(&mut events);
    }
    let records = ThreadRecords {
        thread,
        events,
        rares: Vec::new(),
        memory: Vec::new(),
        io: Vec::new(),
        io_of_others: Vec::new(),
        left_open: Vec::new(),
        ends_elsewhere: Vec::new(),
        lost_begins: Vec::new(),
    };
    let mut replay = Replay {
        records,
        is_selected: true,
        names: scan.process.defined_names,
        texts: &scan.texts,
        inputs: &scan.process.inputs,
        call_stops: &scan.process.call_stops,
        clock: clock.cursor(),
        open: Vec::new(),
        open_calls: Vec::new(),
        most: if take.is_some() { BATCH } else { usize::MAX },
        take,
    };
    let ReplayedParts { parts, selected } = replayed;
    let mut buffer = Vec::new();
    for (index, part) in parts.iter().enumerate().skip(selected.start) {
        replay.is_selected = index < selected.end;
        if !replay.is_selected && !replay.has_open() {
            break;
        }
        if part.is_replayed {
            let (at, len) = (part.segment * segment_bytes + part.at, part.end - part.at);
            Records::of(segments.read(at, len, &mut buffer)?).for_each(|record| replay.take(&record));
        }
    }
    Ok(replay.finish())
}

/// The ticks of the latest record of a thread with these parts, without those that are about others.
///
/// # Errors
/// When a segment cannot be read.
pub(super) fn last_ticks(parts: &[Part], (segments, segment_bytes): (&Segments, usize)) -> Result<Option<u64>> {
    let Some(part) = parts.last() else { return Ok(None) };
    let mut buffer = Vec::new();
    let bytes = segments.read(part.segment * segment_bytes + part.at, part.end - part.at, &mut buffer)?;
    // A call may be written long after it began.
    Ok(Records::of(bytes).filter(|record| tells_of_thread(record.tag)).map(|record| record.ticks).max())
}

/// Whether a record tells what its thread did.
fn tells_of_thread(tag: Tag) -> bool {
    !is_of_process(tag) && !matches!(tag, Tag::Device | Tag::Pad)
}

struct Replay<'a, 't> {
    records: ThreadRecords,
    /// Whether ranges become events.
    is_selected: bool,
    names: u32,
    texts: &'a Texts,
    inputs: &'a InputsTable,
    call_stops: &'a [u64],
    clock: TickCursor<'a>,
    /// Start in ticks, and index, of ranges that may still end on this thread; [`NO_EVENT`] of those that became none.
    open: Vec<(u64, usize)>,
    /// Start in ticks, and index, of calls that may still end on this thread.
    open_calls: Vec<(u64, usize)>,
    /// How many events are many.
    most: usize,
    take: Option<TakeEvents<'t>>,
}

/// In the place of the index of a range that is not selected.
const NO_EVENT: usize = usize::MAX;
/// The events of a batch: they stay in a processor's cache.
const BATCH: usize = if cfg!(test) { 4 } else { 8_192 };

impl Replay<'_, '_> {
    #[inline(always)]
    fn take(&mut self, record: &Record) {
        let (thread, ticks) = (self.records.thread, record.ticks);
        match record.tag {
            Tag::Begin | Tag::BeginSequence | Tag::BeginBackward | Tag::BeginText => self.begin(record),
            Tag::End => self.end(record),
            Tag::CallEnd => {
                if let Some((_, at)) = self.open_calls.pop() {
                    self.end_event(at, ticks);
                    self.hand_over();
                }
            }
            Tag::EndOuter => self.end_outer(record),
            Tag::EndLeft => self.end_left(record),
            Tag::EndElsewhere => {
                // One that is lost is that of no range.
                let name = Some(record.halves(0).0).filter(|name| *name < self.names);
                let (origin, ns) = (record.word(1), self.clock.monotonic_ns(ticks));
                self.records.ends_elsewhere.push(EndElsewhere { thread, name, origin, ticks, ns });
            }
            Tag::Collective => {
                let id = record.halves(0).0;
                let description = if id < self.names { id } else { self.texts.lost() };
                self.describe(description, record);
            }
            Tag::CollectiveText => {
                let description = self.texts.id(&record.text(16, record.halves(0).0 as usize));
                self.describe(description, record);
            }
            Tag::Memory | Tag::MemoryReserved | Tag::OutOfMemory => {
                let time_ns = self.clock.monotonic_ns(ticks);
                self.records.memory.extend(MemoryEvent::of_record(record.tag, thread, time_ns, |at| record.word(at)));
            }
            Tag::Io => self.io(record),
            Tag::InputsReference => self.set_inputs(OpenPlace::Open(0), self.inputs.row(record.body)),
            Tag::InputsInPlace => {
                let (len, place) = record.halves(0);
                let inputs = self.inputs.row_in_place(record.bytes(8, len as usize));
                self.set_inputs(OpenPlace::unpack(place), inputs);
            }
            // Those that the scan takes in, and `Pad`, which says nothing at all.
            Tag::Thread
            | Tag::ThreadName
            | Tag::StepBegin
            | Tag::StepEnd
            | Tag::StepDropped
            | Tag::OptimizerStep
            | Tag::NumberedOptimizerStep
            | Tag::Counter
            | Tag::ProfilerState
            | Tag::Name
            | Tag::Overload
            | Tag::Inputs
            | Tag::Fact
            | Tag::Clock
            | Tag::Window
            | Tag::CallsStop
            | Tag::DeviceClock
            | Tag::File
            | Tag::Stack
            | Tag::StackSample
            | Tag::Device
            | Tag::Pad => {}
            // They are read as the long ones that they stand for.
            Tag::ShortBegin
            | Tag::ShortBeginBackward
            | Tag::TimedBegin
            | Tag::TimedBeginSame
            | Tag::TimedBeginNext
            | Tag::ShortEnd
            | Tag::ShortCallEnd => {}
        }
    }

    fn io(&mut self, record: &Record) {
        let Some(call) = IoRecord::of_words(|at| record.word(at)) else { return };
        let number = |number: u64| i64::try_from(number).ok();
        let described = IoCall {
            thread: self.records.thread,
            start_ns: self.clock.monotonic_ns(record.ticks),
            end_ns: self.clock.monotonic_ns(record.ticks.wrapping_add(call.duration_ticks)),
            function: call.function,
            errno: call.errno,
            file: Some(call.file),
            other_file: Some(call.other_file),
            bytes: number(call.bytes).filter(|_| call.function.moves_bytes()),
            asked_bytes: call.asked.and_then(number),
            offset: call.offset.and_then(number),
        };
        match call.thread {
            0 => self.records.io.push(described),
            tid => self.records.io_of_others.push((tid, described)),
        }
    }

    /// True when something that is selected has not ended.
    fn has_open(&self) -> bool {
        let is_event = |(_, at): &(u64, usize)| *at != NO_EVENT;
        let is_left = self.records.left_open.iter().any(is_event);
        is_left || self.open.iter().chain(&self.open_calls).any(is_event)
    }

    #[inline]
    fn begin(&mut self, record: &Record) {
        let (name, begin) = match record.begin {
            Some(begin) if begin.name < self.names => (begin.name, begin),
            Some(begin) => (self.texts.lost(), begin),
            None => {
                let (len, scope) = record.halves(0);
                let begin = Begin { name: 0, scope: scope as u8, sequence_number: -1, forward_thread: 0 };
                (self.texts.id(&record.text(8, len as usize)), begin)
            }
        };
        let open = if scope::is_call(begin.scope) { &mut self.open_calls } else { &mut self.open };
        if !self.is_selected {
            return open.push((record.ticks, NO_EVENT));
        }
        open.push((record.ticks, self.records.events.len()));
        let start_ns = self.clock.monotonic_ns(record.ticks);
        let (scope, is_async) = scope::decoded(begin.scope);
        let mut event = PackedEvent {
            start_ns,
            end_ns: start_ns,
            sequence_number: begin.sequence_number,
            name,
            thread: self.records.thread,
            scope,
            is_unfinished: true,
            is_async,
            ..PackedEvent::NOTHING
        };
        if begin.forward_thread != 0 {
            let rare = Rare { forward_thread: Some(begin.forward_thread), collective: None };
            event.set_rare(rare, &mut self.records.rares);
        }
        self.records.events.push(event);
    }

    /// What an open op was called with.
    #[inline]
    fn set_inputs(&mut self, place: OpenPlace, inputs: Option<u32>) {
        let (ranges, behind) = match place {
            OpenPlace::Open(inside) => (&self.open, inside),
            OpenPlace::Left(after) => (&self.records.left_open, after),
        };
        if let Some((_, at)) = ranges.iter().nth_back(behind as usize)
            && let Some(event) = self.records.events.get_mut(*at)
        {
            event.set_inputs(inputs);
        }
    }

    /// Says of the innermost range that it is a collective.
    fn describe(&mut self, description: u32, record: &Record) {
        if let Some((_, at)) = self.open.last()
            && let Some(event) = self.records.events.get_mut(*at)
        {
            let collective = Some(CollectiveOf { description, sequence_number: sequence_number(record) });
            let rare = Rare { collective, ..event.rare(&self.records.rares) };
            event.set_rare(rare, &mut self.records.rares);
        }
    }

    /// An end without a begin belongs to an op that was open when recording began, or whose begin a ring gave up.
    #[inline]
    fn end(&mut self, record: &Record) {
        match self.open.pop() {
            Some((_, at)) => {
                self.end_event(at, record.ticks);
                self.hand_over();
            }
            None => self.lose_begin(record.ticks),
        }
    }

    /// Hands the events over, when there are many and none is open.
    #[inline]
    fn hand_over(&mut self) {
        let is_open = !self.open.is_empty() || !self.open_calls.is_empty() || !self.records.left_open.is_empty();
        if self.records.events.len() >= self.most
            && !is_open
            && let Some(take) = &mut self.take
        {
            take(&mut self.records.events, &mut self.records.rares);
        }
    }

    #[cold]
    fn lose_begin(&mut self, ticks: u64) {
        let ns = self.clock.monotonic_ns(ticks);
        self.records.lost_begins.push(ns);
    }

    /// Ends a range that is not the innermost; those inside it may only be ended elsewhere.
    fn end_outer(&mut self, record: &Record) {
        let inside = record.word(0) as usize;
        match self.open.len().checked_sub(inside.saturating_add(1)) {
            Some(outer) => {
                let (_, at) = self.open[outer];
                self.records.left_open.extend(self.open.drain(outer..).skip(1));
                self.end_event(at, record.ticks);
            }
            // Its own begin is not there; those inside it leave the stack all the same.
            None => {
                let first_inside = self.open.len().saturating_sub(inside);
                self.records.left_open.extend(self.open.drain(first_inside..));
                self.lose_begin(record.ticks);
            }
        }
    }

    /// Ends a range that has left the stack.
    fn end_left(&mut self, record: &Record) {
        let left = self.records.left_open.len().checked_sub((record.word(0) as usize).saturating_add(1));
        match left {
            Some(left) => {
                let (_, at) = self.records.left_open.remove(left);
                self.end_event(at, record.ticks);
            }
            None => self.lose_begin(record.ticks),
        }
    }

    #[inline]
    fn end_event(&mut self, at: usize, ticks: u64) {
        let end_ns = self.clock.monotonic_ns(ticks);
        self.records.events.get_mut(at).into_iter().for_each(|event| event.end(end_ns));
    }

    fn finish(mut self) -> ThreadRecords {
        for (start, at) in std::mem::take(&mut self.open_calls) {
            let stop = self.call_stops.partition_point(|ticks| *ticks < start);
            match self.call_stops.get(stop) {
                Some(ticks) => self.end_event(at, *ticks),
                None => self.open.push((start, at)),
            }
        }
        self.records.left_open.append(&mut self.open);
        self.records.left_open.retain(|(_, at)| *at != NO_EVENT);
        self.records
    }
}

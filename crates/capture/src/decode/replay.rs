//! One thread's records, replayed with the stack that their writer kept.

use super::events::{CollectiveOf, Event, Mark, ProfilerState, Sample, StepRange};
use super::inputs::InputsTable;
use super::parts::Part;
use super::process::ProcessRecords;
use super::record::Record;
use crate::Thread;
use crate::clock::{TickClock, TickCursor};
use crate::device::{self, DeviceActivity};
use crate::layout::{Tag, scope};
use crate::memory::MemoryEvent;
use crate::short::Begin;
use std::collections::HashMap;

/// What one thread recorded. Ends that were not recorded are not set yet, and texts that have no id of the process are
/// numbered from its names on.
pub(super) struct ThreadRecords<'e> {
    pub(super) thread: Thread,
    /// In the order in which they began.
    pub(super) events: &'e mut [Event],
    pub(super) steps: Vec<StepRange>,
    /// In ticks, where each step begins.
    pub(super) step_starts: Vec<u64>,
    /// Number, ticks and ns of ends of steps that did not begin on this thread.
    pub(super) step_ends_elsewhere: Vec<(i64, u64, i64)>,
    pub(super) optimizer_steps: Vec<Mark>,
    pub(super) memory: Vec<MemoryEvent>,
    pub(super) samples: Vec<Sample>,
    pub(super) profiler_states: Vec<ProfilerState>,
    /// As the device's profiler has them.
    pub(super) device: Vec<DeviceActivity>,
    /// Start in ticks, and index, of events that did not end on this thread.
    pub(super) left_open: Vec<(u64, usize)>,
    pub(super) ends_elsewhere: Vec<EndElsewhere>,
    /// Names that stand in the records.
    pub(super) texts: Vec<String>,
    /// The latest moment of its records, in ns and in ticks.
    pub(super) last_ns: Option<i64>,
    pub(super) last_ticks: u64,
    /// When ranges ended whose begin is not there, ns.
    pub(super) lost_begins: Vec<i64>,
}

/// The end of an event that began on another thread.
pub(super) struct EndElsewhere {
    /// The thread that ended it.
    pub(super) thread: u32,
    pub(super) name: u32,
    /// The framework's id of that thread.
    pub(super) origin: u64,
    pub(super) ticks: u64,
    pub(super) ns: i64,
}

/// The number within its group that a collective's record says.
pub(super) fn sequence_number(record: &Record) -> Option<i64> {
    record.word(1).checked_sub(1).map(|number| number as i64)
}

/// Whether replaying such a record makes an event.
pub(super) fn begins_event(tag: Tag) -> bool {
    matches!(tag, Tag::Begin | Tag::BeginSequence | Tag::BeginBackward | Tag::BeginText)
}

/// Replays the parts of the thread that becomes number `ordinal` of `process`. There is one of `events` for each record
/// that begins one.
pub(super) fn replay<'e>(
    ordinal: u32,
    parts: &[Part],
    process: &'e ProcessRecords,
    clock: &TickClock,
    events: &'e mut [Event],
) -> ThreadRecords<'e> {
    let records = ThreadRecords {
        thread: Thread { ordinal, ..Thread::default() },
        events,
        steps: Vec::new(),
        step_starts: Vec::new(),
        step_ends_elsewhere: Vec::new(),
        optimizer_steps: Vec::new(),
        memory: Vec::new(),
        samples: Vec::new(),
        profiler_states: Vec::new(),
        device: Vec::new(),
        left_open: Vec::new(),
        ends_elsewhere: Vec::new(),
        texts: Vec::new(),
        last_ns: None,
        last_ticks: 0,
        lost_begins: Vec::new(),
    };
    let mut replay = Replay {
        records,
        begun: 0,
        names: process.names.len() as u32,
        inputs: &process.inputs,
        call_stops: &process.call_stops,
        clock: clock.cursor(),
        open: Vec::new(),
        open_calls: Vec::new(),
        open_step: None,
        last: None,
        ids_of_texts: HashMap::new(),
    };
    for part in parts {
        for record in part.records.clone() {
            replay.take(&record);
        }
    }
    replay.finish()
}

struct Replay<'a, 'e> {
    records: ThreadRecords<'e>,
    /// Events so far.
    begun: usize,
    names: u32,
    inputs: &'a InputsTable,
    call_stops: &'a [u64],
    clock: TickCursor<'a>,
    /// Start in ticks, and index, of events that may still end on this thread.
    open: Vec<(u64, usize)>,
    /// Start in ticks, and index, of calls that may still end on this thread.
    open_calls: Vec<(u64, usize)>,
    open_step: Option<usize>,
    /// Ticks of the latest record.
    last: Option<u64>,
    ids_of_texts: HashMap<String, u32>,
}

impl<'e> Replay<'_, 'e> {
    #[inline(always)]
    fn take(&mut self, record: &Record) {
        let (thread, ticks) = (self.records.thread.ordinal, record.ticks);
        match record.tag {
            Tag::Thread => {
                let known = &mut self.records.thread;
                (known.tid, known.handle) = {
                    let (tid, handle) = record.halves(1);
                    (u64::from(tid), handle)
                };
                known.framework_thread = known.framework_thread.max(record.word(2));
            }
            Tag::ThreadName => self.records.thread.name = record.text(8, record.halves(0).0 as usize),
            Tag::Begin | Tag::BeginSequence | Tag::BeginBackward | Tag::BeginText => self.begin(record),
            Tag::End => self.end(record),
            Tag::CallEnd => {
                if let Some((_, at)) = self.open_calls.pop() {
                    self.end_event(at, ticks);
                }
            }
            Tag::EndOuter => self.end_outer(record),
            Tag::EndLeft => self.end_left(record),
            Tag::EndElsewhere => {
                let (name, origin, ns) = (record.halves(0).0, record.word(1), self.clock.monotonic_ns(ticks));
                self.records.ends_elsewhere.push(EndElsewhere { thread, name, origin, ticks, ns });
            }
            Tag::StepBegin => {
                self.open_step = Some(self.records.steps.len());
                let (number, start_ns) = (record.word(0) as i64, self.clock.monotonic_ns(ticks));
                let step = StepRange { thread, number, start_ns, end_ns: start_ns, is_unfinished: true };
                self.records.steps.push(step);
                self.records.step_starts.push(ticks);
            }
            Tag::StepEnd => {
                let (number, ns) = (record.word(0) as i64, self.clock.monotonic_ns(ticks));
                match self.open_step.take_if(|step| self.records.steps[*step].number == number) {
                    Some(step) => self.records.steps[step].end(ns),
                    None => self.records.step_ends_elsewhere.push((number, ticks, ns)),
                }
            }
            Tag::Collective => {
                let id = record.halves(0).0;
                let description = if id < self.names { id } else { self.id_of_text("(name lost)".into()) };
                self.describe(description, record);
            }
            Tag::CollectiveText => {
                let description = self.id_of_text(record.text(16, record.halves(0).0 as usize));
                self.describe(description, record);
            }
            Tag::OptimizerStep => {
                self.records.optimizer_steps.push(Mark {
                    thread,
                    time_ns: self.clock.monotonic_ns(ticks),
                    number: None,
                });
            }
            Tag::NumberedOptimizerStep => {
                let (number, time_ns) = (Some(record.word(0) as i64), self.clock.monotonic_ns(ticks));
                self.records.optimizer_steps.push(Mark { thread, time_ns, number });
            }
            Tag::Memory | Tag::MemoryReserved | Tag::OutOfMemory => {
                let time_ns = self.clock.monotonic_ns(ticks);
                self.records.memory.extend(MemoryEvent::of_record(record.tag, thread, time_ns, |at| record.word(at)));
            }
            Tag::Device => {
                // It is about another thread, or about none.
                return self.activity(record);
            }
            Tag::InputsReference => self.set_inputs(self.inputs.row(record.body)),
            Tag::InputsInPlace => {
                return self.set_inputs(self.inputs.row_in_place(record.bytes(8, record.halves(0).0 as usize)));
            }
            Tag::Counter => {
                let id = record.halves(0).0;
                let name = if id < self.names { id } else { self.id_of_text("(name lost)".into()) };
                let (time_ns, value) = (self.clock.monotonic_ns(ticks), record.word(1) as i64);
                self.records.samples.push(Sample { thread, name, time_ns, value });
            }
            Tag::ProfilerState => {
                let (since_ns, number) = (self.clock.monotonic_ns(ticks), record.word(0));
                self.records.profiler_states.push(ProfilerState { thread, since_ns, number });
            }
            // The process's own, which say nothing about this thread, and `Pad`, which says nothing at all.
            Tag::Name
            | Tag::Overload
            | Tag::Inputs
            | Tag::Fact
            | Tag::Clock
            | Tag::Window
            | Tag::CallsStop
            | Tag::DeviceClock
            | Tag::Pad => {
                return;
            }
            // They are read as the long ones that they stand for.
            Tag::ShortBegin
            | Tag::ShortBeginBackward
            | Tag::TimedBegin
            | Tag::TimedBeginSame
            | Tag::TimedBeginNext
            | Tag::ShortEnd
            | Tag::ShortCallEnd => return,
        }
        // A call may be written long after it began.
        self.last = self.last.max(Some(ticks));
    }

    #[inline]
    fn begin(&mut self, record: &Record) {
        let (name, begin) = match record.begin {
            Some(begin) if begin.name < self.names => (begin.name, begin),
            Some(begin) => (self.id_of_text("(name lost)".into()), begin),
            None => {
                let (len, scope) = record.halves(0);
                let begin = Begin { name: 0, scope: scope as u8, sequence_number: -1, forward_thread: 0 };
                (self.id_of_text(record.text(8, len as usize)), begin)
            }
        };
        let start_ns = self.clock.monotonic_ns(record.ticks);
        let (scope, is_async) = scope::decoded(begin.scope);
        let open = if scope::is_call(begin.scope) { &mut self.open_calls } else { &mut self.open };
        open.push((record.ticks, self.begun));
        self.records.events[self.begun] = Event {
            thread: self.records.thread.ordinal,
            name,
            scope,
            start_ns,
            end_ns: start_ns,
            is_unfinished: true,
            is_async,
            sequence_number: Some(begin.sequence_number).filter(|number| *number >= 0),
            forward_thread: Some(begin.forward_thread).filter(|thread| *thread != 0),
            inputs: None,
            collective: None,
        };
        self.begun += 1;
    }

    /// What the op was called with that has just begun.
    #[inline]
    fn set_inputs(&mut self, inputs: Option<u32>) {
        if let Some((_, event)) = self.open.last() {
            self.records.events[*event].inputs = inputs;
        }
    }

    /// Says of the innermost range that it is a collective.
    fn describe(&mut self, description: u32, record: &Record) {
        if let Some((_, at)) = self.open.last() {
            let sequence_number = sequence_number(record);
            self.records.events[*at].collective = Some(CollectiveOf { description, sequence_number });
        }
    }

    /// Takes what a device's profiler reported.
    fn activity(&mut self, record: &Record) {
        let (len, text_bytes) = device::lengths(record.word(0));
        let mut words = [0; device::LONGEST - 1];
        words.iter_mut().enumerate().take(len).for_each(|(at, word)| *word = record.word(at));
        let Some((mut activity, device_type)) = device::decode(&words) else { return };
        if let Some(name) = activity.name_mut() {
            *name = name.filter(|id| *id < self.names);
            if name.is_none() && text_bytes > 0 {
                *name = Some(self.id_of_text(record.text(8 * len, text_bytes)));
            }
        }
        self.records.device.push(DeviceActivity { device_type, record: activity });
    }

    fn id_of_text(&mut self, text: String) -> u32 {
        let texts = &mut self.records.texts;
        let next = self.names + texts.len() as u32;
        let id = *self.ids_of_texts.entry(text.clone()).or_insert(next);
        if id == next {
            texts.push(text);
        }
        id
    }

    /// An end without a begin belongs to an op that was open when recording began, or whose begin a ring gave up.
    #[inline]
    fn end(&mut self, record: &Record) {
        match self.open.pop() {
            Some((_, at)) => self.end_event(at, record.ticks),
            None => self.lose_begin(record.ticks),
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
        let event = &mut self.records.events[at];
        event.end_ns = self.clock.monotonic_ns(ticks).max(event.start_ns);
        event.is_unfinished = false;
    }

    fn finish(mut self) -> ThreadRecords<'e> {
        for (start, at) in std::mem::take(&mut self.open_calls) {
            let stop = self.call_stops.partition_point(|ticks| *ticks < start);
            match self.call_stops.get(stop) {
                Some(ticks) => self.end_event(at, *ticks),
                None => self.open.push((start, at)),
            }
        }
        self.records.left_open.append(&mut self.open);
        self.records.last_ticks = self.last.unwrap_or(0);
        self.records.last_ns = self.last.map(|ticks| self.clock.monotonic_ns(ticks));
        self.records
    }
}

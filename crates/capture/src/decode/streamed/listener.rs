//! What hears of a thread's records, and what tells it.

use crate::MemoryEvent;
use crate::clock::TickCursor;
use crate::decode::process::ProcessRecords;
use crate::decode::record::Record;
use crate::decode::replay::sequence_number;
use crate::layout::{Tag, scope};
use crate::short::Begin;

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
    /// The range ends that left the stack when one around it ended, and that so many have left after.
    fn end_left(&mut self, _at_ns: i64, _after: usize) {
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

/// Tells a listener what records say.
pub(super) struct Replay<'a, L> {
    pub(super) thread: u32,
    pub(super) names: u32,
    pub(super) process: &'a ProcessRecords,
    pub(super) clock: TickCursor<'a>,
    pub(super) listener: &'a mut L,
}

impl<L: Listener> Replay<'_, L> {
    #[inline(always)]
    pub(super) fn take(&mut self, record: &Record) {
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
            Tag::EndLeft => self.listener.end_left(at_ns, record.word(0) as usize),
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

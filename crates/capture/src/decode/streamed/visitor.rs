//! The visitor of a thread's records, and what calls it.

use crate::MemoryEvent;
use crate::clock::TickCursor;
use crate::decode::process::ProcessRecords;
use crate::decode::record::Record;
use crate::decode::replay::sequence_number;
use crate::layout::{Tag, scope};
use crate::short::Begin;

/// Visits a thread's records, in their order. Calls of Python and of modules have a stack of their own, and their
/// begins are written late.
pub trait RecordVisitor {
    /// An op or a label begins.
    fn begin(&mut self, at_ns: i64, begin: &Begin);
    /// The innermost open one was called with this row of the inputs.
    fn set_inputs(&mut self, row: Option<u32>);
    /// The innermost open one ends; its begin may not be among the records.
    fn end(&mut self, at_ns: i64);
    /// A labelled step begins.
    fn begin_step(&mut self, at_ns: i64, number: i64);
    /// The labelled step of this number ends.
    fn end_step(&mut self, at_ns: i64, number: i64);
    /// Something happened that cannot be understood from this thread's records in their order: the caller has to decode
    /// the whole capture.
    fn fall_back(&mut self);
    /// The range ends that has so many open ones inside it.
    fn end_outer(&mut self, _at_ns: i64, _inside: usize) {
        self.fall_back();
    }
    /// The range ends that left the stack when one around it ended, and that so many have left after.
    fn end_left(&mut self, _at_ns: i64, _after: usize) {
        self.fall_back();
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
    /// Whether what was recorded behind the selected times is still needed.
    fn needs_more(&self) -> bool {
        false
    }
}

/// Calls a visitor for each record.
pub(super) struct Replay<'a, L> {
    pub(super) thread: u32,
    pub(super) names: u32,
    pub(super) process: &'a ProcessRecords,
    pub(super) clock: TickCursor<'a>,
    pub(super) visitor: &'a mut L,
}

impl<L: RecordVisitor> Replay<'_, L> {
    #[inline(always)]
    pub(super) fn take(&mut self, record: &Record) {
        match record.tag {
            Tag::Begin | Tag::BeginSequence | Tag::BeginBackward => match &record.begin {
                Some(begin) if scope::is_call(begin.scope) => {
                    self.visitor.begin_call(self.clock.monotonic_ns(record.ticks), record.ticks, begin);
                }
                Some(begin) if begin.name < self.names => {
                    self.visitor.begin(self.clock.monotonic_ns(record.ticks), begin);
                }
                _ => self.visitor.fall_back(),
            },
            Tag::End => self.visitor.end(self.clock.monotonic_ns(record.ticks)),
            Tag::InputsReference => self.visitor.set_inputs(self.process.inputs.row(record.body)),
            Tag::CallEnd => self.visitor.end_call(self.clock.monotonic_ns(record.ticks)),
            _ => self.take_rare(record),
        }
    }

    #[inline(never)]
    fn take_rare(&mut self, record: &Record) {
        let at_ns = self.clock.monotonic_ns(record.ticks);
        match record.tag {
            Tag::InputsInPlace => {
                let bytes = record.bytes(8, record.halves(0).0 as usize);
                self.visitor.set_inputs(self.process.inputs.row_in_place(bytes));
            }
            Tag::StepBegin => self.visitor.begin_step(at_ns, record.word(0) as i64),
            Tag::StepEnd => self.visitor.end_step(at_ns, record.word(0) as i64),
            // Which name a text is, is only known of the whole capture.
            Tag::BeginText => self.visitor.fall_back(),
            Tag::EndOuter => self.visitor.end_outer(at_ns, record.word(0) as usize),
            Tag::EndLeft => self.visitor.end_left(at_ns, record.word(0) as usize),
            Tag::Collective => {
                let name = Some(record.halves(0).0).filter(|name| *name < self.names);
                self.visitor.set_collective(name, sequence_number(record));
            }
            Tag::CollectiveText => self.visitor.set_collective(None, sequence_number(record)),
            Tag::OptimizerStep => self.visitor.optimizer_step(at_ns, None),
            Tag::NumberedOptimizerStep => self.visitor.optimizer_step(at_ns, Some(record.word(0) as i64)),
            Tag::Memory | Tag::MemoryReserved | Tag::OutOfMemory => {
                let event = MemoryEvent::of_record(record.tag, self.thread, at_ns, |at| record.word(at));
                event.iter().for_each(|event| self.visitor.memory(event));
            }
            _ => {}
        }
    }
}

//! A part: the records of one thread within one segment, and the records in it.

use super::record::{Record, half_at, read_record};
use crate::clock::TickClock;
use crate::layout::Tag;
use crate::short::Reference;
use std::ops::Range;

/// One thread's records within one segment, where they lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// The thread's number in the file.
    pub(super) ordinal: u32,
    /// The part's number within the thread.
    pub(super) number: u32,
    /// Which segment, and from where to where in it.
    pub(super) segment: usize,
    pub(super) at: usize,
    pub(super) end: usize,
    /// Ticks of its first record.
    pub(super) first_ticks: u64,
    /// How many of its records begin an event.
    pub(super) begins: usize,
    /// Whether replaying it tells anything of the thread.
    pub(super) is_replayed: bool,
    /// Its activity records among all: from, to.
    pub(super) activities: (usize, usize),
}

/// The parts of a thread that are replayed.
#[derive(Clone, Debug)]
pub(super) struct ReplayedParts<'a> {
    pub(super) parts: &'a [Part],
    /// Those whose ranges become events. Behind them only the ends of these are looked for.
    pub(super) selected: Range<usize>,
}

impl<'a> ReplayedParts<'a> {
    /// All parts that may tell of what began within `times`.
    pub(super) fn within(parts: &'a [Part], times: &Range<i64>, clock: &TickClock) -> Self {
        if times.is_empty() {
            return Self { parts, selected: 0..0 };
        }
        let begins_at = |part: &Part| clock.monotonic_ns(part.first_ticks);
        // What ends a part begins the next one, and the first record behind a part's begin may be a little older.
        let first = parts.iter().skip(1).take_while(|next| begins_at(next) < times.start).count();
        let behind = parts[first..].iter().position(|part| begins_at(part) >= times.end);
        let last = behind.map_or(parts.len(), |behind| first + behind + 1);
        Self { parts, selected: first.min(last)..last }
    }

    /// How many events they begin.
    pub(super) fn events(&self) -> usize {
        self.parts[self.selected.clone()].iter().map(|part| part.begins).sum()
    }
}

/// Records, decoded where they lie. What a begin says of its end comes as a record of its own.
#[derive(Clone)]
pub(super) struct Records<'a> {
    part: &'a [u8],
    at: usize,
    reference: Option<Reference>,
    /// The end that the last begin said. What the op was called with comes first.
    end_of_last: Option<Record<'static>>,
}

impl<'a> Records<'a> {
    /// Those of a part that has these bytes.
    pub(super) fn of(part: &'a [u8]) -> Self {
        Self { part, at: 0, reference: None, end_of_last: None }
    }

    /// Whether what comes next is what the last op was called with.
    #[inline]
    fn is_at_inputs(&self) -> bool {
        half_at(self.part, self.at).is_some_and(|half| half as u8 == Tag::InputsReference as u8)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Record<'a>> {
        if self.end_of_last.is_some() && !self.is_at_inputs() {
            return self.end_of_last.take();
        }
        let (record, len) = read_record(self.part, self.at, self.reference.as_ref())?;
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

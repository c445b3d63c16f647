//! Events in 48 bytes each.

use super::events::{CollectiveOf, Event};
use crate::huge::prefer_large_pages;
use std::cmp::Reverse;
use std::ops::Range;

/// In place of an index: none.
const NONE: u32 = u32::MAX;

/// An event as the list holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PackedEvent {
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    /// Negative: none.
    pub(super) sequence_number: i64,
    pub(super) name: u32,
    pub(super) thread: u32,
    /// [`NONE`] without them.
    pub(super) inputs: u32,
    /// Index into the list's [`Rare`]; [`NONE`] without one.
    pub(super) rare: u32,
    pub(super) scope: u8,
    pub(super) is_unfinished: bool,
    pub(super) is_async: bool,
}

/// What few events have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Rare {
    pub(super) forward_thread: Option<u64>,
    pub(super) collective: Option<CollectiveOf>,
}

impl PackedEvent {
    /// All zero, without what may be absent.
    pub(super) const NOTHING: Self = Self {
        start_ns: 0,
        end_ns: 0,
        sequence_number: -1,
        name: 0,
        thread: 0,
        inputs: NONE,
        rare: NONE,
        scope: 0,
        is_unfinished: false,
        is_async: false,
    };

    /// `rares` takes what few events have.
    #[inline]
    pub(super) fn of(event: &Event, rares: &mut Vec<Rare>) -> Self {
        let mut packed = Self {
            start_ns: event.start_ns,
            end_ns: event.end_ns,
            sequence_number: event.sequence_number.unwrap_or(-1),
            name: event.name,
            thread: event.thread,
            scope: event.scope,
            is_unfinished: event.is_unfinished,
            is_async: event.is_async,
            ..Self::NOTHING
        };
        packed.set_inputs(event.inputs);
        packed.set_rare(Rare { forward_thread: event.forward_thread, collective: event.collective }, rares);
        packed
    }

    #[inline]
    fn unpacked(&self, rares: &[Rare]) -> Event {
        let Rare { forward_thread, collective } = self.rare(rares);
        Event {
            thread: self.thread,
            name: self.name,
            scope: self.scope,
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            is_unfinished: self.is_unfinished,
            is_async: self.is_async,
            sequence_number: (self.sequence_number >= 0).then_some(self.sequence_number),
            forward_thread,
            inputs: (self.inputs != NONE).then_some(self.inputs),
            collective,
        }
    }

    #[inline]
    pub(super) fn set_inputs(&mut self, inputs: Option<u32>) {
        self.inputs = inputs.unwrap_or(NONE);
    }

    #[inline]
    pub(super) fn rare(&self, rares: &[Rare]) -> Rare {
        match self.rare {
            NONE => Rare::default(),
            index => rares[index as usize],
        }
    }

    /// Backward nodes that follow one another mostly have the same.
    #[inline]
    pub(super) fn set_rare(&mut self, rare: Rare, rares: &mut Vec<Rare>) {
        self.rare = NONE;
        if rare != Rare::default() {
            if rares.last() != Some(&rare) {
                rares.push(rare);
            }
            self.rare = rares.len() as u32 - 1;
        }
    }

    /// Its [`Rare`] lies so much further in another list.
    pub(super) fn shift_rare(&mut self, by: u32) {
        if self.rare != NONE {
            self.rare += by;
        }
    }

    #[inline]
    pub(super) fn end(&mut self, end_ns: i64) {
        self.end_ns = end_ns.max(self.start_ns);
        self.is_unfinished = false;
    }
}

/// A list of [events](Event) that takes half the room of one of the events themselves.
#[derive(Clone, Default, Debug)]
pub struct EventList {
    packed: Vec<PackedEvent>,
    rares: Vec<Rare>,
}

impl EventList {
    pub(super) fn of_packed(packed: Vec<PackedEvent>, rares: Vec<Rare>) -> Self {
        Self { packed, rares }
    }

    pub(super) fn into_packed(self) -> (Vec<PackedEvent>, Vec<Rare>) {
        (self.packed, self.rares)
    }

    /// Makes room for `more` events, where there is that much memory.
    pub fn try_reserve(&mut self, more: usize) {
        if self.packed.try_reserve(more).is_ok() {
            prefer_large_pages(&mut self.packed);
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.packed.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// The event at `index`.
    ///
    /// # Panics
    /// When there are fewer.
    #[inline]
    pub fn at(&self, index: usize) -> Event {
        self.packed[index].unpacked(&self.rares)
    }

    /// All of them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Event> + ExactSizeIterator + Clone + '_ {
        self.packed.iter().map(|packed| packed.unpacked(&self.rares))
    }

    /// Whether any has this name, or this description of a collective.
    pub(crate) fn has_name(&self, name: u32) -> bool {
        let is_description = |rare: &Rare| rare.collective.is_some_and(|of| of.description == name);
        self.packed.iter().any(|event| event.name == name) || self.rares.iter().any(is_description)
    }

    /// Where the events of a thread are, in a list by thread.
    pub fn of_thread(&self, thread: u32) -> Range<usize> {
        let first = self.packed.partition_point(|event| event.thread < thread);
        first..self.packed.partition_point(|event| event.thread <= thread)
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, event: Event) {
        self.packed.push(PackedEvent::of(&event, &mut self.rares));
    }

    /// Keeps the events for which `keep` is true, as it leaves them.
    pub fn retain_mut(&mut self, mut keep: impl FnMut(&mut Event) -> bool) {
        let rares = &mut self.rares;
        self.packed.retain_mut(|packed| {
            let before = packed.unpacked(rares);
            let mut event = before;
            let is_kept = keep(&mut event);
            if event != before {
                *packed = PackedEvent::of(&event, rares);
            }
            is_kept
        });
    }

    /// Orders them by thread and start, longest first; of what begins and ends together the order stays.
    pub fn sort(&mut self) {
        self.packed.sort_by_key(|event| (event.thread, event.start_ns, Reverse(event.end_ns)));
    }
}

impl PartialEq for EventList {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for EventList {}

impl FromIterator<Event> for EventList {
    fn from_iter<I: IntoIterator<Item = Event>>(events: I) -> Self {
        let mut list = Self::default();
        list.extend(events);
        list
    }
}

impl Extend<Event> for EventList {
    fn extend<I: IntoIterator<Item = Event>>(&mut self, events: I) {
        events.into_iter().for_each(|event| self.push(event));
    }
}

impl<const N: usize> From<[Event; N]> for EventList {
    fn from(events: [Event; N]) -> Self {
        events.into_iter().collect()
    }
}

impl From<Vec<Event>> for EventList {
    fn from(events: Vec<Event>) -> Self {
        events.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn event()(
            (thread, name, scope) in (0_u32..3, 0_u32..5, any::<u8>()),
            (start_ns, end_ns) in (any::<i64>(), any::<i64>()),
            (is_unfinished, is_async) in any::<(bool, bool)>(),
            sequence_number in prop::option::of(0..i64::MAX),
            forward_thread in prop::option::of(0_u64..3),
            inputs in prop::option::of(0..u32::MAX),
            collective in prop::option::of((0_u32..3, prop::option::of(any::<i64>()))),
        ) -> Event {
            let collective = collective.map(|(description, sequence_number)| {
                CollectiveOf { description, sequence_number }
            });
            Event {
                thread, name, scope, start_ns, end_ns, is_unfinished, is_async, sequence_number, forward_thread, inputs,
                collective,
            }
        }
    }

    proptest! {
        #[test]
        fn events_come_out_as_they_went_in(events in prop::collection::vec(event(), 0..50)) {
            let mut list = EventList::from(events.clone());
            prop_assert!(list.iter().eq(events.iter().copied()));
            let end = |event: &mut Event| {
                event.forward_thread = event.inputs.map(u64::from);
                event.name > 1
            };
            let mut expected = events;
            expected.retain_mut(end);
            list.retain_mut(end);
            prop_assert_eq!(&list, &expected.clone().into());
            expected.sort_by_key(|event| (event.thread, event.start_ns, Reverse(event.end_ns)));
            list.sort();
            prop_assert!((0..list.len()).all(|at| list.at(at) == expected[at]));
            let of_first = expected.iter().take_while(|event| event.thread == 0).count();
            prop_assert_eq!(list.of_thread(0), 0..of_first);
        }
    }

    #[test]
    fn an_event_takes_48_bytes() {
        assert_eq!(size_of::<PackedEvent>(), 48);
    }
}

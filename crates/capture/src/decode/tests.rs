//! The stages against a decoder that takes everything one after the other and remembers all of it.

mod devices;
pub(super) mod made;
mod slow;

use super::*;
use crate::Inputs;
use crate::clock::{ClockPoint, TickClock};
use made::{SEGMENT, capture_bytes, made_thread};
use proptest::prelude::*;

/// What is told of an event: thread, name, scope, start and end, whether it is unfinished and whether it ended on
/// another thread, sequence number, forward thread, collective, and the value that it was called with.
pub(super) type Summary = (
    u32,
    String,
    u8,
    (i64, i64),
    (bool, bool),
    Option<i64>,
    Option<u64>,
    Option<(String, Option<i64>)>,
    Option<String>,
);

fn summaries(decoded: &Decoded, inputs: &[Inputs]) -> Vec<Summary> {
    let event = |event: &Event| {
        let name = decoded.names[event.name as usize].clone();
        let times = (event.start_ns, event.end_ns);
        let collective = event
            .collective
            .map(|recorded| (decoded.names[recorded.description as usize].clone(), recorded.sequence_number));
        let value = event.inputs.map(|row| inputs[row as usize].concrete.clone());
        let (number, forward_thread) = (event.sequence_number, event.forward_thread);
        let ended = (event.is_unfinished, event.is_async);
        (event.thread, name, event.scope, times, ended, number, forward_thread, collective, value)
    };
    decoded.events.iter().map(event).collect()
}

fn assert_same(bytes: &[u8], is_damaged: bool) -> Result<(), TestCaseError> {
    let opened = ClockPoint { ticks: 1_000, monotonic_ns: 5_000, unix_ns: 0 };
    let scanned = Scanned::new(bytes, SEGMENT);
    let clock = TickClock::new(opened, scanned.process.clock_points.iter().copied());
    let decoded = scanned.replay(&clock, &opened);
    let slow = slow::decode(bytes, SEGMENT, opened);
    prop_assert_eq!(&scanned.damaged, &slow.damaged);
    prop_assert_eq!(&decoded.threads, &slow.threads);
    prop_assert_eq!(&decoded.names, &slow.names);
    prop_assert_eq!(scanned.process.metadata(), slow.metadata);
    prop_assert_eq!(summaries(&decoded, scanned.process.inputs.list()), slow.events);
    prop_assert_eq!(&decoded.steps, &slow.steps);
    prop_assert_eq!(&decoded.optimizer_steps, &slow.optimizer_steps);
    prop_assert_eq!(&decoded.samples, &slow.samples);
    prop_assert_eq!(&decoded.profiler_states, &slow.profiler_states);
    prop_assert_eq!(&decoded.windows, &slow.windows);
    if !is_damaged {
        prop_assert_eq!(&decoded.memory, &slow.memory);
    }
    prop_assert_eq!(decoded.last_ns, slow.last_ns);
    Ok(())
}

proptest! {
    #[test]
    fn what_is_decoded_is_what_a_slow_decoder_says(threads in prop::collection::vec(made_thread(), 1..5)) {
        assert_same(&capture_bytes(&threads), false)?;
    }

    #[test]
    fn a_ring_finds_all_that_later_records_need(threads in prop::collection::vec(made_thread(), 1..5)) {
        let bytes = capture_bytes(&threads);
        let parts = Scanned::new(&bytes, SEGMENT).parts;
        let read = parts.iter().flat_map(|part| part.records.clone());
        let needed = read.filter(|record| record.tag.is_definition()).count();
        let found: usize = bytes.chunks(SEGMENT).map(|segment| crate::definitions(segment).len()).sum();
        prop_assert_eq!(found, needed);
    }

    #[test]
    fn damage_makes_no_difference_between_them(
        threads in prop::collection::vec(made_thread(), 1..4),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = capture_bytes(&threads);
        // Threads without a record make no capture at all.
        for (at, byte) in damage.into_iter().filter(|_| !capture_bytes(&threads).is_empty()) {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        assert_same(&bytes, true)?;
    }
}

#[test]
fn the_captures_made_here_hold_all_that_is_compared() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut events, mut nested, mut elsewhere, mut unfinished, mut texts, mut parts, mut memory) =
        (0, 0, 0, 0, 0, 0, 0);
    let (mut steps_elsewhere, mut collectives, mut inputs, mut timed) = (0, 0, 0, 0);
    for _ in 0..200 {
        use proptest::strategy::{Strategy, ValueTree};
        let threads = prop::collection::vec(made_thread(), 1..5).new_tree(&mut runner).unwrap().current();
        let bytes = capture_bytes(&threads);
        let opened = ClockPoint { ticks: 1_000, monotonic_ns: 5_000, unix_ns: 0 };
        let scanned = Scanned::new(&bytes, SEGMENT);
        let clock = TickClock::new(opened, scanned.process.clock_points.iter().copied());
        let decoded = scanned.replay(&clock, &opened);
        assert_eq!(scanned.damaged, [""; 0]);
        events += decoded.events.len();
        nested += decoded.events.windows(2).filter(|pair| pair[1].end_ns < pair[0].end_ns).count();
        unfinished += decoded.events.iter().filter(|event| event.is_unfinished).count();
        memory += decoded.memory.len();
        texts += decoded.names.len() - scanned.process.names.len();
        parts += scanned.parts.len();
        let slow = slow::decode(&bytes, SEGMENT, opened);
        elsewhere += slow.ended_elsewhere;
        steps_elsewhere += slow.steps_ended_elsewhere;
        collectives += decoded.events.iter().filter(|event| event.collective.is_some()).count();
        inputs += slow.with_inputs;
        let records = scanned.parts.iter().flat_map(|part| part.records.clone());
        timed += records.filter(|record| record.ended.is_some()).count();
    }
    let all =
        [events, nested, elsewhere, unfinished, texts, parts, memory, steps_elsewhere, collectives, inputs, timed];
    assert!(
        all.iter().all(|count| *count > 50),
        "events, nested, elsewhere, unfinished, texts, parts, memory, steps, collectives, inputs, timed: {all:?}"
    );
}

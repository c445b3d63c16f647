//! The stages against a decoder that takes everything one after the other and remembers all of it.

mod devices;
pub(super) mod made;
mod slow;

use super::*;
use crate::clock::ClockPoint;
use crate::{Capture, CaptureReader};
use made::{SEGMENT, capture_bytes, made_thread, nested, without_ends_elsewhere};
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

fn summaries(capture: &Capture) -> Vec<Summary> {
    let Capture { events, names, inputs, .. } = capture;
    let event = |event: Event| {
        let name = names[event.name as usize].clone();
        let times = (event.start_ns, event.end_ns);
        let collective =
            event.collective.map(|recorded| (names[recorded.description as usize].clone(), recorded.sequence_number));
        let value = event.inputs.map(|row| inputs[row as usize].concrete.clone());
        let (number, forward_thread) = (event.sequence_number, event.forward_thread);
        let ended = (event.is_unfinished, event.is_async);
        (event.thread, name, event.scope, times, ended, number, forward_thread, collective, value)
    };
    events.iter().map(event).collect()
}

const OPENED: ClockPoint = ClockPoint { ticks: 1_000, monotonic_ns: 5_000, unix_ns: 0 };

/// What reads these segments.
fn reader(bytes: &[u8]) -> CaptureReader {
    CaptureReader::of_bytes(file_of(bytes)).expect("a capture")
}

/// The file that has these segments.
fn file_of(bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0; crate::layout::HEADER_BYTES];
    file[..8].copy_from_slice(&crate::layout::MAGIC);
    let words = [(8, crate::layout::VERSION), (16, SEGMENT as u32), (20, 1), (96, 1)];
    words.into_iter().for_each(|(at, word)| file[at..at + 4].copy_from_slice(&word.to_le_bytes()));
    file[72..80].copy_from_slice(&OPENED.ticks.to_le_bytes());
    file[80..88].copy_from_slice(&OPENED.monotonic_ns.to_le_bytes());
    file.extend(bytes);
    file
}

/// What is decoded of these segments.
fn decoded(bytes: &[u8]) -> Capture {
    reader(bytes).read(|_| EVER).unwrap()
}

fn assert_same(bytes: &[u8], is_damaged: bool) -> Result<(), TestCaseError> {
    let slow = slow::decode(bytes, SEGMENT, OPENED);
    let decoded = decoded(bytes);
    let damaged: Vec<&String> = decoded.damaged.iter().filter(|text| text.starts_with("segment")).collect();
    prop_assert_eq!(damaged, slow.damaged.iter().collect::<Vec<_>>());
    prop_assert_eq!(&decoded.threads, &slow.threads);
    prop_assert_eq!(&decoded.metadata, &slow.metadata);
    prop_assert_eq!(summaries(&decoded), slow.events);
    prop_assert_eq!(&decoded.steps, &slow.steps);
    prop_assert_eq!(&decoded.optimizer_steps, &slow.optimizer_steps);
    prop_assert_eq!(texts_of(&decoded.samples, &decoded.names), texts_of(&slow.samples, &slow.names));
    prop_assert_eq!(&decoded.profiler_states, &slow.profiler_states);
    prop_assert_eq!(&decoded.windows, &slow.windows);
    if !is_damaged {
        prop_assert_eq!(&decoded.memory, &slow.memory);
    }
    prop_assert_eq!(decoded.last_ns, slow.last_ns);
    Ok(())
}

fn texts_of<'a>(samples: &[Sample], names: &'a [String]) -> Vec<(i64, &'a str, u32, i64)> {
    let text = |sample: &Sample| (sample.time_ns, names[sample.name as usize].as_str(), sample.thread, sample.value);
    let mut samples: Vec<_> = samples.iter().map(text).collect();
    samples.sort_unstable();
    samples
}

#[test]
fn what_is_open_reaches_to_an_end_that_was_written_after_the_file_was_first_read() {
    let [open, ended] = [None, Some(7)].map(|took| file_of(&capture_bytes(&[nested(took)])));
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    let ends = |capture: &Capture| capture.events.iter().map(|event| event.end_ns).collect::<Vec<_>>();
    let read = |in_lists: bool| {
        std::fs::write(&path, &open).unwrap();
        let reader = CaptureReader::open(&path).unwrap();
        std::fs::write(&path, &ended).unwrap();
        let mut list = EventList::default();
        if !in_lists {
            return reader.read(|_| EVER).unwrap();
        }
        assert!(reader.read_in_lists(0, &EVER, &mut |events| list.extend(events.iter())).unwrap());
        Capture { events: list, ..reader.capture().clone() }
    };
    assert_eq!(ends(&read(false)), ends(&read(true)));
    let capture = read(false);
    let inner = capture.events.at(1);
    assert_eq!((inner.is_unfinished, inner.end_ns - inner.start_ns), (false, 7));
    assert_eq!(capture.events.at(0).end_ns, inner.end_ns);
}

proptest! {
    #[test]
    fn what_is_decoded_is_what_a_slow_decoder_says(threads in prop::collection::vec(made_thread(), 1..5)) {
        assert_same(&capture_bytes(&threads), false)?;
    }

    #[test]
    fn a_ring_finds_all_that_later_records_need(threads in prop::collection::vec(made_thread(), 1..5)) {
        let bytes = capture_bytes(&threads);
        let needed = slow::records_of(&bytes, SEGMENT).iter().filter(|record| record.tag.is_definition()).count();
        let found: usize = bytes.chunks(SEGMENT).map(|segment| crate::definitions(segment).len()).sum();
        prop_assert_eq!(found, needed);
    }

    #[test]
    fn of_some_times_everything_is_decoded_that_began_then(
        threads in prop::collection::vec(made_thread(), 1..5),
        times in (0..40_000_i64, 0..20_000_i64),
    ) {
        let bytes = capture_bytes(&threads);
        let times = 5_000 + times.0..5_000 + times.0 + times.1;
        let (whole, part) = (decoded(&bytes), reader(&bytes).read(|_| times.clone()).unwrap());
        let of_events = |capture: &Capture| {
            summaries(capture).into_iter().filter(|event| times.contains(&event.3.0)).collect::<Vec<_>>()
        };
        prop_assert_eq!(of_events(&part), of_events(&whole));
        let of_memory = |capture: &Capture| {
            capture.memory.iter().filter(|event| times.contains(&event.time_ns)).copied().collect::<Vec<_>>()
        };
        prop_assert_eq!(of_memory(&part), of_memory(&whole));
        prop_assert_eq!(part.last_ns, whole.last_ns);
    }

    #[test]
    fn lists_that_follow_one_another_are_the_whole_list(threads in prop::collection::vec(made_thread(), 1..5)) {
        let bytes = capture_bytes(&without_ends_elsewhere(threads));
        let (whole, reader) = (decoded(&bytes), reader(&bytes));
        let mut joined = EventList::default();
        let mut is_known = true;
        for thread in 0..reader.capture().threads.len() as u32 {
            is_known &= reader.read_in_lists(thread, &EVER, &mut |list| joined.extend(list.iter())).unwrap();
        }
        if is_known {
            prop_assert_eq!(joined, whole.events);
        }
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
    let (mut lists, mut whole) = (0, 0);
    for _ in 0..300 {
        use proptest::strategy::{Strategy, ValueTree};
        let threads = prop::collection::vec(made_thread(), 1..5).new_tree(&mut runner).unwrap().current();
        let bytes = capture_bytes(&threads);
        let slow = slow::decode(&bytes, SEGMENT, OPENED);
        elsewhere += slow.ended_elsewhere;
        steps_elsewhere += slow.steps_ended_elsewhere;
        inputs += slow.with_inputs;
        timed += slow::records_of(&bytes, SEGMENT).iter().filter(|record| record.ended.is_some()).count();
        let decoded = decoded(&bytes);
        let reader = reader(&capture_bytes(&without_ends_elsewhere(threads)));
        assert_eq!(decoded.damaged, [""; 0]);
        let mut in_lists = |thread| reader.read_in_lists(thread, &EVER, &mut |_| lists += 1).unwrap();
        whole += (0..decoded.threads.len() as u32).filter(|thread| !in_lists(*thread)).count();
        events += decoded.events.len();
        let pairs = decoded.events.iter().zip(decoded.events.iter().skip(1));
        nested += pairs.filter(|(first, second)| second.end_ns < first.end_ns).count();
        unfinished += decoded.events.iter().filter(|event| event.is_unfinished).count();
        memory += decoded.memory.len();
        texts += slow.names.len();
        parts += bytes.len() / SEGMENT;
        collectives += decoded.events.iter().filter(|event| event.collective.is_some()).count();
    }
    let all = [
        events,
        nested,
        elsewhere,
        unfinished,
        texts,
        parts,
        memory,
        steps_elsewhere,
        collectives,
        inputs,
        timed,
        lists,
        whole,
    ];
    assert!(
        all.iter().all(|count| *count > 50),
        "events, nested, elsewhere, unfinished, texts, parts, memory, steps, collectives, inputs, timed, in lists, not in lists: {all:?}"
    );
}

//! What is added up without a list of events, against the list.

mod device;
mod operators;

use super::averages;
use crate::{Average, Events, Grouping, NamedAverage, Wanted, averages as averages_of_lists};
use proptest::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use stepscope_capture::inputs::{Signature, pack};
use stepscope_capture::layout::{
    BeginWord, HEADER_BYTES, MAGIC, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC, Tag, VERSION, first_word, padded,
};
use stepscope_run::{Exclude, RecordFilter, read_capture};

const NAMES: [&str; 6] = ["a", "b", "aten::is_leaf", "ProfilerStep#4", "a", "c"];
const SEGMENT: usize = 4096;

/// What a thread does next, and how many ns after what it did before.
#[derive(Clone, Debug)]
enum Does {
    Begin { name: u32, scope: u8, forward: u64, sizes: Option<i64> },
    End,
    Step(Option<i64>),
    Memory { bytes: i64, is_host: bool },
    Switch(bool),
    State(u64),
    Rare(Tag),
}

fn does() -> impl Strategy<Value = Does> {
    let begin = (
        0..NAMES.len() as u32,
        prop::sample::select(vec![0_u8, 0, 0, 0, 0, 0, 1, 1, 7, 7, 10, 10, 14]),
        0_u64..3,
        any::<bool>(),
    );
    prop_oneof![
        300 => (begin, 0_i64..3).prop_map(|((name, scope, forward, has_sizes), size)| Does::Begin {
            name,
            scope,
            forward,
            sizes: has_sizes.then_some(size)
        }),
        300 => Just(Does::End),
        10 => prop::option::of(0_i64..2).prop_map(Does::Step),
        20 => (-9_i64..9, any::<bool>()).prop_map(|(bytes, is_host)| Does::Memory { bytes, is_host }),
        4 => any::<bool>().prop_map(Does::Switch),
        12 => (0_u64..4).prop_map(Does::State),
        1 => prop::sample::select(vec![Tag::EndOuter, Tag::EndLeft, Tag::EndElsewhere, Tag::BeginText]).prop_map(Does::Rare),
    ]
}

/// One thread's doings; most of them take time.
fn thread() -> impl Strategy<Value = Vec<(u64, Does)>> {
    prop::collection::vec((prop_oneof![1 => 0_u64..2, 99 => 1_u64..20], does()), 0..80)
}

/// A capture in the making.
struct Made {
    bytes: Vec<u8>,
    segment: Vec<u8>,
    thread: Vec<u64>,
    part: u64,
}

impl Made {
    fn put(&mut self, ticks: u64, tag: Tag, words: &[u64]) {
        if self.segment.len() + 8 + words.len() * 8 > SEGMENT - 64 {
            self.next_segment(ticks);
        }
        self.segment.extend(first_word(ticks, tag).to_le_bytes());
        self.segment.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    fn next_segment(&mut self, ticks: u64) {
        self.end_segment();
        let index = ((self.bytes.len() - HEADER_BYTES) / SEGMENT) as u64;
        self.segment.extend((u64::from(SEGMENT_MAGIC) << 32 | index).to_le_bytes());
        self.segment.resize(SEGMENT_HEADER_BYTES, 0);
        let handle = 70 + self.thread[0];
        let words = [self.thread[0] | self.part << 32, self.thread[1] | handle << 32, self.thread[2]];
        self.part += 1;
        // Taking a segment takes time: the record that needed it is older.
        self.put(ticks + 5, Tag::Thread, &words);
    }

    fn end_segment(&mut self) {
        if !self.segment.is_empty() {
            self.segment.resize(SEGMENT, 0);
            self.bytes.append(&mut self.segment);
        }
    }

    fn text(&mut self, ticks: u64, tag: Tag, word: u64, text: &[u8]) {
        let mut padded_text = text.to_vec();
        padded_text.resize(padded(text.len()), 0);
        let text = padded_text.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        let words: Vec<u64> = std::iter::once(word).chain(text).collect();
        self.put(ticks, tag, &words);
    }
}

fn capture_bytes(threads: &[Vec<(u64, Does)>]) -> Vec<u8> {
    let mut made = start();
    threads.iter().enumerate().for_each(|(ordinal, does)| put_thread(&mut made, ordinal, does));
    finished(made)
}

fn start() -> Made {
    let mut bytes = vec![0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..20].copy_from_slice(&(SEGMENT as u32).to_le_bytes());
    bytes[96] = 1;
    Made { bytes, segment: Vec::new(), thread: Vec::new(), part: 0 }
}

fn put_thread(made: &mut Made, ordinal: usize, does: &[(u64, Does)]) {
    made.thread = vec![ordinal as u64, 100 + ordinal as u64, 1 + ordinal as u64];
    made.part = 0;
    let mut ticks = 100;
    made.next_segment(ticks);
    if ordinal == 0 {
        for (id, name) in (0_u64..).zip(NAMES.into_iter().chain(device::NAMES)) {
            made.text(ticks, Tag::Name, id | (name.len() as u64) << 32, name.as_bytes());
        }
    }
    for (after, does) in does {
        ticks += after;
        record(made, ticks, does);
    }
    made.put(5_000, Tag::Clock, &[5_000, 0]);
    made.end_segment();
}

fn finished(mut made: Made) -> Vec<u8> {
    made.end_segment();
    made.bytes
}

fn record(made: &mut Made, ticks: u64, does: &Does) {
    match *does {
        Does::Begin { name, scope, forward, sizes } => {
            made.put(ticks, Tag::BeginBackward, &[BeginWord::pack(name, scope, 0), forward]);
            if let Some(size) = sizes.filter(|_| scope < 10) {
                let mut signature = Signature::default();
                signature.tensor(6, &[size], None);
                let packed = pack(signature.words());
                made.text(ticks, Tag::InputsInPlace, packed.len() as u64, &packed);
            }
        }
        Does::End => made.put(ticks, Tag::End, &[]),
        Does::Step(Some(number)) => made.put(ticks, Tag::StepBegin, &[number as u64]),
        Does::Step(None) => made.put(ticks, Tag::StepEnd, &[1]),
        Does::Memory { bytes, is_host } => {
            made.put(ticks, Tag::Memory, &[64 | u64::from(!is_host) << 48, bytes as u64, 1_000]);
        }
        Does::Switch(is_on) => made.put(ticks, Tag::Window, &[u64::from(is_on), 0]),
        Does::State(number) => made.put(ticks, Tag::ProfilerState, &[number]),
        Does::Rare(Tag::BeginText) => made.text(ticks, Tag::BeginText, 1, b"t"),
        Does::Rare(Tag::EndElsewhere) => made.put(ticks, Tag::EndElsewhere, &[0, 1]),
        Does::Rare(tag) => made.put(ticks, tag, &[0]),
    }
}

/// Nothing is left out when it is read.
fn everything() -> RecordFilter {
    RecordFilter { spans: vec![Range { start: i64::MIN, end: i64::MAX }], ..RecordFilter::default() }
}

/// What a list of events gives.
fn listed(path: &std::path::Path, filter: &RecordFilter, grouping: Grouping) -> Vec<NamedAverage> {
    let mut capture = read_capture(path, &everything()).unwrap();
    filter.apply(&mut capture);
    let events = Events::of(&capture, 0, Wanted { exclude_device: filter.exclude.device, ..Wanted::default() });
    let named = |average: Average| {
        let row = average.first as usize;
        let inputs = events.inputs.get(row).and_then(|inputs| events.input_texts.get(*inputs as usize));
        let name = events.names[events.name[row] as usize].clone();
        let sums = Average { list: 0, first: 0, ..average };
        NamedAverage {
            name,
            shapes: inputs.map_or(String::new(), |of| of.shapes.clone()),
            scope: events.scope[row],
            is_async: events.is_async[row],
            is_label: events.is_label(row),
            sums,
        }
    };
    averages_of_lists(&[&events], grouping).into_iter().map(named).collect()
}

fn filter() -> impl Strategy<Value = RecordFilter> {
    let spans = prop_oneof![
        Just(vec![Range { start: 0, end: 4_000 }]),
        Just(vec![Range { start: 0, end: 6_000 }]),
        (0_i64..500, 0_i64..500, 0_i64..100, 0_i64..500).prop_map(|(start, len, gap, more)| {
            vec![start..start + len, start + len + gap..start + len + gap + more]
        }),
        Just(vec![]),
    ];
    let thread = prop::option::of(100_u64..103);
    let states = prop::collection::vec(2_u64..4, 0..3);
    let exclude = prop::collection::vec(prop::bool::weighted(0.1), 3);
    (spans, thread, states, exclude).prop_map(|(spans, thread, states, exclude)| RecordFilter {
        spans,
        thread,
        states,
        exclude: Exclude {
            operators: exclude[0],
            labels: exclude[1],
            steps: exclude[2],
            calls: true,
            ..Exclude::default()
        },
    })
}

/// How many cases of each test had an event.
static CASES: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];

fn check(threads: &[Vec<(u64, Does)>], filter: &RecordFilter) -> Result<(), TestCaseError> {
    check_bytes(&capture_bytes(threads), filter, 0)
}

fn check_bytes(bytes: &[u8], filter: &RecordFilter, test: usize) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("1.capture");
    std::fs::write(&path, bytes).unwrap();
    for by_shapes in [false, true] {
        let grouping = Grouping { by_shapes, ..Grouping::default() };
        let found = averages(&path, filter, by_shapes).unwrap();
        CASES[test].fetch_add(u32::from(!found.is_empty()), Ordering::Relaxed);
        prop_assert_eq!(found, listed(&path, filter, grouping));
    }
    Ok(())
}

#[test]
fn what_is_added_up_is_what_a_list_says() {
    let cases = (prop::collection::vec(thread(), 1..4), filter());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(3_000));
    runner.run(&cases, |(threads, filter)| check(&threads, &filter)).unwrap();
    let cases = CASES[0].load(Ordering::Relaxed);
    assert!(cases > 1_000, "{cases} had an event");
}

/// Found by the test above: what is open at the end of the window ends elsewhere behind it.
#[test]
fn what_ends_elsewhere_behind_the_window_ends_with_it() {
    let begin = || Does::Begin { name: 0, scope: 0, forward: 0, sizes: None };
    let ends = (400, Does::Rare(Tag::EndElsewhere));
    let filter = RecordFilter { spans: vec![Range { start: 0, end: 150 }], ..RecordFilter::default() };
    let filter = RecordFilter { exclude: Exclude { calls: true, ..Exclude::default() }, ..filter };
    let open = vec![(1, begin()), (1, begin())];
    check(&[open.clone(), vec![ends.clone()]], &filter).unwrap();
    check(&[[open, vec![ends]].concat()], &filter).unwrap();
}

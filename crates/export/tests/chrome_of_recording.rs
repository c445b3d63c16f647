//! What is written while it is read, against what is written of a trace.

use proptest::prelude::*;
use serde_json::Value;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use stepscope_capture::inputs::{Signature, pack};
use stepscope_capture::layout::{
    BeginWord, HEADER_BYTES, MAGIC, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC, Tag, VERSION, first_word, padded,
};
use stepscope_engine::{Exclude, RecordFilter, RecordingRows};
use stepscope_export::{ProfileOptions, save_recording, save_window};

const NAMES: [&str; 11] = [
    "aten::mm",
    "forward",
    "Optimizer.step#SGD.step",
    "ProfilerStep#4",
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
    "Net:Net",
    "Linear:Net.fc",
    "train.py(3): main",
    "name=allreduce",
    "stepscope/profiler/_profile.py(3): step",
    "Python GC",
];
const SEGMENT: usize = 4096;

/// What a thread does next.
#[derive(Clone, Debug)]
enum Does {
    /// Name, scope, sequence number and 1, forward thread, and the size of its only input.
    Begin(u32, u8, u64, u64, Option<i64>),
    End,
    /// Name, scope, and how many ns before this record it begins.
    Call(u32, u8, u64),
    CallEnd,
    Step(Option<i64>),
    Mark(Option<i64>),
    Memory {
        bytes: i64,
        is_host: bool,
    },
    Counter(i64),
    Switch(bool),
    State(u64),
    Rare(Tag),
}

fn does() -> impl Strategy<Value = Does> {
    let op = (prop::sample::select(vec![0_u32, 1]), prop::sample::select(vec![0_u8, 0, 1]), 0_u64..4, 0_u64..3);
    let label = prop::sample::select(vec![1_u32, 1, 1, 2, 3, 4]);
    let call =
        (prop::sample::select(vec![5_u32, 6, 7, 9, 10]), prop::sample::select(vec![10_u8, 11, 12, 13]), 0_u64..3);
    prop_oneof![
        1000 => (op, prop::option::of(0_i64..3))
            .prop_map(|((name, scope, number, forward), size)| Does::Begin(name, scope, number, forward, size)),
        300 => (label, prop::option::weighted(0.1, 0_i64..3)).prop_map(|(name, size)| Does::Begin(name, 7, 0, 0, size)),
        1250 => Just(Does::End),
        40 => call.prop_map(|(name, scope, before)| Does::Call(name, scope, before)),
        60 => Just(Does::CallEnd),
        20 => prop::option::of(0_i64..3).prop_map(Does::Step),
        50 => prop::option::of(0_i64..3).prop_map(Does::Mark),
        100 => (-9_i64..9, any::<bool>()).prop_map(|(bytes, is_host)| Does::Memory { bytes, is_host }),
        25 => (0_i64..9).prop_map(Does::Counter),
        20 => any::<bool>().prop_map(Does::Switch),
        12 => (0_u64..4).prop_map(Does::State),
        8 => Just(Does::Begin(1, 14, 0, 0, None)),
        20 => prop::sample::select(vec![Tag::Collective, Tag::OutOfMemory]).prop_map(Does::Rare),
        4 => prop::sample::select(vec![Tag::EndOuter, Tag::EndOuter, Tag::EndLeft, Tag::CallsStop]).prop_map(Does::Rare),
        1 => prop::sample::select(vec![Tag::EndElsewhere, Tag::BeginText]).prop_map(Does::Rare),
    ]
}

/// One thread's doings; most of them take time.
fn thread() -> impl Strategy<Value = Vec<(u64, Does)>> {
    prop::collection::vec((prop_oneof![1 => 0_u64..2, 30 => 1_u64..20], does()), 0..120)
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
        let words = [self.thread[0] | self.part << 32, self.thread[1], self.thread[2]];
        self.part += 1;
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

    fn record(&mut self, ticks: u64, does: &Does) {
        match *does {
            Does::Begin(name, scope, number, forward, size) => {
                self.put(ticks, Tag::BeginBackward, &[BeginWord::pack(name, scope, number), forward]);
                if let Some(size) = size {
                    let mut signature = Signature::default();
                    signature.tensor(6, &[size], None);
                    let packed = pack(signature.words());
                    self.text(ticks, Tag::InputsInPlace, packed.len() as u64, &packed);
                }
            }
            Does::End => self.put(ticks, Tag::End, &[]),
            Does::Call(name, scope, before) => {
                self.put(ticks - before, Tag::Begin, &[BeginWord::pack(name, scope, 0)]);
            }
            Does::CallEnd => self.put(ticks, Tag::CallEnd, &[]),
            Does::Step(Some(number)) => self.put(ticks, Tag::StepBegin, &[number as u64]),
            Does::Step(None) => self.put(ticks, Tag::StepEnd, &[1]),
            Does::Mark(Some(number)) => self.put(ticks, Tag::NumberedOptimizerStep, &[number as u64]),
            Does::Mark(None) => self.put(ticks, Tag::OptimizerStep, &[]),
            Does::Memory { bytes, is_host } => {
                self.put(ticks, Tag::Memory, &[64 | u64::from(!is_host) << 48, bytes as u64, 1_000]);
            }
            Does::Counter(value) => self.put(ticks, Tag::Counter, &[1, value as u64]),
            Does::Switch(is_on) => self.put(ticks, Tag::Window, &[u64::from(is_on), 0]),
            Does::State(number) => self.put(ticks, Tag::ProfilerState, &[number]),
            Does::Rare(Tag::BeginText) => self.text(ticks, Tag::BeginText, 1, b"t"),
            Does::Rare(Tag::EndElsewhere) => self.put(ticks, Tag::EndElsewhere, &[0, 1]),
            Does::Rare(Tag::OutOfMemory) => self.put(ticks, Tag::OutOfMemory, &[7, 8, 9, 1]),
            Does::Rare(Tag::Collective) => self.put(ticks, Tag::Collective, &[8, 3]),
            Does::Rare(Tag::CallsStop) => self.put(ticks, Tag::CallsStop, &[]),
            Does::Rare(tag) => self.put(ticks, tag, &[0]),
        }
    }
}

fn capture_bytes(threads: &[Vec<(u64, Does)>], has_schedule: bool) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..20].copy_from_slice(&(SEGMENT as u32).to_le_bytes());
    bytes[96] = 1;
    let mut made = Made { bytes, segment: Vec::new(), thread: Vec::new(), part: 0 };
    for (ordinal, does) in threads.iter().enumerate() {
        made.thread = vec![ordinal as u64, 100 + ordinal as u64, 1 + ordinal as u64];
        made.part = 0;
        let mut ticks = 100;
        made.next_segment(ticks);
        if ordinal == 0 {
            for (id, name) in (0_u64..).zip(NAMES) {
                made.text(ticks, Tag::Name, id | (name.len() as u64) << 32, name.as_bytes());
            }
            if has_schedule {
                made.text(ticks, Tag::Fact, 8 | 4 << 32, b"schedulesome");
            }
        }
        for (after, does) in does {
            ticks += after;
            made.record(ticks, does);
        }
        made.put(9_000, Tag::Clock, &[9_000, 0]);
        made.end_segment();
    }
    made.bytes
}

fn filter() -> impl Strategy<Value = RecordFilter> {
    let spans = prop_oneof![
        Just(vec![Range { start: 0, end: 4_000 }]),
        Just(vec![Range { start: 0, end: 10_000 }]),
        (0_i64..900, 0_i64..900, 0_i64..100, 0_i64..500).prop_map(|(start, len, gap, more)| {
            vec![start..start + len, start + len + gap..start + len + gap + more]
        }),
        Just(vec![]),
    ];
    let thread = prop::option::of(100_u64..103);
    let states = prop::collection::vec(2_u64..4, 0..3);
    let exclude = prop::collection::vec(prop::bool::weighted(0.1), 4);
    (spans, thread, states, exclude).prop_map(|(spans, thread, states, exclude)| RecordFilter {
        spans,
        thread,
        states,
        exclude: Exclude {
            operators: exclude[0],
            labels: exclude[1],
            steps: exclude[2],
            calls: exclude[3],
            ..Exclude::default()
        },
    })
}

/// The rows of a document by thread and time, with what numbers rows numbered anew; and all else.
fn summary(bytes: &[u8]) -> (Vec<Value>, Value) {
    let mut document: Value = serde_json::from_slice(bytes).expect("JSON");
    let rows = document["traceEvents"].take();
    let Value::Array(mut rows) = rows else { panic!("a list") };
    // Rows stand in the order of lanes, or in that of time.
    let place = |row: &Value| {
        let [start, dur] = ["ts", "dur"].map(|key| (row[key].as_f64().unwrap_or(0.0) * 1_000.0) as i64);
        (row["tid"].as_i64(), start, -dur)
    };
    let recorded = |row: &Value| {
        let mut row = row.clone();
        row["args"].as_object_mut().into_iter().for_each(|args| args.retain(|key, _| key != PLACE));
        row.to_string()
    };
    rows.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| recorded(a).cmp(&recorded(b))));
    let numbered = rows.iter_mut().filter_map(|row| row["args"].get_mut(PLACE));
    numbered.zip(0..).for_each(|(place, number)| *place = number.into());
    (rows, document)
}

/// What numbers rows by their places in the document.
const PLACE: &str = "Ev Idx";

/// How many cases were written while they were read, with at least one slice, and how many needed a trace.
static STREAMED: AtomicU32 = AtomicU32::new(0);
static WHOLE: AtomicU32 = AtomicU32::new(0);

fn check(
    threads: &[Vec<(u64, Does)>],
    has_schedule: bool,
    is_verbose: bool,
    filter: &RecordFilter,
) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("1.capture");
    std::fs::write(&path, capture_bytes(threads, has_schedule)).unwrap();
    let [streamed, whole] = ["streamed.json", "whole.json"].map(|name| folder.path().join(name));
    let options = ProfileOptions { is_verbose, first_id: 1 };
    let told_until = RecordingRows::open(&path, filter)
        .and_then(|filter| save_recording(&filter, options, &streamed, false).unwrap());
    if told_until.is_none() {
        WHOLE.fetch_add(1, Ordering::Relaxed);
        prop_assert!(!streamed.exists(), "nothing is left of a try");
        return Ok(());
    }
    let (trace, window) = stepscope_engine::open_window(&path, filter).unwrap();
    prop_assert_eq!(told_until, Some(save_window(&trace, window, options, &whole, false).unwrap()));
    let [streamed, whole] = [streamed, whole].map(|path| std::fs::read(path).unwrap());
    STREAMED.fetch_add(u32::from(!trace.slices.is_empty()), Ordering::Relaxed);
    prop_assert_eq!(summary(&streamed), summary(&whole));
    Ok(())
}

#[test]
fn what_is_written_while_it_is_read_is_what_a_trace_says() {
    let cases = (prop::collection::vec(thread(), 1..4), any::<bool>(), any::<bool>(), filter());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(1_000));
    runner
        .run(&cases, |(threads, has_schedule, is_verbose, filter)| check(&threads, has_schedule, is_verbose, &filter))
        .unwrap();
    let (streamed, whole) = (STREAMED.load(Ordering::Relaxed), WHOLE.load(Ordering::Relaxed));
    assert!(streamed > 150 && whole > 30, "{streamed} written while read, {whole} needed a trace");
}

/// More between begin and end than is waited for.
#[test]
fn long_ranges_stand_where_they_began() {
    let begin = |name| Does::Begin(name, 0, 1, 0, Some(2));
    let one = [(1, begin(0)), (3, Does::End)];
    let many: Vec<(u64, Does)> = std::iter::repeat_n(one, 1_500).flatten().collect();
    let doing = [vec![(1, Does::Call(7, 10, 0)), (1, begin(1)), (2, Does::Begin(1, 7, 0, 0, None))], many.clone()];
    let doing = [doing.concat(), vec![(2, Does::End)], many, vec![(2, Does::End), (1, Does::CallEnd)]].concat();
    let filter = RecordFilter { spans: vec![Range { start: 0, end: 20_000 }], ..RecordFilter::default() };
    let before = STREAMED.load(Ordering::Relaxed);
    check(&[doing], false, true, &filter).unwrap();
    assert!(STREAMED.load(Ordering::Relaxed) > before);
}

/// What one of Stepscope's own functions calls ends before it, is not listed, and is not where the trace begins.
#[test]
fn a_trace_begins_with_what_is_listed() {
    let (own, net) = (Does::Call(9, 10, 0), Does::Call(5, 12, 0));
    let inside = [(0, own.clone()), (0, Does::End), (3, net.clone()), (2, Does::CallEnd)];
    let after = [(2, Does::CallEnd), (3, net), (1, Does::Begin(0, 0, 0, 0, None)), (1, Does::End), (2, Does::CallEnd)];
    let filter = RecordFilter { spans: vec![Range { start: 0, end: 4_000 }], ..RecordFilter::default() };
    let before = STREAMED.load(Ordering::Relaxed);
    check(&[[&inside[..], &after].concat()], false, false, &filter).unwrap();
    check(&[inside.to_vec()], false, false, &filter).unwrap();
    assert!(STREAMED.load(Ordering::Relaxed) > before);
    // Calls that were open when recording began all begin there.
    let open = [(0, Does::Call(5, 12, 0)), (0, own.clone()), (3, Does::CallEnd), (4, Does::CallEnd)];
    let before = STREAMED.load(Ordering::Relaxed);
    check(&[open.to_vec()], false, false, &filter).unwrap();
    assert!(STREAMED.load(Ordering::Relaxed) > before, "{open:?}");
    // Which of the two is around the other nobody hears in time.
    let together = [(0, Does::Call(5, 12, 0)), (0, own), (1, Does::CallEnd), (1, Does::CallEnd)];
    check(&[together.to_vec()], false, false, &filter).unwrap();
}

/// The thread that called it first ran no backward pass, and is not shown.
#[test]
fn a_module_is_named_also_where_another_thread_called_it_first() {
    let begin = || Does::Begin(0, 0, 0, 0, None);
    let threads =
        [vec![], vec![(0, Does::Call(7, 12, 0))], vec![(0, begin()), (0, begin()), (1, Does::Call(7, 12, 0))]];
    let filter =
        RecordFilter { spans: vec![Range { start: 0, end: 4_000 }], thread: Some(102), ..RecordFilter::default() };
    let before = STREAMED.load(Ordering::Relaxed);
    check(&threads, false, false, &filter).unwrap();
    assert!(STREAMED.load(Ordering::Relaxed) > before);
}

//! Captures made of random records, as a writer would lay them out.

use crate::inputs::{Signature, pack};
use crate::layout::{BeginWord, OpenPlace, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC, Tag, first_word, padded};
use crate::short::{Begin, Reference, ended, is_timed};
use proptest::prelude::*;

pub(in super::super) const SEGMENT: usize = 4096;

/// A record that a thread writes, and the ticks since the one before.
#[derive(Clone, Debug)]
pub(in super::super) struct Made {
    ticks: u32,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    /// And how many ticks it took, where that has room in the begin.
    Begin(Begin, Option<u64>),
    BeginText(String, u8),
    End,
    EndOuter(u64),
    EndLeft(u64),
    EndElsewhere(u32, u64),
    Step(i64),
    StepEnd(i64),
    StepDropped,
    Collective(u32, u64),
    CollectiveText(String, u64),
    OptimizerStep,
    NumberedOptimizerStep(i64),
    Name(u32, String),
    ThreadName(String),
    Fact(String, String),
    Clock(u32),
    Window(bool),
    Memory(u64, i64),
    MemoryReserved(u64, i64),
    OutOfMemory(i64),
    Inputs(u32, i64),
    InputsReference(u32),
    InputsInPlace(i64, OpenPlace),
    Overload(u32, String),
    CallEnd,
    CallsStop,
    Counter(u32, i64),
    ProfilerState(u64),
    /// Id, that of the caller's and one, and a name.
    Stack(u32, u32, u32),
    /// A thread of the system, and a stack's id and one.
    StackSample(u32, u32),
}

fn begin() -> impl Strategy<Value = Begin> {
    let number = prop_oneof![Just(-1), 0i64..50, 0i64..1 << 45];
    (0u32..6, 0u8..16, number, 0u64..3).prop_map(|(name, scope, sequence_number, forward_thread)| Begin {
        name,
        scope,
        sequence_number,
        forward_thread,
    })
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        30 => (begin(), prop::option::of(0u64..1 << 15)).prop_map(|(begin, took)| What::Begin(begin, took)),
        25 => Just(What::End),
        3 => ("[a-c]{0,9}", 0u8..16).prop_map(|(text, scope)| What::BeginText(text, scope)),
        5 => (0u64..4).prop_map(What::EndOuter),
        6 => (0u64..3).prop_map(What::EndLeft),
        3 => (0u32..6, 0u64..3).prop_map(|(name, origin)| What::EndElsewhere(name, origin)),
        2 => (0i64..3).prop_map(What::Step),
        2 => (0i64..3).prop_map(What::StepEnd),
        1 => Just(What::StepDropped),
        2 => (0u32..6, 0u64..9).prop_map(|(id, number)| What::Collective(id, number)),
        1 => ("[a-c]{0,9}", 0u64..9).prop_map(|(text, number)| What::CollectiveText(text, number)),
        1 => Just(What::OptimizerStep),
        1 => (0i64..9).prop_map(What::NumberedOptimizerStep),
        2 => (0u32..6, "[a-d]{0,12}").prop_map(|(id, name)| What::Name(id, name)),
        1 => "[a-d]{0,12}".prop_map(What::ThreadName),
        1 => ("[a-d]{0,3}", "[a-d]{0,12}").prop_map(|(key, value)| What::Fact(key, value)),
        1 => (0u32..3_000).prop_map(What::Clock),
        1 => any::<bool>().prop_map(What::Window),
        2 => (any::<u64>(), any::<i64>()).prop_map(|(address, bytes)| What::Memory(address, bytes)),
        1 => (any::<u64>(), any::<i64>()).prop_map(|(address, bytes)| What::MemoryReserved(address, bytes)),
        1 => any::<i64>().prop_map(What::OutOfMemory),
        2 => (0u32..4, 0i64..4).prop_map(|(id, value)| What::Inputs(id, value)),
        8 => (0u32..5).prop_map(What::InputsReference),
        1 => (0i64..4, 0u32..4).prop_map(|(value, inside)| What::InputsInPlace(value, OpenPlace::Open(inside))),
        1 => (0i64..4, 0u32..3).prop_map(|(value, after)| What::InputsInPlace(value, OpenPlace::Left(after))),
        1 => (0u32..6, "[a-d]{0,12}").prop_map(|(id, text)| What::Overload(id, text)),
        12 => Just(What::CallEnd),
        1 => Just(What::CallsStop),
        2 => (0u32..6, any::<i64>()).prop_map(|(name, value)| What::Counter(name, value)),
        1 => (0u64..4).prop_map(What::ProfilerState),
        1 => (0u32..5, 0u32..5, 0u32..6).prop_map(|(id, caller, name)| What::Stack(id, caller, name)),
        2 => (0u32..9, 0u32..6).prop_map(|(tid, stack)| What::StackSample(tid, stack)),
    ]
}

pub(in super::super) fn made_thread() -> impl Strategy<Value = Vec<Made>> {
    let ticks = prop_oneof![9 => 0u32..40, 1 => any::<u32>()];
    prop::collection::vec((ticks, what()).prop_map(|(ticks, what)| Made { ticks, what }), 1..400)
}

/// A thread with a range inside another, both open, or the inner one with how many ticks it took in its begin.
pub(in super::super) fn nested(inner_took: Option<u64>) -> Vec<Made> {
    let begin = Begin { name: 0, scope: 0, sequence_number: -1, forward_thread: 0 };
    [None, inner_took].map(|took| Made { ticks: 10, what: What::Begin(begin, took) }).into()
}

/// The same threads, where each ends its own ranges.
pub(in super::super) fn without_ends_elsewhere(mut threads: Vec<Vec<Made>>) -> Vec<Vec<Made>> {
    let is_kept = |made: &Made| !matches!(made.what, What::EndElsewhere(..) | What::EndOuter(_) | What::BeginText(..));
    threads.iter_mut().for_each(|thread| thread.retain(is_kept));
    threads
}

/// The segments that these threads write, in turn.
pub(in super::super) fn capture_bytes(threads: &[Vec<Made>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writers: Vec<_> = threads.iter().enumerate().map(|(at, made)| Writer::new(at as u32, made)).collect();
    while writers.iter().any(|writer| !writer.left.is_empty()) {
        for writer in writers.iter_mut().filter(|writer| !writer.left.is_empty()) {
            let index = bytes.len() / SEGMENT;
            bytes.extend(writer.segment(index as u64));
        }
    }
    bytes
}

struct Writer<'a> {
    ordinal: u32,
    part: u32,
    ticks: u64,
    left: &'a [Made],
}

impl<'a> Writer<'a> {
    fn new(ordinal: u32, left: &'a [Made]) -> Self {
        Self { ordinal, part: 0, ticks: 1_000 + u64::from(ordinal), left }
    }

    fn segment(&mut self, index: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        words(&mut bytes, &[u64::from(SEGMENT_MAGIC) << 32 | index, 0]);
        assert_eq!(bytes.len(), SEGMENT_HEADER_BYTES);
        let ids = [u64::from(self.ordinal) | u64::from(self.part) << 32, 70, u64::from(self.ordinal % 3)];
        words(&mut bytes, &[first_word(self.ticks, Tag::Thread), ids[0], ids[1], ids[2]]);
        let mut reference = Reference::at_thread(self.ticks);
        self.part += 1;
        while let Some((made, left)) = self.left.split_first()
            && bytes.len() + 100 < SEGMENT
        {
            self.left = left;
            self.ticks += u64::from(made.ticks);
            write(&mut bytes, &made.what, self.ticks, &mut reference);
        }
        bytes.resize(SEGMENT, 0);
        bytes
    }
}

fn words(bytes: &mut Vec<u8>, words: &[u64]) {
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

fn long(bytes: &mut Vec<u8>, ticks: u64, tag: Tag, rest: &[u64], text: impl AsRef<[u8]>) {
    let text = text.as_ref();
    if !bytes.len().is_multiple_of(8) {
        bytes.extend((Tag::Pad as u32 | 0xabcd00).to_le_bytes());
    }
    words(bytes, &[first_word(ticks, tag)]);
    words(bytes, rest);
    let end = bytes.len() + padded(text.len());
    bytes.extend(text);
    bytes.resize(end, 0);
}

fn write(bytes: &mut Vec<u8>, what: &What, ticks: u64, reference: &mut Reference) {
    let len = |text: &str| text.len() as u64;
    match what {
        What::Begin(begin, took) => {
            write_begin(bytes, begin, *took, ticks, reference);
            reference.note(begin);
        }
        What::End => match reference.short_word(ticks, Tag::ShortEnd) {
            Some(word) => bytes.extend(word.to_le_bytes()),
            None => long(bytes, ticks, Tag::End, &[], ""),
        },
        What::CallEnd => match reference.short_word(ticks, Tag::ShortCallEnd) {
            Some(word) => bytes.extend(word.to_le_bytes()),
            None => long(bytes, ticks, Tag::CallEnd, &[], ""),
        },
        What::CallsStop => long(bytes, ticks, Tag::CallsStop, &[], ""),
        What::Counter(name, value) => long(bytes, ticks, Tag::Counter, &[u64::from(*name), *value as u64], ""),
        What::EndLeft(after) => long(bytes, ticks, Tag::EndLeft, &[*after], ""),
        What::Stack(id, caller, name) => {
            let words = [u64::from(*id) | u64::from(*caller) << 32, u64::from(*name)];
            long(bytes, ticks, Tag::Stack, &words, "");
        }
        What::StackSample(tid, stack) => {
            long(bytes, ticks, Tag::StackSample, &[u64::from(*tid) | u64::from(*stack) << 32, 7, 0], "");
        }
        What::ProfilerState(number) => long(bytes, ticks, Tag::ProfilerState, &[*number], ""),
        What::BeginText(text, scope) => {
            long(bytes, ticks, Tag::BeginText, &[len(text) | u64::from(*scope) << 32], text);
        }
        What::EndOuter(inside) => long(bytes, ticks, Tag::EndOuter, &[*inside], ""),
        What::EndElsewhere(name, origin) => long(bytes, ticks, Tag::EndElsewhere, &[u64::from(*name), *origin], ""),
        What::Step(number) => long(bytes, ticks, Tag::StepBegin, &[*number as u64], ""),
        What::StepEnd(number) => long(bytes, ticks, Tag::StepEnd, &[*number as u64], ""),
        What::StepDropped => long(bytes, ticks, Tag::StepDropped, &[], ""),
        What::Collective(id, number) => long(bytes, ticks, Tag::Collective, &[u64::from(*id), *number], ""),
        What::CollectiveText(text, number) => {
            long(bytes, ticks, Tag::CollectiveText, &[len(text), *number], text);
        }
        What::OptimizerStep => long(bytes, ticks, Tag::OptimizerStep, &[], ""),
        What::NumberedOptimizerStep(number) => long(bytes, ticks, Tag::NumberedOptimizerStep, &[*number as u64], ""),
        What::Name(id, name) => long(bytes, ticks, Tag::Name, &[u64::from(*id) | len(name) << 32], name),
        What::ThreadName(name) => long(bytes, ticks, Tag::ThreadName, &[len(name)], name),
        What::Fact(key, value) => {
            long(bytes, ticks, Tag::Fact, &[len(key) | len(value) << 32], format!("{key}{value}"));
        }
        What::Clock(ns) => long(bytes, ticks, Tag::Clock, &[5_000 + ticks / 3 + u64::from(*ns), 0], ""),
        What::Inputs(id, value) => {
            let inputs = packed(*value);
            long(bytes, ticks, Tag::Inputs, &[u64::from(*id) | (inputs.len() as u64) << 32], inputs);
        }
        What::InputsReference(id) => {
            // It has no ticks, and leaves those to count from as they were.
            return bytes.extend((id << 8 | Tag::InputsReference as u32).to_le_bytes());
        }
        What::InputsInPlace(value, place) => {
            let inputs = packed(*value);
            let word = inputs.len() as u64 | u64::from(place.pack()) << 32;
            long(bytes, ticks, Tag::InputsInPlace, &[word], inputs);
        }
        What::Overload(id, text) => long(bytes, ticks, Tag::Overload, &[u64::from(*id) | len(text) << 32], text),
        What::Window(is_on) => long(bytes, ticks, Tag::Window, &[u64::from(*is_on), 4], ""),
        What::Memory(address, size) => long(bytes, ticks, Tag::Memory, &[*address, *size as u64, 77], ""),
        What::MemoryReserved(address, size) => {
            long(bytes, ticks, Tag::MemoryReserved, &[*address, *size as u64, 77, 88, 0x0201], "");
        }
        What::OutOfMemory(size) => long(bytes, ticks, Tag::OutOfMemory, &[*size as u64, 77, 88, 0xff00], ""),
    }
    reference.ticks = ticks;
}

fn packed(value: i64) -> Vec<u8> {
    let mut signature = Signature::default();
    signature.int(value);
    pack(signature.words())
}

fn write_begin(bytes: &mut Vec<u8>, begin: &Begin, took: Option<u64>, ticks: u64, reference: &Reference) {
    let short = reference.short_begin(begin).and_then(|(tag, word)| {
        let ended = took.filter(|_| is_timed(tag)).and_then(|took| ended(word, took));
        Some((reference.short_word(ticks, tag)?, ended.unwrap_or(word)))
    });
    let number = (begin.sequence_number + 1) as u64;
    match short {
        Some((first, second)) => bytes.extend([first.to_le_bytes(), second.to_le_bytes()].concat()),
        None if number > BeginWord::SEQUENCE_NUMBERS => {
            let rest = [BeginWord::pack(begin.name, begin.scope, 0), number - 1, begin.forward_thread];
            long(bytes, ticks, Tag::BeginSequence, &rest, "");
        }
        None if begin.forward_thread != 0 => {
            let rest = [BeginWord::pack(begin.name, begin.scope, number), begin.forward_thread];
            long(bytes, ticks, Tag::BeginBackward, &rest, "");
        }
        None => long(bytes, ticks, Tag::Begin, &[BeginWord::pack(begin.name, begin.scope, number)], ""),
    }
}

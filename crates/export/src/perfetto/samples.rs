//! Samples of threads' stacks, as `stack_sample.proto` has them: a packet each, on a sequence of their own. Perfetto reads
//! them from version 58 on; what is older passes them over. A sample counts as one: what its thread ran between two samples
//! is not known, so that no sample stands for a time.

use super::{Document, Message, packet};
use rustc_hash::FxHashMap;
use std::io;
use stepscope_trace::{Frame, StackId, StackSample};

/// The writer of samples: what it refers to is apart from what the other one does.
const SEQUENCE: u64 = 2;
/// Fields of `trace_packet.proto`, `trace_packet_defaults.proto` and `stack_sample.proto`.
const DEFAULTS: u32 = 59;
const STACK_SAMPLE: u32 = 135;
const OF_SAMPLES: u32 = 100;
const SOURCE: u32 = 1;
const COUNTER: u32 = 2;
const COUNTER_NAME: u32 = 2;
const COUNTER_UNIT: u32 = 3;
const UNIT_COUNT: u64 = 9;
const TASK: u32 = 1;
const CALLSTACK: u32 = 6;
const UNWIND_ERROR: u32 = 7;
const WEIGHT: u32 = 11;
const PID: u32 = 2;
const TID: u32 = 3;
/// Fields of `interned_data.proto` and `profile_common.proto`.
const FUNCTIONS: u32 = 5;
const FRAMES: u32 = 6;
const CALLSTACKS: u32 = 7;
const FILES: u32 = 18;
const IID: u32 = 1;
const TEXT: u32 = 2;
const FRAME_FUNCTION: u32 = 2;
const FRAME_FILE: u32 = 5;
const FRAME_LINE: u32 = 6;
const FRAME_KIND: u32 = 7;
const INTERPRETED: u64 = 3;
const FRAME_OF_STACK: u32 = 2;

pub(super) fn write(document: &mut Document<'_>) -> io::Result<()> {
    let trace = document.trace;
    if trace.stack_samples.is_empty() {
        return Ok(());
    }
    write_head(document)?;
    let mut known = Known::default();
    for sample in &trace.stack_samples {
        let mut packet = Message::default();
        packet.int(packet::TIMESTAMP, sample.time_ns);
        packet.number(packet::SEQUENCE_ID, SEQUENCE);
        packet.number(packet::SEQUENCE_FLAGS, packet::NEEDS_STATE);
        let of_sample = message(document, sample, &mut known);
        let interned = std::mem::take(&mut known.next);
        if interned.len() > 0 {
            packet.message(packet::INTERNED_DATA, &interned);
        }
        packet.message(STACK_SAMPLE, &of_sample);
        document.packet(&packet)?;
    }
    Ok(())
}

/// The first packet of the sequence: who samples, and that samples are counted.
fn write_head(document: &mut Document<'_>) -> io::Result<()> {
    let mut counter = Message::default();
    counter.text(COUNTER_NAME, "samples");
    counter.number(COUNTER_UNIT, UNIT_COUNT);
    let mut of_samples = Message::default();
    of_samples.text(SOURCE, "stepscope.python");
    of_samples.message(COUNTER, &counter);
    let mut defaults = Message::default();
    defaults.message(OF_SAMPLES, &of_samples);
    let mut first = Message::default();
    first.number(packet::SEQUENCE_ID, SEQUENCE);
    first.number(packet::SEQUENCE_FLAGS, packet::STATE_CLEARED);
    first.message(DEFAULTS, &defaults);
    document.packet(&first)
}

fn message(document: &Document<'_>, sample: &StackSample, known: &mut Known) -> Message {
    let process = document.trace.tracks[sample.track.index()].process;
    let mut task = Message::default();
    task.int(PID, document.numbers.pid[process.index()]);
    task.int(TID, document.numbers.tid[sample.track.index()]);
    let mut of_sample = Message::default();
    of_sample.message(TASK, &task);
    match sample.stack {
        Some(stack) => of_sample.number(CALLSTACK, known.callstack(document, stack)),
        None => of_sample.text(UNWIND_ERROR, "the stack could not be read"),
    }
    of_sample.number(WEIGHT, 1);
    of_sample
}

/// What was written once and is then referred to by number, and what the next packet has to bring.
#[derive(Default)]
struct Known {
    texts: FxHashMap<(u32, String), u64>,
    frames: FxHashMap<u32, u64>,
    callstacks: FxHashMap<u32, u64>,
    next: Message,
}

impl Known {
    /// The number of a stack.
    fn callstack(&mut self, document: &Document<'_>, stack: StackId) -> u64 {
        if let Some(iid) = self.callstacks.get(&stack.0) {
            return *iid;
        }
        let mut frames: Vec<u64> = Vec::new();
        for name in document.trace.stacks.frames(stack) {
            let known = self.frames.get(&name.0).copied();
            frames.push(known.unwrap_or_else(|| self.frame(name.0, document.trace.strings.get(name))));
        }
        let mut entry = Message::default();
        let iid = self.callstacks.len() as u64 + 1;
        entry.number(IID, iid);
        // The outermost first.
        frames.into_iter().rev().for_each(|frame| entry.number(FRAME_OF_STACK, frame));
        self.next.message(CALLSTACKS, &entry);
        self.callstacks.insert(stack.0, iid);
        iid
    }

    /// Adds a frame, which is called `text`.
    fn frame(&mut self, name: u32, text: &str) -> u64 {
        let Frame { file, line, function } = Frame::parse(text);
        let mut entry = Message::default();
        let iid = self.frames.len() as u64 + 1;
        entry.number(IID, iid);
        entry.number(FRAME_FUNCTION, self.text(FUNCTIONS, function));
        file.into_iter().for_each(|file| entry.number(FRAME_FILE, self.text(FILES, file)));
        line.into_iter().for_each(|line| entry.number(FRAME_LINE, line.into()));
        entry.number(FRAME_KIND, INTERPRETED);
        self.next.message(FRAMES, &entry);
        self.frames.insert(name, iid);
        iid
    }

    /// The number of a text among those of a field.
    fn text(&mut self, field: u32, text: &str) -> u64 {
        let next = self.texts.len() as u64 + 1;
        *self.texts.entry((field, text.to_string())).or_insert_with(|| {
            let mut entry = Message::default();
            entry.number(IID, next);
            entry.text(TEXT, text);
            self.next.message(field, &entry);
            next
        })
    }
}

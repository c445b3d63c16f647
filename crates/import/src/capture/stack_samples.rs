//! Samples of what threads of Python run.

use super::{AlignedCapture, shifted_ns};
use std::collections::BTreeMap;
use stepscope_capture::{Called, Capture, Doing as Does, StackSample as Sampled};
use stepscope_trace::{Doing, StackId, StackSample, TraceBuilder, TrackId};

impl AlignedCapture<'_> {
    /// Adds the samples, with what threads did from one to the next.
    pub(super) fn add_stack_samples(&self, tracks: &BTreeMap<u32, TrackId>, builder: &mut TraceBuilder) {
        let stacks = intern_stacks(self.capture, builder);
        let mut last: Option<&Sampled> = None;
        // By thread and time.
        for sample in &self.capture.stack_samples {
            let before = last.filter(|last| last.thread == sample.thread);
            let since = |of: fn(&Sampled) -> Option<i64>| Some(of(sample)?.saturating_sub(of(before?)?).max(0));
            builder.add_stack_sample(StackSample {
                track: tracks[&sample.thread],
                time_ns: shifted_ns(sample.time_ns, self.offset_ns),
                stack: sample.stack.and_then(|stack| stacks.get(stack as usize).copied()),
                doing: doing(sample.doing),
                ran_ns: since(|sample| sample.cpu_ns),
                runnable_ns: since(|sample| sample.runnable_ns),
            });
            last = Some(sample);
        }
    }
}

/// The stacks of a capture as those of the trace.
fn intern_stacks(capture: &Capture, builder: &mut TraceBuilder) -> Vec<StackId> {
    let mut ids: Vec<StackId> = Vec::with_capacity(capture.stacks.len());
    for Called { frame, caller } in &capture.stacks {
        let frame = builder.strings.intern(capture.names.get(*frame as usize).map_or("", String::as_str));
        let caller = caller.and_then(|caller| ids.get(caller as usize).copied());
        ids.push(builder.intern_stack(frame, caller));
    }
    ids
}

fn doing(does: Does) -> Doing {
    match does {
        Does::Unknown => Doing::Unknown,
        Does::Running => Doing::Running,
        Does::InterpreterLock => Doing::InterpreterLock,
        Does::Lock => Doing::Lock,
        Does::Sleep => Doing::Sleep,
        Does::File => Doing::File,
        Does::Connection => Doing::Connection,
        Does::Process => Doing::Process,
        Does::System => Doing::System,
    }
}

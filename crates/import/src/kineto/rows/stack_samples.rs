//! Samples of stacks, whose frames the text has apart from them.

use super::Rows;
use rustc_hash::FxHashMap;
use stepscope_trace::{StackId, StackSample, TraceBuilder};

/// Frames by number: the name, and the frame that called it.
type Frames = FxHashMap<i64, (String, Option<i64>)>;

impl Rows {
    /// Adds the samples, once all frames are known.
    pub(super) fn add_stack_samples(&mut self, frames: &Frames) {
        let mut known = FxHashMap::default();
        for (sample, frame) in std::mem::take(&mut self.stack_samples) {
            let stack = frame.and_then(|frame| stack_of(&mut self.builder, frames, frame, &mut known));
            self.builder.add_stack_sample(StackSample { stack, ..sample });
        }
    }
}

/// The stack whose innermost frame has this number. A frame that is not there calls nothing, and so does one that would call
/// itself.
fn stack_of(
    builder: &mut TraceBuilder,
    frames: &Frames,
    innermost: i64,
    known: &mut FxHashMap<i64, Option<StackId>>,
) -> Option<StackId> {
    let (mut path, mut next, mut stack) = (Vec::new(), Some(innermost), None);
    while let Some(number) = next {
        if let Some(of) = known.get(&number) {
            stack = *of;
            break;
        }
        let Some((name, parent)) = frames.get(&number) else { break };
        known.insert(number, None);
        path.push((number, name));
        next = *parent;
    }
    for (number, name) in path.into_iter().rev() {
        // Between the frames of a stack as text stands a semicolon.
        let frame = builder.strings.intern(&name.replace(';', ","));
        stack = Some(builder.intern_stack(frame, stack));
        known.insert(number, stack);
    }
    stack
}

//! Samples of threads' stacks, as the format has them: events of phase `P`, each of which names its innermost frame, and
//! behind all events the frames, each with the one that called it. A profile of the program's own has none.

use super::Document;
use std::io;
use stepscope_base::StringId;
use stepscope_trace::{StackId, StackSample};

impl Document<'_> {
    /// The samples that are written.
    fn stack_samples(&self) -> impl Iterator<Item = &StackSample> {
        let samples = self.profile.is_none().then_some(&self.trace.stack_samples);
        samples.into_iter().flatten().filter(|sample| self.has_track(sample.track))
    }
}

pub(super) fn write(document: &mut Document<'_>) -> io::Result<()> {
    let samples: Vec<StackSample> = document.stack_samples().copied().collect();
    for sample in samples {
        document.begin_event("P", "stack_sample", "sample", document.row(sample.track));
        let json = &mut document.json;
        json.time(sample.time_ns);
        sample.stack.into_iter().for_each(|stack| json.int("sf", frame_number(stack)));
        json.open(Some("args"));
        json.text("Stepscope", sample.doing.as_str());
        sample.ran_ns.into_iter().for_each(|ns| json.int("ran ns", ns));
        sample.runnable_ns.into_iter().for_each(|ns| json.int("runnable ns", ns));
        json.close();
        document.end_event()?;
    }
    Ok(())
}

/// Writes the frames that samples name, as a member that stands behind the events.
pub(super) fn write_frames(document: &mut Document<'_>) -> io::Result<()> {
    let frames = document.trace.stacks.rows().collect::<Vec<(StringId, Option<StackId>)>>();
    let mut is_used = vec![false; frames.len()];
    for sample in document.stack_samples() {
        let mut next = sample.stack;
        while let Some(stack) = next.filter(|stack| !std::mem::replace(&mut is_used[stack.index()], true)) {
            next = frames[stack.index()].1;
        }
    }
    if !is_used.contains(&true) {
        return Ok(());
    }
    document.json.raw(",\n\"stackFrames\": {");
    for (at, (frame, caller)) in frames.into_iter().enumerate().filter(|(at, _)| is_used[*at]) {
        let trace = document.trace;
        let json = &mut document.json;
        json.any_key(&frame_number(StackId::from_index(at)).to_string());
        json.open(None);
        json.text("category", "python");
        json.text("name", trace.strings.get(frame));
        caller.into_iter().for_each(|caller| json.int("parent", frame_number(caller)));
        document.end_event()?;
    }
    document.json.raw("}");
    Ok(())
}

/// What a frame is called by.
fn frame_number(stack: StackId) -> i64 {
    i64::from(stack.0) + 1
}

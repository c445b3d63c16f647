//! The thread that runs the steps writes checkpoints in them, again and again.

use super::facts::Facts;
use super::loops::Loop;
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use crate::host_threads::{Doing, Threads, first_lane};
use crate::io_calls::IoCall;
use crate::io_summary::{is_output, written_files};
use rustc_hash::FxHashSet;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_base::units::{format_bytes, format_count, format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span, StringId, StringTable};
use stepscope_trace::{IoAction, SliceId};

/// Less, to one file in one step, is a log and no checkpoint.
const LEAST_BYTES: i64 = 1 << 20;
/// Steps that write; fewer are no habit.
const LEAST_STEPS: usize = 3;

pub(super) const RULE: Rule = Rule {
    code: "io.checkpoints",
    fault: "Checkpoints are written in the steps",
    disproof: "Steps are as long with checkpoints left out.",
    evidence: "io_summary",
    to_do: "Write checkpoints less often: as rarely as you can afford to repeat the work since the last one. Write them beside \
            the computing: `torch.distributed.checkpoint.async_save`, or a copy in host memory that a thread of its own \
            writes.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let loops = facts.loops()?;
    let calls = facts.context.get::<Vec<IoCall>>();
    if !calls.iter().any(|call| call.event.action == IoAction::Write) {
        return Err(Lacks("no writes to files: `stepscope record --io` records them"));
    }
    Ok(loops.iter().filter_map(|of| of_loop(facts, of, calls)).collect())
}

/// What is written to one file in one step.
struct Written {
    step: usize,
    file: StringId,
    /// From the first call on the file to the last: what is written is put together between them.
    span: Span,
    bytes: i64,
    longest: SliceId,
}

fn of_loop(facts: &Facts, of: &Loop, calls: &[IoCall]) -> Option<Advice> {
    let trace = facts.trace;
    let thread = of.thread?;
    let is_own = |call: &&IoCall| call.process == of.process && first_lane(trace, call.track) == thread;
    let own: Vec<IoCall> = calls.iter().filter(is_own).copied().collect();
    let written = written(of, &own, &written_files(&own), |slice| trace.slices.dur_ns[slice.index()]);
    let longest = written.iter().max_by_key(|file| (file.span.duration_ns(), Reverse(file.longest)))?;
    let steps: FxHashSet<usize> = written.iter().map(|file| file.step).collect();
    if steps.len() < LEAST_STEPS {
        return None;
    }
    let threads = facts.context.get::<Threads>();
    let operators = threads.get(trace, thread).doing(Doing::Op);
    let spans = IntervalSet::from_unsorted(written.iter().map(|file| file.span));
    let blocking = spans.intersect(&of.windows).subtract(operators).subtract(&of.device);
    let blocking_ns = blocking.total_ns();
    let row = of.row(blocking_ns)?;
    let bytes = written.iter().fold(0_i64, |sum, file| sum.saturating_add(file.bytes));
    Some(Advice {
        says: format!(
            "{} of {} write a checkpoint of {} (mean), such as {}, and wait for it for {} ({}) of {}.",
            format_count(steps.len() as i64),
            counted(of.steps.len() as i64, "step"),
            format_bytes(bytes / steps.len() as i64),
            quoted(trace.strings.get(longest.file)),
            format_ns(blocking_ns),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(steps.len() as i64),
        measured_bytes: Some(bytes),
        gain: Some((blocking_ns, GainEstimate::Floor)),
        place: Some(Place::of(trace, longest.longest)),
        time: blocking,
        ..row
    })
}

/// The files to which enough is written, by step.
fn written(
    of: &Loop,
    calls: &[IoCall],
    outputs: &FxHashSet<StringId>,
    dur_ns: impl Fn(SliceId) -> i64,
) -> Vec<Written> {
    let mut files: BTreeMap<(usize, StringId), Written> = BTreeMap::new();
    let outputs = calls.iter().filter(|call| is_output(call, outputs) && call.event.file != StringTable::EMPTY);
    for call in outputs {
        let (file, span, slice) = (call.event.file, call.span, call.event.slice);
        let Some(step) = of.step_at(span.start_ns) else { continue };
        let new = || Written { step, file, span, bytes: 0, longest: slice };
        let known = files.entry((step, file)).or_insert_with(new);
        known.span = Span::new(known.span.start_ns.min(span.start_ns), known.span.end_ns.max(span.end_ns));
        if call.event.action == IoAction::Write {
            known.bytes = known.bytes.saturating_add(call.event.bytes.unwrap_or(0));
        }
        if dur_ns(slice) > dur_ns(known.longest) {
            known.longest = slice;
        }
    }
    files.into_values().filter(|file| file.bytes >= LEAST_BYTES).collect()
}

#[cfg(test)]
mod tests {
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::check;
    use crate::io_calls::tests::with_calls;
    use stepscope_trace::Trace;

    /// Five steps of 1 ms in which these calls on a file are; `w` writes `bytes`.
    fn writing(thread: &str, cells: &str, bytes: i64) -> Trace {
        let stretch = |cells: &str| cells.chars().map(|cell| cell.to_string().repeat(100)).collect::<String>();
        let (io, ops) = (stretch(cells), stretch("aaaaa....."));
        let mut trace = with_calls(&repeated(5, &[("cpu 1", &ops), (thread, &io)]));
        trace.io.iter_mut().for_each(|call| call.bytes = Some(bytes));
        trace
    }

    #[test]
    fn a_checkpoint_in_every_step_is_said_and_no_other_rule_says_it() {
        let trace = writing("io 1", ".....o.ww.", 2 << 20);
        check(
            &trace,
            "io.checkpoints",
            &[
                "2000 of 5000 floor high: 5 of 5 steps write a checkpoint of 2.00 MiB (mean), such as `file`, and wait for it for 2.00 ms (40.0 %) of 5.00 ms.",
            ],
        );
        check(&trace, "io.blocking_checkpoint", &[]);
    }

    #[test]
    fn logs_and_what_another_thread_writes_are_none() {
        check(&writing("io 1", ".....o.ww.", 2 << 10), "io.checkpoints", &[]);
        check(&writing("io 2", ".....o.ww.", 2 << 20), "io.checkpoints", &[]);
        check(&writing("io 1", ".....o....", 2 << 20), "io.checkpoints", &[]);
    }
}

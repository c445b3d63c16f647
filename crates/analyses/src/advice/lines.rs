//! The line of the program at which something happens, by samples of the thread that runs the steps.

use super::facts::Facts;
use super::own_lines::{OwnLines, outermost_first};
use super::{Advice, copied, cpu_contention};
use crate::host_lines::{HostTime, samples_of};
use crate::windows::contains;
use rustc_hash::FxHashMap;
use stepscope_base::{IntervalSet, StringId};
use stepscope_trace::{Frame, SliceId, SliceKind, StackSample, Trace};

/// What runs a backward pass.
const AUTOGRAD: &str = "torch/autograd/";
/// A place is as deep as still has more than this part of the samples.
const PART_OF_PLACE: f64 = 0.5;
/// Fewer samples could be anywhere. Of three, all are in the place that is named.
const LEAST_SAMPLES: usize = 3;

/// A row with the line at which the thread that runs the steps is most often at the time that it is about, where it has none
/// and there are samples.
pub(super) fn with_line(facts: &Facts, row: Advice) -> Advice {
    // A thread can wait for a processor anywhere, and what a backward pass copies has its line in the forward pass.
    let has_none = [cpu_contention::RULE.code, copied::RULE.code].contains(&row.rule.as_str());
    if row.line.is_some() || row.time.is_empty() || has_none || facts.trace.stack_samples.is_empty() {
        return row;
    }
    Advice { line: line_at(facts, row.rank, &row.time), ..row }
}

/// The line at which the thread that runs the steps of a rank is most often at some time.
pub(super) fn line_at(facts: &Facts, rank: Option<u32>, time: &IntervalSet) -> Option<String> {
    let times: &Vec<HostTime> = facts.context.get();
    let thread = times.iter().find(|time| Some(time.rank) == rank)?.track;
    line_of_samples(facts, samples_of(facts.trace, thread), time)
}

/// The same where the program is in one line all the time that such a thing takes, so that one sample is enough.
pub(super) fn line_of_any(facts: &Facts, rank: u32, time: &IntervalSet) -> Option<String> {
    line_of_one(facts, rank, time, |stack| stack)
}

/// The same, of what calls into a file: at samples in which nothing does, the thread is somewhere else. One is enough, since
/// its line does call it.
pub(super) fn line_that_calls(facts: &Facts, rank: u32, time: &IntervalSet, file: &str) -> Option<String> {
    line_of_one(facts, rank, time, |stack| frames_that_call(facts.trace, stack, file))
}

fn line_of_one(
    facts: &Facts,
    rank: u32,
    time: &IntervalSet,
    part: impl Fn(Vec<StringId>) -> Vec<StringId>,
) -> Option<String> {
    let times: &Vec<HostTime> = facts.context.get();
    let thread = times.iter().find(|time| time.rank == rank)?.track;
    let stacks = stacks_at(facts, samples_of(facts.trace, thread), time, part);
    line_of(facts.trace, &stacks).map(|(line, _)| line)
}

/// The line of the program that most of some operators are called from, by the stacks that were recorded of them or by the
/// calls of Python around them; PyTorch's own lines are none of the program.
pub(super) fn line_of_calls(trace: &Trace, ops: &[SliceId]) -> Option<String> {
    let mut counts: FxHashMap<&str, usize> = FxHashMap::default();
    ops.iter().filter_map(|op| called_from(trace, *op)).for_each(|line| *counts.entry(line).or_default() += 1);
    let most = counts.into_iter().max_by_key(|(line, count)| (*count, std::cmp::Reverse(*line)));
    most.map(|(line, _)| line.to_string())
}

fn called_from(trace: &Trace, op: SliceId) -> Option<&str> {
    let is_own = |frame: &&str| {
        let file = Frame::parse(frame).file;
        file.is_some_and(|file| !file.starts_with("torch/") && !file.contains("/torch/") && !file.starts_with('<'))
    };
    let stack = trace.ops.get(op).map_or("", |info| trace.strings.get(info.stack));
    let calls = trace.slices.with_ancestors(op).filter(|id| trace.slices.kind(*id) == SliceKind::PythonFunction);
    stack.split(';').chain(calls.map(|id| trace.slice_name(id))).find(is_own)
}

/// The program's line in which samples are most often at some time.
pub(super) fn line_of_samples(facts: &Facts, samples: &[StackSample], time: &IntervalSet) -> Option<String> {
    let stacks = stacks_at(facts, samples, time, |stack| stack);
    let is_enough = stacks.len() >= LEAST_SAMPLES;
    is_enough.then(|| line_of(facts.trace, &stacks))?.map(|(line, _)| line)
}

/// The program's own part of each stack at some time, of the part that counts; one without any is left out.
fn stacks_at(
    facts: &Facts,
    samples: &[StackSample],
    time: &IntervalSet,
    part: impl Fn(Vec<StringId>) -> Vec<StringId>,
) -> Vec<Vec<StringId>> {
    let own: &OwnLines = facts.context.get();
    let inside = samples.iter().filter(|sample| contains(time.spans(), sample.time_ns));
    let stacks = inside.map(|sample| own.part(facts.trace, sample.track, part(outermost_first(facts.trace, sample))));
    stacks.filter(|stack| !stack.is_empty()).collect()
}

/// The part of a stack that calls into a file; none where nothing does, or a backward pass, which does so by itself.
fn frames_that_call(trace: &Trace, mut stack: Vec<StringId>, file: &str) -> Vec<StringId> {
    let starts_with = |start: &str| stack.iter().position(|frame| trace.strings.get(*frame).starts_with(start));
    let called = starts_with(file).filter(|called| starts_with(AUTOGRAD).is_none_or(|by| by > *called));
    stack.truncate(called.unwrap_or(0));
    stack
}

/// Where most of the samples are, by their stacks: the deepest function that still has most of them, at the line that it is
/// in most often; and what part of the samples that is.
pub(super) fn line_of(trace: &Trace, stacks: &[Vec<StringId>]) -> Option<(String, f64)> {
    let function = |frame: StringId| function_of(trace.strings.get(frame));
    let (mut inside, mut found) = (stacks.iter().collect::<Vec<_>>(), None);
    for depth in 0.. {
        let mut counts: FxHashMap<(&str, &str), usize> = FxHashMap::default();
        for stack in inside.iter().filter(|stack| stack.len() > depth) {
            *counts.entry(function(stack[depth])).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(function, count)| (*count, std::cmp::Reverse(*function)));
        let Some((deepest, count)) = most else { break };
        if count as f64 <= PART_OF_PLACE * stacks.len() as f64 {
            break;
        }
        inside.retain(|stack| stack.len() > depth && function(stack[depth]) == deepest);
        let mut lines: FxHashMap<StringId, usize> = FxHashMap::default();
        inside.iter().for_each(|stack| *lines.entry(stack[depth]).or_default() += 1);
        let line = lines.into_iter().max_by_key(|(line, count)| (*count, std::cmp::Reverse(*line)));
        found = line.map(|(line, _)| (trace.strings.get(line).to_string(), count as f64 / stacks.len() as f64));
    }
    found
}

/// File and function of a frame, without the line.
fn function_of(frame: &str) -> (&str, &str) {
    let place = frame.split_once("): ").and_then(|(place, function)| Some((place.rsplit_once('(')?.0, function)));
    place.unwrap_or(("", frame))
}

#[cfg(test)]
mod tests {
    use super::frames_that_call;
    use crate::Selection;
    use crate::advice::advice;
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::drawn_us;
    use stepscope_trace::SliceRole;

    /// The line of the advice on garbage collections, when the thread is sampled like this in each of five steps.
    fn line_with(samples: &str) -> Option<String> {
        let rows = [("cpu 1", "aaaa......"), ("python 1", "....ggg..."), ("samples 1", samples)];
        let mut trace = drawn_us(&repeated(5, &rows), 100);
        let name = trace.strings.intern("g");
        trace.roles.push((name, SliceRole::GarbageCollection));
        let rows = advice(&trace, &Selection::default());
        rows.into_iter().find(|row| row.rule.as_str() == "host.gc").and_then(|row| row.line)
    }

    #[test]
    fn a_backward_pass_calls_into_a_file_by_itself() {
        let mut trace = drawn_us("", 1);
        let mut kept = |frames: &[&str]| {
            let stack = frames.iter().map(|frame| trace.strings.intern(frame)).collect();
            frames_that_call(&trace, stack, "torch/c.py").len()
        };
        assert_eq!(kept(&["main.py(1): main", "torch/_compile.py(2): b", "torch/c.py(3): c", "f.py(4): f"]), 2);
        assert_eq!(kept(&["main.py(1): main", "torch/c.py(3): c", "torch/autograd/a.py(4): apply"]), 1);
        assert_eq!(kept(&["main.py(1): main", "torch/autograd/a.py(2): run", "torch/c.py(3): c"]), 0);
        assert_eq!(kept(&["main.py(1): main", "f.py(4): f"]), 0);
    }

    #[test]
    fn a_row_has_the_line_at_which_its_time_is() {
        assert_eq!(line_with("f....h...f").as_deref(), Some("h.py(7): h"));
        assert_eq!(line_with("f........f"), None, "no sample at that time");
    }
}

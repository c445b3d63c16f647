//! Steps of frameworks whose profilers mark them where none ends, or not at all.
//!
//! ```text
//! thread             │fwd··bwd··opt│  data  │fwd··bwd··opt│  data  │fwd··bwd··opt│
//! Lightning's batch  ├─────────────┤        ├─────────────┤        ├─────────────┤
//! ProfilerStep             ├──────── 1 ───────┤├─────── 2 ───────┤├──── 3 ───…
//! steps                             ├───────── 1 ──────────┤├──────── 2 ─────────┤
//! ```

use super::step_limits::Mark;
use crate::{FindingCode, Iteration, ProcessId, SliceId, SliceKind, Trace};
use std::collections::{BTreeMap, BTreeSet};

/// The label that Lightning's profiler sets around one batch of training.
const LIGHTNING_BATCH: &str = "[pl][profile]run_training_batch";

/// What PyTorch's label of an optimizer's step begins with.
const OPTIMIZER_STEP: &str = "Optimizer.step#";

/// Lightning's profiler makes its steps between the forward and the backward pass of a batch. Takes the `labels` of processes
/// where it did so away, and gives marks in their place: a step ends with a batch, and where batches are added up to a step,
/// with one in which an optimizer steps. A step has the number of the label that ends in it. Says also whether the first one
/// may have begun with a batch before the recording.
pub(super) fn recut(trace: &mut Trace, labels: &mut Vec<(SliceId, i64)>) -> BTreeMap<ProcessId, (Vec<Mark>, bool)> {
    let Some(name) = trace.strings.find(LIGHTNING_BATCH).filter(|_| !labels.is_empty()) else {
        return BTreeMap::new();
    };
    let slices = &trace.slices;
    let process_of = |slice: SliceId| trace.tracks[slices.track[slice.index()].index()].process;
    let mut begins: BTreeMap<ProcessId, Vec<(i64, i64)>> = BTreeMap::new();
    for (slice, number) in labels.iter() {
        begins.entry(process_of(*slice)).or_default().push((slices.start_ns[slice.index()], *number));
    }
    begins.values_mut().for_each(|begins| begins.sort_unstable());
    let mut optimizers: Vec<(ProcessId, i64)> = Vec::new();
    // Gradients are set to zero in other batches, too.
    let is_step = |id: &SliceId| trace.strings.get(slices.name[id.index()]).starts_with(OPTIMIZER_STEP);
    for id in slices.ids().filter(|id| slices.kind(*id) == SliceKind::Optimizer && is_step(id)) {
        optimizers.push((process_of(id), slices.start_ns[id.index()]));
    }
    optimizers.sort_unstable();
    let mut marks: BTreeMap<ProcessId, Vec<(Mark, bool)>> = BTreeMap::new();
    for batch in slices.ids().filter(|id| slices.name[id.index()] == name) {
        let (process, span) = (process_of(batch), slices.span(batch));
        let Some(begins) = begins.get(&process) else { continue };
        let within = begins[begins.partition_point(|(start_ns, _)| *start_ns < span.start_ns)..].first();
        // Of one that the end of recording cut, nobody knows where it ends.
        let Some((_, number)) = within.filter(|(start_ns, _)| *start_ns < span.end_ns) else { continue };
        let next_optimizer = optimizers.get(optimizers.partition_point(|at| *at < (process, span.start_ns)));
        let has_optimizer = next_optimizer.is_some_and(|at| *at < (process, span.end_ns));
        let track = slices.track[batch.index()];
        let mark = Mark { track, time_ns: span.end_ns, number: Some(number.saturating_sub(1)) };
        marks.entry(process).or_default().push((mark, has_optimizer));
    }
    labels.retain(|(slice, _)| !marks.contains_key(&process_of(*slice)));
    for (process, marks) in &marks {
        let rank = trace.processes[process.index()].rank;
        trace.findings.add(FindingCode::RecutSteps, || format!("{} batches of rank {rank}", marks.len()));
    }
    let of_steps = |marks: Vec<(Mark, bool)>| {
        let is_any = marks.iter().any(|(_, has_optimizer)| *has_optimizer);
        let are_added_up = is_any && marks.iter().any(|(_, has_optimizer)| !*has_optimizer);
        let ending = marks.into_iter().filter(|(_, has_optimizer)| *has_optimizer || !is_any);
        let mut ending: Vec<Mark> = ending.map(|(mark, _)| mark).collect();
        ending.sort_unstable_by_key(|mark| mark.time_ns);
        (ending, are_added_up)
    };
    marks.into_iter().map(|(process, marks)| (process, of_steps(marks))).collect()
}

/// Labels around what a server's smaller model does before an iteration, or as a part of one: its passes are none.
const DRAFTS: [&str; 2] = ["draft", "draft_extend"];

/// Numbers the `iterations` of each process that has no step in `labels`, as a server's, and adds them. Gives what is known of
/// those that it adds.
pub(super) fn add_iterations(
    trace: &mut Trace,
    labels: &mut Vec<(SliceId, i64)>,
    known: Vec<(SliceId, Iteration)>,
) -> BTreeMap<SliceId, Iteration> {
    let (tracks, slices) = (&trace.tracks, &trace.slices);
    let known: BTreeMap<SliceId, Iteration> = known.into_iter().collect();
    let is_draft = |around: SliceId| DRAFTS.contains(&trace.strings.get(slices.name[around.index()]));
    // A server may label one pass twice, one label in the other.
    let is_part = |slice: SliceId| {
        slices.with_ancestors(slice).skip(1).any(|around| known.contains_key(&around) || is_draft(around))
    };
    let mut iterations: Vec<SliceId> = known.keys().copied().filter(|slice| !is_part(*slice)).collect();
    let process_of = |slice: SliceId| tracks[slices.track[slice.index()].index()].process;
    let labelled: BTreeSet<ProcessId> = labels.iter().map(|(label, _)| process_of(*label)).collect();
    iterations.retain(|slice| !labelled.contains(&process_of(*slice)));
    iterations.sort_unstable_by_key(|slice| (process_of(*slice), slices.start_ns[slice.index()]));
    for of_process in iterations.chunk_by(|a, b| process_of(*a) == process_of(*b)) {
        labels.extend(of_process.iter().copied().zip(0..));
        let rank = trace.processes[process_of(of_process[0]).index()].rank;
        let example = || format!("{} steps of rank {rank}, from its iterations", of_process.len());
        trace.findings.add(FindingCode::InferredSteps, example);
    }
    known
}

#[cfg(test)]
mod tests {
    use super::super::step_limits::printed;
    use super::LIGHTNING_BATCH;
    use crate::{FindingCode, Iteration, Process, SliceId, SliceKind, Trace, TraceBuilder, Track, TrackKind};

    /// One thread of slices (name, start, end), and its steps.
    fn check(rows: &[(&str, i64, i64)], expected: &[&str]) -> Trace {
        let mut builder = TraceBuilder::new("steps");
        let process = builder.add_process(Process::default());
        let track = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
        for (text, start, end) in rows {
            let name = match *text {
                "batch" => LIGHTNING_BATCH,
                "step" => "Optimizer.step#SGD.step",
                "zero" => "Optimizer.zero_grad#SGD.zero_grad",
                other => other,
            };
            let name = builder.strings.intern(name);
            let number = text.strip_prefix('#').map(|digits| digits.parse().unwrap());
            let kind = match *text {
                "data" => SliceKind::DataLoader,
                "step" | "zero" => SliceKind::Optimizer,
                "op" => SliceKind::Op,
                _ if number.is_some() => SliceKind::Step,
                _ => SliceKind::Annotation,
            };
            let slice: SliceId = builder.add_slice(track, kind, name, *start, end - start);
            number.into_iter().for_each(|number| builder.add_step_label(slice, number));
            if *text == "iteration" {
                builder.add_iteration(slice, Iteration { requests: Some(*start), ..Iteration::default() });
            }
        }
        let trace = builder.finish();
        assert_eq!(printed(&trace), expected);
        trace
    }

    #[test]
    fn steps_end_with_batches_of_lightning() {
        let rows = [
            ("#2", 0, 36),
            ("op", 4, 8),
            ("data", 20, 24),
            ("batch", 30, 50),
            ("#3", 37, 70),
            ("step", 40, 48),
            ("data", 52, 54),
            ("batch", 60, 80),
            ("#4", 71, 100),
            ("step", 74, 79),
            ("batch", 90, 100),
        ];
        let trace = check(&rows, &["2 20..50", "3 50..80", "4 80..100 cut"]);
        assert_eq!(trace.findings.count(FindingCode::RecutSteps), 1);
        assert_eq!(trace.findings.count(FindingCode::InferredSteps), 0);
    }

    #[test]
    fn where_batches_make_a_step_together_it_ends_with_the_one_that_has_an_optimizer() {
        let rows = [
            ("data", 0, 4),
            ("batch", 5, 20),
            ("#1", 10, 30),
            ("zero", 12, 13),
            ("batch", 25, 40),
            ("#2", 31, 50),
            ("step", 35, 38),
            ("batch", 45, 60),
            ("#3", 51, 70),
            ("batch", 65, 80),
            ("#4", 71, 90),
            ("step", 75, 79),
        ];
        check(&rows, &["1 0..40 cut", "3 40..80", "4 80..90 cut"]);
    }

    #[test]
    fn steps_that_begin_outside_of_batches_stay() {
        check(&[("#0", 0, 10), ("batch", 1, 8), ("#1", 10, 20), ("batch", 11, 18)], &["0 0..10", "1 10..20"]);
    }

    #[test]
    fn iterations_of_a_server_are_steps_where_nothing_else_marks_any() {
        let trace = check(&[("iteration", 0, 9), ("iteration", 12, 19)], &["0 0..9", "1 12..19"]);
        assert_eq!(trace.findings.count(FindingCode::InferredSteps), 1);
        assert_eq!(trace.steps.iter().map(|step| step.iteration.requests).collect::<Vec<_>>(), [Some(0), Some(12)]);
        check(&[("#7", 0, 30), ("iteration", 5, 9), ("iteration", 12, 19)], &["7 0..30"]);
    }

    #[test]
    fn what_a_smaller_model_guesses_is_no_iteration() {
        let rows = [("draft", 0, 9), ("iteration", 1, 4), ("iteration", 5, 8), ("iteration", 10, 20)];
        check(&rows, &["0 10..20"]);
    }

    #[test]
    fn a_pass_that_is_labelled_twice_is_one_iteration() {
        let trace = check(&[("iteration", 0, 9), ("iteration", 1, 8), ("iteration", 9, 12)], &["0 0..9", "1 9..12"]);
        assert_eq!(trace.steps[0].iteration.requests, Some(0));
    }
}

//! Where steps begin and end: the job's own labels first, else the optimizer's steps, else kernels that repeat, else one
//! step over everything.
//!
//! ```text
//! thread   ░░data··fwd··bwd··opt│data··fwd··bwd··opt│data··fwd
//! steps    ├──────── 0 ────────┤├──────── 1 ────────┤├─ 2, cut
//! ```

use super::recut_steps::{add_iterations, recut};
use super::repeating_kernels::repeating_windows;
use crate::{FindingCode, Iteration, ProcessId, SliceId, SliceKind, Step, StepSource, Trace, Track, TrackId};
use std::collections::BTreeMap;
use stepscope_base::Span;

/// A moment at which an optimizer's step was running.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) track: TrackId,
    pub(super) time_ns: i64,
    /// The number of the step that it ends, where the job counts.
    pub(super) number: Option<i64>,
}

/// A label of the job, and the number of the step that it is.
pub(super) type StepLabel = (SliceId, i64);

/// Fills `trace.steps` from labels, iterations of servers and optimizer marks; `is_cut` names processes whose recording ended at work, and
/// `recorded` has the windows of those of which only some was recorded.
pub(super) fn find_steps(
    trace: &mut Trace,
    (mut labels, iterations): (Vec<StepLabel>, Vec<(SliceId, Iteration)>),
    marks: Vec<Mark>,
    is_cut: &[ProcessId],
    recorded: &[(ProcessId, Span)],
) {
    let mut steps: Vec<Step> = Vec::new();
    for (process, (marks, is_first_cut)) in recut(trace, &mut labels) {
        let mut found = consecutive_steps(trace, process, &marks, None, 0, (true, StepSource::Label));
        found[0].is_complete &= !is_first_cut;
        steps.extend(found);
    }
    let iterations = add_iterations(trace, &mut labels, iterations);
    let process_of = |track: TrackId| trace.tracks[track.index()].process;
    for (slice, number) in labels {
        let process = process_of(trace.slices.track[slice.index()]);
        let is_complete = !trace.slices.is_unfinished[slice.index()];
        let iteration = iterations.get(&slice).copied().unwrap_or_default();
        let step = step(trace, process, number, trace.slices.span(slice), StepSource::Label, is_complete);
        steps.push(Step { iteration, ..step });
    }
    let is_labelled = |process: ProcessId| steps.iter().any(|step| step.process == process);
    let mut marks_of: BTreeMap<ProcessId, Vec<Mark>> = BTreeMap::new();
    for mark in marks {
        let process = process_of(mark.track);
        if !is_labelled(process) {
            marks_of.entry(process).or_default().push(mark);
        }
    }
    for (process, marks) in marks_of {
        let windows: Vec<Span> = recorded.iter().filter(|(of, _)| *of == process).map(|(_, span)| *span).collect();
        let inferred = optimizer_steps(trace, process, marks, &windows, is_cut.contains(&process));
        add_inferred(trace, &mut steps, inferred, "optimizer");
    }
    if trace.ranks().iter().any(|rank| !steps.iter().any(|step| step.rank == *rank)) {
        for inferred in kernel_steps(trace, &steps) {
            add_inferred(trace, &mut steps, inferred, "kernels");
        }
    }
    for rank in trace.ranks() {
        if !steps.iter().any(|step| step.rank == rank) {
            steps.extend(whole_step(trace, rank));
        }
    }
    steps.sort_unstable_by_key(|step| (step.rank, step.span, step.process, step.number));
    for step in steps.iter().filter(|step| !step.is_complete) {
        trace.findings.add(FindingCode::IncompleteStep, || format!("step {} of rank {}", step.number, step.rank));
    }
    trace.steps = steps;
}

fn add_inferred(trace: &mut Trace, steps: &mut Vec<Step>, inferred: Vec<Step>, from: &str) {
    let rank = inferred[0].rank;
    let example = || format!("{} steps of rank {rank}, from its {from}", inferred.len());
    trace.findings.add(FindingCode::InferredSteps, example);
    steps.extend(inferred);
}

/// The steps of processes that launch the same kernels again and again, of ranks that have none in `known`.
fn kernel_steps(trace: &Trace, known: &[Step]) -> Vec<Vec<Step>> {
    let rank_of = |process: ProcessId| trace.processes[process.index()].rank;
    let is_wanted = |process: ProcessId| !known.iter().any(|step| step.rank == rank_of(process));
    let of_process = |(process, windows): (ProcessId, Vec<(Span, bool)>)| -> Vec<Step> {
        let numbered = (0_i64..).zip(windows);
        let of_window =
            |(number, (span, is_complete))| step(trace, process, number, span, StepSource::Kernels, is_complete);
        numbered.map(of_window).collect()
    };
    repeating_windows(trace).into_iter().filter(|(process, _)| is_wanted(*process)).map(of_process).collect()
}

fn step(trace: &Trace, process: ProcessId, number: i64, span: Span, source: StepSource, is_complete: bool) -> Step {
    let rank = trace.processes[process.index()].rank;
    Step { process, rank, number, span, source, is_complete, iteration: Iteration::default() }
}

/// The steps of a process: consecutive ones, or some within each of the `windows` that were recorded.
fn optimizer_steps(
    trace: &Trace,
    process: ProcessId,
    mut marks: Vec<Mark>,
    windows: &[Span],
    is_cut: bool,
) -> Vec<Step> {
    marks.sort_unstable_by_key(|mark| mark.time_ns);
    let window_of = |mark: &Mark| windows.partition_point(|window| window.start_ns <= mark.time_ns).checked_sub(1);
    let mut steps = Vec::new();
    let groups: Vec<&[Mark]> = marks.chunk_by(|a, b| window_of(a) == window_of(b)).collect();
    for (at, group) in groups.iter().enumerate() {
        let window = window_of(&group[0]).map(|window| windows[window]);
        let is_last = at + 1 == groups.len();
        let is_cut = is_cut && is_last && window.is_none_or(|window| Some(&window) == windows.last());
        let next_number = steps.last().map_or(0, |step: &Step| step.number.saturating_add(1));
        steps.extend(consecutive_steps(trace, process, group, window, next_number, (is_cut, StepSource::Optimizer)));
    }
    steps
}

/// Consecutive steps that end with the optimizer's slice around each mark. The first begins with the window, if that was
/// opened between two steps; else with the first wait for data on that thread; without one, nobody knows where: it is
/// cut, and reaches back to the thread's first op.
fn consecutive_steps(
    trace: &Trace,
    process: ProcessId,
    marks: &[Mark],
    window: Option<Span>,
    next_number: i64,
    (is_cut, source): (bool, StepSource),
) -> Vec<Step> {
    let (track, first_mark_ns) = (marks[0].track, marks[0].time_ns);
    let first_number = marks[0].number.unwrap_or(next_number);
    let window = window.filter(|_| first_number > 0);
    let first_data_ns = first_start(trace, track, SliceKind::DataLoader, first_mark_ns);
    let first_op_ns = first_start(trace, track, SliceKind::Op, first_mark_ns);
    let known_ns = window.map(|window| window.start_ns).or(first_data_ns);
    let mut start_ns = known_ns.or(first_op_ns).unwrap_or(first_mark_ns);
    let mut is_start_known = known_ns.is_some();
    let mut number = first_number;
    let mut steps = Vec::new();
    for mark in marks {
        let (end_ns, is_end_known) = optimizer_end(trace, mark.track, mark.time_ns);
        number = mark.number.unwrap_or(number);
        let is_complete = is_start_known && is_end_known;
        // What contradicts itself may say anything.
        let span = Span::new(start_ns.min(end_ns), end_ns);
        steps.push(step(trace, process, number, span, source, is_complete));
        (start_ns, is_start_known, number) = (end_ns, is_end_known, number.saturating_add(1));
    }
    let ids = trace.lanes(track).flat_map(|lane| trace.tracks[lane.index()].slice_ids());
    let last_ns = ids.map(|id| trace.slices.span(id).end_ns).max();
    if let Some(end_ns) = last_ns.filter(|end_ns| is_cut && *end_ns > start_ns) {
        steps.push(step(trace, process, number, Span::new(start_ns, end_ns), source, false));
    }
    steps
}

/// When the first slice of a kind begins on a track, in any of its lanes, if that is before `before_ns`.
fn first_start(trace: &Trace, track: TrackId, kind: SliceKind, before_ns: i64) -> Option<i64> {
    let first = |lane: TrackId| {
        let mut ids = trace.tracks[lane.index()].slice_ids().filter(|id| trace.slices.kind(*id) == kind);
        ids.next().map(|id| trace.slices.start_ns[id.index()])
    };
    trace.lanes(track).filter_map(first).min().filter(|start_ns| *start_ns < before_ns)
}

/// The end of the innermost optimizer slice that is open at `time_ns` in any lane (else `time_ns` itself), and whether it
/// was seen.
fn optimizer_end(trace: &Trace, track: TrackId, time_ns: i64) -> (i64, bool) {
    let place = |id: &SliceId| (trace.slices.start_ns[id.index()], trace.slices.depth[id.index()]);
    let open = trace.lanes(track).filter_map(|lane| open_optimizer(trace, lane, time_ns));
    match open.max_by_key(place) {
        Some(id) => (trace.slices.span(id).end_ns, !trace.slices.is_unfinished[id.index()]),
        None => (time_ns, true),
    }
}

/// The innermost optimizer slice of a lane that is open at `time_ns`.
fn open_optimizer(trace: &Trace, lane: TrackId, time_ns: i64) -> Option<SliceId> {
    let rows = &trace.tracks[lane.index()].slices;
    let starts = &trace.slices.start_ns[rows.start as usize..rows.end as usize];
    let last = starts.partition_point(|start_ns| *start_ns <= time_ns).checked_sub(1)?;
    let is_open_optimizer =
        |id: &SliceId| trace.slices.kind(*id) == SliceKind::Optimizer && trace.slices.span(*id).end_ns >= time_ns;
    trace.slices.with_ancestors(SliceId(rows.start + last as u32)).find(is_open_optimizer)
}

fn whole_step(trace: &mut Trace, rank: u32) -> Option<Step> {
    let tracks = trace.tracks.iter().filter(|track| trace.processes[track.process.index()].rank == rank);
    let spans = tracks.flat_map(Track::slice_ids).map(|id| trace.slices.span(id));
    let hull = |a: Span, b: Span| Span::new(a.start_ns.min(b.start_ns), a.end_ns.max(b.end_ns));
    let slices = spans.reduce(hull)?;
    // Slices may be few labels amid what else was recorded.
    let memory = trace.memory.iter().filter(|event| trace.rank_of_track(event.track) == rank);
    let span = memory.map(|event| Span::new(event.time_ns, event.time_ns)).fold(slices, hull);
    trace.findings.add(FindingCode::NoSteps, || format!("rank {rank}"));
    let process = trace.processes.iter().position(|process| process.rank == rank)?;
    Some(step(trace, ProcessId::from_index(process), 0, span, StepSource::Whole, true))
}

/// Steps as `number start..end`, with `cut` where they are not complete: what tests expect.
#[cfg(test)]
pub(super) fn printed(trace: &Trace) -> Vec<String> {
    let print = |step: &Step| {
        let cut = if step.is_complete { "" } else { " cut" };
        format!("{} {}..{}{cut}", step.number, step.span.start_ns, step.span.end_ns)
    };
    trace.steps.iter().map(print).collect()
}

#[cfg(test)]
mod tests {
    use super::printed;
    use crate::{FindingCode, Process, SliceKind, Trace, TraceBuilder, Track, TrackKind};
    use stepscope_base::Span;

    /// One thread of slices (kind, start, end), marks, and whether the process was cut; steps as `number start..end`.
    fn check(rows: &[(SliceKind, i64, i64)], marks: &[i64], is_cut: bool, expected: &[&str]) -> Trace {
        let mut builder = TraceBuilder::new("steps");
        let process = builder.add_process(Process::default());
        let track = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
        let name = builder.strings.intern("x");
        for (at, (kind, start, end)) in rows.iter().enumerate() {
            let slice = builder.add_slice(track, *kind, name, *start, end - start);
            if *kind == SliceKind::Step {
                builder.add_step_label(slice, at as i64);
            }
        }
        marks.iter().for_each(|mark| builder.add_step_mark(track, *mark, None));
        if is_cut {
            builder.set_cut(process);
        }
        let trace = builder.finish();
        assert_eq!(printed(&trace), expected);
        trace
    }

    use SliceKind::{DataLoader, Op, Optimizer, Step};

    #[test]
    fn labels_win_over_the_optimizer() {
        check(&[(Step, 0, 10), (Optimizer, 7, 9), (Step, 10, 20)], &[8], false, &["0 0..10", "2 10..20"]);
    }

    #[test]
    fn a_step_ends_with_the_optimizer_and_the_first_begins_with_its_data() {
        let rows = [(Op, 0, 5), (DataLoader, 10, 12), (Optimizer, 20, 25), (DataLoader, 26, 27), (Optimizer, 33, 36)];
        let trace = check(&rows, &[24, 35], false, &["0 10..25", "1 25..36"]);
        assert_eq!(trace.findings.count(FindingCode::InferredSteps), 1);
    }

    #[test]
    fn without_a_wait_for_data_nobody_knows_where_the_first_step_began() {
        let rows = [(Op, 0, 5), (Optimizer, 6, 9), (Op, 10, 14), (Optimizer, 15, 17)];
        check(&rows, &[8, 16], false, &["0 0..9 cut", "1 9..17"]);
    }

    #[test]
    fn a_killed_process_leaves_a_cut_step() {
        let rows = [(DataLoader, 0, 5), (Optimizer, 6, 9), (Op, 10, 14)];
        let trace = check(&rows, &[8], true, &["0 0..9", "1 9..14 cut"]);
        assert_eq!(trace.findings.count(FindingCode::IncompleteStep), 1);
    }

    #[test]
    fn the_whole_trace_reaches_over_its_memory() {
        let trace = crate::drawn::drawn("rank 0 cpu 1 .xx.....\nrank 0 memory 1 a......A");
        let steps: Vec<_> = trace.steps.iter().map(|step| (step.source, step.span)).collect();
        assert_eq!(steps, [(crate::StepSource::Whole, stepscope_base::Span::new(0, 7_000))]);
    }

    #[test]
    fn what_was_not_recorded_is_no_step() {
        let mut builder = TraceBuilder::new("windows");
        let process = builder.add_process(Process::default());
        let track = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
        let name = builder.strings.intern("x");
        for (kind, start, end) in [
            (Op, 0, 30),
            (Optimizer, 30, 40),
            (Op, 50, 60),
            (Optimizer, 60, 70),
            (Op, 1_005, 1_010),
            (Optimizer, 1_010, 1_020),
        ] {
            builder.add_slice(track, kind, name, start, end - start);
        }
        for (mark, number) in [(35, 0), (65, 1), (1_015, 8)] {
            builder.add_step_mark(track, mark, Some(number));
        }
        for (start, end) in [(0, 66), (1_000, 1_016)] {
            builder.add_recorded(process, Span::new(start, end));
        }
        let trace = builder.finish();
        let found: Vec<_> = trace
            .steps
            .iter()
            .map(|step| (step.number, step.span.start_ns, step.span.end_ns, step.is_complete))
            .collect();
        assert_eq!(found, [(0, 0, 40, false), (1, 40, 70, true), (8, 1_000, 1_020, true)]);
    }

    #[test]
    fn without_any_mark_there_is_one_step() {
        let trace = check(&[(Op, 5, 8), (Op, 9, 12)], &[], false, &["0 0..7"]);
        assert_eq!(trace.findings.count(FindingCode::NoSteps), 1);
    }
}

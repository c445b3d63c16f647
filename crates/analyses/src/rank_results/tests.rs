use super::*;
use crate::batches::tests::with_batches;
use crate::{Analysis, Compat, GroupBy, Needs, Outcome, Ranks, Table, catalogue};
use proptest::prelude::*;
use stepscope_trace::drawn::drawn;
use stepscope_trace::simulated::{Job, Schedule, Straggler};
use stepscope_trace::{Collective, Doing, Drift, Flow, FlowKind, SliceRole, StackSample, merge};

/// What all analyses that need no events say of several ranks: from their events, and from what was condensed of them.
fn both(ranks: &[Trace], selection: &Selection) -> Vec<(&'static str, Outcome, Outcome)> {
    let merged = |traces: Vec<Trace>| merge("all".into(), traces.into_iter().map(|trace| (trace, 0)).collect(), None);
    let whole = merged(ranks.to_vec());
    let all = Selection::default();
    let condense = |trace: &Trace| condensed(&AnalysisContext::new(trace, &all));
    let (traces, results): (Vec<Trace>, Vec<RankResults>) = ranks.iter().map(condense).unzip();
    assert!(traces.iter().zip(&results).all(|(trace, results)| results.fits(trace)));
    let mut first = FirstIds::default();
    let mut placed = Vec::new();
    for (trace, results) in traces.iter().zip(&results) {
        placed.push((first, results));
        first = first.after(trace);
    }
    let small = merged(traces.clone());
    let in_window = selection.window.map(|_| Launched::asked_for(&AnalysisContext::new(&whole, selection)));
    let shared = given(&small, &placed, selection, in_window);
    let context = AnalysisContext::with_results(&small, selection, shared);
    let needless = catalogue().iter().filter(|analysis| matches!(analysis.needs_for(selection), Needs::Condensed));
    needless
        .map(|analysis| {
            let from_events = (analysis.run)(&AnalysisContext::new(&whole, selection));
            (analysis.name, from_events, (analysis.run)(&context))
        })
        .collect()
}

#[track_caller]
fn check(ranks: &[Trace]) -> Vec<&'static str> {
    let mut with_rows = Vec::new();
    let steps = [None, Some(1)].map(|step| Selection { step, ..Selection::default() });
    let complete = Selection { complete_steps: true, ..Selection::default() };
    let one = Selection { ranks: 1.into(), ..Selection::default() };
    let window = Selection { window: Some(Span::new(5_000, 900_000)), ..Selection::default() };
    let tensorboard = Selection { compat: Some(Compat::Tb), ..Selection::default() };
    for selection in steps.into_iter().chain([complete, one, window, tensorboard]) {
        for (name, from_events, from_condensed) in both(ranks, &selection) {
            assert_eq!(from_condensed, from_events, "{name} of {selection:?}");
            if !from_events.table.is_empty() && !with_rows.contains(&name) {
                with_rows.push(name);
            }
        }
    }
    with_rows
}

fn simulated(schedule: Schedule, ranks: u32, has_devices: bool, seed: u64) -> Vec<Trace> {
    let stragglers = vec![Straggler { rank: 1, op: None, percent: 140 }];
    let hosts = vec![(0, Drift(0)), (70_000, Drift(3_000))];
    let job =
        Job { ranks, steps: 3, schedule, has_devices, jitter_ns: 5_000, seed, stragglers, hosts, ..Job::default() };
    let run = job.run();
    (0..ranks).map(|rank| run.trace_of(rank)).collect()
}

#[test]
fn what_was_condensed_of_ranks_gives_the_same_answers_as_their_events() {
    for has_devices in [true, false] {
        let mut with_rows = check(&simulated(Schedule::Pipeline { stages: 2, micro_batches: 3 }, 4, has_devices, 1));
        with_rows.extend(check(&simulated(Job::default().schedule, 4, has_devices, 2)));
        // Nobody hangs, and nothing is doubtful.
        let is_empty = |analysis: &&Analysis| ["hangs", "findings"].contains(&analysis.name);
        let condensed = catalogue().iter().filter(|analysis| matches!(analysis.needs, Needs::Condensed));
        let condensed = condensed.filter(|analysis| !is_empty(analysis));
        condensed.for_each(|analysis| assert!(with_rows.contains(&analysis.name), "{} has no rows", analysis.name));
    }
}

/// A simulated job in which each backward pass belongs to the forward pass before it on its track.
pub(crate) fn linked(mut trace: Trace) -> Trace {
    for track in 0..trace.tracks.len() {
        let mut forward: Option<SliceId> = None;
        for id in trace.tracks[track].slice_ids() {
            match (trace.slice_name(id), forward) {
                ("forward", _) => forward = Some(id),
                ("backward", Some(from)) => {
                    trace.flows.push(Flow { kind: FlowKind::ForwardBackward, from, to: id });
                }
                _ => {}
            }
        }
    }
    trace
}

/// A sample of each loop at the end of each step, since which it could have run for some time, and did not.
pub(crate) fn loop_samples(trace: &Trace, runnable_ns: i64) -> Vec<StackSample> {
    let (selection, doing) = (Selection::default(), Doing::Running);
    let context = AnalysisContext::new(trace, &selection);
    let sample = |step: &Step| {
        let (track, time_ns) = (*context.get::<MainThreads>().0.get(&step.process)?, step.span.end_ns - 1);
        Some(StackSample { track, time_ns, stack: None, doing, ran_ns: None, runnable_ns: Some(runnable_ns) })
    };
    let mut samples: Vec<StackSample> = trace.steps.iter().filter_map(sample).collect();
    samples.sort_by_key(|sample| (sample.track, sample.time_ns));
    samples
}

#[test]
fn passes_of_each_rank_are_condensed() {
    let mut ranks: Vec<Trace> =
        simulated(Schedule::Ddp { buckets: 2, overlaps: false }, 3, false, 4).into_iter().map(linked).collect();
    let samples = loop_samples(&ranks[1], 700);
    ranks[1].stack_samples = samples;
    let (all, parts) =
        (Selection::default(), |traces: &[Trace]| traces.iter().map(|trace| (trace.clone(), 0)).collect());
    let condense = |trace: &Trace| condensed(&AnalysisContext::new(trace, &all));
    let (traces, results): (Vec<Trace>, Vec<RankResults>) = ranks.iter().map(condense).unzip();
    let first = traces.iter().scan(FirstIds::default(), |next, trace| Some(std::mem::replace(next, next.after(trace))));
    let placed: Vec<(FirstIds, &RankResults)> = first.zip(&results).collect();
    let (whole, small) = (merge("all".into(), parts(&ranks), None), merge("all".into(), parts(&traces), None));
    let shared = given(&small, &placed, &all, None);
    let (small, whole) = (AnalysisContext::with_results(&small, &all, shared), AnalysisContext::new(&whole, &all));
    let passes = small.get::<StepsPasses>().0.clone();
    assert_eq!(passes, whole.get::<StepsPasses>().0);
    let waits = small.get::<StepsProcessorWaits>().0.clone();
    assert_eq!(waits, whole.get::<StepsProcessorWaits>().0);
    assert_eq!(waits, [0, 0, 0, 700, 700, 700, 0, 0, 0], "{:?}", whole.trace.steps);
    assert!(passes.len() == 9 && passes.iter().all(|passes_ns| !passes_ns.contains(&0)), "{passes:?}");
}

#[test]
fn a_job_that_hangs_does_so_in_what_was_condensed() {
    for has_devices in [true, false] {
        let mut ranks = simulated(Job::default().schedule, 3, has_devices, 5);
        for (rank, trace) in ranks.iter_mut().enumerate() {
            let last = trace.collectives.iter().filter_map(|said| said.sequence_number).max();
            let is_last = |said: &Collective| said.sequence_number == last;
            if rank == 1 {
                trace.collectives.retain(|said| !is_last(said));
                continue;
            }
            let said: Vec<SliceId> =
                trace.collectives.iter().filter(|said| is_last(said)).map(|said| said.slice).collect();
            let kernels = trace.device_events.iter().filter(|event| event.op.is_some_and(|op| said.contains(&op)));
            let kernels: Vec<SliceId> = kernels.map(|event| event.slice).collect();
            said.into_iter().chain(kernels).for_each(|slice| trace.slices.is_unfinished[slice.index()] = true);
        }
        assert!(check(&ranks).contains(&"hangs"), "devices: {has_devices}");
    }
}

#[test]
fn a_condensed_trace_has_few_slices() {
    let ranks = simulated(Job::default().schedule, 2, true, 3);
    let (trace, _) = condensed(&AnalysisContext::new(&ranks[0], &Selection::default()));
    assert!(trace.slices.len() < ranks[0].slices.len(), "{} of {}", trace.slices.len(), ranks[0].slices.len());
    assert_eq!((trace.span(), trace.steps.len()), (ranks[0].span(), ranks[0].steps.len()));
}

proptest! {
    #[test]
    fn drawn_ranks_give_the_same_answers(
        rows in prop::collection::vec(("0{1,15}1{15}", "[.amx|]{30}", "[.CDN|]{30}", "[.CDNH|]{30}"), 2..4),
    ) {
        let of_rank = |(rank, (steps, host, launch, stream)): (usize, &(String, String, String, String))| {
            drawn(&format!(
                "rank {rank} step {steps}\nrank {rank} cpu 1 {host}\nrank {rank} launch 1 {launch}\nrank {rank} stream 7 {stream}\n"
            ))
        };
        check(&rows.iter().enumerate().map(of_rank).collect::<Vec<_>>());
    }
}

/// Compares what is put together from the events of each rank with what all of them give at once. What has rows.
#[track_caller]
fn check_by_rank(ranks: &[Trace]) -> Vec<&'static str> {
    let whole = merge("all".into(), ranks.iter().map(|trace| (trace.clone(), 0)).collect(), None);
    let mut with_rows = Vec::new();
    let window = Selection { window: Some(Span::new(5_000, 20_000)), ..Selection::default() };
    let some = Selection { ranks: Ranks::from(1), ..Selection::default() };
    let step = Selection { step: Some(1), ..Selection::default() };
    let by_file = Selection { group_by: Some(GroupBy::File), ..Selection::default() };
    for selection in [Selection::default(), window, some, step, by_file] {
        let asked = || ranks.iter().filter(|trace| trace.ranks().iter().all(|rank| selection.has_rank(*rank)));
        for analysis in catalogue() {
            let at_once = (analysis.run)(&AnalysisContext::new(&whole, &selection));
            match analysis.needs {
                Needs::Joined(joined) => {
                    let of_ranks = asked().map(|trace| joined.of(&AnalysisContext::new(trace, &selection)));
                    let shared = joined.join(of_ranks.collect());
                    let nothing = Trace::default();
                    let own = (analysis.run)(&AnalysisContext::with_results(&nothing, &selection, shared));
                    assert_eq!(own, at_once, "{} of {selection:?}", analysis.name);
                }
                Needs::EachRank | Needs::EachRankKept => {
                    let mut own = Table { columns: analysis.columns(&selection) };
                    asked()
                        .for_each(|trace| own.append((analysis.run)(&AnalysisContext::new(trace, &selection)).table));
                    assert_eq!(own, at_once.table, "{} of {selection:?}", analysis.name);
                }
                _ => continue,
            }
            if !at_once.table.is_empty() && !with_rows.contains(&analysis.name) {
                with_rows.push(analysis.name);
            }
        }
    }
    with_rows
}

#[test]
fn what_is_put_together_from_each_rank_is_what_all_events_give() {
    let simulated = simulated(Job::default().schedule, 3, true, 4);
    let of_rank = |rank: u32| {
        let late = ".".repeat(rank as usize);
        drawn(&format!(
            "rank {rank} step {late}000000001111111\nrank {rank} python 1 {late}ffffff.ffffff\n\
             rank {rank} module 1 {late}mmmmm..mmmmm\nrank {rank} module 1 {late}.n{rank}n...n..p\n\
             rank {rank} cpu 1 {late}.aab...aaaa\nrank {rank} launch 1 {late}.K.....LHKD\n\
             rank {rank} stream 7 {late}..KKK...LLLLKKHD\nrank {rank} memory 1 {late}.a.A.bb.cC\n\
             rank {rank} io 2 {late}..rr..w\n"
        ))
    };
    let mut with_rows = check_by_rank(&simulated);
    // By name of their files, ranks may come in any order; here they come by rank.
    with_rows.extend(check_by_rank(&[of_rank(0), of_rank(1), of_rank(2)]));
    for name in [
        "modules",
        "call_tree",
        "source_lines",
        "roofline",
        "device_peaks",
        "memory_summary",
        "memory_peak",
        "memory_events",
        "memory_timeline",
        "memory_curve",
        "memory_statistics",
        "idle_gaps",
        "gpu_utilization_curve",
        "queue_length_curve",
        "critical_path",
        "critical_path_slack",
        "critical_path_slices",
        "critical_path_pieces",
    ] {
        assert!(with_rows.contains(&name), "{name}");
    }
}

#[test]
fn batches_and_checkpoints_are_put_together_from_each_rank() {
    let of_rank = |rank: u32| {
        let late = ".".repeat(rank as usize);
        let mut trace = with_batches(&format!(
            "rank 0 step {late}00000000011111111\nrank 0 input 1 {late}.aaaa..b....\n\
             rank 0 python 1 {late}.........sss\nrank 0 io 1 {late}..........w\n\
             rank 1 label 1 {late}aaaabb......\nrank 1 io 1 {late}.rr.w.......\n"
        ));
        trace.roles = vec![(trace.strings.intern("s"), SliceRole::CheckpointWrite)];
        trace.set_rank(rank);
        trace
    };
    let with_rows = check_by_rank(&[of_rank(0), of_rank(1), of_rank(2)]);
    for name in ["io_workers", "io_samples", "checkpoints"] {
        assert!(with_rows.contains(&name), "{name}");
    }
}

proptest! {
    #[test]
    fn drawn_ranks_are_put_together_as_all_events(
        rows in prop::collection::vec(
            ["0{1,15}1{15}", "[.mn|]{30}", "[.fg|]{30}", "[.amx|]{30}", "[.CDN|]{30}", "[.CDNH|]{30}", "[.abcABC]{30}"],
            2..4,
        ),
    ) {
        let of_rank = |(rank, rows): (usize, &[String; 7])| {
            let [steps, module, python, host, launch, stream, memory] = rows;
            drawn(&format!(
                "rank {rank} step {steps}\nrank {rank} module 1 {module}\nrank {rank} python 1 {python}\n\
                 rank {rank} cpu 1 {host}\nrank {rank} launch 1 {launch}\nrank {rank} stream 7 {stream}\n\
                 rank {rank} memory 1 {memory}\n"
            ))
        };
        check_by_rank(&rows.iter().enumerate().map(of_rank).collect::<Vec<_>>());
    }
}

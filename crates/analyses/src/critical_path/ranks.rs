//! The path of each step of a job, from rank to rank.

use super::graph::Graph;
use super::pieces::{OnThread, device_class};
use super::walk::{On, walk};
use super::{PathClass, PathParts};
use crate::{AnalysisContext, Ranks, Selection};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use stepscope_base::Span;
use stepscope_trace::{SliceId, Step, Trace};

/// The time of a path on one rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RankTime {
    /// Communication with other ranks, once all have come that it waits for.
    pub transfer_ns: i64,
    /// The rest by class.
    pub parts: PathParts,
    /// How often the path comes to the rank from another one.
    pub hops: i64,
}

impl RankTime {
    /// All of it.
    pub fn path_ns(&self) -> i64 {
        self.transfer_ns + self.parts.total_ns()
    }
}

/// The path of one step, or of several together.
pub(crate) struct JobPath {
    /// The number of the step, of one.
    pub(crate) step: Option<i64>,
    pub(crate) start_ns: i64,
    pub(crate) length_ns: i64,
    /// Ranks that have the step.
    pub(crate) ranks: i64,
    pub(crate) is_complete: bool,
    /// Each rank that has a part of it.
    pub(crate) on: BTreeMap<u32, RankTime>,
}

impl JobPath {
    /// The complete ones of several together; `None` without any.
    pub(crate) fn sum(paths: &[Self]) -> Option<Self> {
        let complete = || paths.iter().filter(|path| path.is_complete);
        let mut on: BTreeMap<u32, RankTime> = BTreeMap::new();
        for (rank, time) in complete().flat_map(|path| &path.on) {
            let sum = on.entry(*rank).or_default();
            sum.transfer_ns += time.transfer_ns;
            PathClass::ALL.iter().for_each(|class| sum.parts.add(*class, time.parts.of(*class)));
            sum.hops += time.hops;
        }
        Some(Self {
            step: None,
            start_ns: complete().map(|path| path.start_ns).min()?,
            length_ns: complete().map(|path| path.length_ns).sum(),
            ranks: complete().map(|path| path.ranks).max()?,
            is_complete: true,
            on,
        })
    }
}

/// The path of every step asked for that has a thread, whatever ranks are asked for; by number.
pub(crate) fn job_paths(context: &AnalysisContext<'_>) -> Vec<JobPath> {
    let all_ranks = Selection { ranks: Ranks::default(), ..context.selection.clone() };
    let graph = Graph::across(context);
    let path = |(step, steps): (i64, Vec<&Step>)| {
        let (span, found) = walk(&graph, &steps)?;
        let on = by_rank(&graph, &found);
        let path_ns: i64 = on.values().map(RankTime::path_ns).sum();
        assert_eq!(path_ns, span.duration_ns(), "ranks sum to the path");
        let is_complete = steps.iter().all(|step| step.is_complete);
        let (start_ns, length_ns, ranks) = (span.start_ns, path_ns, steps.len() as i64);
        Some(JobPath { step: Some(step), start_ns, length_ns, ranks, is_complete, on })
    };
    steps_of_job(all_ranks.steps(context.trace)).into_iter().filter_map(path).collect()
}

/// Steps of the same number, one of each rank. Where a rank has several of a number, the first goes with the first of the
/// others.
fn steps_of_job<'a>(steps: impl Iterator<Item = &'a Step>) -> Vec<(i64, Vec<&'a Step>)> {
    let mut counts: FxHashMap<(u32, i64), usize> = FxHashMap::default();
    let mut found: BTreeMap<(i64, usize), Vec<&Step>> = BTreeMap::new();
    for step in steps {
        let nth = counts.entry((step.rank, step.number)).or_default();
        found.entry((step.number, *nth)).or_default().push(step);
        *nth += 1;
    }
    found.into_iter().map(|((number, _), steps)| (number, steps)).collect()
}

fn by_rank(graph: &Graph<'_>, found: &[(Span, On)]) -> BTreeMap<u32, RankTime> {
    let mut on: BTreeMap<u32, RankTime> = BTreeMap::new();
    let mut on_thread: BTreeMap<usize, OnThread<'_>> = BTreeMap::new();
    let mut last_rank = None;
    for (span, what) in found {
        let rank = rank_of(graph, *what);
        let time = on.entry(rank).or_default();
        time.hops += i64::from(last_rank.is_some_and(|last| last != rank));
        last_rank = Some(rank);
        let class = match what {
            On::Host(thread) => {
                on_thread.entry(*thread).or_insert_with(|| OnThread::new(&graph.threads[*thread])).add(*span);
                continue;
            }
            On::Transfer(_) => {
                time.transfer_ns += span.duration_ns();
                continue;
            }
            On::Device(id) => device_class(graph.trace, *id),
            On::Communication(_) => PathClass::Communication,
            On::LaunchLatency(_) => PathClass::LaunchLatency,
            On::QueueWait(_) => PathClass::QueueWait,
            On::Return(_) => PathClass::HostSync,
        };
        time.parts.add(class, span.duration_ns());
    }
    for (thread, own) in on_thread {
        let time = on.entry(graph.trace.rank_of_track(graph.threads[thread].track)).or_default();
        own.parts.iter().for_each(|(span, class)| time.parts.add(*class, span.duration_ns()));
    }
    on
}

fn rank_of(graph: &Graph<'_>, on: On) -> u32 {
    let of_slice = |trace: &Trace, slice: SliceId| trace.rank_of_track(trace.slices.track[slice.index()]);
    match on {
        On::Host(thread) => graph.trace.rank_of_track(graph.threads[thread].track),
        On::Device(id) => of_slice(graph.trace, graph.trace.device_events.get(id).slice),
        On::Communication(slice)
        | On::Transfer(slice)
        | On::LaunchLatency(slice)
        | On::QueueWait(slice)
        | On::Return(slice) => of_slice(graph.trace, slice),
    }
}

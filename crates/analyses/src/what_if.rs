//! # Definition
//! For each change of a job, how long its steps would take: ranks that come on time, faster communication, a last pipeline
//! stage that is like the others.
//! Steps are replayed from what ranks did: each does its own work, and waits for others where it waited.
//!
//! - The time of a rank is *work* (kernels and copies; on a rank without devices operators that are no collective),
//!   waiting for communication, or idle. A rank is ready for a communication when it has launched it, and the work that it
//!   launched before is over. Then the communication begins, after the one before it on its stream or thread.
//! - Who waits: where work pauses and a communication ends, what follows waited for the last one that ends there, unless
//!   the host launched it later and was not waiting for the device. Where work goes on, nobody waits for a communication.
//! - A collective is over a *transfer* after the last rank came: the shortest time that it takes on any rank. Ranks leave a
//!   broadcast, reduce, gather or scatter, and a message from rank to rank, when those have come that had come when they
//!   left. What is sent is paired with what is received by group, both ranks, and order.
//! - A step takes the time from when the last rank began it to when the last is done with it. A rank is done when the host
//!   window is over and all that it began in it.
//!
//! Changes:
//!
//! - `no_lateness`: from one communication that it begins to the next each rank takes as long as the middle one of the
//!   ranks that communicate the same in the same order. The work of a rank that has no other like it takes as long, in all, as that
//!   of the middle one of all ranks.
//! - `no_work_lateness`, `no_host_lateness`: the same for the work of ranks alone, and for their idle time alone, which on
//!   ranks with devices is mostly their hosts'. Where ranks do the same, the three say which of the two makes them late.
//! - `rank_on_time`: `no_lateness` for one rank. Up to five ranks have a row: those that gain most, of the 32 ranks, or 3 %,
//!   whose own time becomes shorter by most.
//! - `slowest_ranks_on_time`: the same for the 3 % of ranks that gain most so, at least one.
//! - `last_stage_like_others`: the work of the ranks of the last pipeline stage takes as long as that of the middle one of
//!   the ranks of other stages.
//! - `half_communication`, `free_communication`: transfers take half the time, or none.
//! - `without_category`: the work of one category of operators takes no time where nothing of another runs beside it: more
//!   than that no faster kernel gains. The category is that of the operator that launched a kernel; on a rank without
//!   devices that of the innermost operator. Up to five categories have a row, those whose work takes longest.
//! - `perfect_overlap`: a rank waits for no communication before all else in the step is done. Communication takes as long
//!   as it does, beside work.
//!
//! # Units
//! Nanoseconds, summed over the steps. Shares of the replayed time. Counts of ranks and steps.
//!
//! # Source
//! Replay as in the what-if analysis of ByteDance (Lin et al., OSDI 2025), whose slowdown *S* is `replayed_ns` over
//! `projected_ns` of `no_lateness`, and of which `slowest_ranks_on_time` and `last_stage_like_others` are *M_W* and *M_S*.
//! Collectives are matched as in `stragglers`, within a step.
//!
//! # Edge cases
//! `replay_error_ratio` shows what the replay without a change gets wrong: a gain that is not clearly larger says nothing.
//! A dependency that no pause shows is not known: a communication that work hid may be waited for once the work is
//! shorter. Of communications that end at the same moment all are waited for. Communication that runs beside work slows
//! it down, which is not known either. So gains are estimates, and mostly upper bounds. At the beginning of a step ranks
//! stay as far apart as they were. Of an even number of ranks the middle one is the earlier of the two in the middle.
//! A message from rank to rank of which the group is not known is idle time of its rank; what only one rank of the run has,
//! as a collective of an unknown group, is over when it was. Stages that go round in a circle, as in interleaved pipelines, have no last one. Steps that were cut, that one
//! rank alone has or in which no communication joins ranks are left out, and so are those that cannot be replayed since
//! what was matched contradicts itself. Where ranks are asked for, each has its own row, and
//! there are no others.

mod alone;
mod judged;
mod lateness;
pub(crate) mod of_rank;
mod replay;

use crate::{Analysis, AnalysisContext, Needs, Outcome, Ranks, Selection};
use alone::Category;
use lateness::Own;
use of_rank::{Act, RankStep, RankSteps};
use replay::JobStep;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_trace::Trace;

/// Ranks that are replayed on time, one after the other: not all of thousands.
const RANKS_TRIED: usize = 32;
/// Rows of single ranks, and the share of ranks of 100 that are the slowest.
const RANK_ROWS: usize = 5;
const SLOWEST_PERCENT: usize = 3;
/// Rows of single categories.
const CATEGORY_ROWS: usize = 5;

/// What is changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scenario {
    /// All ranks are as fast as the middle one.
    NoLateness,
    /// Their work is.
    NoWorkLateness,
    /// What they idle is as little.
    NoHostLateness,
    /// One rank is as fast as the middle one.
    RankOnTime,
    /// The slowest ranks are.
    SlowestRanksOnTime,
    /// The last pipeline stage is as fast as the others.
    LastStageLikeOthers,
    /// Communication takes half the time.
    HalfCommunication,
    /// Communication takes no time, but for waiting.
    FreeCommunication,
    /// All communication runs beside work.
    PerfectOverlap,
    /// Work of one category takes no time.
    WithoutCategory,
}

impl Scenario {
    /// The name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoLateness => "no_lateness",
            Self::NoWorkLateness => "no_work_lateness",
            Self::NoHostLateness => "no_host_lateness",
            Self::RankOnTime => "rank_on_time",
            Self::SlowestRanksOnTime => "slowest_ranks_on_time",
            Self::LastStageLikeOthers => "last_stage_like_others",
            Self::HalfCommunication => "half_communication",
            Self::FreeCommunication => "free_communication",
            Self::PerfectOverlap => "perfect_overlap",
            Self::WithoutCategory => "without_category",
        }
    }
}

named_cells!(Scenario);

columns! {
    /// What one change would do to the steps of a job.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct WhatIf {
        /// What is changed.
        scenario: Scenario => Text,
        /// The rank that is changed, where it is a single one.
        rank: Option<u32> => Count,
        /// The category of operators whose work is changed.
        category: Option<&'static str> => Text,
        /// Number of ranks that are changed.
        ranks: i64 => Count,
        /// Number of steps that were replayed.
        steps: i64 => Count,
        /// How long these steps took.
        measured_ns: i64 => Nanoseconds,
        /// How long they take when they are replayed without a change.
        replayed_ns: i64 => Nanoseconds,
        /// How long they take when they are replayed with the change.
        projected_ns: i64 => Nanoseconds,
        /// What the change saves: `replayed_ns` less `projected_ns`.
        gain_ns: i64 => Nanoseconds,
        /// `gain_ns` as a share of `replayed_ns`. Absent if that is 0.
        gain_ratio: Option<f64> => Ratio,
        /// By how much `replayed_ns` is more than `measured_ns`, as a share of that. Absent if it is 0.
        replay_error_ratio: Option<f64> => Ratio,
    }
}

impl WhatIf {
    /// Whether the gain is clearly larger than what the replay gets wrong without a change: twice as large, or more.
    pub(crate) fn is_clear(&self) -> bool {
        let ratios = self.gain_ratio.zip(self.replay_error_ratio);
        ratios.is_some_and(|(gain, error)| gain >= 2.0 * error.abs())
    }

    /// What the replay gets wrong without a change.
    pub(crate) fn error_ns(&self) -> i64 {
        (self.replayed_ns - self.measured_ns).abs()
    }
}

/// Every change, the largest gain first.
pub fn what_if(trace: &Trace, selection: &Selection) -> Vec<WhatIf> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<WhatIf> {
    let job = Job::of(job_steps(context));
    if job.steps.is_empty() {
        return Vec::new();
    }
    let ranks = job.ranks();
    let late = job.rank_rows();
    let count = (ranks.len() * SLOWEST_PERCENT).div_ceil(100);
    let slowest: Vec<u32> = late.iter().filter_map(|row| row.rank).take(count).collect();
    let mut rows = Vec::new();
    let mut add = |row: Option<WhatIf>| rows.extend(row);
    match &context.selection.ranks {
        asked if !asked.are_all() => {
            let asked = ranks.into_iter().filter(|rank| asked.has(*rank));
            asked.for_each(|rank| add(job.on_time(Scenario::RankOnTime, &[rank])));
        }
        _ => {
            add(job.on_time(Scenario::NoLateness, &ranks));
            add(job.part_on_time(Scenario::NoWorkLateness, &ranks, Own::Work));
            add(job.part_on_time(Scenario::NoHostLateness, &ranks, Own::Idle));
            late.into_iter().take(RANK_ROWS).for_each(|row| add(Some(row)));
            add(Some(&slowest)
                .filter(|ranks| !ranks.is_empty())
                .and_then(|ranks| job.on_time(Scenario::SlowestRanksOnTime, ranks)));
            add(job.last_stage());
            add(job.row(Scenario::HalfCommunication, &ranks, 50, |_, _| None));
            add(job.row(Scenario::FreeCommunication, &ranks, 0, |_, _| None));
            job.categories().into_iter().take(CATEGORY_ROWS).for_each(|category| add(job.without(category, &ranks)));
            add(job.row(Scenario::PerfectOverlap, &ranks, 100, |step, at| {
                Some(lateness::without_waits(&job.steps[step].step.ranks[at]))
            }));
        }
    }
    rows.sort_by_key(|row| (Reverse(row.gain_ns), row.scenario, row.rank, row.category));
    rows
}

/// The steps asked for, with all ranks that have them.
fn job_steps(context: &AnalysisContext<'_>) -> Vec<JobStep> {
    let (trace, all) = (context.trace, &context.get::<RankSteps>().0);
    let all_ranks = Selection { ranks: Ranks::default(), ..context.selection.clone() };
    let mut steps: BTreeMap<i64, BTreeMap<u32, &RankStep>> = BTreeMap::new();
    for at in all_ranks.step_places(trace) {
        if let Some(of_rank) = &all[at] {
            steps.entry(trace.steps[at].number).or_default().entry(trace.steps[at].rank).or_insert(of_rank);
        }
    }
    let of_job = steps.into_iter().map(|(number, ranks)| JobStep::of(number, ranks.into_values().cloned().collect()));
    of_job.filter(JobStep::is_joined).collect()
}

/// A step with what is known before anything is changed.
struct Replayed {
    step: JobStep,
    measured_ns: i64,
    replayed_ns: i64,
    /// What each rank would do on time.
    on_time: Vec<Vec<Act>>,
}

/// The steps of a job, to be replayed.
pub(crate) struct Job {
    steps: Vec<Replayed>,
}

impl Job {
    fn of(steps: Vec<JobStep>) -> Self {
        let replayed = |step: JobStep| {
            let acts: Vec<&[Act]> = step.ranks.iter().map(|rank| rank.acts.as_slice()).collect();
            let replayed_ns = step.replayed_ns(&acts, 100)?;
            let (measured_ns, on_time) = (step.measured_ns(), lateness::on_time(&step, Own::All));
            Some(Replayed { step, measured_ns, replayed_ns, on_time })
        };
        Self { steps: steps.into_iter().filter_map(replayed).collect() }
    }

    /// All ranks, ascending.
    fn ranks(&self) -> Vec<u32> {
        let mut ranks: Vec<u32> =
            self.steps.iter().flat_map(|replayed| replayed.step.ranks.iter().map(|step| step.rank)).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// The ranks that would take less time of their own, most of it first.
    fn by_lateness(&self) -> Vec<u32> {
        let mut late_ns: BTreeMap<u32, i64> = BTreeMap::new();
        for replayed in &self.steps {
            for (step, on_time) in replayed.step.ranks.iter().zip(&replayed.on_time) {
                *late_ns.entry(step.rank).or_default() += lateness::own_ns(&step.acts) - lateness::own_ns(on_time);
            }
        }
        let mut late: Vec<(Reverse<i64>, u32)> = late_ns.into_iter().map(|(rank, ns)| (Reverse(ns), rank)).collect();
        late.retain(|(Reverse(ns), _)| *ns > 0);
        late.sort_unstable();
        late.into_iter().map(|(_, rank)| rank).collect()
    }

    /// Each rank on time, the largest gain first: of the ranks that are late by most, or as many more as the slowest are.
    fn rank_rows(&self) -> Vec<WhatIf> {
        let count = RANKS_TRIED.max((self.ranks().len() * SLOWEST_PERCENT).div_ceil(100));
        let late = self.by_lateness().into_iter().take(count);
        let mut rows: Vec<WhatIf> = late.filter_map(|rank| self.on_time(Scenario::RankOnTime, &[rank])).collect();
        rows.sort_by_key(|row| (Reverse(row.gain_ns), row.rank));
        rows
    }

    fn on_time(&self, scenario: Scenario, ranks: &[u32]) -> Option<WhatIf> {
        self.row(scenario, ranks, 100, |step, at| {
            let replayed = &self.steps[step];
            ranks.contains(&replayed.step.ranks[at].rank).then(|| replayed.on_time[at].clone())
        })
    }

    /// Only this part of what ranks do is on time.
    fn part_on_time(&self, scenario: Scenario, ranks: &[u32], part: Own) -> Option<WhatIf> {
        let on_time: Vec<Vec<Vec<Act>>> =
            self.steps.iter().map(|replayed| lateness::on_time(&replayed.step, part)).collect();
        self.row(scenario, ranks, 100, |step, at| Some(on_time[step][at].clone()))
    }

    /// The categories of the work, what takes longest first.
    fn categories(&self) -> Vec<Category> {
        let mut sums_ns: BTreeMap<Category, i64> = BTreeMap::new();
        let ranks = self.steps.iter().flat_map(|replayed| &replayed.step.ranks);
        ranks.flat_map(|rank| &rank.alone).for_each(|alone| *sums_ns.entry(alone.category).or_default() += alone.ns);
        let mut sums_ns: Vec<(Category, i64)> = sums_ns.into_iter().collect();
        sums_ns.sort_by_key(|(category, ns)| (Reverse(*ns), *category));
        sums_ns.into_iter().map(|(category, _)| category).collect()
    }

    fn without(&self, category: Category, ranks: &[u32]) -> Option<WhatIf> {
        let row = self.row(Scenario::WithoutCategory, ranks, 100, |step, at| {
            Some(lateness::without_category(&self.steps[step].step.ranks[at], category))
        });
        row.map(|row| WhatIf { category: Some(category), ..row })
    }

    fn last_stage(&self) -> Option<WhatIf> {
        let stages: Option<Vec<_>> = self.steps.iter().map(|replayed| replayed.step.stages()).collect();
        let mut ranks = Vec::new();
        let mut acts: Vec<BTreeMap<usize, Vec<Act>>> = Vec::new();
        for (replayed, (last, others)) in self.steps.iter().zip(stages?) {
            let of_rank = |at: usize| replayed.step.ranks[at].acts.as_slice();
            let middle_ns = lateness::middle(others.iter().map(|at| lateness::work_ns(of_rank(*at))));
            ranks.extend(last.iter().map(|at| replayed.step.ranks[*at].rank));
            acts.push(last.iter().map(|at| (*at, lateness::with_work(of_rank(*at), middle_ns))).collect());
        }
        ranks.sort_unstable();
        ranks.dedup();
        self.row(Scenario::LastStageLikeOthers, &ranks, 100, |step, at| acts[step].get(&at).cloned())
    }

    /// All steps with other acts of some ranks, by the places of the step and of the rank in it, and faster communication.
    fn row(
        &self,
        scenario: Scenario,
        ranks: &[u32],
        percent: i64,
        changed: impl Fn(usize, usize) -> Option<Vec<Act>>,
    ) -> Option<WhatIf> {
        let (mut measured_ns, mut replayed_ns, mut projected_ns) = (0, 0, 0);
        for (step, replayed) in self.steps.iter().enumerate() {
            let new: Vec<Option<Vec<Act>>> = (0..replayed.step.ranks.len()).map(|at| changed(step, at)).collect();
            let own = replayed.step.ranks.iter().map(|rank| &rank.acts);
            let acts: Vec<&[Act]> = own.zip(&new).map(|(own, new)| new.as_ref().unwrap_or(own).as_slice()).collect();
            measured_ns += replayed.measured_ns;
            replayed_ns += replayed.replayed_ns;
            projected_ns += replayed.step.replayed_ns(&acts, percent)?;
        }
        let ratio = |part_ns: i64, of_ns: i64| (of_ns != 0).then(|| part_ns as f64 / of_ns as f64);
        let gain_ns = replayed_ns - projected_ns;
        Some(WhatIf {
            scenario,
            rank: (scenario == Scenario::RankOnTime).then(|| ranks[0]),
            category: None,
            ranks: ranks.len() as i64,
            steps: self.steps.len() as i64,
            measured_ns,
            replayed_ns,
            projected_ns,
            gain_ns,
            gain_ratio: ratio(gain_ns, replayed_ns),
            replay_error_ratio: ratio(replayed_ns - measured_ns, measured_ns),
        })
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::Condensed);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::without_coverage(context, &rows(context))
}

#[cfg(test)]
mod tests;

//! What rules of `advice` ask of a job: who takes longer than the others in each step, and what a change would gain.

use super::lateness::{self, Own};
use super::{Job, Replayed, Scenario, WhatIf, job_steps};
use crate::AnalysisContext;
use std::collections::BTreeMap;

/// A stage of a pipeline that works longer than the others.
pub(crate) struct SlowStage {
    /// Which stage it is, from 0, and how many there are.
    pub(crate) stage: usize,
    pub(crate) stages: usize,
    pub(crate) ranks: Vec<u32>,
    /// How long its middle rank works in all steps, and how long the middle one of all other ranks does.
    pub(crate) work_ns: i64,
    pub(crate) usual_ns: i64,
    /// Number of steps in which no other stage works longer.
    pub(crate) most_steps: usize,
    /// What is gained if all stages work as long, by as much work moved from one to another.
    pub(crate) balanced: WhatIf,
}

impl Job {
    /// The steps asked for of all ranks.
    pub(crate) fn asked_for(context: &AnalysisContext<'_>) -> Self {
        Self::of(job_steps(context))
    }

    /// The same without the first step, which warms up, where more than `least` steps are left.
    pub(crate) fn after_warm_up(mut self, least: usize) -> Self {
        if self.steps.len() > least {
            self.steps.remove(0);
        }
        self
    }

    /// Number and measured length of each step.
    pub(crate) fn step_lengths(&self) -> impl ExactSizeIterator<Item = (i64, i64)> + '_ {
        self.steps.iter().map(|replayed| (replayed.step.number, replayed.measured_ns))
    }

    /// The sum of these lengths.
    pub(crate) fn measured_ns(&self) -> i64 {
        self.step_lengths().map(|(_, ns)| ns).sum()
    }

    /// For each rank by how much longer than the middle one of the others that do the same it takes for its own, without
    /// waiting, in each step; nothing of steps in which no other does the same.
    pub(crate) fn excesses(&self) -> BTreeMap<u32, Vec<Option<i64>>> {
        self.excesses_of(Own::All)
    }

    /// The same of its work alone.
    pub(crate) fn work_excesses(&self) -> BTreeMap<u32, Vec<Option<i64>>> {
        self.excesses_of(Own::Work)
    }

    /// By how much longer than the middle one of the others these ranks work, and idle without waiting, in all.
    pub(crate) fn work_and_idle_excess_ns(&self, ranks: &[u32]) -> [i64; 2] {
        [Own::Work, Own::Idle].map(|own| {
            let of_ranks = self.excesses_of(own);
            ranks.iter().filter_map(|rank| of_ranks.get(rank)).flatten().flatten().sum()
        })
    }

    fn excesses_of(&self, own: Own) -> BTreeMap<u32, Vec<Option<i64>>> {
        let mut excesses: BTreeMap<u32, Vec<Option<i64>>> = BTreeMap::new();
        for (at, replayed) in self.steps.iter().enumerate() {
            for (rank, excess_ns) in replayed.step.ranks.iter().zip(lateness::excesses_ns(&replayed.step, own)) {
                excesses.entry(rank.rank).or_insert_with(|| vec![None; self.steps.len()])[at] = excess_ns;
            }
        }
        excesses
    }

    /// What is gained if these ranks take as long as the middle one.
    pub(crate) fn with_ranks_on_time(&self, ranks: &[u32]) -> Option<WhatIf> {
        self.on_time(Scenario::SlowestRanksOnTime, ranks)
    }

    /// The number of each step, with the ranks that do the same in it.
    pub(crate) fn alike(&self) -> impl Iterator<Item = (i64, Vec<Vec<u32>>)> + '_ {
        self.steps.iter().map(|Replayed { step, .. }| {
            let ranks = |places: Vec<usize>| places.into_iter().map(|at| step.ranks[at].rank).collect();
            (step.number, lateness::alike(step).map(ranks).collect())
        })
    }

    /// What is gained if ranks that do the same work as long as each other.
    pub(crate) fn with_equal_work(&self) -> Option<WhatIf> {
        let equal: Vec<_> = self.steps.iter().map(|replayed| lateness::with_equal_work(&replayed.step)).collect();
        self.row(Scenario::NoWorkLateness, &self.ranks(), 100, |step, at| Some(equal[step][at].clone()))
    }

    /// Whether ranks are stages of a pipeline.
    pub(crate) fn has_stages(&self) -> bool {
        let has_any = |stages: Vec<Option<usize>>| stages.into_iter().flatten().next().is_some();
        !self.steps.is_empty() && self.steps.iter().all(|step| step.step.stage_of_ranks().is_some_and(has_any))
    }

    /// The stage that works longest of three or more, or of two.
    pub(crate) fn slowest_stage(&self) -> Option<SlowStage> {
        let stages_of: Option<Vec<Vec<Option<usize>>>> =
            self.steps.iter().map(|replayed| replayed.step.stage_of_ranks()).collect();
        let stages_of = stages_of?;
        let work_ns = |step: usize, is_in: &dyn Fn(usize) -> bool| {
            let ranks = self.steps[step].step.ranks.iter().zip(&stages_of[step]);
            let own =
                ranks.filter(|(_, stage)| stage.is_some_and(is_in)).map(|(rank, _)| lateness::work_ns(&rank.acts));
            lateness::middle(own)
        };
        let count = stages_of.iter().flatten().flatten().max()? + 1;
        let each_ns = |step: usize| (0..count).map(move |stage| (work_ns(step, &|of| of == stage), stage));
        let mut sums_ns = vec![0; count];
        let mut most_steps = vec![0; count];
        for step in 0..self.steps.len() {
            each_ns(step).for_each(|(ns, stage)| sums_ns[stage] += ns);
            each_ns(step).max().into_iter().for_each(|(_, stage)| most_steps[stage] += 1);
        }
        let (work, stage) = sums_ns.iter().zip(0..).map(|(ns, stage)| (*ns, stage)).max()?;
        let usual: Vec<i64> = (0..self.steps.len()).map(|step| work_ns(step, &|of| of != stage)).collect();
        let is_of = |step: usize, at: usize| stages_of[step][at] == Some(stage);
        let ranks = self.steps.first()?.step.ranks.iter().enumerate();
        let ranks: Vec<u32> = ranks.filter(|(at, _)| is_of(0, *at)).map(|(_, rank)| rank.rank).collect();
        let balanced = self.row(Scenario::LastStageLikeOthers, &self.ranks(), 100, |step, at| {
            let own_ns = work_ns(step, &|of| Some(of) == stages_of[step][at]);
            let mean_ns = each_ns(step).map(|(ns, _)| ns).sum::<i64>() / count as i64;
            let acts = &self.steps[step].step.ranks[at].acts;
            let new_ns = i128::from(lateness::work_ns(acts)) * i128::from(mean_ns) / i128::from(own_ns.max(1));
            (own_ns > 0).then(|| lateness::with_work(acts, new_ns as i64))
        })?;
        let (usual_ns, most_steps) = (usual.iter().sum(), most_steps[stage]);
        Some(SlowStage { stage, stages: count, ranks, work_ns: work, usual_ns, most_steps, balanced })
    }
}

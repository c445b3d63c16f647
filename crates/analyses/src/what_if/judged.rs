//! What rules of `advice` ask of a job: who takes longer than the others in each step, and what a change would gain.

use super::lateness::{self, Own};
use super::{Job, Scenario, WhatIf, job_steps};
use crate::AnalysisContext;
use std::collections::BTreeMap;

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
}

//! What rules across ranks judge by, computed when a rule first asks for it.

use super::super::{Lacks, Place};
use super::persistence::{Late, persistent};
use crate::AnalysisContext;
use crate::communication::matched;
use crate::what_if::Job;
use crate::windows::Windows;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use stepscope_align::Part;
use stepscope_base::units::format_ns;
use stepscope_base::{Span, percentiles::nearest_rank_of_unsorted};
use stepscope_trace::{ClockSource, FindingCode};

/// Fewer steps do not tell chance from what is always so.
pub(super) const LEAST_STEPS: usize = 3;

/// All ranks of a run.
pub(in crate::advice) struct JobFacts<'a> {
    pub(super) context: &'a AnalysisContext<'a>,
    /// With the length of all steps.
    job: OnceCell<(Job, i64)>,
    slow: OnceCell<Vec<Late>>,
    /// The judged steps of each rank on its host, with their numbers, by start.
    steps: OnceCell<BTreeMap<u32, Vec<(Span, i64)>>>,
}

/// What ranks wait for in the collectives that they share.
#[derive(Default)]
pub(super) struct Waiting {
    /// How long each rank waits for others that come later.
    pub(super) waits_ns: BTreeMap<u32, i64>,
    /// How much less each would wait were some ranks not later than the others.
    pub(super) for_ranks_ns: BTreeMap<u32, i64>,
    /// The same in all steps, and outside of steps.
    pub(super) everywhere_ns: BTreeMap<u32, i64>,
    /// The longest of these, and where the rank asked for it that came last.
    pub(super) longest: Option<(i64, Part)>,
}

impl<'a> JobFacts<'a> {
    pub(super) fn new(context: &'a AnalysisContext<'a>) -> Self {
        Self { context, job: OnceCell::new(), slow: OnceCell::new(), steps: OnceCell::new() }
    }

    /// The ranks of the job of which the run has no file.
    pub(super) fn missing_ranks(&self) -> &[u32] {
        self.context.trace.joined.as_ref().map_or(&[], |joined| &joined.missing_ranks)
    }

    /// Says that no rank is missing, which one would have to know to say what ranks have in common.
    pub(super) fn all_are_there(&self) -> Result<(), Lacks> {
        match self.missing_ranks() {
            [] => Ok(()),
            _ => Err(Lacks(
                "ranks of the job are missing (`import.rank_missing`): record all of them, and open all files",
            )),
        }
    }

    /// Says that times of ranks can be compared.
    pub(super) fn clocks_are_related(&self) -> Result<(), Lacks> {
        let clocks = self.context.trace.joined.as_ref().map(|joined| joined.clocks);
        match clocks {
            Some(ClockSource::BegunTogether) => Err(Lacks(
                "the clocks of ranks are not related (`import.clocks_unrelated`): record ranks with their process groups, \
                 or with `stepscope record`, which knows the time of each host",
            )),
            _ => Ok(()),
        }
    }

    /// What has to be added to a sentence about a run of which ranks are still being recorded: nothing of others.
    pub(super) fn so_far(&self) -> &'static str {
        let is_running = self.context.trace.findings.count(FindingCode::ProcessRunning) > 0;
        if is_running { " That is so far: ranks are still being recorded." } else { "" }
    }

    /// The complete steps that ranks have together, without the first one.
    pub(super) fn job(&self) -> Result<&Job, Lacks> {
        self.clocks_are_related()?;
        let (job, _) = self.job.get_or_init(|| {
            let job = Job::asked_for(self.context);
            let all_ns = job.measured_ns();
            (job.after_warm_up(LEAST_STEPS), all_ns)
        });
        match job.step_lengths().len() {
            0 => Err(Lacks("no step in which collectives join ranks: record all ranks, with their process groups")),
            steps if steps < LEAST_STEPS => Err(Lacks("fewer than three whole steps of all ranks: record more steps")),
            _ => Ok(job),
        }
    }

    /// How long all of these steps take, with the first one.
    pub(super) fn all_steps_ns(&self) -> Result<i64, Lacks> {
        self.job()?;
        Ok(self.job.get().map_or(0, |(_, all_ns)| *all_ns))
    }

    /// The ranks that are slower than the others in all steps, or from one step on; those that are by most first.
    pub(super) fn slow_ranks(&self) -> Result<&[Late], Lacks> {
        let job = self.job()?;
        Ok(self.slow.get_or_init(|| {
            let numbers: Vec<i64> = job.step_lengths().map(|(number, _)| number).collect();
            // Where threads carry communication out, some of the waiting for it is taken for the rank's own: its work is not.
            let (excesses, of_work) = (job.excesses(), job.work_excesses());
            let late = excesses.iter().filter_map(|(rank, of_steps)| {
                let of_work = || persistent(*rank, &numbers, of_work.get(rank)?);
                persistent(*rank, &numbers, of_steps).or_else(of_work)
            });
            let mut late: Vec<Late> = late.collect();
            late.sort_by_key(|late| (std::cmp::Reverse(late.excess_ns), late.rank));
            // Of what most ranks do, the others are the exception.
            late.truncate(excesses.len() / 2);
            late
        }))
    }

    /// The number of the judged step in which a rank asks for a communication.
    pub(super) fn step_of(&self, part: &Part) -> Option<i64> {
        let trace = self.context.trace;
        let steps = self.steps.get_or_init(|| {
            let mut steps: BTreeMap<u32, Vec<(Span, i64)>> = BTreeMap::new();
            let numbers: Vec<i64> =
                self.job.get().map_or_else(Vec::new, |(job, _)| job.step_lengths().map(|(number, _)| number).collect());
            for step in trace.steps.iter().filter(|step| numbers.contains(&step.number)) {
                steps.entry(step.rank).or_default().push((step.span, step.number));
            }
            steps.values_mut().for_each(|steps| steps.sort_unstable_by_key(|(span, _)| span.start_ns));
            steps
        });
        let (steps, at_ns) = (steps.get(&part.rank)?, trace.slices.start_ns[part.asked_by.index()]);
        let before = steps.partition_point(|(span, _)| span.start_ns <= at_ns).checked_sub(1)?;
        steps[before].0.contains(at_ns).then_some(steps[before].1)
    }

    /// The collectives of judged steps that several ranks take part in, each with its step.
    pub(super) fn collectives(&self) -> impl Iterator<Item = (i64, Vec<Part>)> + '_ {
        matched(self.context).filter_map(|parts| Some((self.step_of(parts.first()?)?, parts)))
    }

    /// Who waits in collectives, and how much of it for `late` ranks.
    pub(super) fn waiting_for(&self, late: &[u32]) -> Waiting {
        let (mut waiting, windows) = (Waiting::default(), Windows::of(self.context.trace, self.context.selection));
        let is_asked = |parts: &Vec<Part>| windows.has_slice(self.context.trace, parts[0].asked_by);
        for parts in matched(self.context).filter(is_asked) {
            let is_judged = self.step_of(&parts[0]).is_some();
            let (of_late, of_others): (Vec<&Part>, Vec<&Part>) =
                parts.iter().partition(|part| late.contains(&part.rank));
            let shortest_ns = parts.iter().map(|part| part.dur_ns).min().unwrap_or(0);
            for part in parts.iter().filter(|_| is_judged) {
                *waiting.waits_ns.entry(part.rank).or_default() += part.dur_ns - shortest_ns;
            }
            let first = |parts: &[&Part]| parts.iter().copied().min_by_key(|part| part.dur_ns).copied();
            let (Some(last), Some(other)) = (first(&of_late), first(&of_others)) else { continue };
            let held_ns = (other.dur_ns - last.dur_ns).max(0);
            for part in &of_others {
                *waiting.everywhere_ns.entry(part.rank).or_default() += held_ns;
            }
            for part in of_others.iter().filter(|_| is_judged) {
                *waiting.for_ranks_ns.entry(part.rank).or_default() += held_ns;
            }
            if is_judged && held_ns > waiting.longest.map_or(0, |(ns, _)| ns) {
                waiting.longest = Some((held_ns, last));
            }
        }
        waiting
    }

    /// Where a rank asks for a communication.
    pub(super) fn place(&self, part: &Part) -> Place {
        Place::of(self.context.trace, part.asked_by)
    }
}

/// The middle one of some times.
pub(super) fn middle(times_ns: impl Iterator<Item = i64>) -> Option<i64> {
    nearest_rank_of_unsorted(&mut times_ns.collect::<Vec<_>>(), 50)
}

/// Of waiting that another rule has the gain of.
pub(super) fn is_of_others(ns: i64) -> String {
    format!("Not in the gain: {} of waiting for ranks that another piece of advice names.", format_ns(ns))
}

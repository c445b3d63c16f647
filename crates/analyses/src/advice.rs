//! # Definition
//! What a person could change to make the job faster or safer: one row for each rule whose condition holds, what there
//! is most to gain from first. A row says what was measured and which threshold it passes, what to do, what that could
//! gain, and where to look.
//!
//! `gain_estimate` says of what kind the expected gain is. `removal`: all the time that the rule measured goes away, and
//! nothing else. `floor`: it goes away, with more that is not recorded or follows from it. `replay`: the steps are replayed
//! as in `what_if`. The others are upper bounds. `bound`: all that was measured. `overlap`: communication hides under as much
//! computing as there is. `roofline`: the operators reach what the device could do. `peak_rates`: kernels get faster by as
//! much as the peak rates of the device differ. `full_device`: the blocks of a kernel spread over all multiprocessors.
//! What one piece of advice gains another may gain too, so gains do not add up. Time has one owner: where it is known which
//! time a row is about, `own_gain_ns` is the part of the gain that no row with a more exact cause is about, and a row that
//! keeps less than half of its gain, and less than 4 % of the window, is left out.
//!
//! The priority of a row with a gain, by what is its own where that is known, is `high` from a tenth of the window on,
//! `medium` from 3 % on, else `low`; for a row without one the rule sets it.
//!
//! # Units
//! Nanoseconds; bytes; shares from 0 to 1. `gain_ratio` is the gain's share of the window, `window_ns`. `start_ns` and
//! `slice` are a place in the timeline, most often the longest case: a moment, which counts from the start of the trace, and
//! the name of what begins then or is open.
//!
//! # Source
//! The analysis that `evidence` names, and what the recording says of the job. The rules and their thresholds are listed
//! in `docs/metrics.md`.
//!
//! # Edge cases
//! A gain that cannot be estimated is absent, and such rows come last. Devices that work for less than a millisecond are
//! not judged. Where every rank has at least five complete steps, devices are judged by these, without first ones that are
//! much longer: what is set up there says nothing of a longer job. A rule whose data the input lacks is silent; a finding
//! counts these rules, since their silence says nothing. Rules that compare ranks judge all ranks of the run, whichever are
//! asked for, and say nothing of a run of one rank. Communication in which a rank waits for one that such a rule names is
//! that rule's, and no gain of rules about communication. Why a rank is late is said by the rule that names the cause, where
//! that is most of it, and `rank.slow` has what is left.

mod attention;
mod autotune;
mod barriers;
mod batch_waits;
mod blocking_output;
mod cases;
mod checkpoints;
mod collections;
mod comm_backend;
mod comm_overlap;
mod convolution_bias;
mod copied;
mod cpu_contention;
mod cpu_fallback;
mod cpu_quota;
mod cpu_steal;
mod data_parallel;
mod dataloader;
mod device_allocations;
mod device_slowing;
mod device_throttled;
mod diffs;
mod double_precision;
mod evaluation;
mod exposed_comm;
mod exposed_io;
mod facts;
mod few_blocks;
mod file_calls;
mod first_step;
mod gain;
mod gemm_shapes;
mod graph_breaks;
mod graph_possible;
mod host_code;
mod host_copies;
mod host_lines;
mod host_memory_growth;
mod host_sync;
mod judged;
mod kernel_work;
mod late_gathers;
mod launch_bound;
mod layouts;
mod lines;
mod loader_workers;
mod long_calls;
mod long_once;
mod loop_kernels;
mod loops;
mod low_utilization;
mod main_process_batches;
mod memory_fragmentation;
mod memory_growth;
mod memory_near_full;
mod metadata_calls;
mod no_sync;
mod numa;
mod open_storm;
mod optimizer_loop;
mod own_lines;
mod owners;
mod page_faults;
mod pageable_copies;
mod parameter_search;
mod pauses;
mod profiler_overhead;
mod quantities;
mod queue_wait;
mod random_reads;
mod ranks;
mod recompiles;
mod recomputed;
mod restarted_workers;
mod rule;
mod rules;
mod settings;
mod short_kernels;
mod slow_file;
mod slow_folder;
mod slow_link;
mod slowed_kernels;
mod small_buckets;
mod small_io;
mod step_calls;
mod step_operators;
mod step_parts;
mod step_slower;
mod step_tail;
mod swapping;
mod tensor_cores;
mod tiny_operators;
mod unfused;
mod unoverlapped_input;
mod wasted_time;
mod words;
mod zeroed_gradients;

use crate::context::Shared;
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
pub use gain::{GainEstimate, Priority};
pub use host_lines::TOO_FEW_SAMPLES;
pub(crate) use judged::AllAdvice;
pub use ranks::AllRanks;
pub use rule::RuleCode;
use rule::{Judged, Lacks, Rule};
use rules::RULES;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stepscope_base::IntervalSet;
use stepscope_trace::{SliceId, Trace};

/// A place in the timeline.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Place {
    /// When it begins.
    pub start_ns: i64,
    /// The name of what begins then or is open; `None` when nothing was recorded.
    pub slice: Option<String>,
}

impl Place {
    fn of(trace: &Trace, slice: SliceId) -> Self {
        Self::at(trace, trace.slices.start_ns[slice.index()], Some(slice))
    }

    fn at(trace: &Trace, start_ns: i64, slice: Option<SliceId>) -> Self {
        Self { start_ns, slice: slice.map(|slice| trace.slice_name(slice).to_string()) }
    }
}

columns! {
    /// One piece of advice.
    #[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
    pub struct Advice {
        /// What names the row among all of the run: the rule, then the rank and the device that it is about, as in
        /// `comm.exposed@3.0`, and a number where one rule says several things of them.
        id: String => Text,
        /// The rank.
        rank: Option<u32> => Count,
        /// The number of the device within the rank. Absent when the row is not about one device.
        device: Option<i64> => Count,
        /// The stable code of the rule.
        rule: RuleCode => Text,
        /// What is wrong, in a few words.
        fault => Text = Advice::fault,
        /// How much it matters: `high`, `medium` or `low`.
        priority: Priority => Text,
        /// What there is to gain, and how that is estimated.
        gain: Option<(i64, GainEstimate)>,
        /// By how much a forecast may be wrong.
        error_ns: i64,
        /// The time that the change would save, as `gain_estimate` says. Absent when it cannot be estimated.
        gain_ns => Nanoseconds = Advice::gain_ns,
        /// What it would still save if everything that other advice names more exactly about the same time were
        /// gone. Absent when it is not known which time it is about.
        own_gain_ns: Option<i64> => Nanoseconds,
        /// The least that is gained: 0 of an upper bound; of a forecast and of a lower bound what no other advice is about,
        /// of a forecast less what it may be wrong by.
        gain_low_ns => Nanoseconds = |row| row.gain_range().map(|(low_ns, _)| low_ns),
        /// The most that is gained, of a forecast with what it may be wrong by. Absent of a lower bound: how much more it
        /// is, is not known.
        gain_high_ns => Nanoseconds = |row| row.gain_range().and_then(|(_, high_ns)| high_ns),
        /// The gain as a share of `window_ns`.
        gain_ratio => Ratio = Advice::gain_ratio,
        /// How the gain is estimated: forecasts are `removal` and `replay`; no less than it is gained by `floor`; no more
        /// by `bound`, `overlap`, `roofline`, `peak_rates` and `full_device`.
        gain_estimate => Text = |row| row.gain.map(|(_, estimate)| estimate),
        /// The same in words: a forecast, a lower bound or an upper bound, and of what.
        gain_method => Text = Advice::gain_method,
        /// The time that the gain and the measured time are parts of.
        window_ns: Option<i64> => Nanoseconds,
        /// What was measured, in one sentence with its numbers.
        says: String => Text,
        /// What to do about it.
        to_do => Text = Advice::to_do,
        /// The change as a diff, where it is a mechanical one: lines that go begin with `-`, new ones with `+`, and `…` is
        /// what the program has there. Absent where it takes thought.
        diff => Text = Advice::diff,
        /// What would be seen if it were not so: try that before you change much.
        disproof => Text = Advice::disproof,
        /// The share that the rule measured.
        measured_ratio: Option<f64> => Ratio,
        /// The share from which the rule applies.
        threshold_ratio: Option<f64> => Ratio,
        /// The time that the rule measured.
        measured_ns: Option<i64> => Nanoseconds,
        /// The bytes that the rule measured.
        measured_bytes: Option<i64> => Bytes,
        /// Number of cases.
        count: Option<i64> => Count,
        /// The analysis that has the numbers.
        evidence => Text = Advice::evidence,
        /// Where to look.
        place: Option<Place>,
        /// A place in the timeline to look at, counted from the start of the trace. Most often it is the
        /// longest case.
        start_ns => Nanoseconds = |row| row.place.as_ref().map(|place| place.start_ns),
        /// The name of the slice that begins at `start_ns` or is open then.
        slice => Text = |row| row.place.as_ref()?.slice.as_ref(),
        /// The line of the program to look at, as `file.py(12): function`. Absent when none is known.
        line: Option<String> => Text,
        /// When what it is about happens, while rules are judged; empty where that is not known.
        #[serde(skip)]
        time: IntervalSet,
    }
}

impl Advice {
    /// The gain as a share of the window.
    pub fn gain_ratio(&self) -> Option<f64> {
        let (gain_ns, _) = self.gain?;
        self.window_ns.filter(|window_ns| *window_ns > 0).map(|window_ns| gain_ns as f64 / window_ns as f64)
    }

    /// What is wrong, in a few words.
    pub fn fault(&self) -> &'static str {
        self.rule.rule().map_or("", |rule| rule.fault)
    }

    /// What would be seen if it were not so.
    pub fn disproof(&self) -> &'static str {
        self.rule.rule().map_or("", |rule| rule.disproof)
    }

    /// What to do about it.
    pub fn to_do(&self) -> &'static str {
        self.rule.rule().map_or("", |rule| rule.to_do)
    }

    /// The change as a diff, where it is a mechanical one.
    pub fn diff(&self) -> Option<&'static str> {
        diffs::diff(self.rule.as_str())
    }

    /// The least and the most that is gained; the most is not known of a lower bound.
    pub fn gain_range(&self) -> Option<(i64, Option<i64>)> {
        let (low_ns, high_ns) =
            self.gain.map(|(gain_ns, estimate)| estimate.range(gain_ns, self.own_gain_ns, self.error_ns))?;
        let all_ns = self.window_ns.unwrap_or(i64::MAX);
        Some((low_ns, high_ns.map(|high_ns| high_ns.min(all_ns))))
    }

    /// What the gain rests on.
    pub fn gain_method(&self) -> Option<&'static str> {
        self.gain.map(|(_, estimate)| estimate.method())
    }

    /// The analysis that has the numbers.
    pub fn evidence(&self) -> &'static str {
        self.rule.rule().map_or("", |rule| rule.evidence)
    }

    fn gain_ns(&self) -> Option<i64> {
        self.gain.map(|(ns, _)| ns)
    }
}

/// All that is to be said, what there is most to gain from first.
pub fn advice(trace: &Trace, selection: &Selection) -> Vec<Advice> {
    rows(&AnalysisContext::new(trace, selection)).to_vec()
}

/// The same of a context.
pub fn rows<'a>(context: &'a AnalysisContext<'_>) -> &'a [Advice] {
    &context.get::<WholeAdvice>().0.rows
}

/// That for each rank, and for all of them together.
struct WholeAdvice(AllAdvice);

impl Shared for WholeAdvice {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let mut all = ranks::with_advice_of_all(context, context.get::<AllAdvice>().clone());
        name_each(&mut all.rows);
        Self(all)
    }
}

/// Gives each row its id.
fn name_each(rows: &mut [Advice]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows {
        let device = row.device.map_or(String::new(), |device| format!(".{device}"));
        let place = row.rank.map_or(String::new(), |rank| format!("@{rank}{device}"));
        let name = format!("{}{place}", row.rule.as_str());
        let count = counts.entry(name.clone()).or_default();
        *count += 1;
        row.id = if *count == 1 { name } else { format!("{name}#{count}") };
    }
}

/// Which rules were judged, and which could not be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RulesJudged {
    /// Number of rules that were judged.
    pub rules: usize,
    /// The code of each rule that was not, with what the input lacks.
    pub not_judged: Vec<(&'static str, String)>,
}

/// Which rules were judged. Those that compare ranks are not counted in a run of one rank.
pub fn rules_judged(context: &AnalysisContext<'_>) -> RulesJudged {
    let rules_of_all = if AllRanks::of(context).len() > 1 { ranks::RULES.len() } else { 0 };
    let all = &context.get::<WholeAdvice>().0.not_judged;
    let not_judged: Vec<_> = all.iter().map(|rule| (rule.rule.as_str(), rule.lacks.clone())).collect();
    RulesJudged { rules: RULES.len() + rules_of_all - not_judged.len(), not_judged }
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::RowsTogether);

named_cells!(Priority, GainEstimate, RuleCode);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    let all = &context.get::<WholeAdvice>().0;
    Outcome { findings: all.findings(), ..Outcome::of(context, &all.rows) }
}

#[cfg(test)]
mod tests;

//! Rules that judge all ranks of a run together. They see what was condensed of each rank, and no other events, so that a
//! run of many files has the same advice as one of which all events are at hand.
//!
//! ```text
//! rules of each rank ───────────────────▶ rows ─┐
//! ranks together ─▶ rules across ranks ─▶ rows ─┴▶ less communication in which others are waited for ─▶ advice
//! ```

mod causes;
mod facts;
mod gc;
mod groups;
mod hang;
mod lengths;
mod persistence;
mod slow;
mod stages;

use super::{
    Advice, AllAdvice, Lacks, Rule, barriers, collections, comm_overlap, exposed_comm, facts::LEAST_NS,
    judged::finished, late_gathers, no_sync, owners, small_buckets,
};
use crate::context::Shared;
use crate::{AnalysisContext, Selection, SharedResults};
use facts::JobFacts;
use std::collections::BTreeMap;
use std::sync::Arc;
use stepscope_trace::Trace;

/// A rule across ranks.
pub(super) type JobRule = Rule<fn(&JobFacts) -> Result<Said, Lacks>>;

pub(super) const RULES: &[JobRule] = &[hang::RULE, slow::RULE, gc::RULE, lengths::RULE, stages::RULE, groups::RULE];

/// What comes before everything else.
pub(super) const HANGS: &str = hang::RULE.code;

/// The share of the steps that there has to be to gain. Below, ranks differ by chance.
const THRESHOLD: f64 = 0.04;

/// What a rule across ranks says.
#[derive(Default)]
pub(super) struct Said {
    rows: Vec<Advice>,
    /// For how long each rank waits in collectives because of what the rows say.
    waits_ns: BTreeMap<u32, i64>,
    /// How much of a rank's collections of garbage the rows are about, and the time of the steps that they judge.
    collections_ns: BTreeMap<u32, (i64, i64)>,
}

/// All ranks of a run as they were condensed, for a context that has not all of their events.
pub struct AllRanks {
    trace: Arc<Trace>,
    results: SharedResults,
}

impl AllRanks {
    /// The part of a run that rules across ranks judge by where `selection` is asked for.
    pub fn asked_for(selection: &Selection) -> Selection {
        Selection { step: selection.step, ..Selection::default() }
    }

    /// All ranks of the run, whichever the context is of.
    pub(super) fn of(context: &AnalysisContext<'_>) -> Vec<u32> {
        context.get::<Option<Self>>().as_ref().map_or_else(|| context.trace.ranks(), |all| all.trace.ranks())
    }

    /// Adds to what is shared of a part of a run all ranks: `trace`, which they were condensed into, and what is
    /// [given](crate::given) of it.
    pub fn give(shared: &SharedResults, trace: &Arc<Trace>, results: SharedResults) {
        if !shared.has::<Option<Self>>() {
            shared.give(Some(Self { trace: Arc::clone(trace), results }));
        }
    }
}

/// None where all ranks are those of the context.
impl Shared for Option<AllRanks> {
    fn compute(_: &AnalysisContext<'_>) -> Self {
        None
    }
}

/// `all`, which is of each rank by itself, with what is to be said of ranks together.
pub(super) fn with_advice_of_all(context: &AnalysisContext<'_>, all: AllAdvice) -> AllAdvice {
    let selection = AllRanks::asked_for(context.selection);
    match context.get::<Option<AllRanks>>() {
        Some(AllRanks { trace, results }) => {
            let together = AnalysisContext::with_results(trace, &selection, results.clone());
            judged_together(&together, context.selection, all)
        }
        None if *context.selection == selection => judged_together(context, context.selection, all),
        None => judged_together(&AnalysisContext::new(context.trace, &selection), context.selection, all),
    }
}

fn judged_together(together: &AnalysisContext<'_>, asked: &Selection, mut all: AllAdvice) -> AllAdvice {
    if together.trace.ranks().len() < 2 {
        return all;
    }
    let facts = JobFacts::new(together);
    let (mut rows, mut waits_ns) = (Vec::new(), BTreeMap::<u32, i64>::new());
    let mut collections_ns = BTreeMap::new();
    for rule in RULES {
        match (rule.judge)(&facts) {
            Ok(said) => {
                rows.extend(said.rows.into_iter().map(|row| finished(rule.code, row)));
                for (rank, ns) in said.waits_ns {
                    let known = waits_ns.entry(rank).or_default();
                    *known = ns.max(*known);
                }
                collections_ns.extend(said.collections_ns);
            }
            Err(lacks) => all.add_not_judged(rule.code, lacks),
        }
    }
    let own = all.rows.into_iter().filter_map(|row| without_waiting(row, &waits_ns));
    let mut own: Vec<Advice> = own.filter_map(|row| without_collections(row, &collections_ns)).collect();
    // What a rank does that is not asked for is not known: then nothing is taken from what is said of ranks together.
    let ranks = together.trace.ranks();
    let is_whole = ranks.iter().all(|rank| asked.has_rank(*rank));
    let said = |row, own: &mut Vec<Advice>| if is_whole { causes::without_causes(row, own, &ranks) } else { Some(row) };
    let rows = rows.into_iter().filter_map(|row| said(row, &mut own)).collect::<Vec<Advice>>();
    all.rows = own
        .into_iter()
        .chain(rows.into_iter().filter(|row| row.rank.is_none_or(|rank| asked.has_rank(rank))))
        .collect();
    all.in_order()
}

/// Whether waiting for other ranks may be a part of what a row is about.
fn is_of_communication(row: &Advice) -> bool {
    let rules = [
        &exposed_comm::RULE,
        &comm_overlap::RULE,
        &late_gathers::RULE,
        &no_sync::RULE,
        &small_buckets::RULE,
        &barriers::RULE,
    ];
    rules.iter().any(|rule| rule.code == row.rule.as_str())
}

/// A row without the gain that is waiting for others: a rule across ranks has that. Nothing when not enough is left.
fn without_waiting(row: Advice, waits_ns: &BTreeMap<u32, i64>) -> Option<Advice> {
    let waits_ns = row.rank.and_then(|rank| waits_ns.get(&rank)).copied().unwrap_or(0);
    if !is_of_communication(&row) || waits_ns == 0 {
        return Some(row);
    }
    let (gain_ns, estimate) = row.gain?;
    let left_ns = (gain_ns - waits_ns).max(0);
    let ratio = left_ns as f64 / row.window_ns? as f64;
    let says = format!("{} {}", row.says, facts::is_of_others(gain_ns - left_ns));
    let own_gain_ns = row.own_gain_ns.map(|own_ns| own_ns.min(left_ns));
    let row = Advice { gain: Some((left_ns, estimate)), own_gain_ns, says, ..row };
    let priority = super::Priority::of_gain(ratio);
    (left_ns >= LEAST_NS && Some(ratio) > row.threshold_ratio).then_some(Advice { priority, ..row })
}

/// The collections of one rank without those that a rule across ranks has: who mends that mends these. In steps that it does
/// not judge, as the first one, there are as many.
fn without_collections(row: Advice, collections_ns: &BTreeMap<u32, (i64, i64)>) -> Option<Advice> {
    let taken = row.rank.and_then(|rank| collections_ns.get(&rank)).copied();
    let Some((ns, of_ns)) = taken.filter(|_| row.rule.as_str() == collections::RULE.code) else { return Some(row) };
    let own_ns = row.own_gain_ns.or(row.gain_ns())?;
    let taken_ns = i128::from(ns) * i128::from(row.window_ns?) / i128::from(of_ns.max(1));
    let taken_ns = i64::try_from(taken_ns).unwrap_or(own_ns);
    owners::with_own(row, (own_ns - taken_ns).max(0))
}

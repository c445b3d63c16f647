//! What ranks do to each other, from `stragglers`, `lateness` and `hangs`.

use crate::{AnalysisContext, fit_name};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use stepscope_analyses::{LateCause, hangs, lateness, stragglers};
use stepscope_base::units::{format_count, format_ns, format_ratio};

/// What ranks do to each other.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RanksTogether {
    /// Sum over ranks of the time in matched collectives.
    pub collectives_ns: i64,
    /// The part of it in which a rank waits for ranks that come later.
    pub waiting_ns: i64,
    /// The rank that holds the others up the longest; none where none does.
    pub straggler: Option<Straggler>,
    /// Where ranks are of a collective that does not end, those that others wait for first.
    pub hangs: Vec<HangingRank>,
}

/// A rank that the others wait for.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Straggler {
    /// The rank.
    pub rank: u32,
    /// What the others would gain had it come with the last but one.
    pub held_up_ns: i64,
    /// Number of collectives to which it came last, of `calls`.
    pub last_calls: i64,
    /// Number of its matched collectives.
    pub calls: i64,
    /// What made it late the most, as in `lateness`.
    #[serde(serialize_with = "word")]
    pub cause: Option<LateCause>,
    /// That cause's share of its lateness.
    pub cause_ratio: Option<f64>,
}

/// A rank of a group in which a collective does not end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HangingRank {
    /// The rank.
    pub rank: u32,
    /// Where it is: `never entered`, `entered, not left`, `completed`, or `not known`.
    pub state: &'static str,
    /// What is known of it, in words.
    pub verdict: String,
    /// What it, or most other ranks, call.
    pub name: Option<String>,
    /// The name of the process group.
    pub group: Option<String>,
    /// Number of the collective in its group.
    pub number: i64,
    /// What its thread did last.
    pub doing: Option<String>,
}

/// Shares of waiting below this are not worth a word.
const WORTH_SAYING: f64 = 0.01;
/// Ranks that a report has of a hang.
const MAX_HANGING: usize = 8;

/// That of the ranks in `context`, which has what was condensed; none where ranks have nothing together.
pub(super) fn ranks_together(context: &AnalysisContext<'_>) -> Option<RanksTogether> {
    let stragglers = stragglers::rows(context);
    let sum = |ns: fn(&stragglers::Stragglers) -> i64| stragglers.iter().map(ns).fold(0, i64::saturating_add);
    let hanging = |row: &hangs::Hang| HangingRank {
        rank: row.rank,
        state: row.state.as_str(),
        verdict: row.verdict.clone(),
        name: row.name.clone().or_else(|| row.last_name.clone()),
        group: row.group.clone(),
        number: row.number,
        doing: row.doing.map(|slice| context.trace.slice_name(slice).to_string()),
    };
    let together = RanksTogether {
        collectives_ns: sum(|row| row.total_ns),
        waiting_ns: sum(|row| row.waiting_ns),
        straggler: straggler(context, &stragglers),
        hangs: hangs::rows(context).iter().take(MAX_HANGING).map(hanging).collect(),
    };
    (!stragglers.is_empty() || !together.hangs.is_empty()).then_some(together)
}

/// Of a rank that takes part in several groups, all groups together.
fn straggler(context: &AnalysisContext<'_>, rows: &[stragglers::Stragglers]) -> Option<Straggler> {
    let mut of_ranks: BTreeMap<u32, Straggler> = BTreeMap::new();
    for row in rows {
        let new =
            || Straggler { rank: row.rank, held_up_ns: 0, last_calls: 0, calls: 0, cause: None, cause_ratio: None };
        let sum = of_ranks.entry(row.rank).or_insert_with(new);
        sum.held_up_ns = sum.held_up_ns.saturating_add(row.held_up_ns);
        sum.last_calls += row.last_calls;
        sum.calls += row.calls;
    }
    // Of several the lowest rank.
    let longest = of_ranks.into_values().rev().max_by_key(|sum| sum.held_up_ns)?;
    let mut by_cause: BTreeMap<LateCause, i64> = BTreeMap::new();
    for row in lateness::rows(context).iter().filter(|row| row.rank == longest.rank) {
        let sum = by_cause.entry(row.cause).or_default();
        *sum = sum.saturating_add(row.late_ns);
    }
    let late_ns = by_cause.values().fold(0, |sum: i64, ns| sum.saturating_add(*ns));
    let cause = by_cause.into_iter().rev().max_by_key(|(_, ns)| *ns);
    let cause_ratio = cause.filter(|_| late_ns > 0).map(|(_, ns)| ns as f64 / late_ns as f64);
    let straggler = Straggler { cause: cause.map(|(cause, _)| cause), cause_ratio, ..longest };
    (straggler.held_up_ns > 0).then_some(straggler)
}

fn word<S: Serializer>(cause: &Option<LateCause>, serializer: S) -> Result<S::Ok, S::Error> {
    cause.map(LateCause::as_str).serialize(serializer)
}

impl RanksTogether {
    /// What stands out: a hang, and whom the others wait for.
    pub(super) fn sentences(&self) -> Vec<String> {
        let hang = self.hangs.first().map(HangingRank::sentence);
        let is_worth = |ns: i64| ns as f64 >= self.collectives_ns as f64 * WORTH_SAYING;
        let waiting = self.straggler.as_ref().filter(|_| self.waiting_ns > 0 && is_worth(self.waiting_ns));
        hang.into_iter().chain(waiting.map(|straggler| self.waiting_sentence(straggler))).collect()
    }

    fn waiting_sentence(&self, straggler: &Straggler) -> String {
        let (waiting, all) = (format_ns(self.waiting_ns), format_ns(self.collectives_ns));
        let share = format_ratio(self.waiting_ns as f64 / self.collectives_ns as f64);
        let (last, calls) = (format_count(straggler.last_calls), format_count(straggler.calls));
        let why = match (straggler.cause, straggler.cause_ratio) {
            (Some(cause), Some(ratio)) => format!(", {} of its lateness {}", format_ratio(ratio), because(cause)),
            _ => String::new(),
        };
        format!(
            "Ranks wait {waiting} ({share}) of the {all} that they are in collectives together; rank {} comes last to \
             {last} of {calls}{why}.",
            straggler.rank
        )
    }
}

impl HangingRank {
    fn sentence(&self) -> String {
        let name = self.name.as_deref().map_or("a collective".into(), |name| fit_name(name, 40));
        let group = self.group.as_deref().map_or(String::new(), |group| format!(" of group {}", fit_name(group, 32)));
        let doing =
            self.doing.as_deref().map_or(String::new(), |doing| format!("; last it did {}", fit_name(doing, 40)));
        let Self { rank, state, verdict, number, .. } = self;
        format!("The job hangs in {name} number {number}{group}: rank {rank} has {state} it, {verdict}{doing}.")
    }
}

/// A cause of lateness in words that end a sentence.
fn because(cause: LateCause) -> &'static str {
    match cause {
        LateCause::Compute => "because it computes for longer",
        LateCause::SlowClock => "because its GPU runs at a slower clock",
        LateCause::OtherCollective => "because another group held it up",
        LateCause::Copy => "because it copies for longer",
        LateCause::ProfilerOverhead => "because of the profiler",
        LateCause::GarbageCollection => "because Python collects garbage",
        LateCause::Allocation => "because it allocates memory of the device",
        LateCause::HostSync => "because the host waits for the device",
        LateCause::Input => "because it waits for data",
        LateCause::Io => "because it reads or writes files",
        LateCause::LaunchBound => "because the host launches work too slowly",
        LateCause::HostOther => "because of other code on the host",
        LateCause::DeviceWait => "because launched work is held back on the device",
        LateCause::Unknown => "without a known cause",
        LateCause::Unexplained => "that nothing explains",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
    use stepscope_trace::SliceId;
    use stepscope_trace::simulated::{Job, Straggler as Planted};

    #[test]
    fn the_rank_that_others_wait_for_is_named_with_why() {
        let stragglers = vec![Planted { rank: 2, op: None, percent: 150 }];
        let trace = Job { ranks: 4, steps: 3, stragglers, ..Job::default() }.run().trace();
        let all = Selection::default();
        let found = ranks_together(&AnalysisContext::new(&trace, &all)).unwrap();
        let straggler = found.straggler.as_ref().unwrap();
        assert_eq!((straggler.rank, straggler.cause), (2, Some(LateCause::Compute)));
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!(json["straggler"]["cause"], "compute");
        assert!(straggler.cause_ratio.is_some_and(|ratio| ratio > 0.5 && ratio <= 1.0), "{straggler:?}");
        assert!(found.waiting_ns > 0 && found.hangs.is_empty());
        let sentences = found.sentences();
        assert_eq!(sentences.len(), 1);
        assert!(sentences[0].contains("rank 2 comes last to"), "{sentences:?}");
        assert!(sentences[0].ends_with("of its lateness because it computes for longer."), "{sentences:?}");
    }

    #[test]
    fn ranks_that_are_alike_wait_for_nobody() {
        let trace = Job { ranks: 4, steps: 3, ..Job::default() }.run().trace();
        let all = Selection::default();
        let found = ranks_together(&AnalysisContext::new(&trace, &all)).unwrap();
        assert_eq!((found.straggler.clone(), found.waiting_ns, found.sentences()), (None, 0, vec![]));
        let one = Job { ranks: 1, steps: 3, ..Job::default() }.run().trace();
        assert_eq!(ranks_together(&AnalysisContext::new(&one, &all)), None);
    }

    #[test]
    fn a_hang_comes_first() {
        let mut trace = Job { ranks: 3, steps: 2, has_devices: false, ..Job::default() }.run().trace();
        let last = trace.collectives.iter().filter_map(|said| said.sequence_number).max();
        let rank = |slice: SliceId| trace.rank_of_track(trace.slices.track[slice.index()]);
        let said = trace.collectives.iter().filter(|said| said.sequence_number == last);
        let (missing, inside): (Vec<SliceId>, Vec<SliceId>) =
            said.map(|said| said.slice).partition(|slice| rank(*slice) == 1);
        trace.collectives.retain(|said| !missing.contains(&said.slice));
        inside.into_iter().for_each(|slice| trace.slices.is_unfinished[slice.index()] = true);
        let all = Selection::default();
        let sentences = ranks_together(&AnalysisContext::new(&trace, &all)).unwrap().sentences();
        assert!(sentences[0].starts_with("The job hangs in "), "{sentences:?}");
        assert!(sentences[0].contains("rank 1 has never entered it, ranks 0, 2 wait for it"), "{sentences:?}");
    }
}

//! # Definition
//! For each rank and process group: how long collectives took, how much of it was waiting for ranks that came later, and
//! how often and by how much the rank itself came late.
//!
//! - A collective of one rank is *matched* with those of the other ranks of the run: the one of the same number in the
//!   same group; where no number is known, the one of the same name, type and size that is as far in the order of the
//!   rank; of what ranks may carry different sizes of, as an all-to-all, of the same name and type. Where no rank states a group for what it does (all-reduce, broadcast …), and nothing is known of groups of
//!   fewer ranks, all ranks of the run are taken for the group, which is a finding.
//! - It takes as long as its kernels, or, where there are none, its work on the host.
//! - A collective ends everywhere at about the same moment. Who takes the shortest came last, and transfer is what it
//!   takes there. What another rank takes beyond that is waiting: transfer and waiting are the whole. No clocks are
//!   compared.
//! - A rank is *late* by what it takes less than the middle rank of the collective. It *holds up* the others by what it
//!   takes less than the last but one, of collectives to which it came last: what all would gain had it come with that one.
//!
//! `--compat tb` gives the waiting time of the distributed view of the TensorBoard plugin of PyTorch's profiler, for each
//! step of `step_breakdown --compat tb` that a collective lies in, and its mean over these. A collective takes its operator
//! and its kernels. It is matched with the one at the same place in the order of each other rank, whatever its group; when
//! ranks do not have the same number of collectives and kernels, there is no table. Transfer is what takes the shortest of
//! all ranks, at the end of each. What overlaps counts once.
//!
//! # Units
//! Nanoseconds. Counts of ranks and matched collectives.
//!
//! # Source
//! What operators, ranges and kernels say of the collectives that they are, as in `collectives`. Waiting and transfer as
//! the TensorBoard plugin of PyTorch tells them apart, but within the process group, and for each collective.
//!
//! # Edge cases
//! Only ranks of the run are compared: where ranks of a group are missing, the last of all may be among them. What has no
//! rank to be compared with is left out: a collective that only one rank of the run has, that took no time, that did not
//! end, or that is of an unknown group, and what goes from one rank to another. Of an even number of ranks the
//! middle one is the earlier of the two in the middle. Who comes last together with another holds nobody up. A rank that leaves before the others, as the
//! source of a broadcast may, is taken for late. Without numbers, ranks whose recordings begin at different collectives are
//! matched wrongly. For one rank the others still count; for one step, what begins in it on the rank.

use crate::communication::matched;
use crate::windows::Windows;
use crate::{Analysis, AnalysisContext, Compat, Needs, Options, Outcome, Selection, tensorboard_views};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_align::Part;
use stepscope_base::StringId;
use stepscope_trace::Trace;

columns! {
    /// The collectives of one rank in one process group, against those of the other ranks.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Stragglers {
        /// The rank that takes part.
        rank: u32 => Count,
        /// The name of the process group.
        group: Option<String> => Text,
        /// Number of ranks in the process group.
        group_size: Option<i64> => Count,
        /// The largest number of ranks of the run that were matched in one collective.
        ranks: i64 => Count,
        /// Number of matched collectives.
        calls: i64 => Count,
        /// Number of collectives to which the rank came last, later than any other.
        last_calls: i64 => Count,
        /// Sum over `last_calls` of the time by which it came after the last but one: what the group would gain had it
        /// come with that one.
        held_up_ns: i64 => Nanoseconds,
        /// Sum of the times by which the rank came after the middle rank of the collective.
        late_ns: i64 => Nanoseconds,
        /// Sum of the times that the collectives took on this rank: `transfer_ns` and `waiting_ns`.
        total_ns: i64 => Nanoseconds,
        /// The part of `total_ns` that the collectives take on the rank that comes last.
        transfer_ns: i64 => Nanoseconds,
        /// The part of `total_ns` in which the rank waits for ranks that come later.
        waiting_ns: i64 => Nanoseconds,
        /// What the process group is for.
        group_description: Option<String> => Text,
    }
}

/// Every rank and group asked for, those that hold up the others the longest first, then by rank and group.
pub fn stragglers(trace: &Trace, selection: &Selection) -> Vec<Stragglers> {
    rows(&AnalysisContext::new(trace, selection))
}

/// The same in a context, which other analyses may share.
pub fn rows(context: &AnalysisContext<'_>) -> Vec<Stragglers> {
    let trace = context.trace;
    let windows = Windows::of(trace, context.selection);
    let is_asked = |part: &Part| windows.has_slice(trace, part.asked_by);
    let mut of_key: BTreeMap<(u32, StringId, StringId), Stragglers> = BTreeMap::new();
    for parts in matched(context) {
        let mut times: Vec<i64> = parts.iter().map(|part| part.dur_ns).collect();
        times.sort_unstable();
        let (shortest_ns, second_ns, middle_ns) = (times[0], times[1], times[times.len() / 2]);
        for part in parts.iter().filter(|part| is_asked(part)) {
            let row =
                of_key.entry((part.rank, part.group, part.group_description)).or_insert_with(|| empty(trace, part));
            row.ranks = row.ranks.max(parts.len() as i64);
            row.calls += 1;
            row.total_ns = row.total_ns.saturating_add(part.dur_ns);
            row.transfer_ns = row.transfer_ns.saturating_add(shortest_ns);
            row.waiting_ns = row.waiting_ns.saturating_add(part.dur_ns - shortest_ns);
            row.late_ns = row.late_ns.saturating_add((middle_ns - part.dur_ns).max(0));
            if part.dur_ns < second_ns {
                row.last_calls += 1;
                row.held_up_ns = row.held_up_ns.saturating_add(second_ns - part.dur_ns);
            }
        }
    }
    let mut rows: Vec<Stragglers> = of_key.into_values().collect();
    let place = |row: &Stragglers| (Reverse(row.held_up_ns), row.rank, row.group.clone());
    rows.sort_by_cached_key(place);
    rows
}

fn empty(trace: &Trace, part: &Part) -> Stragglers {
    let text = |id: StringId| trace.text(id);
    Stragglers {
        rank: part.rank,
        group: text(part.group),
        group_size: part.group_size,
        ranks: 0,
        calls: 0,
        last_calls: 0,
        held_up_ns: 0,
        late_ns: 0,
        total_ns: 0,
        transfer_ns: 0,
        waiting_ns: 0,
        group_description: text(part.group_description),
    }
}

pub(crate) const ANALYSIS: Analysis =
    Analysis { options: Options { compat: &[Compat::Tb], ..Options::NONE }, ..Analysis::of(outcome) }
        .needing(Needs::Condensed)
        .needing_for_compat(Needs::AllEvents);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    match context.selection.compat {
        Some(Compat::Tb) => Outcome::without_coverage(context, &tensorboard_views::transfers(context)),
        _ => Outcome::without_coverage(context, &rows(context)),
    }
}

#[cfg(test)]
mod tests;

//! # Definition
//! For each process group in which a collective does not end: where each rank of the group is, and which ranks the others
//! wait for.
//!
//! - The collective is the first of the group that a rank has *entered and not left*: its slice, or that of its work, has
//!   no recorded end. A rank that returned from the call is also still in it when its recording was cut and shows no kernel
//!   or work of this or a later collective of the group, though it does of others.
//! - What all ranks of a group leave together cannot have ended where one of them never entered it, or calls something else:
//!   if it took five seconds or more, and the rank entered no other after it, the rank gave up with an error, and is taken to
//!   be in it.
//! - Collectives of ranks are the same when they have the same number in the same group. Where a rank tells no numbers,
//!   they are numbered by their order on each rank, from 0.
//! - The ranks of a group are those that the source states, those of the job when the group has as many, else those of the
//!   run that called one of its collectives.
//! - A collective that states no group is of all ranks of the run, where `stragglers` takes it so.
//! - A rank has *never entered* it when its last collective of the group has a lower number, or when it has none.
//! - A rank *calls something else* when kind, type or size differ from what most ranks call at that number; of equally many
//!   the lowest rank counts. Sizes are compared where they must be the same on all ranks.
//! - Nothing that goes from one rank to another is compared. Such a call that was not left has a row of its own.
//!
//! # Units
//! Nanoseconds. Numbers of elements.
//!
//! # Source
//! What operators, ranges and kernels say of the collectives that they are, as in `collectives`: recordings of jobs that
//! were killed, and dumps of PyTorch's Flight Recorder.
//!
//! # Edge cases
//! Without a collective that was not left there are no rows, so a run that did not hang has none, also when ranks were
//! recorded for different lengths of time. A recording that ends while all ranks are in a collective has rows that say so.
//! What does not wait for others, as the source of a broadcast, may have left it. A rank whose recording begins behind the
//! collective, or of which the run has no file, is not known. Without numbers, ranks whose recordings begin at different
//! collectives are compared wrongly. A selection of ranks leaves out rows and changes no verdict; steps are not selected.

mod entries;
mod places;
mod stuck;
mod usual;

use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use entries::{OfRank, first_not_left, groups, long_calls};
use places::Places;
use stepscope_align::Calls;
use stepscope_trace::{SliceId, Trace};
use stuck::Stuck;

columns! {
    /// Where a rank is, of a group in which a collective does not end.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Hang {
        /// The rank.
        rank: u32 => Count,
        /// What is known of it, in words.
        verdict: String => Text,
        /// Whether the others wait for it: it has not come, or calls something else.
        is_waited_for: bool,
        /// Where it is: `never entered`, `entered, not left`, `completed`, or `not known`.
        state: HangState => Text,
        /// The name of the process group.
        group: Option<String> => Text,
        /// Number of the collective in its group.
        number: i64 => Count,
        /// What the rank calls at this number.
        name: Option<String> => Text,
        /// Type of the elements that it carries.
        dtype: Option<String> => Text,
        /// Elements that go in.
        input_elements: Option<i64> => Count,
        /// Elements that come out.
        output_elements: Option<i64> => Count,
        /// When the rank entered it. Of one that never did, when it left its last collective of the group, or entered it
        /// where it has not left it.
        since_ns: Option<i64> => Nanoseconds,
        /// Number of the last collective of the group that the rank entered.
        last_number: Option<i64> => Count,
        /// What that one is.
        last_name: Option<String> => Text,
        /// What the thread that called the rank's last collective did last: the innermost range without an end, or else
        /// the one that began last.
        doing: Option<SliceId> => Text,
        /// The call stack of that, or the ranges around it, innermost first.
        stack: Option<String> => Text,
        /// What the process group is for.
        group_description: Option<String> => Text,
        /// Number of ranks in the process group, as far as they are known.
        group_size: i64 => Count,
    }
}

/// Where a rank is, of a collective.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HangState {
    /// It has not come.
    NeverEntered,
    /// It has come and is there.
    Entered,
    /// It has come and gone.
    Completed,
    /// Its recording does not say.
    NotKnown,
}

impl HangState {
    /// The state in words, as in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NeverEntered => "never entered",
            Self::Entered => "entered, not left",
            Self::Completed => "completed",
            Self::NotKnown => "not known",
        }
    }
}

named_cells!(HangState);

/// Every rank asked for, of each group in doubt: groups by the time of their first rank that waits, in each the ranks that
/// others wait for first.
pub fn hangs(trace: &Trace, selection: &Selection) -> Vec<Hang> {
    rows(&AnalysisContext::new(trace, selection))
}

/// The same in a context, which other analyses may share.
pub fn rows(context: &AnalysisContext<'_>) -> Vec<Hang> {
    let trace = context.trace;
    let calls = context.get::<Calls>();
    // Nobody is in anything that has ended.
    if !trace.slices.is_unfinished.contains(&true) && long_calls(trace, calls).next().is_none() {
        return Vec::new();
    }
    let groups = groups(trace, calls);
    let mut found: Vec<Stuck<'_>> = Vec::new();
    for (key, ranks) in &groups {
        if key.is_between_two {
            let first = |(rank, of_rank): (&u32, &OfRank)| Some((*rank, first_not_left(of_rank)?));
            found.extend(ranks.iter().filter_map(first).map(|(rank, number)| Stuck::of_one(ranks, rank, number)));
        } else if let Some(number) = ranks.values().filter_map(first_not_left).min() {
            found.push(Stuck::of(trace, *key, ranks, number));
        }
    }
    if found.is_empty() {
        return Vec::new();
    }
    found.sort_by_key(|stuck| stuck.since_ns(trace));
    let places = Places::of(context);
    let mut rows: Vec<Hang> = found.iter().flat_map(|stuck| stuck.rows(trace, &places, &found)).collect();
    rows.retain(|row| context.selection.has_rank(row.rank));
    rows
}

/// What the threads that are looked at did last, on every rank.
pub(crate) fn last_slices(context: &AnalysisContext<'_>) -> Vec<SliceId> {
    Places::of(context).of_rank.into_values().collect()
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::Condensed);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::without_coverage(context, &rows(context))
}

#[cfg(test)]
mod tests;

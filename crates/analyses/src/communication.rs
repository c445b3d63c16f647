//! Who communicates with whom, put together once for all analyses.

use crate::AnalysisContext;
use crate::context::Shared;
use std::cmp::Reverse;
use stepscope_align::{Calls, Matched, Part, parts};
use stepscope_trace::CollectiveKind;

impl Shared for Calls {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        Self::of(context.trace)
    }
}

/// Every communication of every rank.
pub(crate) struct Parts(pub(crate) Vec<Part>);

impl Shared for Parts {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        Self(parts(context.trace, context.get::<Calls>()))
    }
}

impl Shared for Matched {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        Self::of(&context.get::<Parts>().0)
    }
}

/// The collectives that at least two ranks of the run took part in: the parts of each, by rank.
pub(crate) fn matched<'a>(context: &'a AnalysisContext<'_>) -> impl Iterator<Item = Vec<Part>> + 'a {
    context.get::<Matched>().each(&context.get::<Parts>().0)
}

/// The same, without lists of their own.
pub(crate) fn matched_parts<'a>(
    context: &'a AnalysisContext<'_>,
) -> impl Iterator<Item = impl Iterator<Item = &'a Part> + Clone> + 'a {
    context.get::<Matched>().each_of(&context.get::<Parts>().0)
}

/// True when ranks leave a communication together: it is such a collective, or all had come when the first left.
pub(crate) fn leave_together<'a>(parts: impl Iterator<Item = &'a Part> + Clone) -> bool {
    let is_joined = parts.clone().next().and_then(|part| part.kind).is_some_and(CollectiveKind::ends_together);
    let last_ns = parts.clone().map(|part| part.start_ns).max();
    is_joined || parts.clone().all(|part| receives(part) || last_ns <= Some(part.end_ns))
}

/// Whether a rank waits for another one in a communication that they do not leave together. Which rank had not come by
/// then was not waited for; but nothing is received before it is sent.
pub(crate) fn waits_for(part: &Part, other: &Part) -> bool {
    receives(part) || other.start_ns <= part.end_ns
}

fn receives(part: &Part) -> bool {
    part.key.from_to().is_some_and(|(_, to)| to == i64::from(part.rank))
}

/// Of the `parts` of one communication that of the rank for which `own` waited last, and when that one came, on the clock
/// of `own`. Where ranks leave together it is the one that it takes the shortest on, and no clocks are compared. Of several
/// it is `own`, or else the one that began last.
pub(crate) fn came_last<'a>(parts: &'a [Part], own: &'a Part) -> (&'a Part, i64) {
    let dur_ns = |part: &Part| part.end_ns - part.start_ns;
    let is_own = |part: &Part| part.rank == own.rank;
    if leave_together(parts.iter()) {
        let key = |part: &&Part| (dur_ns(part), !is_own(part), Reverse(part.start_ns), part.rank);
        let last = parts.iter().min_by_key(key).unwrap_or(own);
        return (last, own.end_ns - dur_ns(last));
    }
    let needed = parts.iter().filter(|part| waits_for(own, part));
    let last = needed.max_by_key(|part| (part.start_ns, is_own(part), Reverse(part.rank))).unwrap_or(own);
    (last, last.start_ns)
}

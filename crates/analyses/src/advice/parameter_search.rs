//! `DistributedDataParallel` searches the graph of each pass for parameters that it does not use.

use super::facts::{Facts, share};
use super::loops::Loop;
use super::words::counted;
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use std::cmp::Reverse;
use stepscope_base::units::format_ns;
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{SliceId, SliceRole};

pub(super) const RULE: Rule = Rule {
    code: "comm.unused_parameters",
    fault: "Each pass is searched for parameters that it does not use",
    disproof: "With `find_unused_parameters=False` it fails, or steps are as long.",
    evidence: "operators",
    to_do: "Where every pass uses all parameters, leave `find_unused_parameters=True` out. Where each uses the same ones, \
            pass `static_graph=True`, which searches once. Beside the search it costs another reduction of which \
            parameters were used.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let loops = facts.loops()?;
    if !facts.trace.roles.iter().any(|(_, role)| *role == SliceRole::DistributedForward) {
        return Err(Lacks("no forward passes of `DistributedDataParallel`"));
    }
    Ok(loops.iter().filter_map(|of| of_loop(facts, of)).collect())
}

/// However short the search is: the reduction after it waits for other ranks, and is not told apart.
fn of_loop(facts: &Facts, of: &Loop) -> Option<Advice> {
    let (trace, slices) = (facts.trace, &facts.trace.slices);
    let searches: Vec<SliceId> =
        of.slices(trace).filter(|id| trace.role(*id) == Some(SliceRole::ParameterSearch)).collect();
    let longest = *searches.iter().max_by_key(|id| (slices.dur_ns[id.index()], Reverse(**id)))?;
    // A static graph is searched once.
    if searches.len() < of.steps.len() {
        return None;
    }
    let spans: Vec<Span> = searches.iter().map(|id| slices.span(*id)).collect();
    let exposed = IntervalSet::from_unsorted(spans).intersect(&of.windows).subtract(&of.device);
    let gained = share(exposed.total_ns(), of.window_ns(), 0.0);
    let (count, total_ns) = (searches.len() as i64, searches.iter().map(|id| slices.dur_ns[id.index()]).sum::<i64>());
    Some(Advice {
        rank: Some(of.rank),
        says: format!(
            "`DistributedDataParallel` searches the graph for unused parameters {} a step (mean of {}), {} each time, \
             and then reduces which ones were used.",
            counted(of.per_step(count), "time"),
            of.steps.len(),
            format_ns(total_ns / count)
        ),
        count: Some(count),
        gain: gained.is_some().then(|| (exposed.total_ns(), GainEstimate::Removal)),
        place: Some(Place::of(trace, longest)),
        time: exposed,
        ..gained.unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::step_calls::tests::communicating;
    use crate::advice::tests::check;

    #[test]
    fn a_search_in_every_pass_is_said_however_short() {
        let rows = |search| [("label 1", "FFFFFF.............."), ("cpu 1", search), ("cpu 1", "aaaa..bbbb..........")];
        let says = |time| {
            format!(
                "`DistributedDataParallel` searches the graph for unused parameters 1 time a step (mean of 5), {time} each time, and then reduces which ones were used."
            )
        };
        let medium = format!("500 of 10000 removal medium: {}", says("100 µs"));
        check(&communicating(100, &rows("....s...............")), "comm.unused_parameters", &[&medium]);
        let low = format!("- of - - low: {}", says("10.0 µs"));
        check(&communicating(10, &rows("....s...............")), "comm.unused_parameters", &[&low]);
        check(&communicating(100, &rows("....................")), "comm.unused_parameters", &[]);
    }
}

//! `DistributedDataParallel` searches the graph of each pass for parameters that it does not use.
//!
//! ```text
//! search            s···················
//! nodes             ··NNNN·NNNN·········
//! operators         ··d·mm·d·mm·c·mm·c·mm··w   m marks a parameter as used, or asks whether it was; w waits for the
//! advice            █···██···██···██···█████   reduction of the marks
//! ```

use super::facts::{Facts, share};
use super::loops::Loop;
use super::step_calls::TAKES_GRADIENT;
use super::step_operators::StepOp;
use super::words::counted;
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use std::cmp::Reverse;
use stepscope_base::units::format_ns;
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{SliceId, SliceRole, Trace};

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
    if !facts.trace.roles.iter().any(|(_, role)| *role == SliceRole::DistributedForward) {
        return Err(Lacks("no forward passes of `DistributedDataParallel`"));
    }
    Ok(facts.step_operators()?.filter_map(|(of, operators)| of_loop(facts, of, operators)).collect())
}

/// However little time is known: how long the reduction of the marks waits for other ranks is seen on CPUs only.
fn of_loop(facts: &Facts, of: &Loop, operators: &[StepOp]) -> Option<Advice> {
    let (trace, slices) = (facts.trace, &facts.trace.slices);
    let searches: Vec<SliceId> =
        of.slices(trace).filter(|id| trace.role(*id) == Some(SliceRole::ParameterSearch)).collect();
    let longest = *searches.iter().max_by_key(|id| (slices.dur_ns[id.index()], Reverse(**id)))?;
    // A static graph is searched once.
    if searches.len() < of.steps.len() {
        return None;
    }
    let searching = searches.iter().map(|id| slices.span(*id));
    let spans: Vec<Span> = searching.chain(marking(trace, operators)).collect();
    let exposed = IntervalSet::from_unsorted(spans).intersect(&of.windows).subtract(&of.device);
    let gained = share(exposed.total_ns(), of.window_ns(), 0.0);
    let count = searches.len() as i64;
    Some(Advice {
        rank: Some(of.rank),
        says: format!(
            "`DistributedDataParallel` searches the graph for unused parameters {} a step (mean of {}), marks which ones were \
             used, and reduces the marks: {} each time.",
            counted(of.per_step(count), "time"),
            of.steps.len(),
            format_ns(exposed.total_ns() / count)
        ),
        count: Some(count),
        gain: gained.is_some().then(|| (exposed.total_ns(), GainEstimate::Floor)),
        place: Some(Place::of(trace, longest)),
        time: exposed,
        ..gained.unwrap_or_default()
    })
}

/// When parameters are marked in the nodes that take their gradients, when marks are asked for as gradients are taken out of
/// buckets, and the wait for their reduction, which ends with their being cleared.
fn marking<'a>(trace: &'a Trace, operators: &'a [StepOp]) -> impl Iterator<Item = Span> + 'a {
    let name = |op: &StepOp| trace.strings.get(op.name);
    let is_copy = move |op: &StepOp| name(op) == TAKES_GRADIENT;
    let is_in_node = |op: &StepOp| {
        trace.slices.with_ancestors(op.slice).skip(1).any(|id| trace.slice_name(id).ends_with("AccumulateGrad"))
    };
    operators.windows(3).filter_map(move |ops| {
        let [before, first, second] = ops else { return None };
        match (name(first), name(second)) {
            ("aten::select", "aten::fill_") if is_in_node(first) => {
                Some(Span::new(first.span.start_ns, second.span.end_ns))
            }
            ("aten::select", "aten::item") if is_copy(before) => {
                Some(Span::new(before.span.end_ns, second.span.end_ns))
            }
            ("aten::fill_", _) if is_copy(before) => Some(Span::new(before.span.end_ns, first.span.end_ns)),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::TAKES_GRADIENT;
    use crate::advice::step_calls::tests::communicating;
    use crate::advice::tests::{check, rename};

    const FORWARD: (&str, &str) = ("label 1", "FFFFFF..............");

    fn says(time: &str) -> String {
        format!(
            "`DistributedDataParallel` searches the graph for unused parameters 1 time a step (mean of 5), marks which ones were used, and reduces the marks: {time} each time."
        )
    }

    #[test]
    fn a_search_in_every_pass_is_said_however_short() {
        let rows = |search| [FORWARD, ("cpu 1", search), ("cpu 1", "aaaa..bbbb..........")];
        let medium = format!("500 of 10000 floor medium: {}", says("100 µs"));
        check(&communicating(100, &rows("....s...............")), "comm.unused_parameters", &[&medium]);
        let low = format!("- of - - low: {}", says("10.0 µs"));
        check(&communicating(10, &rows("....s...............")), "comm.unused_parameters", &[&low]);
        check(&communicating(100, &rows("....................")), "comm.unused_parameters", &[]);
    }

    #[test]
    fn marks_and_their_reduction_are_part_of_it() {
        let rows = [FORWARD, ("cpu 1", "....sNNN............"), ("cpu 1", "aaaa.dmfcmic...fb...")];
        let names = [
            ("N", "torch::autograd::AccumulateGrad"),
            ("m", "aten::select"),
            ("f", "aten::fill_"),
            ("i", "aten::item"),
            ("c", TAKES_GRADIENT),
        ];
        let trace = names.iter().fold(communicating(100, &rows), |trace, (from, to)| rename(trace, from, to));
        let high = format!("4500 of 10000 floor high: {}", says("900 µs"));
        check(&trace, "comm.unused_parameters", &[&high]);
    }
}

//! `torch.compile` compiles again and again in the steps.

use super::facts::Facts;
use super::loops::Loop;
use super::step_tail::WARM_UP;
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{SliceId, SliceKind, SliceRole, Trace};

/// Steps behind the first two in which something is compiled; fewer are no habit.
const LEAST_STEPS: usize = 3;

pub(super) const RULE: Rule = Rule {
    code: "compile.recompiles",
    fault: "Compiled code is compiled again in the steps",
    disproof: "Steps are as long when every batch has the same shapes.",
    evidence: "operators",
    to_do: "`TORCH_LOGS=recompiles` says which guard fails. Where it is a shape, pass `dynamic=True` or call \
            `torch._dynamo.mark_dynamic`, or pad batches to a few lengths; where it is a number of Python that changes, \
            make it a tensor.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let loops = facts.loops()?;
    if !has_compiled_code(facts.trace) {
        return Err(Lacks("no code of `torch.compile`"));
    }
    Ok(loops.iter().filter_map(|of| of_loop(facts, of)).collect())
}

/// Whether `torch.compile` is used.
pub(super) fn has_compiled_code(trace: &Trace) -> bool {
    let is_of_compiler = |role: SliceRole| matches!(role, SliceRole::Compilation | SliceRole::CompiledRegion);
    trace.roles.iter().any(|(_, role)| is_of_compiler(*role))
}

fn of_loop(facts: &Facts, of: &Loop) -> Option<Advice> {
    let (trace, slices) = (facts.trace, &facts.trace.slices);
    let step = |id: SliceId| of.step_at(slices.start_ns[id.index()]);
    let compiles = |id: &SliceId| trace.role(*id) == Some(SliceRole::Compilation);
    // What the first steps compile has to be compiled once.
    let again = of.slices(trace).filter(compiles).filter(|id| step(*id).is_some_and(|step| step >= WARM_UP));
    let again: Vec<SliceId> = again.collect();
    let steps: BTreeSet<usize> = again.iter().filter_map(|id| step(*id)).collect();
    let longest = *again.iter().max_by_key(|id| (slices.dur_ns[id.index()], Reverse(**id)))?;
    let spans: Vec<Span> = again.iter().map(|id| slices.span(*id)).collect();
    let compiling = IntervalSet::from_unsorted(spans).intersect(&of.windows).subtract(&of.device);
    let row = of.row(compiling.total_ns()).filter(|_| steps.len() >= LEAST_STEPS)?;
    let module = slices.with_ancestors(longest).find(|id| slices.kind(*id) == SliceKind::Module);
    let module = module.map_or_else(String::new, |id| format!(", the longest in {}", quoted(trace.slice_name(id))));
    let count = again.len() as i64;
    Some(Advice {
        says: format!(
            "`torch.compile` compiles {} in {} of {} steps behind the first two{module}: {} ({}) of {}.",
            counted(count, "time"),
            steps.len(),
            of.steps.len() - WARM_UP,
            format_ns(compiling.total_ns()),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(count),
        gain: Some((compiling.total_ns(), GainEstimate::Floor)),
        place: Some(Place::of(trace, longest)),
        time: compiling,
        ..row
    })
}

/// Compiled code, for tests.
#[cfg(test)]
pub(super) mod tests {
    use crate::advice::loops::tests::joined;
    use crate::advice::tests::{check, drawn_us};
    use stepscope_trace::{SliceRole, Trace};

    /// A drawing, of 100 us a column, in which `C` compiles and `R` is compiled code.
    pub(in crate::advice) fn compiled(drawing: &str) -> Trace {
        let mut trace = drawn_us(drawing, 100);
        let roles = [("C", SliceRole::Compilation), ("R", SliceRole::CompiledRegion)];
        trace.roles = roles.map(|(name, role)| (trace.strings.intern(name), role)).to_vec();
        trace.roles.sort_unstable();
        trace
    }

    const COMPILES: &[(&str, &str)] =
        &[("module 1", "mmmmmmmm.."), ("cpu 1", "CCCCaaaa.."), ("samples 1", "f........")];
    const RUNS: &[(&str, &str)] = &[("module 1", "mmmmmmmm.."), ("cpu 1", "aaaa......"), ("samples 1", ".........")];

    #[test]
    fn compiling_again_in_the_steps_is_said() {
        check(
            &compiled(&joined(&[COMPILES, COMPILES, COMPILES, RUNS, COMPILES, COMPILES])),
            "compile.recompiles",
            &[
                "1200 of 6000 floor high: `torch.compile` compiles 3 times in 3 of 4 steps behind the first two, the longest in `m`: 1.20 ms (20.0 %) of 6.00 ms.",
            ],
        );
    }

    #[test]
    fn compiling_in_the_first_steps_is_healthy() {
        check(&compiled(&joined(&[COMPILES, COMPILES, COMPILES, COMPILES, RUNS, RUNS])), "compile.recompiles", &[]);
    }
}

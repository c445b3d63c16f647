//! `torch.compile` could not make one piece of a model: Python runs between the pieces.

use super::facts::Facts;
use super::lines::line_at;
use super::loops::Loop;
use super::recompiles::has_compiled_code;
use super::step_operators::Categories;
use super::words::quoted;
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule, tiny_operators};
use crate::op_classes::UNKNOWN;
use std::cmp::Reverse;
use stepscope_base::units::{format_count, format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{SliceId, SliceKind, SliceRole};

/// Pieces of a step that other pieces call; fewer cost little.
const LEAST_PIECES: i64 = 10;

pub(super) const RULE: Rule = Rule {
    code: "compile.graph_breaks",
    fault: "Compiled code is broken into many pieces",
    disproof: "With `fullgraph=True` it compiles, or steps are as long without the breaks.",
    evidence: "operators",
    to_do: "`TORCH_LOGS=graph_breaks`, or `fullgraph=True`, says where it breaks. Keep values of tensors out of Python \
            (`.item()`, `print`, `if` on a tensor: `torch.where`, `torch.cond`), and calls that the compiler does not \
            know out of what is compiled.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let loops = facts.loops()?;
    if !has_compiled_code(facts.trace) {
        return Err(Lacks("no code of `torch.compile`"));
    }
    Ok(loops.iter().filter_map(|of| of_loop(facts, of)).collect())
}

fn of_loop(facts: &Facts, of: &Loop) -> Option<Advice> {
    let (trace, slices, thread) = (facts.trace, &facts.trace.slices, of.thread?);
    let is_region = |id: SliceId| trace.role(id) == Some(SliceRole::CompiledRegion);
    let is_within = |id: SliceId| slices.with_ancestors(id).skip(1).any(is_region);
    let regions: Vec<SliceId> = of.slices(trace).filter(|id| is_region(*id)).collect();
    // What compiled code calls, and was compiled by itself: the code behind a break, or a function that breaks it.
    let (pieces, outermost): (Vec<SliceId>, Vec<SliceId>) = regions.into_iter().partition(|id| is_within(*id));
    let (count, steps) = (pieces.len() as i64, of.steps.len() as i64);
    if count < LEAST_PIECES * steps {
        return None;
    }
    // Compiled code, and what the compiler does before it, are operators of no known kind. Short ones between the pieces
    // would be part of one piece without a break.
    let mut categories = Categories::default();
    let mut computes = |id: &SliceId| {
        slices.kind(*id) == SliceKind::Op
            && slices.dur_ns[id.index()] >= tiny_operators::SHORT_NS
            && categories.of(trace, slices.name[id.index()]) != UNKNOWN
            && is_within(*id)
    };
    let on_thread = trace.lanes(thread).flat_map(|lane| trace.tracks[lane.index()].slice_ids());
    let computing: Vec<SliceId> = on_thread.filter(|id| computes(id)).collect();
    let set = |ids: &[SliceId]| -> IntervalSet {
        IntervalSet::from_unsorted(ids.iter().map(|id| slices.span(*id)).collect::<Vec<Span>>())
    };
    let compiled = set(&outermost).intersect(&of.windows);
    let exposed = compiled.subtract(&set(&computing)).subtract(&of.device);
    let row = of.row(exposed.total_ns())?;
    let longest = *outermost.iter().max_by_key(|id| (slices.dur_ns[id.index()], Reverse(**id)))?;
    let module = slices.with_ancestors(longest).find(|id| slices.kind(*id) == SliceKind::Module);
    let module = module.map_or_else(String::new, |id| format!(", in {}", quoted(trace.slice_name(id))));
    Some(Advice {
        says: format!(
            "Compiled code calls {} other pieces of compiled code a step (mean of {steps}){module}, and is outside of \
             operators of 20 µs or more for {} ({}) of {}.",
            format_count(of.per_step(count)),
            format_ns(exposed.total_ns()),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(count),
        gain: Some((exposed.total_ns(), GainEstimate::Bound)),
        place: Some(Place::of(trace, longest)),
        // What is exposed are many short times, in which few samples are.
        line: line_at(facts, Some(of.rank), &compiled),
        time: exposed,
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::loops::tests::repeated;
    use crate::advice::recompiles::tests::compiled;
    use crate::advice::tests::{check, rename};
    use stepscope_trace::Trace;

    /// Five steps of compiled code that calls this number of pieces, each with an operator.
    fn broken(pieces: usize) -> Trace {
        let cells = |piece: &str| format!("{}{}", piece.repeat(pieces), ".".repeat(60 - 4 * pieces));
        let rows = [
            ("module 1", cells("mmmm")),
            ("cpu 1", cells("RRRR")),
            ("cpu 1", cells("RRR.")),
            ("cpu 1", cells(".a..")),
            ("samples 1", cells("f...")),
        ];
        let rows: Vec<(&str, &str)> = rows.iter().map(|(head, cells)| (*head, cells.as_str())).collect();
        rename(compiled(&repeated(5, &rows)), "a", "aten::relu")
    }

    #[test]
    fn compiled_code_in_many_pieces_is_said() {
        check(
            &broken(10),
            "compile.graph_breaks",
            &[
                "15000 of 30000 bound high: Compiled code calls 10 other pieces of compiled code a step (mean of 5), in `m`, and is outside of operators of 20 µs or more for 15.0 ms (50.0 %) of 30.0 ms.",
            ],
        );
    }

    #[test]
    fn compiled_code_that_calls_few_pieces_is_healthy() {
        check(&broken(9), "compile.graph_breaks", &[]);
        check(&broken(0), "compile.graph_breaks", &[]);
    }
}

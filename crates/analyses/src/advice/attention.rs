//! Attention is written as two products with a softmax between them, which keeps every score.

use super::facts::Facts;
use super::loops::Loop;
use super::step_operators::StepOp;
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Place, Rule};
use crate::module_contexts::{Context, ModuleContexts};
use crate::op_classes::{MATRIX_PRODUCT, SOFTMAX};
use rustc_hash::FxHashSet;
use std::cmp::Reverse;
use std::ops::Range;
use stepscope_base::IntervalSet;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_trace::{SliceId, Trace};

/// Operators between a product and the softmax at most: scaling, masks and changes of shape.
const REACH: usize = 12;
/// Products that attention makes of its queries, keys and values; others have a weight.
const PRODUCTS: [&str; 4] = ["aten::matmul", "aten::bmm", "aten::baddbmm", "aten::einsum"];
/// What takes scores away.
const MASKS: [&str; 3] = ["aten::masked_fill", "aten::masked_fill_", "aten::where"];

pub(super) const RULE: Rule = Rule {
    code: "attention.unfused",
    fault: "Attention keeps all of its scores",
    disproof: "Steps are as long with `scaled_dot_product_attention`.",
    evidence: "operators",
    to_do: "Use `torch.nn.functional.scaled_dot_product_attention`, with `is_causal=True` in place of a mask where it is \
            one: it goes through the scores once, in pieces that fit a cache, and on a device never writes them.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let mut modules = None;
    let of_loop = |(of, operators): (&Loop, &[StepOp])| {
        let has_softmax = operators.iter().any(|op| op.category == SOFTMAX);
        has_softmax
            .then(|| of_loop(facts, of, operators, modules.get_or_insert_with(|| ModuleContexts::of(facts.trace))))?
    };
    Ok(facts.step_operators()?.filter_map(of_loop).collect())
}

fn of_loop(facts: &Facts, of: &Loop, operators: &[StepOp], modules: &ModuleContexts) -> Option<Advice> {
    let trace = facts.trace;
    let context = |op: &StepOp| modules.get(op.slice);
    let between: Vec<(usize, Range<usize>)> =
        (0..operators.len()).filter_map(|at| Some((at, scores(trace, operators, &context, at)?))).collect();
    let (count, steps) = (between.len() as i64, of.steps.len() as i64);
    if count < steps {
        return None;
    }
    // Their backward pass runs in the same modules.
    let backward = |of: &[&(usize, Range<usize>)], is_wanted: &dyn Fn(&StepOp) -> bool| {
        let places: FxHashSet<u32> = of.iter().filter_map(|(at, _)| Some(context(&operators[*at])?.module)).collect();
        let is_in = |op: &&StepOp| context(op).is_some_and(|at| at.is_backward && places.contains(&at.module));
        operators.iter().filter(|op| is_wanted(op)).filter(is_in).collect::<Vec<&StepOp>>()
    };
    let time = |all: &[&StepOp]| match of.device.is_empty() {
        true => all.iter().map(|op| op.span).collect::<IntervalSet>().intersect(&of.windows),
        false => {
            let wanted: FxHashSet<SliceId> = all.iter().map(|op| op.slice).collect();
            facts.kernels_in(of, |slice| wanted.contains(&slice))
        }
    };
    let mut all = backward(&between.iter().collect::<Vec<_>>(), &|op| op.category != MATRIX_PRODUCT);
    all.extend(between.iter().flat_map(|(_, range)| &operators[range.clone()]));
    let outside = time(&all);
    // Of the scores under a mask half are not computed at all.
    let is_mask = |op: &StepOp| MASKS.contains(&trace.strings.get(op.name));
    let masked: Vec<_> = between.iter().filter(|(_, range)| operators[range.clone()].iter().any(is_mask)).collect();
    let mut products = backward(&masked, &|op| PRODUCTS.contains(&trace.strings.get(op.name)));
    products.extend(masked.iter().flat_map(|(_, range)| [&operators[range.start - 1], &operators[range.end]]));
    let products = time(&products);
    let (outside_ns, window_ns) = (outside.total_ns(), of.window_ns());
    of.row(outside_ns)?;
    let gain_ns = (outside_ns + products.total_ns() / 2).min(window_ns);
    let dur_ns = |at: usize| operators[at].span.duration_ns();
    let (longest, _) = between.iter().max_by_key(|(at, _)| (dur_ns(*at), Reverse(*at)))?;
    let longest = &operators[*longest];
    let module = context(longest).map_or_else(String::new, |context| {
        format!(", the longest in {}", quoted(&modules.path(trace, context.module)))
    });
    Some(Advice {
        says: format!(
            "{} a step (mean of {steps}) a softmax stands between two products{module}: what is done with the scores \
             outside of products takes {} ({}) of {}.",
            counted(of.per_step(count), "time"),
            format_ns(outside_ns),
            format_ratio(outside_ns as f64 / window_ns as f64),
            format_ns(window_ns)
        ),
        count: Some(count),
        gain: Some((gain_ns, GainEstimate::Bound)),
        place: Some(Place::of(trace, longest.slice)),
        time: outside.union(&products),
        ..of.row(gain_ns)?
    })
}

/// The operators between two products of which one is the softmax at `at`, all of one module and of the forward pass.
fn scores(
    trace: &Trace,
    operators: &[StepOp],
    context: &impl Fn(&StepOp) -> Option<Context>,
    at: usize,
) -> Option<Range<usize>> {
    let softmax = &operators[at];
    if softmax.category != SOFTMAX || context(softmax).is_some_and(|context| context.is_backward) {
        return None;
    }
    let is_near = |op: &StepOp| op.step == softmax.step && context(op) == context(softmax);
    let is_product = |op: &StepOp| PRODUCTS.contains(&trace.strings.get(op.name));
    let reached = at.saturating_sub(REACH)..(at + REACH).min(operators.len());
    let before = (reached.start..at).rev().take_while(|other| is_near(&operators[*other]));
    let after = (at + 1..reached.end).take_while(|other| is_near(&operators[*other]));
    let first = { before }.find(|other| is_product(&operators[*other]))?;
    let last = { after }.find(|other| is_product(&operators[*other]))?;
    Some(first + 1..last)
}

#[cfg(test)]
mod tests {
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::{check, drawn_us, rename};
    use stepscope_trace::Trace;

    /// Five steps of 2 ms: `p` is a product, `s` a softmax, `l` a product with a weight.
    fn attending(module: &str, ops: &str) -> Trace {
        let trace = drawn_us(&repeated(5, &[("module 1", module), ("cpu 1", ops)]), 100);
        let names = [("p", "aten::matmul"), ("s", "aten::softmax"), ("l", "aten::linear"), ("d", "aten::div")];
        names.into_iter().fold(trace, |trace, (old, new)| rename(trace, old, new))
    }

    #[test]
    fn a_softmax_between_two_products_is_said_with_its_module() {
        check(
            &attending("mmmmmmmmmmmm........", "llppddssssppl......."),
            "attention.unfused",
            &[
                "3000 of 10000 bound high: 1 time a step (mean of 5) a softmax stands between two products, the longest in `m`: what is done with the scores outside of products takes 3.00 ms (30.0 %) of 10.0 ms.",
            ],
        );
    }

    #[test]
    fn under_a_mask_half_of_the_products_is_to_gain_as_well() {
        check(
            &rename(attending("mmmmmmmmmmmm........", "llppddssssppl......."), "aten::div", "aten::masked_fill"),
            "attention.unfused",
            &[
                "4000 of 10000 bound high: 1 time a step (mean of 5) a softmax stands between two products, the longest in `m`: what is done with the scores outside of products takes 3.00 ms (30.0 %) of 10.0 ms.",
            ],
        );
    }

    #[test]
    fn on_a_device_what_is_done_between_the_products_is_its_kernels() {
        let rows = [
            ("module 1", "mmmmmm.............."),
            ("cpu 1", "lpdspl.............."),
            ("launch 1", "AQESQB.............."),
            ("stream 7", ".AAQQEEEESSSSSSQQBB."),
        ];
        let trace = drawn_us(&repeated(5, &rows), 100);
        let names = [("p", "aten::matmul"), ("s", "aten::softmax"), ("l", "aten::linear"), ("d", "aten::div")];
        check(
            &names.into_iter().fold(trace, |trace, (old, new)| rename(trace, old, new)),
            "attention.unfused",
            &[
                "5000 of 10000 bound high: 1 time a step (mean of 5) a softmax stands between two products, the longest in `m`: what is done with the scores outside of products takes 5.00 ms (50.0 %) of 10.0 ms.",
            ],
        );
    }

    #[test]
    fn a_softmax_elsewhere_is_healthy() {
        check(&attending("mmmmmmmmmmmm........", "llllddsssslll......."), "attention.unfused", &[]);
        check(&attending("mmmm..mmmmmm........", "llppddssssppl......."), "attention.unfused", &[]);
    }
}

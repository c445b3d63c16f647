//! Operators that only copy or convert take much of the time, on a CPU.

use super::facts::Facts;
use super::lines::line_of_any;
use super::loops::Loop;
use super::step_operators::Categories;
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Place, Rule};
use crate::host_threads::{Doing, Threads};
use crate::op_classes::{COPY, MATRIX_PRODUCT};
use crate::op_tree::{NONE, OpTree};
use crate::optimizer_labels::OptimizerLabels;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span, StringId};
use stepscope_trace::{SliceId, SliceKind};

/// Share of the time in operators.
const THRESHOLD: f64 = 0.15;

pub(super) const RULE: Rule = Rule {
    code: "compute.copies",
    fault: "Tensors are copied or converted in every step",
    disproof: "Steps are as long with tensors that have the type and the layout already.",
    evidence: "operators",
    to_do: "Keep tensors in the type and the layout that the next operator takes: create them so (`dtype=`, \
            `channels_last`), transpose a weight once and not in every step, drop `clone()` and `contiguous()` that \
            nobody needs, write into a slice of the result and not into parts that are joined.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    // On devices `compute.unfused` counts copies as well.
    Ok(facts.host_operators()?.into_iter().filter_map(|(of, _)| of_loop(facts, of)).collect())
}

fn of_loop(facts: &Facts, of: &Loop) -> Option<Advice> {
    let (trace, slices) = (facts.trace, &facts.trace.slices);
    let thread = of.thread?;
    let copies = copies(facts, of);
    let spans: Vec<Span> = copies.iter().map(|id| slices.span(*id)).collect();
    let copying = IntervalSet::from_unsorted(spans).intersect(&of.windows);
    let copying_ns = copying.total_ns();
    let operators = facts.context.get::<Threads>().get(trace, thread).doing(Doing::Op).intersect(&of.windows);
    let ratio = copying_ns as f64 / operators.total_ns().max(1) as f64;
    let row = of.row(copying_ns).filter(|_| ratio > THRESHOLD)?;
    // The name with the most time, and its longest case.
    let mut by_name: FxHashMap<StringId, i64> = FxHashMap::default();
    copies.iter().for_each(|id| *by_name.entry(slices.name[id.index()]).or_default() += slices.dur_ns[id.index()]);
    let (name, name_ns) = by_name.into_iter().max_by_key(|(name, ns)| (*ns, Reverse(*name)))?;
    let of_name = copies.iter().filter(|id| slices.name[id.index()] == name);
    let longest = *of_name.max_by_key(|id| (slices.dur_ns[id.index()], Reverse(**id)))?;
    let count = copies.len() as i64;
    let module = slices.with_ancestors(longest).find(|id| slices.kind(*id) == SliceKind::Module);
    // What copies in the backward pass is the line that copies in the forward pass.
    let is_backward = |id: SliceId| trace.slice_name(id).starts_with("autograd::engine::evaluate_function");
    let forward = copies.iter().filter(|id| !slices.with_ancestors(**id).any(is_backward));
    let forward = IntervalSet::from_unsorted(forward.map(|id| slices.span(*id)));
    let in_program = if forward.is_empty() { &copying } else { &forward };
    let module = module.map_or_else(String::new, |id| format!(" in {}", quoted(trace.slice_name(id))));
    Some(Advice {
        says: format!(
            "{} a step copy or convert tensors for {}, {} of the time in operators and {} of {}; {} of it is {}, the longest{module}.",
            counted(of.per_step(count), "operator"),
            format_ns(copying_ns),
            format_ratio(ratio),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns()),
            format_ns(name_ns),
            quoted(trace.strings.get(name))
        ),
        count: Some(count),
        gain: Some((copying_ns, GainEstimate::Bound)),
        place: Some(Place::of(trace, longest)),
        line: line_of_any(facts, of.rank, in_program),
        time: copying,
        ..row
    })
}

/// How a product begins that takes its result from what is added to it: there is no copy that a program could leave out.
const ADDS: &str = "aten::add";

/// The outermost copies in steps on the thread that runs them. Making a batch and updating parameters are not judged.
fn copies(facts: &Facts, of: &Loop) -> Vec<SliceId> {
    let (trace, slices, tree) = (facts.trace, &facts.trace.slices, facts.context.get::<OpTree>());
    let lanes: Vec<_> = of.thread.into_iter().flat_map(|thread| trace.lanes(thread)).collect();
    let mut categories = Categories::default();
    let mut copies = vec![false; tree.len()];
    let mut found = Vec::new();
    for (row, (id, parent)) in tree.slice.iter().zip(&tree.parent).enumerate() {
        let is_inner = *parent != NONE && copies[*parent as usize];
        let around = (*parent != NONE).then(|| slices.name[tree.slice[*parent as usize].index()]);
        let is_added_to = around.is_some_and(|name| {
            trace.strings.get(name).starts_with(ADDS) && categories.of(trace, name) == MATRIX_PRODUCT
        });
        if is_added_to {
            continue;
        }
        copies[row] = is_inner || categories.of(trace, slices.name[id.index()]) == COPY;
        let is_own = lanes.contains(&slices.track[id.index()]) && of.has(slices.start_ns[id.index()]);
        if copies[row] && !is_inner && is_own {
            found.push(*id);
        }
    }
    let optimizer = facts.context.get::<OptimizerLabels>();
    found.retain(|copy| {
        let start_ns = slices.start_ns[copy.index()];
        let is_elsewhere = |id| slices.kind(id) == SliceKind::DataLoader || optimizer.is_at(trace, id, start_ns);
        !slices.with_ancestors(*copy).any(is_elsewhere)
    });
    found
}

#[cfg(test)]
mod tests {
    use crate::Selection;
    use crate::advice::advice;
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::{check, drawn_us, rename};
    use stepscope_trace::Trace;

    /// Five steps of 2 ms; `c` is a copy.
    fn copying(rows: &[(&str, &str)]) -> Trace {
        rename(drawn_us(&repeated(5, rows), 100), "c", "aten::contiguous")
    }

    #[test]
    fn copies_that_take_much_of_the_time_in_operators_are_said() {
        check(
            &copying(&[("module 1", "mmmmmmmmmm.........."), ("cpu 1", "aaaaaaccc.aaaaaa....")]),
            "compute.copies",
            &[
                "1500 of 10000 bound high: 1 operator a step copy or convert tensors for 1.50 ms, 20.0 % of the time in operators and 15.0 % of 10.0 ms; 1.50 ms of it is `aten::contiguous`, the longest in `m`.",
            ],
        );
        check(&copying(&[("cpu 1", "aaaaaaaacc.aaaaaa...")]), "compute.copies", &[]);
    }

    #[test]
    fn what_a_product_is_added_to_is_no_copy_of_the_program() {
        let rows = [("cpu 1", "aaaaaappppppaaaa...."), ("cpu 1", ".......ccc..........")];
        let named = |product: &str| rename(copying(&rows), "p", product);
        check(&named("aten::addmm"), "compute.copies", &[]);
        check(
            &named("aten::conv2d"),
            "compute.copies",
            &[
                "1500 of 10000 bound high: 1 operator a step copy or convert tensors for 1.50 ms, 18.8 % of the time in operators and 15.0 % of 10.0 ms; 1.50 ms of it is `aten::contiguous`, the longest.",
            ],
        );
    }

    #[test]
    fn the_line_is_one_of_the_forward_pass() {
        let line = |samples: &str| {
            let node = "autograd::engine::evaluate_function: ToCopyBackward0";
            let rows = [("cpu 1", "aaaacc.bbbbb........"), ("cpu 1", ".......ccccc........"), ("samples 1", samples)];
            let rows = advice(&rename(copying(&rows), "b", node), &Selection::default());
            rows.into_iter().find(|row| row.rule.as_str() == "compute.copies").expect("copies are said").line
        };
        assert_eq!(line("....f..ggggg........").as_deref(), Some("f.py(7): f"));
        assert_eq!(line("....gg..ffff........").as_deref(), Some("g.py(7): g"));
        assert_eq!(line(".......ggggg........"), None);
    }

    #[test]
    fn making_batches_is_not_judged() {
        check(
            &copying(&[("input 1", "......iiii.........."), ("cpu 1", "aaaaaaccc.aaaaaa....")]),
            "compute.copies",
            &[],
        );
    }
}

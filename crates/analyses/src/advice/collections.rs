//! Python collects its garbage in the steps.

use super::facts::Facts;
use super::loops::{Loop, median};
use super::words::counted;
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use std::cmp::Reverse;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{SliceId, SliceRole, Trace};

pub(super) const RULE: Rule = Rule {
    code: "host.gc",
    fault: "Python collects its garbage in the steps",
    disproof: "Steps are as long with `gc.disable()` before the loop.",
    evidence: "step_breakdown",
    to_do: "Collect less often: `gc.collect(); gc.freeze()` once the model and the data are set up, so that collections \
            do not walk through them; a higher `gc.set_threshold(…)`; or `gc.disable()`, and `gc.collect()` by hand every \
            N steps, on all ranks in the same one. Take calls of `gc.collect()` out of the step.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let loops = facts.loops()?;
    if !has_collections(facts.trace) {
        return Err(Lacks("no garbage collections of Python: `stepscope record` has them"));
    }
    Ok(loops.iter().filter_map(|of| of_loop(facts, of)).collect())
}

fn has_collections(trace: &Trace) -> bool {
    trace.roles.iter().any(|(_, role)| *role == SliceRole::GarbageCollection)
}

/// The collections in the steps of a loop. The interpreter runs one thread at a time: a collection on any of them holds
/// up the one that runs the steps.
pub(super) fn collections(trace: &Trace, of: &Loop) -> Vec<SliceId> {
    if !has_collections(trace) {
        return Vec::new();
    }
    of.slices(trace).filter(|id| trace.role(*id) == Some(SliceRole::GarbageCollection)).collect()
}

/// When they hold the steps up: no device works beside them.
fn exposed(trace: &Trace, of: &Loop, slices: &[SliceId]) -> IntervalSet {
    let spans = slices.iter().map(|id| trace.slices.span(*id)).collect::<Vec<Span>>();
    IntervalSet::from_unsorted(spans).intersect(&of.windows).subtract(&of.device)
}

fn of_loop(facts: &Facts, of: &Loop) -> Option<Advice> {
    let trace = facts.trace;
    let slices = collections(trace, of);
    let longest = *slices.iter().max_by_key(|id| (trace.slices.dur_ns[id.index()], Reverse(**id)))?;
    let exposed = exposed(trace, of, &slices);
    let exposed_ns = exposed.total_ns();
    // One collection is no habit, however long.
    of.row(exposed_ns - trace.slices.dur_ns[longest.index()].min(exposed_ns))?;
    let row = of.row(exposed_ns)?;
    let (count, steps) = (slices.len() as i64, of.steps.len() as i64);
    let often = match of.per_step(count) {
        _ if count < steps => format!("{} in {steps} steps", counted(count, "time")),
        1 => format!("once a step (mean of {steps})"),
        per_step => format!("{} a step (mean of {steps})", counted(per_step, "time")),
    };
    let total_ns: i64 = slices.iter().map(|id| trace.slices.dur_ns[id.index()]).sum();
    let (mean, ratio) = (format_ns(total_ns / count), format_ratio(row.measured_ratio?));
    let (grows, window) = (growth(trace, &slices), format_ns(of.window_ns()));
    Some(Advice {
        says: format!(
            "Python collects its garbage {often}, {mean} each time: {} ({ratio}) of {window}{grows}.",
            format_ns(exposed_ns)
        ),
        count: Some(count),
        gain: Some((exposed_ns, GainEstimate::Removal)),
        place: Some(Place::of(trace, longest)),
        time: exposed,
        ..row
    })
}

/// When pauses get longer, the job keeps more and more objects.
fn growth(trace: &Trace, slices: &[SliceId]) -> String {
    const LEAST: usize = 12;
    let mut in_order: Vec<SliceId> = slices.to_vec();
    in_order.sort_by_key(|id| (trace.slices.start_ns[id.index()], *id));
    let quarter = in_order.len() / 4;
    let median_of = |ids: &[SliceId]| median(ids.iter().map(|id| trace.slices.dur_ns[id.index()]));
    let (first, last) = (median_of(&in_order[..quarter]), median_of(&in_order[in_order.len() - quarter..]));
    match slices.len() >= LEAST && last / 2 >= first && first > 0 {
        true => format!("; a pause grows from {} to {}: objects pile up", format_ns(first), format_ns(last)),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::Selection;
    use crate::advice::advice;
    use crate::advice::loops::tests::{joined, repeated};
    use crate::advice::tests::{check, drawn_us};
    use stepscope_trace::{SliceRole, Trace};

    /// A drawing in which `g` is a collection.
    fn with_collections(drawing: &str) -> Trace {
        let mut trace = drawn_us(drawing, 100);
        let name = trace.strings.intern("g");
        trace.roles.push((name, SliceRole::GarbageCollection));
        trace
    }

    #[test]
    fn collections_in_every_step_are_said() {
        let steps = |cells: &str| repeated(5, &[("cpu 1", "aaaa......aaaa......"), ("python 1", cells)]);
        check(
            &with_collections(&steps("....ggg.......gg....")),
            "host.gc",
            &[
                "2500 of 10000 removal high: Python collects its garbage 2 times a step (mean of 5), 250 µs each time: 2.50 ms (25.0 %) of 10.0 ms.",
            ],
        );
        // Without the longest it would be less than a millisecond.
        check(&with_collections(&steps("....gg..............")), "host.gc", &[]);
        check(&with_collections(&steps("....................")), "host.gc", &[]);
    }

    #[test]
    fn one_long_collection_is_no_habit() {
        let usual: &[(&str, &str)] = &[("cpu 1", "aaaa......"), ("python 1", "..........")];
        let long: &[(&str, &str)] = &[("cpu 1", "aaaa................"), ("python 1", "....gggggggggggggggg")];
        check(&with_collections(&joined(&[usual, usual, long, usual, usual, usual])), "host.gc", &[]);
    }

    #[test]
    fn collections_beside_which_a_device_works_hold_nothing_up() {
        let steps = |device: &str| repeated(5, &[("python 1", "....ggg.......gg...."), ("stream 7", device)]);
        check(&with_collections(&steps("CCCCCCCCCCCCCCCCCCCC")), "host.gc", &[]);
        check(
            &with_collections(&steps("CCCC......CCCCCCCCCC")),
            "host.gc",
            &[
                "1500 of 10000 removal high: Python collects its garbage 2 times a step (mean of 5), 250 µs each time: 1.50 ms (15.0 %) of 10.0 ms.",
            ],
        );
    }

    #[test]
    fn the_rule_of_code_outside_of_operators_gives_way() {
        let steps = repeated(5, &[("python 1", "gggg......"), ("launch 1", "....C....."), ("stream 7", ".....CCCCC")]);
        let trace = with_collections(&steps);
        check(&trace, "host.code", &[]);
        assert_eq!(advice(&trace, &Selection::default())[0].rule.as_str(), "host.gc");
        let trace = drawn_us(&steps, 100);
        assert_eq!(advice(&trace, &Selection::default())[0].rule.as_str(), "host.code");
    }

    #[test]
    fn pauses_that_grow_are_said_to() {
        let step = |long: usize| format!("{:.<20}", "g".repeat(long));
        let cells: Vec<String> = (0..12).map(|at| step(1 + at / 3)).collect();
        let rows: Vec<[(&str, &str); 1]> = cells.iter().map(|cells| [("python 1", cells.as_str())]).collect();
        let steps: Vec<&[(&str, &str)]> = rows.iter().map(|row| row.as_slice()).collect();
        check(
            &with_collections(&joined(&steps)),
            "host.gc",
            &[
                "3000 of 24000 removal high: Python collects its garbage once a step (mean of 12), 250 µs each time: 3.00 ms (12.5 %) of 24.0 ms; a pause grows from 100 µs to 400 µs: objects pile up.",
            ],
        );
    }

    #[test]
    fn fewer_than_five_steps_are_not_judged() {
        check(&with_collections(&repeated(4, &[("python 1", "ggggg...............")])), "host.gc", &[]);
    }
}

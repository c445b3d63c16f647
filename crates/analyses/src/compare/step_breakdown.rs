//! What the mean step of two runs consists of: the difference of the means as a sum.

use super::side::Side;
use crate::Outcome;
use crate::mean_parts::means_of_sums;
use crate::step_breakdown::{CLASSES, NAMES, NamedParts};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

columns! {
    /// What the mean step of two runs spends on a class, or on a part of it.
    struct PartRow {
        /// What the row is: a `class`, a `part` of the class before it, or `total`, the step.
        row: &'static str => Text,
        /// The class, as in `step_breakdown`; `total` for the step.
        class: &'static str => Text,
        /// What the part is: an operator, a kernel, a call … Absent for a class, and for time of it that has no name.
        name: Option<Arc<str>> => Text,
        /// What the mean step of the first run spends on it.
        a_ns: Option<i64> => Nanoseconds,
        /// What the mean step of the second run spends on it.
        b_ns: Option<i64> => Nanoseconds,
        /// The second run's time less the first run's.
        change_ns: Option<i64> => Nanoseconds,
        /// The change as a share of the first run's time.
        change_ratio: Option<f64> => Ratio,
    }
}

/// The same time in both runs; absent in one without steps.
type Both = [Option<i64>; 2];

fn change([a, b]: Both) -> Option<i64> {
    a.zip(b).map(|(a, b)| b - a)
}

fn sum(parts: impl Iterator<Item = Both>) -> Both {
    let add = |sum: Option<i64>, part: Option<i64>| sum.zip(part).map(|(sum, part)| sum + part);
    parts.reduce(|[a, b], [of_a, of_b]| [add(a, of_a), add(b, of_b)]).unwrap_or([Some(0); 2])
}

impl PartRow {
    fn of(row: &'static str, class: &'static str, name: Option<Arc<str>>, times: Both) -> Self {
        let change_ns = change(times);
        let ratio = |(change, before): (i64, i64)| (before != 0).then(|| change as f64 / before as f64);
        let change_ratio = change_ns.zip(times[0]).and_then(ratio);
        Self { row, class, name, a_ns: times[0], b_ns: times[1], change_ns, change_ratio }
    }
}

/// The classes, the largest change first, each followed by its parts in the same order; last the step. Classes sum to it,
/// and parts to their class.
pub(super) fn outcome(a: &Side<'_>, b: &Side<'_>) -> Outcome {
    let runs = [a, b].map(|side| side.in_steps.get::<NamedParts>());
    let keys: BTreeSet<&(usize, Option<Arc<str>>)> = runs.iter().flat_map(|run| run.sums.keys()).collect();
    // In one order for both runs, class by class: so a class is also within 1 ns of its mean.
    let [of_a, of_b] = runs.map(|run| {
        let sums = keys.iter().map(|key| run.sums.get(*key).copied().unwrap_or(0));
        let means = means_of_sums(sums, i128::from(run.steps));
        means.map_or(vec![None; keys.len()], |means| means.map(Some).collect::<Vec<_>>())
    });
    let has_steps = runs.map(|run| run.steps > 0);
    let times = of_a.into_iter().zip(of_b).map(<[_; 2]>::from);
    let mut classes: Vec<Vec<(Option<Arc<str>>, Both)>> = vec![Vec::new(); CLASSES];
    for ((class, name), times) in keys.into_iter().zip(times) {
        classes[*class].push((name.clone(), times));
    }
    let of_class = |parts: &[(Option<Arc<str>>, Both)]| {
        let none = has_steps.map(|has| has.then_some(0));
        sum(std::iter::once(none).chain(parts.iter().map(|part| part.1)))
    };
    let size = |times: Both| Reverse(change(times).map_or(0, i64::unsigned_abs));
    let mut order: Vec<usize> = (0..CLASSES).collect();
    order.sort_by_key(|class| size(of_class(&classes[*class])));
    let mut rows = Vec::new();
    for class in order {
        let parts = &mut classes[class];
        parts.sort_by_key(|(_, times)| size(*times));
        rows.push(PartRow::of("class", NAMES[class], None, of_class(parts)));
        rows.extend(parts.drain(..).map(|(name, times)| PartRow::of("part", NAMES[class], name, times)));
    }
    let total = sum(rows.iter().filter(|row| row.row == "class").map(|row| [row.a_ns, row.b_ns]));
    rows.push(PartRow::of("total", "total", None, total));
    Outcome { coverage: a.in_steps.coverage(), ..Outcome::of_runs(&rows) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::side::with_sides;
    use crate::compare::step_times;
    use crate::{Selection, Table, Values};
    use proptest::prelude::*;
    use stepscope_trace::Trace;
    use stepscope_trace::drawn::drawn;

    fn compared(a: &Trace, b: &Trace) -> Table {
        let all = Selection::default();
        with_sides((a, &all), (b, &all), outcome).table
    }

    fn texts<'t>(table: &'t Table, name: &str) -> Vec<&'t str> {
        match &table.column(name).expect("it is there").values {
            Values::Text(values) => values.iter().map(|text| text.as_deref().unwrap_or("–")).collect(),
            _ => panic!("{name} is no text"),
        }
    }

    fn numbers(table: &Table, name: &str) -> Vec<Option<i64>> {
        match &table.column(name).expect("it is there").values {
            Values::Int(values) => values.to_vec(),
            _ => panic!("{name} is no number"),
        }
    }

    /// Row, class, name, before, now and change of what is not 0 in both.
    fn lines(table: &Table) -> Vec<String> {
        let [row, class, name] = ["row", "class", "name"].map(|name| texts(table, name));
        let [a, b, change] = ["a_ns", "b_ns", "change_ns"].map(|name| numbers(table, name));
        let told = |ns: Option<i64>| ns.map_or("–".into(), |ns| ns.to_string());
        let line = |at: usize| {
            format!("{} {} {} {} {} {}", row[at], class[at], name[at], told(a[at]), told(b[at]), told(change[at]))
        };
        (0..table.len()).filter(|at| (a[*at], b[*at]) != (Some(0), Some(0))).map(line).collect()
    }

    #[test]
    fn the_difference_of_mean_steps_is_a_sum_of_classes_and_these_of_names() {
        let a = drawn("rank 0 step 0000011111\nrank 0 cpu 1 aab..aab..\nrank 0 stream 7 ...C....C.");
        let b = drawn("rank 0 step 00000001111111\nrank 0 cpu 1 aabbbb.aabbc..\nrank 0 stream 7 ......C......C");
        assert_eq!(
            lines(&compared(&a, &b)),
            [
                "class cpu – 3000 5500 2500",
                "part cpu b 1000 3000 2000",
                "part cpu c 0 500 500",
                "part cpu a 2000 2000 0",
                "class other – 1000 500 -500",
                "part other – 1000 500 -500",
                "class kernel – 1000 1000 0",
                "part kernel C 1000 1000 0",
                "total total – 5000 7000 2000",
            ]
        );
    }

    #[test]
    fn without_a_step_there_is_no_change() {
        let a = drawn("rank 0 step 00011\nrank 0 cpu 1 aab.a");
        let mut cut = a.clone();
        cut.steps.iter_mut().for_each(|step| step.is_complete = false);
        let table = compared(&a, &cut);
        assert_eq!(texts(&table, "class").last(), Some(&"total"));
        assert!(numbers(&table, "a_ns").iter().all(Option::is_some));
        assert!(numbers(&table, "b_ns").iter().chain(&numbers(&table, "change_ns")).all(Option::is_none));
    }

    #[test]
    fn a_run_without_labels_counts_as_one_step() {
        let a = drawn("rank 0 cpu 1 aab.a");
        assert_eq!(lines(&compared(&a, &a)).last().unwrap(), "total total – 5000 5000 0");
    }

    fn rows() -> impl Strategy<Value = String> {
        let parts = ("[.ab|]{24}", "[.ab|]{24}", "[.L]{24}", "[.i]{24}", "[.CDNH|]{24}", "0{1,5}1{1,8}2{1,11}");
        parts.prop_map(|(first, second, launch, input, stream, steps)| {
            format!(
                "rank 0 step {steps}\nrank 0 cpu 1 {first}\nrank 0 cpu 2 {second}\nrank 0 launch 2 {launch}\n\
                 rank 0 input 1 {input}\nrank 0 stream 7 {stream}\n"
            )
        })
    }

    proptest! {
        #[test]
        fn parts_sum_to_the_whole_and_classes_are_those_of_the_mean_step(a in rows(), b in rows()) {
            let (a, b) = (drawn(&a), drawn(&b));
            let (table, all) = (compared(&a, &b), Selection::default());
            let [row, class] = ["row", "class"].map(|name| texts(&table, name));
            let sum_of = |values: &[Option<i64>], is_in: &dyn Fn(usize) -> bool| -> i64 {
                (0..values.len()).filter(|at| is_in(*at)).map(|at| values[at].expect("both have steps")).sum()
            };
            for name in ["a_ns", "b_ns", "change_ns"] {
                let values = numbers(&table, name);
                let total = values.last().copied().flatten().expect("both have steps");
                prop_assert_eq!(sum_of(&values, &|at| row[at] == "class"), total, "{}", name);
                prop_assert_eq!(sum_of(&values, &|at| row[at] == "part"), total, "{}", name);
                for of in NAMES {
                    let own = sum_of(&values, &|at| row[at] == "class" && class[at] == of);
                    prop_assert_eq!(sum_of(&values, &|at| row[at] == "part" && class[at] == of), own, "{}", of);
                }
            }
            for (name, trace) in [("a_ns", &a), ("b_ns", &b)] {
                let values = numbers(&table, name);
                let steps = step_times::of(trace, &all);
                prop_assert_eq!(values.last().copied().flatten(), Some(steps.iter().sum::<i64>() / steps.len() as i64));
                let mean = crate::step_breakdown::step_breakdown(trace, &all).pop().expect("the mean comes last");
                for (of, ns) in NAMES.into_iter().zip(crate::step_breakdown::to_parts(&mean)) {
                    prop_assert_eq!(sum_of(&values, &|at| row[at] == "class" && class[at] == of), ns, "{}", of);
                }
            }
        }
    }
}

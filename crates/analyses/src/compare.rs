//! # Definition
//! Two runs side by side: how long steps take in each, and what a step spends on operators, kernels and modules. Of steps: how long they take in each, by how much the second's are longer, the limits of that
//! difference, and how likely so clear a difference would be if there were none. Of operators, kernels and modules: what
//! a step spends on each in both runs, and the change. A run counts with its complete steps; their number is what sums
//! over a run are divided by. Of durations of steps: how many steps of each run lie in which range; the ranges follow each
//! other from the shortest to the longest step of both, and are equally wide. Of durations of operators and kernels: how
//! many calls of a name took how long in each run, in the ranges of `kernel_durations`. Of the tree of operators: what a
//! step spends in an operator when it is called by that one, called by that one, and so on.
//!
//! # Units
//! Nanoseconds of a step; the change is the second run's value less the first's, its ratio that over the first's value. The
//! probability is a share in 0..=1.
//!
//! # Source
//! The difference of steps is the median of the differences of all pairs of a step of the first run and one of the second
//! (Hodges and Lehmann), its limits hold it with a confidence of 95 %, and the probability is that of the two-sided test
//! of Mann, Whitney and Wilcoxon: neither takes step times to be normally distributed. A difference is called significant
//! when the probability is below 5 %. Operators, kernels and modules are joined by their names.
//!
//! # Edge cases
//! Without at least two complete steps in both runs there is no probability; limits need about four steps in
//! each, since of fewer not even all pairs hold the difference with that confidence. A run without steps counts as
//! one step. What only one run has is said in its row; it has no ratio. With several ranks, a step is a step of one rank.
//! In the tree `parent` is the `id` of another row, and calls of an operator by itself are a level of their own.

mod call_durations;
mod joined;
mod operator_tree;
mod significance;
mod step_durations;
mod step_times;

pub use significance::{Difference, difference};

use crate::catalogue::definition_of;
use crate::{Asked, Outcome, Selection, find};
use stepscope_trace::Trace;

/// What of two runs is put side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compared {
    /// How long steps take.
    Steps,
    /// How many steps take how long.
    StepDurations,
    /// Operators by name.
    Operators,
    /// How many calls of an operator take how long.
    OperatorDurations,
    /// Operators by who calls them.
    OperatorTree,
    /// Kernels by name.
    Kernels,
    /// How many runs of a kernel take how long.
    KernelDurations,
    /// Modules by path.
    Modules,
}

impl Compared {
    /// Everything that can be compared.
    pub const ALL: [Self; 8] = [
        Self::Steps,
        Self::StepDurations,
        Self::Operators,
        Self::OperatorDurations,
        Self::OperatorTree,
        Self::Kernels,
        Self::KernelDurations,
        Self::Modules,
    ];

    /// How a person writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::StepDurations => "step_durations",
            Self::Operators => "operators",
            Self::OperatorDurations => "operator_durations",
            Self::OperatorTree => "operator_tree",
            Self::Kernels => "kernels",
            Self::KernelDurations => "kernel_durations",
            Self::Modules => "modules",
        }
    }

    /// What a person writes so; `-` and `_` are the same.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.replace('-', "_");
        Self::ALL.into_iter().find(|what| what.as_str() == name)
    }
}

/// What its results are called, as those of an analysis. It is of two runs, so it is none of the catalogue.
pub const NAME: &str = "compare";

/// What its results mean, in one sentence.
pub fn definition() -> String {
    definition_of(include_str!("compare.rs"))
}

/// Puts the part of `a` that was asked for beside that of `b`.
pub fn compare(a: (&Trace, &Selection), b: (&Trace, &Selection), what: Compared) -> Outcome {
    let analysis = match what {
        Compared::Steps => return step_times::outcome(a, b),
        Compared::StepDurations => return step_durations::outcome(a, b),
        Compared::OperatorDurations => return call_durations::of_operators(a, b),
        Compared::KernelDurations => return call_durations::of_kernels(a, b),
        Compared::OperatorTree => return operator_tree::outcome(a, b),
        Compared::Operators => "operators",
        Compared::Kernels => "kernels",
        Compared::Modules => "modules",
    };
    let analysis = find(analysis).expect("in the catalogue");
    let of = |(trace, selection): (&Trace, &Selection)| {
        // Rows of several names of one operator cannot be joined: by name, whatever is asked for otherwise.
        let selection = Selection { group_by: None, compat: None, ..*selection };
        let outcome = (analysis.run)(&Asked::new(trace, &selection));
        (outcome, step_times::of(trace, &selection).len().max(1) as i64)
    };
    let ((a, a_steps), (b, b_steps)) = (of(a), of(b));
    let mut findings = a.findings.clone();
    findings.extend(&b.findings);
    let table = match what {
        Compared::Operators => joined::operators(&a.table, &b.table, a_steps, b_steps),
        Compared::Kernels => joined::kernels(&a.table, &b.table, a_steps, b_steps),
        _ => joined::modules(&a.table, &b.table, a_steps, b_steps),
    };
    Outcome { table, coverage: a.coverage, findings }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Values;
    use stepscope_trace::drawn::drawn;

    fn texts(outcome: &Outcome, name: &str) -> Vec<String> {
        match &outcome.table.column(name).unwrap_or_else(|| panic!("no column {name}")).values {
            Values::Text(values) => values.iter().map(|text| text.as_deref().unwrap_or("–").to_string()).collect(),
            Values::Int(values) => {
                values.iter().map(|value| value.map_or("–".into(), |value| value.to_string())).collect()
            }
            Values::Float(values) => {
                values.iter().map(|value| value.map_or("–".into(), |value| format!("{value:.3}"))).collect()
            }
            Values::Bool(_) => panic!("{name} is a flag"),
        }
    }

    #[test]
    fn operators_are_compared_by_step_and_the_largest_change_comes_first() {
        let a = drawn("rank 0 step 000111\nrank 0 cpu 1 aab.ab");
        let b = drawn("rank 0 step 0001111\nrank 0 cpu 1 aaac.ac");
        let all = Selection::default();
        let outcome = compare((&a, &all), (&b, &all), Compared::Operators);
        assert_eq!(texts(&outcome, "name"), ["b", "c", "a"]);
        assert_eq!(texts(&outcome, "runs"), ["a", "b", "both"]);
        assert_eq!(texts(&outcome, "a_host_self_ns"), ["1000", "–", "1500"]);
        assert_eq!(texts(&outcome, "b_host_self_ns"), ["–", "1000", "2000"]);
        assert_eq!(texts(&outcome, "change_host_self_ns"), ["-1000", "1000", "500"]);
        assert_eq!(texts(&outcome, "change_host_self_ratio"), ["–", "–", "0.333"]);
    }

    #[test]
    fn a_run_beside_itself_has_not_changed() {
        let trace = drawn(
            "rank 0 step 000111222\nrank 0 module 1 mmmmmmmmm\nrank 0 cpu 1 aab.abbba\nrank 0 launch 1 C..C..C..\nrank 0 stream 7 .CC.C..CC",
        );
        let all = Selection::default();
        for what in Compared::ALL {
            let outcome = compare((&trace, &all), (&trace, &all), what);
            assert!(!outcome.table.is_empty(), "{what:?}");
            for column in outcome.table.columns.iter().filter(|column| column.name.starts_with("change_")) {
                let is_zero = match &column.values {
                    Values::Int(values) => values.iter().flatten().all(|value| *value == 0),
                    Values::Float(values) => values.iter().flatten().all(|value| *value == 0.0),
                    _ => false,
                };
                assert!(is_zero, "{what:?}: {column:?}");
            }
        }
    }

    #[test]
    fn longer_steps_are_told_with_their_limits() {
        let a = drawn("rank 0 step 000111222333\nrank 0 cpu 1 aaaaaaaaaaaa");
        let b = drawn("rank 0 step 0000111122223333\nrank 0 cpu 1 aaaaaaaaaaaaaaaa");
        let all = Selection::default();
        let outcome = compare((&a, &all), (&b, &all), Compared::Steps);
        assert_eq!(texts(&outcome, "a_median_ns"), ["3000"]);
        assert_eq!(texts(&outcome, "b_median_ns"), ["4000"]);
        assert_eq!(texts(&outcome, "change_ns"), ["1000"]);
        assert_eq!(texts(&outcome, "change_ratio"), ["0.333"]);
        // Four steps against four, all longer: 2 of the 70 orders are so clear, either way; ties spread it a little.
        let says = &texts(&outcome, "says")[0];
        assert!(says.starts_with("A step takes 1.00 us (33.3 %) longer, "), "{says}");
    }

    #[test]
    fn it_documents_itself_as_analyses_do() {
        for heading in ["Definition", "Units", "Source", "Edge cases"] {
            assert!(!crate::catalogue::section_of(include_str!("compare.rs"), heading).is_empty(), "{heading}");
        }
        assert!(definition().starts_with("Two runs side by side: ") && definition().ends_with("modules."));
    }

    #[test]
    fn modules_are_compared_with_their_place_in_the_tree() {
        let a = drawn("rank 0 step 000\nrank 0 module 1 mmm\nrank 0 cpu 1 aab");
        let all = Selection::default();
        let outcome = compare((&a, &all), (&a, &all), Compared::Modules);
        assert_eq!((texts(&outcome, "name"), texts(&outcome, "parent")), (texts(&outcome, "path"), vec!["–".into()]));
    }
}

//! # Definition
//! Two runs side by side: how long steps take in each, and what a step spends on operators, kernels and modules. Of
//! steps: how long they take in each, by how much the second's are longer, the limits of that difference, and how
//! likely so clear a difference would be if there were none. Of operators, kernels and modules: what a step spends on
//! each in both runs, and the change. Of the breakdown of steps: what the mean step of each run spends on each class of
//! `step_breakdown`, and on what the class consists of by name; the changes of classes sum to the difference of the mean
//! steps, those of names to that of their class. A run counts with its complete steps: what belongs to them is summed and divided
//! by their number. To a step belongs what begins in its host window on any thread of its rank, and the device work
//! that is launched in it, or starts in it where the launch is not known. Outside of steps: what belongs to no complete
//! step, such as cut steps and evaluation, summed over the whole run. The setting: on what each ran, as far as it was
//! recorded. Of durations of steps: how many steps of each run lie in which range; the ranges follow each other from
//! the shortest to the longest step of both, and are equally wide. Of durations of operators and kernels: how many
//! calls of a name took how long in each run, in or out of steps, in the ranges of `kernel_durations`. Of the tree of
//! operators: what a step spends in an operator when it is called by that one, called by that one, and so on. Of the tree of
//! calls: the same of each place of `call_tree`, down to the device work that is launched there; by callers each name that
//! has something of its own, and below it who calls it.
//!
//! # Units
//! Nanoseconds of a step, calls of a step (`_per_step`); what is outside of steps is of the whole run. The change is
//! the second run's value less the first's, its ratio that over the first's value. The probability is a share from 0 to 1.
//!
//! # Source
//! The difference of steps is the median of the differences of all pairs of a step of the first run and one of the
//! second (Hodges and Lehmann), its limits hold it with a confidence of 95 %, and the probability is that of the
//! two-sided test of Mann, Whitney and Wilcoxon: neither takes step times to be normally distributed. A difference is
//! called significant when the probability is below 5 %. Operators, kernels and modules are joined by their names.
//!
//! # Edge cases
//! Without at least two complete steps in both runs there is no probability; limits need about four steps in each,
//! since of fewer not even all pairs hold the difference with that confidence. A run without complete steps counts as
//! one step, which a finding says. In a window steps count that lie in it. What only one run has is said in its row; it
//! has no ratio. With several ranks, a step is a step of one rank. In the tree `parent` is the `id` of another row, and
//! calls of an operator by itself are a level of their own. In the breakdown of steps a moment of a class belongs to one
//! name: of what makes the class busy, to what began last, which on one thread is the innermost. What counts as `other`
//! belongs to the innermost Python call, module or label of the thread on which the program runs, if one was recorded, else
//! to no name. There and in the tree of calls the sums over all steps are divided such that each part is within 1 ns of its
//! exact mean, and that the parts still sum to the mean of the whole; of the callers' tree that holds for the roots.

mod call_durations;
mod call_tree;
mod joined;
mod operator_tree;
mod setting;
mod side;
mod significance;
mod step_breakdown;
mod step_durations;
mod step_times;

pub use significance::{Difference, difference};

use crate::call_tree::CallTree;
use crate::catalogue::definition_of;
use crate::modules::ModuleTree;
use crate::step_breakdown::NamedParts;
use crate::{Joined, Needs, Outcome};
use call_durations::OperatorDurations;
use call_tree::Below;
use operator_tree::OperatorTree;
pub(crate) use side::Counted;
pub use side::Side;
use stepscope_trace::FindingCode;

/// What of two runs is put side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compared {
    /// How long steps take.
    Steps,
    /// How many steps take how long.
    StepDurations,
    /// What a mean step consists of.
    StepBreakdown,
    /// Operators by name.
    Operators,
    /// How many calls of an operator take how long.
    OperatorDurations,
    /// Operators by who calls them.
    OperatorTree,
    /// Everything that is called, by who calls it.
    CallTree,
    /// Everything that has something of its own, and below it who calls it.
    Callers,
    /// Kernels by name.
    Kernels,
    /// How many runs of a kernel take how long.
    KernelDurations,
    /// Modules by path.
    Modules,
    /// What belongs to no complete step.
    OutsideOfSteps,
    /// On what they ran.
    Setting,
}

impl Compared {
    /// Everything that can be compared.
    pub const ALL: [Self; 13] = [
        Self::Steps,
        Self::StepDurations,
        Self::StepBreakdown,
        Self::Operators,
        Self::OperatorDurations,
        Self::OperatorTree,
        Self::CallTree,
        Self::Callers,
        Self::Kernels,
        Self::KernelDurations,
        Self::Modules,
        Self::OutsideOfSteps,
        Self::Setting,
    ];

    /// How a person writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::StepDurations => "step_durations",
            Self::StepBreakdown => "step_breakdown",
            Self::Operators => "operators",
            Self::OperatorDurations => "operator_durations",
            Self::OperatorTree => "operator_tree",
            Self::CallTree => "call_tree",
            Self::Callers => "callers",
            Self::Kernels => "kernels",
            Self::KernelDurations => "kernel_durations",
            Self::Modules => "modules",
            Self::OutsideOfSteps => "outside_of_steps",
            Self::Setting => "setting",
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

impl Compared {
    /// What the contexts of each side have to have: of all that was asked for, and of complete steps.
    pub fn needs(self) -> [Needs; 2] {
        match self {
            Self::Steps | Self::Operators | Self::Kernels | Self::OutsideOfSteps | Self::Setting => [Needs::Rows; 2],
            Self::StepDurations => [Needs::Steps; 2],
            Self::KernelDurations => [Needs::Rows, Needs::Steps],
            Self::OperatorDurations => [Needs::Joined(Joined::by::<OperatorDurations>()), Needs::Steps],
            Self::OperatorTree => [Needs::Rows, Needs::Joined(Joined::by::<OperatorTree>())],
            Self::CallTree | Self::Callers => [Needs::Rows, Needs::Joined(Joined::by::<CallTree>())],
            Self::Modules => [Needs::Rows, Needs::Joined(Joined::by::<ModuleTree>())],
            Self::StepBreakdown => [Needs::Rows, Needs::Joined(Joined::by::<NamedParts>())],
        }
    }
}

/// Puts the part of a run that was asked for beside that of another.
pub fn compare(of_a: &Side<'_>, of_b: &Side<'_>, what: Compared) -> Outcome {
    let (a, b) = (of_a.asked(), of_b.asked());
    let mut outcome = match what {
        Compared::Steps => step_times::outcome(a, b),
        Compared::StepDurations => step_durations::outcome(a, b),
        Compared::StepBreakdown => step_breakdown::outcome(of_a, of_b),
        Compared::OperatorDurations => call_durations::of_operators(of_a, of_b),
        Compared::KernelDurations => call_durations::of_kernels(of_a, of_b),
        Compared::OperatorTree => operator_tree::outcome(of_a, of_b),
        Compared::CallTree => call_tree::outcome(of_a, of_b, Below::Callees),
        Compared::Callers => call_tree::outcome(of_a, of_b, Below::Callers),
        Compared::Operators => joined::operators(of_a, of_b),
        Compared::Kernels => joined::kernels(of_a, of_b),
        Compared::Modules => joined::modules(of_a, of_b),
        Compared::OutsideOfSteps => side::outcome(of_a, of_b),
        Compared::Setting => setting::outcome(of_a, of_b),
    };
    if matches!(what, Compared::OperatorDurations | Compared::KernelDurations | Compared::StepDurations) {
        return outcome;
    }
    outcome.findings.extend(&setting::findings(of_a, of_b));
    for (side, other, when) in [(of_a, of_b, "before"), (of_b, of_a, "now")] {
        outcome.findings.extend(&side.findings(when));
        if !side.has_steps() && other.has_steps() {
            outcome.findings.add(FindingCode::RunWithoutSteps, || when.to_string());
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::side::with_sides;
    use super::*;
    use crate::Selection;
    use crate::Values;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;
    use stepscope_trace::{DeviceEventClass, SliceId, SliceKind, Step, StepSource, Trace};

    fn compared(a: (&Trace, &Selection), b: (&Trace, &Selection), what: Compared) -> Outcome {
        with_sides(a, b, |a, b| compare(a, b, what))
    }

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
        let outcome = compared((&a, &all), (&b, &all), Compared::Operators);
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
            let outcome = compared((&trace, &all), (&trace, &all), what);
            assert!(!outcome.table.is_empty(), "{what:?}");
            assert!(outcome.table.columns.iter().all(|column| column.doc.ends_with('.')), "{what:?}");
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
        let outcome = compared((&a, &all), (&b, &all), Compared::Steps);
        assert_eq!(texts(&outcome, "a_median_ns"), ["3000"]);
        assert_eq!(texts(&outcome, "b_median_ns"), ["4000"]);
        assert_eq!(texts(&outcome, "change_ns"), ["1000"]);
        assert_eq!(texts(&outcome, "change_ratio"), ["0.333"]);
        // Four steps against four, all longer: 2 of the 70 orders are so clear, either way; ties spread it a little.
        let says = &texts(&outcome, "says")[0];
        assert!(says.starts_with("A step takes 1.00 µs (33.3 %) longer, "), "{says}");
    }

    #[test]
    fn it_documents_itself_as_analyses_do() {
        for heading in ["Definition", "Units", "Source", "Edge cases"] {
            assert!(!crate::catalogue::section_of(include_str!("compare.rs"), heading).is_empty(), "{heading}");
        }
        assert!(definition().starts_with("Two runs side by side: ") && definition().ends_with("modules."));
    }

    /// The operators, kernels and tree of callers of a run beside another, without what is no number of a step.
    fn told_by_step(a: &Trace, b: &Trace) -> Vec<String> {
        let all = Selection::default();
        let whats = [Compared::Operators, Compared::Kernels, Compared::Modules, Compared::OperatorTree];
        let compared = whats.map(|what| compared((a, &all), (b, &all), what));
        compared.iter().map(|outcome| format!("{:?}", outcome.table)).collect()
    }

    #[test]
    fn code_that_loses_half_of_its_step_labels_takes_as_much_a_step_as_before() {
        let rows = "\nrank 0 module 1 mm.mm.mm.mm.\nrank 0 cpu 1 aa.aa.aa.aa.\nrank 0 cpu 2 .b..b..b..b.\n\
                    rank 0 launch 1 C..C..C..C..\nrank 0 stream 7 .CU.CU.CU.CU";
        let all = drawn(&format!("rank 0 step 000111222333{rows}"));
        let half = drawn(&format!("rank 0 step 000...222...{rows}"));
        let none = drawn(rows);
        assert_eq!(told_by_step(&all, &half), told_by_step(&all, &all));
        let whole = Selection::default();
        let outside = compared((&all, &whole), (&half, &whole), Compared::OutsideOfSteps);
        assert_eq!(texts(&outside, "name"), ["operators", "kernels"]);
        assert_eq!(
            (texts(&outside, "a_run_count"), texts(&outside, "a_run_ns")),
            (vec!["0".to_string(); 2], vec!["0".to_string(); 2])
        );
        assert_eq!(
            (texts(&outside, "b_run_count"), texts(&outside, "b_run_ns")),
            (vec!["4".to_string(); 2], vec!["6000".into(), "4000".into()])
        );
        assert_eq!(texts(&outside, "b_run_ratio"), ["0.500", "0.500"]);
        let said = |a: &Trace, b: &Trace| -> Vec<String> {
            let outcome = compared((a, &whole), (b, &whole), Compared::Steps);
            outcome.findings.iter().flat_map(|finding| finding.examples.clone()).collect()
        };
        assert_eq!(said(&all, &half), ["now: 4 of 8 calls of operators, 4 of 8 device events"]);
        assert_eq!(said(&half, &none), ["now", "before: 4 of 8 calls of operators, 4 of 8 device events"]);
        assert_eq!(said(&none, &none), Vec::<String>::new());
        assert_eq!(said(&all, &all), Vec::<String>::new());
    }

    #[test]
    fn a_window_has_the_steps_that_lie_in_it() {
        let trace = drawn("rank 0 step 000111222\nrank 0 cpu 1 aa.aa.aa.");
        let part = Selection { window: Selection::window_of(Some(1_000), Some(8_000)), ..Selection::default() };
        let outcome = compared((&trace, &part), (&trace, &Selection::default()), Compared::Operators);
        assert_eq!(
            (texts(&outcome, "a_count_per_step"), texts(&outcome, "a_host_self_ns")),
            (vec!["1.000".into()], vec!["2000".into()])
        );
        assert_eq!(texts(&outcome, "change_host_self_ns"), ["0"]);
        let steps = compared((&trace, &part), (&trace, &part), Compared::Steps);
        assert_eq!(texts(&steps, "a_steps"), ["1"]);
    }

    /// Kernels and self time a step, by looking at each slice for each step.
    fn slow(trace: &Trace) -> (i64, i64, i64, i64) {
        let is_step = |step: &&Step| step.is_complete && step.source != StepSource::Whole;
        let steps: Vec<&Step> = trace.steps.iter().filter(is_step).collect();
        let belongs = |rank: u32, at_ns: i64| {
            steps.is_empty() || steps.iter().any(|step| step.rank == rank && step.span.contains(at_ns))
        };
        let start_ns = |id: SliceId| trace.slices.start_ns[id.index()];
        let kernels = trace.device_events.iter().filter(|event| event.class == DeviceEventClass::Compute);
        let kernels: Vec<_> = kernels
            .filter(|event| {
                belongs(trace.devices[event.device.index()].rank, start_ns(event.launch.unwrap_or(event.slice)))
            })
            .collect();
        let kernel_ns = kernels.iter().map(|event| trace.slices.dur_ns[event.slice.index()]).sum();
        let is_op = |id: &SliceId| {
            trace.slices.kind(*id) == SliceKind::Op
                && belongs(trace.rank_of_track(trace.slices.track[id.index()]), start_ns(*id))
        };
        let ops: Vec<SliceId> = trace.slices.ids().filter(is_op).collect();
        (kernels.len() as i64, kernel_ns, ops.len() as i64, steps.len().max(1) as i64)
    }

    proptest! {
        #[test]
        fn a_step_has_what_a_look_at_every_step_finds(
            steps in prop::collection::vec("[.|]{0,3}0{1,9}[.]{0,4}1{1,9}[.]{0,4}2{1,9}", 2), cut in any::<bool>(),
            ops in prop::collection::vec("[.ax|]{30}", 2), launch in "[.CD|]{30}", streams in prop::collection::vec("[.CDU|]{30}", 2),
        ) {
            let mut drawing = String::new();
            for rank in 0..2 {
                drawing += &format!("rank {rank} step {}\nrank {rank} launch 1 {launch}\nrank {rank} stream 7 {}\n", steps[rank], streams[rank]);
                ops.iter().enumerate().for_each(|(at, row)| drawing += &format!("rank {rank} cpu {at} {row}\n"));
            }
            let mut trace = drawn(&drawing);
            trace.steps[1].is_complete = !cut;
            let (kernels, kernel_ns, ops, steps) = slow(&trace);
            let all = Selection::default();
            let sum = |what, name: &str| -> f64 {
                match &compared((&trace, &all), (&trace, &all), what).table.column(name).unwrap().values {
                    Values::Float(values) => values.iter().flatten().sum(),
                    Values::Int(values) => values.iter().flatten().sum::<i64>() as f64,
                    _ => panic!("{name} is no number"),
                }
            };
            let steps = steps as f64;
            prop_assert!((sum(Compared::Kernels, "a_count_per_step") - kernels as f64 / steps).abs() < 1e-9);
            // Each of three names is rounded to whole nanoseconds.
            prop_assert!((sum(Compared::Kernels, "a_total_ns") - kernel_ns as f64 / steps).abs() < 2.0);
            prop_assert!((sum(Compared::OperatorTree, "a_count_per_step") - ops as f64 / steps).abs() < 1e-9);
        }
    }

    #[test]
    fn modules_are_compared_with_their_place_in_the_tree() {
        let a = drawn("rank 0 step 000\nrank 0 module 1 mmm\nrank 0 cpu 1 aab");
        let all = Selection::default();
        let outcome = compared((&a, &all), (&a, &all), Compared::Modules);
        assert_eq!((texts(&outcome, "name"), texts(&outcome, "parent")), (texts(&outcome, "path"), vec!["–".into()]));
    }
}

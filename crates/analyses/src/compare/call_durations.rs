//! How many calls of an operator, or runs of a kernel, take how long in two runs.

use super::side::Side;
use crate::context::Shared;
use crate::joined::Joinable;
use crate::kernel_durations::range_of;
use crate::kernels::KernelRuns;
use crate::{AnalysisContext, Outcome};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use stepscope_base::StringId;
use stepscope_trace::SliceKind;

/// How many calls lie in a range of durations.
type Ranges<Count> = BTreeMap<(i64, i64), Count>;

/// What is known of the calls of a name: their time, and the number in each range.
#[derive(Clone, Default)]
struct Durations {
    total_ns: i64,
    ranges: Ranges<i64>,
}

impl Durations {
    fn add(&mut self, dur_ns: i64) {
        self.total_ns = self.total_ns.saturating_add(dur_ns);
        *self.ranges.entry(range_of(dur_ns)).or_default() += 1;
    }
}

/// Those of each operator by its time on the host, calls inside of others too.
pub(super) struct OperatorDurations(Vec<(Arc<str>, Durations)>);

impl Shared for OperatorDurations {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let AnalysisContext { trace, selection, .. } = *context;
        let mut of_name: FxHashMap<StringId, Durations> = FxHashMap::default();
        for id in selection.slices(trace).filter(|id| trace.slices.kind(*id) == SliceKind::Op) {
            of_name.entry(trace.slices.name[id.index()]).or_default().add(trace.slices.dur_ns[id.index()]);
        }
        Self(of_name.into_iter().map(|(name, durations)| (trace.strings.get(name).into(), durations)).collect())
    }
}

impl Joinable for OperatorDurations {
    fn joined(of_ranks: Vec<Self>) -> Self {
        // Names that occur several times are one row in the end.
        Self(of_ranks.into_iter().flat_map(|of| of.0).collect())
    }
}

/// What is known of a name: its time in both runs, and the calls of each.
type Names = FxHashMap<Arc<str>, (i64, Ranges<[i64; 2]>)>;

/// Operators by their time on the host, calls inside of others too.
pub(super) fn of_operators(a: &Side<'_>, b: &Side<'_>) -> Outcome {
    let mut names = Names::default();
    for (run, side) in [a, b].into_iter().enumerate() {
        let durations = &side.whole.get::<OperatorDurations>().0;
        durations.iter().for_each(|(name, durations)| add(&mut names, run, name, durations));
    }
    outcome(names)
}

/// Kernels that compute or communicate, by their time on the device.
pub(super) fn of_kernels(a: &Side<'_>, b: &Side<'_>) -> Outcome {
    let mut names = Names::default();
    for (run, side) in [a, b].into_iter().enumerate() {
        for runs in &side.whole.get::<KernelRuns>().0 {
            let mut durations = Durations::default();
            runs.dur_ns.iter().for_each(|dur_ns| durations.add(*dur_ns));
            add(&mut names, run, &runs.name.as_str().into(), &durations);
        }
    }
    outcome(names)
}

fn add(names: &mut Names, run: usize, name: &Arc<str>, durations: &Durations) {
    let (sum_ns, counts) = names.entry(Arc::clone(name)).or_default();
    *sum_ns = sum_ns.saturating_add(durations.total_ns);
    durations.ranges.iter().for_each(|(range, count)| counts.entry(*range).or_default()[run] += count);
}

columns! {
    /// The calls of one name in a range of durations.
    struct NamedRange {
        /// The name of the operator or kernel.
        name: Arc<str> => Text,
        /// The shortest duration of the range.
        from_ns: i64 => Nanoseconds,
        /// The end of the range: the first duration that is too long for it.
        to_ns: i64 => Nanoseconds,
        /// Number of calls or runs in the first run whose duration is in the range.
        a_count: i64 => Count,
        /// Number of calls or runs in the second run whose duration is in the range.
        b_count: i64 => Count,
    }
}

/// A row is a range in which any call lies: the names that take most come first, of each the shortest range.
fn outcome(names: Names) -> Outcome {
    let mut names: Vec<_> = names.into_iter().map(|(name, (total_ns, ranges))| (-total_ns, name, ranges)).collect();
    names.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    let row = |name: &Arc<str>, ((from_ns, to_ns), [a_count, b_count]): ((i64, i64), [i64; 2])| NamedRange {
        name: Arc::clone(name),
        from_ns,
        to_ns,
        a_count,
        b_count,
    };
    let rows = names.into_iter().flat_map(|(_, name, ranges)| ranges.into_iter().map(move |range| row(&name, range)));
    Outcome::of_runs(&rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::side::with_sides;
    use crate::kernel_durations::kernel_durations;
    use crate::{Selection, Values};
    use stepscope_trace::Trace;
    use stepscope_trace::drawn::drawn;

    fn lines(outcome: &Outcome) -> Vec<String> {
        let columns = ["from_ns", "to_ns", "a_count", "b_count"].map(|name| match outcome.table.column(name) {
            Some(column) => match &column.values {
                Values::Int(values) => values.iter().flatten().copied().collect::<Vec<_>>(),
                _ => panic!("{name} is no number"),
            },
            None => panic!("no {name}"),
        });
        let Some(Values::Text(names)) = outcome.table.column("name").map(|column| &column.values) else { panic!() };
        let [from, to, a, b] = &columns;
        let rows = names.iter().flatten().enumerate();
        rows.map(|(at, name)| format!("{name} {}..{} {} {}", from[at], to[at], a[at], b[at])).collect()
    }

    #[test]
    fn calls_of_both_runs_share_their_ranges() {
        let a = drawn("rank 0 cpu 1 a.a.bb");
        let b = drawn("rank 0 cpu 1 a.aa.bbbb");
        let all = Selection::default();
        assert_eq!(
            lines(&with_sides((&a, &all), (&b, &all), of_operators)),
            ["b 1792..2048 1 0", "b 3584..4096 0 1", "a 896..1024 2 1", "a 1792..2048 0 1"]
        );
    }

    #[test]
    fn runs_of_kernels_are_those_of_the_analysis() {
        let trace = drawn("rank 0 stream 7 A.AAA.A.HH.BBBBB.AAA");
        let (all, none) = (Selection::default(), Trace::default());
        let expected: Vec<String> = kernel_durations(&trace, &all)
            .iter()
            .map(|row| format!("{} {}..{} {} 0", row.name, row.from_ns, row.to_ns, row.count))
            .collect();
        assert!(!expected.is_empty());
        assert_eq!(lines(&with_sides((&trace, &all), (&none, &all), of_kernels)), expected);
    }
}

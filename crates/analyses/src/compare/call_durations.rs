//! How many calls of an operator, or runs of a kernel, take how long in two runs.

use crate::kernel_durations::range_of;
use crate::{Outcome, Selection};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use stepscope_base::StringId;
use stepscope_trace::{DeviceEventClass, SliceKind, Trace};

/// How many calls lie in a range of durations.
type Ranges<Count> = BTreeMap<(i64, i64), Count>;

/// What is known of a name: its time in both runs, and the calls of each.
type Names = FxHashMap<Arc<str>, (i64, Ranges<[i64; 2]>)>;

/// Operators by their time on the host, calls inside of others too.
pub(super) fn of_operators(a: (&Trace, &Selection), b: (&Trace, &Selection)) -> Outcome {
    let mut names = Names::default();
    for (run, (trace, selection)) in [a, b].into_iter().enumerate() {
        let ops = selection.slices(trace).filter(|id| trace.slices.kind(*id) == SliceKind::Op);
        let calls = ops.map(|id| (trace.slices.name[id.index()], trace.slices.dur_ns[id.index()]));
        add(&mut names, run, trace, calls);
    }
    outcome(names)
}

/// Kernels that compute or communicate, by their time on the device.
pub(super) fn of_kernels(a: (&Trace, &Selection), b: (&Trace, &Selection)) -> Outcome {
    let mut names = Names::default();
    for (run, (trace, selection)) in [a, b].into_iter().enumerate() {
        let is_kernel =
            |class: DeviceEventClass| matches!(class, DeviceEventClass::Compute | DeviceEventClass::Communication);
        let events = selection.device_events(trace).filter(|event| is_kernel(event.class)).map(|event| event.slice);
        let runs = events.map(|id| (trace.slices.name[id.index()], trace.slices.dur_ns[id.index()]));
        add(&mut names, run, trace, runs);
    }
    outcome(names)
}

fn add(names: &mut Names, run: usize, trace: &Trace, calls: impl Iterator<Item = (StringId, i64)>) {
    let mut by_id: FxHashMap<StringId, (i64, Ranges<i64>)> = FxHashMap::default();
    for (name, dur_ns) in calls {
        let (total_ns, ranges) = by_id.entry(name).or_default();
        *total_ns = total_ns.saturating_add(dur_ns);
        *ranges.entry(range_of(dur_ns)).or_default() += 1;
    }
    for (name, (total_ns, ranges)) in by_id {
        let (sum_ns, counts) = names.entry(trace.strings.get(name).into()).or_default();
        *sum_ns = sum_ns.saturating_add(total_ns);
        ranges.into_iter().for_each(|(range, count)| counts.entry(range).or_default()[run] += count);
    }
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
    use crate::Values;
    use crate::kernel_durations::kernel_durations;
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
            lines(&of_operators((&a, &all), (&b, &all))),
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
        assert_eq!(lines(&of_kernels((&trace, &all), (&none, &all))), expected);
    }
}

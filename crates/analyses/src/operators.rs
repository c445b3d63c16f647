//! # Definition
//! For each operator name: how often it ran, its time on the host, and the time of the device work it launched.
//! Host total is the duration of its calls; host self is that less the calls of other operators directly inside, so
//! that all operators' self time sums to the time in which a thread is inside any operator. Device total is the
//! duration of all device events launched inside its calls; device self of those it launched itself, with no other
//! operator in between. The device union counts moments at which several of them run on one device once.
//!
//! # Units
//! Nanoseconds; counts of calls.
//!
//! # Source
//! Operators as the framework recorded them, by thread. A device event belongs to the innermost operator that was
//! open on the launching thread when its launch started.
//!
//! # Edge cases
//! An operator that calls itself: host total and device total count the inner call once for itself and once within the
//! outer one, as the framework's own tables do, so both can exceed the time that passed; self times and the union do
//! not. Runtime calls, labels and Python frames inside an operator belong to its self time. Labels
//! (`record_function`) are not operators and have no row. An operator that overlaps another without lying inside it is
//! nobody's child. For one step, the operators that start inside it on the host. Without device events, device times
//! are 0.

use crate::{Coverage, Outcome, Selection, Table};
use rustc_hash::FxHashMap;
use stepscope_base::{IntervalSet, Span, StringId};
use stepscope_trace::{DeviceId, Findings, SliceId, SliceKind, Trace};

/// All calls of one operator.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Operator {
    /// Its name.
    pub name: String,
    /// Calls.
    pub count: i64,
    /// Sum of the calls' durations.
    pub host_total_ns: i64,
    /// The same less operators directly inside.
    pub host_self_ns: i64,
    /// Sum of the durations of device events launched inside.
    pub device_total_ns: i64,
    /// The same for those that no inner operator launched.
    pub device_self_ns: i64,
    /// Time in which at least one device event launched inside runs, by device, summed over devices.
    pub device_total_union_ns: i64,
}

/// Every operator asked for, the longest host total first, then by name.
pub fn operators(trace: &Trace, selection: &Selection) -> Vec<Operator> {
    let mut is_asked_for = vec![false; trace.slices.len()];
    selection.slices(trace).for_each(|id| is_asked_for[id.index()] = trace.slices.kind(id) == SliceKind::Op);
    let mut rows: FxHashMap<StringId, Operator> = FxHashMap::default();
    for id in trace.slices.ids().filter(|id| trace.slices.kind(*id) == SliceKind::Op) {
        let dur_ns = trace.slices.dur_ns[id.index()];
        if is_asked_for[id.index()] {
            let row = rows.entry(trace.slices.name[id.index()]).or_default();
            row.count += 1;
            row.host_total_ns = row.host_total_ns.saturating_add(dur_ns);
            row.host_self_ns = row.host_self_ns.saturating_add(dur_ns);
        }
        if let Some(caller) = enclosing_ops(trace, id).nth(1).filter(|caller| is_asked_for[caller.index()]) {
            let row = rows.entry(trace.slices.name[caller.index()]).or_default();
            row.host_self_ns = row.host_self_ns.saturating_sub(dur_ns);
        }
    }
    add_device_time(trace, &is_asked_for, &mut rows);
    let mut rows: Vec<Operator> = rows.into_iter().map(|(name, row)| named(trace, name, row)).collect();
    rows.sort_by(|a, b| b.host_total_ns.cmp(&a.host_total_ns).then_with(|| a.name.cmp(&b.name)));
    rows
}

fn add_device_time(trace: &Trace, is_asked_for: &[bool], rows: &mut FxHashMap<StringId, Operator>) {
    let mut spans: FxHashMap<(StringId, DeviceId), Vec<Span>> = FxHashMap::default();
    for event in trace.device_events.iter() {
        let Some(launcher) = event.op else { continue };
        let span = trace.slices.span(event.slice);
        for op in enclosing_ops(trace, launcher).filter(|op| is_asked_for[op.index()]) {
            let name = trace.slices.name[op.index()];
            let row = rows.entry(name).or_default();
            row.device_total_ns = row.device_total_ns.saturating_add(span.duration_ns());
            if op == launcher {
                row.device_self_ns = row.device_self_ns.saturating_add(span.duration_ns());
            }
            let own = spans.entry((name, event.device)).or_default();
            if own.last() != Some(&span) {
                own.push(span);
            }
        }
    }
    for ((name, _), spans) in spans {
        rows.entry(name).or_default().device_total_union_ns += IntervalSet::from_unsorted(spans).total_ns();
    }
}

/// An operator and those it lies in, innermost first.
fn enclosing_ops(trace: &Trace, op: SliceId) -> impl Iterator<Item = SliceId> + '_ {
    trace.slices.with_ancestors(op).filter(|id| trace.slices.kind(*id) == SliceKind::Op)
}

fn named(trace: &Trace, name: StringId, row: Operator) -> Operator {
    let name = trace.strings.get(name).to_string();
    assert!(
        row.host_self_ns <= row.host_total_ns && row.device_self_ns <= row.device_total_ns,
        "self is part of total"
    );
    Operator { name, ..row }
}

pub(crate) fn outcome(trace: &Trace, selection: &Selection) -> Outcome {
    let rows = operators(trace, selection);
    let table = Table::default()
        .text("name", rows.iter().map(|row| Some(row.name.as_str())))
        .count("count", rows.iter().map(|row| row.count))
        .ns("host_total_ns", rows.iter().map(|row| row.host_total_ns))
        .ns("host_self_ns", rows.iter().map(|row| row.host_self_ns))
        .ns("device_total_ns", rows.iter().map(|row| row.device_total_ns))
        .ns("device_self_ns", rows.iter().map(|row| row.device_self_ns))
        .ns("device_total_union_ns", rows.iter().map(|row| row.device_total_union_ns));
    let coverage = Coverage::of(trace, selection.device_events(trace));
    Outcome { table, coverage, findings: Findings::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;

    /// Rows as `name xcount: host total/self, device total/self/union`, in us.
    fn check(drawing: &str, selection: Selection, expected: &[&str]) {
        let line = |row: &Operator| {
            let numbers = [
                row.host_total_ns,
                row.host_self_ns,
                row.device_total_ns,
                row.device_self_ns,
                row.device_total_union_ns,
            ];
            let [total, own, device, device_own, union] = numbers.map(|ns| ns / 1_000);
            format!("{} x{}: host {total}/{own}, device {device}/{device_own}/{union}", row.name, row.count)
        };
        let rows = operators(&drawn(drawing), &selection);
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_kernel_counts_for_every_operator_around_its_launch_and_is_self_of_one() {
        check(
            "rank 0 cpu 1    mmmmmm..
             rank 0 cpu 1    .aaa....
             rank 0 launch 1 ..K..L..
             rank 0 stream 7 ...KKLLL",
            Selection::default(),
            &["m x1: host 6/3, device 5/3/5", "a x1: host 3/3, device 2/2/2"],
        );
    }

    #[test]
    fn calls_inside_itself_count_twice_in_totals_and_once_in_self_and_union() {
        check(
            "rank 0 cpu 1    aaaaaa
             rank 0 cpu 1    .aaaa.
             rank 0 cpu 1    ..aa..
             rank 0 launch 1 ..K...
             rank 0 stream 7 ...KK.",
            Selection::default(),
            &["a x3: host 12/6, device 6/2/2"],
        );
    }

    #[test]
    fn labels_and_calls_in_between_are_no_operators() {
        check(
            "rank 0 cpu 1   mmmmmm
             rank 0 label 1 .llll.
             rank 0 cpu 1   ..aa..",
            Selection::default(),
            &["m x1: host 6/4, device 0/0/0", "a x1: host 2/2, device 0/0/0"],
        );
    }

    #[test]
    fn concurrent_kernels_of_an_operator_pass_once_in_the_union() {
        check(
            "rank 0 cpu 1    aa..
             rank 0 launch 1 KL..
             rank 0 stream 7 .KK.
             rank 0 stream 8 ..LL",
            Selection::default(),
            &["a x1: host 2/2, device 4/4/3"],
        );
    }

    #[test]
    fn a_step_has_the_operators_that_start_in_it() {
        let drawing = "rank 0 step     000111
                       rank 0 cpu 1    a.bb.c
                       rank 0 launch 1 ...K..
                       rank 0 stream 7 ....K.";
        check(
            drawing,
            Selection { step: Some(0), ..Selection::default() },
            &["b x1: host 2/2, device 1/1/1", "a x1: host 1/1, device 0/0/0"],
        );
        check(drawing, Selection { rank: Some(1), ..Selection::default() }, &[]);
    }

    proptest! {
        /// Three threads of nested letters; each row of a thread only where the one above has something.
        #[test]
        fn sums_equal_one_cell_per_microsecond(rows in prop::collection::vec("[ab]{6}[.ab]{12}", 3), inner in "[.ab]{18}") {
            let text: String = rows.iter().enumerate().map(|(at, row)| format!("rank 0 cpu {at} {row}\n")).collect();
            let cut = |outer: &str| -> String {
                let (outer, inner) = (outer.as_bytes(), inner.as_bytes());
                // An inner run ends where the outer one does, and is of the other letter.
                (0..outer.len()).map(|at| {
                    let ends = at > 0 && outer[at - 1] != outer[at];
                    let cell = if outer[at] == b'.' || inner[at] == outer[at] { '.' } else { inner[at] as char };
                    if ends { format!("|{cell}") } else { cell.to_string() }
                }).collect()
            };
            let inner_rows: Vec<String> = rows.iter().map(|row| cut(row)).collect();
            let inner_text: String = inner_rows.iter().enumerate().map(|(at, row)| format!("rank 0 cpu {at} {row}\n")).collect();
            let found = operators(&drawn(&(text + &inner_text)), &Selection::default());
            for letter in ["a", "b"] {
                let cells = |rows: &[String]| rows.iter().map(|row| row.matches(letter).count() as i64 * 1_000).sum::<i64>();
                let other = if letter == "a" { "b" } else { "a" };
                let covered: i64 = inner_rows.iter().map(|row| row.matches(other).count() as i64 * 1_000).sum();
                let row = found.iter().find(|row| row.name == letter).cloned().unwrap_or_default();
                prop_assert_eq!(row.host_total_ns, cells(&rows) + cells(&inner_rows));
                prop_assert_eq!(row.host_self_ns, row.host_total_ns - covered);
            }
        }
    }
}

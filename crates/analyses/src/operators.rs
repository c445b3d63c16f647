//! # Definition
//! For each operator: how often it ran, its time on the host, and the time of the device work it launched.
//! Host total is the duration of its calls; host self is that less the calls of other operators directly inside, so
//! that all operators' self time sums to the time in which a thread is inside any operator. Device total is the
//! duration of all device events launched inside its calls; device self of those it launched itself, with no other
//! operator in between. The device union counts moments at which several of them run on one device once. The tensor
//! core ratio is the share of device total in kernels that use tensor cores. Operations (`flops`) and `bytes` are the
//! work inside its calls, by formulas on the shapes of inputs: the least that has to be computed and moved.
//!
//! A row is a name; or a name with one set of input shapes, one call stack or one module; or a category of operators,
//! as asked for. The module of an operator of the backward pass is that of its forward operator.
//!
//! # Units
//! Nanoseconds; counts of calls; shares from 0 to 1; operations, of which a multiplication with an addition is two; bytes.
//!
//! # Source
//! Operators as the framework recorded them, by thread. A device event belongs to the innermost operator that was
//! open on the launching thread when its launch started. Whether a kernel uses tensor cores is known from its name.
//! Categories and formulas are looked up by the operator's name. Shapes are there when the job recorded them
//! (`record_shapes`), stacks and modules when it recorded those (`with_stack`, `with_modules`).
//!
//! # Edge cases
//! An operator that does nothing but call itself, as another overload, is one call, with the inputs of the outer one.
//! An operator that otherwise calls itself, or another of its row: host total and device total count the inner call once
//! for itself and once within the outer one, so both can exceed the time that passed; self times, the union, flops and
//! bytes do not. Both are as in `torch.profiler`'s `key_averages()`.
//! Runtime calls, labels and Python frames inside an operator belong to its self time. Labels
//! (`record_function`) are not operators and have no row. An operator that overlaps another without lying inside it is
//! nobody's child. For one step, the operators that start inside it on the host. Without device events, device times
//! are 0 and there is no tensor core ratio.
//!
//! Work is counted once: of nested matrix products, convolutions and attention at the innermost one, of everything else
//! at the outermost operator with a formula, and never inside of what is counted. It belongs to that operator and those
//! around it. Without shapes or a formula there is none; bytes are absent when they are not known of any part of it.
//! Attention counts all pairs of positions, whatever a mask leaves out.

mod account;

use crate::context::Shared;
use crate::groups::{GroupLabel, OPERATOR_GROUPS};
use crate::{Analysis, AnalysisContext, Needs, Options, Outcome, Selection};
use account::Account;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stepscope_trace::Trace;

columns! {
    /// All calls of one operator, or of those that a row stands for.
    #[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
    pub struct Operator {
        /// What they have in common.
        label: GroupLabel,
        ..GroupLabel = |row| &row.label,
        /// Number of calls.
        count: i64 => Count,
        /// Sum of the durations of the calls on the host.
        host_total_ns: i64 => Nanoseconds,
        /// `host_total_ns` without the operators directly inside.
        host_self_ns: i64 => Nanoseconds,
        /// Sum of the durations of the device events launched inside.
        device_total_ns: i64 => Nanoseconds,
        /// Sum of the durations of the device events launched inside, but not by an operator inside.
        device_self_ns: i64 => Nanoseconds,
        /// Time in which at least one device event launched inside runs, summed over devices.
        device_union_ns: i64 => Nanoseconds,
        /// Of `device_total_ns`, in kernels that use tensor cores.
        tensor_core_ns: i64,
        /// Share of `device_total_ns` in kernels that use tensor cores. Absent without device time.
        tensor_core_ratio => Ratio = Operator::tensor_core_ratio,
        /// True when tensor cores could do the work of one of them, or of an operator inside.
        is_tensor_core_eligible: bool,
        /// Whether tensor cores could do the work of one of the calls, or of an operator inside.
        tensor_core_eligible => Flag = |row| row.is_tensor_core_eligible,
        /// Number of arithmetic operations inside. Absent when not known.
        flops: Option<i64> => Count,
        /// Bytes read and written inside. Absent when not known.
        bytes: Option<i64> => Bytes,
    }
}

/// Every operator asked for, the longest host total first, then by name and what else a row stands for.
pub fn operators(trace: &Trace, selection: &Selection) -> Vec<Operator> {
    rows(&AnalysisContext::new(trace, selection)).to_vec()
}

/// As [`operators`], in a context, which other analyses may share.
pub fn rows<'a>(context: &'a AnalysisContext<'_>) -> &'a [Operator] {
    &context.get::<Operators>().0
}

/// Every operator asked for.
pub(crate) struct Operators(pub(crate) Vec<Operator>);

impl Shared for Operators {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let rows = Account::of(context).into_rows();
        for row in &rows {
            assert!(row.host_self_ns <= row.host_total_ns, "self is part of total");
            assert!(row.device_self_ns <= row.device_total_ns, "self is part of total");
            assert!(row.device_union_ns <= row.device_total_ns, "the union counts nothing twice");
        }
        Self::in_order(rows)
    }
}

impl Operators {
    fn in_order(mut rows: Vec<Operator>) -> Self {
        rows.sort_by(|a, b| b.host_total_ns.cmp(&a.host_total_ns).then_with(|| a.label.cmp(&b.label)));
        Self(rows)
    }

    /// Those of several ranks together.
    pub(crate) fn joined<'a>(of_ranks: impl Iterator<Item = &'a Operator>) -> Self {
        let mut rows: BTreeMap<&GroupLabel, Operator> = BTreeMap::new();
        for row in of_ranks {
            match rows.get_mut(&row.label) {
                Some(sum) => sum.add(row),
                None => drop(rows.insert(&row.label, row.clone())),
            }
        }
        Self::in_order(rows.into_values().collect())
    }
}

impl Operator {
    fn tensor_core_ratio(&self) -> Option<f64> {
        (self.device_total_ns > 0).then(|| self.tensor_core_ns as f64 / self.device_total_ns as f64)
    }

    fn add(&mut self, other: &Self) {
        for (sum, value) in [
            (&mut self.count, other.count),
            (&mut self.host_total_ns, other.host_total_ns),
            (&mut self.host_self_ns, other.host_self_ns),
            (&mut self.device_total_ns, other.device_total_ns),
            (&mut self.device_self_ns, other.device_self_ns),
            (&mut self.device_union_ns, other.device_union_ns),
            (&mut self.tensor_core_ns, other.tensor_core_ns),
        ] {
            *sum = sum.saturating_add(value);
        }
        self.is_tensor_core_eligible |= other.is_tensor_core_eligible;
        // Work whose bytes are not known stays so, whatever is added.
        self.bytes = match (self.flops, other.flops) {
            (None, _) => other.bytes,
            (_, None) => self.bytes,
            _ => self.bytes.zip(other.bytes).map(|(a, b)| a.saturating_add(b)),
        };
        let flops = [self.flops, other.flops].into_iter().flatten();
        self.flops = flops.reduce(i64::saturating_add);
    }
}

pub(crate) const ANALYSIS: Analysis =
    Analysis { options: Options { group_by: OPERATOR_GROUPS, ..Options::NONE }, ..Analysis::of(outcome) }
        .needing(Needs::Rows);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_base::IntervalSet;
    use stepscope_trace::drawn::drawn;
    use stepscope_trace::{
        Device, DeviceEvent, DeviceEventClass, OpInfo, OpInputs, Process, SliceId, SliceKind, TraceBuilder, Track,
        TrackKind,
    };

    /// Rows as `name xcount: host total/self, device total/self/union`, in us.
    fn check(drawing: &str, selection: Selection, expected: &[&str]) {
        let line = |row: &Operator| {
            let numbers =
                [row.host_total_ns, row.host_self_ns, row.device_total_ns, row.device_self_ns, row.device_union_ns];
            let [total, own, device, device_own, union] = numbers.map(|ns| ns / 1_000);
            format!("{} x{}: host {total}/{own}, device {device}/{device_own}/{union}", row.label.name, row.count)
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
            "rank 0 cpu 1    aaaaaaaa
             rank 0 cpu 1    .aaaab..
             rank 0 cpu 1    ..aac...
             rank 0 launch 1 ..K.....
             rank 0 stream 7 ...KK...",
            Selection::default(),
            &["a x3: host 14/6, device 6/2/2", "b x1: host 1/1, device 0/0/0", "c x1: host 1/1, device 0/0/0"],
        );
    }

    #[test]
    fn an_operator_that_only_calls_itself_is_one_call() {
        check(
            "rank 0 cpu 1    aaaaaa
             rank 0 cpu 1    .aaaa.
             rank 0 cpu 1    ..aa..
             rank 0 launch 1 ..K...
             rank 0 stream 7 ...KK.",
            Selection::default(),
            &["a x1: host 6/6, device 2/2/2"],
        );
        check(
            "rank 0 cpu 1    aaaaaa
             rank 0 cpu 1    .aaaa.
             rank 0 launch 1 .....K",
            Selection::default(),
            &["a x2: host 10/6, device 0/0/0"],
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
        check(drawing, Selection { ranks: 1.into(), ..Selection::default() }, &[]);
    }

    /// Two devices, kernels with and without tensor cores, shapes: everything that a drawing has not.
    #[test]
    fn tensor_cores_and_work_count_for_every_operator_around() {
        let mut builder = TraceBuilder::new("work");
        let process = builder.add_process(Process::default());
        let device = builder.add_device(Device::default());
        let thread = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
        let stream = builder.add_track(Track::new(TrackKind::Stream, process, "stream"));
        for (at, (name, start, end, dims)) in [
            ("aten::linear", 0, 20, "[[4,8],[2,8],[2]]"),
            ("aten::addmm", 3, 15, "[[2],[4,8],[8,2]]"),
            ("aten::mul", 20, 30, "[[5],[5]]"),
        ]
        .into_iter()
        .enumerate()
        {
            let name = builder.strings.intern(name);
            let slice = builder.add_slice(thread, SliceKind::Op, name, start, end - start);
            let dims = builder.strings.intern(dims);
            let types = builder.strings.intern(r#"["float","float","float"]"#);
            let inputs = builder.intern_inputs(OpInputs { dims, types, ..OpInputs::UNKNOWN });
            builder.add_op(slice, OpInfo { inputs, ..OpInfo::default() });
            let launch = builder.add_slice(thread, SliceKind::Runtime, name, end - 2, 1);
            let kernel = builder.add_slice(stream, SliceKind::Kernel, name, 100 + 10 * at as i64, 4 + at as i64);
            let event = DeviceEvent::new(kernel, device, DeviceEventClass::Compute);
            builder.add_device_event(DeviceEvent { uses_tensor_cores: at == 1, ..event });
            builder.add_launch_link(launch, kernel);
        }
        let rows = operators(&builder.finish(), &Selection::default());
        let line = |row: &Operator| {
            let ratio = row.tensor_core_ratio().unwrap();
            let (flops, bytes) = (row.flops.unwrap(), row.bytes.unwrap());
            format!("{} {ratio:.3} {} {flops} {bytes}", row.label.name, row.is_tensor_core_eligible)
        };
        // linear's own kernel takes 4 ns, addmm's 5 ns.
        assert_eq!(
            rows.iter().map(line).collect::<Vec<_>>(),
            ["aten::linear 0.556 true 128 232", "aten::addmm 1.000 true 128 232", "aten::mul 0.000 false 5 60"]
        );
    }

    /// One pass by row against one walk by operator and event.
    fn check_against_walks(trace: &Trace, selection: &Selection) -> Result<(), TestCaseError> {
        let is_op = |id: &SliceId| trace.slices.kind(*id) == SliceKind::Op;
        let inside = |outer| trace.slices.ids().filter(move |id| trace.slices.parent(*id) == Some(outer)).count();
        let is_same_call = |id: &SliceId| {
            trace.slices.parent(*id).is_some_and(|outer| {
                is_op(&outer) && trace.slice_name(outer) == trace.slice_name(*id) && inside(outer) == 1
            })
        };
        let is_call = |id: &SliceId| is_op(id) && !is_same_call(id);
        // Whatever is one call with another is asked for where that is.
        let call_of = |id: SliceId| trace.slices.with_ancestors(id).find(|id| !is_same_call(id)).unwrap();
        let slices: Vec<SliceId> = selection.slices(trace).collect();
        let context: Vec<SliceId> =
            trace.slices.ids().filter(is_op).filter(|id| slices.contains(&call_of(*id))).collect();
        let enclosing = |id: SliceId| -> Vec<SliceId> { trace.slices.with_ancestors(id).filter(is_op).collect() };
        let found = operators(trace, selection);
        let calls = context.iter().filter(|id| is_call(id)).count();
        prop_assert_eq!(found.iter().map(|row| row.count).sum::<i64>(), calls as i64);
        for row in found {
            let own: Vec<SliceId> =
                context.iter().copied().filter(|id| trace.slice_name(*id) == row.label.name).collect();
            let dur_ns = |id: SliceId| trace.slices.dur_ns[id.index()];
            let total: i64 = own.iter().filter(|id| is_call(id)).map(|id| dur_ns(*id)).sum();
            let total_of_all: i64 = own.iter().map(|id| dur_ns(*id)).sum();
            let children = trace
                .slices
                .ids()
                .filter(is_op)
                .filter(|id| enclosing(*id).get(1).is_some_and(|caller| own.contains(caller)));
            prop_assert_eq!(
                (row.host_total_ns, row.host_self_ns),
                (total, total_of_all - children.map(dur_ns).sum::<i64>())
            );
            let (mut device_total, mut device_self, mut spans) = (0, 0, vec![Vec::new(); trace.devices.len()]);
            for event in trace.device_events.iter() {
                let Some(op) = event.op else { continue };
                let around = enclosing(op).into_iter().filter(|op| is_call(op) && own.contains(op)).count() as i64;
                device_total += around * dur_ns(event.slice);
                device_self += i64::from(own.contains(&op)) * dur_ns(event.slice);
                if around > 0 {
                    spans[event.device.index()].push(trace.slices.span(event.slice));
                }
            }
            let union: i64 = spans.into_iter().map(|spans| IntervalSet::from_unsorted(spans).total_ns()).sum();
            prop_assert_eq!((row.device_total_ns, row.device_self_ns), (device_total, device_self));
            prop_assert_eq!(row.device_union_ns, union);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn one_pass_equals_a_walk_for_every_operator(
            ops in prop::collection::vec("[ab.|]{14}", 1..5),
            launches in "[KL.]{14}",
            streams in prop::collection::vec("[KL.|]{14}", 1..3),
            step in prop::option::of(0_i64..2),
        ) {
            let mut text = String::from("rank 0 step 00000001111111\nrank 1 step 00000000001111\n");
            for rank in 0..2 {
                ops.iter().for_each(|row| text += &format!("rank {rank} cpu 1 {row}\n"));
                text += &format!("rank {rank} launch 1 {launches}\n");
                streams.iter().enumerate().for_each(|(at, row)| text += &format!("rank {rank} stream {at} {row}\n"));
            }
            check_against_walks(&drawn(&text), &Selection { step, ..Selection::default() })?;
        }
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
                let row = found.iter().find(|row| row.label.name == letter).cloned().unwrap_or_default();
                prop_assert_eq!(row.host_total_ns, cells(&rows) + cells(&inner_rows));
                prop_assert_eq!(row.host_self_ns, row.host_total_ns - covered);
            }
        }
    }
}

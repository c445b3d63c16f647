//! The computing kernels of a device as rules see them: which leave tensor cores unused, which could be part of others,
//! which leave multiprocessors empty. One pass over device events.

use super::cases::Cases;
use super::double_precision::is_double;
use super::gemm_shapes::is_aligned;
use super::layouts::changes_layout;
use super::{Advice, Place};
use crate::AnalysisContext;
use crate::flops::{Inputs, Precision};
use crate::gpu_activity::{ONE, units};
use crate::occupancy::blocks_per_sm;
use crate::op_classes::OpClasses;
use crate::temporal_breakdown::TemporalBreakdown;
use rustc_hash::FxHashMap;
use stepscope_base::{IntervalSet, Span, StringId};
use stepscope_trace::{DeviceEvent, DeviceEventClass, SliceId, Trace};

/// The categories of operators that a compiler puts into one kernel with what is around them.
const FUSIBLE: [&str; 3] = ["elementwise", "copy", "fill"];

const MATRIX_PRODUCT: &str = "matrix_product";

/// Kernel time with something in common.
#[derive(Default)]
pub(super) struct Work {
    /// Sum of durations.
    pub(super) total_ns: i64,
    /// Kernels.
    pub(super) count: i64,
    /// Time by what it is named by, an operator or a kernel.
    by_name: FxHashMap<StringId, i64>,
    longest: Option<(i64, SliceId)>,
    spans: Vec<Span>,
}

impl Work {
    pub(super) fn add(&mut self, event: &DeviceEvent, span: Span, name: StringId) {
        let dur_ns = span.duration_ns();
        self.spans.push(span);
        self.total_ns = self.total_ns.saturating_add(dur_ns);
        self.count += 1;
        let of_name = self.by_name.entry(name).or_default();
        *of_name = of_name.saturating_add(dur_ns);
        if self.longest.is_none_or(|(longest_ns, _)| dur_ns > longest_ns) {
            self.longest = Some((dur_ns, event.slice));
        }
    }

    /// The name with the most time, and that time.
    pub(super) fn most<'a>(&self, trace: &'a Trace) -> Option<(&'a str, i64)> {
        let named = self.by_name.iter().map(|(name, ns)| (trace.strings.get(*name), *ns));
        named.max_by_key(|(name, ns)| (*ns, std::cmp::Reverse(*name)))
    }

    /// Whether what a row says of it is a habit.
    pub(super) fn is_habit(&self, row: &Advice) -> bool {
        Cases::of(&self.spans).are_habit(row)
    }

    /// When a change saves so much of it: at the end of each kernel.
    pub(super) fn saved(&self, saved_ns: i64) -> IntervalSet {
        saved(&self.spans, saved_ns)
    }

    /// Where the longest kernel is.
    pub(super) fn place(&self, trace: &Trace) -> Option<Place> {
        self.longest.map(|(_, slice)| Place::of(trace, slice))
    }
}

/// When a change saves so much of some kernels together: of each the same share, at its end.
pub(super) fn saved(kernels: &[Span], saved_ns: i64) -> IntervalSet {
    let all_ns: i128 = kernels.iter().map(|span| i128::from(span.duration_ns())).sum();
    let end = |span: &Span| {
        let share = i128::from(span.duration_ns()) * i128::from(saved_ns) / all_ns.max(1);
        Span::new(span.end_ns - (share as i64).min(span.duration_ns()), span.end_ns)
    };
    IntervalSet::from_unsorted(kernels.iter().map(end))
}

/// The computing kernels of operators of a rank.
pub(super) fn kernels_of(context: &AnalysisContext<'_>, rank: u32, is_wanted: impl Fn(&str) -> bool) -> Vec<Span> {
    let trace = context.trace;
    let mut wanted: FxHashMap<StringId, bool> = FxHashMap::default();
    let events = context
        .selection
        .device_events(trace)
        .filter(|event| event.class == DeviceEventClass::Compute && trace.devices[event.device.index()].rank == rank);
    let of_wanted = events.filter(|event| {
        let name = event.op.map(|op| trace.slices.name[op.index()]);
        name.is_some_and(|name| *wanted.entry(name).or_insert_with(|| is_wanted(trace.strings.get(name))))
    });
    of_wanted.map(|event| trace.slices.span(event.slice)).collect()
}

/// The computing kernels of one device.
#[derive(Default)]
pub(super) struct KernelWork {
    /// Kernels of products of 32-bit floats, or of an unknown type, that use no tensor cores; named by operator.
    pub(super) plain: Work,
    /// Kernels of products of 64-bit floats, by the types of inputs, else by the kernel's name, else since most of the
    /// parameters are; named by operator.
    pub(super) double: Work,
    /// Kernels of operators that do little with each element and could be part of others; named by operator.
    pub(super) fusible: Work,
    /// Kernels that bring tensors into another layout; named by operator, or by kernel where none is known.
    pub(super) relaid: Work,
    /// Kernels with fewer blocks than multiprocessors; named by kernel.
    pub(super) thin: Work,
    /// The time of those, times the share of multiprocessors without a block.
    pub(super) unfilled_ns: i64,
    /// Whether the blocks of any kernel are known.
    pub(super) knows_blocks: bool,
    /// Kernels of matrix products that read few bytes at a time, as sizes that fit badly force them to; named by operator.
    pub(super) unaligned: Work,
    /// Whether the name of any kernel of a matrix product says how much it reads at a time.
    pub(super) knows_alignment: bool,
}

/// The kernels of each of `devices`.
pub(super) fn kernel_work(context: &AnalysisContext<'_>, devices: &[TemporalBreakdown]) -> Vec<KernelWork> {
    let trace = context.trace;
    let slot = |device: &stepscope_trace::Device| {
        devices.iter().position(|row| (row.rank, row.device) == (device.rank, device.ordinal))
    };
    let slots: Vec<Option<usize>> = trace.devices.iter().map(slot).collect();
    let mut work: Vec<KernelWork> = devices.iter().map(|_| KernelWork::default()).collect();
    let mut unfilled: Vec<i128> = vec![0; devices.len()];
    let mut types = Types::of(trace);
    let mut kernels: FxHashMap<StringId, Named> = FxHashMap::default();
    for event in context.selection.device_events(trace).filter(|event| event.class == DeviceEventClass::Compute) {
        let Some(slot) = slots[event.device.index()] else { continue };
        let span = trace.slices.span(event.slice);
        let kernel_name = trace.slices.name[event.slice.index()];
        let kernel = *kernels.entry(kernel_name).or_insert_with(|| Named::of(trace.strings.get(kernel_name)));
        if kernel.changes_layout {
            work[slot].relaid.add(&event, span, event.op.map_or(kernel_name, |op| trace.slices.name[op.index()]));
        }
        if let Some(op) = event.op {
            let name = trace.slices.name[op.index()];
            let category = types.classes.get(name).category;
            if category == MATRIX_PRODUCT {
                work[slot].knows_alignment |= kernel.is_aligned.is_some();
                if kernel.is_aligned == Some(false) {
                    work[slot].unaligned.add(&event, span, name);
                }
            }
            if FUSIBLE.contains(&category) {
                work[slot].fusible.add(&event, span, name);
            } else if let Some(precision) = types.of_product(op, kernel) {
                match precision {
                    Some(Precision::Fp64) => work[slot].double.add(&event, span, name),
                    None | Some(Precision::Fp32) if !event.uses_tensor_cores => {
                        work[slot].plain.add(&event, span, name)
                    }
                    _ => {}
                }
            }
        }
        let Some(blocks) = blocks_per_sm(&event, &trace.devices[event.device.index()]) else { continue };
        work[slot].knows_blocks = true;
        if blocks < 1.0 {
            work[slot].thin.add(&event, span, kernel_name);
            unfilled[slot] += i128::from(ONE - units(blocks)) * i128::from(span.duration_ns());
        }
    }
    for (work, unfilled) in work.iter_mut().zip(unfilled) {
        let rounded = (unfilled + i128::from(ONE / 2)) / i128::from(ONE);
        work.unfilled_ns = i64::try_from(rounded).unwrap_or(i64::MAX);
    }
    work
}

/// What the name of a kernel says.
#[derive(Clone, Copy)]
struct Named {
    is_aligned: Option<bool>,
    is_double: bool,
    changes_layout: bool,
}

impl Named {
    fn of(kernel: &str) -> Self {
        Self { is_aligned: is_aligned(kernel), is_double: is_double(kernel), changes_layout: changes_layout(kernel) }
    }
}

/// What operators compute with.
struct Types<'a> {
    trace: &'a Trace,
    classes: OpClasses<'a>,
    /// Of distinct inputs, once they were asked for.
    precisions: Vec<Option<Option<Precision>>>,
}

impl<'a> Types<'a> {
    fn of(trace: &'a Trace) -> Self {
        Self { trace, classes: OpClasses::new(&trace.strings), precisions: vec![None; trace.ops.inputs.len().max(1)] }
    }

    /// What a product computes with that tensor cores could do, as far as that is known; `None` for other operators.
    fn of_product(&mut self, op: SliceId, kernel: Named) -> Option<Option<Precision>> {
        let trace = self.trace;
        if !self.classes.get(trace.slices.name[op.index()]).is_tensor_core_eligible {
            return None;
        }
        let of_inputs = trace.ops.get(op).and_then(|info| {
            *self.precisions[info.inputs.index()].get_or_insert_with(|| {
                Inputs::read(&trace.strings, trace.ops.inputs(info.inputs)).and_then(|inputs| inputs.precision)
            })
        });
        let process = trace.tracks[trace.slices.track[op.index()].index()].process;
        let of_parameters = || trace.processes[process.index()].settings.is_double().then_some(Precision::Fp64);
        let of_kernel = kernel.is_double.then_some(Precision::Fp64);
        Some(of_inputs.or(of_kernel).or_else(of_parameters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::facts::Facts;
    use crate::advice::tests::{drawn_ms, with_events};
    use crate::kernels::{Kernel, kernels};
    use crate::{GroupBy, Selection};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn small_kernels_are_those_that_the_table_of_kernels_has(
            streams in prop::collection::vec("[CEFGN|]{3,12}", 1..4), blocks in prop::collection::vec(1_u32..30, 4),
        ) {
            let rows = streams.iter().enumerate().map(|(at, row)| format!("rank 0 stream {at} {row}\n"));
            let trace = with_events(drawn_ms(&rows.collect::<String>()), |name, event| {
                let at = "CEFG".find(name).unwrap_or(0);
                event.grid = Some([blocks[at], 1, 1]);
            });
            let selection = Selection { group_by: Some(GroupBy::Properties), ..Selection::default() };
            let plain = Selection::default();
            let context = AnalysisContext::new(&trace, &plain);
            let facts = Facts::new(&context, &context);
            let Ok(mut found) = facts.kernels() else { return Ok(()) };
            let work = found.next().expect("one device").1;
            let is_thin = |row: &&Kernel| row.kind == DeviceEventClass::Compute && row.blocks_per_sm.is_some_and(|of| of < 1.0);
            let rows: Vec<Kernel> = kernels(&trace, &selection);
            let thin = || rows.iter().filter(is_thin);
            prop_assert_eq!(work.thin.total_ns, thin().map(|row| row.total_ns).sum::<i64>());
            prop_assert_eq!(work.thin.count, thin().map(|row| row.count).sum::<i64>());
            let empty_ns: f64 = thin().map(|row| row.total_ns as f64 * (1.0 - row.blocks_per_sm.unwrap())).sum();
            prop_assert!((work.unfilled_ns as f64 - empty_ns).abs() <= 1.0 + empty_ns * 1e-6, "{} {empty_ns}", work.unfilled_ns);
        }
    }
}

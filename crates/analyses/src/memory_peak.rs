//! # Definition
//! For each device of a rank, who holds its memory at the moment when most of it is in use. A row is an operator, call
//! stack, module or category with the bytes of those allocations that were made in it, recorded, and not yet freed. Of several
//! equal moments it is the first. The row `allocated before recording` is the rest: what is in use by the source's
//! totals, or is freed later, and was not seen to be allocated. The rows of a device sum to its peak.
//!
//! Where the source gives no addresses, no free says which allocation it ends. A free is then taken for one of those of
//! its size, and a holder has what it certainly holds: its allocations of a size less the frees of that size since. The
//! rest is the row `not attributable: events have no addresses`, and that alone by category.
//!
//! By name, it is the innermost operator that was open on the thread at the allocation; by module, the innermost call
//! of a module; by stack, the call stack that the source gives with the allocation, or else the functions that were open
//! on the thread. By category, the first of these that applies: `input` was allocated in a wait for data; `temporary` was
//! freed before the outermost operator around its allocation, or the optimizer's step, ended; `optimizer_state` was
//! allocated in the optimizer's step, behind the last forward or backward pass in it; `autograd_detail` was allocated and freed by the backward pass; `gradient` was
//! allocated by it and not freed there; `activation` was allocated in a call of a module, or freed by the backward
//! pass; `parameter` was allocated before the first step and held beyond it; `unknown`. What backward nodes and the
//! operators directly around them do is the backward pass.
//!
//! # Units
//! Bytes; the ratio is a share of the device's peak from 0 to 1; allocations are a count.
//!
//! # Source
//! Allocations and frees as the framework's allocators reported them, paired by address. Totals are the source's own
//! where it reports them, else the sum of what was allocated and freed.
//!
//! # Edge cases
//! A row without a name is what was allocated outside every operator or module, or without a stack. A row without a device is the host's
//! memory. Gradients that pass between backward nodes are `autograd_detail`. The rest is below 0 where the source's own
//! totals are less than what was seen allocated and not freed. An address that is allocated again was freed unseen: the first
//! allocation ends there, and where the source gives no totals its bytes go to the rest. For one step, the moment lies
//! inside it.

pub(crate) mod category;
mod unpaired;

use crate::allocations::{Allocation, AllocationState, Level, Pool, levels_inside, window};
use crate::groups::Groups;
use crate::op_tree::OpTree;
use crate::{Analysis, AnalysisContext, GroupBy, Needs, Options, Outcome, Selection};
use category::Categories;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use stepscope_base::StringId;
use stepscope_trace::{MemoryEvent, SliceKind, StackId, Trace};

/// The row of everything that was not seen to be allocated.
const BEFORE_RECORDING: &str = "allocated before recording";

/// The row of everything that may have been freed, by events that do not say of which allocation they are.
const WITHOUT_ADDRESSES: &str = "not attributable: events have no addresses";

columns! {
    /// What one holder has of a device's memory at its peak.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Holder {
        /// The rank.
        rank: u32 => Count,
        /// The number of the device within the rank. Absent for the memory of the host.
        device: Option<i64> => Count,
        /// What holds the memory: an operator, call stack, module or category. Absent for memory that was
        /// allocated outside of them.
        name: Option<String> => Text,
        /// Bytes that it holds at the peak.
        bytes: i64 => Bytes,
        /// `bytes` as a share of `peak_bytes`.
        peak_ratio => Ratio = |row| (row.peak_bytes > 0).then(|| row.bytes as f64 / row.peak_bytes as f64),
        /// Number of allocations that it holds at the peak. Absent for the rest.
        allocations: Option<i64> => Count,
        /// Bytes that the device has in use at the peak.
        peak_bytes: i64 => Bytes,
        /// True for the rest: no allocation that was seen certainly holds it.
        is_rest: bool,
    }
}

/// Who holds the memory of each device at its peak, by rank, the host first; the largest holder first, then by name.
pub fn memory_peak(trace: &Trace, selection: &Selection) -> Vec<Holder> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<Holder> {
    let AnalysisContext { trace, selection, .. } = *context;
    let mut rows = Vec::new();
    let categories = (selection.group_by == Some(GroupBy::Category)).then(|| Categories::of(trace));
    for pool in context.get::<Vec<Pool>>() {
        if let Some(peak) = peak_of(trace, selection, pool) {
            rows.extend(holders(context, categories.as_ref(), pool, &peak));
        }
    }
    rows
}

/// The first moment at which most is allocated.
pub(crate) fn peak_of(trace: &Trace, selection: &Selection, pool: &Pool) -> Option<Level> {
    let levels = levels_inside(pool.levels(trace), window(trace, selection, pool.rank));
    levels.iter().copied().reduce(|a, b| if b.allocated_bytes > a.allocated_bytes { b } else { a })
}

fn holders(context: &AnalysisContext<'_>, categories: Option<&Categories>, pool: &Pool, peak: &Level) -> Vec<Holder> {
    let trace = context.trace;
    let new = |name, bytes, allocations| Holder {
        rank: pool.rank,
        device: pool.ordinal(trace),
        name,
        bytes,
        peak_bytes: peak.allocated_bytes,
        allocations,
        is_rest: false,
    };
    let mut by_holder: FxHashMap<Option<Held<'_>>, (i64, i64)> = FxHashMap::default();
    let mut held_bytes = 0_i64;
    let mut add = |held, bytes: i64, count: i64| {
        let (sum, allocations) = by_holder.entry(held).or_default();
        *sum = sum.saturating_add(bytes.saturating_mul(count));
        *allocations += count;
        held_bytes = held_bytes.saturating_add(bytes.saturating_mul(count));
    };
    let until_peak = pool.allocations(trace).iter().copied();
    let until_peak = until_peak.filter(|row| row.allocated.or(row.freed).is_some_and(|at| at <= peak.event));
    let unpaired: Vec<Allocation> = until_peak.clone().filter(|row| row.state == AllocationState::Unpaired).collect();
    for row in until_peak.filter(|row| row.is_held_after(peak.event)) {
        if let Some(event) = row.allocated.map(|at| &trace.memory[at]) {
            add(held_by(context, categories, &row, event), row.bytes, 1);
        }
    }
    // What an allocation is for follows from its free.
    if categories.is_none() {
        for certain in unpaired::certainly_held(trace, &unpaired, |row, event| held_by(context, None, row, event)) {
            add(certain.holder, certain.bytes, certain.count);
        }
    }
    // Several holders can have the same text.
    let mut by_name: BTreeMap<Option<String>, (i64, i64)> = BTreeMap::new();
    for (held, (bytes, count)) in by_holder {
        let (sum, allocations) = by_name.entry(held.and_then(|held| held.text(context))).or_default();
        *sum = sum.saturating_add(bytes);
        *allocations += count;
    }
    let mut rows: Vec<Holder> =
        by_name.into_iter().map(|(name, (bytes, count))| new(name, bytes, Some(count))).collect();
    rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    let rest = peak.allocated_bytes.saturating_sub(held_bytes);
    if rest != 0 {
        let name = if unpaired.is_empty() { BEFORE_RECORDING } else { WITHOUT_ADDRESSES };
        rows.push(Holder { is_rest: true, ..new(Some(name.into()), rest, None) });
    }
    let sum = rows.iter().fold(0_i64, |sum, row| sum.saturating_add(row.bytes));
    assert!(sum == peak.allocated_bytes || held_bytes == i64::MAX, "holders sum to the peak");
    rows
}

/// What an allocation is held by.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Held<'a> {
    Named(&'a str),
    Stack(StackId),
    /// The group of the operator among those by stack.
    StackOfOp(u32),
    /// The functions that are open, the innermost first.
    Open(Vec<StringId>),
}

impl Held<'_> {
    fn text(self, context: &AnalysisContext<'_>) -> Option<String> {
        let trace = context.trace;
        match self {
            Held::Named(name) => Some(name.to_string()),
            Held::Stack(stack) => Some(trace.stacks.text(stack, &trace.strings)),
            Held::StackOfOp(group) => Groups::by(context, GroupBy::Stack).labels[group as usize].stack.clone(),
            Held::Open(names) => {
                Some(names.into_iter().map(|name| trace.strings.get(name)).collect::<Vec<_>>().join(";"))
            }
        }
    }
}

fn held_by<'a>(
    context: &AnalysisContext<'a>,
    categories: Option<&Categories>,
    row: &Allocation,
    event: &MemoryEvent,
) -> Option<Held<'a>> {
    let trace = context.trace;
    match context.selection.group_by {
        Some(GroupBy::Stack) => event.stack.map(Held::Stack).or_else(|| held_by_open_stack(context, event)),
        Some(GroupBy::Category) => categories.map(|categories| Held::Named(categories.category(trace, row, event))),
        Some(GroupBy::Module) => {
            let open = trace.open_slices(event.track, event.time_ns);
            let modules = open.filter(|id| trace.slices.kind(*id) == SliceKind::Module);
            let innermost = modules.max_by_key(|id| (trace.slices.start_ns[id.index()], *id));
            innermost.map(|module| Held::Named(trace.slice_name(module)))
        }
        _ => event.op.map(|op| Held::Named(trace.slice_name(op))),
    }
}

/// The stack of the operator that allocates, as `operators` has it; outside of operators the functions that are open.
fn held_by_open_stack<'a>(context: &AnalysisContext<'a>, event: &MemoryEvent) -> Option<Held<'a>> {
    if let Some(op) = context.get::<OpTree>().row(event.op) {
        return Some(Held::StackOfOp(Groups::by(context, GroupBy::Stack).of_op[op as usize]));
    }
    let slices = &context.trace.slices;
    let open = context.trace.open_slices(event.track, event.time_ns);
    let is_function = |kind| matches!(kind, SliceKind::PythonFunction | SliceKind::Module);
    let mut open: Vec<_> = open.filter(|id| is_function(slices.kind(*id))).collect();
    // Of several lanes, too, the innermost began last.
    open.sort_by_key(|id| std::cmp::Reverse((slices.start_ns[id.index()], *id)));
    (!open.is_empty()).then(|| Held::Open(open.into_iter().map(|id| slices.name[id.index()]).collect()))
}

pub(crate) const ANALYSIS: Analysis = Analysis {
    options: Options {
        group_by: &[GroupBy::Name, GroupBy::Stack, GroupBy::Module, GroupBy::Category],
        ..Options::NONE
    },
    ..Analysis::of(outcome)
}
.needing(Needs::EachRank);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::without_coverage(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::OpInfo;
    use stepscope_trace::drawn::drawn;

    /// Rows as `device peak: holder bytes (allocations)`.
    fn lines(trace: &Trace, selection: Selection) -> Vec<String> {
        let line = |row: &Holder| {
            let device = row.device.map_or("host".into(), |device| device.to_string());
            let (name, count) = (row.name.as_deref().unwrap_or("-"), row.allocations.unwrap_or(-1));
            format!("{device} {}: {name} {} ({count})", row.peak_bytes, row.bytes)
        };
        memory_peak(trace, &selection).iter().map(line).collect()
    }

    const STEPS: &str = "rank 0 step         000000111111
                         rank 0 module 1     .MMMM.......
                         rank 0 cpu 1        .xx.yyy..zz.
                         rank 0 memory 1     a.b.cdDB.eAF
                         rank 0 hostmemory 1 .a.A........";

    #[test]
    fn the_peak_is_held_by_what_is_not_yet_freed() {
        let trace = drawn(STEPS);
        assert_eq!(
            lines(&trace, Selection::default()),
            [
                "host 100: x 100 (1)",
                "0 1600: y 700 (2)",
                "0 1600: x 200 (1)",
                "0 1600: - 100 (1)",
                "0 1600: allocated before recording 600 (-1)"
            ]
        );
        let by_module = Selection { group_by: Some(GroupBy::Module), ..Selection::default() };
        assert_eq!(lines(&trace, by_module)[1..3], ["0 1600: - 500 (2)", "0 1600: M 500 (2)"]);
        let step = Selection { step: Some(1), ..Selection::default() };
        assert_eq!(lines(&trace, step)[0], "0 1500: z 500 (1)");
    }

    #[test]
    fn totals_that_know_more_leave_a_rest() {
        let mut trace = drawn("rank 0 memory 1 a.b");
        trace.memory[0].allocated_bytes = Some(1_000);
        let expected = ["0 1200: - 300 (2)", "0 1200: allocated before recording 900 (-1)"];
        assert_eq!(lines(&trace, Selection::default()), expected);
    }

    #[test]
    fn without_addresses_a_holder_has_what_it_certainly_holds() {
        let mut trace = drawn(
            "rank 0 cpu 1        .xx.yyy..zz.
             rank 0 memory 1     .ab.bB.....e
             rank 0 hostmemory 1 a..A........",
        );
        trace.memory.iter_mut().for_each(|event| event.address = 0);
        // A `b` is freed, and both x and y have allocated one: what is left of them is somebody's, not from before.
        let certain = ["host 100: - 100 (1)", "0 800: - 500 (1)", "0 800: x 100 (1)"];
        let rest = "not attributable: events have no addresses";
        let found = lines(&trace, Selection::default());
        assert_eq!(found[..3], certain);
        assert_eq!(found[3..], [format!("0 800: {rest} 200 (-1)")]);
        let by_category = Selection { group_by: Some(GroupBy::Category), ..Selection::default() };
        assert_eq!(
            lines(&trace, by_category),
            [format!("host 100: {rest} 100 (-1)"), format!("0 800: {rest} 800 (-1)")]
        );
    }

    #[test]
    fn an_allocation_without_a_stack_of_its_own_has_the_functions_around_it() {
        let trace = drawn(
            "rank 0 python 1     ppppppp..
             rank 0 module 1     .MMMM....
             rank 0 cpu 1        ..xx...yy
             rank 0 memory 1     a.b..c.de",
        );
        let by_stack = Selection { group_by: Some(GroupBy::Stack), ..Selection::default() };
        let expected = ["0 1500: - 900 (2)", "0 1500: p 400 (2)", "0 1500: M;p 200 (1)"];
        assert_eq!(lines(&trace, by_stack), expected);
    }

    #[test]
    fn categories_follow_from_where_memory_is_allocated_and_freed() {
        let mut trace = drawn(
            "rank 0 step        .000000000000
             rank 0 input 1     ..i..........
             rank 0 optimizer 1 ..........o..
             rank 0 cpu 1       ...fff.bbbuuk
             rank 0 memory 1    a.bcdDe.E.fgh
             rank 0 memory 2    ........i....",
        );
        let slice = |name: &str| trace.slices.ids().find(|id| trace.slice_name(*id) == name).unwrap();
        (trace.ops.slice, trace.ops.info) = (vec![slice("b")], vec![OpInfo { scope: 1, ..OpInfo::default() }]);
        let categories = Categories::of(&trace);
        let pool = crate::allocations::pools(&trace, &Selection::default()).remove(0);
        let category = |row: &Allocation| {
            let event = &trace.memory[row.allocated.unwrap()];
            format!("{} {}", event.bytes / 100, categories.category(&trace, row, event))
        };
        let found: Vec<String> = pool.allocations(&trace).iter().map(category).collect();
        let expected = ["1 parameter", "2 input", "3 unknown", "4 temporary", "5 activation"];
        assert_eq!(found[..5], expected);
        assert_eq!(found[5..], ["9 unknown", "6 optimizer_state", "7 unknown", "8 unknown"]);
    }

    #[test]
    fn passes_in_a_closure_of_the_optimizer_are_not_the_optimizer() {
        let mut trace = drawn(
            "rank 0 step        000000000000
             rank 0 optimizer 1 oooooooooo..
             rank 0 optimizer 1 .z..........
             rank 0 cpu 1       ..fff..uu...
             rank 0 cpu 2       .....bb.....
             rank 0 memory 1    ...a...bBc..
             rank 0 memory 2    .....dA.....",
        );
        let slice = |name: &str| trace.slices.ids().find(|id| trace.slice_name(*id) == name).unwrap();
        let forward = OpInfo { sequence_number: Some(3), ..OpInfo::default() };
        let backward = OpInfo { scope: 1, ..forward };
        (trace.ops.slice, trace.ops.info) = (vec![slice("f"), slice("b")], vec![forward, backward]);
        let categories = Categories::of(&trace);
        let pool = crate::allocations::pools(&trace, &Selection::default()).remove(0);
        let category = |row: &Allocation| categories.category(&trace, row, &trace.memory[row.allocated.unwrap()]);
        let found: Vec<&str> = pool.allocations(&trace).iter().map(category).collect();
        assert_eq!(found, ["activation", "gradient", "temporary", "optimizer_state"]);
    }

    proptest! {
        #[test]
        fn the_peak_is_that_of_adding_up_every_moment(row in "[.abcABC]{1,40}", ops in "[.xy]{40}") {
            let trace = drawn(&format!("rank 0 cpu 1 {ops}\nrank 0 memory 1 {row}"));
            if trace.memory.is_empty() {
                return Ok(());
            }
            // An allocation whose address is allocated again stays in the sum: its free was not seen.
            let mut lost = 0;
            let mut held: std::collections::BTreeMap<u64, (i64, Option<&str>)> = Default::default();
            let mut best: Option<(i64, std::collections::BTreeMap<Option<&str>, i64>)> = None;
            for event in &trace.memory {
                if event.bytes > 0 {
                    let name = event.op.map(|op| trace.slice_name(op));
                    lost += held.insert(event.address, (event.bytes, name)).map_or(0, |(bytes, _)| bytes);
                } else {
                    held.remove(&event.address);
                }
                let mut by_name = std::collections::BTreeMap::new();
                held.values().for_each(|(bytes, name)| *by_name.entry(*name).or_insert(0) += bytes);
                let level = by_name.values().sum::<i64>() + older_after(&trace, event) + lost;
                if best.as_ref().is_none_or(|(highest, _)| level > *highest) {
                    best = Some((level, by_name));
                }
            }
            let (highest, by_name) = best.unwrap();
            let rows = memory_peak(&trace, &Selection::default());
            prop_assert!(rows.iter().all(|row| row.peak_bytes == highest));
            let found: std::collections::BTreeMap<Option<&str>, i64> = rows.iter().filter(|row| !row.is_rest).map(|row| (row.name.as_deref(), row.bytes)).collect();
            prop_assert_eq!(found, by_name);
        }
    }

    /// Bytes that are freed after `event` and were not allocated since recording began.
    fn older_after(trace: &Trace, event: &MemoryEvent) -> i64 {
        let at = trace.memory.iter().position(|other| std::ptr::eq(other, event)).unwrap();
        let mut bytes = 0;
        for (row, free) in trace.memory.iter().enumerate().skip(at + 1).filter(|(_, free)| free.bytes < 0) {
            let before = trace.memory[..row].iter().rev().find(|other| other.address == free.address);
            bytes += if before.is_none_or(|before| before.bytes < 0) { -free.bytes } else { 0 };
        }
        bytes
    }
}

//! # Definition
//! Every change of the memory in use, by device and time: `create` where it is allocated, `destroy` where it is freed,
//! `preexisting` for what was there before recording, without a time. The category says what the memory is for, as for
//! `memory_peak`.
//!
//! # Units
//! Bytes; `time_ns` counts from the start of the trace.
//!
//! # Source
//! Allocations and frees as the framework's allocators reported them, paired by address.
//!
//! # Edge cases
//! A row without a device is the host's memory. What was there before recording is known where its free was recorded,
//! and on devices where the source reports totals: the rest of the first total is one row. An address that is allocated
//! again was freed unseen: it is destroyed at that moment. Where the events have no addresses nothing is paired: all is
//! `unknown`, and what was there before is only what the level at the start cannot do without. For one step, the
//! changes inside it.

use crate::allocations::{Allocation, AllocationState, Pool};
use crate::memory_peak::category::Categories;
use crate::windows::contains;
use crate::{Analysis, AnalysisContext, Fixed, Needs, Outcome, Selection};
use stepscope_trace::Trace;

/// What happened to memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MemoryAction {
    /// It was there before recording.
    Preexisting,
    /// It was allocated.
    Create,
    /// It was freed.
    Destroy,
}

impl MemoryAction {
    /// Its name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preexisting => "preexisting",
            Self::Create => "create",
            Self::Destroy => "destroy",
        }
    }
}

columns! {
    /// One change.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct MemoryChange {
        /// The rank.
        rank: u32 => Count,
        /// The number of the device within the rank. Absent for the memory of the host.
        device: Option<i64> => Count,
        /// When the change happened, counted from the start of the trace. Absent for memory that was in use
        /// before recording.
        time_ns: Option<i64> => Nanoseconds,
        /// What happened: `preexisting`, `create` or `destroy`.
        action: MemoryAction => Text,
        /// How many bytes it was about, never below 0.
        bytes: i64 => Bytes,
        /// What for: `parameter`, `optimizer_state`, `input`, `temporary`, `activation`, `gradient`,
        /// `autograd_detail` or `unknown`.
        category: &'static str,
        /// What the memory is for: `parameter`, `optimizer_state`, `input`, `temporary`, `activation`,
        /// `gradient`, `autograd_detail` or `unknown`.
        category => Text = |row| Fixed(row.category),
    }
}

impl MemoryChange {
    /// By how much it changes the bytes in use.
    pub fn delta(&self) -> i64 {
        if self.action == MemoryAction::Destroy { -self.bytes } else { self.bytes }
    }
}

/// All changes, by rank, the host's first, by time; frees behind allocations of the same moment.
pub fn memory_timeline(trace: &Trace, selection: &Selection) -> Vec<MemoryChange> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<MemoryChange> {
    let AnalysisContext { trace, selection, .. } = *context;
    let categories = Categories::of(trace);
    let mut rows = Vec::new();
    for pool in context.get::<Vec<Pool>>() {
        let windows = selection.windows(trace, pool.rank);
        let is_asked = |row: &MemoryChange| match (&windows, row.time_ns) {
            (None, _) => true,
            (Some(windows), Some(at)) => contains(windows, at),
            (Some(_), None) => false,
        };
        rows.extend(changes(trace, &categories, pool).into_iter().filter(is_asked));
    }
    rows
}

fn changes(trace: &Trace, categories: &Categories, pool: &Pool) -> Vec<MemoryChange> {
    let (rank, device) = (pool.rank, pool.ordinal(trace));
    let change = |at: Option<usize>, action, bytes, category| {
        let time_ns = at.map(|at| trace.memory[at].time_ns);
        MemoryChange { rank, device, time_ns, action, bytes, category }
    };
    let mut changes = Vec::new();
    let mut freed_only = 0_i64;
    for Allocation { bytes, allocated, freed, over, state } in pool.allocations(trace).iter().copied() {
        let row = Allocation { bytes, allocated, freed, over, state };
        let event = allocated.filter(|_| state != AllocationState::Unpaired).map(|at| &trace.memory[at]);
        let category = event.map_or("unknown", |event| categories.category(trace, &row, event));
        if allocated.is_none() && state != AllocationState::Unpaired {
            freed_only = freed_only.saturating_add(bytes);
            changes.push(change(None, MemoryAction::Preexisting, bytes, category));
        }
        changes.extend(allocated.map(|at| change(Some(at), MemoryAction::Create, bytes, category)));
        changes.extend(over.map(|at| change(Some(at), MemoryAction::Destroy, bytes, category)));
    }
    // The host's allocators count from when recording began.
    let is_unpaired = pool.allocations(trace).iter().any(|row| row.state == AllocationState::Unpaired);
    if let Some(first) = pool.levels(trace).first().filter(|_| pool.device.is_some() || is_unpaired) {
        let before = first.allocated_bytes.saturating_sub(trace.memory[first.event].bytes);
        let rest = before.saturating_sub(freed_only);
        changes.extend((rest > 0).then(|| change(None, MemoryAction::Preexisting, rest, "unknown")));
    }
    changes.sort_by_key(|change| (change.time_ns, change.action));
    changes
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRank);

named_cells!(MemoryAction);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::without_coverage(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::OpInfo;
    use stepscope_trace::drawn::drawn;

    fn lines(trace: &Trace, selection: Selection) -> Vec<String> {
        let line = |row: &MemoryChange| {
            let at = row.time_ns.map_or("-".into(), |ns| (ns / 1_000).to_string());
            let device = row.device.map_or("host".into(), |device| device.to_string());
            format!("{device} {at} {} {} {}", row.action.as_str(), row.bytes, row.category)
        };
        memory_timeline(trace, &selection).iter().map(line).collect()
    }

    #[test]
    fn a_change_is_a_row_and_what_was_there_before_has_no_time() {
        let trace = drawn("rank 0 step 00001111\nrank 0 cpu 1 xx..yy..\nrank 0 memory 1 aA.b.CB.");
        let expected = [
            "0 - preexisting 300 unknown",
            "0 0 create 100 temporary",
            "0 1 destroy 100 temporary",
            "0 3 create 200 unknown",
            "0 5 destroy 300 unknown",
            "0 6 destroy 200 unknown",
        ];
        assert_eq!(lines(&trace, Selection::default()), expected);
        assert_eq!(lines(&trace, Selection { step: Some(1), ..Selection::default() }), expected[4..]);
    }

    #[test]
    fn what_the_first_total_holds_beyond_what_is_seen_was_there_before() {
        let mut trace = drawn("rank 0 memory 1 a.B.");
        trace.memory[0].allocated_bytes = Some(1_000);
        let found = lines(&trace, Selection::default());
        assert_eq!(found[..2], ["0 - preexisting 200 unknown", "0 - preexisting 700 unknown"]);
        let mut host = drawn("rank 0 hostmemory 1 a.");
        host.memory[0].allocated_bytes = Some(1_000);
        assert_eq!(lines(&host, Selection::default()), ["host 0 create 100 unknown"]);
    }

    #[test]
    fn without_addresses_only_what_the_start_cannot_do_without_was_there_before() {
        for memory in ["memory", "hostmemory"] {
            let mut trace = drawn(&format!("rank 0 {memory} 1 a.A.B"));
            trace.memory.iter_mut().for_each(|event| event.address = 0);
            let found = lines(&trace, Selection::default());
            let of_all: Vec<&str> = found.iter().map(|line| line.split_once(' ').unwrap().1).collect();
            let expected = ["- preexisting 200 unknown", "0 create 100 unknown"];
            assert_eq!(of_all[..2], expected);
            assert_eq!(of_all[2..], ["2 destroy 100 unknown", "4 destroy 200 unknown"]);
        }
    }

    #[test]
    fn what_backward_allocates_is_a_gradient_when_it_outlives_it() {
        // `e` is around the node `b`, and frees what the node saved.
        let mut trace = drawn(
            "rank 0 cpu 1     .ff.eeeeee.eeee.
             rank 0 cpu 1     .....bbb...bb..
             rank 0 memory 1  .a...bc..A..B..",
        );
        let nodes: Vec<_> = trace.slices.ids().filter(|id| trace.slice_name(*id) == "b").collect();
        trace.ops.info = vec![OpInfo { scope: 1, ..OpInfo::default() }; nodes.len()];
        trace.ops.slice = nodes;
        let created: Vec<_> =
            lines(&trace, Selection::default()).into_iter().filter(|line| line.contains("create")).collect();
        assert_eq!(created, ["0 0 create 100 activation", "0 4 create 200 autograd_detail", "0 5 create 300 gradient"]);
    }

    #[test]
    fn what_a_module_allocates_is_an_activation_and_what_an_optimizer_frees_again_is_no_state() {
        let trace = drawn(
            "rank 0 module 1    mmmm........
             rank 0 optimizer 1 ......oooo..
             rank 0 cpu 1       .ff....gg...
             rank 0 memory 1    .a..bA.cd..D",
        );
        let found: Vec<_> =
            lines(&trace, Selection::default()).into_iter().filter(|line| line.contains("create")).collect();
        let expected = ["200 unknown", "300 optimizer_state", "400 optimizer_state"];
        assert!(found[0].ends_with("100 activation"), "{found:?}");
        assert!(found[1..].iter().zip(expected).all(|(line, end)| line.ends_with(end)), "{found:?}");
        let trace = drawn("rank 0 optimizer 1 oooo\nrank 0 cpu 1 .g..\nrank 0 memory 1 .aA.");
        assert!(lines(&trace, Selection::default())[0].ends_with("create 100 temporary"));
    }

    proptest! {
        #[test]
        fn changes_sum_to_what_is_in_use(row in "[.abcABC]{1,40}") {
            let trace = drawn(&format!("rank 0 cpu 1 x\nrank 0 memory 1 {row}"));
            let changes = memory_timeline(&trace, &Selection::default());
            for event in &trace.memory {
                // What is allocated again was freed; what is freed and was not allocated was there before.
                let mut in_use = std::collections::BTreeMap::new();
                for (at, other) in trace.memory.iter().enumerate() {
                    let is_first = trace.memory[..at].iter().rev().find(|earlier| earlier.address == other.address);
                    if other.bytes < 0 && is_first.is_none_or(|earlier| earlier.bytes < 0) && other.time_ns > event.time_ns {
                        *in_use.entry((other.address, at)).or_insert(0) += -other.bytes;
                    }
                }
                for other in trace.memory.iter().filter(|other| other.time_ns <= event.time_ns) {
                    in_use.insert((other.address, usize::MAX), other.bytes.max(0));
                }
                let until = changes.iter().filter(|change| change.time_ns.is_none_or(|at| at <= event.time_ns));
                prop_assert_eq!(until.map(MemoryChange::delta).sum::<i64>(), in_use.values().sum::<i64>());
            }
        }
    }
}

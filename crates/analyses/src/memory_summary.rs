//! # Definition
//! For each device of a rank, the most memory that was in use at once, and what it says about the device. The peak is
//! the first moment at which most is allocated; fragmentation is what the allocator had reserved at that moment and
//! nobody used; the highest reserve may be at another moment. The ratios compare the peak, and the highest reserve,
//! with the device's memory.
//!
//! Growth per step is how much more is allocated at the end of a complete step than at its start, on average over
//! complete steps but the first: what a leak adds every step. What is added between steps is no step's.
//!
//! # Units
//! Bytes; `peak_ns` counts from the start of the trace; ratios are shares from 0 to 1; allocations and frees are counts.
//!
//! # Source
//! Allocations and frees as the framework's allocators reported them; the device's memory as the recording tells it.
//!
//! # Edge cases
//! A row without a device is the host's memory. Where nothing is reported of the reserve, or of the device's memory,
//! what follows from it is absent. With fewer than two complete steps there is no growth; nor is there for one step.
//! Growth is rounded towards 0.

use crate::allocations::{Level, Pool, levels_inside, window};
use crate::memory_peak::peak_of;
use crate::windows::contains;
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use stepscope_trace::{Step, Trace};

columns! {
    /// The memory of one device, or of a rank's host.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct MemorySummary {
        /// The rank.
        rank: u32 => Count,
        /// The number of the device within the rank. Absent for the memory of the host.
        device: Option<i64> => Count,
        /// When the most memory is allocated, for the first time, counted from the start of the trace.
        peak_ns: i64 => Nanoseconds,
        /// Bytes allocated at this peak.
        peak_bytes: i64 => Bytes,
        /// Bytes that the allocator holds at the peak.
        reserved_bytes: Option<i64> => Bytes,
        /// Bytes that the allocator holds at the peak and that are not allocated.
        fragmentation_bytes => Bytes = Self::fragmentation_bytes,
        /// The most bytes that the allocator holds at any moment.
        reserved_bytes_max: Option<i64> => Bytes,
        /// Size of the memory of the device.
        memory_bytes: Option<i64> => Bytes,
        /// `peak_bytes` as a share of the memory of the device.
        peak_ratio => Ratio = |row| row.ratio(Some(row.peak_bytes)),
        /// `reserved_bytes_max` as a share of the memory of the device.
        reserved_ratio => Ratio = |row| row.ratio(row.reserved_bytes_max),
        /// Bytes that a complete step adds, as a mean over all but the first.
        growth_bytes_per_step: Option<i64> => Bytes,
        /// Number of allocations.
        allocations: i64 => Count,
        /// Number of frees.
        frees: i64 => Count,
    }
}

impl MemorySummary {
    /// What is reserved at the peak and not allocated.
    pub fn fragmentation_bytes(&self) -> Option<i64> {
        self.reserved_bytes.map(|bytes| bytes.saturating_sub(self.peak_bytes))
    }

    /// Bytes as a share of the memory of the device.
    pub fn ratio(&self, bytes: Option<i64>) -> Option<f64> {
        let memory_bytes = self.memory_bytes.filter(|bytes| *bytes > 0)?;
        bytes.map(|bytes| bytes as f64 / memory_bytes as f64)
    }
}

/// Every memory that has events, by rank, the host's first.
pub fn memory_summary(trace: &Trace, selection: &Selection) -> Vec<MemorySummary> {
    rows(&AnalysisContext::new(trace, selection))
}

pub(crate) fn rows(context: &AnalysisContext<'_>) -> Vec<MemorySummary> {
    context.get::<Vec<Pool>>().iter().filter_map(|pool| of_pool(context.trace, context.selection, pool)).collect()
}

fn of_pool(trace: &Trace, selection: &Selection, pool: &Pool) -> Option<MemorySummary> {
    let peak = peak_of(trace, selection, pool)?;
    let all = pool.levels(trace);
    let levels = levels_inside(all, window(trace, selection, pool.rank));
    let windows = selection.windows(trace, pool.rank);
    let is_inside = |at_ns: i64| windows.as_ref().is_none_or(|all| contains(all, at_ns));
    let events = || pool.events.iter().map(|at| &trace.memory[*at]).filter(|event| is_inside(event.time_ns));
    Some(MemorySummary {
        rank: pool.rank,
        device: pool.ordinal(trace),
        peak_ns: peak.time_ns,
        peak_bytes: peak.allocated_bytes,
        reserved_bytes: peak.reserved_bytes,
        reserved_bytes_max: levels.iter().filter_map(|level| level.reserved_bytes).max(),
        memory_bytes: pool.device.and_then(|device| trace.devices[device.index()].memory_bytes),
        growth_bytes_per_step: growth(trace, selection, pool, all),
        allocations: events().filter(|event| event.bytes > 0).count() as i64,
        frees: events().filter(|event| event.bytes < 0).count() as i64,
    })
}

/// The mean over complete steps but the first, rounded towards 0.
fn growth(trace: &Trace, selection: &Selection, pool: &Pool, levels: &[Level]) -> Option<i64> {
    let steps = grown(trace, pool.rank, levels);
    let sum = steps.iter().fold(0_i64, |sum, step| sum.saturating_add(step.bytes));
    (!steps.is_empty() && !selection.is_part()).then(|| sum / steps.len() as i64)
}

/// What a step adds to the memory in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Grown {
    /// The end of the step.
    pub(crate) end_ns: i64,
    /// Bytes in use then.
    pub(crate) bytes_at_end: i64,
    /// How many more than at its start.
    pub(crate) bytes: i64,
}

/// What each complete step of a pool's rank adds, but the first, which may make the optimizer's state.
pub(crate) fn growth_of_steps(trace: &Trace, pool: &Pool) -> Vec<Grown> {
    grown(trace, pool.rank, pool.levels(trace))
}

fn grown(trace: &Trace, rank: u32, levels: &[Level]) -> Vec<Grown> {
    let of_rank = Selection { ranks: rank.into(), ..Selection::default() };
    let steps: Vec<&Step> = of_rank.complete_steps(trace).collect();
    // Of several processes, that of the first step.
    let steps = steps.iter().filter(|step| step.process == steps[0].process);
    let before = |at_ns: i64| {
        let before = levels.partition_point(|level| level.time_ns < at_ns).checked_sub(1)?;
        Some(levels[before].allocated_bytes)
    };
    let of_step = |step: &&Step| {
        let (bytes_at_start, bytes_at_end) = (before(step.span.start_ns)?, before(step.span.end_ns)?);
        let bytes = bytes_at_end.saturating_sub(bytes_at_start);
        Some(Grown { end_ns: step.span.end_ns, bytes_at_end, bytes })
    };
    steps.skip(1).filter_map(of_step).collect()
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRankKept);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::without_coverage(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn the_peak_its_reserve_and_what_grows() {
        let mut trace = drawn(
            "rank 0 step     0000111122223
             rank 0 memory 1 a.bBc.dDb..e",
        );
        trace.memory.iter_mut().for_each(|event| event.reserved_bytes = Some(2_000));
        trace.memory[2].reserved_bytes = Some(3_000);
        trace.devices[0].memory_bytes = Some(6_000);
        let row = memory_summary(&trace, &Selection::default())[0];
        assert_eq!((row.peak_ns, row.peak_bytes, row.fragmentation_bytes()), (11_000, 1_100, Some(900)));
        assert_eq!((row.reserved_bytes_max, row.ratio(row.reserved_bytes_max)), (Some(3_000), Some(0.5)));
        // At the ends of the steps 100, 400, 1100 and 1100 are allocated.
        assert_eq!(row.growth_bytes_per_step, Some(333));
        assert_eq!((row.allocations, row.frees), (6, 2));
        let step = memory_summary(&trace, &Selection { step: Some(1), ..Selection::default() })[0];
        assert_eq!((step.peak_ns, step.peak_bytes, step.growth_bytes_per_step), (6_000, 800, None));
        assert_eq!((step.allocations, step.frees), (2, 1));
    }

    #[test]
    fn what_is_added_between_labelled_steps_is_no_growth_of_a_step() {
        let rows = "\nrank 0 memory 1 a.bB.c.d.eE.";
        let growth = |steps: &str| {
            let trace = drawn(&format!("rank 0 step {steps}{rows}"));
            memory_summary(&trace, &Selection::default())[0].growth_bytes_per_step
        };
        // In the steps 300, 100, 400 and 0 bytes are added.
        assert_eq!(growth("000111222333"), Some((100 + 400) / 3));
        assert_eq!(growth("000...222333"), Some(400 / 2));
        assert_eq!(growth("000...222..."), Some(400));
    }

    #[test]
    fn what_is_not_reported_is_absent() {
        let row = memory_summary(&drawn("rank 0 hostmemory 1 a.A"), &Selection::default())[0];
        assert_eq!((row.device, row.peak_bytes, row.fragmentation_bytes()), (None, 100, None));
        assert_eq!((row.memory_bytes, row.growth_bytes_per_step), (None, None));
    }

    proptest! {
        #[test]
        fn the_peak_is_the_highest_row_of_the_curve(row in "[.abcABC]{1,40}", steps in "0{1,20}1{1,20}") {
            let trace = drawn(&format!("rank 0 step {steps}\nrank 0 memory 1 {row}"));
            for step in [None, Some(0), Some(1)] {
                let selection = Selection { step, ..Selection::default() };
                let curve = crate::memory_curve::memory_curve(&trace, &selection);
                let highest = curve.iter().map(|row| row.allocated_bytes).max();
                let found = memory_summary(&trace, &selection).first().map(|row| row.peak_bytes);
                prop_assert_eq!(found, highest);
            }
        }
    }
}

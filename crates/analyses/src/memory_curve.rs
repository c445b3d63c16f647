//! # Definition
//! For each device of a rank, and for its host, the memory in use over time. A row holds until the next row of the same
//! device. Allocated is what tensors use; reserved is what the allocator holds from the device, whether in use or not.
//! Both are the source's own totals where it reports them; else allocated is the sum of allocations less frees, on top
//! of what is seen to be freed without having been allocated.
//!
//! AnalysisContext for buckets, each row is the peak within one bucket of time; a bucket
//! like the one before has no row. Unasked, every change is a row where there are at most 1,000 of a device; else there
//! are buckets of a thousandth of the time from the device's first change to its last. Buckets begin at multiples of
//! their width since the start of the trace, and the last row is what remains after the last bucket.
//!
//! # Units
//! Bytes; `time_ns` counts from the start of the trace.
//!
//! # Source
//! Allocations and frees as the framework's allocators reported them.
//!
//! # Edge cases
//! A row without a device is the host's memory, which has nothing in reserve. Several processes of a rank add up. Before
//! the first report of what is reserved it is not known. For one step, the curve begins with the level at the start of
//! the step. Memory that no event touches is in no sum; the source's own totals hold it. What the host maps, as for
//! tensors in shared memory, is in no total of the source and is added to it.

use crate::allocations::{Level, Pool, levels_inside, window};
use crate::{Analysis, AnalysisContext, Needs, Options, Outcome, Selection};
use stepscope_trace::Trace;

/// Changes of a device up to which each is a row, and buckets beyond.
const ROWS: usize = 1_000;

columns! {
    /// Memory in use from one moment on.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct MemoryLevel {
        /// The rank.
        rank: u32 => Count,
        /// The number of the device within the rank. Absent for the memory of the host.
        device: Option<i64> => Count,
        /// From when on the memory is in use, counted from the start of the trace.
        time_ns: i64 => Nanoseconds,
        /// Bytes that tensors use.
        allocated_bytes: i64 => Bytes,
        /// Bytes that the allocator holds.
        reserved_bytes: Option<i64> => Bytes,
    }
}

/// The curve of every memory that has events, by rank, the host's first, by time.
pub fn memory_curve(trace: &Trace, selection: &Selection) -> Vec<MemoryLevel> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<MemoryLevel> {
    let AnalysisContext { trace, selection, .. } = *context;
    let mut rows = Vec::new();
    for pool in context.get::<Vec<Pool>>() {
        let levels = levels_inside(pool.levels(trace), window(trace, selection, pool.rank));
        let device = pool.ordinal(trace);
        let row = |level: &Level| MemoryLevel {
            rank: pool.rank,
            device,
            time_ns: level.time_ns,
            allocated_bytes: level.allocated_bytes,
            reserved_bytes: level.reserved_bytes,
        };
        match selection.bucket_ns.or_else(|| bucket_of_choice(&levels)) {
            Some(bucket_ns) => rows.extend(peaks(&levels, bucket_ns.max(1)).iter().map(row)),
            None => rows.extend(levels.iter().map(row)),
        }
    }
    rows
}

fn bucket_of_choice(levels: &[Level]) -> Option<i64> {
    let (first, last) = (levels.first()?, levels.last()?);
    (levels.len() > ROWS).then(|| ((last.time_ns - first.time_ns) / ROWS as i64).saturating_add(1))
}

/// The peak of each bucket, with the bucket's start as its time.
fn peaks(levels: &[Level], bucket_ns: i64) -> Vec<Level> {
    let mut rows: Vec<Level> = Vec::new();
    let mut push = |level: Level| {
        let values = |level: &Level| (level.allocated_bytes, level.reserved_bytes);
        if rows.last().is_none_or(|last| values(last) != values(&level)) {
            rows.push(level);
        }
    };
    let (mut carried, mut next_start_ns): (Option<Level>, i64) = (None, 0);
    for bucket in levels.chunk_by(|a, b| a.time_ns / bucket_ns == b.time_ns / bucket_ns) {
        let start_ns = bucket[0].time_ns / bucket_ns * bucket_ns;
        if let Some(level) = carried.filter(|_| start_ns > next_start_ns) {
            push(Level { time_ns: next_start_ns, ..level });
        }
        let at_start = carried.filter(|_| bucket[0].time_ns > start_ns);
        let peak = at_start.iter().chain(bucket).copied().reduce(higher).unwrap_or(bucket[0]);
        push(Level { time_ns: start_ns, ..peak });
        carried = bucket.last().copied();
        next_start_ns = start_ns.saturating_add(bucket_ns);
    }
    if let Some(level) = carried {
        push(Level { time_ns: next_start_ns, ..level });
    }
    rows
}

fn higher(a: Level, b: Level) -> Level {
    let allocated_bytes = a.allocated_bytes.max(b.allocated_bytes);
    Level { allocated_bytes, reserved_bytes: a.reserved_bytes.max(b.reserved_bytes), ..a }
}

pub(crate) const ANALYSIS: Analysis =
    Analysis { options: Options { bucket: true, ..Options::NONE }, ..Analysis::of(outcome) }.needing(Needs::EachRank);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::without_coverage(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;

    /// Rows as `rank/device: us bytes …`.
    fn check(drawing: &str, selection: Selection, expected: &[&str]) {
        let rows = memory_curve(&drawn(drawing), &selection);
        let line = |rows: &[MemoryLevel]| {
            let device = rows[0].device.map_or("host".into(), |device| device.to_string());
            let levels = rows.iter().map(|row| format!(" {}={}", row.time_ns / 1_000, row.allocated_bytes));
            format!("{}/{device}:{}", rows[0].rank, levels.collect::<String>())
        };
        let of_one = |a: &MemoryLevel, b: &MemoryLevel| (a.rank, a.device) == (b.rank, b.device);
        assert_eq!(rows.chunk_by(of_one).map(line).collect::<Vec<_>>(), expected);
    }

    const STEPS: &str = "rank 0 step         0000011111
                         rank 0 memory 1     ab.AB..c.C
                         rank 0 hostmemory 1 ..a.......
                         rank 1 memory 1     a.........";

    #[test]
    fn every_change_of_every_memory_is_a_row() {
        let expected = ["0/host: 2=100", "0/0: 0=100 1=300 3=200 4=0 7=300 9=0", "1/0: 0=100"];
        check(STEPS, Selection::default(), &expected);
    }

    #[test]
    fn a_bucket_shows_its_peak_and_the_last_row_what_remains() {
        let selection = Selection { ranks: 0.into(), bucket_ns: Some(3_000), ..Selection::default() };
        check(STEPS, selection.clone(), &["0/host: 0=100", "0/0: 0=300 3=200 6=300 9=0"]);
        let selection = Selection { bucket_ns: Some(2_000), ..selection };
        check(STEPS, selection, &["0/host: 2=100", "0/0: 0=300 4=0 6=300 10=0"]);
    }

    #[test]
    fn a_step_begins_with_what_it_finds() {
        let selection = Selection { ranks: 0.into(), step: Some(1), ..Selection::default() };
        check(STEPS, selection, &["0/host: 5=100", "0/0: 5=0 7=300 9=0"]);
    }

    proptest! {
        #[test]
        fn a_bucket_holds_the_highest_of_its_moments(row in "[.abcABC]{1,50}", width in 1_i64..12) {
            let trace = drawn(&format!("rank 0 memory 1 {row}"));
            let exact = memory_curve(&trace, &Selection::default());
            let Some(first) = exact.first() else { return Ok(()) };
            let rows = memory_curve(&trace, &Selection { bucket_ns: Some(width * 1_000), ..Selection::default() });
            let at = |rows: &[MemoryLevel], us: i64| {
                rows.iter().rev().find(|row| row.time_ns <= us * 1_000).map(|row| row.allocated_bytes)
            };
            for bucket in first.time_ns / 1_000 / width..60 / width {
                let highest = (bucket * width..(bucket + 1) * width).filter_map(|us| at(&exact, us)).max();
                prop_assert_eq!(at(&rows, bucket * width), highest);
            }
            prop_assert!(rows.windows(2).all(|pair| pair[0].time_ns < pair[1].time_ns));
        }
    }
}

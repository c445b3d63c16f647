//! # Definition
//! For each kernel name, how many of its runs took how long: a row is a range of durations in which at least one run lies.
//! A range has the durations from `from_ns` up to, and without, `to_ns`. Ranges grow with what they hold: each power of
//! two is cut into four equal ranges, below 4 ns every duration is a range of its own. The counts of a name's rows sum to
//! its runs, and their totals to its time, as `kernels` has them.
//!
//! # Units
//! Nanoseconds; counts of runs.
//!
//! # Source
//! Kernels as the device's profiler recorded them. The kind says whether a kernel computes or communicates; a name that
//! does both has rows for each.
//!
//! # Edge cases
//! Ranges without a run have no row. Copies and fills are no kernels. For one step, the kernels launched on the host
//! inside it, or that start in it where the launch is not known. The kernel with the longest total comes first, of each
//! the shortest range.

use crate::kernels::KernelRuns;
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_trace::{DeviceEventClass, Trace};

columns! {
    /// The runs of a kernel that took about as long.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct KernelDurations {
        /// The name of the kernel.
        name: String => Text,
        /// Whether the kernel computes or communicates.
        kind: DeviceEventClass => Text,
        /// The shortest duration of the range.
        from_ns: i64 => Nanoseconds,
        /// The end of the range: the first duration that is too long for it.
        to_ns: i64 => Nanoseconds,
        /// Number of runs whose duration is in the range.
        count: i64 => Count,
        /// Sum of the durations of these runs.
        total_ns: i64 => Nanoseconds,
    }
}

/// Parts of each power of two, as a power of two.
const PARTS_LOG2: u32 = 2;

/// The range that a duration lies in.
pub(crate) fn range_of(dur_ns: i64) -> (i64, i64) {
    let dur_ns = dur_ns.max(0);
    let width = match dur_ns.checked_ilog2() {
        Some(log2) if log2 > PARTS_LOG2 => 1_i64 << (log2 - PARTS_LOG2),
        _ => 1,
    };
    let from_ns = dur_ns / width * width;
    (from_ns, from_ns.saturating_add(width))
}

/// Count and sum of durations, by where their range begins.
type Ranges = BTreeMap<(i64, i64), (i64, i64)>;

/// The ranges of every kernel asked for: the longest total first, then by name and kind; of each the shortest first.
pub fn kernel_durations(trace: &Trace, selection: &Selection) -> Vec<KernelDurations> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<KernelDurations> {
    let mut kernels: BTreeMap<(&str, DeviceEventClass), (i64, Ranges)> = BTreeMap::new();
    for runs in &context.get::<KernelRuns>().0 {
        let (total_ns, ranges) = kernels.entry((&runs.name, runs.kind())).or_default();
        for dur_ns in runs.dur_ns.iter().copied() {
            *total_ns = total_ns.saturating_add(dur_ns);
            let (count, sum_ns) = ranges.entry(range_of(dur_ns)).or_default();
            (*count, *sum_ns) = (*count + 1, sum_ns.saturating_add(dur_ns));
        }
    }
    let mut kernels: Vec<_> = kernels.into_iter().collect();
    kernels.sort_by_key(|(_, (total_ns, _))| Reverse(*total_ns));
    let rows = kernels.into_iter().flat_map(|((name, kind), (_, ranges))| {
        ranges.into_iter().map(move |((from_ns, to_ns), (count, total_ns))| KernelDurations {
            name: name.to_string(),
            kind,
            from_ns,
            to_ns,
            count,
            total_ns,
        })
    });
    rows.collect()
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::Rows);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::kernels;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;

    fn line(row: &KernelDurations) -> String {
        format!("{} {}..{} x{} {}", row.name, row.from_ns, row.to_ns, row.count, row.total_ns)
    }

    #[test]
    fn runs_that_took_about_as_long_are_one_row() {
        let trace = drawn("rank 0 stream 7 A.AAA.A.HH.BBBBB.AAA");
        let lines: Vec<String> = kernel_durations(&trace, &Selection::default()).iter().map(line).collect();
        assert_eq!(lines, ["A 896..1024 x2 2000", "A 2560..3072 x2 6000", "B 4096..5120 x1 5000"]);
    }

    #[test]
    fn a_step_has_the_kernels_launched_in_it() {
        let trace = drawn("rank 0 step 0011\nrank 0 launch 1 A.B.\nrank 0 stream 7 ...ABC");
        let selection = Selection { step: Some(1), ..Selection::default() };
        let lines: Vec<String> = kernel_durations(&trace, &selection).iter().map(line).collect();
        assert_eq!(lines, ["B 896..1024 x1 1000"]);
    }

    #[test]
    fn ranges_follow_each_other_without_a_gap() {
        let mut at_ns = 0;
        while at_ns < i64::MAX {
            let (from_ns, to_ns) = range_of(at_ns);
            assert_eq!(from_ns, at_ns);
            assert!(to_ns > from_ns && (from_ns < 8 || (to_ns - from_ns) * 4 <= from_ns), "{from_ns}..{to_ns}");
            at_ns = to_ns;
        }
        assert_eq!(range_of(-5), (0, 1));
    }

    proptest! {
        #[test]
        fn every_duration_lies_in_its_range(dur_ns in 0..=i64::MAX) {
            let (from_ns, to_ns) = range_of(dur_ns);
            prop_assert!(from_ns <= dur_ns && (dur_ns < to_ns || to_ns == i64::MAX));
        }

        #[test]
        fn ranges_of_a_kernel_sum_to_it(rows in prop::collection::vec("[.ABN|]{1,40}", 1..4)) {
            let text: String = rows.iter().enumerate().map(|(at, row)| format!("rank 0 stream {at} {row}\n")).collect();
            let trace = drawn(&text);
            let found = kernel_durations(&trace, &Selection::default());
            for kernel in kernels(&trace, &Selection::default()) {
                let of = found.iter().filter(|row| row.name == kernel.name && row.kind == kernel.kind);
                let (count, total_ns) = of.fold((0, 0), |sum, row| (sum.0 + row.count, sum.1 + row.total_ns));
                prop_assert_eq!((count, total_ns), (kernel.count, kernel.total_ns));
            }
        }
    }
}

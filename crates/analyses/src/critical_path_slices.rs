//! # Definition
//! What the critical paths of the steps consist of: for each name, the time it is on the path of a step, over all steps
//! asked for. `critical_path` defines the path and its classes. For device work it is the time in which that work runs
//! on the path, or in which the path waits for it to begin (`launch_latency`, `queue_wait`); for the host, the time in
//! which it is the innermost operator, call, frame or label of the thread that the path is on. The rows of a rank sum to
//! the lengths of its paths.
//!
//! # Units
//! Nanoseconds; the ratio is a share of the rank's paths from 0 to 1; `pieces` counts how often the path comes by.
//!
//! # Source
//! As `critical_path`.
//!
//! # Edge cases
//! As `critical_path`. A row without a name is time in which nothing was recorded. Slices that overlap others of their
//! thread without nesting are told by their class only.

use crate::critical_path::{PathClass, Paths};
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use std::collections::BTreeMap;
use stepscope_base::StringId;
use stepscope_trace::Trace;

columns! {
    /// What one name has of a rank's paths.
    #[derive(Clone, PartialEq, Debug)]
    pub struct CriticalSlices {
        /// The rank.
        rank: u32 => Count,
        /// The name of the slice. Absent where nothing was recorded.
        name: Option<String> => Text,
        /// The class of the time.
        class: PathClass => Text,
        /// Number of pieces that slices of this name have of the paths.
        pieces: i64 => Count,
        /// Time on the paths.
        path_ns: i64 => Nanoseconds,
        /// `path_ns` as a share of the length of all paths of the rank.
        path_ratio: f64 => Ratio,
    }
}

/// Every name on the paths, by rank, the longest time first.
pub fn critical_path_slices(trace: &Trace, selection: &Selection) -> Vec<CriticalSlices> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<CriticalSlices> {
    let (trace, paths) = (context.trace, context.get::<Paths>());
    let mut lengths: BTreeMap<u32, i64> = BTreeMap::new();
    paths.by_step.iter().for_each(|path| *lengths.entry(path.rank).or_insert(0) += path.length_ns);
    let row = |(&(rank, name, class), &(pieces, path_ns)): (&(u32, Option<StringId>, PathClass), &(i64, i64))| {
        let name = name.map(|name| trace.strings.get(name).to_string());
        CriticalSlices { rank, name, class, pieces, path_ns, path_ratio: path_ns as f64 / lengths[&rank] as f64 }
    };
    let mut rows: Vec<CriticalSlices> = paths.by_name.iter().map(row).collect();
    let key = |row: &CriticalSlices| (row.rank, std::cmp::Reverse(row.path_ns), row.class);
    rows.sort_unstable_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name)));
    for (rank, length_ns) in &lengths {
        let sum_ns: i64 = rows.iter().filter(|row| row.rank == *rank).map(|row| row.path_ns).sum();
        assert_eq!(sum_ns, *length_ns, "names sum to the paths");
    }
    rows
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRank);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn names_are_told_by_their_time_on_the_path() {
        let trace = drawn(
            "rank 0 step     000000000000
             rank 0 cpu 1    .aaab.......
             rank 0 launch 1 ..C.........
             rank 0 sync 1   .....sssss..
             rank 0 stream 7 ....CCCC....",
        );
        let rows = critical_path_slices(&trace, &Selection::default());
        let line = |row: &CriticalSlices| {
            format!(
                "{} {} {} x{}",
                row.class.as_str(),
                row.name.as_deref().unwrap_or("-"),
                row.path_ns / 1_000,
                row.pieces
            )
        };
        let expected = [
            "compute C 4 x1",
            "other ProfilerStep#0 3 x2",
            "host_sync s 2 x1",
            "launch_latency C 1 x1",
            "runtime C 1 x1",
            "host_op a 1 x1",
        ];
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
    }
}

//! # Definition
//! The critical path of each step, piece by piece in the order of time.
//! `critical_path` defines the path and its classes. A piece is of one class and one slice: for device work the work that
//! runs, or that begins after the path waited for it (`launch_latency`, `queue_wait`); for the host the innermost
//! operator, call, frame or label of the thread that the path is on. The pieces of a step follow each other without a hole
//! and without an overlap, from the start to the end of its path, so they sum to its length.
//!
//! With a width of buckets, neighbours that are shorter than that and begin in the same bucket are one row: it has the
//! class with the most time of it, and the track and the slice of the longest piece of that class. Buckets begin at whole
//! multiples of their width since the start of the trace.
//!
//! # Units
//! Nanoseconds; `pieces` is a count; `start_ns`, `end_ns` and `slice_start_ns` count from the start of the trace.
//!
//! # Source
//! As `critical_path`.
//!
//! # Edge cases
//! As `critical_path`. A piece without a name is time in which nothing was recorded on its thread. Paths of steps overlap
//! each other where the device runs behind the host: then both have the same device work. Slices that overlap others of
//! their thread without nesting have no pieces of their own.

use crate::critical_path::{PathClass, PathParts, PathPiece, each_path};
use crate::{Analysis, AnalysisContext, Needs, Options, Outcome, Selection};
use std::cmp::Reverse;
use stepscope_base::Span;
use stepscope_trace::{SliceId, Step, Trace, TrackId};

columns! {
    /// A piece of the critical path of a step.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct CriticalPiece {
        /// The rank.
        rank: u32 => Count,
        /// The number of the step.
        step: i64 => Count,
        /// The time of the piece.
        span: Span,
        /// When the piece starts, counted from the start of the trace.
        start_ns => Nanoseconds = |row| row.span.start_ns,
        /// When the piece ends, counted from the start of the trace.
        end_ns => Nanoseconds = |row| row.span.end_ns,
        /// Length of the piece.
        path_ns => Nanoseconds = |row| row.span.duration_ns(),
        /// Number of pieces: more than one where neighbours in a bucket are one row.
        pieces: i64 => Count,
        /// The class of the time, or of most of it.
        class: PathClass => Text,
        /// Time of this class: all, where the row is one piece.
        class_ns: i64 => Nanoseconds,
        /// The thread that the path is on, or the stream of the device work.
        track: TrackId => Text,
        /// The slice, where one was recorded.
        slice: Option<SliceId>,
        /// The name of the slice. Absent where nothing was recorded.
        name => Text = |row| row.slice,
        /// When the slice starts, counted from the start of the trace. Absent where nothing was recorded.
        slice_start_ns => Nanoseconds with |row, trace| row.slice.map(|slice| trace.slices.start_ns[slice.index()]),
    }
}

/// Every piece of the path of every step asked for, by rank, step and time.
pub fn critical_path_pieces(trace: &Trace, selection: &Selection) -> Vec<CriticalPiece> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<CriticalPiece> {
    let mut rows = Vec::new();
    let bucket_ns = context.selection.bucket_ns.unwrap_or(0);
    each_path(context, |step, path, pieces| {
        let first = rows.len();
        let of_row = pieces.chunk_by(|piece, next| are_together(piece.span, next.span, bucket_ns));
        rows.extend(of_row.map(|pieces| row(step, pieces)));
        let sum_ns: i64 = rows[first..].iter().map(|row| row.span.duration_ns()).sum();
        assert_eq!(sum_ns, path.duration_ns(), "pieces sum to the path");
    });
    rows
}

/// Whether neighbours are one row.
fn are_together(piece: Span, next: Span, bucket_ns: i64) -> bool {
    let are_short = piece.duration_ns() < bucket_ns && next.duration_ns() < bucket_ns;
    are_short && piece.start_ns.div_euclid(bucket_ns) == next.start_ns.div_euclid(bucket_ns)
}

/// The row of neighbours; there is at least one.
fn row(step: &Step, pieces: &[PathPiece]) -> CriticalPiece {
    let (first, last) = (&pieces[0], &pieces[pieces.len() - 1]);
    let mut parts = PathParts::default();
    pieces.iter().for_each(|piece| parts.add(piece.class, piece.span.duration_ns()));
    // Of equal ones the first.
    let more = |one: PathClass, other: PathClass| if parts.of(other) > parts.of(one) { other } else { one };
    let class = PathClass::ALL.into_iter().reduce(more).unwrap_or(first.class);
    let of_class = pieces.iter().filter(|piece| piece.class == class);
    let longest = of_class.min_by_key(|piece| Reverse(piece.span.duration_ns())).unwrap_or(first);
    CriticalPiece {
        rank: step.rank,
        step: step.number,
        span: Span::new(first.span.start_ns, last.span.end_ns),
        pieces: pieces.len() as i64,
        class,
        class_ns: parts.of(class),
        track: longest.track,
        slice: longest.slice,
    }
}

pub(crate) const ANALYSIS: Analysis =
    Analysis { options: Options { bucket: true, ..Options::NONE }, ..Analysis::of(outcome) }.needing(Needs::EachRank);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::critical_path::critical_path;
    use crate::critical_path_slices::critical_path_slices;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn pieces_come_in_the_order_of_time_with_their_slices() {
        let trace = drawn(
            "rank 0 step     000000000000
             rank 0 cpu 1    .aaab.......
             rank 0 launch 1 ..C.........
             rank 0 sync 1   .....sssss..
             rank 0 stream 7 ....CCCC....",
        );
        let line = |row: &CriticalPiece| {
            let name = row.slice.map_or("-", |slice| trace.slice_name(slice));
            let [start, length] = [row.span.start_ns, row.span.duration_ns()].map(|ns| ns / 1_000);
            let track = &trace.tracks[row.track.index()].name;
            format!("{start} for {length}: {} {name} on {track}", row.class.as_str())
        };
        let rows = critical_path_pieces(&trace, &Selection::default());
        let thread = &trace.tracks[rows[0].track.index()].name;
        let stream = &trace.tracks[rows[4].track.index()].name;
        assert_ne!(thread, stream);
        let expected = [
            format!("0 for 1: other ProfilerStep#0 on {thread}"),
            format!("1 for 1: host_op a on {thread}"),
            format!("2 for 1: runtime C on {thread}"),
            format!("3 for 1: launch_latency C on {stream}"),
            format!("4 for 4: compute C on {stream}"),
            format!("8 for 2: host_sync s on {thread}"),
            format!("10 for 2: other ProfilerStep#0 on {thread}"),
        ];
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn short_neighbours_in_a_bucket_are_one_row() {
        let trace = drawn(
            "rank 0 step     000000000000
             rank 0 cpu 1    .aaab.......
             rank 0 launch 1 ..C.........
             rank 0 sync 1   .....sssss..
             rank 0 stream 7 ....CCCC....",
        );
        let line = |row: &CriticalPiece| {
            let name = row.slice.map_or("-", |slice| trace.slice_name(slice));
            let [start, length, most] = [row.span.start_ns, row.span.duration_ns(), row.class_ns].map(|ns| ns / 1_000);
            format!("{start} for {length}: {} pieces, {most} {} {name}", row.pieces, row.class.as_str())
        };
        let rows = critical_path_pieces(&trace, &Selection { bucket_ns: Some(3_000), ..Selection::default() });
        let expected = [
            "0 for 3: 3 pieces, 1 runtime C",
            "3 for 1: 1 pieces, 1 launch_latency C",
            "4 for 4: 1 pieces, 4 compute C",
            "8 for 2: 1 pieces, 2 host_sync s",
            "10 for 2: 1 pieces, 2 other ProfilerStep#0",
        ];
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
    }

    proptest! {
        /// Summed up in the slow and obvious way they are what the other two analyses of the path say.
        #[test]
        fn pieces_sum_to_paths_and_to_names(
            host in "[.axs|]{30}", launch in "[.CDN|]{30}", streams in prop::collection::vec("[.CDNH|]{30}", 1..3),
            sync in "[.s|]{30}", input in "[.i|]{30}", steps in "0{1,12}1{1,12}2{1,12}", bucket in 1_i64..20,
        ) {
            let mut drawing = format!(
                "rank 0 step {steps}\nrank 0 input 1 {input}\nrank 0 cpu 1 {host}\nrank 0 launch 1 {launch}\nrank 0 sync 1 {sync}\n"
            );
            streams.iter().enumerate().for_each(|(at, row)| drawing += &format!("rank 0 stream {at} {row}\n"));
            let trace = drawn(&drawing);
            let all = Selection::default();
            let rows = critical_path_pieces(&trace, &all);
            for path in critical_path(&trace, &all) {
                let of_step: Vec<&CriticalPiece> = rows.iter().filter(|row| row.step == path.step).collect();
                let mut at_ns = path.start_ns;
                for row in &of_step {
                    prop_assert_eq!(row.span.start_ns, at_ns);
                    prop_assert!(!row.span.is_empty());
                    at_ns = row.span.end_ns;
                }
                prop_assert_eq!(at_ns, path.start_ns + path.length_ns);
                for class in PathClass::ALL {
                    let of_class = of_step.iter().filter(|row| row.class == class);
                    prop_assert_eq!(of_class.map(|row| row.span.duration_ns()).sum::<i64>(), path.parts.of(class));
                }
                // What is told of a slice lies in it, unless the path waits for it.
                for row in of_step {
                    let Some(slice) = row.slice else { continue };
                    let waits = matches!(row.class, PathClass::LaunchLatency | PathClass::QueueWait);
                    let span = trace.slices.span(slice);
                    prop_assert_eq!(waits, row.span.intersect(span) != row.span, "{:?} {:?}", row, span);
                }
            }
            let wide = bucket * 500;
            let together = critical_path_pieces(&trace, &Selection { bucket_ns: Some(wide), ..Selection::default() });
            let mut next = rows.iter();
            for row in &together {
                let own: Vec<&CriticalPiece> = next.by_ref().take(row.pieces as usize).collect();
                prop_assert_eq!(row.span, Span::new(own[0].span.start_ns, own[own.len() - 1].span.end_ns));
                let of_class = |class: PathClass| -> i64 {
                    own.iter().filter(|piece| piece.class == class).map(|piece| piece.span.duration_ns()).sum()
                };
                prop_assert_eq!(row.class_ns, of_class(row.class));
                prop_assert!(PathClass::ALL.iter().all(|class| of_class(*class) <= row.class_ns));
                let is_known = |piece: &&CriticalPiece| (piece.class, piece.slice, piece.track) == (row.class, row.slice, row.track);
                prop_assert!(own.iter().any(is_known));
                let begins_in = |piece: &&CriticalPiece| piece.span.start_ns / wide == row.span.start_ns / wide;
                prop_assert!(own.len() == 1 || own.iter().all(|piece| piece.span.duration_ns() < wide && begins_in(piece)));
            }
            prop_assert!(next.next().is_none());
            // No more rows than three for each bucket.
            let buckets = trace.span().map_or(0, |span| span.duration_ns() / wide + 1);
            prop_assert!(together.len() as i64 <= 3 * buckets + 3 * 3, "{} of {buckets}", together.len());
            let mut by_name: BTreeMap<(Option<String>, PathClass), (i64, i64)> = BTreeMap::new();
            for row in &rows {
                let name = row.slice.map(|slice| trace.slice_name(slice).to_string());
                let (pieces, ns) = by_name.entry((name, row.class)).or_default();
                (*pieces, *ns) = (*pieces + 1, *ns + row.span.duration_ns());
            }
            let named = critical_path_slices(&trace, &all).into_iter();
            let named: BTreeMap<_, _> = named.map(|row| ((row.name, row.class), (row.pieces, row.path_ns))).collect();
            prop_assert_eq!(by_name, named);
        }
    }
}

//! # Definition
//! For each clock of a run: how it was corrected, and by how much it still differs from another one, as far as the
//! collectives show it that ranks leave together.
//!
//! - Processes of a host read one clock. Where the host is not known, a rank has a clock of its own.
//! - All-reduce, all-gather, reduce-scatter, all-to-all and barrier end on all ranks at about the same moment, since no rank
//!   can leave before the last one has come. The *difference* is that of the ends on the two clocks. A clock is compared
//!   with the one of a lower rank with which it shares most of such collectives.
//! - A collective *contradicts* the clocks when one side leaves before the other has come, by more than 1 µs.
//! - Clocks are corrected when the source does not state them, or when collectives contradict them. The correction is an
//!   offset at the start of the trace as it was read, and a drift, where there are enough collectives to tell one.
//!
//! # Units
//! Nanoseconds; the drift in nanoseconds for each second. Counts of ranks and collectives.
//!
//! # Source
//! The kernels of collectives, or where there are none, their work on the host, matched across ranks as for `stragglers`.
//!
//! # Edge cases
//! The first clock is compared with none, and so is one that shares no such collective with a lower rank. A rank that is
//! late does not matter: only ends are compared. Network and topology let ends differ by some microseconds. A selection of
//! ranks leaves out the rows of other clocks and changes nothing else; steps are not selected.

use crate::communication::matched_parts;
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use stepscope_align::{Domain, residuals};
use stepscope_trace::{ClockCorrection, Trace};

columns! {
    /// What is known of one clock.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ClockResidual {
        /// Whose clock it is: a host, or a rank.
        clock: String => Text,
        /// The lowest rank that has this clock.
        rank: u32 => Count,
        /// Number of ranks that have this clock.
        ranks: i64 => Count,
        /// The clock that it is compared with.
        compared_with: Option<String> => Text,
        /// What was added to its times at the start of the trace as it was read.
        offset_ns: i64 => Nanoseconds,
        /// What was added on top for each second since.
        drift_per_second_ns: i64 => Nanoseconds,
        /// Number of collectives that both clocks show the end of.
        collectives: i64 => Count,
        /// The median of the differences of the ends, each without its sign.
        difference_p50_ns: Option<i64> => Nanoseconds,
        /// The largest difference.
        difference_max_ns: Option<i64> => Nanoseconds,
        /// Number of collectives that one side leaves before the other has come.
        contradictions: i64 => Count,
    }
}

/// Every clock asked for, in the order of their lowest ranks.
pub fn clock_residuals(trace: &Trace, selection: &Selection) -> Vec<ClockResidual> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<ClockResidual> {
    let trace = context.trace;
    let is_asked = |domain: &Domain| domain.ranks.iter().any(|rank| context.selection.has_rank(*rank));
    let found = residuals(trace, matched_parts(context));
    let asked = found.into_iter().filter(|residual| is_asked(&residual.domain));
    let row = |residual: stepscope_align::Residual| {
        let process = residual.domain.processes[0];
        let correction = trace.clocks.get(process.index()).copied().unwrap_or(ClockCorrection::none(process));
        ClockResidual {
            clock: residual.domain.name(),
            rank: residual.domain.ranks[0],
            ranks: residual.domain.ranks.len() as i64,
            compared_with: residual.reference.map(|domain| domain.name()),
            offset_ns: correction.offset_ns,
            drift_per_second_ns: correction.drift.over(1_000_000_000),
            collectives: residual.collectives as i64,
            difference_p50_ns: residual.difference_p50_ns,
            difference_max_ns: residual.difference_max_ns,
            contradictions: residual.contradictions as i64,
        }
    };
    asked.map(row).collect()
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::Condensed);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::without_coverage(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_align::{Align, aligned};
    use stepscope_trace::SliceKind;
    use stepscope_trace::drawn::{SaidOfCollective, drawn_with_collectives};

    const MEAN: SaidOfCollective = ("allreduce", "Float", Some(1_000), Some(5));

    fn check(drawing: &str, align: Align, expected: &[&str]) {
        let said = [("a", SliceKind::Op, MEAN), ("b", SliceKind::Op, MEAN)];
        let trace = aligned(drawn_with_collectives(drawing, &said), align);
        let us = |ns: Option<i64>| ns.map_or("-".into(), |ns| format!("{} us", ns / 1_000));
        let line = |row: &ClockResidual| {
            let (offset, median, max) = (us(Some(row.offset_ns)), us(row.difference_p50_ns), us(row.difference_max_ns));
            let compared_with = row.compared_with.as_deref().unwrap_or("nothing");
            format!(
                "{} with {compared_with}: {offset}, {median} to {max}, {} contradict",
                row.clock, row.contradictions
            )
        };
        let rows = clock_residuals(&trace, &Selection::default());
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
        let of_one = clock_residuals(&trace, &Selection { ranks: 1.into(), ..Selection::default() });
        assert_eq!(of_one, rows[1..]);
    }

    /// Rank 1 shows the time 20 µs late: its collectives begin when those of rank 0 are over.
    const APART: &str = "rank 0 cpu 1    aa......aa............................
                         rank 0 launch 1 N.......N.............................
                         rank 0 stream 7 .NNNN....NNN..........................
                         rank 1 cpu 1    ....................bb......bb........
                         rank 1 launch 1 ....................N.......N.........
                         rank 1 stream 7 ......................NNN....NNN......";

    #[test]
    fn clocks_that_collectives_contradict_are_corrected() {
        check(
            APART,
            Align::Base,
            &[
                "rank 0 with nothing: 0 us, - to -, 0 contradict",
                "rank 1 with rank 0: 0 us, 20 us to 20 us, 2 contradict",
            ],
        );
        check(
            APART,
            Align::Auto,
            &[
                "rank 0 with nothing: 0 us, - to -, 0 contradict",
                "rank 1 with rank 0: -20 us, 0 us to 0 us, 0 contradict",
            ],
        );
    }

    /// Rank 1 comes later each time, and its ends are 1 µs later.
    const TOGETHER: &str = "rank 0 cpu 1    aa......aa....
                            rank 0 launch 1 N.......N.....
                            rank 0 stream 7 .NNNN....NNN..
                            rank 1 cpu 1    ..bb......bb..
                            rank 1 launch 1 ..N.......N...
                            rank 1 stream 7 ...NNN....NNN.";

    #[test]
    fn clocks_that_agree_stay_unless_asked_for() {
        check(
            TOGETHER,
            Align::Auto,
            &[
                "rank 0 with nothing: 0 us, - to -, 0 contradict",
                "rank 1 with rank 0: 0 us, 1 us to 1 us, 0 contradict",
            ],
        );
        check(
            TOGETHER,
            Align::Collectives,
            &[
                "rank 0 with nothing: 0 us, - to -, 0 contradict",
                "rank 1 with rank 0: -1 us, 0 us to 0 us, 0 contradict",
            ],
        );
    }
}

//! # Definition
//! For each device, how much of its communication is hidden under compute, and how much is exposed.
//! Communication is the time in which at least one communication kernel runs; hidden is the part of it in which a
//! computing kernel runs too, exposed the rest. The two sum to it, to the nanosecond. The overlap ratio is the hidden
//! share. Work that runs at the same time on several streams counts once.
//!
//! The window is that of `temporal_breakdown`: from the first start to the last end of a device event, of all of them
//! or, for one step, of those that were launched on the host inside the step.
//!
//! # Units
//! Nanoseconds; the overlap ratio is a share from 0 to 1.
//!
//! # Source
//! Kernels as the device's profiler recorded them. What communicates is known from the recording itself, else from a
//! table of kernel names.
//!
//! # Edge cases
//! A device without device events has no row. Without communication there is no overlap ratio. A copy is neither
//! compute nor communication: it hides nothing. The step is absent when all of the trace was asked for.

use crate::device_busy::DeviceBusy;
use crate::device_windows::DeviceWindow;
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use stepscope_trace::Trace;

columns! {
    /// One device's communication.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct Overlap {
        /// The rank that uses the device.
        rank: u32 => Count,
        /// The number of the device within the rank.
        device: i64 => Count,
        /// The step of the selection. Absent when the selection is not one step.
        step: Option<i64> => Count,
        /// Length of the window.
        span_ns: i64 => Nanoseconds,
        /// Time in which at least one computing kernel runs.
        compute_ns: i64 => Nanoseconds,
        /// Time in which at least one communication kernel runs.
        comm_ns: i64 => Nanoseconds,
        /// The part of `comm_ns` in which a computing kernel runs too.
        hidden_comm_ns: i64 => Nanoseconds,
        /// The part of `comm_ns` in which no computing kernel runs.
        exposed_comm_ns: i64 => Nanoseconds,
        /// `hidden_comm_ns` as a share of `comm_ns`. Absent without communication.
        overlap_ratio: Option<f64> => Ratio,
    }
}

/// The communication of every device that has device events asked for, ordered by rank and device.
pub fn overlap(trace: &Trace, selection: &Selection) -> Vec<Overlap> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<Overlap> {
    let busy = context.get::<Vec<DeviceBusy>>();
    context
        .get::<Vec<DeviceWindow>>()
        .iter()
        .map(|window| of_device(context, window, &busy[window.device.index()]))
        .collect()
}

fn of_device(context: &AnalysisContext<'_>, window: &DeviceWindow, busy: &DeviceBusy) -> Overlap {
    let (compute, comm) = (busy.compute.clip(window.span), busy.comm.clip(window.span));
    let comm_ns = comm.total_ns();
    let hidden_comm_ns = comm.intersect(&compute).total_ns();
    let exposed_comm_ns = comm.subtract(&compute).total_ns();
    assert_eq!(hidden_comm_ns + exposed_comm_ns, comm_ns, "hidden and exposed sum to communication");
    let device = &context.trace.devices[window.device.index()];
    Overlap {
        rank: device.rank,
        device: device.ordinal,
        step: context.selection.step,
        span_ns: window.span.duration_ns(),
        compute_ns: compute.total_ns(),
        comm_ns,
        hidden_comm_ns,
        exposed_comm_ns,
        overlap_ratio: (comm_ns > 0).then(|| hidden_comm_ns as f64 / comm_ns as f64),
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRankKept);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;

    fn line(row: &Overlap) -> String {
        let step = row.step.map_or(String::new(), |step| format!(" step {step}"));
        let ratio = row.overlap_ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"));
        let [span, comm, hidden, exposed] =
            [row.span_ns, row.comm_ns, row.hidden_comm_ns, row.exposed_comm_ns].map(|ns| ns / 1_000);
        format!("rank {}{step}: {comm} of {span} = {hidden} hidden + {exposed} exposed, ratio {ratio}", row.rank)
    }

    fn check(drawing: &str, selection: Selection, expected: &[&str]) {
        let rows = overlap(&drawn(drawing), &selection);
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn concurrent_collectives_count_once() {
        check(
            "rank 0 stream 7 CCCC....H
             rank 0 stream 8 ..NNNN...
             rank 0 stream 9 ...NN....",
            Selection::default(),
            &["rank 0: 4 of 9 = 2 hidden + 2 exposed, ratio 0.50"],
        );
    }

    #[test]
    fn copies_hide_nothing_and_without_communication_there_is_no_ratio() {
        check(
            "rank 0 stream 7 HHHH
             rank 0 stream 8 .NN.
             rank 1 stream 8 .CC.",
            Selection::default(),
            &["rank 0: 2 of 4 = 0 hidden + 2 exposed, ratio 0.00", "rank 1: 0 of 2 = 0 hidden + 0 exposed, ratio -"],
        );
    }

    #[test]
    fn a_step_has_the_window_of_its_launches() {
        check(
            "rank 0 step     0000111122
             rank 0 launch 1 AN..B..N..
             rank 0 stream 7 ..AAA.BBBB
             rank 0 stream 8 ...NNN..NN",
            Selection { step: Some(0), ..Selection::default() },
            &["rank 0 step 0: 3 of 4 = 2 hidden + 1 exposed, ratio 0.67"],
        );
    }

    proptest! {
        #[test]
        fn sweeps_equal_one_cell_per_microsecond(rows in prop::collection::vec("[.CKNHZ|]{1,40}", 1..5)) {
            let text: Vec<String> = rows.iter().enumerate().map(|(at, row)| format!("rank 0 stream {at} {row}")).collect();
            let found = overlap(&drawn(&text.join("\n")), &Selection::default());
            let cells: Vec<Vec<char>> = rows.iter().map(|row| row.chars().filter(|cell| *cell != '|').collect()).collect();
            let moment = |at: usize| cells.iter().filter_map(|row| row.get(at)).collect::<String>();
            let moments: Vec<String> = (0..40).map(moment).collect();
            let count = |is_wanted: &dyn Fn(&String) -> bool| 1_000 * moments.iter().filter(|moment| is_wanted(moment)).count() as i64;
            let is_compute = |moment: &String| moment.contains(['C', 'K']);
            let is_comm = |moment: &String| moment.contains('N');
            if let Some(row) = found.first() {
                prop_assert_eq!(row.compute_ns, count(&is_compute));
                prop_assert_eq!(row.comm_ns, count(&is_comm));
                prop_assert_eq!(row.hidden_comm_ns, count(&|moment| is_comm(moment) && is_compute(moment)));
                prop_assert_eq!(row.exposed_comm_ns, count(&|moment| is_comm(moment) && !is_compute(moment)));
                prop_assert_eq!(row.overlap_ratio.is_some(), row.comm_ns > 0);
            } else {
                prop_assert_eq!(count(&|moment| moment.contains(['C', 'K', 'N', 'H', 'Z'])), 0);
            }
        }
    }
}

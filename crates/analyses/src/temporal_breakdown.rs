//! # Definition
//! For each device, the time it computes, communicates without computing, copies without doing either, and idles.
//! The four parts sum to the window, to the nanosecond: compute is the time in which at least one computing kernel
//! runs; exposed communication is the time in which a communication kernel runs and no computing one; exposed copy is
//! the time in which a copy or a fill runs and no kernel of either kind; idle is the rest. Work that runs at the same
//! time on several streams counts once.
//!
//! The window reaches from the first start to the last end of a device event: of all of them, or, for one step, of
//! those that were launched on the host inside the step, or start in it where the launch is not known. Within a step's window, work launched by other steps counts
//! too, as far as it reaches into the window.
//!
//! The overlap ratio is the share of communication time in which the device also computes.
//!
//! # Units
//! Nanoseconds; the overlap ratio is a share from 0 to 1; device events are a count.
//!
//! # Source
//! Kernels, copies and fills as the device's profiler recorded them. What communicates is known from the recording
//! itself (collective names, launches inside a collective's call), else from a table of kernel names.
//!
//! # Edge cases
//! A device without device events has no row. Without communication there is no overlap ratio. Device events of no duration are counted
//! and take no time.

use crate::context::Shared;
use crate::device_busy::DeviceBusy;
use crate::device_windows::DeviceWindow;
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use serde::{Deserialize, Serialize};
use stepscope_base::IntervalSet;
use stepscope_trace::Trace;

columns! {
    /// One device's time.
    #[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
    pub struct TemporalBreakdown {
        /// The rank that uses the device.
        rank: u32 => Count,
        /// The number of the device within the rank.
        device: i64 => Count,
        /// Length of the window.
        span_ns: i64 => Nanoseconds,
        /// Time in which at least one computing kernel runs.
        compute_ns: i64 => Nanoseconds,
        /// Time in which a communication kernel runs and no computing one.
        exposed_comm_ns: i64 => Nanoseconds,
        /// Time in which a memcpy or memset runs and no kernel.
        exposed_copy_ns: i64 => Nanoseconds,
        /// Time in which the device is idle.
        idle_ns: i64 => Nanoseconds,
        /// Time in which at least one communication kernel runs.
        comm_ns: i64 => Nanoseconds,
        /// Time in which at least one memcpy or memset runs.
        copy_ns: i64 => Nanoseconds,
        /// Share of `comm_ns` in which a computing kernel runs too. Absent without communication.
        overlap_ratio: Option<f64> => Ratio,
        /// Number of device events that define the window.
        device_events: i64 => Count,
    }
}

/// The time of every device that has device events, ordered by rank and device.
pub fn temporal_breakdown(trace: &Trace, selection: &Selection) -> Vec<TemporalBreakdown> {
    rows(&AnalysisContext::new(trace, selection))
}

/// As [`temporal_breakdown`], in a context, which other analyses may share.
pub fn rows(context: &AnalysisContext<'_>) -> Vec<TemporalBreakdown> {
    context.get::<TemporalBreakdowns>().0.clone()
}

/// When a device of a rank communicates and does not compute: what `exposed_comm_ns` is the length of.
pub(crate) fn exposed_comm(context: &AnalysisContext<'_>, row: &TemporalBreakdown) -> IntervalSet {
    let windows = context.get::<Vec<DeviceWindow>>().iter();
    let of_row = windows.filter(|window| {
        let device = &context.trace.devices[window.device.index()];
        (device.rank, device.ordinal) == (row.rank, row.device)
    });
    of_row.fold(IntervalSet::default(), |all, window| {
        let DeviceBusy { compute, comm, .. } =
            context.get::<Vec<DeviceBusy>>()[window.device.index()].clip(window.span);
        all.union(&comm.subtract(&compute))
    })
}

/// The time of every device.
pub(crate) struct TemporalBreakdowns(pub(crate) Vec<TemporalBreakdown>);

impl Shared for TemporalBreakdowns {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let busy = context.get::<Vec<DeviceBusy>>();
        let windows = context.get::<Vec<DeviceWindow>>().iter();
        Self(windows.map(|window| of_device(context.trace, window, &busy[window.device.index()])).collect())
    }
}

fn of_device(trace: &Trace, window: &DeviceWindow, busy: &DeviceBusy) -> TemporalBreakdown {
    let DeviceBusy { compute, comm, memcpy, memset, .. } = busy.clip(window.span);
    let copy = memcpy.union(&memset);
    let exposed_comm_ns = comm.subtract(&compute).total_ns();
    let exposed_copy_ns = copy.subtract(&compute).subtract(&comm).total_ns();
    let span_ns = window.span.duration_ns();
    let idle_ns = span_ns - compute.union(&comm).union(&copy).total_ns();
    assert_eq!(compute.total_ns() + exposed_comm_ns + exposed_copy_ns + idle_ns, span_ns, "parts sum to the window");
    let (comm_ns, device) = (comm.total_ns(), &trace.devices[window.device.index()]);
    TemporalBreakdown {
        rank: device.rank,
        device: device.ordinal,
        span_ns,
        compute_ns: compute.total_ns(),
        exposed_comm_ns,
        exposed_copy_ns,
        idle_ns,
        comm_ns,
        copy_ns: copy.total_ns(),
        overlap_ratio: (comm_ns > 0).then(|| (comm_ns - exposed_comm_ns) as f64 / comm_ns as f64),
        device_events: window.device_events,
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::Rows);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;

    fn line(row: &TemporalBreakdown) -> String {
        let us = |ns: i64| ns / 1_000;
        let parts = [row.span_ns, row.compute_ns, row.exposed_comm_ns, row.exposed_copy_ns, row.idle_ns].map(us);
        let ratio = row.overlap_ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"));
        let [span, compute, comm, copy, idle] = parts;
        format!(
            "rank {}: {span} = {compute} compute + {comm} comm + {copy} copy + {idle} idle, overlap {ratio}",
            row.rank
        )
    }

    fn check(drawing: &str, selection: Selection, expected: &[&str]) {
        let rows = temporal_breakdown(&drawn(drawing), &selection);
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn communication_under_compute_is_not_exposed() {
        check(
            "rank 0 stream 7 CCCC......
             rank 0 stream 9 ..NNNN..H.",
            Selection::default(),
            &["rank 0: 9 = 4 compute + 2 comm + 1 copy + 2 idle, overlap 0.50"],
        );
    }

    #[test]
    fn the_time_of_exposed_communication_is_as_long_as_the_row_says() {
        let trace = drawn("rank 0 stream 7 CCCC......\nrank 0 stream 9 ..NNNN..NN");
        let all = Selection::default();
        let context = AnalysisContext::new(&trace, &all);
        let row = &rows(&context)[0];
        let us: Vec<_> = exposed_comm(&context, row).spans().iter().map(|span| span.duration_ns() / 1_000).collect();
        assert_eq!((us, row.exposed_comm_ns), (vec![2, 2], 4_000));
    }

    #[test]
    fn concurrent_work_of_a_class_counts_once() {
        check(
            "rank 0 stream 1 CCCC.HH
             rank 0 stream 2 .DD..ZZ
             rank 0 stream 3 ..KKKK.",
            Selection::default(),
            &["rank 0: 7 = 6 compute + 0 comm + 1 copy + 0 idle, overlap -"],
        );
    }

    #[test]
    fn without_device_events_there_is_no_row() {
        check("rank 0 cpu 1 aaaa", Selection::default(), &[]);
    }

    #[test]
    fn a_step_sees_what_reaches_into_the_window_of_its_launches() {
        let drawing = "rank 0 step     0000111122
                       rank 0 launch 1 A...B..C..
                       rank 0 stream 7 ..AAA.BBBB
                       rank 0 stream 8 .......CC.
                       rank 1 stream 7 ..N.......";
        let step = |step| Selection { ranks: 0.into(), step: Some(step), ..Selection::default() };
        check(drawing, step(0), &["rank 0: 3 = 3 compute + 0 comm + 0 copy + 0 idle, overlap -"]);
        check(drawing, step(1), &["rank 0: 4 = 4 compute + 0 comm + 0 copy + 0 idle, overlap -"]);
        check(drawing, step(2), &[]);
        check(
            drawing,
            Selection::default(),
            &[
                "rank 0: 8 = 7 compute + 0 comm + 0 copy + 1 idle, overlap -",
                "rank 1: 1 = 0 compute + 1 comm + 0 copy + 0 idle, overlap 0.00",
            ],
        );
    }

    #[test]
    fn the_document_has_the_agreed_fields() {
        let outcome = outcome(&AnalysisContext::new(&drawn("rank 0 stream 7 CC"), &Selection::default()));
        let names: Vec<_> = outcome.table.columns.iter().map(|column| column.name).collect();
        let expected = "rank device span_ns compute_ns exposed_comm_ns exposed_copy_ns idle_ns comm_ns copy_ns \
                        overlap_ratio device_events";
        assert_eq!(names.join(" "), expected);
        assert_eq!(outcome.coverage.device_ns_linked_ratio, Some(0.0));
    }

    proptest! {
        #[test]
        fn sweeps_equal_one_cell_per_microsecond(rows in prop::collection::vec("[.CKNHZ|]{1,40}", 1..5)) {
            let text: Vec<String> = rows.iter().enumerate().map(|(at, row)| format!("rank 0 stream {at} {row}")).collect();
            let found = temporal_breakdown(&drawn(&text.join("\n")), &Selection::default());
            let cells: Vec<Vec<char>> = rows.iter().map(|row| row.chars().filter(|cell| *cell != '|').collect()).collect();
            let at = |time: usize| cells.iter().filter_map(|row| row.get(time)).copied().filter(|cell| *cell != '.').collect::<String>();
            let moments: Vec<String> = (0..40).map(at).collect();
            let Some(first) = moments.iter().position(|moment| !moment.is_empty()) else {
                prop_assert!(found.is_empty());
                return Ok(());
            };
            let last = moments.iter().rposition(|moment| !moment.is_empty()).unwrap();
            let count = |is_wanted: &dyn Fn(&String) -> bool| 1_000 * moments[first..=last].iter().filter(|moment| is_wanted(moment)).count() as i64;
            let is_compute = |moment: &String| moment.contains(['C', 'K']);
            let is_comm = |moment: &String| moment.contains('N');
            prop_assert_eq!(found[0].compute_ns, count(&is_compute));
            prop_assert_eq!(found[0].comm_ns, count(&is_comm));
            prop_assert_eq!(found[0].exposed_comm_ns, count(&|moment| is_comm(moment) && !is_compute(moment)));
            prop_assert_eq!(found[0].copy_ns, count(&|moment| moment.contains(['H', 'Z'])));
            prop_assert_eq!(found[0].exposed_copy_ns, count(&|moment| !moment.is_empty() && !is_compute(moment) && !is_comm(moment)));
            prop_assert_eq!(found[0].idle_ns, count(&|moment| moment.is_empty()));
        }
    }
}

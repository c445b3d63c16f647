//! Idle time between neighbours of each stream in three classes, as Holistic Trace Analysis has it.

use crate::Selection;
use std::collections::{BTreeMap, BTreeSet};
use stepscope_base::Span;
use stepscope_trace::{DeviceId, StepSource, Trace};

/// Below this, the time between two kernels counts as the device's own delay. Its documentation says nanoseconds; the
/// program compares it with microseconds.
const KERNEL_WAIT_BELOW_US: i64 = 30;
const CLASSES: [&str; 3] = ["host_wait", "kernel_wait", "other"];

/// By device, stream and class: idle time in whole microseconds, gaps, the longest.
type Idle = BTreeMap<(DeviceId, Option<i64>, usize), (i64, i64, i64)>;

/// Times are those of the source in whole microseconds: starts are rounded up and ends down.
fn idle(trace: &Trace, selection: &Selection) -> Idle {
    let start_us = |ns: i64| written_us(ns.saturating_add(trace.start_source_ns)).ceil() as i64;
    let end_us = |span: Span| {
        let start_us = written_us(span.start_ns.saturating_add(trace.start_source_ns));
        (start_us + written_us(span.duration_ns())).floor() as i64
    };
    // Of several labelled steps it leaves out the last, and what was launched in it or by nobody that is known.
    let until_us = if selection.is_part() { BTreeMap::new() } else { last_steps_us(trace, start_us) };
    let mut idle = Idle::new();
    let mut previous: BTreeMap<(DeviceId, Option<i64>), i64> = BTreeMap::new();
    for event in selection.device_events(trace).filter(|event| event.stream.is_some()) {
        let span = trace.slices.span(event.slice);
        let launch_us = event.launch.map(|launch| start_us(trace.slices.start_ns[launch.index()]));
        let until_us = until_us.get(&trace.devices[event.device.index()].rank);
        if until_us.is_some_and(|until_us| launch_us.is_none_or(|launch_us| launch_us >= *until_us)) {
            continue;
        }
        let stream = (event.device, event.stream);
        let Some(previous_us) = previous.insert(stream, end_us(span)) else {
            // There the first event of a stream is `other`, with no time.
            idle.insert((event.device, event.stream, 2), (0, 0, 0));
            continue;
        };
        let gap_us = start_us(span.start_ns) - previous_us;
        let class = match launch_us {
            Some(launch_us) if launch_us > previous_us => 0,
            _ if gap_us < KERNEL_WAIT_BELOW_US => 1,
            _ => 2,
        };
        let (us, gaps, longest_us) = idle.entry((event.device, event.stream, class)).or_insert((0, 0, i64::MIN));
        *longest_us = if *gaps == 0 { gap_us } else { (*longest_us).max(gap_us) };
        (*us, *gaps) = (us.saturating_add(gap_us), *gaps + 1);
    }
    idle
}

/// Microseconds as a double, which is what the program computes with: of today's Unix time it holds quarters.
fn written_us(ns: i64) -> f64 {
    ns.div_euclid(1_000) as f64 + ns.rem_euclid(1_000) as f64 / 1_000.0
}

/// Where the last step of each rank starts that has several labelled ones.
fn last_steps_us(trace: &Trace, start_us: impl Fn(i64) -> i64) -> BTreeMap<u32, i64> {
    let mut steps: BTreeMap<u32, BTreeSet<(i64, i64)>> = BTreeMap::new();
    for step in trace.steps.iter().filter(|step| step.source == StepSource::Label) {
        steps.entry(step.rank).or_default().insert((start_us(step.span.start_ns), step.number));
    }
    let several = steps.into_iter().filter(|(_, steps)| steps.len() > 1);
    several.filter_map(|(rank, steps)| Some((rank, steps.last()?.0))).collect()
}

columns! {
    /// The idle time of one stream in one class.
    pub(super) struct HtaIdleCause {
        /// The rank that uses the device.
        rank: u32 => Count,
        /// The number of the device within the rank.
        device: i64 => Count,
        /// The stream of the device.
        stream: Option<i64> => Count,
        /// The class of the idle time: `host_wait`, `kernel_wait` or `other`.
        cause: &'static str => Text,
        /// Idle time of the stream in this class.
        idle_ns: i64 => Nanoseconds,
        /// `idle_ns` as a share of all idle time of the stream.
        idle_ratio: Option<f64> => Ratio,
        /// Number of gaps.
        gaps: i64 => Count,
        /// The longest gap.
        longest_ns: i64 => Nanoseconds,
    }
}

pub(super) fn rows(trace: &Trace, selection: &Selection) -> Vec<HtaIdleCause> {
    let idle = idle(trace, selection);
    let mut total: BTreeMap<(DeviceId, Option<i64>), i64> = BTreeMap::new();
    idle.iter().for_each(|((device, stream, _), (us, _, _))| *total.entry((*device, *stream)).or_insert(0) += us);
    let row = |((device, stream, class), (us, gaps, longest_us)): (_, (i64, i64, i64))| {
        let (known, total_us) = (&trace.devices[DeviceId::index(device)], total[&(device, stream)]);
        HtaIdleCause {
            rank: known.rank,
            device: known.ordinal,
            stream,
            cause: CLASSES[class],
            idle_ns: us.saturating_mul(1_000),
            idle_ratio: (total_us != 0).then(|| us as f64 / total_us as f64),
            gaps,
            longest_ns: longest_us.saturating_mul(1_000),
        }
    };
    idle.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;

    fn check(trace: &Trace, expected: &[(i64, &str, (i64, i64, i64))]) {
        let rows = idle(trace, &Selection::default());
        let rows: Vec<_> = rows.into_iter().map(|((_, stream, class), row)| (stream, CLASSES[class], row)).collect();
        assert_eq!(rows, expected.iter().map(|(stream, class, row)| (Some(*stream), *class, *row)).collect::<Vec<_>>());
    }

    #[test]
    fn neighbours_on_a_stream_wait_for_the_host_the_device_or_something_else() {
        let dots = ".".repeat(27);
        let trace = drawn(&format!(
            "rank 0 launch 1 CD....E
             rank 0 stream 7 ..CD.....E
             rank 0 stream 9 ....K..K{dots}..K{dots}...K"
        ));
        check(
            &trace,
            &[
                (7, "host_wait", (5, 1, 5)),
                (7, "kernel_wait", (0, 1, 0)),
                (7, "other", (0, 0, 0)),
                (9, "kernel_wait", (2 + 29, 2, 29)),
                (9, "other", (30, 1, 30)),
            ],
        );
    }

    #[test]
    fn times_are_whole_microseconds_of_the_source() {
        let mut trace = drawn("rank 0 launch 1 C.D.\nrank 0 stream 7 .C.D");
        // Ends at 2,000 ns and begins at 3,000: between 2 and 3 us, until the source's clock says 2.4 and 3.4.
        check(&trace, &[(7, "kernel_wait", (1, 1, 1)), (7, "other", (0, 0, 0))]);
        trace.start_source_ns = 400;
        check(&trace, &[(7, "host_wait", (2, 1, 2)), (7, "other", (0, 0, 0))]);
        // Of today's time in microseconds a double holds quarters: 0.1 is none.
        trace.start_source_ns = 1_712_195_495_519_689_100;
        check(&trace, &[(7, "kernel_wait", (1, 1, 1)), (7, "other", (0, 0, 0))]);
    }

    #[test]
    fn of_several_labelled_steps_the_last_is_left_out() {
        let drawing = |steps: &str| {
            drawn(&format!(
                "rank 0 step {steps}
                 rank 0 launch 1 C.D...E.
                 rank 0 stream 7 .C.D.K.E"
            ))
        };
        let first = (7, "kernel_wait", (1, 1, 1));
        check(&drawing("00001111"), &[first, (7, "other", (0, 0, 0))]);
        check(&drawing("00000000"), &[(7, "kernel_wait", (3, 3, 1)), (7, "other", (0, 0, 0))]);
    }
}

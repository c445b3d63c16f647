//! Idle time between neighbours of each stream in three classes, as Holistic Trace Analysis has it.

use crate::{Selection, Table, Unit};
use std::collections::BTreeMap;
use stepscope_trace::{DeviceEvent, DeviceId, Trace};

/// Below this, the time between two kernels counts as the device's own delay.
const KERNEL_WAIT_BELOW_NS: i64 = 30;
const CLASSES: [&str; 3] = ["host_wait", "kernel_wait", "other"];

/// By device, stream and class: idle time, gaps, the longest.
type Idle = BTreeMap<(DeviceId, Option<i64>, usize), (i64, i64, i64)>;

fn idle(trace: &Trace, selection: &Selection) -> Idle {
    let mut idle = Idle::new();
    let mut previous: BTreeMap<(DeviceId, Option<i64>), i64> = BTreeMap::new();
    for event in selection.device_events(trace) {
        let span = trace.slices.span(event.slice);
        if let Some(end_ns) = previous.insert((event.device, event.stream), span.end_ns) {
            let gap_ns = span.start_ns - end_ns;
            let class = class(trace, &event, end_ns, gap_ns);
            let (ns, gaps, longest_ns) = idle.entry((event.device, event.stream, class)).or_insert((0, 0, i64::MIN));
            (*ns, *gaps, *longest_ns) = (ns.saturating_add(gap_ns), *gaps + 1, (*longest_ns).max(gap_ns));
        }
    }
    idle
}

fn class(trace: &Trace, event: &DeviceEvent, end_ns: i64, gap_ns: i64) -> usize {
    match event.launch {
        Some(launch) if trace.slices.start_ns[launch.index()] > end_ns => 0,
        _ if gap_ns < KERNEL_WAIT_BELOW_NS => 1,
        _ => 2,
    }
}

pub(super) fn table(trace: &Trace, selection: &Selection) -> Table {
    let rows: Vec<_> = idle(trace, selection).into_iter().collect();
    let mut total: BTreeMap<(DeviceId, Option<i64>), i64> = BTreeMap::new();
    rows.iter().for_each(|((device, stream, _), (ns, _, _))| *total.entry((*device, *stream)).or_insert(0) += ns);
    let ratio = |ns: i64, total_ns: i64| (total_ns != 0).then(|| ns as f64 / total_ns as f64);
    Table::default()
        .count("rank", rows.iter().map(|row| i64::from(trace.devices[row.0.0.index()].rank)))
        .count("device", rows.iter().map(|row| trace.devices[row.0.0.index()].ordinal))
        .count("stream", rows.iter().map(|row| row.0.1))
        .text("cause", rows.iter().map(|row| Some(CLASSES[row.0.2])))
        .ns("idle_ns", rows.iter().map(|row| row.1.0))
        .float("idle_ratio", Unit::Ratio, rows.iter().map(|row| ratio(row.1.0, total[&(row.0.0, row.0.1)])))
        .count("gaps", rows.iter().map(|row| row.1.1))
        .ns("longest_ns", rows.iter().map(|row| row.1.2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn neighbours_on_a_stream_wait_for_the_host_the_device_or_something_else() {
        let trace = drawn(
            "rank 0 launch 1 CD....E....
             rank 0 stream 7 ..CD.....E.
             rank 0 stream 9 ....K..K...",
        );
        let rows: Vec<_> =
            idle(&trace, &Selection::default()).into_iter().map(|(key, row)| (key.1, CLASSES[key.2], row)).collect();
        let expected = [
            (Some(7), "host_wait", (5_000, 1, 5_000)),
            (Some(7), "kernel_wait", (0, 1, 0)),
            (Some(9), "other", (2_000, 1, 2_000)),
        ];
        assert_eq!(rows, expected);
    }
}

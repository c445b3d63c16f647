//! When the devices of a rank do anything but communicate, as coarse as a picture of many ranks needs it.
//!
//! ```text
//! kernels, copies   ▪▪ ▪▪▪▪▪▪        ▪▪▪▪ ▪
//! as work           ▪▪▪▪▪▪▪▪▪        ▪▪▪▪▪▪      short gaps are closed
//! ```

use crate::AnalysisContext;
use crate::device_busy::DeviceBusy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::Trace;

/// Gaps shorter than this part of a rank's device time are closed: no rank has more stretches of work.
const RESOLUTION: i64 = 1_024;

/// When the devices of a rank do anything but communicate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DeviceWork {
    /// The rank.
    pub rank: u32,
    /// When they work, in order and without overlaps. Gaps of less than a thousandth of the recording are closed.
    pub spans: Vec<Span>,
}

/// The work of each rank that has device events.
pub(crate) fn device_work(context: &AnalysisContext<'_>) -> Vec<DeviceWork> {
    of_devices(context.trace, context.get::<Vec<DeviceBusy>>())
}

fn of_devices(trace: &Trace, busy: &[DeviceBusy]) -> Vec<DeviceWork> {
    let mut of_rank: BTreeMap<u32, IntervalSet> = BTreeMap::new();
    for (device, busy) in trace.devices.iter().zip(busy).filter(|(_, busy)| busy.has_events) {
        let work = busy.compute.union(&busy.memcpy).union(&busy.memset);
        let of_rank = of_rank.entry(device.rank).or_default();
        *of_rank = of_rank.union(&work);
    }
    of_rank.into_iter().map(|(rank, work)| DeviceWork { rank, spans: coarse(&work) }).collect()
}

/// The spans of `work` without its short gaps.
fn coarse(work: &IntervalSet) -> Vec<Span> {
    let shortest_ns = work.hull().map_or(0, |hull| hull.duration_ns() / RESOLUTION);
    let mut spans: Vec<Span> = Vec::new();
    for span in work.spans() {
        match spans.last_mut() {
            Some(last) if span.start_ns - last.end_ns <= shortest_ns => last.end_ns = span.end_ns,
            _ => spans.push(*span),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn work_of_all_devices_of_a_rank_is_together() {
        let trace =
            drawn("rank 0 stream 7 CC..NN..H\nrank 0 stream 9 .CC......\nrank 1 stream 7 NN.......\nrank 2 cpu 1 a");
        let work = device_work(&AnalysisContext::new(&trace, &Selection::default()));
        let spans = vec![Span::new(0, 3_000), Span::new(8_000, 9_000)];
        assert_eq!(work, [DeviceWork { rank: 0, spans }, DeviceWork { rank: 1, spans: Vec::new() }]);
    }

    proptest! {
        #[test]
        fn only_short_gaps_are_closed(gaps in prop::collection::vec((1_i64..2_000, 1_i64..50), 1..3_000)) {
            let mut end_ns = 0;
            let work: IntervalSet = gaps.iter().map(|(gap_ns, dur_ns)| {
                let start_ns = end_ns + gap_ns;
                end_ns = start_ns + dur_ns;
                Span::new(start_ns, end_ns)
            }).collect();
            let spans = coarse(&work);
            let hull = work.hull().expect("it has spans");
            let closed: IntervalSet = spans.iter().copied().collect();
            prop_assert_eq!(&closed.spans(), &spans);
            prop_assert!(spans.len() as i64 <= RESOLUTION + 1);
            prop_assert_eq!(closed.hull(), Some(hull));
            prop_assert_eq!(work.subtract(&closed), IntervalSet::default());
            let gaps = IntervalSet::of(hull).subtract(&work);
            let long = gaps.spans().iter().filter(|gap| gap.duration_ns() > hull.duration_ns() / RESOLUTION);
            let open = IntervalSet::of(hull).subtract(&closed);
            prop_assert_eq!(long.copied().collect::<Vec<_>>(), open.spans());
        }
    }
}

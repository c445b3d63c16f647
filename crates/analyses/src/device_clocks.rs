//! # Definition
//! For each device: how many of its events start before the call on the host that launched them, and by how much at most.
//! No device can start what it was not asked for: each such event shows that the device's clock, as the recording
//! aligned it, is ahead of the host's.
//!
//! - The *lead* of a device event is the start of its launch less its own start, where that is above 0. The clock is ahead
//!   by at least the largest lead.
//! - The *delay* is the opposite: its start less that of its launch. A device's clock that is behind the host's makes all of
//!   them longer, by no more than the shortest.
//!
//! # Units
//! Nanoseconds. Counts of device events.
//!
//! # Source
//! Device events and the calls on the host that launched them, linked by what the recording says.
//!
//! # Edge cases
//! Device events without a known launch are left out, and a device that has no others has no row. Nothing is corrected:
//! what other analyses say of the host and the device at one moment is wrong by as much. A lead may also come from a
//! wrong link, as where a correlation id is used twice: one that is much larger than the others says so. For one step, the
//! device events launched on the host inside it.

use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use std::collections::BTreeMap;
use stepscope_trace::{DeviceId, SliceId, Trace};

columns! {
    /// How the clock of one device agrees with that of its host.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct DeviceClock {
        /// The rank that uses the device.
        rank: u32 => Count,
        /// The number of the device within the rank.
        device: i64 => Count,
        /// Number of device events whose launch is known.
        device_events: i64 => Count,
        /// Number of them that start before their launch.
        before_launch: i64 => Count,
        /// By how much the earliest of those starts before its launch. Absent when there is none.
        lead_max_ns: Option<i64> => Nanoseconds,
        /// The device event with the largest lead.
        earliest: Option<SliceId> => Text,
        /// The shortest time from the start of a launch to the start of its device event. Absent when all start before.
        delay_min_ns: Option<i64> => Nanoseconds,
    }
}

/// Every device asked for that has linked events, by rank and number.
pub fn device_clocks(trace: &Trace, selection: &Selection) -> Vec<DeviceClock> {
    let mut rows: BTreeMap<DeviceId, DeviceClock> = BTreeMap::new();
    let start_ns = |slice: SliceId| trace.slices.start_ns[slice.index()];
    for event in selection.device_events(trace) {
        let Some(launch) = event.launch else { continue };
        let row = rows.entry(event.device).or_insert_with(|| empty(trace, event.device));
        row.device_events += 1;
        let delay_ns = start_ns(event.slice).saturating_sub(start_ns(launch));
        if delay_ns >= 0 {
            row.delay_min_ns = Some(row.delay_min_ns.map_or(delay_ns, |known_ns| known_ns.min(delay_ns)));
            continue;
        }
        row.before_launch += 1;
        if row.lead_max_ns.is_none_or(|known_ns| known_ns < -delay_ns) {
            (row.lead_max_ns, row.earliest) = (Some(-delay_ns), Some(event.slice));
        }
    }
    let mut rows: Vec<DeviceClock> = rows.into_values().collect();
    rows.sort_by_key(|row| (row.rank, row.device));
    rows
}

fn empty(trace: &Trace, device: DeviceId) -> DeviceClock {
    let device = &trace.devices[device.index()];
    DeviceClock {
        rank: device.rank,
        device: device.ordinal,
        device_events: 0,
        before_launch: 0,
        lead_max_ns: None,
        earliest: None,
        delay_min_ns: None,
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRankKept);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &device_clocks(context.trace, context.selection))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;
    use stepscope_trace::simulated::Job;

    fn line(trace: &Trace, row: &DeviceClock) -> String {
        let us = |ns: Option<i64>| ns.map_or("-".into(), |ns| format!("{} us", ns / 1_000));
        let [lead, delay] = [row.lead_max_ns, row.delay_min_ns].map(us);
        let earliest =
            row.earliest.map_or("-".into(), |id| format!("{} us", trace.slices.start_ns[id.index()] / 1_000));
        format!(
            "rank {} device {}: {} of {} by up to {lead} at {earliest}, others after {delay}",
            row.rank, row.device, row.before_launch, row.device_events
        )
    }

    #[track_caller]
    fn check(drawing: &str, selection: Selection, expected: &[&str]) {
        let trace = drawn(drawing);
        let rows = device_clocks(&trace, &selection);
        assert_eq!(rows.iter().map(|row| line(&trace, row)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_starts_before_its_launch_is_counted_with_the_largest_lead() {
        let drawing = "rank 0 launch 1 .....C.....C.....C.C
                       rank 0 stream 7 ....CC..CC........CC
                       rank 1 launch 1 C.C.................
                       rank 1 stream 7 C...CC..............
                       rank 2 launch 1 ....................
                       rank 2 stream 7 CC..................";
        let expected = [
            "rank 0 device 0: 2 of 3 by up to 3 us at 8 us, others after 1 us",
            "rank 1 device 0: 0 of 2 by up to - at -, others after 0 us",
        ];
        let trace = drawn(drawing);
        assert_eq!(trace.device_events.iter().filter(|event| event.launch.is_some()).count(), 5);
        check(drawing, Selection::default(), &expected);
        check(drawing, Selection { ranks: 1.into(), ..Selection::default() }, &expected[1..]);
    }

    #[test]
    fn a_job_whose_clocks_agree_has_no_lead() {
        let trace = Job::default().run().trace();
        let rows = device_clocks(&trace, &Selection::default());
        assert_eq!(rows.len(), 4);
        assert!(rows.iter().all(|row| row.before_launch == 0 && row.delay_min_ns >= Some(0)));
    }

    proptest! {
        #[test]
        fn it_is_what_each_event_says(
            rows in prop::collection::vec(("[.CN]{25}", "[.CNND]{25}"), 1..4),
        ) {
            let row = |(rank, (launch, stream)): (usize, &(String, String))| {
                format!("rank {rank} launch 1 {launch}\nrank {rank} stream 7 {stream}\n")
            };
            let trace = drawn(&rows.iter().enumerate().map(row).collect::<String>());
            let start_ns = |slice: SliceId| trace.slices.start_ns[slice.index()];
            let mut expected: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
            for event in trace.device_events.iter() {
                if let Some(launch) = event.launch {
                    let delay_ns = start_ns(event.slice) - start_ns(launch);
                    expected.entry(trace.devices[event.device.index()].rank).or_default().push(delay_ns);
                }
            }
            let found = device_clocks(&trace, &Selection::default());
            prop_assert_eq!(found.len(), expected.len());
            let mut before = 0;
            for (row, (rank, delays_ns)) in found.iter().zip(&expected) {
                let leads = || delays_ns.iter().filter(|ns| **ns < 0).map(|ns| -ns);
                prop_assert_eq!((row.rank, row.device_events), (*rank, delays_ns.len() as i64));
                prop_assert_eq!((row.before_launch, row.lead_max_ns), (leads().count() as i64, leads().max()));
                prop_assert_eq!(row.delay_min_ns, delays_ns.iter().copied().filter(|ns| *ns >= 0).min());
                before += row.before_launch;
            }
            let code = stepscope_trace::FindingCode::DeviceEventBeforeLaunch;
            prop_assert_eq!(trace.findings.count(code), before as u64, "the finding counts the same");
        }
    }
}

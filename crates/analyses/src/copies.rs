//! # Definition
//! For each device, direction and kind of host memory, how often data was copied, how much, how long and how fast.
//! The time is the sum of the copies' durations, so copies that run at the same time both count. The bandwidth is the
//! bytes of the copies over their time. Pageable host memory is what a program has by default: the driver has to copy it
//! through memory of its own and the host waits meanwhile; pinned memory the device can read and write by itself. What the
//! link carries is what its generation and its lanes of PCIe carry in one direction, at the fastest that was sampled in
//! all of the recording: links that have nothing to do are slow.
//!
//! # Units
//! Counts of copies; bytes; nanoseconds; bytes in a second.
//!
//! # Source
//! Copies as the device's profiler recorded them: their direction, their bytes, and whether the host's side is pageable.
//! Links as the driver says them through NVML.
//!
//! # Edge cases
//! Fills are no copies. `memory` is absent where the recording does not say it, as for copies within a device. Copies
//! whose bytes are not known are counted and take time, but have no part in bytes, sizes and bandwidth; where no copy
//! has both bytes and a duration there is no bandwidth. Copies between devices and within one have no link, since they go
//! other ways, nor have devices that reach the host by another link than PCIe (GH200, GB200, GB300), and copies that were
//! faster than the link whenever it was sampled: it was asleep then. Bandwidth and mean size are rounded to whole bytes. For one
//! step, the copies launched on the host inside it.

use crate::pcie_link::PcieLink;
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use std::collections::BTreeMap;
use stepscope_trace::{CopyDirection, DeviceEventClass, DeviceId, Trace};

columns! {
    /// All copies of one kind on one device.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Copies {
        /// The rank that uses the device.
        rank: u32 => Count,
        /// The number of the device within the rank.
        device: i64 => Count,
        /// From where to where the copies go.
        direction: CopyDirection => Text,
        /// Whether the memory of the host is pageable. Absent when not known.
        is_pageable: Option<bool>,
        /// The memory of the host: `pageable` or `pinned`. Absent when not known.
        memory => Text = |row| row.is_pageable.map(|is_pageable| if is_pageable { "pageable" } else { "pinned" }),
        /// Number of copies.
        count: i64 => Count,
        /// Sum of the durations of the copies.
        total_ns: i64 => Nanoseconds,
        /// Bytes copied, of the copies whose bytes are known.
        bytes: Option<i64> => Bytes,
        /// Bytes over time, of the copies that have both.
        bandwidth_bytes_per_s: Option<i64> => BytesPerSecond,
        /// What the device's link carries in one direction. Absent where it was not sampled, and of copies that do not go
        /// from or to the host.
        link_bandwidth_bytes_per_s: Option<i64> => BytesPerSecond,
        /// `bandwidth_bytes_per_s` over that.
        link_peak_ratio => Ratio = Copies::link_peak_ratio,
        /// Bytes of the smallest copy.
        bytes_min: Option<i64> => Bytes,
        /// Mean bytes of a copy.
        bytes_mean: Option<i64> => Bytes,
        /// Bytes of the largest copy.
        bytes_max: Option<i64> => Bytes,
    }
}

impl Copies {
    fn link_peak_ratio(&self) -> Option<f64> {
        Some(self.bandwidth_bytes_per_s? as f64 / self.link_bandwidth_bytes_per_s? as f64)
    }
}

/// Every kind of copy asked for, ordered by rank and device, then the longest total first.
pub fn copies(trace: &Trace, selection: &Selection) -> Vec<Copies> {
    let mut sums: BTreeMap<(DeviceId, CopyDirection, Option<bool>), Sums> = BTreeMap::new();
    for event in selection.device_events(trace) {
        let DeviceEventClass::Memcpy(direction) = event.class else { continue };
        let sums = sums.entry((event.device, direction, event.is_pageable)).or_default();
        sums.add(event.bytes, trace.slices.dur_ns[event.slice.index()]);
    }
    let mut rows: Vec<Copies> = sums.iter().map(|(key, sums)| row(trace, *key, sums)).collect();
    rows.sort_by_key(|row| (row.rank, row.device, std::cmp::Reverse(row.total_ns)));
    rows
}

#[derive(Default)]
struct Sums {
    count: i64,
    total_ns: i64,
    sized: i64,
    bytes: i128,
    bytes_min: Option<i64>,
    bytes_max: Option<i64>,
    /// Bytes and time of copies that have both.
    timed: (i128, i128),
}

impl Sums {
    fn add(&mut self, bytes: Option<i64>, dur_ns: i64) {
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(dur_ns);
        let Some(bytes) = bytes else { return };
        self.sized += 1;
        self.bytes += i128::from(bytes);
        self.bytes_min = Some(self.bytes_min.map_or(bytes, |least| least.min(bytes)));
        self.bytes_max = self.bytes_max.max(Some(bytes));
        if dur_ns > 0 {
            self.timed = (self.timed.0 + i128::from(bytes), self.timed.1 + i128::from(dur_ns));
        }
    }
}

fn row(trace: &Trace, key: (DeviceId, CopyDirection, Option<bool>), sums: &Sums) -> Copies {
    let (device, direction, is_pageable) = key;
    let is_over_link = matches!(direction, CopyDirection::HostToDevice | CopyDirection::DeviceToHost);
    let links = PcieLink::samples(trace, device).filter(|_| is_over_link);
    let fastest = links.map(|(_, link)| link.bytes_per_s).max();
    let device = &trace.devices[device.index()];
    let whole = |value: i128| i64::try_from(value).unwrap_or(i64::MAX);
    let rounded = |part: i128, all: i128| (all > 0).then(|| whole((part + all / 2) / all));
    let bandwidth_bytes_per_s = rounded(sums.timed.0.saturating_mul(1_000_000_000), sums.timed.1);
    // What was faster than its link was sampled when the link was asleep.
    let is_possible = |link: &i64| bandwidth_bytes_per_s.is_none_or(|rate| rate <= *link);
    Copies {
        rank: device.rank,
        device: device.ordinal,
        direction,
        is_pageable,
        count: sums.count,
        total_ns: sums.total_ns,
        bytes: (sums.sized > 0).then(|| whole(sums.bytes)),
        bytes_min: sums.bytes_min,
        bytes_mean: rounded(sums.bytes, i128::from(sums.sized)),
        bytes_max: sums.bytes_max,
        link_bandwidth_bytes_per_s: fastest.filter(is_possible),
        bandwidth_bytes_per_s,
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRankKept);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &copies(context.trace, context.selection))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;
    use stepscope_trace::{
        Counter, Device, DeviceEvent, Process, ProcessId, SliceKind, TraceBuilder, Track, TrackKind,
    };

    /// Duration, bytes, direction, pageable.
    type Copy = (i64, Option<i64>, CopyDirection, Option<bool>);

    fn trace_of(rows: &[Copy]) -> Trace {
        let mut builder = TraceBuilder::new("copies");
        let process = builder.add_process(Process::default());
        let device = builder.add_device(Device::default());
        let track = builder.add_track(Track::new(TrackKind::Stream, process, "stream 7"));
        let name = builder.strings.intern("copy");
        for (at, (dur_ns, bytes, direction, is_pageable)) in rows.iter().copied().enumerate() {
            let slice = builder.add_slice(track, SliceKind::Memcpy, name, at as i64 * 100, dur_ns);
            let event = DeviceEvent::new(slice, device, DeviceEventClass::Memcpy(direction));
            builder.add_device_event(DeviceEvent { bytes, is_pageable, ..event });
        }
        builder.finish()
    }

    #[test]
    fn kinds_have_rows_of_their_own_the_longest_first() {
        use CopyDirection::{DeviceToDevice, HostToDevice};
        let rows = [
            (10, Some(100), HostToDevice, Some(true)),
            (20, Some(300), HostToDevice, Some(false)),
            (40, Some(500), HostToDevice, Some(true)),
            (30, None, DeviceToDevice, None),
        ];
        let found = copies(&trace_of(&rows), &Selection::default());
        let kinds: Vec<_> = found.iter().map(|row| (row.direction, row.is_pageable, row.count, row.bytes)).collect();
        let expected = [
            (HostToDevice, Some(true), 2, Some(600)),
            (DeviceToDevice, None, 1, None),
            (HostToDevice, Some(false), 1, Some(300)),
        ];
        assert_eq!(kinds, expected);
        assert_eq!(found[0].bandwidth_bytes_per_s, Some(12_000_000_000));
        assert_eq!((found[0].bytes_min, found[0].bytes_mean, found[0].bytes_max), (Some(100), Some(300), Some(500)));
        assert_eq!((found[1].bandwidth_bytes_per_s, found[1].bytes_mean), (None, None));
    }

    #[test]
    fn copies_from_and_to_the_host_have_what_their_link_carries() {
        use CopyDirection::{DeviceToDevice, DeviceToHost};
        let mut trace =
            trace_of(&[(100, Some(1_600), DeviceToHost, Some(false)), (40, Some(500), DeviceToDevice, None)]);
        let links = |trace: &Trace| -> Vec<(Option<i64>, Option<f64>)> {
            let rows = copies(trace, &Selection::default());
            rows.iter().map(|row| (row.link_bandwidth_bytes_per_s, row.link_peak_ratio())).collect()
        };
        assert_eq!(links(&trace), [(None, None), (None, None)]);
        // The link sleeps, and is then PCIe 4 with 16 lanes.
        for (name, values) in [("GPU 0 PCIe generation", [1.0, 4.0]), ("GPU 0 PCIe width (lanes)", [16.0, 16.0])] {
            let (name, value) = (trace.strings.intern(name), values.to_vec());
            let time_ns = vec![0, 1_000];
            trace.counters.push(Counter { name, process: ProcessId(0), device: None, time_ns, value });
        }
        let expected = 16.0 / 31.504;
        assert_eq!(links(&trace), [(Some(31_504_000_000), Some(expected)), (None, None)]);
        trace.counters[0].value[1] = 1.0;
        assert_eq!(links(&trace), [(None, None), (None, None)], "faster than the link, which slept each time");
        trace.counters[0].value[1] = 4.0;
        trace.devices[0].name = Some("NVIDIA GH200 480GB".into());
        assert_eq!(links(&trace), [(None, None), (None, None)]);
    }

    #[test]
    fn a_step_has_the_copies_launched_in_it() {
        let drawing = "rank 0 step     0011
                       rank 0 launch 1 H.D.
                       rank 0 stream 7 .HZD";
        let found = copies(&drawn(drawing), &Selection { step: Some(1), ..Selection::default() });
        let kinds: Vec<_> = found.iter().map(|row| (row.direction, row.count, row.total_ns)).collect();
        assert_eq!(kinds, [(CopyDirection::DeviceToHost, 1, 1_000)]);
    }

    #[test]
    fn absurd_sizes_stay_within_bounds() {
        let rows = vec![(1, Some(i64::MAX), CopyDirection::PeerToPeer, None); 3];
        let row = copies(&trace_of(&rows), &Selection::default())[0];
        assert_eq!((row.bytes, row.bandwidth_bytes_per_s), (Some(i64::MAX), Some(i64::MAX)));
    }

    proptest! {
        #[test]
        fn sums_equal_a_look_at_each_kind(
            rows in prop::collection::vec((0_i64..90, prop::option::of(0_i64..1_000), any::<bool>(), prop::option::of(any::<bool>())), 1..20),
        ) {
            let direction = |is_up: bool| if is_up { CopyDirection::HostToDevice } else { CopyDirection::DeviceToHost };
            let rows: Vec<Copy> = rows.into_iter().map(|(dur, bytes, is_up, pageable)| (dur, bytes, direction(is_up), pageable)).collect();
            let found = copies(&trace_of(&rows), &Selection::default());
            prop_assert_eq!(found.iter().map(|row| row.count).sum::<i64>(), rows.len() as i64);
            for row in found {
                let own = || rows.iter().filter(|(_, _, direction, pageable)| (*direction, *pageable) == (row.direction, row.is_pageable));
                let sizes: Vec<i64> = own().filter_map(|copy| copy.1).collect();
                prop_assert_eq!(row.total_ns, own().map(|copy| copy.0).sum::<i64>());
                prop_assert_eq!(row.bytes, (!sizes.is_empty()).then(|| sizes.iter().sum::<i64>()));
                prop_assert_eq!(row.bytes_min, sizes.iter().min().copied());
                prop_assert_eq!(row.bytes_max, sizes.iter().max().copied());
                let timed: Vec<(i64, i64)> = own().filter_map(|copy| Some((copy.1?, copy.0)).filter(|_| copy.0 > 0)).collect();
                let (bytes, ns) = timed.iter().fold((0, 0), |(bytes, ns), (b, n)| (bytes + b, ns + n));
                let exact = bytes as f64 * 1e9 / ns as f64;
                prop_assert_eq!(row.bandwidth_bytes_per_s.is_some(), ns > 0);
                prop_assert!(row.bandwidth_bytes_per_s.is_none_or(|found| (found as f64 - exact).abs() <= 0.5 + exact * 1e-12));
            }
        }
    }
}

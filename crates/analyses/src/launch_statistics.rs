//! # Definition
//! For each call that launches device work: how long the calls take, and how long their device events wait to start.
//! The delay of a device event is its start less the end of its launch, at least 0. An event that starts before its
//! launch has returned is early: its delay is 0. Outliers are the events whose delay is above the 99th percentile of
//! their row. An event is short when it takes less time than the host took to launch it; a launch of several events
//! counts for each of them in equal parts. Many short events say that the host, not the device, sets the pace.
//!
//! A row is all launches of a rank by one call of the device's API, or, with `--group-by name`, all launches of a rank
//! of one device event's name. Each rank begins with a row without a name, for all its launches. Percentiles are values
//! that occurred: the smallest that at least that share of values do not exceed.
//!
//! # Units
//! Nanoseconds; counts of launches, and of device events.
//!
//! # Source
//! Calls on the host and the device events that they launched, linked by what the recording says. Clocks of host and
//! device are as the recording aligned them.
//!
//! # Edge cases
//! A call that launches nothing is no launch. Device events without a known launch are left out. The delay of a launch
//! of several device events includes, for the later ones, the time of the earlier ones. For one step, the launches on
//! the host inside it. Means are rounded to whole nanoseconds.

use crate::{Coverage, GroupBy, Outcome, Selection, Table};
use rustc_hash::FxHashMap;
use stepscope_base::{StringId, percentiles::nearest_rank_of_unsorted};
use stepscope_trace::{DeviceEvent, Findings, SliceId, Trace};

/// All launches of one row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaunchStatistics {
    /// The rank.
    pub rank: u32,
    /// The call, or the device event; `None` for all of the rank.
    pub name: Option<String>,
    /// Calls that launched something.
    pub launches: i64,
    /// What they launched.
    pub device_events: i64,
    /// Durations of the launches.
    pub launch: Durations,
    /// Time from the end of a launch to the start of its device event.
    pub delay: Durations,
    /// Device events whose delay is above the 99th percentile.
    pub delay_outliers: i64,
    /// Device events that start before their launch has returned.
    pub early_events: i64,
    /// Device events that take less time than their part of the launch.
    pub short_events: i64,
    /// Sum of the device events' durations.
    pub device_total_ns: i64,
}

/// What is told of a row's durations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Durations {
    /// Their sum.
    pub total_ns: i64,
    /// Their mean.
    pub mean_ns: i64,
    /// The shortest.
    pub min_ns: i64,
    /// The median.
    pub p50_ns: i64,
    /// What 99 of 100 do not exceed.
    pub p99_ns: i64,
    /// The longest.
    pub max_ns: i64,
}

impl Durations {
    /// Of at least one value; they are reordered.
    fn of(values: &mut [i64]) -> Self {
        let total: i128 = values.iter().map(|ns| i128::from(*ns)).sum();
        let count = values.len() as i128;
        let (min_ns, max_ns) = values.iter().fold((i64::MAX, 0), |(least, most), ns| (least.min(*ns), most.max(*ns)));
        Self {
            total_ns: i64::try_from(total).unwrap_or(i64::MAX),
            mean_ns: ((total + count / 2) / count) as i64,
            min_ns,
            p50_ns: nearest_rank_of_unsorted(values, 50).unwrap_or(0),
            p99_ns: nearest_rank_of_unsorted(values, 99).unwrap_or(0),
            max_ns,
        }
    }
}

/// What is collected for one row.
#[derive(Clone, Default)]
struct Group {
    launches_ns: Vec<i64>,
    delays_ns: Vec<i64>,
    early_events: i64,
    short_events: i64,
    device_total_ns: i64,
}

impl Group {
    fn add_event(&mut self, event: &Event) {
        self.delays_ns.push(event.delay_ns.max(0));
        self.early_events += i64::from(event.delay_ns < 0);
        self.short_events += i64::from(event.is_short);
        self.device_total_ns = self.device_total_ns.saturating_add(event.dur_ns);
    }

    fn append(&mut self, other: &Self) {
        self.launches_ns.extend(&other.launches_ns);
        self.delays_ns.extend(&other.delays_ns);
        self.early_events += other.early_events;
        self.short_events += other.short_events;
        self.device_total_ns = self.device_total_ns.saturating_add(other.device_total_ns);
    }

    fn finish(mut self, rank: u32, name: Option<String>) -> LaunchStatistics {
        let delay = Durations::of(&mut self.delays_ns);
        LaunchStatistics {
            rank,
            name,
            launches: self.launches_ns.len() as i64,
            device_events: self.delays_ns.len() as i64,
            launch: Durations::of(&mut self.launches_ns),
            delay,
            delay_outliers: self.delays_ns.iter().filter(|ns| **ns > delay.p99_ns).count() as i64,
            early_events: self.early_events,
            short_events: self.short_events,
            device_total_ns: self.device_total_ns,
        }
    }
}

/// One device event and its launch.
struct Event {
    dur_ns: i64,
    /// Below 0 for an early one.
    delay_ns: i64,
    is_short: bool,
}

/// Launches by rank, each rank's total first, then the longest total of launches first, then by name.
pub fn launch_statistics(trace: &Trace, selection: &Selection) -> Vec<LaunchStatistics> {
    let is_by_event = selection.group_by == Some(GroupBy::Name);
    let events: Vec<(&DeviceEvent, SliceId)> =
        selection.device_events(trace).filter_map(|event| Some((event, event.launch?))).collect();
    let mut events_of = vec![0_u32; trace.slices.len()];
    events.iter().for_each(|(_, launch)| events_of[launch.index()] += 1);
    let mut groups: FxHashMap<(u32, StringId), usize> = FxHashMap::default();
    let mut rows: Vec<((u32, StringId), Group)> = Vec::new();
    let mut totals: FxHashMap<u32, Vec<i64>> = FxHashMap::default();
    // Launches of several events, which each row that has one of them counts once.
    let mut shared: Vec<(usize, SliceId)> = Vec::new();
    for (event, launch) in &events {
        let rank = trace.devices[event.device.index()].rank;
        let named = if is_by_event { event.slice } else { *launch };
        let key = (rank, trace.slices.name[named.index()]);
        let at = *groups.entry(key).or_insert_with(|| {
            rows.push((key, Group::default()));
            rows.len() - 1
        });
        let siblings = events_of[launch.index()];
        let launch_ns = trace.slices.dur_ns[launch.index()];
        rows[at].1.add_event(&event_of(trace, event, *launch, siblings));
        if siblings == 1 {
            rows[at].1.launches_ns.push(launch_ns);
        } else {
            shared.push((at, *launch));
            // The rank's total counts it at its first event.
            if events_of[launch.index()] & SEEN == 0 {
                events_of[launch.index()] |= SEEN;
                totals.entry(rank).or_default().push(launch_ns);
            }
        }
    }
    add_shared(trace, shared, &mut rows);
    with_totals(trace, rows, totals)
}

const SEEN: u32 = 1 << 31;

fn event_of(trace: &Trace, event: &DeviceEvent, launch: SliceId, siblings: u32) -> Event {
    let (span, launch) = (trace.slices.span(event.slice), trace.slices.span(launch));
    let siblings = i128::from(siblings & !SEEN);
    Event {
        dur_ns: span.duration_ns(),
        delay_ns: span.start_ns - launch.end_ns,
        is_short: i128::from(span.duration_ns()) * siblings < i128::from(launch.duration_ns()),
    }
}

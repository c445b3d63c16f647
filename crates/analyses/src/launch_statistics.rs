//! # Definition
//! For each call that launches device work: how long the calls take, and how long their device events wait to start.
//! The delay of a device event is its start less the end of its launch, at least 0. An event that starts before its
//! launch has returned is early: its delay is 0. Outliers are the events whose delay is above the 99th percentile of
//! their row. An event is short when it takes less time than the host took to launch it; a launch of several events
//! counts for each of them in equal parts. Many short events say that the host, not the device, sets the pace.
//!
//! A row is all launches of a rank by one call of the device's API, or, with `--group-by name`, all launches of a rank
//! of one device event's name. Each rank begins with a row without a name, for all its launches: its `row` is `sum`, that
//! of every other `one`. Percentiles are values that occurred: the smallest that at least that share of values do not exceed.
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

use crate::{Analysis, AnalysisContext, GroupBy, Needs, Options, Outcome, Selection};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use stepscope_base::{StringId, percentiles::nearest_rank_of_unsorted};
use stepscope_trace::{DeviceEvent, SliceId, Trace};

columns! {
    /// All launches of one row.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct LaunchStatistics {
        /// The rank.
        rank: u32 => Count,
        /// The launching call, or the device event. Absent in the row of the whole rank.
        name: Option<String> => Text,
        /// Number of calls that launched something.
        launches: i64 => Count,
        /// Number of device events that they launched.
        device_events: i64 => Count,
        /// Durations of the launches.
        launch: Durations,
        /// Time from the end of a launch to the start of its device event.
        delay: Durations,
        /// Sum of the durations of the launches.
        launch_total_ns => Nanoseconds = |row| row.launch.total_ns,
        /// Median duration of a launch.
        launch_p50_ns => Nanoseconds = |row| row.launch.p50_ns,
        /// Median delay, which is the time from the end of a launch to the start of its device event.
        delay_p50_ns => Nanoseconds = |row| row.delay.p50_ns,
        /// The delay that 99 of 100 device events do not exceed.
        delay_p99_ns => Nanoseconds = |row| row.delay.p99_ns,
        /// Number of device events that take less time than their part of the launch.
        short_events: i64 => Count,
        /// Number of device events that start before their launch has returned.
        early_events: i64 => Count,
        /// Number of device events whose delay is above the 99th percentile.
        delay_outliers: i64 => Count,
        /// The shortest delay.
        delay_min_ns => Nanoseconds = |row| row.delay.min_ns,
        /// Mean delay.
        delay_mean_ns => Nanoseconds = |row| row.delay.mean_ns,
        /// The longest delay.
        delay_max_ns => Nanoseconds = |row| row.delay.max_ns,
        /// Mean duration of a launch.
        launch_mean_ns => Nanoseconds = |row| row.launch.mean_ns,
        /// The duration that 99 of 100 launches do not exceed.
        launch_p99_ns => Nanoseconds = |row| row.launch.p99_ns,
        /// Duration of the longest launch.
        launch_max_ns => Nanoseconds = |row| row.launch.max_ns,
        /// Sum of the durations of the device events.
        device_total_ns: i64 => Nanoseconds,
        /// What the row is: `one` for one call or device event, `sum` for the whole rank.
        row => Text = |row| if row.name.is_some() { "one" } else { "sum" },
    }
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
    let linked = || selection.device_events(trace).filter_map(|event| Some((event, event.launch?)));
    let mut events_of = vec![0_u32; trace.slices.len()];
    linked().for_each(|(_, launch)| events_of[launch.index()] += 1);
    let mut groups = Groups::default();
    // Launches of several events, which each row that has one of them counts once.
    let mut shared: Vec<(usize, SliceId)> = Vec::new();
    for (event, launch) in linked() {
        let rank = trace.devices[event.device.index()].rank;
        let named = if is_by_event { event.slice } else { launch };
        let at = groups.at((rank, trace.slices.name[named.index()]));
        let siblings = events_of[launch.index()];
        groups.rows[at].1.add_event(&event_of(trace, &event, launch, siblings));
        if siblings == 1 {
            groups.rows[at].1.launches_ns.push(trace.slices.dur_ns[launch.index()]);
        } else {
            shared.push((at, launch));
        }
    }
    shared.sort_unstable();
    shared.dedup();
    groups.finish(trace, &shared)
}

fn event_of(trace: &Trace, event: &DeviceEvent, launch: SliceId, siblings: u32) -> Event {
    let (span, launch) = (trace.slices.span(event.slice), trace.slices.span(launch));
    let in_equal_parts = i128::from(span.duration_ns()) * i128::from(siblings);
    Event {
        dur_ns: span.duration_ns(),
        delay_ns: span.start_ns - launch.end_ns,
        is_short: in_equal_parts < i128::from(launch.duration_ns()),
    }
}

/// Rank and name of a row.
type Key = (u32, StringId);

#[derive(Default)]
struct Groups {
    rows: Vec<(Key, Group)>,
    at: FxHashMap<Key, usize>,
}

impl Groups {
    /// The row of `key`, added when it is new.
    fn at(&mut self, key: Key) -> usize {
        *self.at.entry(key).or_insert_with(|| {
            self.rows.push((key, Group::default()));
            self.rows.len() - 1
        })
    }

    /// Adds to each row the launches in `shared` that are its own, and the totals.
    fn finish(mut self, trace: &Trace, shared: &[(usize, SliceId)]) -> Vec<LaunchStatistics> {
        let launch_ns = |launch: SliceId| trace.slices.dur_ns[launch.index()];
        let mut totals: BTreeMap<u32, Group> = BTreeMap::new();
        self.rows.iter().for_each(|((rank, _), group)| totals.entry(*rank).or_default().append(group));
        let mut of_rank: Vec<(u32, SliceId)> =
            shared.iter().map(|(at, launch)| (self.rows[*at].0.0, *launch)).collect();
        of_rank.sort_unstable();
        of_rank.dedup();
        for (rank, launch) in of_rank {
            totals.entry(rank).or_default().launches_ns.push(launch_ns(launch));
        }
        shared.iter().for_each(|(at, launch)| self.rows[*at].1.launches_ns.push(launch_ns(*launch)));
        let named = |((rank, name), group): (Key, Group)| group.finish(rank, Some(trace.strings.get(name).to_string()));
        let mut rows: Vec<LaunchStatistics> = self.rows.into_iter().map(named).collect();
        rows.extend(totals.into_iter().map(|(rank, group)| group.finish(rank, None)));
        let key = |row: &LaunchStatistics| (row.rank, row.name.is_some(), std::cmp::Reverse(row.launch.total_ns));
        rows.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name)));
        rows
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis {
    options: Options { group_by: &[GroupBy::Call, GroupBy::Name], ..Options::NONE },
    ..Analysis::of(outcome)
}
.needing(Needs::EachRankKept);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &launch_statistics(context.trace, context.selection))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_base::percentiles::nearest_rank;
    use stepscope_trace::drawn::drawn;
    use stepscope_trace::{Device, DeviceEventClass, LaunchKey, Process, SliceKind, TraceBuilder, Track, TrackKind};

    /// Rows as `name launches>events: launch total, delays min..max, early, short`, in us.
    fn check(drawing: &str, selection: Selection, expected: &[&str]) {
        let line = |row: &LaunchStatistics| {
            let [total, least, most] = [row.launch.total_ns, row.delay.min_ns, row.delay.max_ns].map(|ns| ns / 1_000);
            let name = row.name.as_deref().unwrap_or("all");
            let (launches, events) = (row.launches, row.device_events);
            let (early, short) = (row.early_events, row.short_events);
            format!("{name} {launches}>{events}: {total}, {least}..{most}, {early} early, {short} short")
        };
        let rows = launch_statistics(&drawn(drawing), &selection);
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn delays_count_from_the_end_of_the_launch() {
        check(
            "rank 0 launch 1 AABB..A
             rank 0 stream 7 ..AA.BA",
            Selection::default(),
            &[
                "all 3>3: 5, 0..1, 1 early, 1 short",
                "A 2>2: 3, 0..0, 1 early, 0 short",
                "B 1>1: 2, 1..1, 0 early, 1 short",
            ],
        );
    }

    #[test]
    fn a_step_has_its_launches() {
        check(
            "rank 0 step     0011
             rank 0 launch 1 A.BC
             rank 0 stream 7 .A.BX",
            Selection { step: Some(1), ..Selection::default() },
            &["all 1>1: 1, 0..0, 0 early, 0 short", "B 1>1: 1, 0..0, 0 early, 0 short"],
        );
    }

    /// A launch as (start, duration, device events as (delay from its start, duration, name)).
    type Launch = (i64, i64, Vec<(i64, i64, u8)>);

    fn trace_of(launches: &[Launch]) -> Trace {
        let mut builder = TraceBuilder::new("launches");
        let process = builder.add_process(Process::default());
        let device = builder.add_device(Device::default());
        let call = builder.strings.intern("launch");
        for (at, (start_ns, dur_ns, events)) in launches.iter().enumerate() {
            let key = LaunchKey { process, correlation: at as i64 };
            let thread = builder.add_track(Track::new(TrackKind::Thread, process, "thread"));
            let launch = builder.add_slice(thread, SliceKind::Runtime, call, *start_ns, *dur_ns);
            builder.set_correlation(launch, key);
            for (after_ns, dur_ns, name) in events {
                let stream = builder.add_track(Track::new(TrackKind::Stream, process, "stream"));
                let name = builder.strings.intern(&name.to_string());
                let slice = builder.add_slice(stream, SliceKind::Kernel, name, start_ns + after_ns, *dur_ns);
                builder.add_device_event(DeviceEvent::new(slice, device, DeviceEventClass::Compute));
                builder.set_correlation(slice, key);
            }
        }
        builder.finish()
    }

    #[test]
    fn a_launch_of_several_events_is_one_launch_and_shared_in_equal_parts() {
        let trace = trace_of(&[(0, 30, vec![(50, 9, 1), (60, 10, 1), (70, 11, 2)])]);
        let rows = launch_statistics(&trace, &Selection::default());
        assert_eq!((rows[0].launches, rows[0].device_events, rows[0].short_events), (1, 3, 1));
        let by_name = Selection { group_by: Some(GroupBy::Name), ..Selection::default() };
        let launches = |row: &LaunchStatistics| (row.name.clone(), row.launches, row.launch.total_ns);
        let rows: Vec<_> = launch_statistics(&trace, &by_name).iter().map(launches).collect();
        assert_eq!(rows, [(None, 1, 30), (Some("1".into()), 1, 30), (Some("2".into()), 1, 30)]);
    }

    #[test]
    fn one_in_a_hundred_is_an_outlier() {
        let launch = |at: i64| (at * 10, 1, vec![(if at == 57 { 9 } else { 2 }, 5, 1)]);
        let row =
            launch_statistics(&trace_of(&(0..100).map(launch).collect::<Vec<_>>()), &Selection::default()).remove(0);
        assert_eq!((row.delay.p99_ns, row.delay.max_ns, row.delay_outliers), (1, 8, 1));
    }

    fn expected(values: impl Iterator<Item = i64>) -> Durations {
        let mut sorted: Vec<i64> = values.collect();
        sorted.sort_unstable();
        let total_ns = sorted.iter().sum::<i64>();
        let rank = |percent| nearest_rank(&sorted, percent).unwrap();
        Durations {
            total_ns,
            mean_ns: (total_ns as f64 / sorted.len() as f64 + 0.5).floor() as i64,
            min_ns: sorted[0],
            p50_ns: rank(50),
            p99_ns: rank(99),
            max_ns: rank(100),
        }
    }

    proptest! {
        #[test]
        fn statistics_equal_a_look_at_each_row(
            launches in prop::collection::vec((0_i64..50, 0_i64..40, prop::collection::vec((0_i64..90, 0_i64..20, 0_u8..3), 1..4)), 1..20),
            is_by_event in any::<bool>(),
        ) {
            let group_by = is_by_event.then_some(GroupBy::Name);
            let found = launch_statistics(&trace_of(&launches), &Selection { group_by, ..Selection::default() });
            for row in &found {
                let is_own = |name: u8| !is_by_event || row.name.as_ref().is_none_or(|own| *own == name.to_string());
                let events: Vec<(i64, i64, i64, i64)> = launches.iter().flat_map(|(_, launch, events)| {
                    events.iter().filter(|event| is_own(event.2)).map(move |(after, dur, _)| (*launch, events.len() as i64, *after, *dur))
                }).collect();
                let own = launches.iter().filter(|(_, _, events)| events.iter().any(|event| is_own(event.2)));
                prop_assert_eq!(row.launch, expected(own.map(|launch| launch.1)));
                prop_assert_eq!(row.delay, expected(events.iter().map(|(launch, _, after, _)| (after - launch).max(0))));
                prop_assert_eq!(row.early_events, events.iter().filter(|(launch, _, after, _)| after < launch).count() as i64);
                prop_assert_eq!(row.short_events, events.iter().filter(|(launch, share, _, dur)| dur * share < *launch).count() as i64);
                prop_assert_eq!(row.device_total_ns, events.iter().map(|event| event.3).sum::<i64>());
                prop_assert_eq!(row.device_events, events.len() as i64);
                let above = events.iter().filter(|(launch, _, after, _)| (after - launch).max(0) > row.delay.p99_ns).count();
                prop_assert_eq!(row.delay_outliers, above as i64);
            }
            prop_assert_eq!(found[0].name.clone(), None);
        }
    }
}

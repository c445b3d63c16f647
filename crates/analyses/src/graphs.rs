//! # Definition
//! For each device graph, how often it was launched, what it ran, and how much of its time on the device nothing ran.
//! A graph launch is one call on the host that starts several device events, one that starts device events of which the
//! recording says that they belong to a graph, or one whose name says that it launches a graph, also of a single node
//! (`cudaGraphLaunch`, `hipGraphLaunch`). The span of a launch reaches from the first start to the last end of
//! its device events; busy is the part of it in which at least one of them runs, gaps are the rest. The two sum to the
//! span.
//!
//! A row is all launches of one graph by one call, or, with `--group-by launch`, one launch.
//!
//! # Units
//! Nanoseconds, `start_ns` since the start of the trace; counts of launches and device events.
//!
//! # Source
//! Device events as the device's profiler recorded them, their links to calls on the host, and the graph that the
//! recording names.
//!
//! # Edge cases
//! The graph is absent where the recording names none: then all launches of graphs by one call share a row. Device events
//! of a graph whose launch is not known make a row of their own, without a call, of which only counts and the device
//! total are known. Device events that run at the same time count once in busy, each in the device total.
//! Device events of other launches that run in a gap do not fill it. For one step, the launches on the host inside it.

use crate::{Analysis, AnalysisContext, GroupBy, Needs, Options, Outcome, Selection};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use stepscope_base::StringId;
use stepscope_trace::{DeviceEvent, DeviceEventClass, SliceId, Trace};

columns! {
    /// All launches of one graph, or one of them.
    #[derive(Clone, PartialEq, Eq, Debug, Default)]
    pub struct Graph {
        /// The rank.
        rank: u32 => Count,
        /// The number that the recording gives the graph.
        graph: Option<i64> => Count,
        /// The call that launches the graph.
        call: Option<String> => Text,
        /// When the launch starts, counted from the start of the trace. Absent when a row is several launches.
        start_ns: Option<i64> => Nanoseconds,
        /// Number of launches.
        launches: i64 => Count,
        /// Number of device events that the launches started.
        device_events: i64 => Count,
        /// Number of these device events that are kernels.
        kernels: i64 => Count,
        /// Time in the launching calls on the host.
        launch_total_ns: Option<i64> => Nanoseconds,
        /// Sum of the durations of the device events.
        device_total_ns: i64 => Nanoseconds,
        /// Time from the first start to the last end of a launch's device events, summed over launches.
        span_ns: Option<i64> => Nanoseconds,
        /// The part of `span_ns` in which at least one device event of the launch runs.
        busy_ns: Option<i64> => Nanoseconds,
        /// The part of `span_ns` in which no device event of the launch runs.
        gap_ns: Option<i64> => Nanoseconds,
    }
}

/// Rank, graph, call, and the launch when each has a row of its own.
type Key = (u32, Option<i64>, Option<StringId>, Option<SliceId>);

/// Graphs by rank, the longest device total first; launches by rank and start. Then by graph and call.
pub fn graphs(trace: &Trace, selection: &Selection) -> Vec<Graph> {
    let mut events_of = vec![0_u32; trace.slices.len()];
    let launches = selection.device_events(trace).filter_map(|event| event.launch);
    launches.for_each(|launch| events_of[launch.index()] = events_of[launch.index()].saturating_add(1));
    let mut is_graph_call: FxHashMap<StringId, bool> = FxHashMap::default();
    let mut launches_graph = |launch: SliceId| {
        let name = trace.slices.name[launch.index()];
        let is_said = || trace.strings.get(name).contains("GraphLaunch");
        events_of[launch.index()] > 1 || *is_graph_call.entry(name).or_insert_with(is_said)
    };
    let is_launched_by_graph =
        |event: &DeviceEvent| event.graph.is_some() || event.launch.is_some_and(&mut launches_graph);
    let mut events: Vec<DeviceEvent> = selection.device_events(trace).filter(is_launched_by_graph).collect();
    // Stable: events of a launch stay in order of their start.
    events.sort_by_key(|event| event.launch);
    let is_by_launch = selection.group_by == Some(GroupBy::Launch);
    let mut rows: BTreeMap<Key, Graph> = BTreeMap::new();
    for events in events.chunk_by(|a, b| a.launch == b.launch) {
        match events[0].launch {
            Some(launch) => add_launch(trace, launch, events, is_by_launch, &mut rows),
            None => events.iter().for_each(|event| {
                let rank = trace.devices[event.device.index()].rank;
                add_events(trace, &[*event], rows.entry((rank, event.graph, None, None)).or_default());
            }),
        }
    }
    let name = |id: StringId| trace.strings.get(id).to_string();
    let named =
        rows.into_iter().map(|((rank, graph, call, _), row)| Graph { rank, graph, call: call.map(name), ..row });
    let mut rows: Vec<Graph> = named.collect();
    let key = |row: &Graph| (row.rank, row.start_ns, std::cmp::Reverse(row.device_total_ns), row.graph);
    rows.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.call.cmp(&b.call)));
    rows
}

fn add_launch(
    trace: &Trace,
    launch: SliceId,
    events: &[DeviceEvent],
    is_by_launch: bool,
    rows: &mut BTreeMap<Key, Graph>,
) {
    let rank = trace.rank_of_track(trace.slices.track[launch.index()]);
    let graph = events.iter().find_map(|event| event.graph);
    let call = trace.slices.name[launch.index()];
    let row = rows.entry((rank, graph, Some(call), is_by_launch.then_some(launch))).or_default();
    row.start_ns = is_by_launch.then(|| trace.slices.start_ns[launch.index()]);
    row.launches += 1;
    add_events(trace, events, row);
    let (span_ns, busy_ns) = span_and_busy_ns(trace, events);
    let add = |sum: &mut Option<i64>, ns: i64| *sum = Some(sum.unwrap_or(0).saturating_add(ns));
    add(&mut row.launch_total_ns, trace.slices.dur_ns[launch.index()]);
    add(&mut row.span_ns, span_ns);
    add(&mut row.busy_ns, busy_ns);
    add(&mut row.gap_ns, span_ns - busy_ns);
}

fn add_events(trace: &Trace, events: &[DeviceEvent], row: &mut Graph) {
    let is_kernel =
        |event: &&DeviceEvent| matches!(event.class, DeviceEventClass::Compute | DeviceEventClass::Communication);
    row.device_events += events.len() as i64;
    row.kernels += events.iter().filter(is_kernel).count() as i64;
    let durations = events.iter().map(|event| trace.slices.dur_ns[event.slice.index()]);
    row.device_total_ns = durations.fold(row.device_total_ns, |sum, ns| sum.saturating_add(ns));
}

/// From the first start to the last end of `events`, which are ordered by start, and the part in which one runs.
fn span_and_busy_ns(trace: &Trace, events: &[DeviceEvent]) -> (i64, i64) {
    let mut spans = events.iter().map(|event| trace.slices.span(event.slice));
    let Some(first) = spans.next() else { return (0, 0) };
    let (mut busy_ns, mut end_ns) = (first.duration_ns(), first.end_ns);
    for span in spans {
        busy_ns += (span.end_ns - span.start_ns.max(end_ns)).max(0);
        end_ns = end_ns.max(span.end_ns);
    }
    assert!(busy_ns <= end_ns - first.start_ns, "busy is part of the span");
    (end_ns - first.start_ns, busy_ns)
}

pub(crate) const ANALYSIS: Analysis = Analysis {
    options: Options { group_by: &[GroupBy::Name, GroupBy::Launch], ..Options::NONE },
    ..Analysis::of(outcome)
}
.needing(Needs::EachRank);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &graphs(context.trace, context.selection))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::{Device, LaunchKey, Process, SliceKind, TraceBuilder, Track, TrackKind};

    /// A launch as (start, duration, graph, device events as (start, duration)); without a duration it is not known.
    type Launch = (i64, Option<i64>, Option<i64>, Vec<(i64, i64)>);

    fn trace_of(launches: &[Launch]) -> Trace {
        trace_of_calls("cudaLaunchKernel", launches)
    }

    fn trace_of_calls(call: &str, launches: &[Launch]) -> Trace {
        let mut builder = TraceBuilder::new("graphs");
        let process = builder.add_process(Process::default());
        let device = builder.add_device(Device::default());
        let name = builder.strings.intern(call);
        for (at, (start_ns, dur_ns, graph, events)) in launches.iter().enumerate() {
            let key = LaunchKey { process, correlation: at as i64 };
            if let Some(dur_ns) = dur_ns {
                let thread = builder.add_track(Track::new(TrackKind::Thread, process, "thread"));
                let launch = builder.add_slice(thread, SliceKind::Runtime, name, *start_ns, *dur_ns);
                builder.set_correlation(launch, key);
            }
            for (start_ns, dur_ns) in events {
                let stream = builder.add_track(Track::new(TrackKind::Stream, process, "stream"));
                let slice = builder.add_slice(stream, SliceKind::Kernel, name, *start_ns, *dur_ns);
                let event = DeviceEvent::new(slice, device, DeviceEventClass::Compute);
                builder.add_device_event(DeviceEvent { graph: *graph, ..event });
                builder.set_correlation(slice, key);
            }
        }
        builder.finish()
    }

    fn line(row: &Graph) -> String {
        let text = |value: Option<i64>| value.map_or("-".into(), |value| value.to_string());
        let [graph, start, launch, span, busy, gap] =
            [row.graph, row.start_ns, row.launch_total_ns, row.span_ns, row.busy_ns, row.gap_ns].map(text);
        let (launches, kernels, total) = (row.launches, row.kernels, row.device_total_ns);
        format!("{graph} at {start}: {launches}>{kernels} {total}, host {launch}, {span} = {busy} + {gap}")
    }

    fn check(launches: &[Launch], selection: Selection, expected: &[&str]) {
        let rows = graphs(&trace_of(launches), &selection);
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_call_with_several_events_or_with_a_graphs_event_is_a_graph_launch() {
        let launches = [
            (0, Some(5), Some(7), vec![(10, 10), (25, 5)]),
            (40, Some(6), Some(7), vec![(50, 10)]),
            (60, Some(1), None, vec![(70, 3)]),
            (80, Some(2), None, vec![(90, 4), (92, 4)]),
        ];
        let by_graph = ["7 at -: 2>3 25, host 11, 30 = 25 + 5", "- at -: 1>2 8, host 2, 6 = 6 + 0"];
        check(&launches, Selection::default(), &by_graph);
        let by_launch = [
            "7 at 0: 1>2 15, host 5, 20 = 15 + 5",
            "7 at 40: 1>1 10, host 6, 10 = 10 + 0",
            "- at 80: 1>2 8, host 2, 6 = 6 + 0",
        ];
        check(&launches, Selection { group_by: Some(GroupBy::Launch), ..Selection::default() }, &by_launch);
    }

    #[test]
    fn a_call_that_is_called_so_launches_a_graph_of_one_node() {
        let launches = [(0, Some(5), None, vec![(10, 10)]), (40, Some(6), None, vec![(50, 10), (70, 1)])];
        for call in ["cudaGraphLaunch", "cuGraphLaunch", "hipGraphLaunch", "cudaGraphLaunch_v10000"] {
            let rows = graphs(&trace_of_calls(call, &launches), &Selection::default());
            assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), ["- at -: 2>3 21, host 11, 31 = 21 + 10"], "{call}");
        }
    }

    #[test]
    fn a_graph_without_a_known_launch_has_only_device_time() {
        check(
            &[(0, None, Some(7), vec![(0, 10), (25, 5)])],
            Selection::default(),
            &["7 at -: 0>2 15, host -, - = - + -"],
        );
    }

    #[test]
    fn a_step_has_the_graphs_launched_in_it() {
        let trace = stepscope_trace::drawn::drawn("rank 0 step 0011\nrank 0 launch 1 A.B.\nrank 0 stream 7 .A.B");
        assert_eq!(graphs(&trace, &Selection { step: Some(0), ..Selection::default() }), []);
    }

    proptest! {
        #[test]
        fn sums_equal_one_look_per_nanosecond(
            launches in prop::collection::vec((0_i64..50, 0_i64..9, prop::option::of(0_i64..2), prop::collection::vec((50_i64..90, 0_i64..20), 1..5)), 1..8),
        ) {
            let launches: Vec<Launch> = launches.into_iter().map(|(start, dur, graph, events)| (start, Some(dur), graph, events)).collect();
            let found = graphs(&trace_of(&launches), &Selection::default());
            for graph in [None, Some(0), Some(1)] {
                let own: Vec<&Launch> = launches.iter().filter(|launch| launch.2 == graph && (graph.is_some() || launch.3.len() > 1)).collect();
                let row = found.iter().find(|row| row.graph == graph);
                prop_assert_eq!(row.is_some(), !own.is_empty());
                let Some(row) = row else { continue };
                let (mut span, mut busy) = (0, 0);
                for (_, _, _, events) in &own {
                    let first = events.iter().map(|event| event.0).min().unwrap();
                    let last = events.iter().map(|event| event.0 + event.1).max().unwrap();
                    span += last - first;
                    busy += (first..last).filter(|at| events.iter().any(|event| event.0 <= *at && *at < event.0 + event.1)).count() as i64;
                }
                prop_assert_eq!((row.span_ns, row.busy_ns, row.gap_ns), (Some(span), Some(busy), Some(span - busy)));
                prop_assert_eq!(row.launches, own.len() as i64);
                prop_assert_eq!(row.device_events, own.iter().map(|launch| launch.3.len() as i64).sum::<i64>());
                prop_assert_eq!(row.launch_total_ns, own.iter().map(|launch| launch.1).sum());
                prop_assert_eq!(row.device_total_ns, own.iter().flat_map(|launch| &launch.3).map(|event| event.1).sum::<i64>());
            }
        }
    }
}

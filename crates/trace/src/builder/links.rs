//! From a device event to its launch and its op, and from a forward op to its backward node.

use super::LaunchKey;
use crate::device_events::{CommonTable, DeviceEventRow};
use crate::{DeviceEventClass, FindingCode, Flow, FlowKind, OpInfo, ProcessId, SliceId, SliceKind};
use crate::{Synchronization, Trace, Track};
use rustc_hash::{FxHashMap, FxHashSet};

/// Joins device events with their correlation ids; both name slices by the ids they had while rows were added.
pub(super) fn with_keys(
    mut events: Vec<DeviceEventRow>,
    correlations: &mut [(LaunchKey, SliceId)],
) -> Vec<(DeviceEventRow, Option<LaunchKey>)> {
    // Sources give both in the order of slices, which makes sorting cheap.
    events.sort_by_key(|event| event.slice);
    correlations.sort_by_key(|(_, slice)| *slice);
    let mut keys = correlations.iter().copied().peekable();
    let with_key = |event: DeviceEventRow| {
        let mut key = None;
        while let Some((found, slice)) = keys.next_if(|(_, slice)| *slice <= event.slice) {
            key = Some(found).filter(|_| slice == event.slice);
        }
        (event, key)
    };
    events.into_iter().map(with_key).collect()
}

/// Resolves `launch` and `op` of every device event and adds the launch flows. `more_links` gives links (launch, device
/// event) for events whose correlation id has no call; it is only asked when there are such events.
pub(super) fn link_device_events(
    trace: &mut Trace,
    events: &mut [(DeviceEventRow, Option<LaunchKey>)],
    correlations: Vec<(LaunchKey, SliceId)>,
    more_links: impl FnOnce(&mut Trace) -> Vec<(SliceId, SliceId)>,
) {
    let calls = Calls::of(trace, correlations);
    let mut has_unlinked = false;
    for (event, key) in &mut *events {
        let start_ns = trace.slices.start_ns[event.slice.index()];
        event.launch = key.and_then(|key| calls.pick(trace, key, start_ns));
        has_unlinked |= event.launch.is_none();
    }
    if has_unlinked {
        let direct: FxHashMap<SliceId, SliceId> =
            more_links(trace).into_iter().map(|(launch, event)| (event, launch)).collect();
        for (event, _) in events.iter_mut().filter(|(event, _)| event.launch.is_none()) {
            event.launch = direct.get(&event.slice).copied();
        }
    }
    for (event, _) in events {
        event.op = event.launch.and_then(|launch| {
            trace.innermost_op(trace.slices.track[launch.index()], trace.slices.start_ns[launch.index()])
        });
        match event.launch {
            Some(from) => trace.flows.push(Flow { from, to: event.slice, kind: FlowKind::Launch }),
            None => trace.findings.add(FindingCode::UnlinkedDeviceEvent, || {
                let name = trace.strings.get(trace.slices.name[event.slice.index()]);
                let start_ns = trace.slices.start_ns[event.slice.index()];
                format!("{} at {start_ns} ns", name.chars().take(80).collect::<String>())
            }),
        }
    }
}

/// API calls by correlation id.
struct Calls {
    /// Ordered by (key, start).
    rows: Vec<(LaunchKey, SliceId)>,
}

impl Calls {
    fn of(trace: &mut Trace, mut rows: Vec<(LaunchKey, SliceId)>) -> Self {
        let is_call = |slice: SliceId| {
            let kind = trace.slices.kind(slice);
            !kind.is_device_event() && kind != SliceKind::Synchronization
        };
        rows.retain(|(_, slice)| is_call(*slice));
        rows.sort_by_key(|(key, slice)| (*key, trace.slices.start_ns[slice.index()], *slice));
        for group in rows.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1) {
            if group[1..].iter().any(|(_, id)| !is_inside(trace, *id, group[0].1)) {
                let correlation = group[0].0.correlation;
                trace.findings.add(FindingCode::AmbiguousCorrelation, || format!("correlation {correlation}"));
            }
        }
        Self { rows }
    }

    /// The last call that starts no later than the device event, or else the first; of nested calls the outermost.
    fn pick(&self, trace: &Trace, key: LaunchKey, event_start_ns: i64) -> Option<SliceId> {
        let first = self.rows.partition_point(|(known, _)| *known < key);
        let len = self.rows[first..].iter().take_while(|(known, _)| *known == key).count();
        let candidates = &self.rows[first..first + len];
        let before = candidates.partition_point(|(_, id)| trace.slices.start_ns[id.index()] <= event_start_ns);
        let picked = candidates.get(before.saturating_sub(1))?.1;
        let is_candidate = |id: &SliceId| candidates.iter().any(|(_, candidate)| candidate == id);
        Some(match candidates.len() {
            1 => picked,
            _ => trace.slices.with_ancestors(picked).filter(is_candidate).last().unwrap_or(picked),
        })
    }
}

/// Resolves the API calls of waits: the one that waits, and the one that recorded the event waited for.
pub(super) fn link_synchronizations(
    trace: &Trace,
    waits: Vec<(Synchronization, Option<i64>)>,
    correlations: &[(LaunchKey, SliceId)],
) -> Vec<Synchronization> {
    if waits.is_empty() {
        return Vec::new();
    }
    let key_of: FxHashMap<SliceId, LaunchKey> = correlations.iter().map(|(key, slice)| (*slice, *key)).collect();
    let calls = correlations.iter().filter(|(_, slice)| trace.slices.kind(*slice).is_api_call());
    let call_of: FxHashMap<LaunchKey, SliceId> = calls.copied().collect();
    let resolve = |(row, event_correlation): (Synchronization, Option<i64>)| {
        let key = key_of.get(&row.slice).copied();
        let process = trace.tracks[trace.slices.track[row.slice.index()].index()].process;
        let record = event_correlation.map(|correlation| LaunchKey { process, correlation });
        let call_at = |key: Option<LaunchKey>| key.and_then(|key| call_of.get(&key)).copied();
        Synchronization { call: call_at(key), event_record: call_at(record), ..row }
    };
    let mut rows: Vec<Synchronization> = waits.into_iter().map(resolve).collect();
    rows.sort_unstable_by_key(|row| row.slice);
    rows
}

/// Makes computing kernels whose own rows call them a part of a collective communication.
pub(super) fn classify_by_statement(
    events: &mut [DeviceEventRow],
    common: &mut CommonTable,
    communicating: &FxHashSet<SliceId>,
) {
    if communicating.is_empty() {
        return;
    }
    for event in events {
        if communicating.contains(&event.slice) && common.class(event) == DeviceEventClass::Compute {
            common.set_class(event, DeviceEventClass::Communication);
        }
    }
}

/// Makes computing kernels that were launched within one of `communication_calls` communication.
pub(super) fn classify_by_launch(
    trace: &Trace,
    events: &mut [DeviceEventRow],
    common: &mut CommonTable,
    communication_calls: &FxHashSet<SliceId>,
) {
    if communication_calls.is_empty() {
        return;
    }
    for event in events {
        let Some(launch) = event.launch.filter(|_| common.class(event) == DeviceEventClass::Compute) else { continue };
        let (track, at_ns) = (trace.slices.track[launch.index()], trace.slices.start_ns[launch.index()]);
        if trace.open_slices(track, at_ns).any(|id| communication_calls.contains(&id)) {
            common.set_class(event, DeviceEventClass::Communication);
        }
    }
}

fn is_inside(trace: &Trace, inner: SliceId, outer: SliceId) -> bool {
    trace.slices.with_ancestors(inner).any(|id| id == outer)
}

/// Adds an edge from each forward op to the backward nodes with its sequence number, where the source told both the
/// number and the framework's thread. Of several ops that carry a number, the last one created the node. Threads are
/// numbered in each process anew: workers that were forked have the same numbers.
pub(super) fn link_forward_backward(trace: &mut Trace) {
    let numbered = || {
        let ops = trace.ops.slice.iter().zip(&trace.ops.info);
        ops.filter_map(|(slice, info)| Some((*slice, info, info.sequence_number.filter(|number| *number >= 0)?)))
    };
    let forward_thread = |info: &OpInfo| info.forward_thread.filter(|thread| *thread != 0);
    let track = |slice: SliceId| &trace.tracks[trace.slices.track[slice.index()].index()];
    let key = |to: SliceId, info, number| Some((track(to).process, forward_thread(info)?, number));
    let backward: Vec<_> = numbered().filter_map(|(to, info, number)| Some((to, key(to, info, number)?))).collect();
    // Only numbers that a backward node has are looked for: most traces hold many more that none has.
    let mut forward: FxHashMap<(ProcessId, u64, i64), Option<SliceId>> =
        backward.iter().map(|(_, key)| (*key, None)).collect();
    if forward.is_empty() {
        return;
    }
    for (slice, _, number) in numbered().filter(|(_, info, _)| forward_thread(info).is_none()) {
        let Track { process, framework_thread: Some(thread), .. } = track(slice) else { continue };
        let Some(last) = forward.get_mut(&(*process, *thread, number)) else { continue };
        let start_ns = |slice: SliceId| trace.slices.start_ns[slice.index()];
        if last.is_none_or(|last| start_ns(slice) >= start_ns(last)) {
            *last = Some(slice);
        }
    }
    for (to, key) in backward {
        if let Some(from) = forward[&key] {
            trace.flows.push(Flow { from, to, kind: FlowKind::ForwardBackward });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, DeviceEvent, Process, TraceBuilder, TrackId, TrackKind};

    struct Fixture {
        builder: TraceBuilder,
        thread: TrackId,
        stream: TrackId,
    }

    impl Fixture {
        fn new() -> Self {
            let mut builder = TraceBuilder::new("links");
            let process = builder.add_process(Process::default());
            builder.add_device(Device::default());
            let mut thread = Track::new(TrackKind::Thread, process, "main");
            thread.framework_thread = Some(1);
            let thread = builder.add_track(thread);
            let stream = builder.add_track(Track::new(TrackKind::Stream, process, "stream 7"));
            Self { builder, thread, stream }
        }

        fn host(&mut self, kind: SliceKind, name: &str, start: i64, end: i64, correlation: Option<i64>) -> SliceId {
            let name = self.builder.strings.intern(name);
            let slice = self.builder.add_slice(self.thread, kind, name, start, end - start);
            self.correlate(slice, correlation);
            slice
        }

        fn kernel(&mut self, name: &str, start: i64, end: i64, correlation: Option<i64>) -> SliceId {
            let name = self.builder.strings.intern(name);
            let slice = self.builder.add_slice(self.stream, SliceKind::Kernel, name, start, end - start);
            self.builder.add_device_event(DeviceEvent::new(slice, crate::DeviceId(0), DeviceEventClass::Compute));
            self.correlate(slice, correlation);
            slice
        }

        fn correlate(&mut self, slice: SliceId, correlation: Option<i64>) {
            if let Some(correlation) = correlation {
                self.builder.set_correlation(slice, LaunchKey { process: crate::ProcessId(0), correlation });
            }
        }

        /// Each device event as `kernel<launch<op`.
        fn check(self, expected: &[&str]) -> Trace {
            let trace = self.builder.finish();
            let name = |id: Option<SliceId>| id.map_or("-", |id| trace.slice_name(id));
            let found: Vec<String> = trace
                .device_events
                .iter()
                .map(|event| format!("{}<{}<{}", name(Some(event.slice)), name(event.launch), name(event.op)))
                .collect();
            assert_eq!(found, expected);
            trace
        }
    }

    #[test]
    fn a_kernel_belongs_to_the_innermost_op_at_its_launch() {
        let mut fixture = Fixture::new();
        fixture.host(SliceKind::Op, "linear", 0, 20, None);
        fixture.host(SliceKind::Op, "addmm", 2, 10, None);
        fixture.host(SliceKind::Runtime, "launch", 5, 6, Some(1));
        fixture.host(SliceKind::Runtime, "late", 12, 13, Some(2));
        fixture.kernel("gemm", 30, 40, Some(1));
        fixture.kernel("bias", 41, 42, Some(2));
        fixture.check(&["gemm<launch<addmm", "bias<late<linear"]);
    }

    #[test]
    fn an_op_on_an_overflow_lane_still_owns_its_launches() {
        let mut fixture = Fixture::new();
        fixture.host(SliceKind::Op, "first", 0, 10, None);
        fixture.host(SliceKind::Op, "second", 5, 15, None);
        fixture.host(SliceKind::Runtime, "launch", 11, 12, Some(1));
        fixture.kernel("k", 20, 21, Some(1));
        fixture.check(&["k<launch<second"]);
    }

    #[test]
    fn one_launch_owns_many_kernels_and_one_without_launch_stays() {
        let mut fixture = Fixture::new();
        fixture.host(SliceKind::Runtime, "graph", 0, 2, Some(9));
        fixture.kernel("a", 5, 6, Some(9));
        fixture.kernel("b", 6, 7, Some(9));
        fixture.kernel("alone", 8, 9, None);
        let trace = fixture.check(&["a<graph<-", "b<graph<-", "alone<-<-"]);
        assert_eq!(trace.findings.count(FindingCode::UnlinkedDeviceEvent), 1);
        assert_eq!(trace.flows.len(), 2);
    }

    #[test]
    fn of_nested_calls_with_one_correlation_the_outermost_is_the_launch() {
        let mut fixture = Fixture::new();
        fixture.host(SliceKind::Runtime, "cudaLaunchKernel", 0, 4, Some(3));
        fixture.host(SliceKind::Driver, "cuLaunchKernel", 1, 3, Some(3));
        fixture.kernel("k", 5, 6, Some(3));
        let trace = fixture.check(&["k<cudaLaunchKernel<-"]);
        assert!(trace.findings.is_empty() || trace.findings.count(FindingCode::AmbiguousCorrelation) == 0);
    }

    #[test]
    fn a_reused_correlation_means_the_last_launch_before_the_kernel() {
        let mut fixture = Fixture::new();
        fixture.host(SliceKind::Runtime, "first", 0, 1, Some(3));
        fixture.host(SliceKind::Runtime, "second", 10, 11, Some(3));
        fixture.kernel("a", 5, 6, Some(3));
        fixture.kernel("b", 15, 16, Some(3));
        let trace = fixture.check(&["a<first<-", "b<second<-"]);
        assert_eq!(trace.findings.count(FindingCode::AmbiguousCorrelation), 1);
    }

    #[test]
    fn flows_of_the_source_serve_where_no_correlation_does() {
        let mut fixture = Fixture::new();
        let launch = fixture.host(SliceKind::Runtime, "launch", 0, 1, None);
        let kernel = fixture.kernel("k", 5, 6, None);
        fixture.builder.add_launch_link(launch, kernel);
        fixture.check(&["k<launch<-"]);
    }

    #[test]
    fn arrows_serve_where_neither_correlation_nor_link_does() {
        let mut fixture = Fixture::new();
        fixture.host(SliceKind::Op, "op", 0, 9, None);
        fixture.host(SliceKind::Runtime, "launch", 1, 3, None);
        fixture.kernel("k", 15, 16, None);
        let (thread, stream) = (fixture.thread, fixture.stream);
        fixture.builder.add_arrow(FlowKind::Launch, (thread, 1), (stream, 15));
        fixture.builder.add_arrow(FlowKind::Launch, (thread, 1), (stream, 40));
        fixture.builder.add_arrow(FlowKind::ForwardBackward, (thread, 4), (thread, 8));
        fixture.builder.add_arrow(FlowKind::ForwardBackward, (thread, 4), (thread, 9));
        let trace = fixture.check(&["k<launch<op"]);
        assert_eq!(trace.findings.count(FindingCode::UnlinkedFlow), 1);
        assert_eq!(trace.flows.iter().filter(|flow| flow.kind == FlowKind::ForwardBackward).count(), 1);
    }

    #[test]
    fn a_kernel_launched_within_a_communication_call_communicates() {
        let mut fixture = Fixture::new();
        let call = fixture.host(SliceKind::Op, "record_param_comms", 0, 9, None);
        fixture.host(SliceKind::Op, "inner", 1, 5, None);
        fixture.host(SliceKind::Runtime, "launch", 2, 3, Some(1));
        fixture.host(SliceKind::Runtime, "launch", 12, 13, Some(2));
        fixture.kernel("within", 20, 21, Some(1));
        fixture.kernel("after", 22, 23, Some(2));
        fixture.builder.add_communication_call(call);
        let trace = fixture.check(&["within<launch<inner", "after<launch<-"]);
        let classes: Vec<_> = trace.device_events.iter().map(|event| event.class.as_str()).collect();
        assert_eq!(classes, ["communication", "compute"]);
    }

    #[test]
    fn the_last_forward_op_with_a_number_made_the_backward_node() {
        let mut fixture = Fixture::new();
        let op = |fixture: &mut Fixture, name, start, end, number, forward_thread| {
            let slice = fixture.host(SliceKind::Op, name, start, end, None);
            fixture
                .builder
                .add_op(slice, OpInfo { sequence_number: Some(number), forward_thread, ..OpInfo::default() });
        };
        op(&mut fixture, "linear", 0, 10, 4, None);
        op(&mut fixture, "addmm", 1, 5, 4, None);
        op(&mut fixture, "AddmmBackward0", 20, 30, 4, Some(1));
        let trace = fixture.check(&[]);
        let names: Vec<_> = trace.flows.iter().map(|f| (trace.slice_name(f.from), trace.slice_name(f.to))).collect();
        assert_eq!(names, [("addmm", "AddmmBackward0")]);
    }

    #[test]
    fn a_forked_worker_has_the_same_numbers_and_none_of_the_backward_pass() {
        let mut builder = TraceBuilder::new("links");
        for pid in [1, 2] {
            let process = builder.add_process(Process { pid: Some(pid), ..Process::default() });
            let mut thread = Track::new(TrackKind::Thread, process, "thread");
            thread.framework_thread = Some(1);
            builder.add_track(thread);
        }
        let op = |builder: &mut TraceBuilder, track, name, start_ns, forward_thread| {
            let name = builder.strings.intern(name);
            let slice = builder.add_slice(TrackId(track), SliceKind::Op, name, start_ns, 5);
            builder.add_op(slice, OpInfo { sequence_number: Some(4), forward_thread, ..OpInfo::default() });
        };
        op(&mut builder, 0, "addmm", 0, None);
        op(&mut builder, 1, "detach_", 10, None);
        op(&mut builder, 0, "AddmmBackward0", 20, Some(1));
        let trace = builder.finish();
        let names: Vec<_> = trace.flows.iter().map(|f| (trace.slice_name(f.from), trace.slice_name(f.to))).collect();
        assert_eq!(names, [("addmm", "AddmmBackward0")]);
    }
}

//! For what other streams' work a device event had to wait: the order between streams that analyses of waiting share.

use crate::AnalysisContext;
use crate::context::Shared;
use rustc_hash::FxHashMap;
use stepscope_trace::{DeviceEventId, DeviceId, SliceId, SyncKind, Trace};

/// A stream of a device.
pub(crate) type Stream = (DeviceId, Option<i64>);

/// Waits of streams on events, and what was enqueued before those events were recorded.
#[derive(Default)]
pub(crate) struct StreamWaits {
    /// A device event and the work of another stream that its stream was told to wait for before it was launched,
    /// ordered.
    ahead: Vec<(DeviceEventId, DeviceEventId)>,
    /// By stream: when each of its events was launched; by that time.
    launches: FxHashMap<Stream, Vec<(i64, DeviceEventId)>>,
}

impl Shared for StreamWaits {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        Self::of(context.trace)
    }
}

impl StreamWaits {
    fn of(trace: &Trace) -> Self {
        let start_ns = |slice: SliceId| trace.slices.start_ns[slice.index()];
        let mut rows = Self::default();
        let waits = || trace.synchronizations.iter().filter(|row| row.kind == SyncKind::StreamWaitEvent);
        if waits().next().is_none() {
            return rows;
        }
        for (at, event) in trace.device_events.iter().enumerate() {
            if let Some(launch) = event.launch {
                let row = (start_ns(launch), DeviceEventId::from_index(at));
                rows.launches.entry((event.device, event.stream)).or_default().push(row);
            }
        }
        rows.launches.values_mut().for_each(|launches| launches.sort_unstable());
        for wait in waits() {
            let (Some(call), Some(record)) = (wait.call, wait.event_record) else { continue };
            let Some(ahead) = rows.last_before((wait.device, wait.event_stream), start_ns(record)) else { continue };
            let held_back = rows.next_from((wait.device, wait.stream), start_ns(call));
            rows.ahead.extend(held_back.map(|event| (event, ahead)).collect::<Vec<_>>());
        }
        rows.ahead.sort_unstable();
        rows
    }

    /// The last event that was launched on a stream up to a moment.
    pub(crate) fn last_before(&self, stream: Stream, at_ns: i64) -> Option<DeviceEventId> {
        let launches = self.launches.get(&stream)?;
        let before = launches.partition_point(|(start_ns, _)| *start_ns <= at_ns);
        Some(launches[before.checked_sub(1)?].1)
    }

    /// The events that a wait at `at_ns` holds back: those of the first launch on the stream from then on, and when that
    /// is at this very moment, so that either may have come first, those of the next launch too.
    fn next_from(&self, stream: Stream, at_ns: i64) -> impl Iterator<Item = DeviceEventId> + '_ {
        let launches = self.launches.get(&stream).map_or(&[][..], Vec::as_slice);
        let launches = &launches[launches.partition_point(|(start_ns, _)| *start_ns < at_ns)..];
        let mut groups = launches.chunk_by(|a, b| a.0 == b.0);
        let (first, second) = (groups.next().unwrap_or(&[]), groups.next().unwrap_or(&[]));
        let is_at_once = first.first().is_some_and(|(start_ns, _)| *start_ns == at_ns);
        first.iter().chain(second.iter().filter(move |_| is_at_once)).map(|(_, id)| *id)
    }

    /// The work of other streams that was waited for between the launch of `event` and the one before it on its stream.
    pub(crate) fn ahead_of(&self, event: DeviceEventId) -> impl Iterator<Item = DeviceEventId> + '_ {
        let first = self.ahead.partition_point(|(of, _)| *of < event);
        self.ahead[first..].iter().take_while(move |(of, _)| *of == event).map(|(_, ahead)| *ahead)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::{DeviceEvent, Synchronization, drawn::drawn};

    /// Makes `stream` wait, by the call named `call`, for what the call named `record` recorded on `event_stream`.
    pub(crate) fn add_wait(trace: &mut Trace, (call, stream): (&str, i64), (record, event_stream): (&str, i64)) {
        let slice = |name: &str| trace.slices.ids().find(|id| trace.slice_name(*id) == name);
        let (call, event_record) = (slice(call), slice(record));
        trace.synchronizations.push(Synchronization {
            slice: SliceId(0),
            kind: SyncKind::StreamWaitEvent,
            device: DeviceId(0),
            stream: Some(stream),
            event_stream: Some(event_stream),
            call,
            event_record,
        });
    }

    #[test]
    fn a_wait_holds_back_the_next_launch_of_its_stream_only() {
        let mut trace = drawn(
            "rank 0 launch 1 ABrwCDx
             rank 0 stream 7 .AABB.....
             rank 0 stream 9 .....CCDD.",
        );
        add_wait(&mut trace, ("w", 9), ("r", 7));
        let waits = StreamWaits::of(&trace);
        let name = |id: DeviceEventId| trace.slice_name(trace.device_events.get(id).slice).to_string();
        let ids = (0..trace.device_events.len()).map(DeviceEventId::from_index);
        let found: Vec<String> = ids.map(|id| waits.ahead_of(id).map(name).collect()).collect();
        assert_eq!(found, ["", "", "B", ""]);
    }

    /// What an event was held back by, looked for among all waits and launches: those of its stream between its launch
    /// and the one before, each with the last work that was launched on the other stream before the record.
    fn looked_for(trace: &Trace, event: &DeviceEvent) -> Vec<DeviceEventId> {
        let start_ns = |slice: SliceId| trace.slices.start_ns[slice.index()];
        let launched_on = |stream: Option<i64>| {
            let events = trace.device_events.iter().enumerate().filter(move |(_, event)| event.stream == stream);
            events.filter_map(move |(at, event)| Some((start_ns(event.launch?), DeviceEventId::from_index(at))))
        };
        let Some(launch_ns) = event.launch.map(start_ns) else { return Vec::new() };
        let before = launched_on(event.stream).map(|launched| launched.0).filter(|before_ns| *before_ns < launch_ns);
        let previous_ns = before.max().unwrap_or(i64::MIN);
        let is_between = |wait: &&Synchronization| {
            let call_ns = wait.call.map(start_ns);
            wait.stream == event.stream && call_ns.is_some_and(|ns| (previous_ns..=launch_ns).contains(&ns))
        };
        let waits = trace.synchronizations.iter().filter(is_between);
        let mut found: Vec<DeviceEventId> = waits
            .filter_map(|wait| {
                let record_ns = wait.event_record.map(start_ns)?;
                Some(launched_on(wait.event_stream).filter(|launched| launched.0 <= record_ns).max()?.1)
            })
            .collect();
        found.sort_unstable();
        found
    }

    proptest! {
        #[test]
        fn what_holds_an_event_back_is_found_by_looking_at_every_wait(
            launches in prop::collection::vec("[.CE|]{14}", 2), waits in prop::collection::vec((0_u8..14, 0_u8..14, any::<bool>()), 0..6),
        ) {
            let mut trace = drawn(&format!(
                "rank 0 launch 1 {}\nrank 0 launch 2 {}\nrank 0 cpu 3 abcdefghijklmn\nrank 0 stream 7 {}\nrank 0 stream 9 {}",
                launches[0], launches[1], "C.".repeat(20), "E.".repeat(20),
            ));
            for (call, record, is_forward) in waits {
                let name = |cell: u8| char::from(b'a' + cell).to_string();
                let (waiting, waited_for) = if is_forward { (7, 9) } else { (9, 7) };
                add_wait(&mut trace, (&name(call), waiting), (&name(record), waited_for));
            }
            let waits = StreamWaits::of(&trace);
            for (at, event) in trace.device_events.iter().enumerate() {
                let found: Vec<DeviceEventId> = waits.ahead_of(DeviceEventId::from_index(at)).collect();
                prop_assert_eq!(found, looked_for(&trace, &event));
            }
        }
    }
}

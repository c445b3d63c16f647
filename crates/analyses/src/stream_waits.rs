//! For what other streams' work a device event had to wait: the order between streams that analyses of waiting share.

use rustc_hash::FxHashMap;
use stepscope_trace::{DeviceEvent, DeviceEventId, DeviceId, SyncKind, Trace};

/// A stream of a device.
pub(crate) type Stream = (DeviceId, Option<i64>);

/// Waits of streams on events, and what was enqueued before those events were recorded.
pub(crate) struct StreamWaits {
    /// By waiting stream: when the wait was enqueued, and the last work ahead of its event; by that time.
    waits: FxHashMap<Stream, Vec<(i64, DeviceEventId)>>,
    /// By stream: when each of its events was launched; by that time.
    launches: FxHashMap<Stream, Vec<(i64, DeviceEventId)>>,
}

impl StreamWaits {
    pub(crate) fn of(trace: &Trace) -> Self {
        let start_ns = |slice: stepscope_trace::SliceId| trace.slices.start_ns[slice.index()];
        let mut rows = Self { waits: FxHashMap::default(), launches: FxHashMap::default() };
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
            let recorded_on = (wait.device, wait.event_stream);
            if let Some(ahead) = rows.last_before(recorded_on, start_ns(record)) {
                rows.waits.entry((wait.device, wait.stream)).or_default().push((start_ns(call), ahead));
            }
        }
        rows.waits.values_mut().for_each(|waits| waits.sort_unstable());
        rows
    }

    /// The last event that was launched on a stream up to a moment.
    pub(crate) fn last_before(&self, stream: Stream, at_ns: i64) -> Option<DeviceEventId> {
        let launches = self.launches.get(&stream)?;
        let before = launches.partition_point(|(start_ns, _)| *start_ns <= at_ns);
        Some(launches[before.checked_sub(1)?].1)
    }

    /// The work of other streams that was waited for between the launch of `event` and the one before it on its stream.
    pub(crate) fn ahead_of(&self, trace: &Trace, event: &DeviceEvent) -> impl Iterator<Item = DeviceEventId> + '_ {
        let stream = (event.device, event.stream);
        let launch_ns = event.launch.map(|launch| trace.slices.start_ns[launch.index()]);
        let waits = launch_ns.and(self.waits.get(&stream)).map_or(&[][..], Vec::as_slice);
        let launch_ns = launch_ns.unwrap_or(i64::MIN);
        let launches = self.launches.get(&stream).map_or(&[][..], Vec::as_slice);
        let before = launches.partition_point(|(start_ns, _)| *start_ns < launch_ns).checked_sub(1);
        let previous_ns = before.map_or(i64::MIN, |at| launches[at].0);
        let first = waits.partition_point(|(start_ns, _)| *start_ns < previous_ns);
        let inside = waits[first..].iter().take_while(move |(start_ns, _)| *start_ns <= launch_ns);
        inside.map(|(_, ahead)| *ahead)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use stepscope_trace::{SliceId, Synchronization, Trace, drawn::drawn};

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
        let ahead = |event: &DeviceEvent| waits.ahead_of(&trace, event).map(name).collect::<String>();
        let found: Vec<String> = trace.device_events.iter().map(ahead).collect();
        assert_eq!(found, ["", "", "B", ""]);
    }
}

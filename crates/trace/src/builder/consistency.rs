//! What contradicts itself in a trace that is built: the device cannot start before it is asked, a wait cannot end
//! before what it waits for.

use crate::{DeviceEvent, FindingCode, SyncKind, Trace, TrackId};
use rustc_hash::FxHashMap;
use stepscope_base::Span;
use stepscope_base::units::format_ns;

/// Adds a finding for each contradiction.
pub(super) fn check(trace: &mut Trace) {
    let mut findings = std::mem::take(&mut trace.findings);
    let start_ns = |slice: crate::SliceId| trace.slices.start_ns[slice.index()];
    let (mut early, mut earliest) = (0, None::<(i64, DeviceEvent)>);
    for event in trace.device_events.iter() {
        let lead_ns = event.launch.map_or(0, |launch| start_ns(launch).saturating_sub(start_ns(event.slice)));
        early += u64::from(lead_ns > 0);
        if lead_ns > earliest.as_ref().map_or(0, |(known_ns, _)| *known_ns) {
            earliest = Some((lead_ns, event));
        }
    }
    if let Some((lead_ns, event)) = earliest {
        let (name, at_ns) = (short(trace.slice_name(event.slice)), start_ns(event.slice));
        let example = || format!("at most {}: {name} at {at_ns} ns", format_ns(lead_ns));
        findings.add(FindingCode::DeviceEventBeforeLaunch, example);
        findings.add_count(FindingCode::DeviceEventBeforeLaunch, early - 1);
    }
    let repeated = repeated_slices(trace);
    if let Some((first, count)) = repeated {
        let example = || format!("{} at {} ns", short(trace.slice_name(first)), start_ns(first));
        findings.add(FindingCode::RepeatedSlices, example);
        findings.add_count(FindingCode::RepeatedSlices, count - 1);
    }
    let streams = streams(trace);
    for wait in &trace.synchronizations {
        let wait_ns = start_ns(wait.slice);
        let shown = || format!("{} at {wait_ns} ns", wait.kind.as_str());
        let waits_for_event = matches!(wait.kind, SyncKind::Event | SyncKind::StreamWaitEvent);
        match wait.event_record {
            None if waits_for_event => findings.add(FindingCode::WaitWithoutEvent, shown),
            Some(record) if start_ns(record) > wait_ns => findings.add(FindingCode::WaitOnFutureEvent, shown),
            _ => {}
        }
        let stream = wait.stream.filter(|_| wait.kind == SyncKind::Stream);
        let track = stream.and_then(|stream| streams.get(&(wait.device, stream)));
        if track.is_some_and(|track| outlasts(trace, *track, trace.slices.span(wait.slice))) {
            findings.add(FindingCode::WaitTooShort, shown);
        }
    }
    trace.findings = findings;
}

/// Fewer slices that stand twice say nothing of a file.
const FEW: u64 = 10;

/// The first slice that stands twice, and how many do: of one name, start and duration on one track, where these are a
/// tenth of all or more, and not just a few. Single ones are nothing: a call may take as long as the only one inside it.
fn repeated_slices(trace: &Trace) -> Option<(crate::SliceId, u64)> {
    let slices = &trace.slices;
    let (mut first, mut count, mut all) = (None, 0_u64, 0_u64);
    for (at, track) in trace.tracks.iter().enumerate() {
        // What repeats a slice of a stream overlaps it, and lies on the lane behind.
        let mut before = (track.lane > 0).then(|| trace.tracks[at - 1].slice_ids().peekable());
        let order = |id: crate::SliceId| (slices.start_ns[id.index()], std::cmp::Reverse(slices.dur_ns[id.index()]));
        let is_same = |a: crate::SliceId, b: crate::SliceId| {
            order(a) == order(b) && slices.name[a.index()] == slices.name[b.index()]
        };
        let mut last = None;
        for id in track.slice_ids().filter(|id| slices.dur_ns[id.index()] > 0) {
            all += 1;
            let is_below = before.as_mut().is_some_and(|before| {
                while before.next_if(|other| order(*other) < order(id)).is_some() {}
                before.peek().is_some_and(|other| is_same(*other, id))
            });
            if is_below || last.is_some_and(|last| is_same(last, id)) {
                count += 1;
                first = first.or(Some(id));
            }
            last = Some(id);
        }
    }
    first.filter(|_| count >= FEW && count * 10 >= all).map(|first| (first, count))
}

/// The track of each stream.
fn streams(trace: &Trace) -> FxHashMap<(crate::DeviceId, i64), TrackId> {
    let tracks = trace.tracks.iter().enumerate().filter(|(_, track)| track.kind == crate::TrackKind::Stream);
    let tracks = tracks.filter(|(_, track)| track.lane == 0);
    tracks.filter_map(|(at, track)| Some(((track.device?, track.stream?), TrackId::from_index(at)))).collect()
}

/// True when a kernel that ran before a wait for its stream began still runs when that has ended.
fn outlasts(trace: &Trace, track: TrackId, wait: Span) -> bool {
    trace
        .open_slices(track, wait.end_ns)
        .any(|id| trace.slices.kind(id) == crate::SliceKind::Kernel && trace.slices.span(id).start_ns < wait.start_ns)
}

fn short(name: &str) -> String {
    name.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use crate::{
        Device, DeviceEvent, DeviceEventClass, DeviceId, FindingCode, LaunchKey, Process, ProcessId, SliceKind,
        SyncKind, Synchronization, TraceBuilder, Track, TrackKind,
    };

    /// A call at `call_ns`, a kernel of 10 ns that it launches at `kernel_ns`, a wait at `wait_ns`, and an event recorded at
    /// `record_ns`.
    fn findings(
        call_ns: i64,
        kernel_ns: i64,
        kind: SyncKind,
        wait_ns: i64,
        record_ns: Option<i64>,
    ) -> Vec<&'static str> {
        let mut builder = TraceBuilder::new("t");
        let process = builder.add_process(Process::default());
        let device = builder.add_device(Device::default());
        let thread = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
        let mut on_device = |kind: TrackKind| {
            let mut track = Track::new(kind, process, "7");
            (track.device, track.stream) = (Some(device), Some(7));
            builder.add_track(track)
        };
        let (stream, waits) = (on_device(TrackKind::Stream), on_device(TrackKind::StreamSync));
        let name = builder.strings.intern("x");
        let key = |correlation| LaunchKey { process: ProcessId(0), correlation };
        let call = builder.add_slice(thread, SliceKind::Runtime, name, call_ns, 1);
        builder.set_correlation(call, key(1));
        let kernel = builder.add_slice(stream, SliceKind::Kernel, name, kernel_ns, 10);
        builder.set_correlation(kernel, key(1));
        builder.add_device_event(DeviceEvent::new(kernel, DeviceId(0), DeviceEventClass::Compute));
        if let Some(record_ns) = record_ns {
            let record = builder.add_slice(thread, SliceKind::Runtime, name, record_ns, 1);
            builder.set_correlation(record, key(2));
        }
        let slice = builder.add_slice(waits, SliceKind::Synchronization, name, wait_ns, 2);
        let (stream, event_stream, call, event_record) = (Some(7), None, None, None);
        let wait = Synchronization { slice, kind, device, stream, event_stream, call, event_record };
        builder.add_synchronization(wait, Some(2));
        let trace = builder.finish();
        let is_other = |code: FindingCode| code != FindingCode::NoSteps;
        trace.findings.iter().map(|found| found.code).filter(|code| is_other(*code)).map(FindingCode::code).collect()
    }

    #[test]
    fn what_is_in_order_gives_no_finding() {
        assert_eq!(findings(0, 5, SyncKind::Stream, 15, None), [""; 0]);
        assert_eq!(findings(0, 5, SyncKind::StreamWaitEvent, 15, Some(3)), [""; 0]);
        // A wait of 2 ns for a kernel that runs from 5 to 15.
        assert_eq!(findings(0, 5, SyncKind::Stream, 13, None), [""; 0]);
        assert_eq!(
            findings(0, 5, SyncKind::Stream, 4, None),
            [""; 0],
            "a kernel that another thread launched meanwhile"
        );
    }

    #[test]
    fn each_contradiction_has_its_finding() {
        assert_eq!(findings(6, 5, SyncKind::Device, 15, None), ["trace.device_event_before_launch"]);
        assert_eq!(findings(0, 5, SyncKind::Stream, 12, None), ["trace.wait_too_short"]);
        assert_eq!(findings(0, 5, SyncKind::Event, 15, None), ["trace.wait_without_event"]);
        assert_eq!(findings(0, 5, SyncKind::StreamWaitEvent, 15, Some(16)), ["trace.wait_on_future_event"]);
    }

    #[test]
    fn the_largest_lead_of_a_device_is_the_example() {
        let trace = crate::drawn::drawn(
            "rank 0 cpu 1    a
             rank 0 launch 1 .....C.....C....C
             rank 0 stream 7 ....CC..CC.....CC",
        );
        let found = trace.findings.iter().find(|found| found.code == FindingCode::DeviceEventBeforeLaunch);
        let found = found.expect("three start before their launch");
        assert_eq!((found.count, &found.examples[..]), (3, &["at most 3.00 µs: C at 8000 ns".to_string()][..]));
    }

    #[test]
    fn a_file_that_holds_every_event_twice_says_so() {
        let repeated = |times: usize, overlaps: bool| {
            let mut builder = TraceBuilder::new("t");
            let process = builder.add_process(Process::default());
            let thread = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
            let stream = builder.add_track(Track::new(TrackKind::Stream, process, "7"));
            for _ in 0..times {
                for at in 0..20 {
                    let name = builder.strings.intern(if at % 2 == 0 { "x" } else { "y" });
                    builder.add_slice(thread, SliceKind::Op, name, at * 100, 50);
                    builder.add_slice(
                        stream,
                        SliceKind::Kernel,
                        name,
                        at * 100 + 60,
                        30 + if overlaps { 90 } else { 0 },
                    );
                }
            }
            builder.finish().findings.count(FindingCode::RepeatedSlices)
        };
        assert_eq!((repeated(1, false), repeated(1, true)), (0, 0));
        assert_eq!(repeated(2, false), 40);
        assert!(repeated(2, true) >= 20);
    }
}

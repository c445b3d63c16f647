//! The trace that a profiler would write of a run.

use super::Run;
use super::run::{ASK_NS, Carried, Done, LAUNCH_NS};
use crate::{
    Collective, CollectiveKind, Device, DeviceEvent, DeviceEventClass, DeviceId, LaunchKey, Process, ProcessId,
    SliceId, SliceKind, Trace, TraceBuilder, Track, TrackId, TrackKind,
};
use std::collections::BTreeMap;
use stepscope_base::{Span, StringTable};

/// Elements of every message.
const ELEMENTS: i64 = 1_000_000;
/// The stream, or thread, of the first channel; computing is on 1.
const FIRST_CHANNEL: i64 = 20;

/// The trace of some ranks.
pub(super) fn trace(run: &Run, ranks: &[u32]) -> Trace {
    let mut builder = TraceBuilder::new("simulated");
    ranks.iter().for_each(|rank| write_rank(run, *rank, &mut builder));
    builder.finish()
}

fn write_rank(run: &Run, rank: u32, builder: &mut TraceBuilder) {
    let host = run.job.host(rank).map(|host| format!("host{host}"));
    let process = builder.add_process(Process { rank, world_size: Some(run.job.ranks), host, ..Process::default() });
    let mut track = Track::new(TrackKind::Thread, process, "main");
    track.tid = Some(1);
    let main = builder.add_track(track);
    let device = run.job.has_devices.then(|| builder.add_device(Device { rank, ..Device::default() }));
    let tracks = BTreeMap::new();
    let mut writer = Writer { run, rank, builder, process, main, device, tracks, launches: 0 };
    let (mut step, mut first) = (0, 0);
    let done = &run.done[rank as usize];
    for (at, what) in done.iter().enumerate() {
        let Done::Step(span) = *what else { continue };
        writer.write_step(step, span, &done[first..at]);
        (step, first) = (step + 1, at + 1);
    }
}

struct Writer<'a> {
    run: &'a Run,
    rank: u32,
    builder: &'a mut TraceBuilder,
    process: ProcessId,
    main: TrackId,
    device: Option<DeviceId>,
    /// Streams, or threads of the backend, by their number.
    tracks: BTreeMap<i64, TrackId>,
    launches: i64,
}

impl Writer<'_> {
    fn write_step(&mut self, number: i64, span: Span, done: &[Done]) {
        let slice = self.slice(self.main, SliceKind::Step, &format!("ProfilerStep#{number}"), span);
        self.builder.add_step_label(slice, number);
        if self.device.is_none() {
            done.iter().for_each(|what| self.write_on_host(what));
            return;
        }
        let mut launch_ns = span.start_ns;
        for what in done {
            self.write_on_device(what, launch_ns);
            launch_ns += LAUNCH_NS;
        }
        self.slice(self.main, SliceKind::HostSync, "cudaDeviceSynchronize", Span::new(launch_ns, span.end_ns));
    }

    fn write_on_host(&mut self, done: &Done) {
        match done {
            Done::Computed(computed) => {
                self.slice(self.main, SliceKind::Op, computed.op, computed.span);
            }
            Done::Carried(carried) => {
                let asked = Span::new(carried.ready_ns - ASK_NS, carried.ready_ns);
                let op = self.slice(self.main, SliceKind::Op, "c10d::collective", asked);
                let track = self.track(FIRST_CHANNEL + carried.message.0 as i64);
                let work = self.slice(track, SliceKind::Annotation, "gloo:collective", carried.span);
                self.say(op, carried, false);
                self.say(work, carried, true);
            }
            Done::Step(_) => {}
        }
    }

    fn write_on_device(&mut self, done: &Done, launch_ns: i64) {
        let (name, stream, span, class) = match done {
            Done::Computed(of) => (of.op, 1, of.span, DeviceEventClass::Compute),
            Done::Carried(of) => {
                ("ncclDevKernel", FIRST_CHANNEL + of.message.0 as i64, of.span, DeviceEventClass::Communication)
            }
            Done::Step(_) => return,
        };
        let op = self.slice(self.main, SliceKind::Op, name, Span::new(launch_ns, launch_ns + LAUNCH_NS));
        let launched = Span::new(launch_ns + 2, launch_ns + LAUNCH_NS - 2);
        let launch = self.slice(self.main, SliceKind::Runtime, "cudaLaunchKernel", launched);
        let track = self.track(stream);
        let kernel = self.slice(track, SliceKind::Kernel, name, span);
        let device = self.device.expect("kernels run on one");
        self.builder.add_device_event(DeviceEvent { stream: Some(stream), ..DeviceEvent::new(kernel, device, class) });
        self.launches += 1;
        let key = LaunchKey { process: self.process, correlation: self.launches };
        [launch, kernel].into_iter().for_each(|slice| self.builder.set_correlation(slice, key));
        if let Done::Carried(carried) = done {
            self.say(op, carried, true);
        }
    }

    /// A slice between two true times, on the clock of the rank's host.
    fn slice(&mut self, track: TrackId, kind: SliceKind, name: &str, span: Span) -> SliceId {
        let [start_ns, end_ns] = [span.start_ns, span.end_ns].map(|ns| self.run.job.shown_ns(self.rank, ns));
        let name = self.builder.strings.intern(name);
        self.builder.add_slice(track, kind, name, start_ns, end_ns - start_ns)
    }

    /// The track of a stream of the device, or of a thread of the backend.
    fn track(&mut self, number: i64) -> TrackId {
        let (process, device) = (self.process, self.device);
        let kind = if device.is_some() { TrackKind::Stream } else { TrackKind::Thread };
        *self.tracks.entry(number).or_insert_with(|| {
            let mut track = Track::new(kind, process, format!("{number}"));
            (track.device, track.stream) = (device, device.map(|_| number));
            track.tid = device.is_none().then_some(number);
            self.builder.add_track(track)
        })
    }

    /// Operators of a rank without devices say which one they ask for, and not what it carries.
    fn say(&mut self, slice: SliceId, carried: &Carried, says_message: bool) {
        let channel = &self.run.channels[carried.message.0];
        let kind = channel.kind(self.rank);
        let (is_sender, is_receiver) = (kind == CollectiveKind::Send, kind == CollectiveKind::Receive);
        let name = if is_receiver { "recv" } else { channel.name };
        let peer = |at: usize| i64::from(channel.ranks[at]);
        let group = format!("{} {}", channel.group, channel.group_ranks[0]);
        let group_ranks = format!("{:?}", channel.group_ranks);
        let states_group = self.run.job.states_groups;
        let mut text = |text: &str| self.builder.strings.intern(text);
        let collective = Collective {
            slice,
            name: text(name),
            kind: Some(kind),
            dtype: text(if says_message { "Float" } else { "" }),
            input_elements: says_message.then_some(ELEMENTS),
            output_elements: says_message.then_some(ELEMENTS),
            input_split_sizes: StringTable::EMPTY,
            output_split_sizes: StringTable::EMPTY,
            group: text(&group),
            group_description: text(channel.group),
            group_size: Some(channel.group_ranks.len() as i64),
            group_ranks: text(&group_ranks),
            group_rank: None,
            source_rank: is_receiver.then(|| peer(0)),
            destination_rank: is_sender.then(|| peer(1)),
            is_async: Some(true),
            sequence_number: Some(carried.number),
        };
        let without_group = Collective {
            group: StringTable::EMPTY,
            group_description: StringTable::EMPTY,
            group_size: None,
            group_ranks: StringTable::EMPTY,
            sequence_number: None,
            ..collective
        };
        self.builder.add_collective(if states_group { collective } else { without_group });
    }
}

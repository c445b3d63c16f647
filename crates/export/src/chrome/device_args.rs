//! What is known of a slice on a device: launch, size, stream, what a wait waits for.

use super::slices::op_around;
use super::{Document, joining_id};
use crate::by_slice::{BySlice, device_events_by_slice};
use stepscope_engine::occupancy_ratio;
use stepscope_trace::{
    CopyDirection, Device, DeviceEvent, DeviceEventClass, DeviceEventId, DeviceFact, FactValue, SliceId, SyncKind,
    Synchronization, Trace, TrackKind,
};

/// What Kineto writes, with keys and in an order of its own.
const KINETO: [&str; 10] = [
    "grid",
    "block",
    "registers",
    "shared_bytes",
    "blocks_per_sm",
    "occupancy_ratio",
    "bytes",
    "graph",
    "graph_node",
    "context",
];

/// The tables that device slices have rows in.
pub(super) struct DeviceArgs<'a> {
    order: Vec<(SliceId, u32)>,
    next: usize,
    waits: BySlice<'a, Synchronization>,
}

impl<'a> DeviceArgs<'a> {
    pub(super) fn new(trace: &'a Trace) -> Self {
        let waits = BySlice::new(&trace.synchronizations, |row| row.slice);
        Self { order: device_events_by_slice(trace), next: 0, waits }
    }

    /// Writes the arguments of `slice`; slices come in ascending order. True for a kernel that communicates.
    pub(super) fn write(&mut self, document: &mut Document<'_>, slice: SliceId) -> bool {
        let track = &document.trace.tracks[document.trace.slices.track[slice.index()].index()];
        // Labels on devices have no stream of their own: readers take every row with a stream for device work.
        if let Some(device) = track.device.filter(|_| track.kind != TrackKind::Projection) {
            let device = document.device(device);
            document.json.int("device", device);
            document.json.int("stream", track.stream.unwrap_or(-1));
        }
        if let Some(wait) = self.waits.of(slice) {
            write_wait(document, wait);
        }
        self.next += self.order[self.next..].iter().take_while(|(of, _)| *of < slice).count();
        let Some((_, row)) = self.order.get(self.next).filter(|(of, _)| *of == slice) else { return false };
        self.next += 1;
        let event = document.trace.device_events.get(DeviceEventId(*row));
        write_event(document, &event);
        event.class == DeviceEventClass::Communication
    }
}

fn write_event(document: &mut Document<'_>, event: &DeviceEvent) {
    let trace = document.trace;
    let op = event.op.map(|op| document.id_of(op));
    let device = &trace.devices[event.device.index()];
    let json = &mut document.json;
    event.context.into_iter().for_each(|context| json.int("context", context));
    op.into_iter().for_each(|op| json.int("External id", op));
    event.launch.into_iter().for_each(|launch| json.int("correlation", joining_id(launch)));
    event.registers.into_iter().for_each(|count| json.int("registers per thread", count.into()));
    event.shared_bytes.into_iter().for_each(|bytes| json.unsigned("shared memory", bytes));
    event.blocks_per_sm.into_iter().for_each(|blocks| json.short_float("blocks per SM", blocks));
    warps_per_sm(event, device).into_iter().for_each(|warps| json.short_float("warps per SM", warps));
    event.grid.into_iter().for_each(|grid| json.sizes("grid", grid));
    event.block.into_iter().for_each(|block| json.sizes("block", block));
    // Where it was not recorded it is computed, and whole as Kineto's.
    let computed = || occupancy_ratio(event, device).map(|ratio| (ratio * 100.0).round());
    let occupancy = event.occupancy_ratio.map(percent).or_else(computed);
    occupancy.into_iter().for_each(|percent| json.float("est. achieved occupancy %", percent));
    event.bytes.into_iter().for_each(|bytes| json.int("bytes", bytes));
    // Bytes in a nanosecond are gigabytes in a second.
    let dur_ns = trace.slices.dur_ns[event.slice.index()];
    let bandwidth = event.bytes.filter(|_| dur_ns > 0).map(|bytes| bytes as f64 / dur_ns as f64);
    bandwidth.into_iter().for_each(|bandwidth| json.float("memory bandwidth (GB/s)", bandwidth));
    event.graph.into_iter().for_each(|graph| json.int("graph id", graph));
    event.graph_node.into_iter().for_each(|node| json.int("graph node id", node));
    if let DeviceEventClass::Memcpy(direction) = event.class {
        direction_text(direction).into_iter().for_each(|text| json.text("Copy Kind", text));
    }
    for fact in DeviceFact::ALL.iter().filter(|fact| !KINETO.contains(&fact.column)) {
        let key = fact.title;
        match fact.value {
            FactValue::Sizes(of) => of(event).into_iter().for_each(|sizes| json.sizes(key, sizes)),
            FactValue::Int(of) => of(event).into_iter().for_each(|value| json.int(key, value)),
            FactValue::Unsigned(of) => of(event).into_iter().for_each(|value| json.unsigned(key, value)),
            FactValue::Float(of) | FactValue::Ratio(of) => {
                of(event).into_iter().for_each(|value| json.short_float(key, value));
            }
            FactValue::Flag(_) => {}
        }
    }
}

/// Warps of the launch over the device's multiprocessors.
fn warps_per_sm(event: &DeviceEvent, device: &Device) -> Option<f32> {
    let threads: f32 = event.block?.into_iter().map(|size| size as f32).product();
    Some(event.blocks_per_sm? * threads / device.warp_size.filter(|size| *size > 0)? as f32)
}

/// The whole percentage, when it stands for this ratio.
fn percent(ratio: f32) -> f64 {
    let exact = f64::from(ratio) * 100.0;
    let whole = exact.round();
    if (whole / 100.0) as f32 == ratio { whole } else { exact }
}

fn direction_text(direction: CopyDirection) -> Option<&'static str> {
    match direction {
        CopyDirection::HostToDevice => Some("HtoD"),
        CopyDirection::DeviceToHost => Some("DtoH"),
        CopyDirection::DeviceToDevice => Some("DtoD"),
        CopyDirection::PeerToPeer => Some("PtoP"),
        CopyDirection::Unknown => None,
    }
}

fn write_wait(document: &mut Document<'_>, wait: &Synchronization) {
    let around = wait.call.and_then(|call| op_around(document, call));
    let json = &mut document.json;
    around.into_iter().for_each(|op| json.int("External id", op));
    let kind = match wait.kind {
        SyncKind::Device => Some("Context Sync"),
        SyncKind::Stream => Some("Stream Sync"),
        SyncKind::Event => Some("Event Sync"),
        SyncKind::StreamWaitEvent => Some("Stream Wait Event"),
        SyncKind::Unknown => None,
    };
    kind.into_iter().for_each(|kind| json.text("cuda_sync_kind", kind));
    wait.call.into_iter().for_each(|call| json.int("correlation", joining_id(call)));
    wait.event_stream.into_iter().for_each(|stream| json.int("wait_on_stream", stream));
    let record = wait.event_record.map(joining_id);
    record.into_iter().for_each(|record| json.int("wait_on_cuda_event_record_corr_id", record));
}

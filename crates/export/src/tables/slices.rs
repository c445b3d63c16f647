//! The tables of slices and of what they lie on: `slice`, `op`, `track`, `thread`, `process`.

use super::sheet::Sheet;
use super::source::Source;
use stepscope_base::StringId;
use stepscope_trace::{CommBackend, SliceId, SliceKind, Track, TrackId, TrackKind};

const PARENT: &str = "The slice directly around it on the same track; null where there is none.";
const STEP: &str = "The step that it belongs to: on the host that in which it starts, on a device that in which it was \
                    launched. Null outside of steps.";
pub(super) const START: &str = "When it starts, from the start of the trace.";
pub(super) const DUR: &str = "How long it takes.";
pub(super) const SLICE: &str = "Its slice.";
pub(super) const PID: &str = "The process.";
pub(super) const TID: &str = "The system's number of the thread; null where it is of none, or not told.";
pub(super) const TRACK: &str = "The track that it lies on.";

/// A row is anything with a duration.
pub(super) fn slice<'a>(source: &'a Source<'a>) -> Sheet<'a> {
    let trace = source.trace;
    let slices = &trace.slices;
    let id = |row: usize| SliceId(row as u32);
    let track_id = |row: usize| slices.track[row];
    let track = move |row: usize| &trace.tracks[track_id(row).index()];
    let of_track = move |row: usize| Some(slices.track[row].0.into());
    Sheet::new("slice", "Anything with a duration: an operator, a call, a kernel, a label.", slices.len())
        .id("slice", "Its id, by which other tables name it.", move |row| Some(source.id(id(row))))
        .named("name", "What it is called.", source, |row| Some(slices.name[row]))
        .text("kind", "What it is: op, annotation, kernel, runtime, io …", |row| Some(slices.kind[row].as_str()))
        .ns("start_ns", START, |row| Some(slices.start_ns[row]))
        .ns("dur_ns", DUR, |row| Some(slices.dur_ns[row]))
        .ns("self_ns", "How long it takes without the slices directly in it.", move |row| Some(source.self_ns(id(row))))
        .id("parent", PARENT, |row| source.maybe_id(slices.parent[row]))
        .int("depth", "How many slices of its track are around it.", |row| Some(slices.depth[row].into()))
        .int("step", STEP, move |row| source.step(id(row)))
        .flag(
            "is_unfinished",
            "Its end was not recorded; it reaches to the last moment at which its process lived.",
            |row| Some(slices.is_unfinished[row]),
        )
        .id("track", TRACK, move |row| Some(source.track_id(track_id(row))))
        .made("track_name", "What the track is called.", of_track, move |row| track(row).name.clone())
        .text("track_kind", "What the track is: thread, stream, stream_sync, projection, other.", move |row| {
            Some(track_kind(track(row)))
        })
        .int("lane", "0, or a further lane of the track for what overlaps without nesting.", move |row| {
            Some(track(row).lane.into())
        })
        .id("tid", TID, move |row| track(row).tid)
        .int("device", "The device; null on the host.", move |row| device(source, track(row)))
        .id("stream", "The stream; null on the host.", move |row| track(row).stream)
        .rank(move |row| source.rank_of_track(track_id(row)))
        .id("pid", PID, move |row| source.process_of(track(row)).pid)
        .made("process", "What the process is called.", of_track, move |row| source.process_of(track(row)).name.clone())
}

/// A row is an operator, or a label of which more is known.
pub(super) fn op<'a>(source: &'a Source<'a>) -> Sheet<'a> {
    let trace = source.trace;
    let slices = &trace.slices;
    let is_row = |id: &SliceId| slices.kind(*id) == SliceKind::Op || source.op(*id).is_some();
    let rows: Vec<SliceId> = slices.ids().filter(is_row).collect();
    let rows: std::sync::Arc<[SliceId]> = rows.into();
    let count = rows.len();
    let id = move |row: usize| rows[row];
    // Each column has the list of rows.
    macro_rules! of {
        (|$id:ident| $cell:expr) => {{
            let id = id.clone();
            move |row: usize| {
                let $id = id(row);
                $cell
            }
        }};
    }
    let info = move |id: SliceId| source.op(id).map(|row| &trace.ops.info[row]);
    let inputs = move |id: SliceId| info(id).map(|info| trace.ops.inputs(info.inputs));
    let known = move |text: Option<StringId>| text.and_then(|text| source.known(text));
    Sheet::new("op", "An operator or autograd node, or a label of which inputs are known.", count)
        .id("slice", SLICE, of!(|id| Some(source.id(id))))
        .named("name", "What it is called.", source, of!(|id| Some(slices.name[id.index()])))
        .text("kind", "op, or what else it is.", of!(|id| Some(slices.kind(id).as_str())))
        .ns("start_ns", START, of!(|id| Some(source.start_ns(id))))
        .ns("dur_ns", DUR, of!(|id| Some(source.dur_ns(id))))
        .ns(
            "self_ns",
            "How long it takes without the operators that it calls.",
            of!(|id| Some(source.without_ops_ns(id))),
        )
        .id("parent", PARENT, of!(|id| source.maybe_id(slices.parent(id))))
        .int("step", STEP, of!(|id| source.step(id)))
        .rank(of!(|id| source.rank_of(id)))
        .id("pid", PID, of!(|id| source.process_of(source.track_of(id)).pid))
        .id("tid", TID, of!(|id| source.track_of(id).tid))
        .id("track", TRACK, of!(|id| Some(source.track_id(slices.track[id.index()]))))
        .id(
            "sequence_number",
            "Autograd's number, which a forward operator and its backward node have in common.",
            of!(|id| info(id)?.sequence_number),
        )
        .unsigned(
            "forward_thread",
            "Of a backward node, PyTorch's number of the thread of the forward operator.",
            of!(|id| info(id)?.forward_thread),
        )
        .int(
            "scope",
            "PyTorch's RecordScope: 0 operator, 1 autograd node, 7 label.",
            of!(|id| Some(info(id)?.scope.into())),
        )
        .named("input_dims", "Sizes of its inputs, as JSON.", source, of!(|id| known(inputs(id).map(|of| of.dims))))
        .named("input_types", "Types of its inputs, as JSON.", source, of!(|id| known(inputs(id).map(|of| of.types))))
        .named(
            "input_strides",
            "Strides of its inputs, as JSON.",
            source,
            of!(|id| known(inputs(id).map(|of| of.strides))),
        )
        .named(
            "concrete_inputs",
            "Values of its inputs that are numbers, as JSON.",
            source,
            of!(|id| known(inputs(id).map(|of| of.concrete))),
        )
        .named(
            "keyword_inputs",
            "Inputs that have names, as JSON.",
            source,
            of!(|id| known(inputs(id).map(|of| of.keywords))),
        )
        .named(
            "overload",
            "Which overload of its name it is.",
            source,
            of!(|id| known(info(id).map(|info| info.overload))),
        )
        .named(
            "stack",
            "Its Python stack, innermost first, with ; between frames.",
            source,
            of!(|id| known(info(id).map(|info| info.stack))),
        )
}

/// A row is a track.
pub(super) fn track<'a>(source: &'a Source<'a>) -> Sheet<'a> {
    let trace = source.trace;
    let track = |row: usize| &trace.tracks[row];
    Sheet::new(
        "track",
        "A lane on which slices nest: a thread, a stream of a device, or a lane of one.",
        trace.tracks.len(),
    )
    .id("track", "Its id, by which other tables name it.", |row| Some(source.track_id(TrackId(row as u32))))
    .text("name", "What it is called.", move |row| Some(track(row).name.as_str()))
    .text("kind", "thread, stream, stream_sync, projection, other.", move |row| Some(track_kind(track(row))))
    .int("lane", "0, or a further lane for what overlaps without nesting.", move |row| Some(track(row).lane.into()))
    .rank(|row| source.rank_of_track(TrackId(row as u32)))
    .id("pid", PID, move |row| source.process_of(track(row)).pid)
    .id("tid", TID, move |row| track(row).tid)
    .int("device", "The device; null on the host.", move |row| device(source, track(row)))
    .id("stream", "The stream; null on the host.", move |row| track(row).stream)
    .int("slices", "How many slices lie on it.", move |row| Some(track(row).slices.len() as i64))
}

/// A row is a thread of a process.
pub(super) fn thread<'a>(source: &'a Source<'a>) -> Sheet<'a> {
    let trace = source.trace;
    let is_thread = |at: &usize| trace.tracks[*at].kind == TrackKind::Thread && trace.tracks[*at].lane == 0;
    let rows: Vec<TrackId> = (0..trace.tracks.len()).filter(is_thread).map(TrackId::from_index).collect();
    let rows: std::sync::Arc<[TrackId]> = rows.into();
    let count = rows.len();
    let [ids, names, ranks, pids, tids, slices] = std::array::from_fn(|_| std::sync::Arc::clone(&rows));
    let track = move |id: TrackId| &trace.tracks[id.index()];
    Sheet::new("thread", "A thread of a process.", count)
        .id("track", "Its track.", move |row| Some(source.track_id(ids[row])))
        .text("name", "What it is called.", move |row| Some(track(names[row]).name.as_str()))
        .rank(move |row| source.rank_of_track(ranks[row]))
        .id("pid", PID, move |row| source.process_of(track(pids[row])).pid)
        .id("tid", "The system's number of it.", move |row| track(tids[row]).tid)
        .int("slices", "How many slices lie on it, in all lanes.", move |row| {
            Some(trace.lanes(slices[row]).map(|lane| track(lane).slices.len() as i64).sum())
        })
}

/// A row is a process.
pub(super) fn process<'a>(source: &'a Source<'a>) -> Sheet<'a> {
    let trace = source.trace;
    let process = |row: usize| &trace.processes[row];
    let settings = move |row: usize| &process(row).settings;
    Sheet::new("process", "A process of the job.", trace.processes.len())
        .rank(move |row| process(row).rank)
        .id("pid", "Its number on its host.", move |row| process(row).pid)
        .id("parent_pid", "The process that started it, where it is of the same rank.", move |row| {
            process(row).parent_pid
        })
        .text("name", "What it is called.", move |row| Some(process(row).name.as_str()))
        .text("host", "Its host.", move |row| process(row).host.as_deref())
        .int("world_size", "How many ranks the job has.", move |row| process(row).world_size.map(i64::from))
        .text("comm_backend", "What carries its collectives: nccl, gloo, mpi.", move |row| {
            process(row).comm_backend.map(comm_backend)
        })
        .int("threads", "Threads that an operator may compute with.", move |row| settings(row).threads)
        .int("cores", "Cores of the machine.", move |row| settings(row).cores)
        .int("cores_allowed", "Cores that the thread that runs the steps may use.", move |row| {
            settings(row).cores_allowed
        })
        .int("parameters", "Elements of the parameters that the optimizer steps.", move |row| settings(row).parameters)
}

fn comm_backend(backend: CommBackend) -> &'static str {
    match backend {
        CommBackend::Nccl => "nccl",
        CommBackend::Gloo => "gloo",
        CommBackend::Mpi => "mpi",
    }
}

fn device(source: &Source<'_>, track: &Track) -> Option<i64> {
    track.device.map(|id| source.trace.devices[id.index()].ordinal)
}

fn track_kind(track: &Track) -> &'static str {
    match track.kind {
        TrackKind::Thread => "thread",
        TrackKind::Stream => "stream",
        TrackKind::StreamSync => "stream_sync",
        TrackKind::Projection => "projection",
        TrackKind::Other => "other",
    }
}

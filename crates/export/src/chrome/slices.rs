//! Slices: complete events in the order of tracks, each with what is known of it.

use super::device_args::DeviceArgs;
use super::host_args::HostArgs;
use super::profile::{Profile, listed_module};
use super::slice_prefixes::SlicePrefixCache;
use super::{Document, Json};
use crate::by_slice::BySlice;
use std::borrow::Cow;
use std::io;
use stepscope_base::StringTable;
use stepscope_trace::{Collective, SliceId, SliceKind, TrackId};

pub(super) fn write(document: &mut Document<'_>) -> io::Result<()> {
    let trace = document.trace;
    let mut host_args = HostArgs::new(trace);
    let mut device_args = DeviceArgs::new(trace);
    let mut collectives = BySlice::new(&trace.collectives, |row| row.slice);
    for track in (0..trace.tracks.len()).map(TrackId::from_index) {
        if !document.has_track(track) {
            continue;
        }
        if trace.tracks[track.index()].lane == 0 {
            document.profile.iter_mut().for_each(Profile::begin_thread);
        }
        document.profile.iter_mut().for_each(Profile::forget_text);
        let mut prefixes = SlicePrefixCache::new(document.row(track));
        for slice in trace.tracks[track.index()].slice_ids() {
            let kind = trace.slices.kind(slice);
            let op = host_args.op(slice);
            let category = category(kind, op.is_some());
            let (start_ns, dur_ns) = (trace.slices.start_ns[slice.index()], trace.slices.dur_ns[slice.index()]);
            let head = prefixes
                .of(trace.slices.name[slice.index()], kind, category, || shown_name(kind, trace.slice_name(slice)));
            document.json.open_slice(head, start_ns, dur_ns);
            host_args.write(document, slice, op);
            let collective = collectives.of(slice);
            let is_communication = device_args.write(document, slice);
            let strings = &trace.strings;
            collective.into_iter().for_each(|collective| write_collective(&mut document.json, strings, collective));
            let is_communication = is_communication && collective.is_none();
            write_words(&mut document.json, kind, is_communication, trace.slices.is_unfinished[slice.index()]);
            document.json.close();
            document.end_event()?;
        }
    }
    Ok(())
}

/// A slice's name as Kineto writes it.
pub(super) fn shown_name(kind: SliceKind, name: &str) -> Cow<'_, str> {
    match kind {
        SliceKind::Module => {
            let listed = listed_module(name).map_or(name, |(listed, ..)| listed);
            Cow::from(format!("nn.Module: {listed}"))
        }
        _ => Cow::from(name),
    }
}

/// The category that today's Kineto gives to such rows. Of labels, those that old profilers recorded as operators stay
/// operators: they have what only operators have.
pub(super) fn category(kind: SliceKind, is_known_as_op: bool) -> &'static str {
    match kind {
        SliceKind::Op => "cpu_op",
        SliceKind::Step | SliceKind::DataLoader | SliceKind::Optimizer if is_known_as_op => "cpu_op",
        SliceKind::Annotation | SliceKind::Step | SliceKind::DataLoader | SliceKind::Optimizer => "user_annotation",
        SliceKind::DeviceAnnotation => "gpu_user_annotation",
        SliceKind::PythonFunction | SliceKind::Module => "python_function",
        SliceKind::Runtime | SliceKind::HostSync => "cuda_runtime",
        SliceKind::Driver => "cuda_driver",
        SliceKind::Io => "io",
        SliceKind::Synchronization => "cuda_sync",
        SliceKind::Kernel => "kernel",
        SliceKind::Memcpy => "gpu_memcpy",
        SliceKind::Memset => "gpu_memset",
        SliceKind::Overhead => "overhead",
        SliceKind::Other => "other",
    }
}

/// What category and arguments do not say, for our own reader.
pub(super) fn write_words(json: &mut Json, kind: SliceKind, is_communication: bool, is_unfinished: bool) {
    let is_told_by_name_alone =
        matches!(kind, SliceKind::DataLoader | SliceKind::Optimizer | SliceKind::HostSync | SliceKind::Io);
    let words = [
        is_told_by_name_alone.then_some(kind.as_str()),
        is_communication.then_some("communication"),
        is_unfinished.then_some("unfinished"),
    ];
    let words: Vec<&str> = words.into_iter().flatten().collect();
    if !words.is_empty() {
        json.text("Stepscope", &words.join(" "));
    }
}

pub(super) fn write_collective(json: &mut Json, strings: &StringTable, collective: &Collective) {
    let texts = [
        ("Collective name", collective.name),
        ("dtype", collective.dtype),
        ("Process Group Name", collective.group),
        ("Process Group Description", collective.group_description),
        ("Process Group Ranks", collective.group_ranks),
        ("In split size", collective.input_split_sizes),
        ("Out split size", collective.output_split_sizes),
    ];
    for (key, text) in texts.map(|(key, id)| (key, strings.get(id))) {
        if !text.is_empty() {
            json.text(key, text);
        }
    }
    let numbers = [
        ("In msg nelems", collective.input_elements),
        ("Out msg nelems", collective.output_elements),
        ("Group size", collective.group_size),
        ("Rank", collective.group_rank),
        ("Src Rank", collective.source_rank),
        ("Dst Rank", collective.destination_rank),
        ("Is asynchronized op", collective.is_async.map(i64::from)),
        ("Seq", collective.sequence_number),
    ];
    numbers.into_iter().filter_map(|(key, n)| Some((key, n?))).for_each(|(key, n)| json.int(key, n));
}

/// The op that a slice lies in, on its own track.
pub(super) fn op_around(document: &Document<'_>, slice: SliceId) -> Option<i64> {
    let slices = &document.trace.slices;
    let mut around = slices.with_ancestors(slice).skip(1);
    around.find(|id| slices.kind(*id) == SliceKind::Op).map(|op| document.id_of(op))
}

//! A part of a capture as rows of a trace, in the order in which [`open_filtered`](super::open_filtered) has them, and
//! without holding them.
//!
//! ```text
//! capture ─┬─▶ skeleton   the first pass over each thread, for what must be known before its rows: a trace of few rows,
//!          │              built as any other, with processes, threads, metadata, steps, counters
//!          └─▶ rows       the second pass over each thread: whole slices by start, whatever their lanes
//! ```
//!
//! What is read so is decided in [`StreamedRecording::open`] and [`StreamedCapture::open`]: all but rings, damaged
//! files, parts that captures have become, names that stand in their records, ranges that end on another thread, work
//! of devices, and what was open where the recording ends. While rows are written, operators that overlap without
//! nesting and records far from their places turn out to need a trace.

mod own_functions;
mod reorder_buffer;
mod row_batcher;
mod skeleton;

use super::collectives::describe;
use super::{
    DEVICE_SESSION, ModuleNames, OpInfos, add_all, host_offsets, intern_names, kind_of_call, kind_of_event, memory,
    shifted_ns, used_threads, window_of,
};
use reorder_buffer::ReorderBuffer;
use row_batcher::{RowBatcher, write_batched};
use skeleton::TraceSkeleton;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use stepscope_base::{Span, StringId, StringTable};
use stepscope_capture::{Capture, EndIndex, Event, EventSink, StepRange, StreamedCapture};
use stepscope_run::{ListedCalls, RecordFilter, ResolvedFilter, ThreadFilter, ThreadInclusion};
use stepscope_trace::{Collective, DeviceId, MemoryEvent, OpInfo, SliceKind, Trace, TraceBuilder, TrackId, TrackKind};

/// A slice, as a trace would have it.
#[derive(Clone, Copy, Debug)]
pub struct StreamedSlice<'a> {
    /// What it is.
    pub kind: SliceKind,
    /// Tells its name from those of other slices of its kind.
    pub name: StringId,
    /// Its name.
    pub text: &'a str,
    /// Start, ns since the start of the trace.
    pub start_ns: i64,
    /// Duration, ns.
    pub dur_ns: i64,
    /// True when its end was not recorded.
    pub is_unfinished: bool,
    /// What is known of it as an op.
    pub op: Option<OpInfo>,
    /// The collective that it is; the row's own slice means nothing.
    pub collective: Option<Collective>,
}

/// Receives rows.
pub trait SliceSink {
    /// The slices of a thread follow.
    fn begin_thread(&mut self, track: TrackId);
    /// The next slice of the thread: threads are in the order of a trace's tracks, slices by start and longest first,
    /// those of all lanes together.
    ///
    /// # Errors
    /// When nothing more is wanted.
    fn slice(&mut self, slice: &StreamedSlice<'_>) -> io::Result<()>;
    /// An allocation, a free, or one that failed. Those of a thread come by time, among its slices.
    ///
    /// # Errors
    /// When nothing more is wanted.
    fn memory(&mut self, event: &MemoryEvent, is_out_of_memory: bool) -> io::Result<()>;
}

/// A part of a capture.
#[derive(Debug)]
pub struct StreamedRecording {
    capture: StreamedCapture,
    resolved: ResolvedFilter,
    thread_filter: ThreadFilter,
    skeleton: Trace,
    /// Threads that have rows, with their tracks.
    threads: Vec<(EndIndex, TrackId)>,
    /// The capture of the skeleton, filtered.
    skeleton_capture: Capture,
    names: Vec<(StringId, SliceKind)>,
    op_infos: OpInfos,
    /// By the id of the name that describes them.
    collectives: HashMap<u32, Collective>,
    devices: HashMap<i64, DeviceId>,
    /// What turns times of the capture into those of the trace.
    offset_ns: i64,
}

impl StreamedRecording {
    /// The part of the capture at `raw` that `filter` selects; `None` when a whole trace has to be read instead.
    pub fn open(raw: &Path, filter: &RecordFilter) -> Option<Self> {
        let mut capture = StreamedCapture::open(raw).ok()??;
        // Who launched what is joined in a trace.
        if capture.has_device_activities() {
            return None;
        }
        let resolved = filter.resolve(&capture.windows());
        let times = resolved.times()?;
        if capture.has_ends_elsewhere(&(times.start..i64::MAX)) {
            return None;
        }
        let mut skeleton_capture = capture.take_capture();
        // A range's number is joined to it by the begins before and after it, which takes the whole list.
        let is_numbered = super::range_numbers::is_any(&skeleton_capture);
        if is_numbered || skeleton_capture.metadata.iter().any(|(key, _)| key.starts_with(DEVICE_SESSION)) {
            return None;
        }
        let has_calls = !filter.exclude.calls;
        // Calls that were open when a span began are around what is in it.
        let times = Range { start: if has_calls { i64::MIN } else { times.start }, ..times };
        let widest_thread_filter =
            filter.widest_thread_filter(&skeleton_capture.threads, &skeleton_capture.profiler_states);
        let mut skeleton = TraceSkeleton::new(&resolved, &widest_thread_filter, &skeleton_capture);
        let mut end_indexes = Vec::new();
        for (thread, inclusion) in
            (0..).zip(filter.thread_inclusions(&skeleton_capture.threads, &skeleton_capture.profiler_states))
        {
            let times = match inclusion {
                ThreadInclusion::Yes => times.clone(),
                // Whether it ever ran a backward pass for a thread that is selected.
                ThreadInclusion::IfBackward => Range { start: i64::MIN, end: i64::MAX },
                ThreadInclusion::No => continue,
            };
            skeleton.begin_thread(thread);
            end_indexes.push((thread, capture.index_ends(thread, &times, has_calls, &mut skeleton).ok()??));
        }
        skeleton.finish_into(&mut skeleton_capture);
        let thread_filter = filter.thread_filter(&skeleton_capture);
        filter.apply(&mut skeleton_capture);
        // Another thread may have ended a step, and it is not known for sure when the process was last seen.
        let is_unclear =
            skeleton_capture.steps.iter().any(|step| step.is_unfinished) && skeleton_capture.threads.len() > 1;
        if is_unclear
            || skeleton.is_unclear()
            || (skeleton.has_unfinished() && capture.lived_until_ns() < resolved.end_ns())
        {
            return None;
        }
        Some(Self::new(raw, capture, (resolved, thread_filter), skeleton_capture, end_indexes))
    }

    fn new(
        raw: &Path,
        capture: StreamedCapture,
        (resolved, thread_filter): (ResolvedFilter, ThreadFilter),
        skeleton_capture: Capture,
        mut end_indexes: Vec<(u32, EndIndex)>,
    ) -> Self {
        let mut builder = TraceBuilder::new(raw.file_stem().unwrap_or_default().to_string_lossy());
        builder.sources.push(raw.display().to_string());
        builder.clock_zero_unix_ns = Some(0);
        add_all(&[&skeleton_capture], true, &mut builder);
        let names = intern_names(&skeleton_capture, &mut builder);
        let op_infos = OpInfos::of(&skeleton_capture, &mut builder);
        let described = skeleton_capture.events.iter().filter_map(|event| Some(event.collective?.description));
        let described = described.map(|id| (id, describe(&skeleton_capture.names[id as usize], &mut builder.strings)));
        let collectives = described.collect();
        let unix_offset_ns = host_offsets(&[&skeleton_capture])[&skeleton_capture.process.boot_id];
        let mut skeleton = builder.finish();
        // They are among the rows.
        skeleton.memory.clear();
        skeleton.out_of_memory.clear();
        skeleton.flows.clear();
        let devices = skeleton.devices.iter().enumerate();
        let devices = devices.map(|(at, device)| (device.ordinal, DeviceId::from_index(at))).collect();
        let used = used_threads(&skeleton_capture);
        end_indexes.retain(|(thread, _)| used.contains(thread));
        let tracks = skeleton.tracks.iter().enumerate();
        let threads = tracks.filter(|(_, track)| track.kind == TrackKind::Thread && track.lane == 0);
        let tracks: HashMap<u32, TrackId> =
            used.iter().copied().zip(threads.map(|(at, _)| TrackId::from_index(at))).collect();
        let threads = end_indexes.into_iter().map(|(thread, end_index)| (end_index, tracks[&thread])).collect();
        let offset_ns = unix_offset_ns.saturating_sub(skeleton.start_unix_ns.unwrap_or(0));
        Self {
            capture,
            resolved,
            thread_filter,
            skeleton,
            threads,
            skeleton_capture,
            names,
            op_infos,
            collectives,
            devices,
            offset_ns,
        }
    }

    /// The trace, but for slices, memory and arrows.
    pub fn skeleton(&self) -> &Trace {
        &self.skeleton
    }

    /// The trace, to add what a reader cannot know.
    pub fn skeleton_mut(&mut self) -> &mut Trace {
        &mut self.skeleton
    }

    /// When it was recorded, in times of the trace.
    pub fn window(&self) -> Option<Span> {
        window_of(&self.resolved, self.skeleton_capture.unix_offset_ns, &self.skeleton)
    }

    /// Writes everything to `sink`. False when a whole trace has to be read instead: what was written is then invalid.
    ///
    /// # Errors
    /// What `sink` says, and when the system has no more threads.
    pub fn write_to(&self, sink: &mut impl SliceSink) -> io::Result<bool> {
        write_batched(|batcher| self.produce_rows(batcher), sink)
    }

    /// Produces all rows. False when a whole trace has to be read instead.
    fn produce_rows<'a>(&'a self, batcher: &mut RowBatcher<'a>) -> bool {
        let mut modules = ModuleNames::listed(&self.skeleton_capture);
        let mut module_texts = StringTable::default();
        self.threads.iter().all(|(end_index, track)| {
            batcher.begin_thread(*track);
            let mut thread = ThreadRowProducer {
                recording: self,
                track: *track,
                steps: self.steps_of(end_index.thread()).into_iter().rev().collect(),
                reorder_buffer: ReorderBuffer::default(),
                calls: ListedCalls::of(&self.skeleton_capture.names),
                open_ops: Vec::new(),
                modules: &mut modules,
                module_texts: &mut module_texts,
                batcher: &mut *batcher,
                needs_full_trace: false,
            };
            // What cannot be read now is reported when all of it is read.
            let is_complete = self.capture.replay(end_index, &mut thread).unwrap_or(false);
            thread.finish() && is_complete
        })
    }

    /// The steps of a thread, by start and longest first.
    fn steps_of(&self, thread: u32) -> Vec<StepRange> {
        let steps = self.skeleton_capture.steps.iter().filter(|step| step.thread == thread);
        let mut steps: Vec<StepRange> = steps.copied().collect();
        steps.sort_by_key(|step| (step.start_ns, std::cmp::Reverse(step.end_ns)));
        steps
    }

    /// Start and duration in the trace.
    #[inline]
    fn align(&self, start_ns: i64, end_ns: i64) -> (i64, i64) {
        let start_ns = shifted_ns(start_ns, self.offset_ns);
        (start_ns, shifted_ns(end_ns, self.offset_ns).max(start_ns) - start_ns)
    }
}

/// Produces the rows of one thread.
struct ThreadRowProducer<'a, 'r> {
    recording: &'a StreamedRecording,
    track: TrackId,
    /// Labelled steps that have not been produced yet, the next one last.
    steps: Vec<StepRange>,
    reorder_buffer: ReorderBuffer,
    calls: ListedCalls,
    /// The ends of operators that are open, the innermost last.
    open_ops: Vec<i64>,
    modules: &'r mut ModuleNames<'a>,
    module_texts: &'r mut StringTable,
    batcher: &'r mut RowBatcher<'a>,
    needs_full_trace: bool,
}

/// A slice, and its name where that is not one of the capture's.
type Named<'a> = (StreamedSlice<'a>, Option<String>);

impl<'a> ThreadRowProducer<'a, '_> {
    /// Produces what is left. False when a whole trace has to be read instead.
    fn finish(&mut self) -> bool {
        while let Some((event, ran)) = self.reorder_buffer.pop_any() {
            self.add(&event, ran);
        }
        self.add_steps_before(None);
        !self.needs_full_trace && !self.reorder_buffer.needs_full_trace()
    }

    /// Adds the next event of the thread, which ran at that time.
    #[inline]
    fn add(&mut self, event: &Event, ran: Range<i64>) {
        if !self.calls.lists_when(event, ran) {
            return;
        }
        self.add_steps_before(Some(event));
        let recording = self.recording;
        let (start_ns, dur_ns) = recording.align(event.start_ns, event.end_ns);
        let (mut name, label) = recording.names[event.name as usize];
        let text = recording.skeleton_capture.names[event.name as usize].as_str();
        let called = kind_of_call(event.scope);
        let kind = called.unwrap_or_else(|| kind_of_event(event, label, &recording.skeleton_capture.steps));
        let mut own = None;
        if kind == SliceKind::Module {
            name = self.modules.name(event, self.module_texts);
            own = Some(self.module_texts.get(name).to_string());
        }
        let is_op = called.is_none() && (kind == SliceKind::Op || event.inputs.is_some());
        let collective = event.collective.filter(|_| called.is_none()).and_then(|recorded| {
            let described = *recording.collectives.get(&recorded.description)?;
            Some(Collective { sequence_number: recorded.sequence_number, ..described })
        });
        let (is_unfinished, op) = (event.is_unfinished, is_op.then(|| recording.op_infos.info(event)));
        self.push_slice((StreamedSlice { kind, name, text, start_ns, dur_ns, is_unfinished, op, collective }, own));
    }

    #[inline]
    fn add_steps_before(&mut self, event: Option<&Event>) {
        while let Some(step) = self.steps.last() {
            let is_before = |event: &Event| (step.start_ns, event.end_ns) < (event.start_ns, step.end_ns);
            if !event.is_none_or(is_before) {
                return;
            }
            let step = *step;
            self.steps.pop();
            let (start_ns, dur_ns) = self.recording.align(step.start_ns, step.end_ns);
            let text = format!("ProfilerStep#{}", step.number);
            // The skeleton has the same step.
            let name = self.recording.skeleton.strings.find(&text).unwrap_or(StringTable::EMPTY);
            let (kind, is_unfinished) = (SliceKind::Step, step.is_unfinished);
            let (op, collective) = (None, None);
            let slice = StreamedSlice { kind, name, text: "", start_ns, dur_ns, is_unfinished, op, collective };
            self.push_slice((slice, Some(text)));
        }
    }

    /// Adds a slice. Where arrows of operators end depends on those that overlap them.
    #[inline]
    fn push_slice(&mut self, (slice, own): Named<'a>) {
        if slice.kind == SliceKind::Op {
            let end_ns = slice.start_ns + slice.dur_ns;
            while self.open_ops.last().is_some_and(|open_end| *open_end <= slice.start_ns) {
                self.open_ops.pop();
            }
            self.needs_full_trace |= self.open_ops.last().is_some_and(|open_end| *open_end < end_ns);
            self.open_ops.push(end_ns);
        }
        self.batcher.slice(&slice, own);
    }

    /// False when the rest need not be produced.
    fn continues(&self) -> bool {
        !self.needs_full_trace && self.batcher.has_receiver()
    }
}

impl EventSink for ThreadRowProducer<'_, '_> {
    #[inline]
    fn range(&mut self, event: &Event) {
        if !self.continues() || !self.recording.thread_filter.has_event(event) {
            return;
        }
        let Some(span) = self.recording.resolved.clip_event(event) else { return };
        self.reorder_buffer.push(event, span);
        if let Some((event, ran)) = self.reorder_buffer.pop() {
            self.add(&event, ran);
        }
    }

    fn memory(&mut self, event: &stepscope_capture::MemoryEvent) {
        let is_asked = self.recording.resolved.contains(event.time_ns)
            && self.recording.thread_filter.has(event.thread, event.time_ns);
        if !is_asked || !self.continues() {
            return;
        }
        let ordinal = (event.device_type != memory::HOST).then(|| i64::from(event.device_index.unwrap_or(0)));
        let seen = MemoryEvent {
            time_ns: self.recording.align(event.time_ns, event.time_ns).0,
            track: self.track,
            device: ordinal.and_then(|ordinal| self.recording.devices.get(&ordinal)).copied(),
            address: event.address.unwrap_or(0),
            bytes: event.bytes,
            allocated_bytes: event.allocated_bytes,
            reserved_bytes: event.reserved_bytes,
            op: None,
            stream: None,
            stack: None,
        };
        self.batcher.memory(seen, event.is_out_of_memory());
    }
}

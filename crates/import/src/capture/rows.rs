//! What a filter selects of a recording as rows of a Chrome trace, without a trace: a trace takes several times the
//! memory of the recording.
//!
//! ```text
//! capture ─┬─▶ skeleton   a trace of the few events that processes, threads, steps and counters depend on
//!          └─▶ rows       whole slices of one thread after the other, by start, whatever their lanes
//! ```
//!
//! Work of devices, sessions of other profilers, and numbers of ranges are joined with what they belong to in a trace;
//! so are operators that overlap without nesting, which turn up while rows are written.

use super::collectives::describe;
use super::{
    DEVICE_SESSION, ModuleNames, OpInfos, USER_SCOPE, add_all, intern_names, kind_of_call, kind_of_event,
    kind_of_label, memory, range_numbers, shifted_ns, used_threads, window_of,
};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io;
use stepscope_base::{Span, StringId, StringTable};
use stepscope_capture::layout::scope;
use stepscope_capture::{Capture, Event, EventList, StepRange};
use stepscope_run::{RecordFilter, ResolvedFilter};
use stepscope_trace::{Collective, DeviceId, MemoryEvent, OpInfo, SliceKind, Trace, TraceBuilder, TrackId, TrackKind};

/// A slice, as a trace would have it.
#[derive(Clone, Copy, Debug)]
pub struct SliceRow<'a> {
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
    fn slice(&mut self, slice: &SliceRow<'_>) -> io::Result<()>;
    /// An allocation, a free, or one that failed. Those of a thread come by time, among its slices.
    ///
    /// # Errors
    /// When nothing more is wanted.
    fn memory(&mut self, event: &MemoryEvent, is_out_of_memory: bool) -> io::Result<()>;
}

/// What a filter selects of a recording.
#[derive(Debug)]
pub struct RecordingRows {
    capture: Capture,
    window: Option<Span>,
    skeleton: Trace,
    /// Threads that have rows, with their tracks.
    threads: Vec<(u32, TrackId)>,
    names: Vec<(StringId, SliceKind)>,
    op_infos: OpInfos,
    /// By the id of the name that describes them.
    collectives: HashMap<u32, Collective>,
    devices: HashMap<i64, DeviceId>,
    /// What turns times of the capture into those of the trace.
    offset_ns: i64,
}

impl RecordingRows {
    /// What `filter` selects of the recording at `raw`; `None` when a whole trace has to be read instead.
    pub fn open(raw: &std::path::Path, filter: &RecordFilter) -> Option<Self> {
        let mut capture = stepscope_run::read_capture(raw, filter).ok()?;
        let resolved = filter.resolve(&capture.windows);
        // Who launched what is joined in a trace, and so is a range with its number.
        let is_joined = !capture.device.is_empty()
            || range_numbers::is_any(&capture)
            || capture.metadata.iter().any(|(key, _)| key.starts_with(DEVICE_SESSION));
        if is_joined || resolved.times().is_none() {
            return None;
        }
        filter.apply(&mut capture);
        // Calls that were open when a span began all begin there.
        capture.events.sort();
        let mut builder = TraceBuilder::new(raw.file_stem().unwrap_or_default().to_string_lossy());
        builder.sources.push(raw.display().to_string());
        builder.clock_zero_unix_ns = Some(0);
        Some(Self::new(capture, &resolved, builder))
    }

    fn new(mut capture: Capture, resolved: &ResolvedFilter, mut builder: TraceBuilder) -> Self {
        let picked = picked_events(&capture, resolved);
        let events = std::mem::replace(&mut capture.events, picked);
        let mut seen = HashSet::new();
        let mut memory = capture.memory.clone();
        memory.retain(|event| {
            seen.insert((event.thread, event.device_type, event.device_index, event.is_out_of_memory()))
        });
        let memory = std::mem::replace(&mut capture.memory, memory);
        add_all(&[&capture], &|capture| capture.unix_offset_ns, true, &mut builder);
        let names = intern_names(&capture, &mut builder);
        let op_infos = OpInfos::of(&capture, &mut builder);
        let described = capture.events.iter().filter_map(|event| Some(event.collective?.description));
        let described = described.map(|id| (id, describe(&capture.names[id as usize], &mut builder.strings)));
        let collectives = described.collect();
        let mut skeleton = builder.finish();
        // They are among the rows.
        skeleton.memory.clear();
        skeleton.out_of_memory.clear();
        skeleton.flows.clear();
        let devices = skeleton.devices.iter().enumerate();
        let devices = devices.map(|(at, device)| (device.ordinal, DeviceId::from_index(at))).collect();
        let tracks = skeleton.tracks.iter().enumerate();
        let tracks = tracks.filter(|(_, track)| track.kind == TrackKind::Thread && track.lane == 0);
        let threads = used_threads(&capture).into_iter().zip(tracks.map(|(at, _)| TrackId::from_index(at))).collect();
        let offset_ns = capture.unix_offset_ns.saturating_sub(skeleton.start_unix_ns.unwrap_or(0));
        let window = window_of(resolved, capture.unix_offset_ns, &skeleton);
        (capture.events, capture.memory) = (events, memory);
        Self { capture, window, skeleton, threads, names, op_infos, collectives, devices, offset_ns }
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
        self.window
    }

    /// Writes everything to `sink`. False when a whole trace has to be read instead: what was written is then invalid.
    ///
    /// # Errors
    /// What `sink` says.
    pub fn write_to(&self, sink: &mut impl SliceSink) -> io::Result<bool> {
        let mut modules = ModuleNames::listed(&self.capture);
        let mut module_texts = StringTable::default();
        for (thread, track) in &self.threads {
            sink.begin_thread(*track);
            let mut rows = ThreadRows {
                recording: self,
                track: *track,
                steps: self.steps_of(*thread).into_iter().rev().collect(),
                open_ops: Vec::new(),
                modules: &mut modules,
                module_texts: &mut module_texts,
                sink: &mut *sink,
            };
            if !rows.write(*thread)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The steps of a thread, by start and longest first.
    fn steps_of(&self, thread: u32) -> Vec<StepRange> {
        let steps = self.capture.steps.iter().filter(|step| step.thread == thread);
        let mut steps: Vec<StepRange> = steps.copied().collect();
        steps.sort_by_key(|step| (step.start_ns, Reverse(step.end_ns)));
        steps
    }

    /// Start and duration in the trace.
    #[inline]
    fn align(&self, start_ns: i64, end_ns: i64) -> (i64, i64) {
        let start_ns = shifted_ns(start_ns, self.offset_ns);
        (start_ns, shifted_ns(end_ns, self.offset_ns).max(start_ns) - start_ns)
    }
}

/// The few events that all but the rows depends on: where the trace begins, which threads there are, steps, what is
/// described, what is unfinished.
fn picked_events(capture: &Capture, resolved: &ResolvedFilter) -> EventList {
    let is_of_steps = |name: &String| kind_of_label(name) != SliceKind::Annotation;
    let is_of_steps: Vec<bool> = capture.names.iter().map(is_of_steps).collect();
    let (mut firsts, mut ops, mut described) = (HashSet::new(), HashSet::new(), HashSet::new());
    let mut last_first = None;
    let mut is_picked = |event: &Event| {
        let is_call = scope::is_call(event.scope);
        // The first call and the first of the others, of each thread in each span. Most are of those of the one before.
        let first = (event.thread, resolved.span_of(event.start_ns), is_call);
        let mut is_first = last_first != Some(first) && firsts.insert(first);
        last_first = Some(first);
        is_first |= event.collective.is_some_and(|of| described.insert((event.thread, of.description)));
        let is_op = !is_call && event.scope != USER_SCOPE;
        is_first |= is_op && !ops.contains(&event.thread) && ops.insert(event.thread);
        is_first || event.is_unfinished || (event.scope == USER_SCOPE && is_of_steps[event.name as usize])
    };
    capture.events.iter().filter(|event| is_picked(event)).collect()
}

/// Writes the rows of one thread.
struct ThreadRows<'a, 'r, S> {
    recording: &'a RecordingRows,
    track: TrackId,
    /// Labelled steps that have not been written yet, the next one last.
    steps: Vec<StepRange>,
    /// The ends of operators that are open, the innermost last.
    open_ops: Vec<i64>,
    modules: &'r mut ModuleNames<'a>,
    module_texts: &'r mut StringTable,
    sink: &'r mut S,
}

impl<S: SliceSink> ThreadRows<'_, '_, S> {
    /// False when a whole trace has to be read instead.
    fn write(&mut self, thread: u32) -> io::Result<bool> {
        let capture = &self.recording.capture;
        let of_thread = capture.memory.partition_point(|event| event.thread < thread);
        let of_thread = of_thread..capture.memory.partition_point(|event| event.thread <= thread);
        let mut memory = capture.memory[of_thread].iter().peekable();
        for at in capture.events.of_thread(thread) {
            let event = capture.events.at(at);
            while let Some(before) = memory.next_if(|of| of.time_ns <= event.start_ns) {
                self.write_memory(before)?;
            }
            self.write_steps_before(Some(&event))?;
            if !self.write_event(&event)? {
                return Ok(false);
            }
        }
        memory.try_for_each(|event| self.write_memory(event))?;
        self.write_steps_before(None)?;
        Ok(true)
    }

    #[inline]
    fn write_event(&mut self, event: &Event) -> io::Result<bool> {
        let recording = self.recording;
        let (start_ns, dur_ns) = recording.align(event.start_ns, event.end_ns);
        let (mut name, label) = recording.names[event.name as usize];
        let mut text = recording.capture.names[event.name as usize].as_str();
        let called = kind_of_call(event.scope);
        let kind = called.unwrap_or_else(|| kind_of_event(event, label, &recording.capture.steps));
        if kind == SliceKind::Module {
            name = self.modules.name(event, self.module_texts);
            text = self.module_texts.get(name);
        }
        let is_op = called.is_none() && (kind == SliceKind::Op || event.inputs.is_some());
        let collective = event.collective.filter(|_| called.is_none()).and_then(|recorded| {
            let described = *recording.collectives.get(&recorded.description)?;
            Some(Collective { sequence_number: recorded.sequence_number, ..described })
        });
        let (is_unfinished, op) = (event.is_unfinished, is_op.then(|| recording.op_infos.info(event)));
        // Where arrows of operators end depends on those that overlap them.
        if kind == SliceKind::Op {
            let end_ns = start_ns + dur_ns;
            while self.open_ops.pop_if(|open_end| *open_end <= start_ns).is_some() {}
            if self.open_ops.last().is_some_and(|open_end| *open_end < end_ns) {
                return Ok(false);
            }
            self.open_ops.push(end_ns);
        }
        self.sink.slice(&SliceRow { kind, name, text, start_ns, dur_ns, is_unfinished, op, collective })?;
        Ok(true)
    }

    #[inline]
    fn write_steps_before(&mut self, event: Option<&Event>) -> io::Result<()> {
        let is_before = |step: &mut StepRange| {
            event.is_none_or(|event| (step.start_ns, event.end_ns) < (event.start_ns, step.end_ns))
        };
        while let Some(step) = self.steps.pop_if(is_before) {
            let (start_ns, dur_ns) = self.recording.align(step.start_ns, step.end_ns);
            let text = format!("ProfilerStep#{}", step.number);
            // The skeleton has the same step.
            let name = self.recording.skeleton.strings.find(&text).unwrap_or(StringTable::EMPTY);
            let (kind, text, is_unfinished) = (SliceKind::Step, text.as_str(), step.is_unfinished);
            let (op, collective) = (None, None);
            self.sink.slice(&SliceRow { kind, name, text, start_ns, dur_ns, is_unfinished, op, collective })?;
        }
        Ok(())
    }

    fn write_memory(&mut self, event: &stepscope_capture::MemoryEvent) -> io::Result<()> {
        let ordinal = (event.device_type != memory::HOST).then(|| i64::from(event.device_index.unwrap_or(0)));
        let device = ordinal.and_then(|ordinal| self.recording.devices.get(&ordinal)).copied();
        let time_ns = self.recording.align(event.time_ns, event.time_ns).0;
        let seen = memory::memory_event(event, (time_ns, self.track), device);
        self.sink.memory(&seen, event.is_out_of_memory())
    }
}

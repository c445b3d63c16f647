//! From chunks to rows of the trace: what each one is, where it lies, what is doubtful about it.

mod borders;
mod moments;
mod stack_samples;
mod unknown_work;

use super::arrows::Arrows;
use super::categories::Category;
use super::chunk::{Chunk, Sink};
use super::conversion;
use super::entries::{ChunkDeviceRow, ChunkRowId, ChunkSlice};
use super::metadata::Metadata;
use super::names::NameInfo;
use super::tracks::{Row, RowKey, Tracks};
use crate::json::text;
use crate::json::texts::TextId;
use crate::labels::Label;
use crate::name_tables::roles;
use rustc_hash::FxHashMap;
use std::ops::Range;
use stepscope_base::StringId;
use stepscope_trace::{
    Counter, DeviceEvent, DeviceEventClass, FindingCode, Findings, LaunchKey, ModuleCall, OpInfo, OpInputs, OpInputsId,
    Room, SliceId, SliceKind, StackSample, Synchronization, Trace, TraceBuilder, TrackId, TrackKind,
};

/// Times that can only be Unix times, of 2015 to 2099: profilers wrote these before they wrote `baseTimeNanoseconds`. Those
/// since the machine started are far below.
const UNIX_TIMES_NS: Range<i64> = 1_420_070_400_000_000_000..4_102_444_800_000_000_000;

/// Everything read so far.
pub(super) struct Rows {
    pub(super) builder: TraceBuilder,
    tracks: Tracks,
    arrows: Arrows,
    /// Begins whose end is still to come: slice, start, byte.
    open: FxHashMap<Row, Vec<(SliceId, i64, u64)>>,
    /// Row, name, time, and whether it is on a thread.
    instants: Vec<(Row, StringId, i64, bool)>,
    counters: FxHashMap<(Row, StringId), Counter>,
    counter_order: Vec<(Row, StringId)>,
    /// Samples of stacks with the number of their innermost frame; the frames may stand behind all events.
    stack_samples: Vec<(StackSample, Option<i64>)>,
    /// Which of `name_infos` a name has, by the bytes as written.
    names: FxHashMap<Box<[u8]>, u32>,
    /// What names say.
    name_infos: Vec<NameInfo>,
    /// The first backward node of each sequence number.
    backward_nodes: FxHashMap<i64, StringId>,
    has_device_events: bool,
    unknown_work: FxHashMap<Row, unknown_work::UnknownWork>,
    last_ns: i64,
    phase_count: u64,
}

/// A chunk's numbers for rows, names and inputs, as the trace's.
struct Translation<'a> {
    chunk: &'a Chunk,
    rows: Vec<Row>,
    /// Which of [`Rows::facts`] each text has as a name, once it was asked for.
    names: Vec<Option<u32>>,
    texts: Vec<Option<StringId>>,
    /// The thread of each row, once it was asked for.
    threads: Vec<Option<TrackId>>,
    first_slice: usize,
}

impl Sink for Rows {
    fn add(&mut self, mut chunk: Chunk) -> Chunk {
        self.phase_count += chunk.phase_count;
        self.builder.findings.extend(&chunk.findings);
        let slices = std::mem::take(&mut chunk.slices);
        let mut translation = Translation {
            rows: chunk.rows.iter().map(|row| self.row(&chunk, *row)).collect(),
            names: vec![None; chunk.texts.len()],
            texts: vec![None; chunk.texts.len()],
            threads: vec![None; chunk.rows.len()],
            first_slice: self.builder.slice_count(),
            chunk: &chunk,
        };
        let mut device_rows = chunk.device_rows.iter();
        for slice in &slices {
            self.last_ns = self.last_ns.max(slice.time_ns + slice.dur_ns);
            if slice.category.is_on_device() {
                let Some(row) = device_rows.next() else { break };
                self.add_device_row(slice, row, &mut translation);
            } else {
                self.add_host_row(slice, &mut translation);
            }
        }
        self.add_details(&slices, &mut translation);
        self.add_moments(&mut translation);
        self.add_borders(&mut translation);
        chunk.slices = slices;
        chunk
    }

    fn expect(&mut self, chunk: &Chunk, read: u64, bytes: u64) {
        // A little more than what the begin of the text promises.
        let times = 1.05 * bytes as f64 / read.max(1) as f64;
        let all = |rows: usize| (rows as f64 * times) as usize;
        self.builder.make_room(&Room {
            slices: all(chunk.slices.len()),
            ops: all(chunk.ops.len()),
            correlations: all(chunk.calls.len() + chunk.device_rows.len()),
            memory: all(chunk.memory.len()),
            device_events: all(chunk.device_rows.len()),
        });
        self.arrows.make_room(all(chunk.arrows.len()));
    }

    fn phase_count(&self) -> u64 {
        self.phase_count
    }

    fn findings(&mut self) -> &mut Findings {
        &mut self.builder.findings
    }
}

impl Rows {
    /// Nothing read yet.
    pub(super) fn new(mut builder: TraceBuilder) -> Self {
        let tracks = Tracks::new(&mut builder);
        Self {
            builder,
            tracks,
            arrows: Arrows::default(),
            open: FxHashMap::default(),
            instants: Vec::new(),
            counters: FxHashMap::default(),
            counter_order: Vec::new(),
            stack_samples: Vec::new(),
            names: FxHashMap::default(),
            name_infos: Vec::new(),
            backward_nodes: FxHashMap::default(),
            has_device_events: false,
            unknown_work: FxHashMap::default(),
            last_ns: i64::MIN,
            phase_count: 0,
        }
    }

    /// Closes what is open, links, and builds the trace.
    pub(super) fn finish(mut self, mut metadata: Metadata) -> Trace {
        self.close_begins();
        self.place_instants();
        for key in &self.counter_order {
            self.counters.remove(key).into_iter().for_each(|counter| self.builder.add_counter(counter));
        }
        self.add_stack_samples(&metadata.stack_frames);
        let has_unknown_work = self.tell_unknown_work();
        self.arrows.finish(&mut self.builder, &self.tracks);
        self.tracks.finish(&mut self.builder, &mut metadata);
        self.builder.clock_zero_unix_ns = metadata.clock_zero_unix_ns;
        self.builder.facts = metadata.entries;
        if !self.has_device_events && !has_unknown_work {
            self.builder.findings.add(FindingCode::NoDeviceEvents, || self.builder.name.clone());
        }
        self.builder.roles = roles(&self.builder.strings);
        let mut trace = self.builder.finish();
        let written = Some(trace.start_source_ns).filter(|start_ns| UNIX_TIMES_NS.contains(start_ns));
        trace.start_unix_ns = trace.start_unix_ns.or(written);
        trace
    }

    fn row(&mut self, chunk: &Chunk, (pid, tid): (ChunkRowId, ChunkRowId)) -> Row {
        let mut key = |id| match id {
            ChunkRowId::Missing => RowKey::Missing,
            ChunkRowId::Number(number) => RowKey::Number(number),
            ChunkRowId::Name(name) => {
                RowKey::Name(self.builder.strings.intern(&text::decode(chunk.texts.get(TextId(name))).text))
            }
        };
        Row { pid: key(pid), tid: key(tid) }
    }

    /// Which of [`Rows::facts`] a name has.
    #[inline]
    fn name(&mut self, translation: &mut Translation<'_>, name: TextId) -> usize {
        let known = translation.names[name.0 as usize];
        let at = known.unwrap_or_else(|| self.new_name(translation.chunk.texts.get(name)));
        translation.names[name.0 as usize] = Some(at);
        at as usize
    }

    fn new_name(&mut self, written: &[u8]) -> u32 {
        if let Some(at) = self.names.get(written) {
            return *at;
        }
        let at = self.name_infos.len() as u32;
        self.name_infos.push(NameInfo::of(written, &mut self.builder.strings));
        self.names.insert(written.into(), at);
        at
    }

    fn text(&mut self, translation: &mut Translation<'_>, id: TextId) -> StringId {
        *translation.texts[id.0 as usize]
            .get_or_insert_with(|| self.builder.strings.intern(&text::decode(translation.chunk.texts.get(id)).text))
    }

    fn report_repair(&mut self, name: usize) {
        let shown = || self.builder.strings.get(self.name_infos[name].name).chars().take(80).collect();
        self.builder.findings.add(FindingCode::RepairedText, shown);
    }

    fn thread(&mut self, translation: &mut Translation<'_>, row: u32) -> TrackId {
        match translation.threads[row as usize] {
            Some(track) => track,
            None => {
                let track = self.tracks.thread(&mut self.builder, translation.rows[row as usize]);
                translation.threads[row as usize] = Some(track);
                track
            }
        }
    }

    #[inline]
    fn add_host_row(&mut self, slice: &ChunkSlice, translation: &mut Translation<'_>) {
        let name_at = self.name(translation, slice.name);
        if self.name_infos[name_at].is_repaired {
            self.report_repair(name_at);
        }
        let track = if slice.category.is_on_thread() {
            self.thread(translation, slice.row)
        } else {
            let row = translation.rows[slice.row as usize];
            self.count_unknown_work(slice.category, row, self.name_infos[name_at].name, slice.dur_ns);
            let name = (slice.category == Category::Overhead).then_some("profiler overhead");
            self.tracks.other(&mut self.builder, row, name)
        };
        let info = &mut self.name_infos[name_at];
        let kind = conversion::host_kind(slice.category, info, &self.builder.strings);
        let name = if kind == SliceKind::Module { info.module.unwrap_or(info.name) } else { info.name };
        let id = self.builder.add_slice(track, kind, name, slice.time_ns, slice.dur_ns);
        self.builder.set_source_place(id, translation.chunk.base + u64::from(slice.at));
        if let Some(class) = info.module_class.filter(|_| kind == SliceKind::Module) {
            self.builder.add_module_call(ModuleCall { slice: id, class, size: None });
        }
        if matches!(slice.category, Category::Op | Category::Annotation) {
            match (info.label, kind) {
                (Label::Step(number), SliceKind::Step) => self.builder.add_step_label(id, number),
                (Label::Iteration(iteration), SliceKind::Annotation) => self.builder.add_iteration(id, iteration),
                _ => {}
            }
            if info.is_communication_call {
                self.builder.add_communication_call(id);
            }
            if let Some(parallelism) = info.data_parallelism {
                self.builder.set_data_parallelism(track, parallelism);
            }
        }
    }

    fn add_device_row(&mut self, slice: &ChunkSlice, row: &ChunkDeviceRow, translation: &mut Translation<'_>) {
        let name_at = self.name(translation, slice.name);
        if self.name_infos[name_at].is_repaired {
            self.report_repair(name_at);
        }
        let (track_kind, kind) = match slice.category {
            Category::Synchronization => (TrackKind::StreamSync, SliceKind::Synchronization),
            Category::Memcpy => (TrackKind::Stream, SliceKind::Memcpy),
            Category::Memset => (TrackKind::Stream, SliceKind::Memset),
            Category::Kernel => (TrackKind::Stream, SliceKind::Kernel),
            _ => (TrackKind::Projection, SliceKind::DeviceAnnotation),
        };
        let place = translation.rows[slice.row as usize];
        let (track, device, stream) =
            self.tracks.device_track(&mut self.builder, track_kind, place, row.device, row.event.stream);
        let info = &mut self.name_infos[name_at];
        let id = self.builder.add_slice(track, kind, info.name, slice.time_ns, slice.dur_ns);
        self.builder.set_source_place(id, translation.chunk.base + u64::from(slice.at));
        match track_kind {
            TrackKind::Stream => {
                self.has_device_events = true;
                let strings = &self.builder.strings;
                let copy_kind = translation.chunk.texts.get(row.copy_kind);
                let class = conversion::device_class(kind, info, strings, copy_kind);
                let uses_tensor_cores = class == DeviceEventClass::Compute && info.kernel(strings).uses_tensor_cores;
                let is_pageable = if kind == SliceKind::Memcpy { info.copy(strings).is_pageable } else { None };
                self.correlate(row.correlation, id);
                let known = DeviceEvent { slice: id, device, class, stream, ..row.event };
                self.builder.add_device_event(DeviceEvent { uses_tensor_cores, is_pageable, ..known });
            }
            TrackKind::StreamSync => {
                self.correlate(row.correlation, id);
                let kind = translation.chunk.synchronization_kind(slice, row);
                let event_stream = row.event_stream;
                let (call, event_record) = (None, None);
                let wait = Synchronization { slice: id, kind, device, stream, event_stream, call, event_record };
                self.builder.add_synchronization(wait, row.event_correlation);
            }
            _ => {}
        }
    }

    fn correlate(&mut self, correlation: Option<i64>, slice: SliceId) {
        if let Some(correlation) = correlation {
            self.builder.set_correlation(slice, LaunchKey { process: self.tracks.main(), correlation });
        }
    }

    /// What belongs to slices: correlation ids of calls, facts about ops, collectives.
    fn add_details(&mut self, slices: &[ChunkSlice], translation: &mut Translation<'_>) {
        let chunk = translation.chunk;
        let slice_of = |slice: u32, first: usize| SliceId::from_index(first + slice as usize);
        for (slice, correlation) in &chunk.calls {
            self.correlate(Some(*correlation), slice_of(*slice, translation.first_slice));
        }
        let inputs: Vec<OpInputsId> = chunk.inputs.iter().map(|texts| self.inputs(chunk, texts)).collect();
        for op in &chunk.ops {
            let has_number = op.sequence_number >= 0;
            let forward_thread = Some(op.forward_thread).filter(|thread| *thread != 0 && has_number);
            let info = OpInfo {
                sequence_number: has_number.then_some(op.sequence_number),
                forward_thread,
                // Only backward nodes name the thread of their forward op.
                scope: u8::from(forward_thread.is_some()),
                inputs: inputs[op.inputs as usize],
                stack: self.text(translation, op.stack),
                ..OpInfo::default()
            };
            self.builder.add_op(slice_of(op.slice, translation.first_slice), info);
            if has_number {
                self.check_backward_node(op.sequence_number, slices[op.slice as usize].name, translation);
            }
        }
        self.check_collectives(slices, translation);
        self.add_collectives_by_name(slices, translation);
        for (slice, words) in &chunk.words {
            let words = chunk.texts.get(*words);
            let id = slice_of(*slice, translation.first_slice);
            let is_on_thread = slices[*slice as usize].category.is_on_thread();
            if let Some(kind) = conversion::kind_in_words(words).filter(|_| is_on_thread) {
                self.builder.set_kind(id, kind);
            }
            if conversion::has_word(words, "unfinished") {
                self.builder.set_unfinished(id);
            }
            if conversion::has_word(words, "communication") {
                self.builder.set_communicates(id);
            }
        }
        for found in &chunk.collectives {
            let texts = found.texts.map(|text| self.text(translation, text));
            let slice = slice_of(found.slice, translation.first_slice);
            let collective = conversion::collective(found, texts, slice, &self.builder.strings);
            self.builder.add_collective(collective);
            self.builder.set_communicates(slice);
        }
    }

    /// One sequence number belongs to one backward node.
    fn check_backward_node(&mut self, number: i64, name: TextId, translation: &mut Translation<'_>) {
        let at = self.name(translation, name);
        let info = &self.name_infos[at];
        if info.is_backward_node && *self.backward_nodes.entry(number).or_insert(info.name) != info.name {
            self.builder.findings.add(FindingCode::SharedBackwardNumber, || format!("sequence number {number}"));
        }
    }

    /// Operators and labels of which only the name says that they are a collective, with what their inputs tell.
    fn add_collectives_by_name(&mut self, slices: &[ChunkSlice], translation: &mut Translation<'_>) {
        let chunk = translation.chunk;
        let says_itself = |at: usize| chunk.collectives.binary_search_by_key(&(at as u32), |found| found.slice).is_ok();
        let is_on_host = |slice: &ChunkSlice| matches!(slice.category, Category::Op | Category::Annotation);
        for (at, slice) in slices.iter().enumerate().filter(|(_, slice)| is_on_host(slice)) {
            let info = self.name(translation, slice.name);
            let Some((name, kind)) = self.name_infos[info].collective.filter(|_| !says_itself(at)) else { continue };
            let op = chunk.ops.binary_search_by_key(&(at as u32), |op| op.slice).ok().map(|op| chunk.ops[op].inputs);
            let inputs = op.map(|inputs| chunk.inputs[inputs as usize].map(|text| chunk.texts.get(text)));
            let is_label = slice.category == Category::Annotation;
            let slice = SliceId::from_index(translation.first_slice + at);
            let collective = conversion::collective_by_name(name, kind, inputs, slice, &mut self.builder.strings);
            if is_label {
                self.builder.add_collective_of_label(collective);
            } else {
                self.builder.add_collective(collective);
            }
        }
    }

    /// PyTorch's record of a collective says what it carries.
    fn check_collectives(&mut self, slices: &[ChunkSlice], translation: &mut Translation<'_>) {
        let mut found = translation.chunk.collectives.iter().peekable();
        for (at, slice) in slices.iter().enumerate() {
            let is_complete =
                found.next_if(|found| found.slice as usize == at).is_some_and(|found| found.is_complete());
            let mut is_collective_record = || {
                let at = self.name(translation, slice.name);
                self.name_infos[at].is_collective_record
            };
            let is_record = slice.category == Category::Op && is_collective_record();
            if is_record && !is_complete {
                let example = || format!("at {} ns", slice.time_ns);
                self.builder.findings.add(FindingCode::CollectiveWithoutMetadata, example);
            }
        }
    }

    fn inputs(&mut self, chunk: &Chunk, texts: &[TextId; 4]) -> OpInputsId {
        let [dims, types, strides, concrete] =
            texts.map(|text| conversion::compact(chunk.texts.get(text), &mut self.builder.strings));
        self.builder.intern_inputs(OpInputs { dims, types, strides, concrete, ..OpInputs::UNKNOWN })
    }
}

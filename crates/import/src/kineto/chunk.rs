//! The events of one part of a text, read without knowing the rest: numbers in columns, texts by number. Parts are read
//! on all processors and added to the trace in their order ([`super::rows`]).

use super::categories::Category;
use super::conversion::synchronization_kind;
use super::entries::{
    ChunkArrow, ChunkBorder, ChunkCollective, ChunkDeviceRow, ChunkInstant, ChunkMemory, ChunkOp, ChunkRowId,
    ChunkRowName, ChunkSample, ChunkSlice, ChunkStackSample,
};
use super::event::{Event, InputTexts, Quantity, RowId};
use super::keys::{Fraction, Integer, Size, Text};
use super::names::PLACE_PREFIX;
use super::tracks::known_stream;
use crate::json::text;
use crate::json::texts::{TextId, Texts};
use rustc_hash::FxHashMap;
use stepscope_trace::{DeviceEvent, DeviceEventClass, DeviceId, Doing, FindingCode, Findings, SliceId, SyncKind};

/// The events of one part of a text.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// Place of the chunk's first byte within the text.
    pub(super) base: u64,
    pub(super) texts: Texts,
    pub(super) rows: Vec<(ChunkRowId, ChunkRowId)>,
    pub(super) inputs: Vec<[TextId; 4]>,
    pub(super) slices: Vec<ChunkSlice>,
    /// Slice and correlation id of API calls.
    pub(super) calls: Vec<(u32, i64)>,
    pub(super) ops: Vec<ChunkOp>,
    pub(super) device_rows: Vec<ChunkDeviceRow>,
    pub(super) collectives: Vec<ChunkCollective>,
    pub(super) memory: Vec<ChunkMemory>,
    pub(super) instants: Vec<ChunkInstant>,
    pub(super) arrows: Vec<ChunkArrow>,
    pub(super) borders: Vec<ChunkBorder>,
    pub(super) row_names: Vec<ChunkRowName>,
    pub(super) samples: Vec<ChunkSample>,
    pub(super) stack_samples: Vec<ChunkStackSample>,
    /// Slice and words of rows of our own export that say more than others have place for.
    pub(super) words: Vec<(u32, TextId)>,
    pub(super) findings: Findings,
    /// Number of events that carry a phase.
    pub(super) phase_count: u64,
    row_ids: FxHashMap<(ChunkRowId, ChunkRowId), u32>,
    input_ids: FxHashMap<[u32; 4], u32>,
    /// What each of the known inputs is in [`Chunk::inputs`]; `u32::MAX` until it was asked for.
    known_inputs: Vec<u32>,
    last_row: Option<((ChunkRowId, ChunkRowId), u32)>,
}

/// What the events of a text are read into.
pub(super) trait Sink: Send {
    /// Takes the events of a chunk; chunks come in the order of the text. Gives it back for its memory.
    fn add(&mut self, chunk: Chunk) -> Chunk;

    /// Makes room for the events of `bytes`, of which those of `chunk` are the first `read`.
    fn expect(&mut self, _chunk: &Chunk, _read: u64, _bytes: u64) {}

    /// Number of events so far that carry a phase.
    fn phase_count(&self) -> u64;

    /// What was doubtful.
    fn findings(&mut self) -> &mut Findings;
}

impl Chunk {
    /// Forgets what was read, but keeps the memory; the chunk begins at `base`.
    pub(super) fn begin(&mut self, base: u64) {
        self.base = base;
        self.texts.clear();
        self.rows.clear();
        self.inputs.clear();
        self.inputs.push([Texts::EMPTY; 4]);
        self.slices.clear();
        self.calls.clear();
        self.ops.clear();
        self.device_rows.clear();
        self.collectives.clear();
        self.memory.clear();
        self.instants.clear();
        self.arrows.clear();
        self.borders.clear();
        self.row_names.clear();
        self.samples.clear();
        self.stack_samples.clear();
        self.words.clear();
        self.findings = Findings::default();
        self.phase_count = 0;
        self.row_ids.clear();
        self.input_ids.clear();
        self.known_inputs.clear();
        self.last_row = None;
    }

    /// Makes room for `times` as many events as were added so far, unless this is the memory of another chunk.
    pub(super) fn expect_more(&mut self, times: u64) {
        fn make_room<T>(rows: &mut Vec<T>, times: usize) {
            if rows.capacity() < rows.len() * times {
                rows.reserve_exact(rows.len() * times);
            }
        }
        let times = times as usize;
        make_room(&mut self.slices, times);
        make_room(&mut self.calls, times);
        make_room(&mut self.ops, times);
        make_room(&mut self.device_rows, times);
        make_room(&mut self.memory, times);
        make_room(&mut self.arrows, times);
    }

    /// Adds the event that stands at `at_byte`.
    #[inline]
    pub(super) fn add(&mut self, event: &Event<'_>, at_byte: u64) {
        self.phase_count += u64::from(!event.phase.is_empty());
        if event.phase != b"X" {
            return self.add_other(event, at_byte);
        }
        let Quantity::Ns(time_ns) = event.time else {
            return self.leave_out(FindingCode::UnreadableEvent, event, at_byte);
        };
        let dur_ns = match event.duration {
            Quantity::Ns(dur_ns) if dur_ns >= 0 => dur_ns,
            Quantity::Unreadable => return self.leave_out(FindingCode::UnreadableEvent, event, at_byte),
            doubtful => {
                let is_missing = doubtful == Quantity::Missing;
                let code = if is_missing { FindingCode::MissingDuration } else { FindingCode::NegativeDuration };
                self.findings.add(code, || format!("{:?} at byte {at_byte}", shown_name(event)));
                0
            }
        };
        self.add_slice(event, time_ns, dur_ns, at_byte);
    }

    fn add_other(&mut self, event: &Event<'_>, at_byte: u64) {
        match event.phase {
            b"" => return self.leave_out(FindingCode::UnreadableEvent, event, at_byte),
            b"M" => return self.add_row_name(event),
            b"P" if event.integer(Integer::StackFrame).is_some() || event.has_text(Text::Words) => {}
            b"P" | b"b" | b"n" | b"e" | b"S" | b"T" | b"F" | b"p" | b"N" | b"O" | b"D" | b"v" | b"V" | b"c" => {
                return self.leave_out(FindingCode::UnsupportedEvent, event, at_byte);
            }
            b"B" | b"E" | b"i" | b"I" | b"R" | b"s" | b"t" | b"f" | b"C" => {}
            _ => return self.leave_out(FindingCode::UnknownPhase, event, at_byte),
        }
        let Quantity::Ns(time_ns) = event.time else {
            return self.leave_out(FindingCode::UnreadableEvent, event, at_byte);
        };
        match event.phase {
            b"B" => {
                let begun = Some(self.add_slice(event, time_ns, 0, at_byte));
                let (row, name) = (self.row(event), self.texts.intern(event.name()));
                self.borders.push(ChunkBorder { begun, row, time_ns, name, at: at_byte });
            }
            b"E" => {
                let (row, name) = (self.row(event), self.texts.intern(event.name()));
                self.borders.push(ChunkBorder { begun: None, row, time_ns, name, at: at_byte });
            }
            b"C" => self.add_samples(event, time_ns, at_byte),
            b"P" => self.add_stack_sample(event, time_ns),
            b"i" | b"I" | b"R" => self.add_instant(event, time_ns),
            _ => {
                let (row, is_start) = (self.row(event), event.phase == b"s");
                let category = event.category;
                self.arrows.push(ChunkArrow { is_start, category, id: event.integer(Integer::Id), row, time_ns });
            }
        }
    }

    fn leave_out(&mut self, code: FindingCode, event: &Event<'_>, at_byte: u64) {
        let phase = text::decode(event.phase).text;
        self.findings.add(code, || format!("{:?} (phase {phase:?}) at byte {at_byte}", shown_name(event)));
    }

    fn add_row_name(&mut self, event: &Event<'_>) {
        if !event.has_text(Text::GivenName) {
            return;
        }
        let name = event.text(Text::GivenName);
        let is_of_process = event.name() == b"process_name";
        if is_of_process || event.name() == b"thread_name" {
            let (row, name) = (self.row(event), self.texts.intern(name));
            self.row_names.push(ChunkRowName { row, is_of_process, name });
        }
    }

    fn add_samples(&mut self, event: &Event<'_>, time_ns: i64, at_byte: u64) {
        let (row, name) = (self.row(event), self.texts.intern(event.name()));
        let mut count = 0;
        for (series, value) in super::event::numbers_of_object(event.args) {
            let series = self.texts.intern(series);
            self.samples.push(ChunkSample { row, name, series, time_ns, value });
            count += 1;
        }
        if count == 0 {
            self.leave_out(FindingCode::UnsupportedEvent, event, at_byte);
        }
    }

    fn add_stack_sample(&mut self, event: &Event<'_>, time_ns: i64) {
        let words = event.known_text(Text::Words);
        let doing = Doing::ALL.into_iter().find(|doing| doing.as_str().as_bytes() == words).unwrap_or_default();
        let [frame, ran_ns, runnable_ns] =
            [Integer::StackFrame, Integer::RanNs, Integer::RunnableNs].map(|which| event.integer(which));
        let row = self.row(event);
        self.stack_samples.push(ChunkStackSample { time_ns, row, frame, doing, ran_ns, runnable_ns });
    }

    fn add_instant(&mut self, event: &Event<'_>, time_ns: i64) {
        let row = self.row(event);
        // Old files give neither the category nor the address.
        let is_out_of_memory = event.name() == b"[OutOfMemory]";
        let is_memory = (is_out_of_memory || event.name() == b"[memory]") && event.integer(Integer::Bytes).is_some();
        let is_on_thread = is_memory || event.category == Category::ThreadInstant;
        let integer = |which| event.integer(which);
        match is_memory {
            true => self.memory.push(ChunkMemory {
                is_out_of_memory,
                time_ns,
                row,
                // PyTorch's device type 0 is the CPU; every other is an accelerator, of which a process uses one type.
                device: integer(Integer::DeviceType)
                    .filter(|kind| *kind != 0)
                    .map(|_| integer(Integer::DeviceId).unwrap_or(0).max(0)),
                address: integer(Integer::Address).unwrap_or(0) as u64,
                bytes: integer(Integer::Bytes).unwrap_or(0),
                allocated_bytes: integer(Integer::TotalAllocated),
                reserved_bytes: integer(Integer::TotalReserved),
            }),
            false => {
                let name = self.texts.intern(event.name());
                self.instants.push(ChunkInstant { time_ns, row, name, is_on_thread });
            }
        }
    }

    #[inline]
    fn add_slice(&mut self, event: &Event<'_>, time_ns: i64, dur_ns: i64, at_byte: u64) -> u32 {
        let slice = self.slices.len() as u32;
        // Whatever its category is called: what has a device and a stream is work of that device.
        let is_on_stream = || event.integer(Integer::Device).is_some() && event.integer(Integer::Stream).is_some();
        let category = match event.category {
            Category::Other if is_on_stream() => Category::UnknownDeviceWork,
            category => category,
        };
        let name = match event.text(Text::ModulePlace) {
            // Of both names of a module its place tells more.
            place if category == Category::PythonFunction && !place.is_empty() => {
                self.texts.intern(&[PLACE_PREFIX.as_bytes(), place].concat())
            }
            _ => self.texts.intern(event.name()),
        };
        let row = self.row(event);
        let at = u32::try_from(at_byte - self.base).unwrap_or(u32::MAX);
        self.slices.push(ChunkSlice { time_ns, dur_ns, name, row, at, category });
        let words = event.known_text(Text::Words);
        if !words.is_empty() {
            let words = self.texts.intern(words);
            self.words.push((slice, words));
        }
        match category {
            Category::Op | Category::Annotation => self.add_op(event, slice),
            Category::Runtime | Category::Driver => {
                self.calls.extend(event.id(Integer::Correlation).map(|correlation| (slice, correlation)));
            }
            _ if category.is_on_device() => self.add_device_row(event, slice),
            _ => {}
        }
        slice
    }

    fn add_op(&mut self, event: &Event<'_>, slice: u32) {
        self.add_collective(event, slice);
        // Labels have inputs where a backend of collectives set them.
        let is_op = event.category == Category::Op;
        let sequence_number = event.integer(Integer::SequenceNumber).filter(|_| is_op).unwrap_or(-1).max(-1);
        let has_stack = is_op && event.has_text(Text::CallStack);
        if sequence_number >= 0 || has_stack || event.has_inputs() {
            let inputs = self.inputs(event);
            let stack = self.texts.intern(if has_stack { event.text(Text::CallStack) } else { b"" });
            let forward_thread = event.integer(Integer::ForwardThread).unwrap_or(0) as u64;
            self.ops.push(ChunkOp { slice, inputs, stack, sequence_number, forward_thread });
        }
    }

    fn inputs(&mut self, event: &Event<'_>) -> u32 {
        if !event.has_inputs() {
            return 0;
        }
        let Some(known) = event.known_inputs else { return self.inputs_as_written(&event.inputs()) };
        let known = known as usize;
        if known >= self.known_inputs.len() {
            self.known_inputs.resize(known + 1, u32::MAX);
        }
        if self.known_inputs[known] == u32::MAX {
            self.known_inputs[known] = self.inputs_as_written(&event.inputs());
        }
        self.known_inputs[known]
    }

    fn inputs_as_written(&mut self, inputs: &InputTexts<'_>) -> u32 {
        let texts = inputs.map(|text| self.texts.intern(text));
        *self.input_ids.entry(texts.map(|text| text.0)).or_insert_with(|| {
            self.inputs.push(texts);
            self.inputs.len() as u32 - 1
        })
    }

    fn add_collective(&mut self, event: &Event<'_>, slice: u32) {
        if !event.is_of_collective() {
            return;
        }
        let texts = [
            Text::CollectiveName,
            Text::Dtype,
            Text::Group,
            Text::GroupDescription,
            Text::GroupRanks,
            Text::InSplits,
            Text::OutSplits,
        ];
        self.collectives.push(ChunkCollective {
            slice,
            texts: texts.map(|text| self.texts.intern(event.known_text(text))),
            input_elements: event.integer(Integer::InElements),
            output_elements: event.integer(Integer::OutElements),
            group_size: event.integer(Integer::GroupSize),
            group_rank: event.integer(Integer::GroupRank),
            source_rank: event.integer(Integer::SourceRank),
            destination_rank: event.integer(Integer::DestinationRank),
            is_async: event.integer(Integer::IsAsync).map(|flag| flag != 0),
            sequence_number: event.integer(Integer::Seq),
        });
    }

    fn add_device_row(&mut self, event: &Event<'_>, slice: u32) {
        self.add_collective(event, slice);
        let copy_kind = self.texts.intern(event.text(Text::CopyKind));
        let sync_kind = self.texts.intern(event.text(Text::SyncKind));
        let integer = |which| event.integer(which);
        let (device, correlation) = (integer(Integer::Device), event.id(Integer::Correlation));
        let event_stream = known_stream(integer(Integer::WaitOnStream));
        let event_correlation = integer(Integer::WaitOnRecord).filter(|id| *id > 0);
        let blocks_per_sm = event.fraction(Fraction::BlocksPerSm).filter(|blocks| *blocks >= 0.0);
        let occupancy_percent = event.fraction(Fraction::Occupancy).filter(|p| (0.0..=100.0).contains(p));
        let event = DeviceEvent {
            stream: integer(Integer::Stream),
            context: integer(Integer::Context),
            grid: event.size(Size::Grid),
            block: event.size(Size::Block),
            registers: integer(Integer::Registers).and_then(|count| u32::try_from(count).ok()),
            shared_bytes: integer(Integer::SharedMemory).and_then(|bytes| u64::try_from(bytes).ok()),
            blocks_per_sm: blocks_per_sm.map(|blocks| blocks as f32),
            occupancy_ratio: occupancy_percent.map(|percent| (percent / 100.0) as f32),
            bytes: integer(Integer::Bytes).filter(|bytes| *bytes >= 0),
            graph: event.id(Integer::Graph),
            graph_node: event.id(Integer::GraphNode),
            ..DeviceEvent::new(SliceId(0), DeviceId(0), DeviceEventClass::Compute)
        };
        self.device_rows.push(ChunkDeviceRow {
            copy_kind,
            sync_kind,
            device,
            correlation,
            event_stream,
            event_correlation,
            event,
        });
    }

    #[inline]
    fn row(&mut self, event: &Event<'_>) -> u32 {
        let mut id = |id: RowId<'_>| match id {
            RowId::Missing => ChunkRowId::Missing,
            RowId::Number(number) => ChunkRowId::Number(number),
            RowId::Name(name) => ChunkRowId::Name(self.texts.intern(name).0),
        };
        let key = (id(event.pid), id(event.tid));
        if let Some((last, row)) = self.last_row
            && last == key
        {
            return row;
        }
        let row = *self.row_ids.entry(key).or_insert_with(|| {
            self.rows.push(key);
            self.rows.len() as u32 - 1
        });
        self.last_row = Some((key, row));
        row
    }
}

impl Chunk {
    /// What a wait waits for, as its own argument says or else its name.
    pub(super) fn synchronization_kind(&self, slice: &ChunkSlice, row: &ChunkDeviceRow) -> SyncKind {
        let told = Some(self.texts.get(row.sync_kind)).filter(|kind| !kind.is_empty());
        synchronization_kind(told.unwrap_or(self.texts.get(slice.name)))
    }
}

/// The begin of an event's name, for a finding's example.
fn shown_name(event: &Event<'_>) -> String {
    text::decode(event.name()).text.chars().take(80).collect()
}

//! From rows to the trace: what each one is, where it lies, what is doubtful about it.

use super::calls::{Call, Calls, Role};
use super::hashes::{Hash, Hashes};
use super::iterations::Iterations;
use super::numbers;
use super::processes::{Processes, RowOwner};
use super::repeats::Repeats;
use super::row::{Args, FileName, Phase, Row, integer, plain_digits};
use super::samples::Samples;
use super::text;
use super::typed::{CallFile, CallNumbers, Number, TypedRow, TypedStretch, part};
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{DataflowRange, FindingCode, IoAction, IoEvent, IoLayer, SliceId, Trace, TraceBuilder};

/// More facts than this are somebody's data, not facts.
const MAX_FACTS: usize = 500;
/// Times and durations beyond these are no measurement (the year 2116; 13 days).
const MAX_TIME_NS: i64 = 1 << 62;
const MAX_DURATION_NS: i64 = 1 << 50;

/// The file of a call.
enum File<'a> {
    Missing,
    Path(&'a [u8]),
    Hash(Hash),
}

/// What is known already of the owners and calls of a stretch.
#[derive(Default)]
pub(super) struct Met {
    /// The owner of the row before, and its place in the stretch.
    owner: Option<(u32, RowOwner)>,
    calls: Vec<Option<Call>>,
}

impl Met {
    /// Nothing, of another stretch.
    pub(super) fn begin(&mut self, stretch: &TypedStretch) {
        self.owner = None;
        self.calls.clear();
        self.calls.resize(stretch.calls.len(), None);
    }

    /// Rows that are not typed come between.
    pub(super) fn forget_owner(&mut self) {
        self.owner = None;
    }
}

/// Everything read so far.
pub(super) struct Rows {
    pub(super) builder: TraceBuilder,
    processes: Processes,
    hashes: Hashes,
    repeats: Repeats,
    iterations: Iterations,
    samples: Samples,
    calls: Calls,
    last_path: (Vec<u8>, StringId),
    /// The places of calls whose file nobody named yet.
    unresolved: Vec<(usize, Hash)>,
    file: String,
    /// The unit of times in this file, ns.
    unit_ns: i64,
    /// The first and the last moment in this file.
    times: Option<(i64, i64)>,
}

impl Rows {
    /// Nothing read yet.
    pub(super) fn new(mut builder: TraceBuilder) -> Self {
        builder.clock_zero_unix_ns = Some(0);
        Self {
            builder,
            processes: Processes::default(),
            hashes: Hashes::default(),
            repeats: Repeats::default(),
            iterations: Iterations::default(),
            samples: Samples::default(),
            calls: Calls::default(),
            last_path: (Vec::new(), StringTable::EMPTY),
            unresolved: Vec::new(),
            file: String::new(),
            unit_ns: 1_000,
            times: None,
        }
    }

    /// What follows is from another file.
    pub(super) fn begin_file(&mut self, name: String) {
        self.processes.begin_file();
        (self.file, self.unit_ns, self.times) = (name, 1_000, None);
    }

    /// Unix time of the first and of the last moment in the file that was begun last, in ns.
    pub(super) fn times_of_file(&self) -> Option<(i64, i64)> {
        self.times
    }

    /// A place in the file, for findings.
    pub(super) fn location(&self, at_byte: usize) -> String {
        format!("at byte {at_byte} of {}", self.file)
    }

    /// Adds the row that stands at `at_byte`.
    pub(super) fn add(&mut self, row: &Row<'_>, at_byte: usize) {
        let Some(owner) = self.processes.owner(row, &mut self.builder) else {
            return self.leave_out(FindingCode::UnreadableEvent, row, at_byte);
        };
        match row.phase {
            Phase::Complete => self.add_event(row, owner, at_byte),
            Phase::Metadata => self.add_metadata(row, owner),
            Phase::Counter | Phase::Aggregated => self.add_sample(row, owner, at_byte),
            Phase::Unknown => self.leave_out(FindingCode::UnknownPhase, row, at_byte),
        }
    }

    /// Adds a call on a file that was read into numbers, as [`Self::add`] does. False, and nothing is added, for what is
    /// none, or is doubtful.
    #[inline]
    pub(super) fn add_typed(&mut self, row: &TypedRow, stretch: &TypedStretch, text: &[u8], met: &mut Met) -> bool {
        let ns = |number: u64| i64::try_from(number).ok()?.checked_mul(self.unit_ns);
        let (Some(start_ns), Some(dur_ns)) = (ns(row.time), ns(row.duration)) else { return false };
        if start_ns >= MAX_TIME_NS || dur_ns > MAX_DURATION_NS {
            return false;
        }
        let owner = match met.owner {
            Some((of, owner)) if of == row.owner => owner,
            _ => {
                let written = &stretch.owners[row.owner as usize];
                let host = part(text, &written.host);
                let args = Args { host, is_host_hashed: written.is_host_hashed, ..Args::default() };
                let (pid, tid) = (part(text, &written.pid), part(text, &written.tid));
                let row = Row { pid, tid, args, ..Row::default() };
                let Some(owner) = self.processes.owner(&row, &mut self.builder) else { return false };
                owner
            }
        };
        let call =
            stretch.calls.get(row.call as usize).map(|call| (part(text, &call.category), part(text, &call.name)));
        let Some((category, name)) = call else { return false };
        let known = &mut met.calls[row.call as usize];
        let call = *known.get_or_insert_with(|| self.calls.get(category, name, &mut self.builder));
        let Some((layer, action)) = call.io else { return false };
        let track = self.processes.track(owner, &mut self.builder);
        met.owner = Some((row.owner, owner.on(track)));
        if row.id.is_some_and(|id| self.repeats.is_repeated(track, id, start_ns, dur_ns, call.name)) {
            return false;
        }
        let (first_ns, last_ns) = self.times.unwrap_or((start_ns, start_ns));
        self.times = Some((first_ns.min(start_ns), last_ns.max(start_ns + dur_ns)));
        let slice = self.builder.add_slice(track, call.kind, call.name, start_ns, dur_ns);
        let file = match &row.file {
            CallFile::Missing => File::Missing,
            CallFile::Path(path) => File::Path(part(text, path)),
            CallFile::Hash(hash) => File::Hash(*hash),
        };
        self.add_io(slice, layer, action, &row.numbers, &file);
        true
    }

    /// Resolves what is open and builds the trace.
    pub(super) fn finish(mut self) -> Trace {
        for (at, hash) in std::mem::take(&mut self.unresolved) {
            match self.hashes.get_again(hash) {
                Some(meaning) => self.builder.set_file(at, meaning.text),
                None => self.builder.findings.add(FindingCode::UnnamedFile, || format!("{hash:?}")),
            }
        }
        self.processes.finish(&self.hashes, &mut self.builder);
        self.iterations.finish(&mut self.builder);
        self.samples.finish(&mut self.builder);
        self.builder.roles = self.calls.roles();
        self.builder.findings.add(FindingCode::NoDeviceEvents, || self.builder.name.clone());
        self.builder.finish()
    }

    fn add_event(&mut self, row: &Row<'_>, owner: RowOwner, at_byte: usize) {
        let Some(start_ns) = self.ns(row.time).filter(|ns| (0..MAX_TIME_NS).contains(ns)) else {
            return self.leave_out(FindingCode::UnreadableEvent, row, at_byte);
        };
        let dur_ns = match self.ns(row.duration) {
            Some(dur_ns) if (0..=MAX_DURATION_NS).contains(&dur_ns) => dur_ns,
            Some(dur_ns) if (-MAX_DURATION_NS..0).contains(&dur_ns) => {
                self.doubtful(FindingCode::NegativeDuration, row, at_byte);
                0
            }
            None if row.duration.is_empty() => {
                self.doubtful(FindingCode::MissingDuration, row, at_byte);
                0
            }
            _ => return self.leave_out(FindingCode::UnreadableEvent, row, at_byte),
        };
        let (first_ns, last_ns) = self.times.unwrap_or((start_ns, start_ns));
        self.times = Some((first_ns.min(start_ns), last_ns.max(start_ns + dur_ns)));
        let call = self.calls.get(row.category, row.name, &mut self.builder);
        let track = self.processes.track(owner, &mut self.builder);
        if !row.is_numbered_phase
            && let Some(id) = plain_digits(row.id)
            && self.repeats.is_repeated(track, id, start_ns, dur_ns, call.name)
        {
            return self.doubtful(FindingCode::RepeatedEvent, row, at_byte);
        }
        match call.role {
            Role::Start | Role::End => {
                self.builder.add_instant(track, call.name, start_ns);
                return self.add_limit(call.role, row, owner);
            }
            Role::Fork => {
                integer(row.args.result).into_iter().for_each(|child| self.processes.add_fork(owner, child));
            }
            Role::IterationWait => self.iterations.add_wait(track, &row.args, start_ns),
            Role::IterationBody => self.iterations.add_body(track, &row.args, start_ns, start_ns + dur_ns),
            Role::Application | Role::Plain => {}
        }
        let slice = self.builder.add_slice(track, call.kind, call.name, start_ns, dur_ns);
        call.stage.into_iter().for_each(|stage| self.builder.add_dataflow(DataflowRange::new(slice, stage)));
        match call.io {
            Some((layer, action)) => {
                let file = match row.args.file {
                    FileName::Missing => File::Missing,
                    FileName::Path(path) => File::Path(path),
                    FileName::Hash(written) => Hash::read(written, owner.pid).map_or(File::Missing, File::Hash),
                };
                self.add_io(slice, layer, action, &CallNumbers::of(&row.args), &file);
            }
            None if call.role == Role::Application && !row.args.step.is_empty() => {
                self.iterations.add(track, call.name, &row.args, slice, (start_ns, start_ns + dur_ns));
            }
            None => {}
        }
    }

    /// DFTracer began or ended with a process.
    fn add_limit(&mut self, role: Role, row: &Row<'_>, owner: RowOwner) {
        if role == Role::End {
            return self.processes.end(owner);
        }
        self.processes.start(owner, &row.args, &mut self.builder);
        row.args.for_each(|key, written| {
            if key == b"version" {
                add_fact(&mut self.builder, "dftracer_version", written);
            }
        });
    }

    fn add_io(&mut self, slice: SliceId, layer: IoLayer, action: IoAction, numbers: &CallNumbers, file: &File<'_>) {
        let moves_bytes = action.moves_bytes();
        let bytes = if moves_bytes { bytes_moved(layer, numbers) } else { None };
        let offset = numbers.offset.get().filter(|offset| moves_bytes && *offset >= 0);
        let asked_bytes = if moves_bytes { bytes_asked(layer, numbers) } else { None };
        // The calls answer -1, and the number of the error is not written.
        let has_failed = numbers.result.get().is_some_and(|result| result < 0);
        let errno = has_failed.then_some(IoEvent::UNKNOWN_ERROR);
        let other_file = StringTable::EMPTY;
        let event =
            IoEvent { slice, layer, action, file: StringTable::EMPTY, other_file, bytes, asked_bytes, offset, errno };
        let file = match *file {
            File::Missing => StringTable::EMPTY,
            File::Path(path) => self.path(path),
            File::Hash(hash) => match self.hashes.get_again(hash) {
                // Another process may say it, in a file that is read later.
                None => {
                    self.unresolved.push((self.builder.io_event_count(), hash));
                    StringTable::EMPTY
                }
                Some(meaning) => {
                    if meaning.is_ambiguous {
                        let strings = &self.builder.strings;
                        let findings = &mut self.builder.findings;
                        findings.add(FindingCode::AmbiguousFile, || strings.get(meaning.text).to_string());
                    }
                    meaning.text
                }
            },
        };
        self.builder.add_io_event(IoEvent { file, ..event });
    }

    fn add_metadata(&mut self, row: &Row<'_>, owner: RowOwner) {
        let (name, value) = (row.args.name, row.args.value);
        match row.name {
            b"FH" | b"SH" | b"HH" => {
                if let Some(hash) = Hash::read(value, owner.pid) {
                    let text = self.text(name);
                    self.hashes.explain(hash, text);
                }
            }
            b"CM" | b"PR" if name == b"time_metric" => {
                self.unit_ns = match value {
                    b"NS" => 1,
                    b"MS" => 1_000_000,
                    b"SEC" => 1_000_000_000,
                    _ => 1_000,
                };
            }
            b"PR" if name == b"rank" => {
                let rank = integer(value).and_then(|rank| u32::try_from(rank).ok());
                rank.into_iter().for_each(|rank| self.processes.set_rank(owner, rank));
            }
            b"process_name" => {
                let text = self.text(name);
                self.processes.set_name(owner, text);
            }
            // It only repeats the thread's number.
            b"thread_name" => {}
            _ => {
                let key = text::decode(name).text;
                add_fact(&mut self.builder, &key, value);
            }
        }
    }

    fn add_sample(&mut self, row: &Row<'_>, owner: RowOwner, at_byte: usize) {
        let Some(time_ns) = self.ns(row.time).filter(|ns| (0..MAX_TIME_NS).contains(ns)) else {
            return self.leave_out(FindingCode::UnreadableEvent, row, at_byte);
        };
        let process = self.processes.id(owner);
        if row.phase == Phase::Aggregated {
            let call = self.calls.get(row.category, row.name, &mut self.builder);
            let action = call.io.map(|(_, action)| action);
            self.samples.add_sums(row, action, (process, time_ns, self.unit_ns), &mut self.builder);
            return self.doubtful(FindingCode::AggregatedEvents, row, at_byte);
        }
        if !self.samples.add(row, process, time_ns, &mut self.builder) {
            self.leave_out(FindingCode::UnsupportedEvent, row, at_byte);
        }
    }

    fn path(&mut self, written: &[u8]) -> StringId {
        if self.last_path.0 != written {
            let text = self.text(written);
            self.last_path.0.clear();
            self.last_path.0.extend_from_slice(written);
            self.last_path.1 = text;
        }
        self.last_path.1
    }

    fn text(&mut self, written: &[u8]) -> StringId {
        let decoded = text::decode(written);
        if decoded.is_repaired {
            self.builder.findings.add(FindingCode::RepairedText, || decoded.text.chars().take(80).collect());
        }
        self.builder.strings.intern(&decoded.text)
    }

    fn ns(&self, written: &[u8]) -> Option<i64> {
        match plain_digits(written) {
            Some(number) => i64::try_from(number).ok()?.checked_mul(self.unit_ns),
            None if self.unit_ns == 1_000 => numbers::time_ns(written),
            None => numbers::integer(written)?.checked_mul(self.unit_ns),
        }
    }

    fn leave_out(&mut self, code: FindingCode, row: &Row<'_>, at_byte: usize) {
        self.doubtful(code, row, at_byte);
    }

    fn doubtful(&mut self, code: FindingCode, row: &Row<'_>, at_byte: usize) {
        let file = &self.file;
        self.builder.findings.add(code, || {
            let name: String = text::decode(row.name).text.chars().take(80).collect();
            format!("{name:?} at byte {at_byte} of {file}")
        });
    }
}

/// What a read or write moved: the call's own answer, or else what it was asked for. A call that failed moved nothing.
/// Buffered streams count items.
fn bytes_moved(layer: IoLayer, numbers: &CallNumbers) -> Option<i64> {
    bytes_of(layer, numbers.result.or(numbers.count).get()?.max(0), numbers)
}

/// What a read or write was asked for. MPI counts elements of a type that is not written.
fn bytes_asked(layer: IoLayer, numbers: &CallNumbers) -> Option<i64> {
    let count = numbers.count.get().filter(|count| *count >= 0 && layer != IoLayer::MpiIo)?;
    bytes_of(layer, count, numbers)
}

/// Bytes of what a call counts.
fn bytes_of(layer: IoLayer, count: i64, numbers: &CallNumbers) -> Option<i64> {
    match layer {
        IoLayer::Stdio if numbers.size != Number::Missing => count.checked_mul(numbers.size.get()?),
        IoLayer::Stdio | IoLayer::Posix | IoLayer::MpiIo | IoLayer::Hdf5 | IoLayer::PageFault | IoLayer::Net => {
            Some(count)
        }
    }
}

/// Keeps a fact about the environment, once.
fn add_fact(builder: &mut TraceBuilder, key: &str, written: &[u8]) {
    let value = text::decode(written).text.into_owned();
    let is_known = builder.facts.iter().any(|fact| fact.0 == key && fact.1 == value);
    if !key.is_empty() && !value.is_empty() && !is_known && builder.facts.len() < MAX_FACTS {
        builder.facts.push((key.to_string(), value));
    }
}

//! Dumps of PyTorch's Flight Recorder: the last collectives of one rank, as `torch.distributed` writes them when a job
//! hangs, as a pickle or as JSON.
//!
//! A collective is a slice on the thread that called it, from its call until PyTorch saw that it was done. One that is
//! not done is unfinished, and reaches to the last moment that the dump knows of.

#[cfg(test)]
mod tests;

use crate::call_stacks::{FrameKeys, Stacks};
use crate::collectives::kind_of;
use crate::pickle::{DictId, ListId, Plain, Value};
use crate::process_groups::comm_backend;
use crate::window::{Blocks, Window};
use crate::{ImportError, ranks};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::path::Path;
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{
    Collective, CollectiveKind, FindingCode, OpInfo, Process, ProcessGroup, ProcessId, SliceId, SliceKind, Trace,
    TraceBuilder, Track, TrackId, TrackKind,
};

/// Times from here on (in 2116) are taken for damage.
const MAX_TIME_NS: i64 = i64::MAX / 2;
/// Ranks of all groups that are kept, and sizes of one collective that are read.
const MAX_RANKS: usize = 1 << 20;
const MAX_SIZES: usize = 1 << 12;
/// A dump as JSON may be this long. One of 2,000 collectives has about 1 MB.
const MAX_JSON_BYTES: usize = 256 << 20;
/// How much of a text is searched for what tells a dump apart.
const SEARCHED_BYTES: usize = 1 << 12;
/// What PyTorch calls the group of all ranks.
const DEFAULT_GROUP: &str = "default_pg";

/// True when what a file begins with is that of a dump: its first keys stand there.
pub(crate) fn is_head_of_dump(head: &[u8]) -> bool {
    let searched = &head[..head.len().min(SEARCHED_BYTES)];
    let has = |key: &str| memchr::memmem::find(searched, key.as_bytes()).is_some();
    (crate::pickle::is_pickle(head) && (has("pg_config") || has("collective_seq_id"))) || is_json(head)
}

/// True when `head` begins as a dump in JSON does.
pub(crate) fn is_json(head: &[u8]) -> bool {
    let searched = head[..head.len().min(SEARCHED_BYTES)].trim_ascii_start();
    let Some(members) = searched.strip_prefix(b"{").map(<[u8]>::trim_ascii_start) else { return false };
    let has = |key: &str| memchr::memmem::find(searched, key.as_bytes()).is_some();
    // Its keys are in order of the alphabet: those of the first entry, or of the groups where there is none.
    let first = ["\"comm_lib_version\"", "\"entries\"", "\"nccl_version\"", "\"pg_config\"", "\"version\""];
    first.iter().any(|key| members.starts_with(key.as_bytes()))
        && (has("\"collective_seq_id\"") || has("\"pg_status\""))
}

/// Reads a dump in JSON.
///
/// # Errors
/// When it is no JSON, or cut.
pub(crate) fn read_json(path: &Path, name: String, blocks: impl Blocks) -> Result<Trace, ImportError> {
    let mut window = Window::new(blocks, 0);
    while window.bytes().len() <= MAX_JSON_BYTES && window.grow() {}
    let refused = |found: String| ImportError::NotADump { path: path.into(), found };
    if let Some(error) = window.source_error() {
        return Err(refused(format!("{error} at byte {}", window.bytes().len())));
    }
    if window.bytes().len() > MAX_JSON_BYTES {
        return Err(refused(format!("more than {MAX_JSON_BYTES} bytes")));
    }
    let json = serde_json::from_slice(window.bytes()).map_err(|error| refused(error.to_string()))?;
    let mut builder = TraceBuilder::new(name);
    builder.sources.push(path.display().to_string());
    Ok(of_plain(path, &Plain::of_json(&json), builder))
}

/// True when a pickle has what a dump has.
pub(crate) fn is_dump(plain: &Plain) -> bool {
    let Some(Value::Dict(root)) = plain.root else { return false };
    let has = |key| member(plain, root, key).is_some();
    has("version") && (has("entries") || has("pg_config")) && !has("segments")
}

fn member(plain: &Plain, dict: DictId, key: &str) -> Option<Value> {
    plain.texts.find(key).and_then(|key| plain.get(dict, key))
}

/// The trace of a dump; the part that cannot be read is a finding.
pub(crate) fn of_plain(path: &Path, plain: &Plain, mut builder: TraceBuilder) -> Trace {
    builder.clock_zero_unix_ns = Some(0);
    builder.findings.add(FindingCode::NoDeviceEvents, || builder.name.clone());
    if let Some(Value::Dict(root)) = plain.root {
        Dump::of(plain, root, &mut builder).add_to(path, &mut builder);
    }
    builder.finish()
}

struct Dump<'a> {
    plain: &'a Plain,
    root: DictId,
    /// Those that the dump describes, by name, with their ranks as text.
    groups: BTreeMap<StringId, (ProcessGroup, StringId)>,
    entries: Vec<Entry<'a>>,
}

/// One collective.
struct Entry<'a> {
    dict: DictId,
    /// What carries it, and what is called: `nccl:all_reduce`.
    name: &'a str,
    created_ns: i64,
    end: End,
}

/// When a collective ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    At(i64),
    /// It has ended; nothing says when.
    Unknown,
    /// It has not.
    Open,
}

impl Entry<'_> {
    fn backend(&self) -> &str {
        self.name.split_once(':').map_or("", |(backend, _)| backend)
    }

    fn called(&self) -> &str {
        self.name.split_once(':').map_or(self.name, |(_, called)| called)
    }
}

impl<'a> Dump<'a> {
    fn of(plain: &'a Plain, root: DictId, builder: &mut TraceBuilder) -> Self {
        let mut dump = Self { plain, root, groups: BTreeMap::new(), entries: Vec::new() };
        dump.read_groups(builder);
        let mut is_seen = vec![false; plain.dict_count()];
        let list = member(plain, root, "entries");
        let entries = list.map_or(&[][..], |list| match list {
            Value::List(list) => plain.list(list),
            other => {
                builder.findings.add(FindingCode::UnreadableEvent, || format!("entries: {}", Plain::kind(other)));
                &[]
            }
        });
        for (at, entry) in entries.iter().enumerate() {
            // What the pickle refers to twice is read once, so that time and memory are bounded by its length.
            let dict = match entry {
                Value::Dict(dict) if !std::mem::replace(&mut is_seen[dict.index()], true) => Some(*dict),
                _ => None,
            };
            match dict.and_then(|dict| dump.entry(dict)) {
                Some(entry) => dump.entries.push(entry),
                None => builder.findings.add(FindingCode::UnreadableEvent, || format!("entry {at}")),
            }
        }
        dump
    }

    fn read_groups(&mut self, builder: &mut TraceBuilder) {
        let Some(Value::Dict(config)) = member(self.plain, self.root, "pg_config") else { return };
        let mut ranks_left = MAX_RANKS;
        for (_, group) in self.plain.dict(config) {
            let Value::Dict(dict) = *group else { continue };
            // Gloo names none of its groups there.
            let Some(name) = self.text_id(dict, "name").filter(|name| *name != StringTable::EMPTY) else { continue };
            let text = self.text(dict, "ranks").unwrap_or_default();
            let ranks = if text.len() <= 4 * ranks_left { ranks_of(text) } else { None };
            let description = self.text(dict, "desc").unwrap_or_default().to_string();
            if ranks.is_none() && !text.is_empty() {
                builder.findings.add(FindingCode::UnreadableEvent, || format!("ranks of a group: {description}"));
            }
            let ranks = ranks.unwrap_or_default();
            ranks_left -= ranks.len().min(ranks_left);
            let size = u32::try_from(ranks.len()).ok().filter(|size| *size > 0);
            let name_text = self.plain.texts.get(name).to_string();
            let group = ProcessGroup { name: name_text, description, backend: String::new(), size, ranks };
            let ranks_text = if size.is_none() { String::new() } else { format!("{:?}", group.ranks) };
            self.groups.insert(name, (group, builder.strings.intern(&ranks_text)));
        }
    }

    fn entry(&self, dict: DictId) -> Option<Entry<'a>> {
        let name = self.text(dict, "profiling_name")?;
        let created_ns = self.time(dict, "time_created_ns")?;
        let mut entry = Entry { dict, name, created_ns, end: End::Open };
        let is_completed = self.text(dict, "state") == Some("completed");
        // Gloo only retires what is done; NCCL retires also what ran into its timeout.
        let is_retired = entry.backend() == "gloo" && self.is_true(dict, "retired");
        entry.end = match self.time(dict, "time_discovered_completed_ns") {
            Some(at_ns) => End::At(at_ns),
            None if is_completed || is_retired => End::Unknown,
            None => End::Open,
        };
        Some(entry)
    }

    fn add_to(&self, path: &Path, builder: &mut TraceBuilder) {
        let process = self.add_process(path, builder);
        let times = self.entries.iter().flat_map(|entry| {
            let started_ns = self.time(entry.dict, "time_discovered_started_ns");
            let end_ns = if let End::At(at_ns) = entry.end { Some(at_ns) } else { None };
            [Some(entry.created_ns), started_ns, end_ns]
        });
        let last_ns = times.flatten().max().unwrap_or(0);
        let mut slices = Slices {
            dump: self,
            process,
            last_ns,
            tracks: FxHashMap::default(),
            stacks: Stacks::of(self.plain),
            of_list: FxHashMap::default(),
        };
        self.entries.iter().for_each(|entry| slices.add(entry, builder));
        let first = self.entries.iter().filter_map(|entry| self.integer(entry.dict, "record_id")).min();
        if let Some(first) = first.filter(|first| *first > 0) {
            builder.findings.add(FindingCode::RingWindow, || format!("{}: {first} earlier collectives", builder.name));
        }
    }

    fn add_process(&self, path: &Path, builder: &mut TraceBuilder) -> ProcessId {
        let told = self.integer(self.root, "rank").and_then(|rank| u32::try_from(rank).ok());
        // PyTorch writes the rank nowhere but at the end of the file's name.
        let rank = told.or_else(|| {
            let rank = ranks::rank_at_end_of_name(path)?;
            builder.findings.add(FindingCode::RankFromName, || format!("rank {rank}: {}", path.display()));
            Some(rank)
        });
        let groups = || self.groups.values().map(|(group, _)| group);
        let world_size = groups().find(|group| group.description == DEFAULT_GROUP).and_then(|group| group.size);
        let facts = [
            ("distributedInfo.rank", rank.map(|rank| rank.to_string())),
            ("distributedInfo.world_size", world_size.map(|size| size.to_string())),
            ("flight_recorder.version", self.text(self.root, "version").map(str::to_string)),
            ("flight_recorder.comm_lib_version", self.text(self.root, "comm_lib_version").map(str::to_string)),
        ];
        let known = facts.into_iter().filter_map(|(key, value)| Some((key.into(), value.filter(|v| !v.is_empty())?)));
        builder.facts.extend(known);
        builder.add_process(Process {
            rank: rank.unwrap_or(0),
            world_size,
            name: "PyTorch".into(),
            comm_backend: self.entries.iter().find_map(|entry| comm_backend(entry.backend().as_bytes())),
            process_groups: groups().cloned().collect(),
            ..Process::default()
        })
    }

    fn text_id(&self, dict: DictId, key: &str) -> Option<StringId> {
        match member(self.plain, dict, key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn text(&self, dict: DictId, key: &str) -> Option<&'a str> {
        self.text_id(dict, key).map(|text| self.plain.texts.get(text))
    }

    fn integer(&self, dict: DictId, key: &str) -> Option<i64> {
        self.plain.integer(member(self.plain, dict, key)?)
    }

    fn is_true(&self, dict: DictId, key: &str) -> bool {
        member(self.plain, dict, key) == Some(Value::Bool(true))
    }

    /// A time; in JSON 0 is no time.
    fn time(&self, dict: DictId, key: &str) -> Option<i64> {
        self.integer(dict, key).filter(|time_ns| (1..MAX_TIME_NS).contains(time_ns))
    }

    /// The items of a list that is not too long.
    fn list(&self, dict: DictId, key: &str) -> Option<&'a [Value]> {
        match member(self.plain, dict, key) {
            Some(Value::List(list)) => Some(self.plain.list(list)).filter(|items| items.len() <= MAX_SIZES),
            _ => None,
        }
    }

    /// The elements of all tensors whose sizes are under `key`.
    fn elements(&self, dict: DictId, key: &str) -> Option<i64> {
        let tensors = self.list(dict, key).filter(|tensors| !tensors.is_empty())?;
        let of_tensor = |tensor: &Value| match tensor {
            Value::List(sizes) => self.plain.list(*sizes).iter().take(MAX_SIZES).try_fold(1_i64, |product, size| {
                product.checked_mul(self.plain.integer(*size).filter(|size| *size >= 0)?)
            }),
            _ => None,
        };
        tensors.iter().try_fold(0_i64, |sum, tensor| sum.checked_add(of_tensor(tensor)?))
    }

    fn dtype(&self, dict: DictId) -> Option<&'a str> {
        let types = ["input_dtypes", "output_dtypes"].into_iter().filter_map(|key| self.list(dict, key));
        types.filter_map(|types| types.first()).find_map(|first| match first {
            Value::Text(text) => Some(self.plain.texts.get(*text)),
            _ => None,
        })
    }

    /// Name and description of the group of a collective.
    fn group(&self, dict: DictId) -> (StringId, StringId) {
        let text = |value: Option<&Value>| match value {
            Some(Value::Text(text)) => *text,
            _ => StringTable::EMPTY,
        };
        match member(self.plain, dict, "process_group") {
            Some(Value::List(list)) => (text(self.plain.list(list).first()), text(self.plain.list(list).get(1))),
            other => (text(other.as_ref()), StringTable::EMPTY),
        }
    }

    /// What an entry says of the collective that it is.
    fn collective(&self, entry: &Entry<'_>, slice: SliceId, strings: &mut StringTable) -> Collective {
        let dict = entry.dict;
        let is_between_two = self.is_true(dict, "is_p2p");
        let named = kind_of(entry.called());
        let kind = match named.is_some_and(CollectiveKind::is_between_two) {
            false if is_between_two => Some(CollectiveKind::PointToPoint),
            _ => named,
        };
        let number = if is_between_two { "p2p_seq_id" } else { "collective_seq_id" };
        let (group, description) = self.group(dict);
        let known = self.groups.get(&group);
        let mut intern = |text: &str| strings.intern(text);
        Collective {
            slice,
            name: intern(entry.called()),
            kind,
            dtype: intern(self.dtype(dict).unwrap_or_default()),
            input_elements: self.elements(dict, "input_sizes"),
            output_elements: self.elements(dict, "output_sizes"),
            input_split_sizes: StringTable::EMPTY,
            output_split_sizes: StringTable::EMPTY,
            group: intern(self.plain.texts.get(group)),
            group_description: intern(self.plain.texts.get(description)),
            group_size: known.and_then(|(group, _)| group.size).map(i64::from),
            group_ranks: known.map_or(StringTable::EMPTY, |(_, ranks)| *ranks),
            group_rank: None,
            source_rank: None,
            destination_rank: None,
            is_async: None,
            sequence_number: self.integer(dict, number).or_else(|| self.integer(dict, "seq_id")),
        }
    }
}

/// The ranks that are written `[0, 1]`.
fn ranks_of(text: &str) -> Option<Vec<u32>> {
    let inside = text.trim().strip_prefix('[')?.strip_suffix(']')?.trim();
    if inside.is_empty() {
        return Some(Vec::new());
    }
    inside.split(',').map(|rank| rank.trim().parse().ok()).collect()
}

/// Makes slices of entries.
struct Slices<'a> {
    dump: &'a Dump<'a>,
    process: ProcessId,
    /// The last moment that the dump knows of.
    last_ns: i64,
    tracks: FxHashMap<(Option<StringId>, Option<StringId>), TrackId>,
    stacks: Stacks,
    /// Call stacks as text.
    of_list: FxHashMap<ListId, StringId>,
}

impl Slices<'_> {
    fn add(&mut self, entry: &Entry<'_>, builder: &mut TraceBuilder) {
        let track = self.track(entry.dict, builder);
        let end_ns = match entry.end {
            End::At(end_ns) => end_ns,
            End::Unknown => {
                builder.findings.add(FindingCode::MissingDuration, || entry.name.to_string());
                entry.created_ns
            }
            End::Open => self.last_ns,
        };
        if end_ns < entry.created_ns {
            builder.findings.add(FindingCode::NegativeDuration, || entry.name.to_string());
        }
        let dur_ns = (end_ns - entry.created_ns).max(0);
        let name = builder.strings.intern(entry.name);
        let slice = builder.add_slice(track, SliceKind::Annotation, name, entry.created_ns, dur_ns);
        if entry.end == End::Open {
            builder.findings.add(FindingCode::UnfinishedSlices, || entry.name.to_string());
            builder.set_unfinished(slice);
        }
        let said = self.dump.collective(entry, slice, &mut builder.strings);
        builder.add_collective(said);
        if let Some(Value::List(frames)) = member(self.dump.plain, entry.dict, "frames") {
            let stack = self.stack(frames, builder);
            builder.add_op(slice, OpInfo { stack, ..OpInfo::default() });
        }
    }

    fn track(&mut self, dict: DictId, builder: &mut TraceBuilder) -> TrackId {
        let (dump, process) = (self.dump, self.process);
        let key = (dump.text_id(dict, "thread_id"), dump.text_id(dict, "thread_name"));
        *self.tracks.entry(key).or_insert_with(|| {
            let name = key.1.map_or("collectives", |name| dump.plain.texts.get(name));
            let mut track = Track::new(TrackKind::Thread, process, name);
            track.tid = key.0.and_then(|id| dump.plain.texts.get(id).parse().ok());
            builder.add_track(track)
        })
    }

    /// A call stack as text, innermost frame first.
    fn stack(&mut self, list: ListId, builder: &mut TraceBuilder) -> StringId {
        if let Some(known) = self.of_list.get(&list) {
            return *known;
        }
        let text = |key| self.dump.plain.texts.find(key).unwrap_or(StringTable::EMPTY);
        let keys = FrameKeys { name: text("name"), filename: text("filename"), line: text("line") };
        let frames = self.stacks.frames(self.dump.plain, keys, list, builder);
        let frames: Vec<&str> = frames.into_iter().map(|frame| builder.strings.get(frame)).collect();
        let stack = frames.join(";");
        let stack = builder.strings.intern(&stack);
        self.of_list.insert(list, stack);
        stack
    }
}

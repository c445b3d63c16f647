//! Segments, blocks and entries of the history, one by one.

use super::document::Keys;
use crate::call_stacks::{FrameKeys, Stacks};
use crate::pickle::{DictId, Plain, Value};
use stepscope_base::StringId;
use stepscope_trace::{FindingCode, StackId, TraceBuilder};

/// Sizes from here on (64 TiB) and times from here on (in 2116) are taken for damage.
const MAX_BYTES: i64 = 1 << 46;
pub(super) const MAX_TIME_US: i64 = i64::MAX / 2_000;

/// What the allocator did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    Allocate,
    Free,
    /// What was freed can be allocated again: nothing that a total counts.
    FreeCompleted,
    /// It took memory from the device, or gave some back.
    Reserve,
    Release,
    OutOfMemory,
    Snapshot,
}

/// One entry of the history.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) action: Action,
    pub(super) address: u64,
    pub(super) bytes: i64,
    pub(super) stream: Option<i64>,
    /// Unix time.
    pub(super) time_ns: Option<i64>,
    /// What the device still had free, where memory could not be had.
    pub(super) device_free: Option<i64>,
    /// Its call stack, as the pickle holds it.
    pub(super) frames: Option<Value>,
}

/// A block that is allocated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) address: u64,
    pub(super) bytes: i64,
    pub(super) stream: Option<i64>,
    pub(super) frames: Option<Value>,
}

/// Memory that the allocator holds.
pub(super) struct Segment {
    pub(super) ordinal: usize,
    pub(super) address: u64,
    pub(super) bytes: i64,
    pub(super) stream: Option<i64>,
    pub(super) blocks: Option<Value>,
}

/// Reads them. What the pickle refers to twice is read once, so that time and memory are bounded by its length.
pub(super) struct Reader<'a> {
    pub(super) plain: &'a Plain,
    pub(super) keys: &'a Keys,
    stacks: Stacks,
    lists_seen: Vec<bool>,
    dicts_seen: Vec<bool>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(plain: &'a Plain, keys: &'a Keys) -> Self {
        let (lists_seen, dicts_seen) = (vec![false; plain.list_count()], vec![false; plain.dict_count()]);
        Self { plain, keys, stacks: Stacks::of(plain), lists_seen, dicts_seen }
    }

    /// The items of a list that is seen for the first time; nothing where there is none.
    pub(super) fn list_of(&mut self, list: Option<Value>, what: &str, builder: &mut TraceBuilder) -> &'a [Value] {
        match list {
            Some(Value::List(id)) if !std::mem::replace(&mut self.lists_seen[id.index()], true) => self.plain.list(id),
            None | Some(Value::None) => &[],
            Some(other) => {
                let found =
                    if matches!(other, Value::List(_)) { "a list that was read before" } else { Plain::kind(other) };
                builder.findings.add(FindingCode::UnreadableEvent, || format!("{what}: {found}"));
                &[]
            }
        }
    }

    /// Whether a list holds what has the keys of a segment.
    pub(super) fn is_list_of_segments(&self, list: Value) -> bool {
        let Value::List(id) = list else { return false };
        let first = self.plain.list(id).first();
        matches!(first, Some(Value::Dict(id)) if self.plain.get(*id, self.keys.blocks).is_some())
    }

    pub(super) fn segment(&mut self, value: Value) -> Option<Segment> {
        let dict = self.dict(value)?;
        Some(Segment {
            ordinal: usize::try_from(self.integer(dict, self.keys.device).unwrap_or(0)).ok()?,
            address: self.address(dict, self.keys.address)?,
            bytes: self.bytes(dict, self.keys.total_size)?,
            stream: self.integer(dict, self.keys.stream),
            blocks: self.plain.get(dict, self.keys.blocks),
        })
    }

    /// A block, unless it is free, and where it ends. Older snapshots do not say where it begins, which is at
    /// `address`.
    pub(super) fn block(&mut self, value: Value, address: u64, stream: Option<i64>) -> Option<(Option<Block>, u64)> {
        let dict = self.dict(value)?;
        let size = self.bytes(dict, self.keys.size)?;
        let bytes = self.bytes(dict, self.keys.requested_size).unwrap_or(size);
        let address = self.address(dict, self.keys.address).unwrap_or(address);
        let is_allocated = self.plain.get(dict, self.keys.state)? == Value::Text(self.keys.active_allocated);
        let block = Block { address, bytes, stream, frames: self.plain.get(dict, self.keys.frames) };
        Some((is_allocated.then_some(block), address.checked_add(size as u64)?))
    }

    /// An entry of the history.
    ///
    /// # Errors
    /// Why it is left out.
    pub(super) fn entry(&mut self, value: Value) -> Result<Entry, FindingCode> {
        let unreadable = FindingCode::UnreadableEvent;
        let dict = self.dict(value).ok_or(unreadable)?;
        let action = self.action(dict).ok_or(unreadable)?.ok_or(FindingCode::UnsupportedEvent)?;
        let has_address = !matches!(action, Action::OutOfMemory | Action::Snapshot);
        let time_us = self.integer(dict, self.keys.time_us);
        if time_us.is_some_and(|time_us| !(0..=MAX_TIME_US).contains(&time_us)) {
            return Err(unreadable);
        }
        Ok(Entry {
            action,
            address: if has_address { self.address(dict, self.keys.addr).ok_or(unreadable)? } else { 0 },
            bytes: if action == Action::Snapshot { 0 } else { self.bytes(dict, self.keys.size).ok_or(unreadable)? },
            stream: self.integer(dict, self.keys.stream),
            time_ns: time_us.map(|time_us| time_us * 1_000),
            device_free: self.bytes(dict, self.keys.device_free),
            frames: self.plain.get(dict, self.keys.frames),
        })
    }

    /// What an entry did; `None` inside for what no reader knows.
    fn action(&self, dict: DictId) -> Option<Option<Action>> {
        let Value::Text(action) = self.plain.get(dict, self.keys.action)? else { return None };
        let keys = self.keys;
        let known = [
            (keys.alloc, Action::Allocate),
            (keys.free_requested, Action::Free),
            (keys.free_completed, Action::FreeCompleted),
            (keys.segment_alloc, Action::Reserve),
            (keys.segment_map, Action::Reserve),
            (keys.segment_free, Action::Release),
            (keys.segment_unmap, Action::Release),
            (keys.oom, Action::OutOfMemory),
            (keys.snapshot, Action::Snapshot),
        ];
        Some(known.iter().find(|(name, _)| *name == action).map(|(_, action)| *action))
    }

    /// The call stack that `frames` are.
    pub(super) fn stack(&mut self, frames: Option<Value>, builder: &mut TraceBuilder) -> Option<StackId> {
        let keys = FrameKeys { name: self.keys.name, filename: self.keys.filename, line: self.keys.line };
        self.stacks.of_frames(self.plain, keys, frames?, builder)
    }

    /// Whether there is a frame in a call stack.
    pub(super) fn has_frames(&self, frames: Option<Value>) -> bool {
        matches!(frames, Some(Value::List(id)) if !self.plain.list(id).is_empty())
    }

    /// A dict that is seen for the first time.
    pub(super) fn dict(&mut self, value: Value) -> Option<DictId> {
        let Value::Dict(id) = value else { return None };
        (!std::mem::replace(&mut self.dicts_seen[id.index()], true)).then_some(id)
    }

    pub(super) fn integer(&self, dict: DictId, key: StringId) -> Option<i64> {
        self.plain.integer(self.plain.get(dict, key)?)
    }

    fn bytes(&self, dict: DictId, key: StringId) -> Option<i64> {
        self.integer(dict, key).filter(|bytes| (0..MAX_BYTES).contains(bytes))
    }

    fn address(&self, dict: DictId, key: StringId) -> Option<u64> {
        self.integer(dict, key).and_then(|address| u64::try_from(address).ok())
    }
}

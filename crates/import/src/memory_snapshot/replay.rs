//! From the history of a device to events with totals.
//!
//! ```text
//!  before the history          the history                      the snapshot
//!  blocks that it never        alloc  free  alloc  segment …    what is allocated and
//!  mentions: alloc at its ───▶ totals run on from there   ───▶  held now; what differs
//!  start                                                        is corrected at its end
//! ```
//!
//! What was freed in the history and not allocated in it is in the totals from the start, and has no event of its own
//! before its free.

use super::document::OfDevice;
use super::entries::{Action, Block, Entry, Reader};
use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_trace::{DeviceId, FindingCode, MemoryEvent, TraceBuilder, TrackId};

/// Whose history it is.
pub(super) struct History {
    pub(super) track: TrackId,
    pub(super) device: DeviceId,
    pub(super) ordinal: usize,
    /// When the history of any device begins.
    pub(super) start_ns: i64,
}

/// What a history and the snapshot at its end say together.
pub(super) struct Replay<'a> {
    of: &'a OfDevice,
    /// Allocated at the start, and not mentioned by the history.
    before: Vec<Block>,
    /// Allocated at the start, as what is freed in the history shows.
    freed_bytes: i64,
    reserved_bytes: i64,
    /// What is allocated at the end, though the history has it freed, and the other way round: address, bytes.
    found: Vec<Block>,
    gone: Vec<(u64, i64)>,
}

impl<'a> Replay<'a> {
    pub(super) fn of(of: &'a OfDevice) -> Self {
        // What the history has allocated at each address that it mentions.
        let mut live: FxHashMap<u64, Option<i64>> = FxHashMap::default();
        let (mut freed_bytes, mut reserved_change) = (0_i64, 0_i64);
        for entry in &of.entries {
            match entry.action {
                Action::Allocate => drop(live.insert(entry.address, Some(entry.bytes))),
                Action::Free => {
                    if live.insert(entry.address, None).flatten().is_none() {
                        freed_bytes = freed_bytes.saturating_add(entry.bytes);
                    }
                }
                Action::Reserve => reserved_change = reserved_change.saturating_add(entry.bytes),
                Action::Release => reserved_change = reserved_change.saturating_sub(entry.bytes),
                Action::FreeCompleted | Action::OutOfMemory | Action::Snapshot => {}
            }
        }
        let (before, rest): (Vec<Block>, Vec<Block>) =
            of.blocks.iter().partition(|block| !live.contains_key(&block.address));
        let is_known = |block: &Block| live.get(&block.address).copied().flatten() == Some(block.bytes);
        let found = rest.iter().copied().filter(|block| !is_known(block)).collect();
        let at_end: FxHashSet<(u64, i64)> = rest.iter().map(|block| (block.address, block.bytes)).collect();
        let held = live.into_iter().filter_map(|(address, bytes)| Some((address, bytes?)));
        let mut gone: Vec<(u64, i64)> = held.filter(|held| !at_end.contains(held)).collect();
        gone.sort_unstable();
        let reserved_bytes = of.reserved_bytes.saturating_sub(reserved_change).max(0);
        Self { of, before, freed_bytes, reserved_bytes, found, gone }
    }

    pub(super) fn add_to(self, history: &History, reader: &mut Reader<'_>, builder: &mut TraceBuilder) {
        self.report(history, reader, builder);
        let (allocated_bytes, reserved_bytes) = (self.freed_bytes, self.reserved_bytes);
        let live = FxHashMap::default();
        let mut totals = Totals { history, reader, builder, live, allocated_bytes, reserved_bytes };
        for block in &self.before {
            totals.add(&entry_of(block, history.start_ns));
        }
        self.of.entries.iter().for_each(|entry| totals.add(entry));
        let end_ns = self.of.entries.last().and_then(|entry| entry.time_ns).unwrap_or(history.start_ns);
        for (address, bytes) in self.gone {
            totals.add(&Entry {
                action: Action::Free,
                ..entry_of(&Block { address, bytes, stream: None, frames: None }, end_ns)
            });
        }
        self.found.iter().for_each(|block| totals.add(&entry_of(block, end_ns)));
        totals.correct_reserved(self.of.reserved_bytes, end_ns);
    }

    fn report(&self, history: &History, reader: &Reader<'_>, builder: &mut TraceBuilder) {
        let device = history.ordinal;
        let mut report = |code: FindingCode, count: usize, example: &dyn Fn() -> String| {
            if let Some(more) = count.checked_sub(1) {
                builder.findings.add(code, || format!("device {device}: {}", example()));
                builder.findings.add_count(code, more as u64);
            }
        };
        let bytes = self.before.iter().fold(0_i64, |sum, block| sum.saturating_add(block.bytes));
        report(FindingCode::MemoryBeforeHistory, self.before.len(), &|| format!("{bytes} bytes"));
        // A block has a stack when it was allocated while the history was recorded.
        let is_dropped = |block: &&Block| !self.of.entries.is_empty() && reader.has_frames(block.frames);
        let dropped = self.before.iter().filter(is_dropped).count();
        report(FindingCode::MemoryHistoryDropped, dropped, &|| format!("of {} entries", self.of.entries.len()));
        let differing = self.found.len() + self.gone.len();
        report(FindingCode::MemoryContradicted, differing, &|| format!("{differing} blocks"));
    }
}

fn entry_of(block: &Block, time_ns: i64) -> Entry {
    let Block { address, bytes, stream, frames } = *block;
    let (action, time_ns) = (Action::Allocate, Some(time_ns));
    Entry { action, address, bytes, stream, time_ns, device_free: None, frames }
}

/// What is in use after each event.
struct Totals<'a, 'b> {
    history: &'a History,
    reader: &'a mut Reader<'b>,
    builder: &'a mut TraceBuilder,
    live: FxHashMap<u64, i64>,
    allocated_bytes: i64,
    reserved_bytes: i64,
}

impl Totals<'_, '_> {
    fn add(&mut self, entry: &Entry) {
        let (time_ns, track) = (entry.time_ns.unwrap_or(self.history.start_ns), self.history.track);
        let bytes = match entry.action {
            Action::Allocate => {
                // An address that is allocated again was freed unseen.
                let older = self.live.insert(entry.address, entry.bytes).unwrap_or(0);
                self.allocated_bytes = self.allocated_bytes.saturating_sub(older).saturating_add(entry.bytes);
                entry.bytes
            }
            Action::Free => {
                let bytes = self.live.remove(&entry.address).unwrap_or(entry.bytes);
                self.allocated_bytes = self.allocated_bytes.saturating_sub(bytes);
                -bytes
            }
            Action::Reserve => {
                self.reserved_bytes = self.reserved_bytes.saturating_add(entry.bytes);
                0
            }
            Action::Release => {
                self.reserved_bytes = self.reserved_bytes.saturating_sub(entry.bytes).max(0);
                0
            }
            Action::OutOfMemory => {
                if let Some(free) = entry.device_free {
                    let text = format!("out of memory: {free} bytes free on device {}", self.history.ordinal);
                    let name = self.builder.strings.intern(&text);
                    self.builder.add_instant(track, name, time_ns);
                }
                entry.bytes
            }
            Action::FreeCompleted => return,
            Action::Snapshot => {
                let name = self.builder.strings.intern("snapshot");
                return self.builder.add_instant(track, name, time_ns);
            }
        };
        let event = MemoryEvent {
            time_ns,
            track,
            device: Some(self.history.device),
            address: entry.address,
            bytes,
            allocated_bytes: Some(self.allocated_bytes),
            reserved_bytes: Some(self.reserved_bytes),
            op: None,
            stream: entry.stream,
            stack: self.reader.stack(entry.frames, self.builder),
        };
        match entry.action {
            Action::OutOfMemory => self.builder.add_out_of_memory(event),
            _ => self.builder.add_memory_event(event),
        }
    }

    /// At the end the allocator holds what its segments are.
    fn correct_reserved(&mut self, reserved_bytes: i64, end_ns: i64) {
        let more = reserved_bytes.saturating_sub(self.reserved_bytes);
        if more == 0 {
            return;
        }
        let ordinal = self.history.ordinal;
        let example = || format!("device {ordinal}: {more} bytes reserved");
        self.builder.findings.add(FindingCode::MemoryContradicted, example);
        let (action, bytes) = if more > 0 { (Action::Reserve, more) } else { (Action::Release, more.saturating_neg()) };
        self.add(&Entry { action, ..entry_of(&Block { address: 0, bytes, stream: None, frames: None }, end_ns) });
    }
}

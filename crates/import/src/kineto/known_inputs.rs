//! The inputs of operators as they were written before: an operator is called again and again with the same ones, so
//! the lists of its shapes, types, strides and values need not be taken apart each time.

use super::event::InputTexts;
use super::layouts::NodeId;
use rustc_hash::FxHasher;
use std::hash::Hasher;

/// Inputs that were known again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Known {
    /// Which inputs: numbers count from 0 on.
    pub(super) number: u32,
    /// Their length as written.
    pub(super) len: usize,
    /// The layout's place before the last of their values.
    pub(super) behind: NodeId,
    parts: [(u32, u32); 4],
}

impl Known {
    /// They themselves in a text that begins with them.
    #[inline(always)]
    pub(super) fn texts_in<'a>(&self, text: &'a [u8]) -> InputTexts<'a> {
        self.parts.map(|(from, to)| &text[from as usize..to as usize])
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The layout's places before the first and the last value.
    nodes: (NodeId, NodeId),
    /// Where each of them begins and ends.
    parts: [(u32, u32); 4],
    from: u32,
    len: u32,
    /// The entry that came after this one last time: steps of a job repeat.
    next: u32,
}

/// How many are remembered of operators whose names fall together.
const WAYS: usize = 4;
/// Sets of those, a power of two.
const SETS: usize = 1 << 10;
/// Longer ones are not remembered.
const MAX_BYTES: usize = 4 << 10;
/// All of them together take no more than this, and no more than `u32` counts.
const MAX_TOTAL_BYTES: usize = 8 << 20;

/// What was seen so far.
#[derive(Debug)]
pub(super) struct KnownInputs {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Numbers plus one; 0 is free. The set of a name, and what was seen last first.
    sets: Vec<[u32; WAYS]>,
    /// The number of what was seen last.
    last: u32,
}

impl Default for KnownInputs {
    fn default() -> Self {
        Self { bytes: Vec::new(), entries: Vec::new(), sets: vec![[0; WAYS]; SETS], last: 0 }
    }
}

impl KnownInputs {
    /// True when what is new has little room.
    pub(super) fn is_nearly_full(&self) -> bool {
        self.bytes.len() > MAX_TOTAL_BYTES / 2
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.sets.fill([0; WAYS]);
        self.last = 0;
    }

    /// The inputs that `text` begins with, in an operator called `name` whose layout is at `node`.
    #[inline]
    pub(super) fn find(&mut self, name: &[u8], node: NodeId, text: &[u8]) -> Option<Known> {
        let next = self.entries.get(self.last as usize)?.next;
        let known = match self.known(next, node, text) {
            Some(known) => known,
            None => self.find_by_name(name, node, text)?,
        };
        self.entries[self.last as usize].next = known.number;
        self.last = known.number;
        Some(known)
    }

    fn find_by_name(&mut self, name: &[u8], node: NodeId, text: &[u8]) -> Option<Known> {
        let set = self.sets[set_of(name)];
        for (way, number) in set.iter().enumerate() {
            if let Some(known) = self.known(number.checked_sub(1)?, node, text) {
                self.sets[set_of(name)][..=way].rotate_right(1);
                return Some(known);
            }
        }
        None
    }

    #[inline(always)]
    fn known(&self, number: u32, node: NodeId, text: &[u8]) -> Option<Known> {
        let entry = self.entries.get(number as usize)?;
        let bytes = &self.bytes[entry.from as usize..][..entry.len as usize];
        let is_here = entry.nodes.0 == node && text.starts_with(bytes);
        is_here.then_some(Known { number, len: bytes.len(), behind: entry.nodes.1, parts: entry.parts })
    }

    /// Remembers inputs that were read one after the other between two places of a layout; their number. `written`
    /// begins with the first value and ends with the last one, which is a list: nothing that goes on differently begins
    /// with it. `None` when there is no room.
    pub(super) fn learn(
        &mut self,
        name: &[u8],
        nodes: (NodeId, NodeId),
        written: &[u8],
        inputs: &InputTexts<'_>,
    ) -> Option<u32> {
        if written.len() > MAX_BYTES || self.bytes.len() + written.len() > MAX_TOTAL_BYTES || !written.ends_with(b"]") {
            return None;
        }
        let parts = inputs.map(|part| part_of(written, part));
        let (from, len) = (self.bytes.len() as u32, written.len() as u32);
        self.bytes.extend_from_slice(written);
        let number = self.entries.len() as u32;
        self.entries.push(Entry { nodes, parts, from, len, next: 0 });
        self.entries[self.last as usize].next = number;
        self.last = number;
        let set = &mut self.sets[set_of(name)];
        set.rotate_right(1);
        set[0] = number + 1;
        Some(number)
    }
}

/// Where `part` stands in `whole`, of which it is a slice; nowhere when it is empty.
fn part_of(whole: &[u8], part: &[u8]) -> (u32, u32) {
    let from = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
    if part.is_empty() { (0, 0) } else { (from as u32, (from + part.len()) as u32) }
}

#[inline]
fn set_of(name: &[u8]) -> usize {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    hasher.finish() as usize % SETS
}

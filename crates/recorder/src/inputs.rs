//! What ops are called with: looked up in a cache of the thread, else in the table of the process.

use std::collections::HashMap;
use stepscope_capture::inputs::Signature;
use stepscope_capture::layout::INPUTS_IDS;

/// Inputs beyond this many are written in full where they are used, so that a job whose shapes never repeat cannot
/// fill memory.
const MAX_INPUTS: usize = 1 << 16;
/// So are inputs beyond this many words of all of them together.
const MAX_TABLE_WORDS: usize = 4 << 20;
const SLOTS: usize = 2048;
/// Words that a thread keeps; when they are full, it begins anew.
const MAX_CACHE_WORDS: usize = 1 << 18;
const _: () = assert!(MAX_INPUTS <= INPUTS_IDS as usize);

#[derive(Clone, Copy)]
struct Slot {
    hash: u64,
    at: u32,
    len: u32,
    id: u32,
}

const EMPTY: Slot = Slot { hash: 0, at: 0, len: 0, id: 0 };

/// One thread's cache, and the signature that it puts together. Two slots a hash, so that two that meet do not evict
/// each other for ever.
pub(crate) struct InputsCache {
    /// The inputs of the op that begins.
    pub(crate) signature: Signature,
    slots: Box<[Slot]>,
    words: Vec<u64>,
}

impl InputsCache {
    pub(crate) fn new() -> Self {
        let words = Vec::with_capacity(SLOTS);
        Self { signature: Signature::with_room(), slots: vec![EMPTY; SLOTS].into(), words }
    }

    /// Forgets everything: ids belong to one capture.
    pub(crate) fn clear(&mut self) {
        self.slots.fill(EMPTY);
        self.words.clear();
    }

    /// The hash of the signature, and its id when it is cached.
    #[inline(always)]
    pub(crate) fn find(&self) -> (u64, Option<u32>) {
        let words = self.signature.words();
        let hash = hash(words);
        let first = slot_of(hash);
        for at in [first, first ^ 1] {
            let slot = &self.slots[at];
            let is_same = || self.words.get(slot.at as usize..(slot.at + slot.len) as usize) == Some(words);
            // An empty slot has no words, which no op with inputs has.
            if slot.hash == hash && is_same() {
                return (hash, Some(slot.id));
            }
        }
        (hash, None)
    }

    /// Remembers that the signature, which has this hash, has `id`.
    pub(crate) fn insert(&mut self, hash: u64, id: u32) {
        let words = self.signature.words();
        if self.words.len() + words.len() > MAX_CACHE_WORDS {
            self.slots.fill(EMPTY);
            self.words.clear();
        }
        let slot = Slot { hash, at: self.words.len() as u32, len: words.len() as u32, id };
        self.words.extend_from_slice(words);
        let first = slot_of(hash);
        self.slots[first ^ 1] = self.slots[first];
        self.slots[first] = slot;
    }
}

#[inline(always)]
fn slot_of(hash: u64) -> usize {
    (hash >> 40) as usize & (SLOTS - 1)
}

/// Two words a step; the steps' products do not wait for each other.
#[inline(always)]
fn hash(words: &[u64]) -> u64 {
    const KEYS: (u64, u64) = (0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03);
    let product = |left: u64, right: u64| {
        let product = u128::from(left ^ KEYS.0) * u128::from(right ^ KEYS.1);
        product as u64 ^ (product >> 64) as u64
    };
    let pairs = words.chunks_exact(2);
    let rest = pairs.remainder().first().map_or(0, |word| product(*word, KEYS.0));
    let hash = pairs.fold(words.len() as u64, |hash, pair| hash.rotate_left(23) ^ product(pair[0], pair[1]));
    product(hash ^ rest, hash.rotate_left(32)) | 1
}

/// The inputs of one capture.
#[derive(Default)]
pub(crate) struct InputsTable {
    ids: HashMap<Box<[u64]>, u32>,
    words: usize,
}

/// What the table knows of inputs.
pub(crate) enum Interned {
    /// They had an id already.
    Known(u32),
    /// They have a new id, and must be written to the capture before anybody uses it.
    New(u32),
    /// The table is full.
    Full,
}

impl InputsTable {
    pub(crate) fn intern(&mut self, words: &[u64]) -> Interned {
        if let Some(id) = self.ids.get(words) {
            return Interned::Known(*id);
        }
        if self.ids.len() >= MAX_INPUTS || self.words + words.len() > MAX_TABLE_WORDS {
            return Interned::Full;
        }
        let id = self.ids.len() as u32;
        self.words += words.len();
        self.ids.insert(words.into(), id);
        Interned::New(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cache: &mut InputsCache, sizes: &[i64]) {
        cache.signature.clear();
        cache.signature.tensor(6, sizes, None);
    }

    #[test]
    fn inputs_are_known_again_and_others_are_not() {
        let mut cache = InputsCache::new();
        of(&mut cache, &[2, 3]);
        let (hash, id) = cache.find();
        assert_eq!(id, None);
        cache.insert(hash, 0);
        assert_eq!(cache.find().1, Some(0));
        for sizes in [[3, 2].as_slice(), &[2, 3, 0], &[2], &[]] {
            of(&mut cache, sizes);
            assert_eq!(cache.find().1, None, "{sizes:?}");
        }
        cache.clear();
        of(&mut cache, &[2, 3]);
        assert_eq!(cache.find().1, None);
    }

    #[test]
    fn the_cache_never_mistakes_one_for_another_and_is_bounded() {
        let mut cache = InputsCache::new();
        for size in 0..200_000 {
            of(&mut cache, &[size, size / 7]);
            let (hash, id) = cache.find();
            assert_eq!(id, None);
            cache.insert(hash, size as u32);
            assert_eq!(cache.find().1, Some(size as u32));
            if size > 2 {
                of(&mut cache, &[size - 2, (size - 2) / 7]);
                assert!(cache.find().1.is_none_or(|id| i64::from(id) == size - 2));
            }
        }
        assert!(cache.words.capacity() <= 2 * MAX_CACHE_WORDS);
    }

    #[test]
    fn a_swap_of_two_numbers_changes_the_hash() {
        let words = [1, 2, 3, 4, 5, 6, 7];
        let mut seen = vec![hash(&words)];
        for at in 0..words.len() - 1 {
            let mut swapped = words;
            swapped.swap(at, at + 1);
            seen.push(hash(&swapped));
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), words.len());
    }

    #[test]
    fn the_table_is_bounded() {
        let mut table = InputsTable::default();
        (0..MAX_INPUTS as u64).for_each(|i| assert!(matches!(table.intern(&[1, i]), Interned::New(..))));
        assert!(matches!(table.intern(&[2]), Interned::Full));
        assert!(matches!(table.intern(&[1, 7]), Interned::Known(7)));
        let mut table = InputsTable::default();
        let long: Vec<u64> = (0..MAX_TABLE_WORDS as u64).collect();
        assert!(matches!(table.intern(&long[1..]), Interned::New(0)));
        assert!(matches!(table.intern(&long[..2]), Interned::Full));
    }
}

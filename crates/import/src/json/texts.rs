//! Distinct texts of one part of an input, by the bytes as written: what is repeated is hashed once and resolved once.

use std::hash::Hasher;

/// A text of a [`Texts`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TextId(pub(crate) u32);

/// Distinct texts in order of first appearance; the empty one is always the first.
#[derive(Debug)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    /// Where each text ends in `bytes`.
    ends: Vec<u32>,
    /// Open addressing: hash and number plus one of a text; 0 is free.
    slots: Vec<(u32, u32)>,
}

impl Default for Texts {
    fn default() -> Self {
        Self { bytes: Vec::new(), ends: vec![0], slots: vec![(0, 0); 1024] }
    }
}

impl Texts {
    /// The empty text.
    pub(crate) const EMPTY: TextId = TextId(0);

    /// Forgets all but the empty text, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.truncate(1);
        self.slots.fill((0, 0));
    }

    /// Number of distinct texts.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of a text.
    pub(crate) fn get(&self, id: TextId) -> &[u8] {
        let from = if id.0 == 0 { 0 } else { self.ends[id.0 as usize - 1] as usize };
        &self.bytes[from..self.ends[id.0 as usize] as usize]
    }

    /// The id of `written`, added when it is new.
    #[inline]
    pub(crate) fn intern(&mut self, written: &[u8]) -> TextId {
        if written.is_empty() {
            return Self::EMPTY;
        }
        let hash = hash(written);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.slots[at] {
                (_, 0) => return self.add(written, hash),
                (known, number) if known == hash && self.get(TextId(number - 1)) == written => {
                    return TextId(number - 1);
                }
                _ => at = (at + 1) & mask,
            }
        }
    }

    #[cold]
    fn add(&mut self, written: &[u8], hash: u32) -> TextId {
        if (self.ends.len() + 1) * 2 > self.slots.len() {
            let old = std::mem::take(&mut self.slots);
            self.slots = vec![(0, 0); old.len() * 2];
            old.into_iter().filter(|slot| slot.1 != 0).for_each(|slot| self.place(slot));
        }
        self.bytes.extend_from_slice(written);
        self.ends.push(u32::try_from(self.bytes.len()).expect("a part of an input is far below 4 GiB"));
        let number = self.ends.len() as u32;
        self.place((hash, number));
        TextId(number - 1)
    }

    fn place(&mut self, slot: (u32, u32)) {
        let mask = self.slots.len() - 1;
        let mut at = slot.0 as usize & mask;
        while self.slots[at].1 != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }
}

#[inline]
fn hash(bytes: &[u8]) -> u32 {
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(bytes);
    let hash = hasher.finish();
    (hash ^ hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_have_one_id() {
        let mut texts = Texts::default();
        let ids: Vec<TextId> = (0..5_000).map(|i| texts.intern(format!("name {i}").as_bytes())).collect();
        assert_eq!(texts.len(), 5_001);
        for (i, id) in ids.iter().enumerate() {
            assert_eq!(texts.intern(format!("name {i}").as_bytes()), *id);
            assert_eq!(texts.get(*id), format!("name {i}").as_bytes());
        }
        assert_eq!(texts.intern(b""), Texts::EMPTY);
    }
}

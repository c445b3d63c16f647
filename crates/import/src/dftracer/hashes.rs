//! What hashes stand for: files, hosts, programs.
//!
//! A hash is of the text, so it means the same in all processes and files of a run, and a forked worker uses those that
//! only its parent explained. But the 16 bits of 1.0.5 are too few: there, names of one process collide.

use super::numbers;
use rustc_hash::FxHashMap;
use stepscope_base::StringId;

/// A hash as a number, with the process it belongs to where that matters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Hash {
    number: u64,
    pid: i64,
}

/// What is known of one hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Meaning {
    /// The text named last.
    pub(super) text: StringId,
    /// Another text was named before.
    pub(super) is_ambiguous: bool,
}

/// All hashes that were explained.
#[derive(Debug, Default)]
pub(super) struct Hashes {
    meanings: FxHashMap<Hash, Meaning>,
    /// The one asked for last: calls on one file follow each other.
    last: Option<(Hash, Meaning)>,
}

impl Hash {
    /// From digits or hexadecimal digits. `None` for what is neither, and for 0, which is not the hash of a name.
    pub(super) fn read(written: &[u8], pid: i64) -> Option<Self> {
        let number = match written.len() {
            16 => hexadecimal(written)?,
            _ => numbers::integer(written)? as u64,
        };
        let is_narrow = number <= u64::from(u16::MAX);
        (number != 0).then_some(Self { number, pid: if is_narrow { pid } else { 0 } })
    }

    /// From 16 hexadecimal digits, if it means the same in every process.
    pub(super) fn wide(written: &[u8]) -> Option<Self> {
        let hash = if written.len() == 16 { Self::read(written, 0)? } else { return None };
        (hash.number > u64::from(u16::MAX)).then_some(hash)
    }
}

impl Hashes {
    /// Says what a hash stands for.
    pub(super) fn explain(&mut self, hash: Hash, text: StringId) {
        self.last = None;
        let known = self.meanings.entry(hash).or_insert(Meaning { text, is_ambiguous: false });
        known.is_ambiguous |= known.text != text;
        known.text = text;
    }

    /// What a hash stands for, as far as it was said.
    pub(super) fn get(&self, hash: Hash) -> Option<Meaning> {
        self.meanings.get(&hash).copied()
    }

    /// What a hash stands for, quickly when it was looked up before.
    pub(super) fn get_again(&mut self, hash: Hash) -> Option<Meaning> {
        match self.last {
            Some((last, meaning)) if last == hash => Some(meaning),
            _ => {
                let meaning = self.get(hash)?;
                self.last = Some((hash, meaning));
                Some(meaning)
            }
        }
    }
}

/// A number of 16 hexadecimal digits. One of 16 decimal digits reads as another number, the same wherever it stands.
fn hexadecimal(digits: &[u8]) -> Option<u64> {
    let mut number = 0;
    let mut is_hexadecimal = true;
    for byte in digits {
        let letter = (byte | 0x20).wrapping_sub(b'a');
        let digit = if letter < 6 { letter + 10 } else { byte.wrapping_sub(b'0') };
        is_hexadecimal &= digit < 10 || letter < 6;
        number = number << 4 | u64::from(digit & 15);
    }
    is_hexadecimal.then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_hashes_mean_the_same_in_every_process() {
        let hash = |text: &str, pid| Hash::read(text.as_bytes(), pid);
        assert_eq!(hash("cbec22f6f5883604", 1), hash("cbec22f6f5883604", 2));
        assert_eq!(hash("15238147165620463749", 1), hash("15238147165620463749", 2));
        assert_ne!(hash("33764", 1), hash("33764", 2));
        assert_ne!(hash("15238147165620463749", 1), hash("15238147165620463748", 1));
        for nothing in ["", "0", "0000000000000000", "x", "zzzzzzzzzzzzzzzz"] {
            assert_eq!(hash(nothing, 1), None, "{nothing}");
        }
    }

    #[test]
    fn of_names_that_collide_the_last_is_taken() {
        let mut hashes = Hashes::default();
        let hash = Hash::read(b"57110", 1).expect("a hash");
        hashes.explain(hash, StringId(1));
        hashes.explain(hash, StringId(1));
        assert_eq!(hashes.get(hash), Some(Meaning { text: StringId(1), is_ambiguous: false }));
        hashes.explain(hash, StringId(2));
        assert_eq!(hashes.get(hash), Some(Meaning { text: StringId(2), is_ambiguous: true }));
    }
}

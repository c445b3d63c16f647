//! Activity records as they are read: a job runs the same kernels over and over, and most records tell nothing new but
//! when, so that each distinct one is decoded once.

use super::record::Record;
use super::texts::Texts;
use crate::device::{self, ActivityList, DeviceActivity};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The words of a record after its first one.
type Words = [u64; device::LONGEST - 1];

/// Activity records in the order in which they are read.
#[derive(Default, Debug)]
pub(super) struct ReadActivities {
    pub(super) list: ActivityList,
    distinct: Vec<Distinct>,
    /// Places in `distinct`, by the hash of the words.
    places: HashMap<u64, u32, BuildHasherDefault<IsHash>>,
    /// The place of the last one that was read.
    last: u32,
}

/// What many activity records have in common.
#[derive(Debug)]
struct Distinct {
    /// Their words without times and correlation.
    words: Words,
    /// Which of the list's they are about.
    about: u32,
    /// The place of the one that came next, the last time: a step does what the step before did.
    next: u32,
}

/// The bit of a name's id that makes it the place of a text, until all names are known.
pub(super) const TEXT: u32 = 1 << 31;

impl ReadActivities {
    /// Takes in a record of a device's profiler. A name that stands in it is one of the `texts`.
    #[inline]
    pub(super) fn learn(&mut self, record: &Record, texts: &mut Texts) {
        let (len, text_bytes) = device::lengths(record.word(0));
        let mut words = [0; device::LONGEST - 1];
        let said = record.body.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
        words.iter_mut().zip(said.take(len)).for_each(|(word, said)| *word = said);
        let repeated = device::split(&words).filter(|_| text_bytes == 0);
        let Some((about, (start_ns, end_ns), correlation)) = repeated else {
            let text = (text_bytes > 0).then(|| record.text(8 * len, text_bytes));
            return self.decode(&words, text, texts);
        };
        let expected = self.distinct.get(self.last as usize).map_or(0, |last| last.next);
        let is_expected = self.distinct.get(expected as usize).is_some_and(|expected| expected.words == about);
        let place = if is_expected { Some(expected) } else { self.place_of(&about, len) };
        let Some(place) = place else { return };
        self.distinct[self.last as usize].next = place;
        self.last = place;
        self.list.push_about(self.distinct[place as usize].about, (start_ns, end_ns), correlation);
    }

    /// Where in `distinct` the words of a record are, the first `len` of `about`; `None` when they cannot be decoded.
    fn place_of(&mut self, about: &Words, len: usize) -> Option<u32> {
        let hash = hash_of(&about[..len.min(about.len())]);
        let known = self.places.get(&hash).copied().filter(|place| self.distinct[*place as usize].words == *about);
        if known.is_some() {
            return known;
        }
        let (record, device_type) = device::decode(about)?;
        let place = self.distinct.len() as u32;
        let index = self.list.intern(DeviceActivity { device_type, record });
        self.distinct.push(Distinct { words: *about, about: index, next: place });
        self.places.insert(hash, place);
        Some(place)
    }

    fn decode(&mut self, words: &Words, text: Option<String>, texts: &mut Texts) {
        let Some((mut record, device_type)) = device::decode(words) else { return };
        if let (Some(text), Some(name)) = (text, record.name_mut()) {
            *name = Some(TEXT | texts.learn(text));
        }
        self.list.push(DeviceActivity { device_type, record });
    }
}

/// Words are few and of our own making: a product for each is enough.
#[inline]
fn hash_of(words: &[u64]) -> u64 {
    let mixed = |hash: u64, word: &u64| (hash.rotate_left(5) ^ word).wrapping_mul(0xf135_7aea_2e62_a9c5);
    words.iter().fold(0, mixed).rotate_left(26)
}

/// A key that is a hash already.
#[derive(Default)]
struct IsHash(u64);

impl Hasher for IsHash {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are words");
    }

    #[inline]
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

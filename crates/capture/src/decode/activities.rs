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
    /// Words without times and correlation, and which of the list's they are about.
    known: HashMap<u64, (Words, u32), BuildHasherDefault<IsHash>>,
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
        let hash = hash_of(&about[..len.min(about.len())]);
        if let Some((_, index)) = self.known.get(&hash).filter(|(known, _)| *known == about) {
            return self.list.push_about(*index, (start_ns, end_ns), correlation);
        }
        let before = self.list.len();
        self.decode(&words, None, texts);
        if self.list.len() > before {
            self.known.insert(hash, (about, self.list.about_of(before) as u32));
        }
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

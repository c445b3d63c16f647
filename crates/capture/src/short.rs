//! Short records: most begins and ends say only what changed since the record before.
//!
//! ```text
//! bit   0      8                     32            46      50                 64
//! begin │ tag  │ ticks since         │ name        │ scope │ sequence number  │
//! timed │ tag  │ ticks since         │ name        │ scope │ ticks that it took, and one; 0 until it ends
//! end   │ tag  │ ticks since         │
//! ```
//!
//! Most ops have nothing inside them: their end is written into their begin, if that is a *timed* one.
//!
//! A writer that has no room for a value in a short record writes the long one instead.

use crate::layout::Tag;

const STEP_BITS: u32 = 24;
const NAME_BITS: u32 = 14;
const SCOPE_BITS: u32 = 4;
const SEQUENCE_BITS: u32 = 14;
/// Where the code of the sequence number, or what a timed begin took, stands.
const CODE_SHIFT: u32 = NAME_BITS + SCOPE_BITS;
/// How far a sequence number may lie below the one before.
const SEQUENCE_BELOW: i64 = 4096;

/// What a begin says beside its ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Begin {
    /// The name's id.
    pub name: u32,
    /// The framework's scope.
    pub scope: u8,
    /// Autograd's sequence number; negative: none.
    pub sequence_number: i64,
    /// The framework thread that ran the forward op; 0: none.
    pub forward_thread: u64,
}

/// What the next short record of a part counts from: a `Thread` record sets the ticks and clears the rest; every other
/// record sets the ticks, and a begin what it carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reference {
    /// Ticks of the record before.
    pub ticks: u64,
    /// The last sequence number.
    sequence_number: i64,
    /// The last forward thread.
    forward_thread: u64,
}

impl Reference {
    /// What holds after a `Thread` record.
    pub fn at_thread(ticks: u64) -> Self {
        Self { ticks, ..Self::default() }
    }

    /// Remembers what a begin carries.
    #[inline(always)]
    pub fn note(&mut self, begin: &Begin) {
        if begin.sequence_number >= 0 {
            self.sequence_number = begin.sequence_number;
        }
        if begin.forward_thread != 0 {
            self.forward_thread = begin.forward_thread;
        }
    }

    /// The first half of a short record; `None` when it is too long since the record before.
    #[inline(always)]
    pub fn short_word(&self, ticks: u64, tag: Tag) -> Option<u32> {
        let step = ticks.wrapping_sub(self.ticks);
        (step < 1 << STEP_BITS).then_some((step as u32) << 8 | tag as u32)
    }

    /// Tag and second half of a short begin, a timed one if it can be; `None` when a value has no room.
    #[inline(always)]
    pub fn short_begin(&self, begin: &Begin) -> Option<(Tag, u32)> {
        if begin.name >= 1 << NAME_BITS {
            return None;
        }
        let name_and_scope = begin.name | (u32::from(begin.scope) & ((1 << SCOPE_BITS) - 1)) << NAME_BITS;
        if begin.forward_thread == 0
            && let Some(tag) = self.timed_tag(begin.sequence_number)
        {
            return Some((tag, name_and_scope));
        }
        let (tag, code) = self.untimed(begin)?;
        Some((tag, name_and_scope | code << CODE_SHIFT))
    }

    /// The tag of a timed begin with that sequence number.
    #[inline(always)]
    fn timed_tag(&self, sequence_number: i64) -> Option<Tag> {
        if sequence_number < 0 {
            return Some(Tag::TimedBegin);
        }
        match sequence_number.wrapping_sub(self.sequence_number) {
            0 => Some(Tag::TimedBeginSame),
            1 => Some(Tag::TimedBeginNext),
            _ => None,
        }
    }

    /// The tag of another short begin and the code of its sequence number.
    fn untimed(&self, begin: &Begin) -> Option<(Tag, u32)> {
        let tag = match begin.forward_thread {
            0 => Tag::ShortBegin,
            thread if thread == self.forward_thread => Tag::ShortBeginBackward,
            _ => return None,
        };
        let code = if begin.sequence_number < 0 {
            0
        } else {
            let code = begin.sequence_number.wrapping_sub(self.sequence_number).wrapping_add(SEQUENCE_BELOW + 1);
            if !(1..1 << SEQUENCE_BITS).contains(&code) {
                return None;
            }
            code as u32
        };
        Some((tag, code))
    }

    /// Ticks of the short record with this first half.
    pub fn ticks_of(&self, word: u32) -> u64 {
        self.ticks.wrapping_add(u64::from(word >> 8))
    }

    /// What the second half of a short begin says.
    pub fn begin_of(&self, tag: Tag, word: u32) -> Begin {
        let code = i64::from(word >> CODE_SHIFT);
        Begin {
            name: word & ((1 << NAME_BITS) - 1),
            scope: (word >> NAME_BITS) as u8 & ((1 << SCOPE_BITS) - 1),
            sequence_number: match tag {
                Tag::TimedBegin => -1,
                Tag::TimedBeginSame => self.sequence_number,
                Tag::TimedBeginNext => self.sequence_number.wrapping_add(1),
                _ if code == 0 => -1,
                _ => self.sequence_number.wrapping_add(code - SEQUENCE_BELOW - 1),
            },
            forward_thread: if tag == Tag::ShortBeginBackward { self.forward_thread } else { 0 },
        }
    }
}

/// Whether a begin takes its end in place.
#[inline(always)]
pub const fn is_timed(tag: Tag) -> bool {
    matches!(tag, Tag::TimedBegin | Tag::TimedBeginSame | Tag::TimedBeginNext)
}

/// The second half of a timed begin that took `ticks`; `None` when it took too long.
#[inline(always)]
pub fn ended(word: u32, ticks: u64) -> Option<u32> {
    (ticks < (1 << SEQUENCE_BITS) - 1).then_some(word | (ticks as u32 + 1) << CODE_SHIFT)
}

/// How many ticks the begin with this second half took; `None` when it does not say so.
pub fn took(tag: Tag, word: u32) -> Option<u64> {
    if is_timed(tag) { u64::from(word >> CODE_SHIFT).checked_sub(1) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: Begin = Begin { name: 77, scope: 7, sequence_number: -1, forward_thread: 0 };

    fn reference() -> Reference {
        let mut reference = Reference::at_thread(1_000);
        reference.note(&Begin { sequence_number: 10_000, forward_thread: 3, ..BEGIN });
        reference
    }

    #[test]
    fn a_short_begin_says_what_was_put_in() {
        let numbers =
            [-1, 10_000 - SEQUENCE_BELOW, 9_999, 10_000, 10_001, 10_000 + (1 << SEQUENCE_BITS) - 2 - SEQUENCE_BELOW];
        for sequence_number in numbers {
            for begin in [
                Begin { sequence_number, ..BEGIN },
                Begin { sequence_number, name: (1 << NAME_BITS) - 1, scope: 15, forward_thread: 3 },
            ] {
                let (tag, word) = reference().short_begin(&begin).expect("there is room");
                assert_eq!(reference().begin_of(tag, word), begin);
            }
        }
    }

    #[test]
    fn a_timed_begin_says_what_was_put_in_and_how_long_it_took() {
        for (number, tag) in [(-1, Tag::TimedBegin), (10_000, Tag::TimedBeginSame), (10_001, Tag::TimedBeginNext)] {
            let begin = Begin { sequence_number: number, name: (1 << NAME_BITS) - 1, scope: 15, forward_thread: 0 };
            let (found, word) = reference().short_begin(&begin).expect("there is room");
            assert_eq!((found, took(tag, word)), (tag, None));
            for ticks in [0, 1, (1 << SEQUENCE_BITS) - 2] {
                let word = ended(word, ticks).expect("there is room");
                assert_eq!((took(tag, word), reference().begin_of(tag, word)), (Some(ticks), begin));
                assert_eq!(took(Tag::ShortBegin, word), None);
            }
            assert_eq!(ended(word, (1 << SEQUENCE_BITS) - 1), None);
        }
    }

    #[test]
    fn what_has_no_room_is_told() {
        let refused = [
            Begin { sequence_number: 10_000 - SEQUENCE_BELOW - 1, ..BEGIN },
            Begin { sequence_number: 10_000 + (1 << SEQUENCE_BITS) - 1 - SEQUENCE_BELOW, ..BEGIN },
            Begin { sequence_number: i64::MAX, ..BEGIN },
            Begin { name: 1 << NAME_BITS, ..BEGIN },
            Begin { forward_thread: 4, ..BEGIN },
        ];
        refused.iter().for_each(|begin| assert_eq!(reference().short_begin(begin), None, "{begin:?}"));
        assert_eq!(reference().short_word(1_000 + (1 << STEP_BITS), Tag::ShortEnd), None);
        assert_eq!(reference().short_word(999, Tag::ShortEnd), None, "the counter went back");
    }

    #[test]
    fn ticks_count_from_the_record_before() {
        for ticks in [1_000, 1_001, 1_000 + (1 << STEP_BITS) - 1] {
            let word = reference().short_word(ticks, Tag::ShortEnd).expect("there is room");
            assert_eq!((word as u8, reference().ticks_of(word)), (Tag::ShortEnd as u8, ticks));
        }
    }
}

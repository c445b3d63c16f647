//! One record where it lies.

use crate::io::IoRecord;
use crate::layout::{BeginWord, Tag, padded, scope};
use crate::short::{Begin, Reference, took};

/// One record: its tag, ticks, the bytes after its first word, and of a begin what it says. A short record stands here
/// as the long one that it means.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) tag: Tag,
    pub(super) ticks: u64,
    pub(super) body: &'a [u8],
    pub(super) begin: Option<Begin>,
    /// When it ended, of a begin that says so.
    pub(super) ended: Option<u64>,
}

impl Record<'_> {
    /// The word with this index after the first one.
    pub(super) fn word(&self, index: usize) -> u64 {
        word_at(self.body, index * 8).unwrap_or(0)
    }

    /// The lower and the upper half of such a word.
    pub(super) fn halves(&self, index: usize) -> (u32, u32) {
        let word = self.word(index);
        (word as u32, (word >> 32) as u32)
    }

    /// The text of `len` bytes that begins `at` bytes into the body.
    pub(super) fn text(&self, at: usize, len: usize) -> String {
        String::from_utf8_lossy(self.bytes(at, len)).into_owned()
    }

    /// The `len` bytes that begin `at` bytes into the body.
    pub(super) fn bytes(&self, at: usize, len: usize) -> &[u8] {
        self.body.get(at..at + len).unwrap_or_default()
    }

    /// The end that a begin itself says.
    #[inline]
    pub(super) fn end(&self) -> Option<Record<'static>> {
        let is_call = self.begin.is_some_and(|begin| scope::is_call(begin.scope));
        let tag = if is_call { Tag::CallEnd } else { Tag::End };
        self.ended.map(|ticks| Record { tag, ticks, body: &[], begin: None, ended: None })
    }

    /// What a long begin with a name's id says.
    #[inline]
    fn long_begin(&self) -> Option<Begin> {
        let (sequence_number, forward_thread) = match self.tag {
            Tag::Begin => (None, 0),
            Tag::BeginBackward => (None, self.word(1)),
            Tag::BeginSequence => (Some(self.word(1)), self.word(2)),
            _ => return None,
        };
        let packed = BeginWord::unpack(self.word(0));
        let sequence_number = sequence_number.or(packed.sequence_number).map_or(-1, |number| number as i64);
        Some(Begin { name: packed.name, scope: packed.scope, sequence_number, forward_thread })
    }
}

#[inline]
pub(super) fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
}

#[inline]
pub(super) fn half_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|half| u32::from_le_bytes(half.try_into().unwrap_or_default()))
}

/// The length of a short record; `None` for long ones.
#[inline]
pub(crate) const fn short_len(tag: Tag) -> Option<usize> {
    match tag {
        Tag::ShortBegin | Tag::ShortBeginBackward => Some(8),
        Tag::TimedBegin | Tag::TimedBeginSame | Tag::TimedBeginNext => Some(8),
        Tag::ShortEnd | Tag::ShortCallEnd | Tag::Pad | Tag::InputsReference => Some(4),
        _ => None,
    }
}

/// The record at `at` and its length; `None` when there is none, or a short one has nothing to count from.
#[inline(always)]
pub(super) fn read_record<'a>(
    segment: &'a [u8],
    at: usize,
    reference: Option<&Reference>,
) -> Option<(Record<'a>, usize)> {
    let half = half_at(segment, at)?;
    let tag = Tag::from_byte(half as u8)?;
    let Some(short_len) = short_len(tag) else { return read_long(segment, at, tag) };
    let reference = reference?;
    let (tag, begin, took) = match tag {
        Tag::Pad | Tag::InputsReference => (tag, None, None),
        Tag::ShortEnd => (Tag::End, None, None),
        Tag::ShortCallEnd => (Tag::CallEnd, None, None),
        _ => {
            let second = half_at(segment, at + 4)?;
            (Tag::Begin, Some(reference.begin_of(tag, second)), took(tag, second))
        }
    };
    let has_ticks = !matches!(tag, Tag::Pad | Tag::InputsReference);
    let ticks = if has_ticks { reference.ticks_of(half) } else { reference.ticks };
    // What stands in the place of the ticks.
    let body = if has_ticks { &[] } else { segment.get(at + 1..at + 4)? };
    let ended = took.map(|took| ticks.wrapping_add(took));
    Some((Record { tag, ticks, body, begin, ended }, short_len))
}

#[inline(never)]
pub(super) fn read_long(segment: &[u8], at: usize, tag: Tag) -> Option<(Record<'_>, usize)> {
    let rest = segment.get(at + 8..)?;
    let body = &rest[..body_len(tag, rest)?];
    let mut record = Record { tag, ticks: word_at(segment, at)? >> 8, body, begin: None, ended: None };
    record.begin = record.long_begin();
    at.is_multiple_of(8).then_some((record, 8 + body.len()))
}

/// Bytes that follow a long record's first word; `None` when they are not all there. A new record says here how long it
/// is.
pub(crate) fn body_len(tag: Tag, rest: &[u8]) -> Option<usize> {
    let word = || word_at(rest, 0);
    let (low, high) = (|word: u64| word as u32 as usize, |word: u64| (word >> 32) as usize);
    let len = match tag {
        Tag::End | Tag::OptimizerStep | Tag::CallEnd | Tag::CallsStop | Tag::StepDropped => 0,
        Tag::Begin | Tag::DeviceClock | Tag::EndOuter | Tag::StepBegin | Tag::StepEnd | Tag::NumberedOptimizerStep => 8,
        Tag::ProfilerState | Tag::EndLeft => 8,
        Tag::BeginBackward | Tag::EndElsewhere | Tag::Clock | Tag::Window | Tag::Counter | Tag::Collective => 16,
        Tag::Stack => 16,
        Tag::CollectiveText => 16 + padded(low(word()?)),
        Tag::BeginSequence | Tag::Thread | Tag::Memory | Tag::StackSample => 24,
        Tag::OutOfMemory => 32,
        Tag::Device => 8usize.checked_add(high(word()?).checked_mul(8)?)?,
        Tag::MemoryReserved => 40,
        Tag::BeginText | Tag::ThreadName | Tag::InputsInPlace => 8 + padded(low(word()?)),
        Tag::Name | Tag::Overload | Tag::Inputs | Tag::File => 8 + padded(high(word()?)),
        Tag::Io => 8 * IoRecord::len(word()?),
        Tag::Fact => 8 + padded(low(word()?).checked_add(high(word()?))?),
        Tag::ShortBegin
        | Tag::ShortBeginBackward
        | Tag::TimedBegin
        | Tag::TimedBeginSame
        | Tag::TimedBeginNext
        | Tag::ShortEnd
        | Tag::ShortCallEnd
        | Tag::Pad
        | Tag::InputsReference => {
            return None;
        }
    };
    (len <= rest.len()).then_some(len)
}

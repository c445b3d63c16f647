//! How activity records are laid out in words.

use super::{
    ActivityRecord, Api, Call, DeviceWork, Direction, EventRecorded, LONGEST, MemoryKind, NO_NAME, Overhead, Range,
    Synchronization, SynchronizationKind, WorkKind,
};
use crate::layout::padded;

/// In place of a stream: all of them.
const ALL_STREAMS: u32 = u32::MAX;

/// The first of the 16 bits of word 1 that say how many bytes the text of a name has.
const TEXT_SHIFT: u32 = 16;

/// The number of a kind of record.
pub(super) mod kind {
    pub(in crate::device) const KERNEL: u8 = 1;
    pub(in crate::device) const MEMCPY: u8 = 2;
    pub(in crate::device) const MEMSET: u8 = 3;
    pub(in crate::device) const GRAPH: u8 = 4;
    pub(in crate::device) const CALL: u8 = 5;
    pub(in crate::device) const SYNCHRONIZATION: u8 = 6;
    pub(in crate::device) const EVENT_RECORDED: u8 = 7;
    pub(in crate::device) const OVERHEAD: u8 = 8;
    pub(in crate::device) const RANGE: u8 = 9;
    pub(in crate::device) const DROPPED: u8 = 10;
}

/// The words of a record after its first one.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    words: [u64; LONGEST - 1],
    len: usize,
}

impl Words {
    /// As a slice.
    pub fn as_slice(&self) -> &[u64] {
        &self.words[..self.len]
    }

    /// These words, where the text of the record's name stands behind them: of so many bytes, padded to whole
    /// words.
    pub fn with_text(mut self, bytes: usize) -> Self {
        self.words[0] |= (bytes as u64) << TEXT_SHIFT;
        self.words[0] += (padded(bytes) as u64 / 8) << 32;
        self
    }

    fn push(&mut self, word: u64) {
        self.words[self.len] = word;
        self.len += 1;
    }

    fn push_halves(&mut self, low: u32, high: u32) {
        self.push(u64::from(low) | u64::from(high) << 32);
    }

    fn push_span(&mut self, start_ns: i64, end_ns: i64) {
        self.push(start_ns as u64);
        self.push(end_ns as u64);
    }
}

/// The words of work or of a call without times and correlation, which are told of each; and these. `None` of other
/// records.
#[inline]
pub(crate) fn split(words: &[u64; LONGEST - 1]) -> Option<([u64; LONGEST - 1], (i64, i64), u32)> {
    let is_split = matches!(words[0] as u8, kind::KERNEL | kind::MEMCPY | kind::MEMSET | kind::GRAPH | kind::CALL);
    is_split.then(|| {
        let mut about = *words;
        let (start_ns, end_ns) = (std::mem::take(&mut about[1]) as i64, std::mem::take(&mut about[2]) as i64);
        let correlation = (about[4] >> 32) as u32;
        about[4] &= u64::from(u32::MAX);
        (about, (start_ns.max(i64::MIN + 1), end_ns), correlation)
    })
}

/// The words of a record after its first one, for a device of PyTorch's type `device_type`.
pub fn encode(record: &ActivityRecord, device_type: u8) -> Words {
    let mut words = Words { words: [0; LONGEST - 1], len: 1 };
    let kind = match record {
        ActivityRecord::Work(work) => encode_work(work, &mut words),
        ActivityRecord::Call(call) => {
            words.push_span(call.start_ns, call.end_ns);
            words.push_halves(call.name.unwrap_or(NO_NAME), call.api as u32);
            words.push_halves(call.thread, call.correlation);
            words.push(u64::from(call.status));
            kind::CALL
        }
        ActivityRecord::Synchronization(wait) => {
            words.push_span(wait.start_ns, wait.end_ns);
            words.push_halves(wait.context, wait.stream.unwrap_or(ALL_STREAMS));
            words.push_halves(wait.correlation, wait.event);
            words.push_halves(wait.kind as u32, 0);
            words.push(wait.event_sync);
            kind::SYNCHRONIZATION
        }
        ActivityRecord::EventRecorded(event) => {
            words.push_halves(event.context, event.stream);
            words.push_halves(event.correlation, event.event);
            words.push(event.event_sync);
            kind::EVENT_RECORDED
        }
        ActivityRecord::Overhead(overhead) => {
            words.push_span(overhead.start_ns, overhead.end_ns);
            words.push_halves(overhead.name.unwrap_or(NO_NAME), overhead.thread);
            kind::OVERHEAD
        }
        ActivityRecord::Range(range) => {
            words.push_span(range.start_ns, range.end_ns);
            words.push_halves(range.name.unwrap_or(NO_NAME), range.thread);
            words.push_halves(range.id, u32::from(range.is_unfinished));
            kind::RANGE
        }
        ActivityRecord::Dropped(count) => {
            words.push(*count);
            kind::DROPPED
        }
    };
    words.words[0] = u64::from(kind) | u64::from(device_type) << 8 | (words.len as u64 - 1) << 32;
    words
}

fn encode_work(work: &DeviceWork, words: &mut Words) -> u8 {
    words.push_span(work.start_ns, work.end_ns);
    words.push_halves(work.device, work.context);
    words.push_halves(work.stream, work.correlation);
    words.push(work.graph_node);
    match work.kind {
        WorkKind::Kernel { name, grid, block, registers, static_shared_bytes, dynamic_shared_bytes } => {
            words.push_halves(work.graph, name.unwrap_or(NO_NAME));
            words.push_halves(grid[0], grid[1]);
            words.push_halves(grid[2], registers);
            words.push_halves(block[0], block[1]);
            words.push_halves(block[2], static_shared_bytes);
            words.push_halves(dynamic_shared_bytes, 0);
            kind::KERNEL
        }
        WorkKind::Memcpy { bytes, direction, source, destination, devices } => {
            let kinds = [direction as u8, source as u8, destination as u8, u8::from(devices.is_some())];
            words.push_halves(work.graph, u32::from_le_bytes(kinds));
            words.push(bytes);
            let (from, to) = devices.unwrap_or_default();
            words.push_halves(from, to);
            kind::MEMCPY
        }
        WorkKind::Memset { bytes, memory } => {
            words.push_halves(work.graph, memory as u32);
            words.push(bytes);
            kind::MEMSET
        }
        WorkKind::Graph => {
            words.push_halves(work.graph, 0);
            kind::GRAPH
        }
    }
}

/// How many words of a record stand behind its first one and before the text of its name, and how many bytes that text
/// has; `word` is the first of those words.
pub fn lengths(word: u64) -> (usize, usize) {
    let bytes = usize::from((word >> TEXT_SHIFT) as u16);
    let words = (word >> 32) as usize + 1;
    match words.checked_sub(padded(bytes) / 8) {
        Some(before @ 1..) => (before, bytes),
        _ => (words, 0),
    }
}

/// What a record says whose words after the first one are `words`, and PyTorch's type of the device; `None` for kinds
/// that are not known. Words that are missing count as 0.
pub fn decode(words: &[u64]) -> Option<(ActivityRecord, u8)> {
    let word = |at: usize| words.get(at).copied().unwrap_or(0);
    let ns = |at: usize| word(at) as i64;
    let low = |at: usize| word(at) as u32;
    let high = |at: usize| (word(at) >> 32) as u32;
    let name = |id: u32| Some(id).filter(|id| *id != NO_NAME);
    let (start_ns, end_ns) = (ns(1), ns(2));
    let work = |kind: WorkKind| {
        ActivityRecord::Work(DeviceWork {
            kind,
            start_ns,
            end_ns,
            device: low(3),
            context: high(3),
            stream: low(4),
            correlation: high(4),
            graph_node: word(5),
            graph: low(6),
        })
    };
    let record = match word(0) as u8 {
        kind::KERNEL => work(WorkKind::Kernel {
            name: name(high(6)),
            grid: [low(7), high(7), low(8)],
            registers: high(8),
            block: [low(9), high(9), low(10)],
            static_shared_bytes: high(10),
            dynamic_shared_bytes: low(11),
        }),
        kind::MEMCPY => {
            let [direction, source, destination, is_peer] = high(6).to_le_bytes();
            work(WorkKind::Memcpy {
                bytes: word(7),
                direction: Direction::from_number(direction),
                source: MemoryKind::from_number(source),
                destination: MemoryKind::from_number(destination),
                devices: (is_peer != 0).then(|| (low(8), high(8))),
            })
        }
        kind::MEMSET => work(WorkKind::Memset { bytes: word(7), memory: MemoryKind::from_number(high(6) as u8) }),
        kind::GRAPH => work(WorkKind::Graph),
        kind::CALL => ActivityRecord::Call(Call {
            api: Api::from_number(high(3) as u8),
            name: name(low(3)),
            start_ns,
            end_ns,
            thread: low(4),
            correlation: high(4),
            status: low(5),
        }),
        kind::SYNCHRONIZATION => ActivityRecord::Synchronization(Synchronization {
            kind: SynchronizationKind::from_number(low(5) as u8),
            start_ns,
            end_ns,
            context: low(3),
            stream: Some(high(3)).filter(|stream| *stream != ALL_STREAMS),
            correlation: low(4),
            event: high(4),
            event_sync: word(6),
        }),
        kind::EVENT_RECORDED => ActivityRecord::EventRecorded(EventRecorded {
            context: low(1),
            stream: high(1),
            correlation: low(2),
            event: high(2),
            event_sync: word(3),
        }),
        kind::OVERHEAD => ActivityRecord::Overhead(Overhead { name: name(low(3)), start_ns, end_ns, thread: high(3) }),
        kind::RANGE => ActivityRecord::Range(Range {
            name: name(low(3)),
            start_ns,
            end_ns,
            thread: high(3),
            id: low(4),
            is_unfinished: end_ns == 0 || high(4) != 0,
        }),
        kind::DROPPED => ActivityRecord::Dropped(word(1)),
        _ => return None,
    };
    Some((record, (word(0) >> 8) as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(kind: WorkKind) -> ActivityRecord {
        ActivityRecord::Work(DeviceWork {
            kind,
            start_ns: 10,
            end_ns: 25,
            device: 3,
            context: 1,
            stream: 7,
            correlation: 123_456,
            graph: 9,
            graph_node: 1 << 40,
        })
    }

    #[test]
    fn every_report_is_read_as_it_was_written() {
        let kernel = WorkKind::Kernel {
            name: Some(77),
            grid: [u32::MAX, 2, 3],
            block: [1024, 1, 64],
            registers: 255,
            static_shared_bytes: 49_152,
            dynamic_shared_bytes: 232_448,
        };
        let copy = WorkKind::Memcpy {
            bytes: 1 << 35,
            direction: Direction::PeerToPeer,
            source: MemoryKind::Pinned,
            destination: MemoryKind::Device,
            devices: Some((0, 5)),
        };
        let call = Call {
            api: Api::Runtime,
            name: Some(2),
            start_ns: -5,
            end_ns: 9,
            thread: 0xdead_beef,
            correlation: 4,
            status: 700,
        };
        let wait = Synchronization {
            kind: SynchronizationKind::StreamWaitEvent,
            start_ns: 1,
            end_ns: 2,
            context: 3,
            stream: Some(4),
            correlation: 5,
            event: 6,
            event_sync: 7,
        };
        let range = Range { name: None, start_ns: 1, end_ns: 0, thread: 8, id: 9, is_unfinished: true };
        for record in [
            work(kernel),
            work(copy),
            work(WorkKind::Memcpy {
                bytes: 4,
                direction: Direction::HostToDevice,
                source: MemoryKind::Pageable,
                destination: MemoryKind::Device,
                devices: None,
            }),
            work(WorkKind::Memset { bytes: 12, memory: MemoryKind::Device }),
            work(WorkKind::Graph),
            ActivityRecord::Call(call),
            ActivityRecord::Synchronization(wait),
            ActivityRecord::Synchronization(Synchronization { stream: None, ..wait }),
            ActivityRecord::EventRecorded(EventRecorded {
                event: 1,
                event_sync: 2,
                context: 3,
                stream: 4,
                correlation: 5,
            }),
            ActivityRecord::Overhead(Overhead { name: Some(1), start_ns: 2, end_ns: 3, thread: 4 }),
            ActivityRecord::Range(range),
            ActivityRecord::Range(Range { end_ns: 5, ..range }),
            ActivityRecord::Range(Range { end_ns: 5, is_unfinished: false, ..range }),
            ActivityRecord::Dropped(12),
        ] {
            let words = encode(&record, 1);
            assert_eq!(decode(words.as_slice()), Some((record, 1)));
            assert_eq!(words.as_slice()[0] >> 32, words.as_slice().len() as u64 - 1);
        }
    }

    #[test]
    fn a_text_stands_behind_the_words_and_does_no_harm_to_who_does_not_know_it() {
        let record = ActivityRecord::Overhead(Overhead { name: None, start_ns: 2, end_ns: 3, thread: 4 });
        let plain = encode(&record, 1);
        for bytes in [1, 8, 9, 4096] {
            let words = plain.with_text(bytes);
            assert_eq!(lengths(words.as_slice()[0]), (4, bytes));
            assert_eq!(words.as_slice()[0] >> 32, 3 + (bytes as u64).div_ceil(8));
            assert_eq!(decode(words.as_slice()), Some((record, 1)));
        }
        assert_eq!(lengths(plain.as_slice()[0]), (4, 0));
        // A text that is longer than its record is none.
        assert_eq!([lengths(0xffff << 16), lengths(2 << 32 | 24 << 16)], [(1, 0), (3, 0)]);
    }

    #[test]
    fn what_is_not_known_is_passed_over() {
        assert_eq!(decode(&[255 | 3 << 32, 1, 2, 3]), None);
        assert_eq!(decode(&[]), None);
    }

    #[test]
    fn numbers_and_names_lead_back() {
        assert!(Direction::ALL.iter().all(|one| Direction::from_number(*one as u8) == *one));
        assert!(MemoryKind::ALL.iter().all(|one| MemoryKind::from_name(one.as_str()) == *one));
        assert!(SynchronizationKind::ALL.iter().all(|one| SynchronizationKind::from_name(one.as_str()) == *one));
        assert!(Api::ALL.iter().all(|one| Api::from_number(*one as u8) == *one));
        assert_eq!(Direction::from_number(200), Direction::Unknown);
    }
}

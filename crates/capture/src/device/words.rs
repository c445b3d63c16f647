//! How activity records are laid out in words: their kind, their length, and [their fields](super::fields).

use super::{
    ActivityRecord, Call, DeviceWork, Dropped, EventRecorded, Kernel, LONGEST, Memcpy, Memset, Overhead, Range,
    Synchronization, WorkKind,
};
use crate::layout::padded;

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

    /// These words, where the text of the record's name stands behind them: `bytes` bytes, padded to whole
    /// words.
    pub fn with_text(mut self, bytes: usize) -> Self {
        self.words[0] |= (bytes as u64) << TEXT_SHIFT;
        self.words[0] += (padded(bytes) as u64 / 8) << 32;
        self
    }

    /// Puts a number where nothing is yet, from the byte `at` on.
    pub(super) fn put(&mut self, at: usize, number: u64) {
        self.words[at / 8] |= number << (at % 8 * 8);
        self.len = self.len.max(at / 8 + 1);
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
        ActivityRecord::Work(work) => match work.kind {
            WorkKind::Kernel(_) => kind::KERNEL,
            WorkKind::Memcpy(_) => kind::MEMCPY,
            WorkKind::Memset(_) => kind::MEMSET,
            WorkKind::Graph => kind::GRAPH,
        },
        ActivityRecord::Call(_) => kind::CALL,
        ActivityRecord::Synchronization(_) => kind::SYNCHRONIZATION,
        ActivityRecord::EventRecorded(_) => kind::EVENT_RECORDED,
        ActivityRecord::Overhead(_) => kind::OVERHEAD,
        ActivityRecord::Range(_) => kind::RANGE,
        ActivityRecord::Dropped(_) => kind::DROPPED,
    };
    { *record }.for_each_record(|record| record.write(&mut words));
    words.words[0] = u64::from(kind) | u64::from(device_type) << 8 | (words.len as u64 - 1) << 32;
    words
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
/// that are not known. Of words that are missing nothing is known; numbers that are always known count as 0.
pub fn decode(words: &[u64]) -> Option<(ActivityRecord, u8)> {
    let head = words.first().copied().unwrap_or(0);
    let words = &words[..lengths(head).0.min(words.len())];
    let mut record = blank(head as u8)?;
    record.for_each_record(|record| record.read(words));
    match &mut record {
        ActivityRecord::Work(DeviceWork { kind: WorkKind::Kernel(kernel), .. }) => {
            *kernel = kernel.with_unknown_zeros();
        }
        ActivityRecord::Range(range) => range.is_unfinished |= range.end_ns == 0,
        _ => {}
    }
    Some((record, (head >> 8) as u8))
}

/// A record of the kind with this number, of which nothing is known.
fn blank(number: u8) -> Option<ActivityRecord> {
    let work = |kind: WorkKind| ActivityRecord::Work(DeviceWork { kind, ..DeviceWork::default() });
    Some(match number {
        kind::KERNEL => work(WorkKind::Kernel(Kernel::default())),
        kind::MEMCPY => work(WorkKind::Memcpy(Memcpy::default())),
        kind::MEMSET => work(WorkKind::Memset(Memset::default())),
        kind::GRAPH => work(WorkKind::Graph),
        kind::CALL => ActivityRecord::Call(Call::default()),
        kind::SYNCHRONIZATION => ActivityRecord::Synchronization(Synchronization::default()),
        kind::EVENT_RECORDED => ActivityRecord::EventRecorded(EventRecorded::default()),
        kind::OVERHEAD => ActivityRecord::Overhead(Overhead::default()),
        kind::RANGE => ActivityRecord::Range(Range::default()),
        kind::DROPPED => ActivityRecord::Dropped(Dropped::default()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Api, Direction, FieldValue, MemoryKind, SynchronizationKind};
    use super::*;

    fn work(kind: WorkKind) -> ActivityRecord {
        ActivityRecord::Work(DeviceWork {
            kind,
            start_ns: 10,
            end_ns: 25,
            device: 3,
            context: Some(1),
            stream: Some(7),
            correlation: 123_456,
            graph: 9,
            graph_node: 1 << 40,
        })
    }

    #[test]
    fn every_report_is_read_as_it_was_written() {
        let kernel = Kernel {
            name: Some(77),
            grid: Some([u32::MAX, 2, 3]),
            block: Some([1024, 1, 64]),
            registers: Some(255),
            static_shared_bytes: Some(49_152),
            dynamic_shared_bytes: Some(232_448),
        };
        let copy = Memcpy {
            bytes: Some(1 << 35),
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
            context: Some(3),
            stream: Some(4),
            correlation: 5,
            event: 6,
            event_sync: 7,
        };
        let range = Range { name: None, start_ns: 1, end_ns: 0, thread: 8, id: 9, is_unfinished: true };
        for record in [
            work(WorkKind::Kernel(kernel)),
            work(WorkKind::Kernel(Kernel { registers: None, ..kernel })),
            work(WorkKind::Kernel(Kernel { grid: None, registers: Some(0), ..kernel })),
            work(WorkKind::Kernel(Kernel::default())),
            work(WorkKind::Memcpy(copy)),
            work(WorkKind::Memcpy(Memcpy { bytes: None, devices: None, ..copy })),
            work(WorkKind::Memset(Memset { bytes: Some(0), memory: MemoryKind::Device })),
            work(WorkKind::Memset(Memset::default())),
            work(WorkKind::Graph),
            ActivityRecord::Work(DeviceWork::default()),
            ActivityRecord::Call(call),
            ActivityRecord::Synchronization(wait),
            ActivityRecord::Synchronization(Synchronization { stream: None, ..wait }),
            ActivityRecord::Synchronization(Synchronization { context: None, ..wait }),
            ActivityRecord::EventRecorded(EventRecorded {
                event: 1,
                event_sync: 2,
                context: Some(3),
                stream: 4,
                correlation: 5,
            }),
            ActivityRecord::Overhead(Overhead { name: Some(1), start_ns: 2, end_ns: 3, thread: 4 }),
            ActivityRecord::Range(range),
            ActivityRecord::Range(Range { end_ns: 5, ..range }),
            ActivityRecord::Range(Range { end_ns: 5, is_unfinished: false, ..range }),
            ActivityRecord::Dropped(Dropped { count: 12 }),
        ] {
            let words = encode(&record, 1);
            assert_eq!(decode(words.as_slice()), Some((record, 1)));
            assert_eq!(words.as_slice()[0] >> 32, words.as_slice().len() as u64 - 1);
        }
    }

    #[test]
    fn members_make_the_record_again() {
        let sizes = (Some([1, 2, 3]), Some([u32::MAX; 3]));
        let kernel = Kernel { grid: sizes.0, block: sizes.1, registers: Some(0), ..Kernel::default() };
        let copy = Memcpy { direction: Direction::HostToHost, devices: Some((0, 0)), ..Memcpy::default() };
        let fill = Memset { bytes: None, memory: MemoryKind::ManagedStatic };
        for kind in [WorkKind::Kernel(kernel), WorkKind::Memcpy(copy), WorkKind::Memset(fill), WorkKind::Graph] {
            let work = DeviceWork { kind, context: Some(0), graph: 3, graph_node: u64::MAX, ..DeviceWork::default() };
            let record = ActivityRecord::Work(work);
            let mut again = blank(encode(&record, 1).as_slice()[0] as u8).expect("a kind");
            record.for_each_member(|name, value| again.set_field(name, value));
            assert_eq!(again, record);
        }
        let mut call = ActivityRecord::Call(Call::default());
        call.for_each_member(|name, _| panic!("{name} says nothing"));
        call.set_field("registers", FieldValue::Number(3));
        call.set_field("status", FieldValue::Sizes([3; 3]));
        assert_eq!(call, ActivityRecord::Call(Call::default()), "neither a field of calls nor a value of one");
        call.set_field("status", FieldValue::Number(7));
        assert_eq!(call.field("status"), Some(FieldValue::Number(7)));
    }

    /// Fields that are newer than a file.
    #[test]
    fn of_words_that_are_missing_nothing_is_known() {
        let kernel = Kernel { grid: Some([1; 3]), block: Some([2; 3]), registers: Some(3), ..Kernel::default() };
        let whole = encode(&work(WorkKind::Kernel(kernel)), 1);
        let Some((ActivityRecord::Work(found), _)) = decode(&whole.as_slice()[..9]) else { panic!("it is work") };
        assert_eq!(found.kind, WorkKind::Kernel(Kernel { block: None, ..kernel }));
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

    /// Until unknown values had a mark of their own, the recorders of AMD's and Intel's devices wrote 0 for each.
    #[test]
    fn a_kernel_of_an_old_file_without_a_grid_has_no_zeros() {
        let old = |kernel: Kernel| {
            let sizes = |sizes: Option<[u32; 3]>| Some(sizes.unwrap_or_default());
            let old = Kernel { grid: sizes(kernel.grid), block: sizes(kernel.block), ..kernel };
            let Some((ActivityRecord::Work(found), _)) = decode(encode(&work(WorkKind::Kernel(old)), 1).as_slice())
            else {
                panic!("it is work")
            };
            assert_eq!(found.kind, WorkKind::Kernel(kernel));
        };
        let zeros = Kernel {
            registers: Some(0),
            static_shared_bytes: Some(0),
            dynamic_shared_bytes: Some(0),
            ..Kernel::default()
        };
        let words = encode(&work(WorkKind::Kernel(Kernel { grid: Some([0; 3]), block: Some([0; 3]), ..zeros })), 1);
        assert_eq!(decode(words.as_slice()), Some((work(WorkKind::Kernel(Kernel::default())), 1)));
        old(Kernel { registers: Some(32), ..Kernel::default() });
        old(Kernel { grid: Some([1; 3]), block: Some([2; 3]), ..zeros });
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

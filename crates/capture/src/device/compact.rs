//! Activity records without what no sum needs: when each was, and once for many what they are about.

use super::words::kind;
use super::{DeviceActivity, decode, lengths};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// When something was reported to be. 24 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompactActivity {
    /// Start, ns.
    pub start_ns: i64,
    /// End, ns.
    pub end_ns: i64,
    /// What joins a call with what it enqueued; 0 without one.
    pub correlation: u32,
    /// Index into [`CompactActivities::about`].
    pub about: u32,
}

/// All activity records that have times: work, calls, waits, overheads, ranges.
#[derive(Default, Debug)]
pub struct CompactActivities {
    /// What activity records are about. Of each hold the type of device, the kind, and as far as the kind has them
    /// name, API, device, context, stream, thread, and memory on both sides of a copy; nothing else.
    pub about: Vec<DeviceActivity>,
    /// In the order in which they were written.
    pub rows: Vec<CompactActivity>,
    known: HashMap<Key, u32, BuildHasherDefault<Mixed>>,
}

/// The words of a record that tell apart what it is about.
type Key = (u64, u64, u64);

impl CompactActivities {
    /// Adds the activity record whose words after its first one `word` gives; `None` when its name stands in the
    /// record, which is not looked at here.
    #[inline]
    pub(crate) fn learn(&mut self, word: impl Fn(usize) -> u64) -> Option<()> {
        let low = |at: usize| word(at) & u64::from(u32::MAX);
        let high = |at: usize| word(at) >> 32;
        let head = word(0) & 0xffff;
        if head as u8 != kind::RANGE && lengths(word(0)).1 > 0 {
            return None;
        }
        let (key, correlation) = match head as u8 {
            kind::KERNEL | kind::MEMCPY | kind::MEMSET | kind::GRAPH => {
                ((head, word(3), low(4) | high(6) << 32), high(4))
            }
            kind::CALL => ((head, word(3), low(4)), high(4)),
            kind::SYNCHRONIZATION => ((head, word(3), low(5)), low(4)),
            kind::OVERHEAD | kind::RANGE => ((head, word(3), 0), 0),
            _ => return Some(()),
        };
        let known = self.known.get(&key).copied();
        let Some(about) = known.or_else(|| self.add(key, word(0), &word)) else { return Some(()) };
        let (start_ns, end_ns) = (word(1) as i64, word(2) as i64);
        self.rows.push(CompactActivity { start_ns, end_ns, correlation: correlation as u32, about });
        Some(())
    }

    #[cold]
    fn add(&mut self, key: Key, first: u64, word: &impl Fn(usize) -> u64) -> Option<u32> {
        let mut words = [0; super::LONGEST - 1];
        words[0] = first;
        words[3..7].iter_mut().zip(3..).for_each(|(to, at)| *to = word(at));
        let (record, device_type) = decode(&words)?;
        let about = u32::try_from(self.about.len()).ok()?;
        self.about.push(DeviceActivity { device_type, record });
        self.known.insert(key, about);
        Some(about)
    }
}

/// Keys are few and of our own making: a product for each word is enough.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0xf135_7aea_2e62_a9c5);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        ActivityRecord, Api, Call, DeviceWork, Direction, EventRecorded, MemoryKind, Overhead, Range, Synchronization,
        SynchronizationKind, WorkKind, encode,
    };
    use super::*;

    fn learned(records: &[ActivityRecord]) -> CompactActivities {
        let mut activities = CompactActivities::default();
        for record in records {
            let words = encode(record, 1);
            activities.learn(|at| words.as_slice().get(at).copied().unwrap_or(0)).expect("its name has an id");
        }
        activities
    }

    fn kernel(name: u32, stream: u32, correlation: u32) -> ActivityRecord {
        let kind = WorkKind::Kernel {
            name: Some(name),
            grid: [correlation; 3],
            block: [1; 3],
            registers: 1,
            static_shared_bytes: 2,
            dynamic_shared_bytes: 3,
        };
        let (device, context, graph, graph_node) = (2, 1, 5, 6);
        ActivityRecord::Work(DeviceWork {
            kind,
            start_ns: 10,
            end_ns: 25,
            device,
            context,
            stream,
            correlation,
            graph,
            graph_node,
        })
    }

    #[test]
    fn what_differs_only_in_times_and_numbers_is_about_the_same() {
        let call = |name, thread, correlation| {
            let (api, name, start_ns, end_ns) = (Api::Runtime, Some(name), -3, 4);
            ActivityRecord::Call(Call { api, name, start_ns, end_ns, thread, correlation, status: correlation })
        };
        let (direction, memory) = (Direction::PeerToPeer, MemoryKind::Pinned);
        let copy = |bytes, devices| {
            let kind = WorkKind::Memcpy { bytes, direction, source: memory, destination: memory, devices };
            ActivityRecord::Work(DeviceWork { kind, correlation: 9, ..DeviceWork::default() })
        };
        let wait = |kind, stream, event| {
            ActivityRecord::Synchronization(Synchronization {
                kind,
                stream,
                event,
                context: 1,
                correlation: 8,
                ..Synchronization::default()
            })
        };
        let range = ActivityRecord::Range(Range { name: Some(3), start_ns: 1, thread: 7, ..Range::default() });
        let activities = learned(&[
            kernel(1, 7, 1),
            kernel(1, 7, 2),
            kernel(2, 7, 3),
            kernel(1, 8, 4),
            call(1, 5, 1),
            call(1, 5, 2),
            call(1, 6, 3),
            copy(1, Some((0, 1))),
            copy(2, Some((2, 3))),
            wait(SynchronizationKind::Stream, Some(7), 1),
            wait(SynchronizationKind::Stream, Some(7), 2),
            wait(SynchronizationKind::Stream, None, 2),
            wait(SynchronizationKind::Event, None, 2),
            ActivityRecord::Overhead(Overhead { name: Some(3), start_ns: 1, end_ns: 2, thread: 7 }),
            range,
            ActivityRecord::EventRecorded(EventRecorded::default()),
            ActivityRecord::Dropped(3),
        ]);
        let about: Vec<u32> = activities.rows.iter().map(|row| row.about).collect();
        assert_eq!(about, [0, 0, 1, 2, 3, 3, 4, 5, 5, 6, 6, 7, 8, 9, 10]);
        let numbers: Vec<u32> = activities.rows.iter().map(|row| row.correlation).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 1, 2, 3, 9, 9, 8, 8, 8, 8, 0, 0]);
        assert_eq!((activities.rows[0].start_ns, activities.rows[4].start_ns, activities.rows[14].end_ns), (10, -3, 0));
    }

    #[test]
    fn names_that_stand_in_records_are_left_to_the_whole_capture() {
        let words = encode(&kernel(1, 7, 1), 1).with_text(5);
        let mut activities = CompactActivities::default();
        assert_eq!(activities.learn(|at| words.as_slice().get(at).copied().unwrap_or(0)), None);
    }

    #[test]
    fn what_it_is_about_is_read_as_it_was_written() {
        let activities = learned(&[kernel(77, 7, 1)]);
        let ActivityRecord::Work(DeviceWork { kind, device, context, stream, .. }) = activities.about[0].record else {
            panic!("it is work")
        };
        assert!(matches!(kind, WorkKind::Kernel { name: Some(77), .. }));
        assert_eq!((device, context, stream, activities.about[0].device_type), (2, 1, 7, 1));
    }
}

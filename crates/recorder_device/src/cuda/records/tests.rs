use super::*;

/// A record of a kind and a length, of which every byte that is not set has a value that nobody asks for.
struct Record(Vec<u8>);

impl Record {
    fn new(kind: u32, len: usize) -> Self {
        Self(vec![0xEE; len]).with(0, kind.to_ne_bytes())
    }

    fn with<const N: usize>(mut self, offset: usize, bytes: [u8; N]) -> Self {
        self.0[offset..offset + N].copy_from_slice(&bytes);
        self
    }

    fn u32s(self, offset: usize, numbers: &[u32]) -> Self {
        let numbers = numbers.iter().enumerate();
        numbers.fold(self, |record, (at, number)| record.with(offset + 4 * at, number.to_ne_bytes()))
    }

    fn u64s(self, offset: usize, numbers: &[u64]) -> Self {
        let numbers = numbers.iter().enumerate();
        numbers.fold(self, |record, (at, number)| record.with(offset + 8 * at, number.to_ne_bytes()))
    }
}

fn kernel_record(len: usize, start: u64, end: u64) -> Record {
    Record::new(10, len)
        .with(6, 40u16.to_ne_bytes())
        .u64s(16, &[start, end])
        .u32s(40, &[1, 2, 7])
        .u32s(52, &[3, 4, 5, 128, 2, 1])
        .u32s(76, &[1024, 2048])
        .u32s(92, &[99])
        .u64s(104, &[0xABCD])
        .u64s(144, &[0x1_0000_0002])
        .u32s(156, &[6])
}

/// Lengths of kernels' records from CUDA 11.8 to 13.5.
const KERNELS: [usize; 6] = [200, 208, 216, 224, 232, 248];

#[test]
fn kernels_of_every_cuda_say_the_same() {
    let work = DeviceWork {
        kind: WorkKind::Kernel(Kernel {
            name: None,
            grid: Some([3, 4, 5]),
            block: Some([128, 2, 1]),
            registers: Some(40),
            static_shared_bytes: Some(1024),
            dynamic_shared_bytes: Some(2048),
        }),
        start_ns: 1000,
        end_ns: 1500,
        device: 1,
        context: Some(2),
        stream: Some(7),
        correlation: 99,
        graph: 6,
        graph_node: 0x1_0000_0002,
    };
    for len in KERNELS {
        let expected = Decoded::Named(ActivityRecord::Work(work), 0xABCD);
        assert_eq!(decode(&kernel_record(len, 1000, 1500).0), Some(expected), "{len} bytes");
    }
}

#[test]
fn work_without_times_is_told_from_work() {
    for (start, end) in [(0, 0), (1000, 0), (1000, 999)] {
        assert_eq!(decode(&kernel_record(208, start, end).0), Some(Decoded::Untimed), "{start} to {end}");
    }
}

#[test]
fn copies_tell_where_from_and_where_to() {
    let copy =
        |kind, len, at| Record::new(kind, len).with(4, [at, 1, 3]).u64s(8, &[4096, 10, 20]).u32s(32, &[0, 1, 13]);
    let work = |direction, devices| DeviceWork {
        kind: WorkKind::Memcpy(Memcpy {
            bytes: Some(4096),
            direction,
            source: MemoryKind::Pageable,
            destination: MemoryKind::Device,
            devices,
        }),
        start_ns: 10,
        end_ns: 20,
        device: 0,
        context: Some(1),
        stream: Some(13),
        correlation: 5,
        graph: 3,
        graph_node: 8,
    };
    for len in [88, 96, 112] {
        let record = copy(1, len, 1).u32s(44, &[5]).u64s(64, &[8]).u32s(72, &[3]);
        let expected = work(Direction::HostToDevice, None);
        assert_eq!(decode(&record.0), Some(Decoded::Plain(ActivityRecord::Work(expected))), "{len} bytes");
    }
    let record = copy(22, 96, 10).u32s(44, &[2, 77, 3]).u32s(60, &[5]).u64s(72, &[8]).u32s(80, &[3]);
    let expected = work(Direction::PeerToPeer, Some((2, 3)));
    assert_eq!(decode(&record.0), Some(Decoded::Plain(ActivityRecord::Work(expected))));
}

#[test]
fn fills_and_whole_graphs_are_work() {
    let fill = Record::new(2, 88).u64s(8, &[64, 10, 20]).u32s(32, &[0, 1, 7, 5]).with(50, 3u16.to_ne_bytes());
    let fill = fill.u64s(64, &[0]).u32s(72, &[0]);
    let common = DeviceWork {
        start_ns: 10,
        end_ns: 20,
        context: Some(1),
        stream: Some(7),
        correlation: 5,
        ..DeviceWork::default()
    };
    let expected =
        DeviceWork { kind: WorkKind::Memset(Memset { bytes: Some(64), memory: MemoryKind::Device }), ..common };
    assert_eq!(decode(&fill.0), Some(Decoded::Plain(ActivityRecord::Work(expected))));

    let graph = Record::new(51, 48).u32s(4, &[5]).u64s(8, &[10, 20]).u32s(24, &[0, 9, 1, 7]);
    let expected = DeviceWork { kind: WorkKind::Graph, graph: 9, ..common };
    assert_eq!(decode(&graph.0), Some(Decoded::Plain(ActivityRecord::Work(expected))));
}

#[test]
fn calls_have_a_thread_and_a_number() {
    for (kind, api) in [(4, Api::Driver), (5, Api::Runtime)] {
        let record = Record::new(kind, 40).u32s(4, &[211]).u64s(8, &[10, 20]).u32s(28, &[0xFEED, 5, 2]);
        let call = Call { api, name: None, start_ns: 10, end_ns: 20, thread: 0xFEED, correlation: 5, status: 2 };
        assert_eq!(decode(&record.0), Some(Decoded::Call(call, 211)));
    }
}

#[test]
fn what_does_not_apply_is_absent() {
    let wait = Synchronization {
        kind: SynchronizationKind::Context,
        start_ns: 10,
        end_ns: 20,
        context: Some(1),
        stream: None,
        correlation: 5,
        event: 0,
        event_sync: 0,
    };
    let record = |len| Record::new(38, len).u32s(4, &[4]).u64s(8, &[10, 20]).u32s(24, &[5, 1, u32::MAX, u32::MAX]);
    let plain = |wait| Some(Decoded::Plain(ActivityRecord::Synchronization(wait)));
    // Until CUDA 12.6 a wait does not say for which of the event's recordings.
    assert_eq!(decode(&record(40).0), plain(wait));
    for none in [u64::MAX, u32::MAX.into()] {
        assert_eq!(decode(&record(56).u64s(40, &[none]).0), plain(wait));
    }
    let of_event = record(56).u32s(4, &[2]).u32s(32, &[7, 3]).u64s(40, &[12]);
    let expected = Synchronization {
        kind: SynchronizationKind::StreamWaitEvent,
        stream: Some(7),
        event: 3,
        event_sync: 12,
        ..wait
    };
    assert_eq!(decode(&of_event.0), plain(expected));
}

#[test]
fn events_know_their_recording_from_cuda_12_8_on() {
    let event = EventRecorded { event: 3, event_sync: 0, context: Some(1), stream: 7, correlation: 5 };
    let record = |len| Record::new(36, len).u32s(4, &[5, 1, 7, 3]);
    assert_eq!(decode(&record(24).0), Some(Decoded::Plain(ActivityRecord::EventRecorded(event))));
    for len in [56, 80] {
        let expected = EventRecorded { event_sync: 12, ..event };
        let decoded = decode(&record(len).u64s(48, &[12]).0);
        assert_eq!(decoded, Some(Decoded::Plain(ActivityRecord::EventRecorded(expected))), "{len} bytes");
    }
}

#[test]
fn overhead_lies_on_a_thread_only_when_it_is_one_s() {
    let record = |object: u32| Record::new(17, 56).u32s(4, &[5 << 16, object, 1, 0xFEED]).u64s(24, &[10, 20]);
    for (object, thread) in [(2, 0xFEED), (3, 0)] {
        let expected = Overhead { name: None, start_ns: 10, end_ns: 20, thread };
        assert_eq!(decode(&record(object).0), Some(Decoded::Overhead(expected, 5 << 16)));
    }
}

#[test]
fn markers_are_ends_of_ranges() {
    let record = Record::new(12, 56).u32s(4, &[2]).u64s(8, &[10]).u32s(16, &[4, 2, 1, 0xFEED]).u64s(40, &[0xABCD]);
    let marker = Marker { flags: 2, at_ns: 10, id: 4, thread: 0xFEED, name: 0xABCD };
    assert_eq!(decode(&record.0), Some(Decoded::Marker(marker)));
}

#[test]
fn what_is_too_short_or_not_known_is_no_record() {
    let shortest = [(10, 160), (1, 76), (22, 84), (2, 76), (51, 40), (4, 40), (5, 40), (17, 40), (38, 40), (36, 20)];
    for (kind, needed) in shortest {
        assert_ne!(decode(&Record::new(kind, needed).0), None, "kind {kind} with {needed} bytes");
        for len in 4..needed {
            assert_eq!(decode(&Record::new(kind, len).0), None, "kind {kind} with {len} bytes");
        }
    }
    for bytes in [&[][..], &[10], &[10, 0, 0], &Record::new(99, 400).0] {
        assert_eq!(decode(bytes), None);
    }
}

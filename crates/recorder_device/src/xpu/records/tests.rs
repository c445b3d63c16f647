use super::*;

/// A library of 0.12.
const SIZES: [usize; KINDS] = {
    let mut sizes = [0; KINDS];
    sizes[view::KERNEL as usize] = 168;
    sizes[view::RUNTIME_API as usize] = 48;
    sizes[view::SYNCHRONIZATION as usize] = 72;
    sizes[7] = 24;
    sizes
};

struct Known;

impl Texts for Known {
    fn call(&self, group: u32, id: u32) -> Option<String> {
        ((group, id) == (3, 17)).then(|| "urEnqueueKernelLaunch".into())
    }

    fn overhead(&self, kind: u32) -> String {
        format!("overhead {kind}")
    }

    fn at(&self, address: u64) -> Option<&'static CStr> {
        (address != 0).then_some(c"_Z6vecAddPKfS0_Pfi")
    }

    fn has_call_ids(&self) -> bool {
        true
    }
}

/// A record of `size` bytes with numbers at offsets.
fn record(kind: u32, size: usize, numbers: &[(usize, u64)]) -> Vec<u8> {
    let mut bytes = vec![0; size];
    bytes[..4].copy_from_slice(&kind.to_ne_bytes());
    for (at, number) in numbers {
        let width = if at % 8 == 0 && size - at >= 8 { 8 } else { 4 };
        bytes[*at..at + width].copy_from_slice(&number.to_ne_bytes()[..width]);
    }
    bytes
}

fn decoded(decoder: &mut Decoder<Known>, bytes: &[u8]) -> Vec<(ActivityRecord, Option<String>)> {
    let mut found = Vec::new();
    for part in Sizes(SIZES).split(bytes) {
        let (kind, fields) = part.expect("whole records");
        decoder.decode(kind, fields, &mut |record, name| found.push((record, name.map(str::to_string))));
    }
    found
}

#[test]
fn kinds_of_an_unknown_length_are_not_read() {
    let sizes = Sizes::of(|kind| match kind {
        view::KERNEL => Some(176),
        view::COPY => Some(152),
        _ => None,
    });
    assert_eq!(
        [view::KERNEL, view::COPY, view::FILL, 7, 31].map(|kind| sizes.is_known(kind)),
        [false, true, false, false, false]
    );
}

#[test]
fn a_buffer_is_read_up_to_what_cannot_be_told_apart() {
    let sizes = Sizes(SIZES);
    let whole = [record(7, 24, &[]), record(view::RUNTIME_API, 48, &[]), record(view::KERNEL, 168, &[])].concat();
    let kinds = |bytes: &[u8]| sizes.split(bytes).map(|part| part.ok().map(|(kind, _)| kind)).collect::<Vec<_>>();
    assert_eq!(kinds(&whole), [Some(7), Some(6), Some(1)]);
    assert_eq!(kinds(&whole[..100]), [Some(7), Some(6), None], "cut");
    assert_eq!(kinds(&record(view::COPY, 136, &[])), [None], "without a length");
    assert_eq!(kinds(&[0xff; 64]), [None]);
    assert_eq!(kinds(&[1, 0]), [None]);
    assert_eq!(kinds(&[]), []);
}

#[test]
fn calls_kernels_and_waits_say_what_belongs_together() {
    let bytes = [
        record(view::RUNTIME_API, 48, &[(8, 1000), (16, 1500), (24, 17 << 32 | 3), (36, 77), (40, 5)]),
        record(
            view::KERNEL,
            168,
            &[
                (8, 0xbeef),
                (16, 0xc0de),
                (24, 0x1234),
                (56, 77 << 32 | 5),
                (80, 9),
                (104, 2000),
                (112, 2600),
                (152, 41),
            ],
        ),
        record(view::SYNCHRONIZATION, 72, &[(4, 6), (8, 0xc0de), (16, 0xbeef), (32, 2100), (40, 2700), (52, 6)]),
    ];
    let mut decoder = Decoder::new(Known, &[[1; 16]]);
    let found = decoded(&mut decoder, &bytes.concat());
    let [(ActivityRecord::Call(call), Some(name)), (ActivityRecord::Work(work), Some(kernel)), (wait, None)] =
        &found[..]
    else {
        panic!("{found:?}")
    };
    assert_eq!(
        (name.as_str(), call.api, call.start_ns, call.end_ns),
        ("urEnqueueKernelLaunch", Api::Runtime, 1000, 1500)
    );
    assert_eq!((call.thread, call.correlation, call.status), (77, 5, 0));
    // Nobody listed this device, so it comes behind the one that was.
    assert_eq!((work.start_ns, work.end_ns, work.correlation, work.device, work.stream), (2000, 2600, 5, 1, Some(0)));
    assert!(kernel.contains("vecAdd"), "{kernel}");
    let expected = Synchronization {
        kind: SynchronizationKind::Stream,
        start_ns: 2100,
        end_ns: 2700,
        context: Some(0),
        stream: Some(0),
        correlation: 6,
        ..Synchronization::default()
    };
    assert_eq!(*wait, ActivityRecord::Synchronization(expected));
}

#[test]
fn work_without_times_is_not_shown() {
    let mut decoder = Decoder::new(Known, &[]);
    for (start, end) in [(0, 0), (5, 4), (0, 9), (u64::MAX, u64::MAX)] {
        let bytes = record(view::KERNEL, 168, &[(104, start), (112, end)]);
        assert!(!decoder.decode(view::KERNEL, Fields(&bytes), &mut |_, _| panic!("shown")), "{start} {end}");
    }
}

#[test]
fn copies_go_where_their_memory_lies() {
    let of = |source, destination| direction(memory(source), memory(destination));
    assert_eq!(
        [of(0, 2), of(1, 2), of(2, 0), of(2, 1), of(2, 2), of(1, 0)],
        [
            Direction::HostToDevice,
            Direction::HostToDevice,
            Direction::DeviceToHost,
            Direction::DeviceToHost,
            Direction::DeviceToDevice,
            Direction::HostToHost,
        ]
    );
    // What the driver moves may lie anywhere.
    assert_eq!([of(3, 2), of(0, 3), of(9, 2)], [Direction::Unknown; 3]);
}

use super::*;

struct Known;

impl Texts for Known {
    fn operation(&self, domain: u32, op: u32, kind: u32) -> Option<String> {
        match (domain, op, kind) {
            (domain::CALLS, 4, 0) => Some("hipLaunchKernel".into()),
            (domain::OPERATIONS, 1, 9) => Some("CopyDeviceToHost2D".into()),
            _ => None,
        }
    }
}

fn record(words: [(usize, u64); 9]) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    for (at, number) in words {
        let width = if at % 8 == 0 && at > 8 { 8 } else { 4 };
        bytes[at..at + width].copy_from_slice(&number.to_ne_bytes()[..width]);
    }
    bytes
}

fn operation(op: u64, kind: u64, (begin, end): (u64, u64), bytes: u64) -> [u8; RECORD_BYTES] {
    record([(0, 2), (4, kind), (8, op), (16, 7), (24, begin), (32, end), (40, 1), (48, 1 << 40), (56, bytes)])
}

fn call(thread: u64) -> [u8; RECORD_BYTES] {
    record([(0, 3), (4, 0), (8, 4), (16, 7), (24, 10), (32, 20), (40, 1), (44, thread), (56, 0)])
}

fn decoded(decoder: &mut Decoder<Known>, record: &[u8], name: &CStr) -> (bool, Vec<(ActivityRecord, Option<String>)>) {
    let mut found = Vec::new();
    let is_read =
        decoder.decode(Fields(record), name, &mut |record, name| found.push((record, name.map(str::to_string))));
    (is_read, found)
}

#[test]
fn names_travel_with_their_records_and_are_cut() {
    let mut buffer = vec![0xff; 6000];
    let mut writer = Writer::new(&mut buffer);
    let [first, second] = [operation(0, 0, (1, 2), 0), call(5)];
    assert!(writer.add(&first, b"kernel") && writer.add(&second, b"") && writer.add(&first, &[b'k'; 9000]));
    assert!(!writer.add(&first, &[b'k'; 4000]), "no room");
    let len = writer.len();
    let read: Vec<_> = written(&buffer[..len]).map(|(fields, name)| (fields.0.to_vec(), name.count_bytes())).collect();
    assert_eq!(read, [(first.to_vec(), 6), (second.to_vec(), 0), (first.to_vec(), NAME_BYTES)]);
    // Damaged, it ends early.
    assert_eq!(written(&buffer[..70]).count(), 0);
    assert_eq!(written(&[0xff; 200]).count(), 0);
}

#[test]
fn only_kernels_have_names() {
    assert_eq!(name_address(&operation(0, 0, (1, 2), 0x1000)), Some(0x1000));
    assert_eq!(name_address(&operation(0, 0, (1, 2), 0)), None);
    assert_eq!(name_address(&operation(1, 0, (1, 2), 0x1000)), None);
    assert_eq!(name_address(&call(5)), None);
}

#[test]
fn calls_and_what_they_enqueued_share_a_number() {
    let mut decoder = Decoder::new(Known, 99);
    let (is_read, calls) = decoded(&mut decoder, &call(5), c"");
    let [(ActivityRecord::Call(of), Some(name))] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(
        (is_read, name.as_str(), of.thread, of.correlation, of.start_ns, of.end_ns),
        (true, "hipLaunchKernel", 5, 7, 10, 20)
    );
    assert_eq!(decoded(&mut decoder, &call(99), c""), (true, vec![]), "ours");
    assert!(!decoder.has_work);

    let (_, kernels) = decoded(&mut decoder, &operation(0, 0, (30, 45), 0), c"Cijk_Ailk");
    let [(ActivityRecord::Work(work), Some(name))] = &kernels[..] else { panic!("{kernels:?}") };
    assert_eq!((name.as_str(), work.device, work.correlation, work.start_ns, work.end_ns), ("Cijk_Ailk", 1, 7, 30, 45));
    assert_eq!(work.context, None);
    assert_eq!(work.stream, Some(0), "an id that is too long for a stream has a number");
    assert!(decoder.has_work);

    let (_, copies) = decoded(&mut decoder, &operation(1, 9, (50, 60), 4096), c"");
    let [(ActivityRecord::Work(work), None)] = &copies[..] else { panic!("{copies:?}") };
    let WorkKind::Memcpy(Memcpy { bytes, direction, source, .. }) = work.kind else { panic!("{work:?}") };
    assert_eq!((bytes, direction, source), (Some(4096), Direction::DeviceToHost, MemoryKind::Device));
}

#[test]
fn barriers_are_no_work_and_what_has_no_times_is_not_shown() {
    let mut decoder = Decoder::new(Known, 0);
    assert_eq!(decoded(&mut decoder, &operation(2, 0, (1, 2), 0), c""), (true, vec![]));
    assert_eq!(decoded(&mut decoder, &operation(0, 0, (0, 0), 0), c"k"), (false, vec![]));
    assert_eq!(decoded(&mut decoder, &operation(7, 0, (1, 2), 0), c""), (false, vec![]));
}

#[test]
fn the_words_for_a_copy_say_where_it_goes() {
    let direction = |text| match transfer(text, 8) {
        WorkKind::Memcpy(copy) => Some(copy.direction),
        _ => None,
    };
    assert_eq!(direction("CopyHostToDevice"), Some(Direction::HostToDevice));
    assert_eq!(direction("CopyDeviceToDevice"), Some(Direction::DeviceToDevice));
    assert_eq!(direction("CopyImage"), Some(Direction::Unknown));
    assert_eq!(transfer("FillBuffer", 8), WorkKind::Memset(Memset { bytes: Some(8), memory: MemoryKind::Device }));
}

//! Inputs to begin with: small and whole, of every form, with every kind of row.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use stepscope_capture::device::{
    ActivityRecord, Api, Call, DeviceWork, Direction, Dropped, EventRecorded, Kernel, Memcpy, MemoryKind, Memset,
    Overhead, Range, Synchronization, SynchronizationKind, WorkKind, encode,
};
use stepscope_capture::layout::{
    BeginWord, HEADER_BYTES, MAGIC, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC, Tag, VERSION, first_word,
};
use stepscope_trace::drawn::drawn;

/// One event of each kind that Kineto writes.
const KINETO: &[u8] = include_bytes!("seeds/kineto.json");
/// Bytes of a text that are enough for every dialect of DFTracer to show itself.
const DFTRACER_BYTES: usize = 3_000;

/// Inputs for the target called `name`: those that are made here, and those kept in `fuzz/seeds/NAME`.
///
/// # Panics
/// When a file of the checkout cannot be read.
pub fn seeds(name: &str) -> Vec<Vec<u8>> {
    let mut seeds = match name {
        "kineto" | "round_trip" => chrome_texts(),
        "dftracer" => dftracer_texts(),
        "packed" => packed_texts(),
        "capture" => vec![small_capture()],
        "memory_snapshot" => memory_snapshots(),
        "flight_recorder" => ["missing", "other"].iter().flat_map(|set| flight_recorder_dumps(set)).collect(),
        "part" => vec![small_part().to_vec()],
        "manifest" => vec![read(&checkout().join("tests/fixtures/gpt-cpu/run.json"))],
        _ => Vec::new(),
    };
    seeds.extend(files(&checkout().join("fuzz/seeds").join(name)).iter().map(|path| read(path)));
    seeds
}

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{error}: {}", path.display()))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort_unstable();
    files
}

fn chrome_texts() -> Vec<Vec<u8>> {
    const DRAWINGS: [&str; 2] = [
        "rank 0 step 00001111\nrank 0 cpu 1 aaaabbbb\nrank 0 launch 1 .C.H....\nrank 0 stream 7 ..CCHHNN",
        "rank 0 cpu 1 ab.ab.ab.\nrank 0 launch 1 CD.CD.CD.\nrank 0 stream 7 .CD.CD.CD\nrank 0 memory 1 a..A.....",
    ];
    let exported = |drawing: &&str| {
        let mut bytes = Vec::new();
        stepscope_export::write_chrome(&drawn(drawing), &mut bytes).expect("memory takes everything");
        bytes
    };
    let list = b"[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":2},\n{\"ph\":\"B\",\"name\":\"b\",\"ts\":3}]".to_vec();
    DRAWINGS.iter().map(exported).chain([KINETO.to_vec(), list]).collect()
}

/// The first lines that each release wrote.
fn dftracer_texts() -> Vec<Vec<u8>> {
    let folder = checkout().join("tests/fixtures/dftracer");
    let texts = [files(&folder), files(&folder.join("wheel-2.2.0"))].concat();
    let is_text = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "pfw");
    let first_lines = |path: &PathBuf| {
        let bytes = read(path);
        let end = bytes.iter().skip(DFTRACER_BYTES).position(|byte| *byte == b'\n');
        bytes[..end.map_or(bytes.len(), |end| DFTRACER_BYTES + end + 1)].to_vec()
    };
    texts.iter().filter(is_text).map(first_lines).collect()
}

/// A snapshot with everything in it, and small ones: with a label, cut, of an object.
fn memory_snapshots() -> Vec<Vec<u8>> {
    let drawn = read(&checkout().join("tests/fixtures/memory-snapshot/drawn.pickle"));
    let label = b"\x80\x04}(\x8c\x08segments]\x8c\x14external_annotations](}(\x8c\x05stage\x8c\x05START\x8c\x04name\x8c\x01a\
                  \x8c\x07time_usK\x05ue\x8c\x0ddevice_traces]](}(\x8c\x06action\x8c\x05alloc\x8c\x04addrK\x01\x8c\x04sizeK\x02\
                  \x8c\x07time_usK\x07\x8c\x06frames]}(\x8c\x04name\x8c\x01fuaueau.";
    let object = b"\x80\x04}(\x8c\x08segments]\x8c\x01xcos\nsystem\n\x8c\x04ruin\x85Ru.";
    vec![drawn[..6_000].to_vec(), drawn, label.to_vec(), object.to_vec()]
}

/// Dumps of two ranks of a job that hung.
fn flight_recorder_dumps(set: &str) -> Vec<Vec<u8>> {
    let files = files(&checkout().join("tests/fixtures/flight-recorder").join(set));
    files.iter().skip(1).take(2).map(|path| read(path)).collect()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(text).and_then(|()| packed.finish()).expect("memory takes everything")
}

fn zip(text: &[u8]) -> Vec<u8> {
    let mut packed = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in [("notes.txt", b"short".as_slice()), ("trace.json", text)] {
        packed.start_file(name, zip::write::SimpleFileOptions::default()).expect("a file begins");
        packed.write_all(bytes).expect("memory takes everything");
    }
    packed.finish().expect("an archive").into_inner()
}

fn packed_texts() -> Vec<Vec<u8>> {
    let zstd = |text: &[u8]| zstd::encode_all(text, 3).expect("memory takes everything");
    let members = [gzip(&KINETO[..1_000]), gzip(&KINETO[1_000..])].concat();
    vec![gzip(KINETO), zstd(KINETO), zip(KINETO), members, zip(&gzip(KINETO)), gzip(&zstd(KINETO))]
}

/// A closed capture of one thread: two names, nested ops, a label, a step, an optimizer's mark.
fn small_capture() -> Vec<u8> {
    const SEGMENT_BYTES: usize = 4096;
    let mut bytes = vec![0; HEADER_BYTES + SEGMENT_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..20].copy_from_slice(&(SEGMENT_BYTES as u32).to_le_bytes());
    bytes[24] = 77;
    bytes[88..96].copy_from_slice(&1_731_000_000_000_000_000_u64.to_le_bytes());
    bytes[96] = 1;
    let text = |text: &[u8; 8]| u64::from_le_bytes(*text);
    let records = [
        vec![first_word(10, Tag::Thread), 0, 78, 1],
        vec![first_word(10, Tag::ThreadName), 4, text(b"main\0\0\0\0")],
        vec![first_word(10, Tag::Fact), 4 | 1 << 32, text(b"rank2\0\0\0")],
        vec![first_word(11, Tag::Name), 8 << 32, text(b"aten::mm")],
        vec![first_word(11, Tag::Name), 1 | 5 << 32, text(b"label\0\0\0")],
        vec![first_word(12, Tag::StepBegin), 4],
        vec![first_word(13, Tag::Begin), BeginWord::pack(1, 7, 0)],
        vec![first_word(14, Tag::Begin), BeginWord::pack(0, 0, 6)],
        vec![first_word(15, Tag::BeginBackward), BeginWord::pack(0, 1, 0), 9],
        vec![first_word(16, Tag::BeginText), 4 | 7 << 32, text(b"text\0\0\0\0")],
        vec![first_word(17, Tag::End)],
        vec![first_word(20, Tag::End)],
        vec![first_word(30, Tag::EndOuter), 1],
        vec![first_word(31, Tag::OptimizerStep)],
        vec![first_word(32, Tag::StepEnd), 4],
        vec![first_word(33, Tag::StepDropped)],
        vec![first_word(33, Tag::Clock), 33, 1_731_000_000_000_000_033],
        vec![first_word(34, Tag::Window), 0, 1],
        vec![first_word(35, Tag::Memory), 0xff00 << 48 | 0x7000, 512, 512],
        vec![first_word(36, Tag::MemoryReserved), 0x7000, (-512_i64) as u64, 0, 2 << 20, 1],
        vec![first_word(37, Tag::OutOfMemory), 1 << 40, 0, 0, 0xff00],
        vec![first_word(38, Tag::DeviceClock), 1_000_038],
    ];
    let activities = device_activities().into_iter().map(|record| {
        let words = encode(&record, 1);
        [&[first_word(39, Tag::Device)], words.as_slice()].concat()
    });
    let records: Vec<Vec<u64>> = records.into_iter().chain(activities).collect();
    let ends = [vec![first_word(40, Tag::DeviceClock), 2_000_040], vec![u64::from(Tag::Pad as u8)]];
    let head = [u64::from(SEGMENT_MAGIC) << 32, 0];
    assert_eq!(size_of_val(&head), SEGMENT_HEADER_BYTES);
    let words = head.into_iter().chain(records.concat()).chain(ends.concat());
    for (at, word) in words.enumerate() {
        bytes[HEADER_BYTES + at * 8..][..8].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// One activity record of each kind, of a device's clock that says 1,000,038 when the capture's says 38.
fn device_activities() -> Vec<ActivityRecord> {
    let (start_ns, end_ns) = (1_000_020, 1_000_030);
    let kernel = WorkKind::Kernel(Kernel {
        name: Some(0),
        grid: Some([9, 1, 1]),
        block: Some([128, 2, 1]),
        registers: Some(32),
        static_shared_bytes: Some(16),
        dynamic_shared_bytes: Some(1 << 14),
    });
    let (direction, memory) = (Direction::PeerToPeer, MemoryKind::Device);
    let (bytes, devices) = (Some(64), Some((0, 300)));
    let copy = WorkKind::Memcpy(Memcpy { bytes, direction, source: memory, destination: memory, devices });
    let work = |kind: WorkKind, device: u32| {
        let (context, stream, correlation) = (Some(device + 1), Some(7), 5);
        let (graph, graph_node) = (3, 1 << 40);
        let work = DeviceWork { kind, start_ns, end_ns, device, context, stream, correlation, graph, graph_node };
        ActivityRecord::Work(work)
    };
    let call = Call { api: Api::Runtime, name: Some(1), start_ns, end_ns, thread: 6, correlation: 5, status: 700 };
    let waits = Synchronization {
        kind: SynchronizationKind::StreamWaitEvent,
        start_ns,
        end_ns,
        context: Some(1),
        ..Synchronization::default()
    };
    let wait = Synchronization { stream: Some(7), correlation: 8, event: 2, event_sync: 4, ..waits };
    let recorded = EventRecorded { event: 2, event_sync: 4, context: Some(1), stream: 9, correlation: 6 };
    vec![
        work(kernel, 0),
        work(copy, 300),
        work(WorkKind::Memset(Memset { bytes: Some(4), memory }), 0),
        work(WorkKind::Graph, 0),
        ActivityRecord::Call(call),
        ActivityRecord::Call(Call { api: Api::Driver, thread: 0, ..call }),
        ActivityRecord::EventRecorded(recorded),
        ActivityRecord::Synchronization(wait),
        ActivityRecord::Synchronization(waits),
        ActivityRecord::Overhead(Overhead { name: Some(1), start_ns, end_ns, thread: 6 }),
        ActivityRecord::Range(Range { name: Some(1), start_ns, end_ns: 0, thread: 6, id: 3, is_unfinished: true }),
        ActivityRecord::Range(Range { name: Some(1), start_ns, end_ns, thread: 6, id: 3, is_unfinished: true }),
        ActivityRecord::Dropped(Dropped { count: 12 }),
    ]
}

/// The part that the small capture becomes.
pub(crate) fn small_part() -> &'static [u8] {
    static PART: OnceLock<Vec<u8>> = OnceLock::new();
    PART.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let (raw, part) = (folder.path().join("1-2.capture"), folder.path().join("part"));
        std::fs::write(&raw, small_capture()).expect("written");
        let capture = stepscope_capture::read(&raw).expect("a capture");
        stepscope_run::write_part(&part, &capture).expect("a part is written");
        read(&part)
    })
}

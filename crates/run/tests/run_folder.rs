//! Run folders, whole and broken: a copy of the recorded fixture is damaged and read again.

use std::path::{Path, PathBuf};
use stepscope_capture::device::{
    ActivityRecord, Api, Call, DeviceWork, Direction, Dropped, EventRecorded, Kernel, Memcpy, MemoryKind, Memset,
    Overhead, Range, Synchronization, SynchronizationKind, WorkKind,
};
use stepscope_capture::io::IoFunction;
use stepscope_capture::{Capture, DeviceActivity, IoCall, MemoryEvent, ProfilerState};
use stepscope_run::{NewRun, RunError, create, open, read_part, recover, write_part};

/// A copy of the recorded run, which a test may damage.
fn copy_of_recorded_run() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/gpt-cpu");
    std::fs::create_dir(folder.path().join("rank=0")).expect("a folder");
    std::fs::copy(recorded.join("run.json"), folder.path().join("run.json")).expect("a copy");
    for part in parts(&recorded) {
        let name = part.file_name().expect("a name");
        std::fs::copy(&part, folder.path().join("rank=0").join(name)).expect("a copy");
    }
    folder
}

fn parts(run: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(run.join("rank=0")).expect("a rank's folder");
    let mut parts: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    parts.sort();
    parts
}

#[test]
fn a_part_written_from_a_part_holds_the_same() {
    let folder = copy_of_recorded_run();
    for part in parts(folder.path()) {
        let (before, again) = (read_part(&part).unwrap(), folder.path().join("again.parquet"));
        write_part(&again, &before).unwrap();
        let after = read_part(&again).unwrap();
        assert!(!before.events.is_empty());
        assert_eq!((&before.names, &before.events), (&after.names, &after.events));
        assert_eq!((&before.metadata, &before.threads, before.state), (&after.metadata, &after.threads, after.state));
        assert_eq!(before.optimizer_steps, after.optimizer_steps);
    }
}

#[test]
fn a_part_holds_profiler_states_and_one_of_an_older_version_has_none() {
    let folder = copy_of_recorded_run();
    let mut capture = read_part(&parts(folder.path())[0]).unwrap();
    assert_eq!(capture.profiler_states, []);
    let state = |thread, since_ns, number| ProfilerState { thread, since_ns, number };
    capture.profiler_states = vec![state(0, i64::MIN, u64::MAX), state(0, 7, 0), state(3, 8, 1)];
    let again = folder.path().join("again.parquet");
    write_part(&again, &capture).unwrap();
    assert_eq!(read_part(&again).unwrap().profiler_states, capture.profiler_states);
}

#[test]
fn a_part_holds_memory_and_one_of_an_older_version_has_none() {
    let folder = copy_of_recorded_run();
    let part = &parts(folder.path())[0];
    let mut capture = read_part(part).unwrap();
    assert!(capture.memory.is_empty());
    let allocation = MemoryEvent {
        thread: 0,
        time_ns: capture.opened_ns,
        address: Some(u64::MAX),
        bytes: i64::MAX,
        allocated_bytes: Some(0),
        reserved_bytes: None,
        device_type: 1,
        device_index: Some(7),
    };
    let free = MemoryEvent { bytes: i64::MIN, allocated_bytes: None, reserved_bytes: Some(0), ..allocation };
    let failed = MemoryEvent { address: None, device_type: 0, device_index: None, ..allocation };
    capture.memory = vec![allocation, free, failed];
    let again = folder.path().join("again.parquet");
    write_part(&again, &capture).unwrap();
    let after = read_part(&again).unwrap();
    assert_eq!(after.memory, capture.memory);
    assert_eq!(after.events, capture.events);
}

#[test]
fn a_part_holds_calls_on_files_and_one_of_an_older_version_has_none() {
    let folder = copy_of_recorded_run();
    let mut capture = read_part(&parts(folder.path())[0]).unwrap();
    assert!(capture.io.is_empty() && capture.files.is_empty());
    let (start_ns, end_ns) = (capture.opened_ns, capture.opened_ns + 5);
    let (file, other_file, bytes, asked_bytes, offset) = (Some(0), Some(1), Some(7), Some(i64::MAX), Some(0));
    let of = |function: &IoFunction| {
        let (function, errno) = (*function, u16::MAX);
        IoCall { thread: 0, start_ns, end_ns, function, errno, file, other_file, bytes, asked_bytes, offset }
    };
    capture.io = IoFunction::ALL.iter().map(of).collect();
    let nothing = IoCall {
        errno: 0,
        file: None,
        other_file: None,
        bytes: None,
        asked_bytes: None,
        offset: None,
        ..capture.io[0]
    };
    capture.io.push(nothing);
    capture.files = vec!["/data/a".into(), "/data/b".into()];
    let again = folder.path().join("again.parquet");
    write_part(&again, &capture).unwrap();
    let after = read_part(&again).unwrap();
    assert_eq!((&after.io, &after.files), (&capture.io, &capture.files));
    assert_eq!(after.events, capture.events);
}

#[test]
fn a_part_holds_what_devices_reported() {
    let folder = copy_of_recorded_run();
    let part = &parts(folder.path())[0];
    let mut capture = read_part(part).unwrap();
    assert!(capture.device.is_empty());
    let (start_ns, end_ns, name) = (capture.opened_ns + 5, capture.opened_ns + 9, Some(0));
    let most = Kernel {
        name,
        grid: Some([u32::MAX; 3]),
        block: Some([1, 2, 3]),
        registers: Some(255),
        static_shared_bytes: Some(1),
        dynamic_shared_bytes: Some(u32::MAX),
    };
    let zeros = Kernel { grid: None, registers: Some(0), static_shared_bytes: None, ..most };
    let (bytes, source, destination) = (Some(u64::MAX), MemoryKind::Pinned, MemoryKind::ManagedStatic);
    let copy = |direction, devices| WorkKind::Memcpy(Memcpy { bytes, direction, source, destination, devices });
    let mut kinds: Vec<_> = [most, zeros, Kernel::default()].map(WorkKind::Kernel).into();
    kinds.extend([copy(Direction::PeerToPeer, Some((0, 0))), WorkKind::Memcpy(Memcpy::default())]);
    kinds.extend(Direction::ALL.iter().map(|direction| copy(*direction, None)));
    kinds.extend(MemoryKind::ALL.iter().map(|memory| WorkKind::Memset(Memset { bytes: Some(0), memory: *memory })));
    kinds.push(WorkKind::Graph);
    let known = |number: u32| Some(number).filter(|number| *number != u32::MAX);
    let work = |kind: WorkKind, (device, graph, graph_node): (u32, u32, u64)| {
        let (context, stream, correlation) = (known(graph), known(device), u32::MAX);
        ActivityRecord::Work(DeviceWork {
            kind,
            start_ns,
            end_ns,
            device,
            context,
            stream,
            correlation,
            graph,
            graph_node,
        })
    };
    let places = [(0, 0, 0), (255, 1, 1), (256, u32::MAX, u64::MAX), (u32::MAX, 2, 2)];
    let mut records: Vec<ActivityRecord> =
        kinds.iter().flat_map(|kind| places.map(|place| work(*kind, place))).collect();
    for status in [0, 700] {
        let call = Call { api: Api::Runtime, name, start_ns, end_ns, thread: 0, correlation: 0, status };
        records.extend([call, Call { api: Api::Driver, name: None, ..call }].map(ActivityRecord::Call));
    }
    for (stream, event, event_sync) in [(None, 0, 0), (Some(0), 1, u64::MAX), (Some(u32::MAX - 1), u32::MAX, 1)] {
        let wait = |kind| Synchronization {
            kind,
            start_ns,
            end_ns,
            context: known(event),
            stream,
            correlation: 3,
            event,
            event_sync,
        };
        records.extend(SynchronizationKind::ALL.iter().map(|kind| ActivityRecord::Synchronization(wait(*kind))));
        let (context, stream, correlation) = (known(event), stream.unwrap_or(0), 0);
        records.push(ActivityRecord::EventRecorded(EventRecorded { event, event_sync, context, stream, correlation }));
    }
    records.push(ActivityRecord::Overhead(Overhead { name, start_ns, end_ns, thread: 0 }));
    let range = Range { name, start_ns, end_ns, thread: 0, id: 0, is_unfinished: false };
    records.push(ActivityRecord::Range(range));
    records.push(ActivityRecord::Range(Range { start_ns: start_ns + 1, is_unfinished: true, ..range }));
    records.push(ActivityRecord::Dropped(Dropped { count: u64::MAX }));
    capture.device = records.iter().map(|record| DeviceActivity { device_type: 1, record: *record }).collect();
    let again = folder.path().join("again.parquet");
    write_part(&again, &capture).unwrap();
    let after = read_part(&again).unwrap();
    let summary = |capture: &Capture| {
        let line = |activity: &DeviceActivity| {
            let mut record = activity.record;
            let name = record.name_mut().and_then(Option::take).map(|id| capture.names[id as usize].clone());
            format!("{name:?} {} {record:?}", activity.device_type)
        };
        let mut lines: Vec<String> = capture.device.iter().map(|activity| line(&activity)).collect();
        lines.sort();
        lines
    };
    assert_eq!(summary(&capture), summary(&after));
    assert_eq!((capture.events, capture.threads), (after.events, after.threads));
}

#[test]
fn recovering_a_closed_run_changes_nothing() {
    let folder = copy_of_recorded_run();
    let recovered = recover(folder.path()).unwrap();
    assert_eq!((recovered.processes, recovered.killed, recovered.running), (3, 0, 0));
    assert_eq!(recovered.events, 44_284);
    assert_eq!(recover(folder.path()).unwrap(), recovered);
}

#[test]
fn a_truncated_part_leaves_the_others_readable() {
    let folder = copy_of_recorded_run();
    let part = &parts(folder.path())[1];
    let bytes = std::fs::read(part).unwrap();
    for len in [0, 3, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(part, &bytes[..len]).unwrap();
        let run = open(folder.path()).unwrap();
        assert_eq!((run.captures.len(), run.unreadable.len()), (2, 1), "cut at {len}");
    }
}

#[test]
fn flipped_bytes_give_an_error_or_a_capture() {
    let folder = copy_of_recorded_run();
    let part = &parts(folder.path())[1];
    let bytes = std::fs::read(part).unwrap();
    let mut refused = 0;
    for at in (0..bytes.len()).step_by(211) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        std::fs::write(part, &damaged).unwrap();
        match read_part(part) {
            Ok(capture) => assert!(capture.events.iter().all(|event| event.end_ns >= event.start_ns)),
            Err(error) => {
                assert!(matches!(error, RunError::DamagedPart { .. } | RunError::NewerVersion { .. }), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "some damage is noticed");
}

#[test]
fn a_newer_run_is_refused_and_a_missing_manifest_is_not() {
    let folder = copy_of_recorded_run();
    let manifest = folder.path().join("run.json");
    let text = std::fs::read_to_string(&manifest).unwrap().replace("\"version\": 1", "\"version\": 99");
    std::fs::write(&manifest, text).unwrap();
    assert!(matches!(open(folder.path()), Err(RunError::NewerVersion { found: 99, .. })));
    std::fs::remove_file(&manifest).unwrap();
    let run = open(folder.path()).unwrap();
    assert!(run.manifest.is_none());
    assert_eq!((run.captures.len(), run.unreadable.len()), (3, 0));
}

#[test]
fn folders_that_are_no_run_or_an_empty_one_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(open(folder.path()), Err(RunError::NotARun { .. })));
    let run = folder.path().join("run");
    create(&run, &NewRun { command: vec!["true".into()] }).unwrap();
    assert!(matches!(open(&run), Err(RunError::Empty { .. })));
    assert!(matches!(create(&run, &NewRun::default()), Err(RunError::Occupied { .. })));
    assert!(matches!(open(&folder.path().join("nowhere")), Err(RunError::Io { .. })));
}

#[test]
fn a_raw_file_that_is_no_capture_is_reported_and_stays() {
    let folder = copy_of_recorded_run();
    std::fs::create_dir(folder.path().join("raw")).unwrap();
    let raw = folder.path().join("raw/1-2.capture");
    std::fs::write(&raw, [0; 8192]).unwrap();
    let run = open(folder.path()).unwrap();
    assert_eq!((run.captures.len(), run.unreadable.len()), (3, 1));
    assert!(raw.exists());
}

//! Run folders, whole and broken: a copy of the recorded fixture is damaged and read again.

use std::path::{Path, PathBuf};
use stepscope_capture::MemoryEvent;
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
        assert_eq!((&before.facts, &before.threads, before.state), (&after.facts, &after.threads, after.state));
        assert_eq!(before.optimizer_steps, after.optimizer_steps);
    }
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

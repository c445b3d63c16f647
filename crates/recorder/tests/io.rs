//! Calls on files, written with the real core in processes of its own, and read back.
#![cfg(target_os = "linux")]

mod scenario;

use scenario::{captures, run};
use stepscope_capture::IoCall;
use stepscope_recorder as recorder;
use stepscope_recorder::{IoFunction, IoRecord};

/// A call of each length that a record may have.
fn calls() -> [IoRecord; 5] {
    let plain = IoRecord {
        function: IoFunction::Read,
        errno: 0,
        duration_ticks: 1_000,
        file: 1,
        other_file: 0,
        bytes: 4_096,
        asked: None,
        offset: None,
        thread: 0,
    };
    [
        plain,
        IoRecord { offset: Some(1 << 40), ..plain },
        IoRecord { function: IoFunction::Write, asked: Some(8_192), offset: Some(0), errno: 28, bytes: 0, ..plain },
        IoRecord { function: IoFunction::Rename, other_file: 2, bytes: 0, ..plain },
        IoRecord { bytes: 1 << 33, duration_ticks: 1 << 33, file: 3, asked: Some(1), offset: Some(2), ..plain },
    ]
}

fn write_calls(times: usize) {
    let capture = recorder::define_file(1, b"/data/a").expect("there is a capture");
    assert_eq!(recorder::define_file(2, b"/data/b"), Some(capture));
    for _ in 0..times {
        for call in calls() {
            let begin = recorder::ticks();
            // As a call does, it takes some time: where ticks come in steps of 10 ns, the next would begin at once.
            while recorder::ticks().wrapping_sub(begin) < 100 {}
            assert!(recorder::io_call(begin, &call, capture));
        }
    }
}

/// Not a test of its own: what the processes started by `run` do.
#[test]
fn scenarios() {
    let Some((scenario, run)) = scenario::asked() else { return };
    recorder::open_when_needed(&run, &[("recorder".into(), "files".into())], None);
    match scenario.as_str() {
        "threads" => {
            let work = || write_calls(10_000);
            (0..4).map(|_| std::thread::spawn(work)).collect::<Vec<_>>().into_iter().for_each(|t| t.join().unwrap());
            recorder::learn_metadata("rank", "3");
            recorder::close();
        }
        "of another thread" => {
            let capture = recorder::define_file(1, b"/data/a").expect("there is a capture");
            let fault = IoRecord { function: IoFunction::MajorFault, bytes: 0, offset: Some(4_096), ..calls()[0] };
            // One that records nothing itself, and this one.
            let own = std::fs::read_link("/proc/thread-self").expect("the system has it");
            let own = own.file_name().and_then(|tid| tid.to_str()?.parse().ok()).expect("it ends with the number");
            for thread in [7, own] {
                let written = IoRecord { thread, ..fault };
                assert!(recorder::io_call(recorder::ticks(), &written, capture));
            }
            recorder::close();
        }
        "nothing" => recorder::learn_metadata("rank", "3"),
        "another capture" => {
            let before = recorder::define_file(1, b"/data/a").expect("there is a capture");
            recorder::close();
            recorder::open(&run, &[]).expect("the capture opens");
            recorder::define_file(1, b"/data/a").expect("there is a capture");
            // What was defined in the one before is not known here.
            assert!(!recorder::io_call(recorder::ticks(), &calls()[0], before));
            recorder::close();
        }
        other => panic!("no scenario {other}"),
    }
}

#[test]
fn calls_of_all_threads_are_read_back() {
    let (folder, status) = run("threads");
    assert!(status.success());
    let captures = captures(folder.path());
    let [capture] = captures.as_slice() else { panic!("{} captures", captures.len()) };
    assert_eq!((capture.io.len(), capture.dropped, capture.damaged.len()), (4 * 10_000 * calls().len(), 0, 0));
    assert_eq!(capture.files[1..], ["/data/a", "/data/b"]);
    assert!(capture.metadata.contains(&("rank".into(), "3".into())));
    let signed = |number: Option<u64>| number.map(|number| number as i64);
    for (found, written) in capture.io.iter().zip(calls().iter().cycle()) {
        let IoCall { function, errno, file, other_file, bytes, asked_bytes, offset, .. } = *found;
        assert_eq!((function, errno), (written.function, written.errno));
        // A file that was not defined is not known.
        assert_eq!(file, Some(written.file).filter(|file| *file != 3));
        assert_eq!(other_file, Some(written.other_file).filter(|file| *file != 0));
        assert_eq!(bytes, Some(written.bytes as i64).filter(|_| function.moves_bytes()));
        assert_eq!((asked_bytes, offset), (signed(written.asked), signed(written.offset)));
        assert!(found.end_ns > found.start_ns);
    }
}

#[test]
fn what_is_written_of_another_thread_is_that_threads() {
    let (folder, status) = run("of another thread");
    assert!(status.success());
    let captures = captures(folder.path());
    let [capture] = captures.as_slice() else { panic!("{} captures", captures.len()) };
    let found: Vec<_> = capture.io.iter().map(|call| (call.function, call.bytes, call.offset)).collect();
    assert_eq!(found, [(IoFunction::MajorFault, None, Some(4_096)); 2]);
    let tids: Vec<u64> = capture.io.iter().map(|call| capture.threads[call.thread as usize].tid).collect();
    // Its own comes first, since that thread does.
    assert!(tids[0] != 7 && tids[1] == 7, "{tids:?}");
    assert_eq!(capture.threads[capture.io[1].thread as usize].name, "thread 7");
}

#[test]
fn what_records_nothing_writes_no_capture() {
    let (folder, status) = run("nothing");
    assert!(status.success() && !folder.path().join("raw").exists());
}

#[test]
fn a_call_on_a_file_of_another_capture_is_left_out() {
    let (folder, status) = run("another capture");
    assert!(status.success());
    assert_eq!(captures(folder.path()).iter().map(|capture| capture.io.len()).collect::<Vec<_>>(), [0, 0]);
}

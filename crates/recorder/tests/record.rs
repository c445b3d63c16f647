//! Records with the real core in processes of its own, and reads the captures back.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

mod scenario;

use scenario::{captures, run};
use stepscope_capture::{Capture, State, read};
use stepscope_recorder as recorder;

fn count(capture: &Capture, name: &str) -> usize {
    capture.events.iter().filter(|event| capture.names[event.name as usize] == name).count()
}

fn labels(name: &str, times: usize) {
    for _ in 0..times {
        let token = recorder::begin_label(name);
        recorder::end_label(token, name);
    }
}

/// Sequence numbers and forward threads at the limits of each kind of record, and as a backward pass counts them down.
const NUMBERS: [(i64, u64); 15] = [
    (-1, 0),
    (0, 0),
    (5, 2),
    (4, 2),
    (-1, 0),
    (3, 2),
    (12_289, 0),
    (24_576, 0),
    (20_480, 2),
    (16_383, 2),
    ((1 << 40) - 2, 0),
    ((1 << 40) - 1, 0),
    (1 << 41, 3),
    (i64::MAX - 1, u64::MAX),
    (7, u64::MAX),
];

/// The host as a device: type 0, no index.
const HOST: u16 = 0xff00;

/// Pauses around the longest that a short record can tell.
const PAUSES_MS: [u64; 6] = [0, 20, 1, 0, 40, 0];

/// Not a test of its own: what the processes started by `run` do.
#[test]
fn scenarios() {
    let Some((scenario, run)) = scenario::asked() else { return };
    if scenario == "disk_full" {
        let limit = libc::rlimit { rlim_cur: 2 << 20, rlim_max: 2 << 20 };
        // SAFETY: `limit` is readable.
        unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) };
    }
    recorder::open(&run, &[("rank".into(), "3".into())]).expect("the capture opens");
    match scenario.as_str() {
        "threads" => {
            let work = || {
                recorder::name_thread("worker");
                labels("work", 50_000);
            };
            (0..4).map(|_| std::thread::spawn(work)).collect::<Vec<_>>().into_iter().for_each(|t| t.join().unwrap());
            recorder::set_metadata("rank", "5");
            recorder::close();
        }
        "short_threads" => {
            for _ in 0..10_000 {
                std::thread::spawn(|| labels("short", 3)).join().unwrap();
            }
            recorder::close();
        }
        "many_threads" => {
            let together = std::sync::Arc::new(std::sync::Barrier::new(1_000));
            let work = |number: usize, together: std::sync::Arc<std::sync::Barrier>| {
                recorder::name_thread(&format!("thread {number}"));
                labels("before", 3);
                together.wait();
                labels("after", 3);
            };
            let start = |number| {
                let together = std::sync::Arc::clone(&together);
                std::thread::Builder::new().stack_size(64 << 10).spawn(move || work(number, together)).unwrap()
            };
            (0..1_000).map(start).collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
            recorder::close();
        }
        "kill" => {
            labels("before", 100_000);
            recorder::begin_label("open");
            // SAFETY: plain system calls.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        "fork" => {
            labels("parent", 10);
            // SAFETY: the child only records and leaves.
            let child = unsafe { libc::fork() };
            if child == 0 {
                labels("child", 20);
                recorder::close();
                // SAFETY: leaves at once.
                unsafe { libc::_exit(0) };
            }
            // SAFETY: waits for the child above.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            labels("parent", 10);
            recorder::close();
        }
        "disk_full" => {
            labels("work", 200_000);
            recorder::close();
        }
        "out_of_order" => {
            let (outer, inner) = (recorder::begin_label("outer"), recorder::begin_label("inner"));
            recorder::end_label(outer, "outer");
            labels("between", 1);
            recorder::end_label(inner, "inner");
            let deep: Vec<_> = (0..400).map(|_| recorder::begin_label("deep")).collect();
            deep.into_iter().rev().for_each(|token| recorder::end_label(token, "deep"));
            recorder::close();
        }
        "numbers" => {
            for (op, (number, forward_thread)) in NUMBERS.into_iter().enumerate() {
                let name = recorder::Name::text("op");
                // SAFETY: the name is a constant.
                unsafe { recorder::begin(c"op".as_ptr(), || name, 1, number, forward_thread, op * 8) };
                // SAFETY: as above.
                unsafe { recorder::end(op * 8, || name, || 0) };
            }
            recorder::close();
        }
        "memory" => {
            for i in 0..20_000 {
                let token = recorder::begin_label("allocates");
                recorder::memory(4_096 + i, 64, 64 + i, 0, HOST);
                recorder::end_label(token, "allocates");
                recorder::memory(1 << 50 | i, -64, i, 1 << 30, 0x0201);
            }
            recorder::out_of_memory(1 << 40, 7, 0, HOST);
            recorder::close();
        }
        "pauses" => {
            for pause in PAUSES_MS {
                let token = recorder::begin_label("pause");
                std::thread::sleep(std::time::Duration::from_millis(pause));
                recorder::end_label(token, "pause");
            }
            recorder::close();
        }
        "many_names" => {
            (0..70_000).for_each(|i| labels(&format!("iteration {i}"), 1));
            recorder::close();
        }
        "twice" => {
            labels("first", 5);
            recorder::close();
            labels("nowhere", 5);
            recorder::open(&run, &[]).expect("a second capture opens");
            labels("second", 7);
            recorder::close();
        }
        other => panic!("unknown scenario {other}"),
    }
}

#[test]
fn every_thread_is_seen_and_nothing_is_lost() {
    let (folder, status) = run("threads");
    assert!(status.success());
    let capture = &captures(folder.path())[0];
    assert_eq!(count(capture, "work"), 200_000);
    assert_eq!(capture.threads.iter().filter(|thread| thread.name == "worker").count(), 4);
    assert_eq!((capture.state, capture.dropped, capture.damaged.len()), (State::Closed, 0, 0));
    assert!(capture.metadata.contains(&("rank".into(), "5".into())), "the last value of a fact holds");
    assert!(capture.events.iter().all(|event| !event.is_unfinished && event.end_ns >= event.start_ns));
    let span_ns = capture.last_ns - capture.opened_ns;
    assert!((1_000_000..60_000_000_000).contains(&span_ns), "times are nanoseconds: {span_ns}");
}

#[test]
fn segments_of_ended_threads_serve_others() {
    let (folder, status) = run("short_threads");
    assert!(status.success());
    let capture = &captures(folder.path())[0];
    assert_eq!(count(capture, "short"), 30_000);
    let numbers: Vec<u32> = capture.threads.iter().map(|thread| thread.ordinal).collect();
    assert!(numbers.iter().copied().eq(0..numbers.len() as u32) && numbers.len() >= 10_000);
    let file = std::fs::read_dir(folder.path().join("raw")).unwrap().next().unwrap().unwrap();
    assert!(file.metadata().unwrap().len() < 8 << 20, "10,000 threads share a few segments");
}

#[test]
fn a_thousand_threads_at_once_are_all_seen() {
    let (folder, status) = run("many_threads");
    assert!(status.success());
    let capture = &captures(folder.path())[0];
    assert_eq!((count(capture, "before"), count(capture, "after"), capture.dropped), (3_000, 3_000, 0));
    let named = capture.threads.iter().filter(|thread| thread.name.starts_with("thread "));
    assert_eq!(named.count(), 1_000);
}

#[test]
fn a_killed_process_leaves_everything_it_had_recorded() {
    let (folder, status) = run("kill");
    assert!(!status.success());
    let capture = &captures(folder.path())[0];
    assert_eq!(capture.state, State::Killed);
    assert_eq!(count(capture, "before"), 100_000);
    let open: Vec<_> = capture.events.iter().filter(|event| event.is_unfinished).collect();
    assert_eq!(open.len(), 1);
    assert_eq!(capture.names[open[0].name as usize], "open");
}

#[test]
fn a_forked_child_writes_a_capture_of_its_own() {
    let (folder, status) = run("fork");
    assert!(status.success());
    let captures = captures(folder.path());
    let [parent, child] = &captures[..] else { panic!("two captures, not {}", captures.len()) };
    assert_eq!((count(parent, "parent"), count(parent, "child")), (20, 0));
    assert_eq!((count(child, "parent"), count(child, "child")), (0, 20));
    assert_eq!(child.parent_pid, parent.process.pid);
    assert!(child.metadata.contains(&("rank".into(), "3".into())), "children inherit facts");
    assert_eq!((parent.state, child.state), (State::Closed, State::Closed));
}

#[test]
fn a_full_disk_stops_recording_and_says_so() {
    let (folder, status) = run("disk_full");
    assert!(status.success(), "the program goes on");
    let capture = &captures(folder.path())[0];
    assert!(capture.is_disk_full);
    let recorded = count(capture, "work");
    assert!((10_000..200_000).contains(&recorded), "{recorded}");
    assert!(capture.dropped > 0);
    assert!(capture.damaged.is_empty(), "{:?}", capture.damaged);
}

#[test]
fn ends_in_any_order_find_their_begins() {
    let (folder, _) = run("out_of_order");
    let capture = &captures(folder.path())[0];
    assert!(capture.events.iter().all(|event| !event.is_unfinished));
    let span = |name: &str| {
        let event = capture.events.iter().find(|event| capture.names[event.name as usize] == name).unwrap();
        (event.start_ns, event.end_ns)
    };
    let (outer, between, inner) = (span("outer"), span("between"), span("inner"));
    assert!(outer.1 <= between.0 && between.1 <= inner.1);
    assert_eq!(count(capture, "deep"), 400);
}

#[test]
fn numbers_of_any_size_come_back() {
    let (folder, _) = run("numbers");
    let capture = &captures(folder.path())[0];
    let read: Vec<_> =
        capture.events.iter().map(|e| (e.sequence_number.unwrap_or(-1), e.forward_thread.unwrap_or(0))).collect();
    assert_eq!(read, NUMBERS);
}

#[test]
fn allocations_come_back_between_the_labels_around_them() {
    let (folder, status) = run("memory");
    assert!(status.success());
    let [capture] = &captures(folder.path())[..] else { panic!("one capture") };
    assert_eq!((capture.dropped, capture.damaged.len(), capture.memory.len()), (0, 0, 40_001));
    assert!(capture.memory.is_sorted_by_key(|event| event.time_ns));
    for (i, (label, pair)) in capture.events.iter().zip(capture.memory.chunks(2)).enumerate() {
        let i = i as i64;
        let [allocation, free] = pair else { panic!("an allocation and a free") };
        assert!((label.start_ns..=label.end_ns).contains(&allocation.time_ns) && free.time_ns >= label.end_ns);
        let recorded = (allocation.address, allocation.bytes, allocation.allocated_bytes, allocation.reserved_bytes);
        assert_eq!(recorded, (Some(4_096 + i as u64), 64, Some(64 + i), Some(0)));
        assert_eq!((allocation.device_type, allocation.device_index), (0, None));
        let recorded = (free.address, free.bytes, free.allocated_bytes, free.reserved_bytes);
        assert_eq!(recorded, (Some(1 << 50 | i as u64), -64, Some(i), Some(1 << 30)));
        assert_eq!((free.device_type, free.device_index), (1, Some(2)));
    }
    let failed = capture.memory[40_000];
    assert_eq!((failed.bytes, failed.is_out_of_memory(), failed.allocated_bytes), (1 << 40, true, Some(7)));
}

#[test]
fn pauses_of_any_length_come_back() {
    let (folder, _) = run("pauses");
    let capture = &captures(folder.path())[0];
    let durations: Vec<i64> = capture.events.iter().map(|event| event.end_ns - event.start_ns).collect();
    assert_eq!(durations.len(), PAUSES_MS.len());
    for (duration_ns, pause_ms) in durations.into_iter().zip(PAUSES_MS) {
        assert!(duration_ns >= pause_ms as i64 * 1_000_000 - 10_000, "{duration_ns} ns of {pause_ms} ms");
    }
    let mut pairs = capture.events.iter().zip(capture.events.iter().skip(1));
    assert!(pairs.all(|(first, second)| first.end_ns <= second.start_ns));
}

#[test]
fn labels_without_end_do_not_fill_the_name_table() {
    let (folder, _) = run("many_names");
    let capture = &captures(folder.path())[0];
    assert_eq!(capture.events.len(), 70_000);
    assert_eq!((count(capture, "iteration 5"), count(capture, "iteration 69999")), (1, 1));
}

#[test]
fn one_process_can_record_twice() {
    let (folder, _) = run("twice");
    let captures = captures(folder.path());
    let counts: Vec<_> =
        captures.iter().map(|c| (count(c, "first"), count(c, "nowhere"), count(c, "second"))).collect();
    assert_eq!(counts, [(5, 0, 0), (0, 0, 7)]);
    for capture in &captures {
        let (clocks, ends) = (&capture.clocks, capture.events.iter().map(|event| event.end_ns));
        assert_eq!(clocks[0].monotonic_ns, capture.opened_ns);
        assert!(ends.max() <= clocks.last().map(|clock| clock.monotonic_ns), "the last snapshot is of the end");
    }
}

#[test]
fn a_damaged_capture_gives_what_can_be_read_or_an_error() {
    let (folder, _) = run("out_of_order");
    let file = std::fs::read_dir(folder.path().join("raw")).unwrap().next().unwrap().unwrap().path();
    let bytes = std::fs::read(&file).unwrap();
    let whole = read(&file).unwrap().events.len();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let mut noticed = 0;
    for at in (0..120).chain((4096..used).step_by(97)) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0xa5;
        std::fs::write(&file, &damaged).unwrap();
        match read(&file) {
            Ok(capture) => {
                assert!(capture.events.iter().all(|event| event.end_ns >= event.start_ns), "damaged at {at}");
                noticed += usize::from(!capture.damaged.is_empty() || capture.events.len() != whole);
            }
            Err(_) => noticed += 1,
        }
    }
    assert!(noticed > 0, "some damage is noticed");
    for len in [0, 8, 4095, 4096, 4200, bytes.len() / 2] {
        std::fs::write(&file, &bytes[..len]).unwrap();
        assert_eq!(read(&file).is_ok(), len >= 4096, "cut at {len}");
    }
}

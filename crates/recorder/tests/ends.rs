//! Ends that are written into their begins: how exact they are, and what a concurrent reader makes of them.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

mod scenario;

use scenario::{captures, run, start};
use stepscope_capture::{Capture, CaptureReader, Event, EventList, State, read};
use stepscope_recorder as recorder;

fn labels(name: &str, times: usize) {
    for _ in 0..times {
        let token = recorder::begin_label(name);
        recorder::end_label(token, name);
    }
}

/// Durations on both sides of the longest that has room in a begin, 16,382 ticks: of clocks of 1 to 5 GHz.
const DURATIONS_NS: [u64; 16] =
    [0, 100, 1_000, 3_000, 3_250, 4_000, 5_400, 5_500, 6_500, 8_000, 8_250, 11_000, 16_000, 16_400, 33_000, 100_000];

fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Not a test of its own: what the processes started by `run` and `start` do.
#[test]
fn scenarios() {
    let Some((scenario, run)) = scenario::asked() else { return };
    recorder::open(&run, &[]).expect("the capture opens");
    match scenario.as_str() {
        "durations" => {
            let spent: Vec<String> = DURATIONS_NS
                .into_iter()
                .map(|duration_ns| {
                    let before = monotonic_ns();
                    let token = recorder::begin_label("spins");
                    let begun = monotonic_ns();
                    while monotonic_ns() < begun + duration_ns {}
                    let least = monotonic_ns() - begun;
                    recorder::end_label(token, "spins");
                    format!("{least} {}", monotonic_ns() - before)
                })
                .collect();
            recorder::close();
            std::fs::write(run.join("spent"), spent.join("\n")).unwrap();
        }
        "busy" => {
            let nest = || {
                let outer = recorder::begin_label("outer");
                labels("inner", 2);
                recorder::end_label(outer, "outer");
            };
            let work = move || loop {
                (0..200).for_each(|_| nest());
                std::thread::sleep(std::time::Duration::from_millis(2));
            };
            (0..2).map(|_| std::thread::spawn(work)).for_each(drop);
            std::thread::sleep(std::time::Duration::from_secs(60));
        }
        other => panic!("unknown scenario {other}"),
    }
}

#[test]
fn ends_within_their_begins_are_as_exact_as_others() {
    let (folder, status) = run("durations");
    assert!(status.success());
    let capture = &captures(folder.path())[0];
    let spent = std::fs::read_to_string(folder.path().join("spent")).unwrap();
    assert_eq!(capture.events.len(), spent.lines().count());
    for (event, line) in capture.events.iter().zip(spent.lines()) {
        let (least, most) = line.split_once(' ').unwrap();
        let (least, most): (i64, i64) = (least.parse().unwrap(), most.parse().unwrap());
        let duration_ns = event.end_ns - event.start_ns;
        // The ns of a tick are known only as exactly as both clocks were read.
        let slack = 500 + most / 50;
        assert!((least - slack..=most + slack).contains(&duration_ns), "{least} to {most}: {duration_ns} ns");
    }
}

#[test]
fn labels_lie_in_each_other_as_they_did_whenever_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("run.json"), "{}").unwrap();
    let mut process = start("busy", folder.path());
    let begun = std::time::Instant::now();
    let check = |capture: &Capture, all: &EventList| {
        for thread in &capture.threads {
            let events: Vec<Event> = all.of_thread(thread.ordinal).map(|at| all.at(at)).collect();
            let mut outer_end = 0;
            for event in &events {
                match capture.names[event.name as usize].as_str() {
                    "outer" => {
                        assert!(event.start_ns >= outer_end, "of one another");
                        outer_end = event.end_ns;
                    }
                    _ => assert!(event.end_ns <= outer_end || event.is_unfinished),
                }
            }
            let unfinished = events.iter().filter(|event| event.is_unfinished).count();
            assert!(unfinished <= 2, "{unfinished} are open");
        }
    };
    let mut found = 0;
    while begun.elapsed().as_millis() < 2_000 || found <= 10_000 {
        let Some(path) = std::fs::read_dir(folder.path().join("raw")).ok().and_then(|mut files| files.next()) else {
            continue;
        };
        let path = path.unwrap().path();
        let Ok(capture) = read(&path) else { continue };
        assert_eq!(capture.state, State::Running);
        check(&capture, &capture.events);
        found = found.max(capture.events.len());
        let (reader, mut in_lists) = (CaptureReader::open(&path).unwrap(), EventList::default());
        for thread in &reader.capture().threads {
            let take = &mut |list: &EventList| in_lists.extend(list.iter());
            assert!(reader.read_in_lists(thread.ordinal, &(i64::MIN..i64::MAX), take).unwrap());
        }
        check(reader.capture(), &in_lists);
    }
    process.kill().unwrap();
    process.wait().unwrap();
    let capture = &captures(folder.path())[0];
    assert_eq!((capture.state, capture.damaged.len(), capture.dropped), (State::Killed, 0, 0));
    check(capture, &capture.events);
    assert!(capture.events.len() >= found, "{found}");
}

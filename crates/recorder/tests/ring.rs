//! The flight recorder: processes of their own record into rings, and what is left is compared with what they did.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

mod scenario;

use scenario::{captures, files, run, start};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use stepscope_capture::{Capture, State, read};
use stepscope_recorder as recorder;

const WINDOW: Duration = Duration::from_millis(100);
const WORKERS: usize = 3;
/// By which a moment may differ when it is read on another clock.
const CLOCKS_NS: i64 = 10_000;
/// The time is noted before every op of which the number is divisible by this.
const TIMED: u64 = 64;
const TIMES: usize = 1 << 16;
/// Ops after which a worker thread begins a label.
const BATCH: i64 = 50;
/// Of a job that is simulated: a step a second, for a week.
const STEPS_OF_A_WEEK: i64 = 7 * 24 * 3600;
const WINDOWS_OF_A_WEEK: u32 = 60;

fn capture(run: &Path) -> Capture {
    let mut captures = captures(run);
    assert_eq!(captures.len(), 1);
    captures.remove(0)
}

fn name_of<'a>(capture: &'a Capture, event: &stepscope_capture::Event) -> &'a str {
    &capture.names[event.name as usize]
}

fn count(capture: &Capture, name: &str) -> usize {
    capture.events.iter().filter(|event| name_of(capture, event) == name).count()
}

fn label(name: &str) {
    let token = recorder::begin_label(name);
    recorder::end_label(token, name);
}

/// An op that carries its number.
fn numbered(number: i64) {
    let name = recorder::Name::text("numbered");
    // SAFETY: the name is a constant.
    unsafe { recorder::begin(c"numbered".as_ptr(), || name, 0, number, 0, 8) };
    // SAFETY: as above.
    unsafe { recorder::end(8, || name, || 0) };
}

/// What outlives the process, in a file: of each worker how many ops it has finished, and when the last ones began.
struct Notes {
    finished: AtomicU64,
    times_ns: [AtomicU64; TIMES],
}

fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn notes(run: &Path) -> &'static [Notes; WORKERS] {
    use std::os::fd::AsRawFd;
    let file = std::fs::File::options().read(true).write(true).create(true).truncate(false).open(run.join("notes"));
    let file = file.unwrap();
    let len = size_of::<[Notes; WORKERS]>();
    file.set_len(len as u64).unwrap();
    // SAFETY: a shared mapping of a file that is long enough, never unmapped.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let at = libc::mmap(std::ptr::null_mut(), len, protection, libc::MAP_SHARED, file.as_raw_fd(), 0);
        &*at.cast()
    }
}

/// What each worker thread does, until its process is killed or `until` has passed; every name is new at the beginning.
fn work(worker: usize, notes: &'static Notes, until: Instant, pause: Duration) {
    recorder::name_thread(&format!("worker {worker}"));
    label(&format!("early {worker}"));
    let mut number = 0;
    while Instant::now() < until {
        for _ in 0..BATCH {
            if number % TIMED == 0 {
                notes.times_ns[(number / TIMED) as usize % TIMES].store(monotonic_ns(), Ordering::Release);
            }
            numbered(number as i64);
            number += 1;
            notes.finished.store(number, Ordering::Release);
        }
        label(&format!("early {worker}"));
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
    }
}

fn work_on_threads(run: &Path, duration: Duration, pause: Duration) {
    let (notes, until) = (notes(run), Instant::now() + duration);
    let workers = (0..WORKERS).map(|worker| std::thread::spawn(move || work(worker, &notes[worker], until, pause)));
    workers.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages = |at: usize| statm.split(' ').nth(at).unwrap().parse::<u64>().unwrap();
    // Without what is shared: mapped segments are looked at by the disk they take.
    (pages(1) - pages(2)) * 4096
}

fn wait_for(notes: &[Notes; WORKERS], ops: u64) {
    while notes.iter().any(|notes| notes.finished.load(Ordering::Acquire) < ops) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Not a test of its own: what the processes do.
#[test]
fn scenarios() {
    let Some((scenario, run)) = scenario::asked() else { return };
    // Reading takes longer than the shortest window when the machine is busy.
    let window = if scenario == "steady" { 10 * WINDOW } else { WINDOW };
    let opened = recorder::open_ring(&run, &[("rank".into(), "3".into())], Some(window)).expect("it opens");
    match scenario.as_str() {
        "threads" => {
            label("only once");
            recorder::set_metadata("late", "fact");
            let outer = recorder::begin_label("outer");
            work_on_threads(&run, 10 * WINDOW, Duration::ZERO);
            let until = Instant::now() + 3 * WINDOW;
            while Instant::now() < until {
                (0..1_000).for_each(|_| label("main works on"));
            }
            recorder::end_label(outer, "outer");
            label("only once");
        }
        "forever" => work_on_threads(&run, Duration::from_secs(60), Duration::ZERO),
        "steady" => work_on_threads(&run, Duration::from_secs(60), Duration::from_millis(1)),
        "week" => {
            let (mut most_blocks, mut before, mut most) = (0, 0, 0);
            let began = Instant::now();
            for step in 0..STEPS_OF_A_WEEK {
                (0..16).for_each(|_| label("aten::mm"));
                label(&format!("step {step}"));
                recorder::mark_step(step);
                if step % 1_000 == 0 {
                    // The steps of a week are spread over `WINDOWS_OF_A_WEEK` windows, however fast the machine is.
                    let due = WINDOWS_OF_A_WEEK * WINDOW * step as u32 / STEPS_OF_A_WEEK as u32;
                    std::thread::sleep(due.saturating_sub(began.elapsed()));
                    most_blocks = most_blocks.max(std::fs::metadata(&opened.path).unwrap().blocks());
                    most = most.max(resident_bytes());
                    before = if step == 100_000 { most } else { before };
                }
            }
            std::fs::write(run.join("most"), format!("{} {}", most_blocks * 512, most - before)).unwrap();
        }
        "keep" => {
            label("far from it");
            let busy = |name: &str, windows: u32| {
                let until = Instant::now() + windows * WINDOW;
                while Instant::now() < until {
                    (0..1_000).for_each(|_| label(name));
                }
            };
            busy("before", 4);
            assert!(recorder::snapshot("slow_step 7: 30 ms"));
            std::fs::write(run.join("asked"), monotonic_ns().to_string()).unwrap();
            assert!(recorder::snapshot("slow_step 7: 30 ms"), "twice is once");
            busy("after", 12);
        }
        "keep_late" => {
            recorder::before_snapshot(|| std::thread::sleep(5 * WINDOW));
            label("before");
            assert!(recorder::snapshot("asked"));
            let until = Instant::now() + 8 * WINDOW;
            while Instant::now() < until {
                label("after");
                std::thread::sleep(WINDOW / 100);
            }
        }
        "keep_at_the_end" => {
            label("last words");
            assert!(recorder::snapshot("exception"));
        }
        "watch" => {
            let is_kept = || {
                let kept = std::fs::read_dir(run.join("kept")).ok().and_then(|mut kept| kept.next()?.ok());
                kept.is_some_and(|kept| std::fs::read_dir(kept.path().join("raw")).is_ok_and(|raw| raw.count() == 2))
            };
            let until = Instant::now() + Duration::from_secs(60);
            while !is_kept() && Instant::now() < until {
                (0..1_000).for_each(|_| label("watching"));
            }
        }
        "signal" => {
            recorder::snapshot_on_signal(libc::SIGUSR2);
            label("working");
            // SAFETY: a plain system call; the handler is there.
            unsafe { libc::raise(libc::SIGUSR2) };
        }
        other => panic!("unknown scenario {other}"),
    }
    recorder::close();
}

/// The numbers that each worker's thread has in the window, which must be without a gap.
fn numbers(capture: &Capture) -> BTreeMap<String, (i64, i64)> {
    let mut found: BTreeMap<String, Vec<(i64, i64)>> = BTreeMap::new();
    for event in capture.events.iter().filter(|event| name_of(capture, event) == "numbered") {
        let thread = &capture.threads[event.thread as usize].name;
        found.entry(thread.clone()).or_default().push((event.sequence_number.unwrap(), event.start_ns));
    }
    let ends = |numbers: Vec<(i64, i64)>| {
        assert!(numbers.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1), "nothing is missing in between");
        (numbers[0].0, numbers[numbers.len() - 1].0)
    };
    found.into_iter().map(|(thread, numbers)| (thread, ends(numbers))).collect()
}

#[test]
fn the_last_moments_are_kept_with_all_that_they_need() {
    let (folder, status) = run("threads");
    assert!(status.success());
    let capture = capture(folder.path());
    assert_eq!((capture.state, capture.dropped, capture.damaged.len()), (State::Closed, 0, 0), "{:?}", capture.damaged);
    let ring = capture.ring.expect("a ring");
    let kept_ns = capture.last_ns - ring.since_ns.expect("something was given up");
    let window_ns = WINDOW.as_nanos() as i64;
    assert!((window_ns..=2 * window_ns).contains(&kept_ns), "{kept_ns} ns");
    assert!(count(&capture, "main works on") > 1_000);
    assert_eq!(count(&capture, "only once"), 1, "the first one is long ago, its name still known");
    assert_eq!(count(&capture, "(name lost)"), 0);
    // On a busy machine the segment with its begin may not have been evicted yet.
    let is_there = u64::from(count(&capture, "outer") == 1);
    assert!(ring.lost_begins + is_there >= 1, "the range around everything is counted");
    assert!(capture.metadata.contains(&("rank".into(), "3".into())));
    assert!(capture.metadata.contains(&("late".into(), "fact".into())));
    assert!(capture.events.iter().all(|event| event.end_ns >= ring.since_ns.unwrap()));
}

#[test]
fn a_killed_ring_has_every_record_of_its_window() {
    // Any sequence will do, the same one every time.
    let mut moment = 7_u64;
    for _ in 0..12 {
        moment = moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let folder = tempfile::tempdir().unwrap();
        let mut child = start("forever", folder.path());
        let notes = notes(folder.path());
        wait_for(notes, 1);
        std::thread::sleep(Duration::from_millis(300 + (moment >> 33) % 400));
        child.kill().unwrap();
        child.wait().unwrap();
        let capture = capture(folder.path());
        assert_eq!((capture.state, capture.damaged.len()), (State::Killed, 0), "{:?}", capture.damaged);
        let mut missing_ops = 0;
        let ring = capture.ring.expect("a ring");
        let since_ns = ring.since_ns.expect("something was given up");
        let found = numbers(&capture);
        assert!(!found.is_empty());
        for (worker, notes) in notes.iter().enumerate() {
            let finished = notes.finished.load(Ordering::Acquire) as i64;
            // On a busy machine a thread may not have run within the window: then all of its ops began before.
            let (first, last) = found.get(&format!("worker {worker}")).copied().unwrap_or((finished, finished - 1));
            assert!((finished - 1..=finished).contains(&last), "the last record is the last op: {last} of {finished}");
            // And not for long: a label follows each batch of ops.
            if first / BATCH < last / BATCH {
                assert!(count(&capture, &format!("early {worker}")) > 0);
            }
            // The last timed op that is not there had begun before the window does.
            if let Some(missing) = (first as u64).checked_sub(1) {
                let began_ns = notes.times_ns[(missing / TIMED) as usize % TIMES].load(Ordering::Acquire) as i64;
                assert!(began_ns - since_ns < 1_000_000, "{} ns after the window's begin", began_ns - since_ns);
                missing_ops += missing;
            }
        }
        assert_eq!(count(&capture, "(name lost)"), 0);
        assert!(missing_ops > 0, "the ring has turned");
    }
}

#[test]
fn a_ring_is_read_while_it_turns() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = start("steady", folder.path());
    wait_for(notes(folder.path()), 100_000);
    let mut with_all_workers = 0;
    while with_all_workers < 20 {
        let capture = capture(folder.path());
        assert_eq!((capture.state, capture.damaged.len()), (State::Running, 0), "{:?}", capture.damaged);
        assert!(capture.ring.unwrap().since_ns.is_some(), "the ring has turned");
        // A machine may be so busy that a thread does not run within the window, or that reading takes as long.
        with_all_workers += u32::from(numbers(&capture).len() == WORKERS);
        assert_eq!(count(&capture, "(name lost)"), 0);
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_weeks_worth_of_steps_takes_little_disk_and_memory() {
    let (folder, status) = run("week");
    assert!(status.success());
    let most = std::fs::read_to_string(folder.path().join("most")).unwrap();
    let (disk, memory) = most.split_once(' ').unwrap();
    let written = STEPS_OF_A_WEEK * 18 * 12;
    println!("{disk} bytes of disk, {memory} bytes more of memory, {written} bytes written");
    assert!(disk.parse::<i64>().unwrap() < written / 3, "{disk} bytes on the disk");
    assert!(memory.parse::<u64>().unwrap() < 16 << 20, "{memory} bytes more than at the beginning");
    let capture = capture(folder.path());
    let steps: Vec<i64> = capture.optimizer_steps.iter().map(|mark| mark.number.unwrap()).collect();
    assert_eq!(steps.last(), Some(&(STEPS_OF_A_WEEK - 1)));
    assert!(steps.windows(2).all(|pair| pair[1] == pair[0] + 1));
    assert_eq!((capture.dropped, capture.damaged.len()), (0, 0));
}

fn kept(run: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(run.join("kept")).into_iter().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

#[test]
fn what_is_kept_stays_while_the_ring_turns() {
    let (folder, status) = run("keep");
    assert!(status.success());
    let folders = kept(folder.path());
    assert_eq!(folders.len(), 1, "{folders:?}");
    assert!(folders[0].to_string_lossy().ends_with("-slow_step"), "{folders:?}");
    assert!(folders[0].join("run.json").is_file());
    let (copy, ring) = (capture(&folders[0]), capture(folder.path()));
    assert_eq!((copy.state, copy.damaged.len()), (State::Closed, 0), "{:?}", copy.damaged);
    assert!(count(&copy, "before") > 1_000);
    assert_eq!((count(&ring, "before"), count(&ring, "(name lost)"), count(&copy, "(name lost)")), (0, 0, 0));
    assert_eq!(count(&ring, "after"), ring.events.len());
    assert!(copy.metadata.contains(&("kept_because".into(), "slow_step 7: 30 ms".into())));
    assert!(copy.is_cut() && !ring.is_cut());
    let window = copy.ring.unwrap();
    // The window before it was asked for, not before the last record, which a busy machine may have let wait.
    let asked_ns: i64 = std::fs::read_to_string(folder.path().join("asked")).unwrap().parse().unwrap();
    let window_ns = WINDOW.as_nanos() as i64;
    let promised_ns = asked_ns - window_ns + CLOCKS_NS;
    assert!(window.since_ns.unwrap() <= promised_ns, "{} of {promised_ns}", window.since_ns.unwrap());
    assert!(std::fs::metadata(&files(&folders[0])[0]).unwrap().len() < 64 << 20);
}

#[test]
fn what_is_copied_late_has_the_window_before_it_was_asked_for() {
    let (folder, _) = run("keep_late");
    let copy = capture(&kept(folder.path())[0]);
    assert_eq!(count(&copy, "before"), 1);
    let before = copy.events.iter().find(|event| name_of(&copy, event) == "before").unwrap();
    assert!(copy.last_ns - before.end_ns > 4 * WINDOW.as_nanos() as i64, "the copy was not late");
}

#[test]
fn what_was_asked_for_last_is_kept_by_the_one_that_ends() {
    let (folder, _) = run("keep_at_the_end");
    assert_eq!(count(&capture(&kept(folder.path())[0]), "last words"), 1);
    let (folder, _) = run("signal");
    let folders = kept(folder.path());
    assert!(folders[0].to_string_lossy().ends_with("-signal"));
    assert_eq!(count(&capture(&folders[0]), "working"), 1);
}

#[test]
fn all_processes_of_a_run_keep_together() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("run.json"), "{}").unwrap();
    let mut watching = start("watch", folder.path());
    let is_watching = |path: &Path| read(path).is_ok_and(|capture| count(&capture, "watching") > 0);
    while !std::fs::read_dir(folder.path().join("raw"))
        .is_ok_and(|raw| raw.flatten().any(|file| is_watching(&file.path())))
    {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(start("keep_at_the_end", folder.path()).wait().unwrap().success());
    assert!(watching.wait().unwrap().success());
    let folders = kept(folder.path());
    assert_eq!(folders.len(), 1);
    let captures = captures(&folders[0]);
    assert_eq!(captures.len(), 2, "both processes are in it");
    assert_eq!(captures.iter().filter(|capture| count(capture, "watching") > 0).count(), 1);
    assert_eq!(captures.iter().filter(|capture| count(capture, "last words") > 0).count(), 1);
}

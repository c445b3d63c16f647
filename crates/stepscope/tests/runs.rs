//! The example program, run and killed in processes of its own, and read back as anybody reads a run.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use stepscope_capture::State;
use stepscope_run::Run;
use stepscope_trace::{SliceKind, Trace};

/// What the test binary was built beside.
fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().expect("this test has a file");
    let folder = tests.ancestors().nth(2).expect("target/PROFILE/deps/TEST").join("examples");
    folder.join(name)
}

fn start(run: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(example("threads"));
    command.arg(run).args(arguments).env_remove("STEPSCOPE_RUN").env("RANK", "2").env("WORLD_SIZE", "4");
    command.stdout(Stdio::piped()).spawn().expect("the example runs")
}

fn read(run: &Path) -> (Run, Trace) {
    (stepscope_run::open(run).expect("a run"), stepscope_import::open(run).expect("a trace"))
}

/// How often something of this name ran, by thread.
fn counts(trace: &Trace, name: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let found = trace.slices.ids().filter(|slice| trace.slice_name(*slice) == name);
    let found = found.filter(|slice| !trace.slices.is_unfinished[slice.index()]);
    for slice in found {
        let thread = &trace.tracks[trace.slices.track[slice.index()].index()];
        *counts.entry(thread.name.clone()).or_default() += 1;
    }
    counts
}

fn workers(count: usize, times: usize) -> BTreeMap<String, usize> {
    (0..count).map(|number| (format!("worker number {number}"), times)).collect()
}

#[test]
fn every_scope_of_every_thread_is_there_and_nests() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    assert!(start(&run, &["12", "3"]).wait().unwrap().success());
    let (captures, trace) = read(&run);
    assert_eq!(counts(&trace, "work"), workers(3, 12));
    assert_eq!(counts(&trace, "even piece"), workers(3, 12 * 5));
    assert_eq!(counts(&trace, "odd piece"), workers(3, 12 * 5));
    assert_eq!(counts(&trace, "wait"), [("main".to_string(), 12)].into());
    for piece in trace.slices.ids().filter(|slice| trace.slice_name(*slice).ends_with(" piece")) {
        let parent = trace.slices.parent(piece).expect("a piece is inside the work");
        assert_eq!(trace.slice_name(parent), "work");
        assert_eq!(trace.slices.kind(piece), SliceKind::Annotation);
    }
    let [capture] = &captures.captures[..] else { panic!("one capture, not {}", captures.captures.len()) };
    assert_eq!((capture.dropped, capture.damaged.len()), (0, 0));
    assert_eq!(capture.state, State::Closed);
    let fact = |key: &str| capture.metadata.iter().find(|(found, _)| found == key).map(|(_, value)| value.as_str());
    assert_eq!([fact("rank"), fact("world_size"), fact("example")], [Some("2"), Some("4"), Some("threads")]);
    assert_eq!(fact("process_name"), Some("threads"));
    assert!(fact("command").expect("a command").ends_with("\u{0}12\u{0}3"));
    assert!(fact("host").is_some() && fact("os").is_some() && fact("cpu_count").is_some());
    assert_eq!((trace.processes[0].rank, trace.processes[0].world_size), (2, Some(4)));
}

#[test]
fn steps_follow_each_other_on_the_main_thread() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    assert!(start(&run, &["12", "1"]).wait().unwrap().success());
    let (_, trace) = read(&run);
    assert_eq!(trace.steps.len(), 13, "the last one begins and does nothing");
    assert!(trace.steps.iter().enumerate().all(|(at, step)| step.number == at as i64), "{:?}", trace.steps);
    let waits = trace.slices.ids().filter(|slice| trace.slice_name(*slice) == "wait");
    for (number, wait) in waits.enumerate() {
        let step = trace.slices.parent(wait).expect("a wait is inside its step");
        assert_eq!(trace.slice_name(step), format!("ProfilerStep#{number}"));
    }
}

#[test]
fn a_program_killed_at_any_moment_keeps_what_it_did() {
    for moment in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        let mut program = start(&run, &["1000000", "3"]);
        let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
        let mut summary = lines.by_ref().take(1 + 53 * moment).map_while(Result::ok).count();
        std::thread::sleep(std::time::Duration::from_micros(137 * moment as u64));
        program.kill().unwrap();
        program.wait().unwrap();
        summary += lines.map_while(Result::ok).filter(|line| line.starts_with("step ")).count();
        let (captures, trace) = read(&run);
        let [capture] = &captures.captures[..] else { panic!("one capture, not {}", captures.captures.len()) };
        assert_eq!((capture.state, capture.dropped, capture.damaged.len()), (State::Killed, 0, 0));
        let steps = capture.steps.iter().filter(|step| !step.is_unfinished).count();
        assert!((summary..=summary + 1).contains(&steps), "{summary} steps were told, {steps} are there");
        for times in counts(&trace, "work").values() {
            assert!((steps..=steps + 1).contains(times), "{times} times in {steps} steps");
        }
        assert_eq!(counts(&trace, "work").len(), 3);
    }
}

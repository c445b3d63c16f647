//! How a recording begins and ends, in processes of its own.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Stdio};
use stepscope::Schedule;
use stepscope_capture::{Capture, State};

/// Runs `scenario` of this file in a process of its own, recording below a fresh run folder; gives its only capture.
fn run(scenario: &str) -> Capture {
    let folder = tempfile::tempdir().unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "scenarios", "--nocapture", "--test-threads=1"])
        .env("STEPSCOPE_TEST_SCENARIO", scenario)
        .env("STEPSCOPE_TEST_FOLDER", folder.path())
        .env_remove("STEPSCOPE_RUN")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.success(), scenario != "panic");
    let mut captures = stepscope_run::open(&folder.path().join("run")).unwrap().captures;
    assert_eq!(captures.len(), 1);
    captures.remove(0)
}

/// Not a test of its own: what the processes started by `run` do.
#[test]
fn scenarios() {
    let Ok(scenario) = std::env::var("STEPSCOPE_TEST_SCENARIO") else { return };
    let folder = std::env::var_os("STEPSCOPE_TEST_FOLDER").expect("a folder");
    let recording = stepscope::record(Path::new(&folder).join("run"));
    match scenario.as_str() {
        "schedule" => {
            stepscope::scope!("before");
            let _run = recording.schedule(Schedule::new().skip_first(1).wait(1).active(2).repeat(2)).start().unwrap();
            for step in 0..10 {
                let name = format!("in {step}");
                stepscope::scope!(name.as_str());
                stepscope::step();
            }
        }
        "no_schedule" => {
            let _run = recording.start().unwrap();
            for _ in 0..3 {
                stepscope::scope!("work");
                stepscope::step();
            }
        }
        "exit" => {
            let _run = recording.start().unwrap();
            stepscope::scope!("work");
            std::process::exit(0);
        }
        "leak" => {
            std::mem::forget(recording.start());
            stepscope::scope!("work");
        }
        "panic" => {
            let _run = recording.start().unwrap();
            stepscope::scope!("work");
            panic!("the program's own failure");
        }
        "twice" => {
            let run = recording.clone().start().unwrap();
            let refused = recording.clone().start().unwrap_err();
            assert_eq!(refused.to_string(), "this process records already");
            stepscope::scope!("work");
            run.stop();
            assert!(!stepscope::is_recording());
        }
        "many_threads_step" => {
            let _run = recording.schedule(Schedule::new()).start().unwrap();
            for _ in 0..6 {
                std::thread::spawn(stepscope::step).join().unwrap();
            }
        }
        other => panic!("unknown scenario {other}"),
    }
}

fn labels(capture: &Capture) -> Vec<&str> {
    capture.events.iter().map(|event| capture.names[event.name as usize].as_str()).collect()
}

/// (number, is unfinished) of each step.
fn steps(capture: &Capture) -> Vec<(i64, bool)> {
    capture.steps.iter().map(|step| (step.number, step.is_unfinished)).collect()
}

#[test]
fn only_active_steps_are_recorded() {
    let capture = run("schedule");
    assert_eq!(labels(&capture), ["in 2", "in 3", "in 5", "in 6"]);
    assert_eq!(steps(&capture), [2, 3, 5, 6].map(|number| (number, false)));
    let windows: Vec<_> = capture.windows.iter().map(|window| (window.is_on, window.cycle)).collect();
    assert_eq!(windows, [(true, 0), (false, 0), (true, 1), (false, 1)]);
    assert_eq!((capture.state, capture.dropped), (State::Closed, 0));
}

#[test]
fn without_a_schedule_steps_are_labelled_from_the_first_mark_on_and_the_last_is_cut() {
    let capture = run("no_schedule");
    assert_eq!(labels(&capture), ["work"; 3]);
    assert_eq!(steps(&capture), [(1, false), (2, false), (3, true)]);
    assert_eq!((capture.state, capture.dropped), (State::Closed, 0));
}

#[test]
fn a_program_that_calls_exit_closes_its_capture() {
    let capture = run("exit");
    assert_eq!((capture.state, capture.dropped), (State::Closed, 0));
    assert_eq!(labels(&capture), ["work"]);
    assert!(capture.events.at(0).is_unfinished);
}

#[test]
fn a_recording_that_nobody_ends_is_closed_with_the_process() {
    let capture = run("leak");
    assert_eq!((capture.state, capture.dropped), (State::Closed, 0));
    assert!(!capture.events.at(0).is_unfinished);
}

#[test]
fn a_panic_ends_scopes_and_recording() {
    let capture = run("panic");
    assert_eq!((capture.state, capture.dropped), (State::Closed, 0));
    assert!(!capture.events.at(0).is_unfinished);
}

#[test]
fn a_second_start_is_refused_and_the_first_goes_on() {
    let capture = run("twice");
    assert_eq!(labels(&capture), ["work"]);
    assert_eq!(capture.state, State::Closed);
}

#[test]
fn a_step_may_end_on_another_thread_than_it_began() {
    let capture = run("many_threads_step");
    assert_eq!(steps(&capture), [0, 1, 2, 3, 4, 5, 6].map(|number| (number, false)));
    assert!(capture.steps.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns), "{:?}", capture.steps);
}

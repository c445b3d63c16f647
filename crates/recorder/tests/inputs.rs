//! What ops are called with: recorded with the real core in processes of its own, and read back.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

mod scenario;

use scenario::{captures, run};
use stepscope_capture::{Capture, State};
use stepscope_recorder as recorder;

/// The sizes that each op was called with, in order; empty for none.
fn dims(capture: &Capture) -> Vec<&str> {
    let of = |row: Option<u32>| row.map_or("", |row| capture.inputs[row as usize].dims.as_str());
    capture.events.iter().map(|event| of(event.inputs)).collect()
}

fn op_inside(name: &str, sizes: &[i64], inside: impl FnOnce()) {
    named_op_inside(recorder::Name::text(name), sizes, inside);
}

fn named_op_inside(named: recorder::Name, sizes: &[i64], inside: impl FnOnce()) {
    let op = sizes.as_ptr() as usize;
    // SAFETY: all texts live during the calls.
    unsafe {
        let put = |signature: &mut recorder::Signature| {
            if !sizes.is_empty() {
                signature.tensor(6, sizes, None);
            }
        };
        recorder::begin_with_inputs(c"".as_ptr(), || named, 0, -1, 0, op, put);
        inside();
        recorder::end(op, || named, || 0);
    }
}

fn op(sizes: &[i64]) {
    op_inside("op", sizes, || {});
}

/// Not a test of its own: what the processes started by `run` do.
#[test]
fn scenarios() {
    let Some((scenario, run)) = scenario::asked() else { return };
    recorder::open(&run, &[]).expect("the capture opens");
    match scenario.as_str() {
        "nested" => {
            let (first, second) = (c"aten::an_op".to_owned(), c"aten::an_op".to_owned());
            let overload = |name: &std::ffi::CStr, overload: &'static std::ffi::CStr| {
                // SAFETY: both live until the ops are recorded.
                unsafe { recorder::Name::stable(name.as_ptr()).with_overload(overload.as_ptr()) }
            };
            named_op_inside(overload(&first, c"Tensor"), &[2, 3], || {
                named_op_inside(overload(&second, c"Scalar"), &[4], || op(&[]));
                op(&[2, 3]);
            });
            recorder::close();
        }
        "threads" => {
            let work = || (0..20_000).for_each(|i| op(&[i % 100, 7]));
            (0..4).map(|_| std::thread::spawn(work)).collect::<Vec<_>>().into_iter().for_each(|t| t.join().unwrap());
            recorder::close();
        }
        "never_the_same" => {
            (0..80_000).for_each(|i| op(&[i, 3]));
            // Known ones are still told apart from those that have no place.
            op(&[5, 3]);
            recorder::close();
        }
        "too_long" => {
            op_inside("outer", &[1], || {
                op(&vec![7; 1 << 20]);
                op(&vec![1 << 40; 60_000]);
                op(&vec![9; 60_000]);
                op(&[2]);
            });
            recorder::close();
        }
        "names_too" => {
            (0..70_000).for_each(|i| op_inside(&format!("name {i}"), &[i % 10], || {}));
            recorder::close();
        }
        "twice" => {
            op(&[1]);
            op(&[2]);
            recorder::close();
            op(&[3]);
            recorder::open(&run, &[]).expect("a second capture opens");
            op(&[2]);
            op(&[1]);
            recorder::close();
        }
        "fork" => {
            op(&[1]);
            op(&[2]);
            // SAFETY: the child only records and leaves.
            let child = unsafe { libc::fork() };
            if child == 0 {
                op(&[2]);
                recorder::close();
                // SAFETY: leaves at once.
                unsafe { libc::_exit(0) };
            }
            // SAFETY: waits for the child above.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            recorder::close();
        }
        "described" => {
            let say = |token, size: i64| {
                let mut signature = recorder::Signature::default();
                signature.tensor(6, &[size], None);
                recorder::describe(token, &signature);
            };
            assert_eq!(recorder::innermost(), None);
            let [a, b, c] = ["a", "b", "c"].map(recorder::begin_label);
            assert_eq!(recorder::innermost(), Some(c));
            [(a, 1), (b, 2), (c, 3), (a, 4)].into_iter().for_each(|(token, size)| say(token, size));
            // Those inside leave the stack, and are still open.
            recorder::end_label(a, "a");
            say(b, 5);
            recorder::end_label(b, "b");
            say(c, 6);
            recorder::end_label(c, "c");
            say(c, 7);
            op(&[8]);
            recorder::close();
            say(c, 9);
        }
        "kill" => {
            (0..100_000).for_each(|i| op(&[i % 5_000, 1]));
            // SAFETY: plain system calls.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        other => panic!("unknown scenario {other}"),
    }
}

#[test]
fn inputs_and_overloads_belong_to_their_ops() {
    let (folder, status) = run("nested");
    assert!(status.success());
    let capture = &captures(folder.path())[0];
    assert_eq!(dims(capture), ["[[2,3]]", "[[4]]", "", "[[2,3]]"]);
    let named = |name: u32| {
        let overload = capture.overloads.get(name as usize).map_or("", String::as_str);
        (capture.names[name as usize].as_str(), overload)
    };
    let names: Vec<_> = capture.events.iter().map(|event| named(event.name)).collect();
    assert_eq!(names, [("aten::an_op", "Tensor"), ("aten::an_op", "Scalar"), ("op", ""), ("op", "")]);
    assert_eq!((capture.inputs.len(), capture.dropped, capture.damaged.len()), (2, 0, 0));
}

#[test]
fn inputs_are_written_once_for_all_threads() {
    let (folder, status) = run("threads");
    assert!(status.success());
    let capture = &captures(folder.path())[0];
    assert_eq!((capture.events.len(), capture.inputs.len()), (80_000, 100));
    let dims = dims(capture);
    for thread in dims.chunks(20_000) {
        assert!(thread.iter().enumerate().all(|(i, dims)| *dims == format!("[[{},7]]", i % 100)));
    }
}

#[test]
fn inputs_without_end_do_not_fill_the_table() {
    let (folder, _) = run("never_the_same");
    let capture = &captures(folder.path())[0];
    let dims = dims(capture);
    assert!(dims[..80_000].iter().enumerate().all(|(i, dims)| *dims == format!("[[{i},3]]")));
    assert_eq!((dims.len(), dims[80_000], capture.dropped), (80_001, "[[5,3]]", 0));
}

#[test]
fn inputs_that_no_segment_holds_are_counted_and_their_op_stays() {
    let (folder, _) = run("too_long");
    let capture = &captures(folder.path())[0];
    let lens: Vec<usize> = dims(capture).iter().map(|dims| dims.len()).collect();
    assert_eq!(lens, [5, 0, 0, 60_000 * 2 + 3, 5]);
    assert_eq!((capture.dropped, capture.damaged.len()), (2, 0));
}

#[test]
fn ops_whose_names_have_no_place_keep_their_inputs() {
    let (folder, _) = run("names_too");
    let capture = &captures(folder.path())[0];
    let dims = dims(capture);
    assert_eq!(dims.len(), 70_000);
    assert!(dims.iter().enumerate().all(|(i, dims)| *dims == format!("[[{}]]", i % 10)));
}

#[test]
fn each_capture_has_inputs_of_its_own() {
    let (folder, _) = run("twice");
    let captures = captures(folder.path());
    assert_eq!(captures.iter().map(dims).collect::<Vec<_>>(), [["[[1]]", "[[2]]"], ["[[2]]", "[[1]]"]]);
}

#[test]
fn a_forked_child_writes_the_inputs_that_it_uses() {
    let (folder, _) = run("fork");
    let captures = captures(folder.path());
    assert_eq!(captures.iter().map(dims).collect::<Vec<_>>(), [vec!["[[1]]", "[[2]]"], vec!["[[2]]"]]);
}

#[test]
fn what_is_open_is_described_at_any_time_and_what_was_said_last_holds() {
    let (folder, _) = run("described");
    let capture = &captures(folder.path())[0];
    let ends: Vec<_> = capture.events.iter().map(|event| capture.names[event.name as usize].as_str()).collect();
    assert_eq!((dims(capture), ends), (vec!["[[4]]", "[[5]]", "[[6]]", "[[8]]"], vec!["a", "b", "c", "op"]));
    assert_eq!((capture.dropped, capture.damaged.len()), (1, 0));
}

#[test]
fn a_killed_process_leaves_all_inputs() {
    let (folder, status) = run("kill");
    assert!(!status.success());
    let capture = &captures(folder.path())[0];
    let dims = dims(capture);
    assert_eq!((capture.state, dims.len(), capture.inputs.len()), (State::Killed, 100_000, 5_000));
    assert!(dims.iter().enumerate().all(|(i, dims)| *dims == format!("[[{},1]]", i % 5_000)));
}

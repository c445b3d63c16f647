//! Calls, recorded with the real core and read back: which are written, and where they begin and end.
#![cfg(target_os = "linux")]

use stepscope_capture::{Capture, read};
use stepscope_recorder::{self as recorder, OpenCall, call_name, scope};

fn push(name: &str) {
    let name = call_name(name);
    recorder::push_call(std::ptr::from_ref(name) as usize, name, scope::PYTHON_CALL, -1, false);
}

fn pop(name: &str) -> bool {
    recorder::pop_call(std::ptr::from_ref(call_name(name)) as usize)
}

fn op(name: &str) {
    let token = 16 * name.len();
    // SAFETY: the name lives during both calls, and no name has the address of the empty one.
    #[allow(unsafe_code)]
    unsafe {
        recorder::begin(c"".as_ptr(), || recorder::Name::text(name), 0, -1, 0, token);
        recorder::end(token, || recorder::Name::text(name), || 0);
    }
}

/// What a capture holds, all of it of one thread: `name` for what ended, each inside the one of lower depth around it.
fn drawn(capture: &Capture) -> Vec<String> {
    let mut open: Vec<i64> = Vec::new();
    let mut lines = Vec::new();
    for event in capture.events.iter() {
        while open.last().is_some_and(|end_ns| *end_ns <= event.start_ns) {
            open.pop();
        }
        let name = &capture.names[event.name as usize];
        let mark = if event.is_unfinished { " …" } else { "" };
        lines.push(format!("{}{name}{mark}", "  ".repeat(open.len().min(9))));
        open.push(event.end_ns);
    }
    lines
}

/// One test: a process has one capture at a time.
#[test]
fn calls_are_written_when_something_is_recorded_inside_them() {
    let run = tempfile::tempdir().unwrap();
    let record = |all: bool, work: &dyn Fn()| {
        let opened = recorder::open(run.path(), &[]).expect("the capture opens");
        let name = call_name("main");
        let main = OpenCall { key: 8, name, scope: scope::PYTHON_CALL };
        recorder::start_calls(all, vec![(recorder::thread_id(), vec![main])]);
        work();
        recorder::stop_calls();
        recorder::close();
        drawn(&read(&opened.path).expect("a capture"))
    };

    let some = || {
        push("idle");
        assert!(pop("idle"));
        push("outer");
        push("inner");
        op("aten::mm");
        assert!(pop("inner"));
        push("idle");
        assert!(pop("idle"));
        op("aten::mul");
        assert!(pop("outer"));
    };
    assert_eq!(record(false, &some), ["main", "  outer", "    inner", "      aten::mm", "    aten::mul"]);
    let all = ["main", "  idle", "  outer", "    inner", "      aten::mm", "    idle", "    aten::mul"];
    assert_eq!(record(true, &some), all);
    assert_eq!(record(false, &|| push("idle")), [""; 0], "nothing was recorded inside");

    // A thread that began since then: what is around its first call is told when that is seen.
    let on_new_thread = || {
        let of_thread = || {
            let enter = |name: &str| {
                let name = call_name(name);
                recorder::push_call(std::ptr::from_ref(name) as usize, name, scope::PYTHON_CALL, -1, false)
            };
            assert!(!enter("first"), "it may lie in others");
            let around = OpenCall { key: 9, name: call_name("bootstrap"), scope: scope::PYTHON_CALL };
            recorder::set_outer_calls(&[around]);
            assert!(enter("second"));
            op("aten::mm");
            assert!(pop("second") && pop("first"));
        };
        std::thread::spawn(of_thread).join().expect("the thread ends");
    };
    for all in [false, true] {
        assert_eq!(record(all, &on_new_thread), ["bootstrap", "  first", "    second", "      aten::mm"]);
    }

    let labelled = || {
        push("enter");
        let token = recorder::begin_label("label");
        assert!(pop("enter"));
        op("aten::mm");
        recorder::end_label(token, "label");
    };
    assert_eq!(record(false, &labelled), ["main", "  label", "    aten::mm"]);

    // The begin that was written last is not of what ends.
    let crossed = || {
        push("enter");
        op("aten::mm");
        let token = recorder::begin_label("label");
        assert!(pop("enter"));
        recorder::end_label(token, "label");
        push("inner");
        let token = recorder::begin_label("other label");
        recorder::end_label(token, "other label");
        op("aten::mul");
        assert!(pop("inner"));
    };
    let of_crossed = ["main", "  enter", "    aten::mm", "    label", "  inner", "    other label", "    aten::mul"];
    assert_eq!(record(true, &crossed), of_crossed);

    // Another capture knows none of the calls that are open, as in a forked child.
    let first = recorder::open(run.path(), &[]).expect("the capture opens");
    recorder::start_calls(true, vec![]);
    recorder::set_outer_calls(&[OpenCall { key: 8, name: call_name("main"), scope: scope::PYTHON_CALL }]);
    push("outer");
    op("aten::mm");
    recorder::close();
    let second = recorder::open(run.path(), &[]).expect("another opens");
    push("inner");
    op("aten::mul");
    assert!(pop("inner") && pop("outer"));
    recorder::stop_calls();
    recorder::close();
    let drawn_of = |opened: &recorder::Opened| drawn(&read(&opened.path).expect("a capture"));
    assert_eq!(drawn_of(&first), ["main …", "  outer …", "    aten::mm"]);
    assert_eq!(drawn_of(&second), ["main", "  outer", "    inner", "      aten::mul"]);

    let unbalanced = || {
        assert!(!pop("never begun"));
        push("outer");
        push("lost");
        op("aten::mm");
        assert!(!pop("outer"), "another is the innermost");
        recorder::pop_outer_call(std::ptr::from_ref(call_name("outer")) as usize, None);
        push("open");
        op("aten::mul");
    };
    assert_eq!(
        record(false, &unbalanced),
        ["main", "  outer", "    lost", "      aten::mm", "  open", "    aten::mul"]
    );

    let deep = || {
        (0..100_000).for_each(|_| push("deep"));
        op("aten::mm");
        (0..100_000).for_each(|_| assert!(pop("deep")));
        op("aten::mul");
    };
    let found = record(false, &deep);
    assert_eq!(found.len(), 100_003);
    assert_eq!([found[0].as_str(), found[100_002].as_str()], ["main", "  aten::mul"]);

    let too_deep = || {
        (0..140_000).for_each(|_| push("deep"));
        (0..140_000).for_each(|_| assert!(pop("deep")));
        op("aten::mul");
    };
    assert_eq!(record(false, &too_deep), ["main", "  aten::mul"]);
    // All are written again once they are less deep.
    let found = record(true, &|| {
        too_deep();
        some();
    });
    let (deep, others): (Vec<String>, Vec<String>) = found.into_iter().partition(|line| line.ends_with("deep"));
    assert_eq!(deep.len(), (1 << 17) - 1, "one is main");
    assert_eq!(others[..2], ["main", "  aten::mul"]);
    assert_eq!(others[2..], all[1..]);
}

//! Samples of stacks: events that name one of the frames that stand beside them.

use super::*;

/// Samples as `time stack doing`.
fn samples(trace: &Trace) -> Vec<String> {
    let of = |sample: &stepscope_trace::StackSample| {
        let stack = sample.stack.map(|stack| trace.stacks.text(stack, &trace.strings));
        format!("{} {} {}", sample.time_ns, stack.as_deref().unwrap_or("–"), sample.doing.as_str())
    };
    trace.stack_samples.iter().map(of).collect()
}

#[test]
fn frames_stand_before_or_behind_the_events_and_none_calls_itself() {
    let frames = r#""stackFrames": {"1": {"name": "main", "category": "a"}, "2": {"name": "f;g", "parent": "1"},
        "3": {"name": "h", "parent": 2}, "7": {"name": "x", "parent": 8}, "8": {"name": "y", "parent": 7},
        "9": {"name": "z", "parent": 99}, "x": {"name": "no number"}, "10": [1], "11": {}}"#;
    let events = r#""traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 9},
        {"ph": "P", "name": "s", "pid": 1, "tid": 1, "ts": 1, "sf": 3, "args": {"Stepscope": "sleep", "ran ns": 5}},
        {"ph": "P", "name": "s", "pid": 1, "tid": 1, "ts": 2, "sf": "2"},
        {"ph": "P", "name": "s", "pid": 1, "tid": 1, "ts": 3, "sf": 7},
        {"ph": "P", "name": "s", "pid": 1, "tid": 1, "ts": 4, "sf": 9},
        {"ph": "P", "name": "s", "pid": 1, "tid": 1, "ts": 5, "sf": 11, "args": {"Stepscope": "running"}},
        {"ph": "P", "name": "s", "pid": 1, "tid": 1, "ts": 6}]"#;
    for text in [format!("{{{frames}, {events}}}"), format!("{{{events}, {frames}}}")] {
        let trace = trace_of(&text);
        let expected =
            ["1000 h;f,g;main sleep", "2000 f,g;main unknown", "3000 x;y unknown", "4000 z unknown", "5000 – running"];
        assert_eq!(samples(&trace), expected);
        assert_eq!((trace.stack_samples[0].ran_ns, trace.stack_samples[0].runnable_ns), (Some(5), None));
        assert_eq!(findings(&trace), ["UnsupportedEvent x1"]);
        assert_eq!(slices(&trace), ["op a 0+9000"]);
    }
}

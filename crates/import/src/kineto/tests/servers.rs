//! Traces of inference servers: no profiler marks steps in them.

use super::of_events;
use stepscope_trace::{IterationKind, Trace};

/// Steps as `start+duration kind, requests, tokens`.
fn steps(trace: &Trace) -> Vec<String> {
    let number = |number: Option<i64>| number.map_or("-".into(), |number: i64| number.to_string());
    let step = |step: &stepscope_trace::Step| {
        let iteration = step.iteration;
        let kind = iteration.kind.map_or("-", IterationKind::as_str);
        let (requests, tokens) = (number(iteration.requests), number(iteration.tokens));
        format!("{}+{} {kind}, {requests}, {tokens}", step.span.start_ns, step.span.duration_ns())
    };
    trace.steps.iter().map(step).collect()
}

fn label(name: &str, start: i64, dur: i64) -> String {
    format!(r#""ph": "X", "cat": "user_annotation", "name": "{name}", "pid": 9, "tid": 9, "ts": {start}, "dur": {dur}"#)
}

#[test]
fn passes_of_the_model_are_steps_that_say_what_they_compute() {
    let labels = [
        label("step[EXTEND bs=2 toks=4096]", 0, 8),
        label("draft", 10, 5),
        label("step[DECODE bs=2]", 11, 3),
        label("step[TARGET_VERIFY bs=2]", 16, 2),
        label("step[DECODE bs=2]", 20, 3),
    ];
    let trace = of_events(&labels.each_ref().map(String::as_str));
    let expected = ["0+8000 prefill, 2, 4096", "16000+2000 verify, 2, -", "20000+3000 decode, 2, 2"];
    assert_eq!(steps(&trace), expected);
    let labels = [label("execute_context_1(7)_generation_2(2)", 5, 4), label("execute_new_0_cached_3", 12, 1)];
    let trace = of_events(&labels.each_ref().map(String::as_str));
    assert_eq!(steps(&trace), ["0+4000 mixed, 3, 9", "7000+1000 -, 3, -"]);
}

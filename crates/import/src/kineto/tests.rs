//! Small texts, one trap each.

mod chunks;
mod damage;
mod devices;
mod servers;
mod stack_samples;

use super::{Source, read};
use crate::ImportError;
use proptest::prelude::*;
use std::path::Path;
use stepscope_trace::{CommBackend, DataParallelism, FindingCode, FlowKind, SliceId, Trace, TrackKind};

/// Whatever the text is: an error that says something, or a trace that keeps the model's promises.
fn check_sane(text: &[u8]) {
    let trace = match try_read(text) {
        Ok(trace) => trace,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    for id in trace.slices.ids() {
        let span = trace.slices.span(id);
        assert!(span.start_ns >= 0 && span.end_ns >= span.start_ns, "time begins at the earliest event");
        let outer = trace.slices.parent(id).map(|parent| trace.slices.span(parent));
        assert!(
            outer.is_none_or(|outer| outer.start_ns <= span.start_ns && span.end_ns <= outer.end_ns),
            "slices nest"
        );
    }
    assert!(trace.device_events.iter().all(|event| trace.slices.kind(event.slice).is_device_event()));
}

fn try_read(text: &[u8]) -> Result<Trace, ImportError> {
    let source = Source { path: Path::new("t.json"), name: "t".into(), packing: None, shared: None };
    read(source, Box::new(text))
}

fn trace_of(text: &str) -> Trace {
    try_read(text.as_bytes()).expect("a trace")
}

/// A trace of `events`, each without its braces.
fn of_events(events: &[&str]) -> Trace {
    let rows: Vec<String> = events.iter().map(|event| format!("{{{event}}}")).collect();
    trace_of(&format!("{{\"traceEvents\": [{}]}}", rows.join(",\n")))
}

/// Slices as `kind name start+duration`, in ns, with `~` when unfinished.
fn slices(trace: &Trace) -> Vec<String> {
    let slice = |id: SliceId| {
        let span = trace.slices.span(id);
        let mark = if trace.slices.is_unfinished[id.index()] { "~" } else { "" };
        let (kind, name) = (trace.slices.kind(id).as_str(), trace.slice_name(id));
        format!("{kind} {name} {}+{}{mark}", span.start_ns, span.duration_ns())
    };
    trace.slices.ids().map(slice).collect()
}

/// Findings as `code xcount`, without the one that says that there are no steps or no device events.
fn findings(trace: &Trace) -> Vec<String> {
    let is_of_interest = |code: FindingCode| !matches!(code, FindingCode::NoSteps | FindingCode::NoDeviceEvents);
    let rows = trace.findings.iter().filter(|finding| is_of_interest(finding.code));
    rows.map(|finding| format!("{:?} x{}", finding.code, finding.count)).collect()
}

fn check(events: &[&str], expected_slices: &[&str], expected_findings: &[&str]) -> Trace {
    let trace = of_events(events);
    assert_eq!(slices(&trace), expected_slices);
    assert_eq!(findings(&trace), expected_findings);
    trace
}

const OP: &str = r#""ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 1, "dur": 4"#;

#[test]
fn a_process_knows_how_its_model_runs_and_what_carries_its_collectives() {
    let row = |name: &str| {
        format!(r#"{{"ph": "X", "cat": "user_annotation", "name": "{name}", "pid": 1, "tid": 1, "ts": 1, "dur": 1}}"#)
    };
    let process = |names: &[&str]| {
        let rows: Vec<String> = names.iter().map(|name| row(name)).collect();
        let trace = trace_of(&format!(
            r#"{{"traceEvents": [{}], "distributedInfo": {{"backend": "cpu:gloo,cuda:gloo", "rank": 0}}}}"#,
            rows.join(",")
        ));
        (trace.processes[0].data_parallelism, trace.processes[0].comm_backend)
    };
    let gloo = Some(CommBackend::Gloo);
    assert_eq!(process(&["forward"]), (None, gloo));
    assert_eq!(process(&["DistributedDataParallel.forward"]), (Some(DataParallelism::Distributed), gloo));
    let both = ["DistributedDataParallel.forward", "DataParallel.forward"];
    assert_eq!(process(&both), (Some(DataParallelism::OneProcess), gloo));
}

#[test]
fn metadata_may_stand_after_the_events() {
    let trace = trace_of(
        r#"{"traceEvents": [
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 1, "tid": 7, "ts": 5, "dur": 1, "args": {"device": 1, "stream": 7}},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 1.001, "dur": 2},
            {"ph": "M", "name": "thread_name", "pid": 9, "tid": "9", "args": {"name": "thread 9 (python) "}},
            {"ph": "M", "name": "process_name", "pid": 9, "tid": 0, "args": {"name": "python"}}],
            "deviceProperties": [{"id": 1, "name": "A100", "numSms": 108}, {"id": 0, "name": "T4"}],
            "distributedInfo": {"rank": 3, "world_size": 8}, "baseTimeNanoseconds": 1000000}"#,
    );
    assert_eq!((trace.processes[0].rank, trace.processes[0].pid, trace.processes[0].world_size), (3, Some(9), Some(8)));
    assert_eq!(trace.processes[0].name, "python");
    let devices: Vec<_> = trace.devices.iter().map(|d| (d.rank, d.ordinal, d.name.as_deref().unwrap_or(""))).collect();
    assert_eq!(devices, [(3, 0, "T4"), (3, 1, "A100")]);
    let event = trace.device_events.iter().next().expect("a kernel");
    assert_eq!(trace.devices[event.device.index()].sm_count, Some(108));
    assert_eq!(
        trace.tracks.iter().map(|track| track.name.as_str()).collect::<Vec<_>>(),
        ["stream 7", "thread 9 (python)"]
    );
    assert_eq!(trace.start_unix_ns, Some(1_000_000 + 1_001));
}

#[test]
fn times_without_a_base_are_unix_times_where_they_can_be() {
    let start = |more: &str, us: &str| {
        let event = format!(r#"{{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": {us}, "dur": 2}}"#);
        trace_of(&format!(r#"{{"traceEvents": [{event}] {more}}}"#)).start_unix_ns
    };
    assert_eq!(start("", "1682725898094185.25"), Some(1_682_725_898_094_185_250));
    assert_eq!(start("", "4733094171936.528"), None);
    assert_eq!(start(r#", "baseTimeNanoseconds": 7"#, "1682725898094185"), Some(1_682_725_898_094_185_007));
}

#[test]
fn a_bare_list_without_its_end_is_read() {
    let trace = trace_of(&format!("[{{{OP}}},\n{{{OP}, \"x\": ["));
    assert_eq!(slices(&trace), ["op aten::mm 0+4000"]);
    assert_eq!(findings(&trace), ["TruncatedInput x1"]);
}

#[test]
fn begins_and_ends_are_paired_by_thread() {
    check(
        &[
            r#""ph": "B", "cat": "cpu_op", "name": "outer", "pid": 1, "tid": 1, "ts": 0"#,
            r#""ph": "B", "cat": "cpu_op", "name": "inner", "pid": 1, "tid": 1, "ts": 2"#,
            r#""ph": "E", "pid": 1, "tid": 2, "ts": 3"#,
            r#""ph": "E", "pid": 1, "tid": 1, "ts": 4"#,
            r#""ph": "X", "cat": "cpu_op", "name": "later", "pid": 1, "tid": 3, "ts": 6, "dur": 3"#,
        ],
        &["op outer 0+9000~", "op inner 2000+2000", "op later 6000+3000"],
        &["UnmatchedBegin x2"],
    );
}

#[test]
fn doubtful_durations_are_repaired_and_reported() {
    check(
        &[
            r#""ph": "X", "cat": "cpu_op", "name": "negative", "pid": 1, "tid": 1, "ts": 1, "dur": -3"#,
            r#""ph": "X", "cat": "cpu_op", "name": "missing", "pid": 1, "tid": 1, "ts": 2"#,
            r#""ph": "X", "cat": "cpu_op", "name": "nan", "pid": 1, "tid": 1, "ts": 3, "dur": NaN"#,
            r#""ph": "X", "cat": "cpu_op", "name": "absurd", "pid": 1, "tid": 1, "ts": 4, "dur": 18446744073709551.615"#,
            r#""ph": "X", "cat": "cpu_op", "name": "no time", "pid": 1, "tid": 1, "ts": "soon", "dur": 1"#,
        ],
        &["op negative 0+0", "op missing 1000+0", "op nan 2000+0"],
        &["NegativeDuration x1", "MissingDuration x2", "UnreadableEvent x2", "RepairedNumber x1"],
    );
}

#[test]
fn phases_that_carry_nothing_here_are_counted() {
    check(
        &[
            OP,
            r#""ph": "C", "name": "memory", "pid": 1, "ts": 1, "args": {"bytes": 4}"#,
            r#""ph": 1, "name": "numbered", "pid": 1, "ts": 1"#,
            r#""ph": "C", "name": "nothing", "pid": 1, "ts": 1, "args": {"text": "a"}"#,
            r#""ph": "s", "cat": "other", "id": 5, "pid": 1, "tid": 1, "ts": 1"#,
            r#""name": "no phase""#,
        ],
        &["op aten::mm 0+4000"],
        &["UnreadableEvent x1", "UnknownPhase x1", "UnsupportedEvent x2"],
    );
}

#[test]
fn counters_are_kept_by_series() {
    let trace = of_events(&[
        r#""ph": "C", "name": "memory", "pid": 1, "ts": 3, "args": {"used": 4.5, "free": 2}"#,
        r#""ph": "C", "name": "memory", "pid": 1, "ts": 1, "args": {"used": 4}"#,
    ]);
    let counters: Vec<_> = trace
        .counters
        .iter()
        .map(|counter| (trace.strings.get(counter.name), counter.time_ns.clone(), counter.value.clone()))
        .collect();
    assert_eq!(counters, [("memory used", vec![0, 2_000], vec![4.0, 4.5]), ("memory free", vec![2_000], vec![2.0])]);
}

#[test]
fn what_ops_say_of_themselves_is_kept() {
    let trace = of_events(&[
        r#""ph": "X", "cat": "python_function", "name": "nn.Module: Linear_0", "pid": 9, "tid": 9, "ts": 0, "dur": 9"#,
        r#""ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 1, "dur": 4, "args": {"Input Dims": [[2, 3],
            [3, 4]], "Input type": ["float", "float"], "Sequence number": 7, "Fwd thread id": 0, "Call stack": "a.py(3): f;b.py(1): g"}"#,
        r#""ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 9, "tid": 9, "ts": 2, "args": {
            "Total Reserved": 90, "Total Allocated": 80, "Bytes": -16, "Addr": 12345, "Device Id": 1, "Device Type": 1}"#,
    ]);
    assert_eq!(slices(&trace), ["module Linear_0 0+9000", "op aten::mm 1000+4000"]);
    assert_eq!(trace.module_calls.iter().map(|call| trace.strings.get(call.class)).collect::<Vec<_>>(), ["Linear"]);
    let info = trace.ops.get(SliceId(1)).expect("facts");
    let inputs = trace.ops.inputs(info.inputs);
    let texts = [inputs.dims, inputs.types, inputs.strides, info.stack].map(|id| trace.strings.get(id));
    assert_eq!(texts, ["[[2,3],[3,4]]", r#"["float","float"]"#, "", "a.py(3): f;b.py(1): g"]);
    assert_eq!((info.sequence_number, info.forward_thread, info.scope), (Some(7), None, 0));
    let free = trace.memory[0];
    assert_eq!((free.time_ns, free.bytes, free.address, free.op), (2_000, -16, 12_345, Some(SliceId(1))));
    assert_eq!((free.allocated_bytes, free.reserved_bytes), (Some(80), Some(90)));
    assert_eq!(trace.devices[free.device.expect("a device").index()].ordinal, 1);
}

#[test]
fn collectives_and_backward_nodes_are_checked() {
    let record = |args: &str| {
        format!(
            r#""ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 9, "tid": 9, "ts": 0, "dur": 1, "args": {{{args}}}"#
        )
    };
    let node = |name: &str, at: i64| {
        format!(
            r#""ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: {name}", "pid": 9, "tid": 8,
               "ts": {at}, "dur": 1, "args": {{"Sequence number": 4, "Fwd thread id": 1}}"#
        )
    };
    let rows = [
        record(""),
        record(
            r#""Collective name": "allreduce", "dtype": "Float", "In msg nelems": 4, "Out msg nelems": 4, "Group size": 2"#,
        ),
        record(r#""Collective name": "allreduce", "dtype": "Float", "In msg nelems": 4"#),
        node("MmBackward0", 1),
        node("MmBackward0", 3),
        node("AddBackward0", 5),
    ];
    let trace = of_events(&rows.each_ref().map(String::as_str));
    assert_eq!(findings(&trace), ["CollectiveWithoutMetadata x2", "SharedBackwardNumber x1"]);
    assert_eq!(trace.collectives.len(), 2);
}

#[test]
fn waits_know_who_waits_and_what_for() {
    let trace = of_events(&[
        r#""ph": "X", "cat": "cuda_runtime", "name": "cudaEventRecord", "pid": 9, "tid": 9, "ts": 0, "dur": 1, "args": {"correlation": 5}"#,
        r#""ph": "X", "cat": "cuda_runtime", "name": "cudaStreamWaitEvent", "pid": 9, "tid": 9, "ts": 2, "dur": 1, "args": {"correlation": 6}"#,
        r#""ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 9, "tid": 9, "ts": 4, "dur": 1, "args": {"correlation": 7}"#,
        r#""ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": 20, "ts": 3, "dur": 4, "args": {
            "cuda_sync_kind": "Stream Wait Event", "stream": 20, "correlation": 6, "device": 0, "wait_on_stream": 7,
            "wait_on_cuda_event_record_corr_id": 5, "wait_on_cuda_event_id": 1}"#,
        r#""ph": "X", "cat": "cuda_sync", "name": "Context Sync", "pid": 0, "tid": -1, "ts": 4, "dur": 1, "args": {"stream": -1, "correlation": 7, "device": 0}"#,
    ]);
    let name = |id: Option<SliceId>| id.map_or("-", |id| trace.slice_name(id));
    let waits: Vec<_> = trace
        .synchronizations
        .iter()
        .map(|wait| (wait.kind.as_str(), wait.stream, wait.event_stream, name(wait.call), name(wait.event_record)))
        .collect();
    let expected = [
        ("stream_wait_event", Some(20), Some(7), "cudaStreamWaitEvent", "cudaEventRecord"),
        ("device", None, None, "cudaDeviceSynchronize", "-"),
    ];
    assert_eq!(waits, expected);
    assert!(slices(&trace).contains(&"host_sync cudaDeviceSynchronize 4000+1000".into()));
}

#[test]
fn rows_without_a_category_are_kept_apart_from_threads() {
    let trace = check(
        &[OP, r#""ph": "X", "name": "mine", "pid": 9, "tid": 9, "ts": 2, "dur": 9"#],
        &["op aten::mm 0+4000", "other mine 1000+9000"],
        &[],
    );
    assert_eq!(trace.tracks[1].kind, TrackKind::Other);
}

#[test]
fn labels_are_told_by_name_in_old_and_new_files() {
    let trace = check(
        &[
            r#""ph": "X", "cat": "Operator", "name": "ProfilerStep#4", "pid": 9, "tid": 9, "ts": 0, "dur": 90"#,
            r#""ph": "X", "cat": "Operator", "name": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "pid": 9, "tid": 9, "ts": 1, "dur": 2"#,
            r#""ph": "X", "cat": "user_annotation", "name": "Optimizer.step#SGD.step", "pid": 9, "tid": 9, "ts": 4, "dur": 2"#,
            r#""ph": "X", "cat": "user_annotation", "name": "forward", "pid": 9, "tid": 9, "ts": 7, "dur": 2"#,
            r#""ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#4", "pid": 0, "tid": 7, "ts": 5, "dur": 2"#,
        ],
        &[
            "step ProfilerStep#4 0+90000",
            "dataloader enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ 1000+2000",
            "optimizer Optimizer.step#SGD.step 4000+2000",
            "annotation forward 7000+2000",
            "device_annotation ProfilerStep#4 5000+2000",
        ],
        &[],
    );
    assert_eq!(trace.steps.iter().map(|step| step.number).collect::<Vec<_>>(), [4]);
}

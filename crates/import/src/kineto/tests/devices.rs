//! Devices, their work, and what it is linked to.

use super::*;

/// Kernels on device 2, an allocation on device 0, and the devices that `properties` describe; devices as `number
/// name`, then that of the allocation.
fn devices(properties: &str, more: &str) -> (Vec<String>, Option<i64>, u64) {
    let trace = trace_of(&format!(
        r#"{{"traceEvents": [
            {{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 2, "tid": 7, "ts": 5, "dur": 1, "args": {{"device": 2, "stream": 7}}}},
            {{"ph": "i", "name": "[memory]", "pid": 9, "tid": 9, "ts": 2, "args": {{"Bytes": 8, "Device Id": 0, "Device Type": 6}}}}
            {more}], "deviceProperties": [{properties}]}}"#
    ));
    let shown =
        |device: &stepscope_trace::Device| format!("{} {}", device.ordinal, device.name.as_deref().unwrap_or("-"));
    let of_memory = trace.memory[0].device.map(|id| trace.devices[id.index()].ordinal);
    (trace.devices.iter().map(shown).collect(), of_memory, trace.findings.count(FindingCode::RenumberedDevice))
}

#[test]
fn the_only_device_described_is_the_only_one_that_worked() {
    let (mi300, other) = (r#"{"id": 0, "name": "MI300X"}"#, r#"{"id": 1, "name": "MI300X"}"#);
    let shown = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    assert_eq!(devices(mi300, ""), (shown(&["2 MI300X"]), Some(2), 1));
    // Where one of several could be meant, nobody says which.
    assert_eq!(devices(&format!("{mi300}, {other}"), "").0, shown(&["0 MI300X", "1 MI300X", "2 -"]));
    let second = r#", {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 3, "tid": 7, "ts": 5, "dur": 1, "args": {"device": 3, "stream": 7}}"#;
    assert_eq!(devices(mi300, second), (shown(&["0 MI300X", "2 -", "3 -"]), Some(0), 0));
    assert_eq!(devices(r#"{"id": 2, "name": "MI300X"}"#, ""), (shown(&["0 -", "2 MI300X"]), Some(0), 0));
}

/// Device events as `name class <launch <op`.
fn device_events(trace: &Trace) -> Vec<String> {
    let name = |id: Option<SliceId>| id.map_or("-", |id| trace.slice_name(id));
    let line = |event: stepscope_trace::DeviceEvent| {
        format!(
            "{} {} <{} <{}",
            trace.slice_name(event.slice),
            event.class.as_str(),
            name(event.launch),
            name(event.op)
        )
    };
    trace.device_events.iter().map(line).collect()
}

#[test]
fn what_is_launched_in_a_collective_communicates_but_for_copies() {
    let trace = of_events(&[
        r#""ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 9, "tid": 9, "ts": 0, "dur": 9"#,
        r#""ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 1, "dur": 1, "args": {"correlation": 9007199254740993}"#,
        r#""ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 9, "tid": 9, "ts": 3, "dur": 1, "args": {"correlation": 9007199254740994}"#,
        r#""ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernelEx", "pid": 9, "tid": 9, "ts": 12, "dur": 1, "args": {"correlation": 3}"#,
        r#""ph": "X", "cat": "kernel", "name": "custom", "pid": 0, "tid": 7, "ts": 20, "dur": 1, "args": {"correlation": 9007199254740993}"#,
        r#""ph": "X", "cat": "Memcpy", "name": "Memcpy", "pid": 0, "tid": "stream 7", "ts": 22, "dur": 1, "args": {"correlation": 9007199254740994, "copy kind": "DtoD"}"#,
        r#""ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 24, "dur": 1, "args": {"correlation": 3}"#,
        r#""ph": "X", "cat": "kernel", "name": "told", "pid": 0, "tid": 7, "ts": 26, "dur": 1, "args": {"Collective name": "allreduce"}"#,
        r#""ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 7, "ts": 28, "dur": 1, "args": {"stream": 4294967295}"#,
    ]);
    let expected = [
        "custom communication <cudaLaunchKernel <record_param_comms",
        "Memcpy memcpy <cudaMemcpyAsync <record_param_comms",
        "gemm compute <cuLaunchKernelEx <-",
        "told communication <- <-",
        "ncclDevKernel_AllReduce communication <- <-",
    ];
    assert_eq!(device_events(&trace), expected);
    assert_eq!(findings(&trace), ["UnlinkedDeviceEvent x2", "CollectiveWithoutMetadata x1"]);
    let streams: Vec<_> = trace.device_events.iter().map(|event| event.stream).collect();
    assert_eq!(streams, [Some(7), Some(7), Some(7), Some(7), None]);
}

#[test]
fn arrows_link_where_correlations_are_missing() {
    let trace = of_events(&[
        r#""ph": "X", "cat": "cpu_op", "name": "forward", "pid": 9, "tid": 9, "ts": 0, "dur": 5"#,
        r#""ph": "X", "cat": "cpu_op", "name": "backward", "pid": 9, "tid": 10, "ts": 30, "dur": 5"#,
        r#""ph": "X", "cat": "cuda_runtime", "name": "launch", "pid": 9, "tid": 9, "ts": 1, "dur": 1"#,
        r#""ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 20, "dur": 1"#,
        r#""ph": "s", "cat": "ac2g", "id": 1, "pid": 9, "tid": 9, "ts": 1"#,
        r#""ph": "f", "cat": "ac2g", "id": 1, "pid": 0, "tid": 7, "ts": 20, "bp": "e""#,
        r#""ph": "f", "cat": "ac2g", "id": 2, "pid": 9, "tid": 9, "ts": 3"#,
        r#""ph": "f", "cat": "ac2g", "id": 1099511627776, "pid": 0, "tid": 7, "ts": 20"#,
        r#""ph": "s", "cat": "fwdbwd", "id": 1, "pid": 9, "tid": 9, "ts": 2"#,
        r#""ph": "f", "cat": "fwdbwd", "id": 1, "pid": 9, "tid": 10, "ts": 30"#,
        r#""ph": "f", "cat": "fwdbwd", "id": 7, "pid": 9, "tid": 10, "ts": 31"#,
    ]);
    assert_eq!(device_events(&trace), ["k compute <launch <forward"]);
    let flows: Vec<_> = trace.flows.iter().filter(|flow| flow.kind == FlowKind::ForwardBackward).collect();
    assert_eq!(flows.len(), 1);
    assert_eq!((trace.slice_name(flows[0].from), trace.slice_name(flows[0].to)), ("forward", "backward"));
    assert_eq!(findings(&trace), ["UnsupportedEvent x1", "UnlinkedFlow x1"]);
}

#[test]
fn work_of_devices_that_nobody_knows_is_told_with_its_count_and_time() {
    let row = |category: &str, pid: u32, args: &str| {
        format!(
            "\"ph\": \"X\", \"cat\": \"{category}\", \"name\": \"w\", \"pid\": {pid}, \"tid\": 7, \"ts\": 10, \"dur\": 5, \"args\": {{{args}}}"
        )
    };
    let of = |rows: &[String]| of_events(&rows.iter().map(String::as_str).collect::<Vec<_>>());
    let name =
        "\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 3, \"args\": {\"name\": \"/device:TPU:0\"}".to_string();
    for (rows, count, ns) in [
        (vec![row("cuda_profiler_range", 0, ""), row("cuda_profiler_range", 0, "")], 2, 10_000),
        (vec![row("npu_task", 0, "\"device\": 0, \"stream\": 7"), row("npu_task", 0, "")], 1, 5_000),
        (vec![row("", 3, ""), name, row("", 4, "")], 1, 5_000),
    ] {
        let trace = of(&rows);
        let found = trace.findings.iter().find(|finding| finding.code == FindingCode::UnknownDeviceWork);
        let example = format!("{count} rows of {ns} ns in all, such as \"w\"");
        assert_eq!(found.map(|found| (found.count, found.examples[0].clone())), Some((count, example)));
        assert_eq!(trace.findings.count(FindingCode::NoDeviceEvents), 0);
    }
    let known = of(&[row("mtia_ccp_events", 0, "\"device\": 0, \"stream\": 7"), row("notes", 1, "")]);
    assert_eq!((known.device_events.len(), known.findings.count(FindingCode::UnknownDeviceWork)), (1, 0));
}

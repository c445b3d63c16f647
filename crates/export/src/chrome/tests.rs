//! The law of this form: what was exported is read back as it was.

use super::{write_chrome, write_chrome_of_rank};
use proptest::prelude::*;
use stepscope_trace::drawn::drawn;
use stepscope_trace::{
    Device, Process, SliceId, SliceKind, StepSource, Trace, TraceBuilder, Track, TrackId, TrackKind,
};

fn exported(trace: &Trace) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_chrome(trace, &mut bytes).expect("memory takes everything");
    bytes
}

/// A slice by what it is, not by its id: names and numbers of its track, kind, name, start, duration.
fn slice(trace: &Trace, id: SliceId) -> String {
    let slices = &trace.slices;
    let at = id.index();
    let (kind, unfinished) = (slices.kind[at], slices.is_unfinished[at]);
    let (start_ns, dur_ns, depth) = (slices.start_ns[at], slices.dur_ns[at], slices.depth[at]);
    let name = trace.slice_name(id);
    format!("{} {kind:?} {name:?} {start_ns}+{dur_ns} {depth} {unfinished}", track(trace, slices.track[at]))
}

fn track(trace: &Trace, id: TrackId) -> String {
    let track = &trace.tracks[id.index()];
    let process = &trace.processes[track.process.index()];
    let device = track.device.map(|id| trace.devices[id.index()].ordinal);
    // What is neither a thread nor a device's carries a number of its own where a thread has it already.
    let tid = track.tid.filter(|_| track.kind == TrackKind::Thread);
    format!("[{} {} {:?} {tid:?} {device:?} {:?} {}]", process.rank, track.name, track.kind, track.stream, track.lane)
}

/// Everything that the law is about, one line each.
fn summary(trace: &Trace) -> Vec<String> {
    let shown = |id: Option<SliceId>| id.map(|id| slice(trace, id));
    let mut lines: Vec<String> = trace.slices.ids().map(|id| slice(trace, id)).collect();
    for event in trace.device_events.iter() {
        let mut facts = event;
        (facts.slice, facts.launch, facts.op) = (SliceId(0), None, None);
        lines.push(format!("{} {:?} {:?} {facts:?}", slice(trace, event.slice), shown(event.launch), shown(event.op)));
    }
    for wait in &trace.synchronizations {
        let (call, record) = (shown(wait.call), shown(wait.event_record));
        lines.push(format!("{} {:?} {:?} {call:?} {record:?}", slice(trace, wait.slice), wait.kind, wait.event_stream));
    }
    for row in &trace.collectives {
        let text = |id| trace.strings.get(id);
        let (name, group) = (text(row.name), text(row.group));
        let numbers = (row.input_elements, row.output_elements, row.group_size, row.sequence_number);
        let sides = (row.group_rank, row.source_rank, row.destination_rank, row.is_async);
        let texts = [row.dtype, row.group_ranks, row.input_split_sizes, row.output_split_sizes].map(text);
        lines.push(format!("{} {name} {group} {texts:?} {numbers:?} {sides:?}", slice(trace, row.slice)));
    }
    for (id, info) in trace.ops.slice.iter().zip(&trace.ops.info) {
        let inputs = trace.ops.inputs(info.inputs);
        let inputs = [inputs.dims, inputs.types, inputs.strides, inputs.concrete].map(|id| trace.strings.get(id));
        let numbers = (info.sequence_number, info.forward_thread);
        lines.push(format!("{} {numbers:?} {inputs:?} {:?}", slice(trace, *id), trace.strings.get(info.stack)));
    }
    let mut flows: Vec<String> = trace
        .flows
        .iter()
        .map(|flow| format!("{:?} {} {}", flow.kind, slice(trace, flow.from), slice(trace, flow.to)))
        .collect();
    flows.sort_unstable();
    lines.extend(flows);
    for event in &trace.memory {
        let device = event.device.map(|id| trace.devices[id.index()].ordinal);
        let sizes = (event.bytes, event.allocated_bytes, event.reserved_bytes, event.address);
        lines.push(format!(
            "{} {} {device:?} {sizes:?} {:?}",
            event.time_ns,
            track(trace, event.track),
            shown(event.op)
        ));
    }
    for counter in &trace.counters {
        let name = trace.strings.get(counter.name);
        lines.push(format!("{name} {:?} {:?}", counter.time_ns, counter.value));
    }
    for sample in &trace.stack_samples {
        let stack = sample.stack.map(|stack| trace.stacks.text(stack, &trace.strings));
        let numbers = (sample.doing, sample.ran_ns, sample.runnable_ns);
        lines.push(format!("{} {} {stack:?} {numbers:?}", sample.time_ns, track(trace, sample.track)));
    }
    for at in 0..trace.instants.len() {
        let instants = &trace.instants;
        let name = trace.strings.get(instants.name[at]);
        lines.push(format!("{} {} {name}", instants.time_ns[at], track(trace, instants.track[at])));
    }
    for step in &trace.steps {
        lines.push(format!("{} {} {:?} {:?} {}", step.rank, step.number, step.span, step.source, step.is_complete));
    }
    for device in &trace.devices {
        lines.push(format!("{device:?}"));
    }
    lines.push(format!("{:?}", trace.start_unix_ns));
    lines
}

/// Exports, reads back, compares line by line.
fn check(trace: &Trace) {
    let bytes = exported(trace);
    let value: serde_json::Value = serde_json::from_slice(&bytes).expect("strict JSON");
    assert_eq!(value["schemaVersion"], 1);
    let again = stepscope_import::open_bytes("again.json", &bytes).expect("a trace");
    let (before, after) = (summary(trace), summary(&again));
    for (line, (before, after)) in before.iter().zip(&after).enumerate() {
        assert_eq!(before, after, "line {line} of {}", trace.name);
    }
    assert_eq!(before.len(), after.len());
    let (before, after) = (trace.findings.iter(), again.findings.iter());
    assert!(after.count() <= before.count() + 1, "{:?}", again.findings);
}

#[test]
fn a_drawn_trace_is_read_back_as_it_was() {
    check(&drawn(
        "rank 0 step      00001111
         rank 0 cpu 1     aaaabbbb
         rank 0 cpu 1     .xx.....
         rank 0 input 1   ......ii
         rank 0 label 2   llllllll
         rank 0 launch 1  .CH.....
         rank 0 stream 7  ..CC.NN.
         rank 0 stream 9  ...HHHZK",
    ));
}

#[test]
fn what_kineto_writes_is_there() {
    let trace = drawn("rank 0 cpu 1 aaaa\nrank 0 launch 1 .C..\nrank 0 stream 7 ..CC");
    let value: serde_json::Value = serde_json::from_slice(&exported(&trace)).unwrap();
    let events = value["traceEvents"].as_array().unwrap();
    let named = |name: &str, phase: &str| events.iter().find(|event| event["name"] == name && event["ph"] == phase);
    let kernels: Vec<_> = events.iter().filter(|event| event["cat"] == "kernel").collect();
    let launch = events.iter().find(|event| event["cat"] == "cuda_runtime").unwrap();
    let op = named("a", "X").unwrap();
    assert_eq!(kernels.len(), 1);
    assert_eq!((kernels[0]["ts"].as_f64(), kernels[0]["dur"].as_f64()), (Some(2.0), Some(2.0)));
    assert_eq!(kernels[0]["args"]["correlation"], launch["args"]["correlation"]);
    assert_eq!(kernels[0]["args"]["External id"], op["args"]["External id"]);
    assert_eq!(launch["args"]["External id"], op["args"]["External id"]);
    assert_eq!((&kernels[0]["pid"], &kernels[0]["tid"]), (&0.into(), &7.into()));
    let (start, finish) = (named("ac2g", "s").unwrap(), named("ac2g", "f").unwrap());
    assert_eq!((&start["id"], &start["ts"], &finish["ts"]), (&finish["id"], &launch["ts"], &kernels[0]["ts"]));
    assert_eq!(finish["bp"], "e");
    assert!(named("process_labels", "M").is_some() && named("thread_name", "M").is_some());
}

#[test]
fn samples_of_stacks_are_read_back_as_they_were() {
    let mut trace = drawn("rank 0 cpu 1 aaaa\nrank 0 samples 1 f.G.f\nrank 0 samples 2 .h");
    (trace.stack_samples[1].ran_ns, trace.stack_samples[1].runnable_ns) = (Some(1_999), Some(0));
    trace.stack_samples[2].stack = None;
    check(&trace);
    let value: serde_json::Value = serde_json::from_slice(&exported(&trace)).expect("strict JSON");
    let events = value["traceEvents"].as_array().expect("a list");
    let samples: Vec<_> = events.iter().filter(|event| event["ph"] == "P").collect();
    let frame = |id: &serde_json::Value| &value["stackFrames"][id.to_string()];
    let innermost = frame(&samples[0]["sf"]);
    assert_eq!((samples.len(), &innermost["name"]), (4, &"f.py(7): f".into()));
    assert_eq!(frame(&innermost["parent"])["name"], "main.py(1): main");
    assert!(samples.iter().all(|sample| sample.get("dur").is_none()));
    // A rank has its own samples, and the frames of these alone.
    let ranks = drawn("rank 0 cpu 1 a\nrank 0 samples 1 f\nrank 1 cpu 1 a\nrank 1 samples 1 g");
    let mut bytes = Vec::new();
    write_chrome_of_rank(&ranks, 1, &mut bytes).expect("memory takes everything");
    let text = String::from_utf8(bytes).expect("text");
    assert!(text.contains("g.py(7): g") && !text.contains("f.py(7): f"));
    assert!(!String::from_utf8(exported(&drawn("rank 0 cpu 1 a"))).expect("text").contains("stackFrames"));
}

#[test]
fn counters_are_read_back_as_they_were() {
    let mut builder = TraceBuilder::new("counters");
    let process = builder.add_process(Process { pid: Some(7), ..Process::default() });
    let track = builder.add_track(Track { tid: Some(8), ..Track::new(TrackKind::Thread, process, "main") });
    let op = builder.strings.intern("op");
    builder.add_slice(track, SliceKind::Op, op, 0, 5_000);
    for (name, values) in [("load", [0.5, 0.25]), ("memory used", [4.0, 1e9])] {
        let name = builder.strings.intern(name);
        let (time_ns, value) = (vec![1_000, 3_001], values.to_vec());
        builder.add_counter(stepscope_trace::Counter { name, process, device: None, time_ns, value });
    }
    let trace = builder.finish();
    assert_eq!(trace.counters.len(), 2);
    check(&trace);
}

#[test]
fn labels_on_devices_have_no_stream_that_would_make_them_device_work() {
    let mut builder = TraceBuilder::new("projection");
    let process = builder.add_process(Process::default());
    let device = builder.add_device(Device::default());
    let mut track = Track::new(TrackKind::Projection, process, "stream 7");
    (track.device, track.stream) = (Some(device), Some(7));
    let track = builder.add_track(track);
    let name = builder.strings.intern("nccl:all_reduce");
    builder.add_slice(track, SliceKind::DeviceAnnotation, name, 0, 5);
    let trace = builder.finish();
    let value: serde_json::Value = serde_json::from_slice(&exported(&trace)).unwrap();
    let events = value["traceEvents"].as_array().unwrap();
    let label = events.iter().find(|event| event["cat"] == "gpu_user_annotation").unwrap();
    assert_eq!(label["args"], serde_json::json!({}));
    check(&trace);
}

/// A thread of operators and optimizers with marks in these; the last step is cut when the process is.
fn inferred(has_data: bool, is_cut: bool) -> Trace {
    let mut builder = TraceBuilder::new("inferred");
    let process = builder.add_process(Process { pid: Some(7), ..Process::default() });
    let track = builder.add_track(Track { tid: Some(8), ..Track::new(TrackKind::Thread, process, "main") });
    let helper = builder.add_track(Track { tid: Some(9), ..Track::new(TrackKind::Thread, process, "helper") });
    let [op, data, optimizer] =
        ["op", "enumerate(x)", "Optimizer.step#A.step"].map(|name| builder.strings.intern(name));
    builder.add_slice(helper, SliceKind::Op, op, 0, 500_000);
    for step in 0..3 {
        let start = step * 100_000;
        if has_data {
            builder.add_slice(track, SliceKind::DataLoader, data, start + 1_000, 9_000);
        }
        builder.add_slice(track, SliceKind::Op, op, start + 10_000, 50_000);
        builder.add_slice(track, SliceKind::Optimizer, optimizer, start + 60_000, 30_000);
        builder.add_slice(track, SliceKind::Op, op, start + 65_000, 5_000);
        builder.add_step_mark(track, start + 66_000, None);
    }
    if is_cut {
        builder.add_slice(track, SliceKind::Op, op, 310_000, 20_000);
        builder.set_cut(process);
    }
    builder.finish()
}

#[test]
fn inferred_steps_are_read_back_as_inferred() {
    for (has_data, is_cut) in [(true, false), (true, true), (false, false), (false, true)] {
        let trace = inferred(has_data, is_cut);
        assert_eq!(trace.steps.len(), if is_cut { 4 } else { 3 });
        assert!(trace.steps.iter().all(|step| step.source == StepSource::Optimizer));
        check(&trace);
    }
}

#[test]
fn a_file_of_one_rank_has_that_rank_alone_and_all_of_it() {
    let rank = |rank: u32| {
        format!("rank {rank} step 0000\nrank {rank} cpu 1 aaab\nrank {rank} launch 1 .C..\nrank {rank} stream 7 ..CC\n")
    };
    let both = drawn(&(rank(0) + &rank(1)));
    for of in [0, 1] {
        let mut bytes = Vec::new();
        write_chrome_of_rank(&both, of, &mut bytes).expect("memory takes everything");
        let value: serde_json::Value = serde_json::from_slice(&bytes).expect("strict JSON");
        assert_eq!(value["distributedInfo"]["rank"], of);
        let again = stepscope_import::open_bytes("again.json", &bytes).expect("a trace");
        let own = drawn(&rank(of));
        let without_start =
            |trace: &Trace| summary(trace).into_iter().filter(|line| !line.starts_with("Some(")).collect::<Vec<_>>();
        assert_eq!(without_start(&again), without_start(&own));
    }
}

#[test]
fn ranks_with_the_same_device_stay_apart() {
    let trace = drawn("rank 0 stream 7 CC..\nrank 1 stream 7 .CC.");
    let again = stepscope_import::open_bytes("again.json", &exported(&trace)).unwrap();
    let lanes: Vec<_> =
        again.tracks.iter().map(|track| (track.name.as_str(), track.lane, track.slices.len())).collect();
    assert_eq!(lanes, [("stream 7", 0, 1), ("stream 7", 0, 1)]);
    assert_eq!(again.devices.iter().map(|device: &Device| device.ordinal).collect::<Vec<_>>(), [0, 1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_drawn_trace_is_read_back_as_it_was(
        rows in prop::collection::vec((0..6_usize, "[a-zA-Z.|]{1,40}"), 1..12),
    ) {
        const KINDS: [&str; 6] = ["cpu 1", "cpu 2", "launch 1", "input 2", "stream 7", "label 1"];
        let row = |(kind, cells): &(usize, String)| format!("rank 0 {} {cells}\n", KINDS[*kind]);
        check(&drawn(&rows.iter().map(row).collect::<String>()));
    }
}

#[test]
fn real_traces_are_read_back_as_they_were() {
    for path in crate::tests::real_traces() {
        check(&stepscope_import::open(&path).expect("a trace"));
    }
}

#[test]
fn metadata_stands_as_the_json_that_it_is() {
    let mut trace = drawn("rank 0 cpu 1 ab");
    let facts = [
        ("metadata.list", "[1, {\"a\": null}]"),
        ("metadata.text", "\"v\\\"q\""),
        ("metadata.broken", "[1, "),
        ("distributedInfo.backend", "gloo"),
        ("distributedInfo.pg_config", "[{\"pg_name\": \"0\"}]"),
        ("list", "what is said twice is written once"),
    ];
    trace.facts = facts.map(|(key, value)| (key.into(), value.into())).into();
    let text = String::from_utf8(exported(&trace)).unwrap();
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["list"], serde_json::json!([1, {"a": null}]));
    assert_eq!((read["text"].as_str(), read["broken"].as_str()), (Some("v\"q"), Some("[1, ")));
    assert_eq!(read["distributedInfo"]["backend"], "gloo");
    assert_eq!(read["distributedInfo"]["pg_config"][0]["pg_name"], "0");
    assert_eq!(text.matches("\"list\"").count(), 1);
}

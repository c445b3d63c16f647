//! Traces that other people's profilers wrote, where the folder with them is there: numbers worked out independently,
//! and laws that hold for every trace.

use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use stepscope_analyses::collectives::{Collectives, collectives};
use stepscope_analyses::memory_summary::memory_summary;
use stepscope_analyses::operators::operators;
use stepscope_analyses::step_breakdown::step_breakdown;
use stepscope_analyses::temporal_breakdown::{TemporalBreakdown, temporal_breakdown};
use stepscope_analyses::{AnalysisContext, Outcome, Selection, Table, catalogue};
use stepscope_import::{open, open_bytes};
use stepscope_trace::{Iteration, IterationKind, StepSource, Trace};

fn folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let folder = std::env::var_os("STEPSCOPE_TRACES").map_or(beside, PathBuf::from);
    folder.join("kineto").is_dir().then_some(folder)
}

/// Every Kineto file, by name.
fn files() -> Vec<PathBuf> {
    let Some(folder) = folder() else { return Vec::new() };
    let entries = std::fs::read_dir(folder.join("kineto")).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    // Beside traces that are looked at there is a folder of what is kept of them.
    files.retain(|path| path.is_file());
    files.sort_unstable();
    files
}

fn name(path: &Path) -> String {
    path.file_name().expect("a file").to_string_lossy().into_owned()
}

fn unpacked(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let packed = std::fs::read(path).expect("a readable file");
    flate2::read::MultiGzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).expect("gzip data");
    bytes
}

fn outcomes(trace: &Trace) -> Vec<Outcome> {
    catalogue().iter().map(|analysis| (analysis.run)(&AnalysisContext::new(trace, &Selection::default()))).collect()
}

/// The numbers of `temporal.jsonl` that a device's breakdown gives.
fn fields(row: &TemporalBreakdown) -> [(&'static str, i64); 8] {
    [
        ("device_events", row.device_events),
        ("span_ns", row.span_ns),
        ("compute_ns", row.compute_ns),
        ("comm_ns", row.comm_ns),
        ("exposed_comm_ns", row.exposed_comm_ns),
        ("copy_ns", row.copy_ns),
        ("exposed_copy_ns", row.exposed_copy_ns),
        ("idle_ns", row.idle_ns),
    ]
}

#[test]
fn device_time_equals_the_independent_numbers_to_the_nanosecond() {
    let Some(folder) = folder() else { return };
    let lines = std::fs::read_to_string(folder.join("temporal.jsonl")).expect("the numbers");
    let mut wrong = Vec::new();
    for line in lines.lines() {
        let expected: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        let file = expected["file"].as_str().expect("a file's name");
        let trace = open(folder.join("kineto").join(file)).expect("a trace");
        let rows = temporal_breakdown(&trace, &Selection::default());
        if expected["device_events"] == 0 {
            assert!(rows.is_empty(), "{file}");
            continue;
        }
        assert_eq!(rows.len(), 1, "{file} has one busy device");
        let kernels = stepscope_analyses::kernels::kernels(&trace, &Selection::default());
        let kernel_sum = ("kernel_sum_ns", kernels.iter().map(|kernel| kernel.total_ns).sum());
        for (field, found) in fields(&rows[0]).into_iter().chain([kernel_sum]) {
            if expected[field].as_i64() != Some(found) {
                wrong.push(format!("{file} {field}: expected {}, found {found}", expected[field]));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_analysis_answers_and_opening_twice_gives_the_same() {
    for path in files() {
        let (once, again) = (open(&path).expect("a trace"), open(&path).expect("a trace"));
        assert_eq!(outcomes(&once), outcomes(&again), "{}", name(&path));
        assert_eq!(once.findings, again.findings);
        assert_eq!(once.tracks, again.tracks);
    }
}

#[test]
fn no_event_is_unreadable_in_a_sound_trace() {
    use stepscope_trace::FindingCode::*;
    for path in files() {
        let trace = open(&path).expect("a trace");
        for code in [UnreadableEvent, TruncatedInput, UnknownPhase, NegativeDuration, MissingDuration, UnmatchedBegin] {
            assert_eq!(trace.findings.count(code), 0, "{} {code:?}", name(&path));
        }
    }
}

#[test]
fn a_cut_trace_gives_what_stands_before_the_cut() {
    for path in
        files().iter().filter(|path| name(path).starts_with("mi300_sglang") || name(path).starts_with("a100_alexnet"))
    {
        let bytes = unpacked(path);
        let mut slices_before = 0;
        for cut in (1..50).map(|part| bytes.len() * part / 50) {
            let Ok(trace) = open_bytes(path, &bytes[..cut]) else {
                assert_eq!(slices_before, 0, "a longer part of {} is still a trace", name(path));
                continue;
            };
            assert!(trace.slices.len() >= slices_before, "cut at {cut}");
            assert!(
                trace.findings.iter().any(|finding| finding.code.code() == "import.truncated_input"),
                "cut at {cut}"
            );
            assert_eq!(outcomes(&trace).len(), catalogue().len());
            slices_before = trace.slices.len();
        }
        assert!(slices_before > 0);
    }
}

#[test]
fn damaged_bytes_give_a_trace_or_an_error_and_lose_little() {
    let Some(path) = files().into_iter().find(|path| name(path).starts_with("mi300_torch_compile")) else { return };
    let bytes = unpacked(&path);
    let whole = open_bytes(&path, &bytes).expect("a trace").slices.len();
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as usize
    };
    let mut least = whole;
    for _ in 0..400 {
        let mut damaged = bytes.clone();
        for _ in 0..random() % 3 + 1 {
            let at = random() % damaged.len();
            damaged[at] = random() as u8;
        }
        if let Ok(trace) = open_bytes(&path, &damaged) {
            least = least.min(trace.slices.len());
            assert_eq!(outcomes(&trace).len(), catalogue().len());
        }
    }
    assert!(least + 12 >= whole, "three damaged bytes cost {} of {whole} slices", whole - least);
}

/// Every `"ts": ` of the text moved by whole microseconds.
fn shifted(bytes: &[u8], by_us: i64) -> Vec<u8> {
    let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let mut moved = String::with_capacity(text.len() + 64);
    let mut rest = text.as_str();
    while let Some(at) = rest.find("\"ts\": ") {
        let (before, number) = rest.split_at(at + 6);
        let len = number.find(|c: char| !c.is_ascii_digit()).expect("more text");
        moved += before;
        moved += &(number[..len].parse::<i64>().expect("whole microseconds") + by_us).to_string();
        rest = &number[len..];
    }
    moved.push_str(rest);
    moved.into_bytes()
}

#[test]
fn moving_all_times_changes_no_result() {
    for path in files().iter().filter(|path| name(path).contains("mi250") || name(path).contains("a100_event")) {
        let bytes = unpacked(path);
        let here = open_bytes(path, &bytes).expect("a trace");
        let there = open_bytes(path, &shifted(&bytes, 86_400_000_123)).expect("a trace");
        assert_ne!(here.slices.len(), 0);
        for (here, there) in outcomes(&here).iter().zip(outcomes(&there)) {
            assert_eq!((&here.table, here.coverage), (&there.table, there.coverage), "{}", name(path));
        }
    }
}

/// The rows of the text in another order: what was behind `at` of 100 comes first.
fn turned(bytes: &[u8], at: usize) -> Option<Vec<u8>> {
    let mut members: BTreeMap<&str, &RawValue> = serde_json::from_slice(bytes).ok()?;
    let mut rows: Vec<&RawValue> = serde_json::from_str(members.remove("traceEvents")?.get()).ok()?;
    let middle = rows.len() * at / 100;
    rows.rotate_left(middle);
    let rows: Vec<&str> = rows.iter().map(|row| row.get()).collect();
    let others = members.iter().map(|(key, value)| format!(", \"{key}\": {}", value.get())).collect::<String>();
    Some(format!("{{\"traceEvents\": [{}]{others}}}", rows.join(",\n")).into_bytes())
}

#[test]
fn the_order_of_rows_changes_no_result() {
    // Examples of findings are the first ones met.
    let without_examples = |mut table: Table| {
        table.columns.retain(|column| column.name != "examples");
        table
    };
    for path in &files() {
        let bytes = unpacked(path);
        let here = outcomes(&open_bytes(path, &bytes).expect("a trace"));
        for at in [37, 61] {
            let turned = turned(&bytes, at).expect("an object with traceEvents");
            let there = outcomes(&open_bytes(path, &turned).expect("a trace"));
            for ((here, there), analysis) in here.iter().zip(there).zip(catalogue()) {
                let tables = [here.table.clone(), there.table].map(without_examples);
                assert!(tables[0] == tables[1], "{} of {}, turned at {at} %", analysis.name, name(path));
                assert_eq!(here.coverage, there.coverage);
            }
        }
    }
}

#[test]
fn steps_and_launches_are_found_where_they_are() {
    let by_name: BTreeMap<String, PathBuf> = files().into_iter().map(|path| (name(&path), path)).collect();
    let steps = |file: &str| {
        let trace = open(by_name.get(file)?).expect("a trace");
        Some((trace.steps.len(), trace.device_events.iter().filter(|event| event.launch.is_none()).count()))
    };
    if by_name.is_empty() {
        return;
    }
    assert_eq!(steps("v100_resnet50_old_schema.pt.trace.json.gz"), Some((6, 0)));
    assert_eq!(steps("mi250_toy_train.json.gz"), Some((2, 0)));
    assert_eq!(steps("h100_qwen_stacks_memory.json.gz").map(|found| found.0), Some(1));
}

#[test]
fn steps_inferred_from_kernels_are_those_that_the_job_labelled() {
    let Some(folder) = folder() else { return };
    for file in
        ["v100_ns_resolution.json.gz", "v100_resnet50_old_schema.pt.trace.json.gz", "a100_ddp_nccl_rank.json.gz"]
    {
        let path = folder.join("kineto").join(file);
        let labelled = open(&path).expect("a trace");
        let text = String::from_utf8_lossy(&unpacked(&path)).replace("ProfilerStep#", "ProfilerStop#");
        let unlabelled = open_bytes(&path, text.as_bytes()).expect("a trace");
        assert!(unlabelled.steps.iter().all(|step| step.source == StepSource::Kernels && step.is_complete), "{file}");
        assert_eq!(unlabelled.steps.len(), labelled.steps.len(), "{file}");
        for (inferred, label) in unlabelled.steps.iter().zip(&labelled.steps) {
            assert!(label.span.contains(inferred.span.start_ns), "{file}: step {}", label.number);
        }
    }
    // One pass through 36 layers, in one call of a module.
    let file = "b200_eager_8gpu_stacks.json.gz";
    let trace = open(folder.join("kineto").join(file)).expect("a trace");
    assert!(trace.steps.iter().all(|step| step.source == StepSource::Whole), "{file}: layers are no steps");
}

/// One pass through 36 layers, in one launch of a graph, which the server labels twice.
#[test]
fn a_pass_of_a_server_is_a_step_that_says_what_it_computes() {
    let Some(folder) = folder() else { return };
    let trace = open(folder.join("kineto/mi300_sglang_decode_graphs.json.gz")).expect("a trace");
    let steps: Vec<_> = trace.steps.iter().map(|step| (step.source, step.iteration)).collect();
    let decode = Iteration { kind: Some(IterationKind::Decode), requests: Some(32), tokens: Some(32) };
    assert_eq!(steps, [(StepSource::Label, decode)]);
}

#[test]
fn a_device_that_is_numbered_otherwise_has_its_description() {
    let Some(folder) = folder() else { return };
    let trace = open(folder.join("kineto/mi300_qwen_stacks_memory.json.gz")).expect("a trace");
    let devices: Vec<_> = trace.devices.iter().map(|device| (device.ordinal, device.name.as_deref())).collect();
    assert_eq!(devices, [(2, Some("AMD Instinct MI300X VF"))]);
}

#[test]
fn memory_of_old_traces_equals_an_independent_count() {
    let Some(folder) = folder() else { return };
    let trace = open(folder.join("kineto/v100_resnet50_old_schema.pt.trace.json.gz")).expect("a trace");
    let bytes = |is_on_device: bool| {
        let events = trace.memory.iter().filter(move |event| event.device.is_some() == is_on_device);
        let allocated: i64 = events.clone().map(|event| event.bytes.max(0)).sum();
        (events.clone().count(), allocated, events.map(|event| event.bytes).sum::<i64>())
    };
    assert_eq!(bytes(false), (4_618, 375_732_528, 19_267_840));
    assert_eq!(bytes(true), (8_220, 63_689_511_936, 0));
    let rows = memory_summary(&trace, &Selection::default());
    assert_eq!(rows.iter().map(|row| row.peak_bytes).collect::<Vec<_>>(), [57_803_264, 2_791_636_480]);
}

#[test]
fn step_time_equals_an_independent_sweep_to_the_nanosecond() {
    let Some(folder) = folder() else { return };
    let row = |file: &str, step| {
        let trace = open(folder.join("kineto").join(file)).expect("a trace");
        let row = step_breakdown(&trace, &Selection { step: Some(step), ..Selection::default() }).remove(0);
        let device = [row.kernel_ns, row.comm_ns, row.memcpy_ns, row.memset_ns];
        (row.total_ns, device, [row.runtime_ns, row.dataloader_ns, row.cpu_ns, row.other_ns])
    };
    assert_eq!(
        row("a100_ddp_nccl_rank.json.gz", 4),
        (222_442_191, [38_506_406, 10_163_762, 647_181, 121_572], [10_259_843, 0, 137_108_473, 25_634_954])
    );
    assert_eq!(
        row("v100_resnet50_old_schema.pt.trace.json.gz", 5),
        (176_078_000, [87_356_000, 0, 1_941_000, 85_000], [2_796_000, 68_694_000, 12_667_000, 2_539_000])
    );
}

#[test]
fn operator_time_equals_an_independent_walk_to_the_nanosecond() {
    let Some(folder) = folder() else { return };
    let trace = open(folder.join("kineto/h100_qwen_stacks_memory.json.gz")).expect("a trace");
    let rows = operators(&trace, &Selection::default());
    let numbers = rows[..3].iter().map(|row| {
        (
            row.label.name.as_str(),
            row.count,
            row.host_total_ns,
            row.host_self_ns,
            row.device_total_ns,
            row.device_self_ns,
        )
    });
    let expected = [
        ("aten::linear", 168, 9_746_082, 755_251, 8_997_754, 0),
        ("aten::matmul", 97, 4_893_947, 647_773, 6_672_199, 0),
        ("aten::mm", 96, 3_690_535, 3_690_535, 6_668_679, 6_668_679),
    ];
    assert_eq!(numbers.collect::<Vec<_>>(), expected);
}

/// Counted in the file by a script: labels of NCCL, each with one input, of PyTorch before it said what a collective carries.
#[test]
fn collectives_of_older_traces_have_the_sizes_of_their_labels() {
    for path in files().iter().filter(|path| name(path) == "sampled_128_rank0.json.gz") {
        let trace = open(path).expect("a trace");
        let line = |row: &Collectives| {
            let (name, dtype) = (row.name.as_deref().unwrap_or("-"), row.dtype.as_deref().unwrap_or("-"));
            format!(
                "{} x {name} of {:?} {dtype}, {:?} bytes",
                row.calls.unwrap_or(0),
                row.input_elements,
                row.size_bytes
            )
        };
        let rows = collectives(&trace, &Selection::default());
        let mut lines: Vec<String> = rows.iter().map(line).collect();
        lines.sort_unstable();
        let expected = [
            "1 x all_reduce of Some(19618307) Float, Some(78473228) bytes",
            "1 x all_reduce of Some(26258430) Float, Some(105033720) bytes",
            "1 x all_reduce of Some(26955536) Float, Some(107822144) bytes",
            "1 x all_reduce of Some(5716654) Float, Some(22866616) bytes",
            "1 x all_to_all of Some(2846720) Int, Some(11386880) bytes",
            "1 x all_to_all of Some(384) Long, Some(3072) bytes",
            "2 x _all_gather_base of Some(16777216) Char, None bytes",
            "2 x all_to_all of Some(419430400) Byte, Some(419430400) bytes",
        ];
        assert_eq!(lines, expected);
        assert!(rows.iter().all(|row| row.kernels == row.calls), "each has launched one kernel");
    }
}

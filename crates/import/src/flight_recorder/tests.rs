use super::*;
use crate::{open, open_bytes};
use stepscope_trace::FindingCode as Code;

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/flight-recorder").join(name)
}

/// A dump of NCCL with these entries, as JSON.
fn dump(entries: &str) -> String {
    format!(
        r#"{{"comm_lib_version":"2.29.7","entries":[{entries}],
        "pg_config":{{"0":{{"name":"0","desc":"default_pg","ranks":"[0, 1, 2]"}},"1":{{"name":"1","desc":"tp","ranks":"x"}}}},
        "pg_status":{{}},"version":"2.10"}}"#
    )
}

fn entry(number: i64, created_us: i64, more: &str) -> String {
    format!(
        r#"{{"collective_seq_id":{number},"p2p_seq_id":9,"is_p2p":false,"record_id":{number},"process_group":["0","default_pg"],
        "profiling_name":"nccl:all_reduce","input_sizes":[[2,3],[4]],"input_dtypes":["Float","Half"],"output_sizes":[[10]],
        "output_dtypes":["Float"],"thread_id":"71","thread_name":"python","retired":true,"timeout_ms":600000,
        "time_created_ns":{}{more}}}"#,
        created_us * 1_000
    )
}

fn opened(entries: &[String]) -> Trace {
    open_bytes("nccl_trace_rank_2.json", dump(&entries.join(",")).as_bytes()).expect("a dump")
}

/// Slices as `name: start + duration`, `!` without an end.
fn lines(trace: &Trace) -> Vec<String> {
    let line = |id: SliceId| {
        let span = trace.slices.span(id);
        let open = if trace.slices.is_unfinished[id.index()] { "!" } else { "" };
        format!("{}: {} + {}{open}", trace.slice_name(id), span.start_ns, span.duration_ns())
    };
    trace.slices.ids().map(line).collect()
}

fn codes(trace: &Trace) -> Vec<(&'static str, u64)> {
    let rows = trace.findings.iter().map(|finding| (finding.code.code(), finding.count));
    rows.filter(|(code, _)| !matches!(*code, "import.no_device_events" | "trace.no_steps")).collect()
}

#[test]
fn a_collective_is_there_until_it_was_seen_to_be_done() {
    let trace = opened(&[
        entry(3, 10, r#","state":"completed","time_discovered_started_ns":11000,"time_discovered_completed_ns":14000"#),
        entry(4, 12, r#","state":"started","time_discovered_started_ns":17000,"time_discovered_completed_ns":0"#),
        entry(5, 13, r#","state":"scheduled","time_discovered_completed_ns":0"#),
    ]);
    assert_eq!(
        lines(&trace),
        ["nccl:all_reduce: 0 + 4000", "nccl:all_reduce: 2000 + 5000!", "nccl:all_reduce: 3000 + 4000!"]
    );
    assert_eq!(trace.start_unix_ns, Some(10_000));
    let process = &trace.processes[0];
    assert_eq!((process.rank, process.world_size), (2, Some(3)));
    assert_eq!(process.comm_backend, Some(stepscope_trace::CommBackend::Nccl));
    assert_eq!(process.process_groups.iter().map(|group| group.ranks.len()).collect::<Vec<_>>(), [3, 0]);
    let text = |id: StringId| trace.strings.get(id);
    let said = &trace.collectives[0];
    let texts = [said.name, said.dtype, said.group, said.group_description, said.group_ranks].map(text);
    assert_eq!(texts, ["all_reduce", "Float", "0", "default_pg", "[0, 1, 2]"]);
    assert_eq!((said.input_elements, said.output_elements, said.group_size), (Some(10), Some(10), Some(3)));
    assert_eq!((said.sequence_number, said.kind), (Some(3), Some(CollectiveKind::AllReduce)));
    assert_eq!((trace.tracks[0].name.as_str(), trace.tracks[0].tid), ("python", Some(71)));
    let expected = [
        ("import.unreadable_event", 1),
        ("import.rank_from_name", 1),
        ("capture.unfinished_slices", 2),
        ("capture.ring", 1),
    ];
    let mut found = codes(&trace);
    found.retain(|(code, _)| *code != "import.overlapping_slices");
    assert_eq!(found, expected);
}

#[test]
fn what_ended_without_a_time_has_no_duration_and_what_timed_out_has_not_ended() {
    let gloo = |number: i64, more: &str| entry(number, 10 + number, more).replace("nccl:", "gloo:");
    let trace = opened(&[
        gloo(0, r#","state":"scheduled""#),
        entry(1, 11, r#","state":"scheduled""#),
        entry(2, 12, r#","state":"completed","time_discovered_completed_ns":5000"#),
    ]);
    assert_eq!(lines(&trace), ["gloo:all_reduce: 0 + 0", "nccl:all_reduce: 1000 + 1000!", "nccl:all_reduce: 2000 + 0"]);
    let count = |code: Code| trace.findings.count(code);
    assert_eq!((count(Code::MissingDuration), count(Code::NegativeDuration)), (1, 1));
}

#[test]
fn what_goes_from_one_rank_to_another_has_a_number_of_its_own() {
    let send = entry(1, 10, "").replace(r#""is_p2p":false"#, r#""is_p2p":true"#).replace("all_reduce", "send 0->1");
    let trace = opened(&[send]);
    let said = &trace.collectives[0];
    assert_eq!((said.sequence_number, said.kind), (Some(9), Some(CollectiveKind::Send)));
    assert_eq!(trace.strings.get(said.name), "send 0->1");
}

#[test]
fn what_cannot_be_read_is_counted_and_the_rest_is_read() {
    let wrong = ["7", "{}", r#"{"profiling_name":"x"}"#, r#"{"profiling_name":"x","time_created_ns":-5}"#];
    let mut entries: Vec<String> = wrong.map(String::from).to_vec();
    entries.push(
        r#"{"profiling_name":"x","time_created_ns":5,"input_sizes":[[-1]],"process_group":7,"frames":[3]}"#.into(),
    );
    let trace = opened(&entries);
    assert_eq!((trace.slices.len(), trace.findings.count(Code::UnreadableEvent)), (1, 5));
    let said = &trace.collectives[0];
    assert_eq!((said.input_elements, said.sequence_number, said.group), (None, None, StringTable::EMPTY));
}

#[test]
fn real_dumps_of_both_forms_have_what_the_job_called() {
    for (name, last) in [("missing/gloo_trace_rank_3", "all_reduce"), ("other/gloo_trace_rank_2.json", "broadcast")] {
        let trace = open(fixture(name)).expect("a dump");
        assert_eq!(
            (trace.ranks(), trace.slices.len()),
            (vec![name.as_bytes()[name.find("rank_").unwrap() + 5] as u32 - 48], 6)
        );
        let open: Vec<bool> = trace.slices.is_unfinished.clone();
        assert_eq!(open, [false, false, false, false, false, true], "{name}");
        let said = trace.collectives.last().expect("six");
        assert_eq!((trace.strings.get(said.name), said.sequence_number), (last, Some(3)));
        assert_eq!((trace.strings.get(said.group), said.input_elements), ("0", Some(4)));
    }
    let trace = open(fixture("missing/gloo_trace_rank_3")).expect("a dump");
    let stack = trace.strings.get(trace.ops.info[5].stack);
    let functions: Vec<&str> = stepscope_trace::Frame::of_stack(stack).map(|frame| frame.function).collect();
    assert_eq!(functions, ["all_reduce", "wrapper", "step", "main", "<module>"]);
}

#[test]
fn cut_anywhere_a_pickle_is_read_up_to_there_and_json_is_refused() {
    let whole = std::fs::read(fixture("missing/gloo_trace_rank_0")).expect("a file");
    let mut most = 0;
    for len in 0..whole.len() {
        let Ok(trace) = open_bytes("d", &whole[..len]) else { continue };
        assert_eq!(trace.findings.count(Code::TruncatedInput), 1, "{len}");
        assert!(trace.slices.len() >= most, "{len}");
        most = trace.slices.len();
    }
    assert_eq!(most, 6);
    let json = std::fs::read(fixture("other/gloo_trace_rank_0.json")).expect("a file");
    let error = open_bytes("d", &json[..json.len() - 9]).map(|_| ()).unwrap_err();
    assert!(error.to_string().starts_with("expected a dump of the Flight Recorder"), "{error}");
    assert!(error.hint().is_some());
}

#[test]
fn a_rank_is_what_the_name_says_or_ends_with() {
    let rank = |name: &str| ranks::rank_at_end_of_name(Path::new(name));
    let names = ["nccl_trace_rank_12", "/tmp/my.host_12", "dump12.json.gz", "comm_lib_trace_rank_12.json"];
    names.iter().for_each(|name| assert_eq!(rank(name), Some(12), "{name}"));
    assert_eq!((rank("dump"), rank("dump_99999999999")), (None, None));
}

#[test]
fn other_json_is_no_dump() {
    assert!(!is_json(br#"{"traceEvents":[{"collective_seq_id":1}]}"#) && !is_json(b"[") && !is_json(b""));
    assert!(is_json(br#" { "entries" : [{"collective_seq_id":1}]}"#));
    assert!(is_head_of_dump(b"\x80\x02}X\x09\x00\x00\x00pg_config") && !is_head_of_dump(b"\x80\x02}segments"));
}

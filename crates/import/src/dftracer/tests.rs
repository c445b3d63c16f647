//! Small texts, one trap each; what releases really wrote.

mod damage;

use crate::{open, open_bytes};
use std::path::{Path, PathBuf};
use stepscope_trace::{DataflowStage, FindingCode, IoAction, IoEvent, SliceId, Trace};

fn trace_of(text: &str) -> Trace {
    super::read(Path::new("t.pfw"), "t".into(), &mut text.as_bytes())
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/dftracer").join(name)
}

/// Slices as `kind name start+duration @pid/tid`, in ns.
fn slices(trace: &Trace) -> Vec<String> {
    let slice = |id: SliceId| {
        let (span, track) = (trace.slices.span(id), &trace.tracks[trace.slices.track[id.index()].index()]);
        let (kind, name) = (trace.slices.kind(id).as_str(), trace.slice_name(id));
        let pid = trace.processes[track.process.index()].pid.unwrap_or(-1);
        format!("{kind} {name} {}+{} @{pid}/{}", span.start_ns, span.duration_ns(), track.tid.unwrap_or(-1))
    };
    trace.slices.ids().map(slice).collect()
}

/// Calls as `layer action bytes@offset file`, `of` what was asked for where that is something else.
fn calls(trace: &Trace) -> Vec<String> {
    let shown = |number: Option<i64>| number.map_or("-".into(), |number| number.to_string());
    let call = |io: &IoEvent| {
        let (layer, action, file) = (io.layer.as_str(), io.action.as_str(), trace.strings.get(io.file));
        let asked = io.asked_bytes.filter(|asked| io.bytes != Some(*asked)).map(|asked| format!(" of {asked}"));
        let (asked, failed) = (asked.unwrap_or_default(), if io.has_failed() { " failed" } else { "" });
        format!("{layer} {action} {}{asked}@{} {file}{failed}", shown(io.bytes), shown(io.offset))
    };
    trace.io.iter().map(call).collect()
}

/// Findings as `code xcount`, without those that every trace of DFTracer has.
fn findings(trace: &Trace) -> Vec<String> {
    let is_of_interest = |code: FindingCode| !matches!(code, FindingCode::NoSteps | FindingCode::NoDeviceEvents);
    let rows = trace.findings.iter().filter(|finding| is_of_interest(finding.code));
    rows.map(|finding| format!("{:?} x{}", finding.code, finding.count)).collect()
}

fn check_sane(trace: &Trace) {
    for id in trace.slices.ids() {
        let span = trace.slices.span(id);
        assert!(span.start_ns >= 0 && span.end_ns >= span.start_ns, "time begins at the earliest event");
        let outer = trace.slices.parent(id).map(|parent| trace.slices.span(parent));
        assert!(outer.is_none_or(|outer| outer.start_ns <= span.start_ns && span.end_ns <= outer.end_ns));
    }
    assert!(trace.io.is_sorted_by_key(|io| io.slice));
    assert!(trace.counters.iter().all(|counter| counter.time_ns.is_sorted()));
}

#[test]
fn strings_for_numbers_and_the_sum_of_thread_and_process() {
    let trace = trace_of(
        r#"[
        {"id":"0","name":"open","cat":"POSIX","pid":"1000","tid":"2000","ts":"50","dur":"3","ph":"X","args":{"hostname":"corona237","ret":18,"fname":"/data/a"}}
{"id":"1","name":"pread64","cat":"POSIX","pid":"1000","tid":"2007","ts":"54","dur":"2","ph":"X","args":{"hostname":"corona237","ret":"70","count":"100","offset":"40","fname":"/data/a","fd":18}}
"#,
    );
    assert_eq!(slices(&trace), ["io open 0+3000 @1000/1000", "io pread64 4000+2000 @1000/1007"]);
    assert_eq!(calls(&trace), ["posix open -@- /data/a", "posix read 70 of 100@40 /data/a"]);
    assert_eq!(trace.processes[0].host.as_deref(), Some("corona237"));
    assert_eq!(trace.start_unix_ns, Some(50_000));
    assert_eq!(findings(&trace), ["UnclosedList x1"]);
}

#[test]
fn labels_of_checkpoints_say_so() {
    let trace = trace_of(
        r#"{"id":1,"name":"capture","cat":"checkpoint","type":6,"pid":7,"tid":7,"ts":10,"dur":5,"ph":1,"args":{"hhash":"6882804a826580cd"}}
{"id":2,"name":"forward","cat":"compute","type":6,"pid":7,"tid":7,"ts":20,"dur":5,"ph":1,"args":{"hhash":"6882804a826580cd"}}
"#,
    );
    let stages: Vec<_> = trace.dataflow.iter().map(|said| (trace.slice_name(said.slice), said.stage)).collect();
    assert_eq!(stages, [("capture", DataflowStage::Checkpoint)]);
}

#[test]
fn a_worker_that_was_forked_is_a_process_of_its_own() {
    let trace = trace_of(
        r#"{"id":1,"name":"start","cat":"dftracer","pid":1000,"tid":2000,"ts":0,"dur":0,"ph":"X","args":{"hostname":"h","ppid":999,"exec":"bin/train.py","cmd":"python;bin/train.py"}}
{"id":2,"name":"fork","cat":"POSIX","pid":1000,"tid":2000,"ts":1,"dur":1,"ph":"X","args":{"hostname":"h","ret":1005}}
{"id":2,"name":"fork","cat":"POSIX","pid":1000,"tid":2005,"ts":1,"dur":3,"ph":"X","args":{"hostname":"h","ret":0}}
{"id":3,"name":"fork","cat":"POSIX","pid":1000,"tid":2005,"ts":5,"dur":1,"ph":"X","args":{"hostname":"h","ret":1006}}
{"id":4,"name":"write","cat":"POSIX","pid":1000,"tid":2006,"ts":7,"dur":1,"ph":"X","args":{"hostname":"h","ret":"-1","count":"9","fname":"x"}}
{"id":5,"name":"end","cat":"dftracer","pid":1000,"tid":2000,"ts":9,"dur":0,"ph":"X","args":{"hostname":"h"}}"#,
    );
    let processes: Vec<_> = trace.processes.iter().map(|p| (p.pid, p.parent_pid, p.name.as_str())).collect();
    let expected = [
        (Some(1000), None, "train.py"),
        (Some(1005), Some(1000), "train.py (forked)"),
        (Some(1006), Some(1005), "train.py (forked)"),
    ];
    assert_eq!(processes, expected);
    assert!(slices(&trace).contains(&"io write 7000+1000 @1006/1006".into()));
    assert_eq!(calls(&trace), ["posix write 0 of 9@- x failed"], "a call that failed moved nothing");
    assert_eq!(findings(&trace), [""; 0]);
}

#[test]
fn hashes_of_16_bits_collide() {
    let trace = trace_of(
        r#"[
{"id":1,"name":"HH","cat":"dftracer","pid":7,"tid":7,"ph":"M","args":{"name":"corona173","value":5692}}
{"id":2,"name":"FH","cat":"dftracer","pid":7,"tid":7,"ph":"M","args":{"name":"/a","value":57110}}
{"id":3,"name":"fread","cat":"STDIO","pid":7,"tid":7,"ts":1,"dur":1,"ph":"X","args":{"hhash":5692,"ret":3,"fhash":57110,"count":8,"size":1024}}
{"id":4,"name":"FH","cat":"dftracer","pid":7,"tid":7,"ph":"M","args":{"name":"/b","value":57110}}
{"id":5,"name":"fopen","cat":"STDIO","pid":7,"tid":7,"ts":3,"dur":1,"ph":"X","args":{"hhash":5692,"fhash":57110}}
{"id":6,"name":"fopen","cat":"STDIO","pid":8,"tid":8,"ts":3,"dur":1,"ph":"X","args":{"hhash":5692,"fhash":57110}}
{"id":7,"name":"PR","cat":"dftracer","pid":8,"tid":8,"ph":"M","args":{"name":"rank","value":"3"}}
]"#,
    );
    assert_eq!(calls(&trace), ["stdio read 3072 of 8192@- /a", "stdio open -@- /b", "stdio open -@- "]);
    assert_eq!(findings(&trace), ["AmbiguousFile x1", "UnnamedFile x1"]);
    let ranks: Vec<_> = trace.processes.iter().map(|p| (p.pid, p.rank, p.host.as_deref())).collect();
    assert_eq!(ranks, [(Some(7), 0, Some("corona173")), (Some(8), 3, None)]);
}

#[test]
fn wide_hashes_may_be_explained_later_and_elsewhere() {
    let trace = trace_of(
        r#"[
{"id":1,"name":"read","cat":"POSIX","pid":7,"tid":7,"ts":1,"dur":1,"ph":"X","args":{"hhash":7386335834152862147,"ret":5,"fhash":15238147165620463749}}
{"id":2,"name":"FH","cat":"dftracer","pid":8,"tid":8,"ph":"M","args":{"hhash":7386335834152862147,"name":"/a","value":15238147165620463749}}
]{"id":3,"name":"read","cat":"POSIX","pid":7,"tid":7,"ts":3,"dur":1,"ph":"X","args":{"hhash":7386335834152862147,"ret":6,"fhash":15238147165620463749}}
]"#,
    );
    assert_eq!(calls(&trace), ["posix read 5@- /a", "posix read 6@- /a"]);
    assert_eq!(findings(&trace), [""; 0]);
}

#[test]
fn jobs_of_other_days_are_left_out_of_a_folder_unless_somebody_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let hour_us = 3_600_000_000_u64;
    for (name, pid, hours) in [("a1", 1, 0), ("a2", 2, 0), ("b1", 3, 75), ("b2", 4, 76), ("c", 5, 150)] {
        let ts = 1_795_261_885_000_000 + hours * hour_us;
        let args = r#"{"hhash":"1","ret":5}"#;
        let row = format!(
            r#"{{"id":1,"name":"read","cat":"POSIX","pid":{pid},"tid":{pid},"ts":{ts},"dur":9,"ph":"X","args":{args}}}"#
        );
        std::fs::write(folder.path().join(format!("{name}.pfw")), format!("[\n{row}\n")).unwrap();
    }
    let pids = |trace: &Trace| trace.processes.iter().filter_map(|process| process.pid).collect::<Vec<_>>();
    let trace = open(folder.path()).unwrap();
    assert_eq!(pids(&trace), [3, 4], "of two with as many files the last; an hour is no pause");
    let example =
        |at: usize| trace.findings.iter().find(|row| row.code == FindingCode::OtherJob).unwrap().examples[at].clone();
    let pattern = folder.path().join("a*.pfw");
    let told = "2 ranks, 2 files of 2026-11-21 11:51:25 UTC, over 9.00 µs";
    assert_eq!(example(0), format!("{told}: stepscope report '{}'", pattern.display()));
    assert_eq!(trace.findings.count(FindingCode::OtherJob), 2);
    let joining = crate::Joining { is_one_job: true, ..crate::Joining::default() };
    let joined = crate::open_joining(folder.path(), &joining, &crate::Progress::default()).unwrap();
    assert_eq!((pids(&joined), joined.findings.count(FindingCode::OtherJob)), (vec![1, 2, 3, 4, 5], 0));
}

#[test]
fn times_are_in_the_unit_that_the_file_says() {
    let trace = trace_of(
        r#"{"name":"CM","cat":"dftracer","type":1,"pid":7,"tid":7,"ph":4,"args":{"name":"time_metric","value":"NS"}}
{"id":1,"name":"forward","cat":"compute","type":6,"pid":7,"tid":7,"ts":1795261885268682000,"dur":82,"ph":1,"args":{"hhash":"6882804a826580cd"}}"#,
    );
    assert_eq!(slices(&trace), ["annotation forward 0+82 @7/7"]);
    assert_eq!(trace.start_unix_ns, Some(1_795_261_885_268_682_000));
}

#[test]
fn rows_that_forked_workers_repeat_count_once() {
    let row = r#"{"id":"199","name":"close","cat":"POSIX","pid":"9","tid":"18","ts":"5","dur":"1","ph":"X","args":{"hostname":"h"}}"#;
    let other = row.replace("\"ts\":\"5\"", "\"ts\":\"6\"");
    let trace = trace_of(&[row, row, &other, row].join("\n"));
    assert_eq!(trace.slices.len(), 3, "a number used anew is another row");
    assert_eq!(findings(&trace), ["RepeatedEvent x1"]);
    let trace = trace_of(&[row, &row.replace("199", "200"), row].join("\n"));
    assert_eq!((trace.slices.len(), findings(&trace)), (2, vec!["RepeatedEvent x1".to_string()]));
}

#[test]
fn a_rank_given_as_process_is_a_rank() {
    let trace = trace_of(
        r#"[{"id":"0","name":"a","cat":"app","pid":"3","tid":"338687","ts":"5","dur":"1","ph":"X","args":{"hostname":"h"}}
{"id":"1","name":"b","cat":"app","pid":"5000","tid":"10000","ts":"6","dur":"1","ph":"X","args":{"hostname":"h"}}]"#,
    );
    assert_eq!(trace.processes.iter().map(|p| (p.rank, p.pid)).collect::<Vec<_>>(), [(3, None), (0, Some(5000))]);
    assert_eq!(slices(&trace)[0], "annotation a 0+1000 @-1/338684");
    assert_eq!(findings(&trace), ["InferredRank x1"]);
}

#[test]
fn loops_over_batches_and_numbered_rows_are_steps() {
    let row = |name: &str, ts: i64, dur: i64, args: &str| {
        format!(
            r#"{{"id":{ts},"name":"{name}","cat":"dataloader","type":6,"pid":7,"tid":7,"ts":{ts},"dur":{dur},"ph":1,"args":{{"hhash":"6882804a826580cd",{args}}}}}"#
        )
    };
    let rows = [
        row("fetch.iter", 0, 2, r#""count":1"#),
        row("fetch.block", 2, 5, r#""count":1"#),
        row("fetch.iter", 8, 1, r#""count":2"#),
        row("fetch.block", 9, 4, r#""count":2"#),
    ];
    let steps =
        |trace: &Trace| trace.steps.iter().map(|s| (s.number, s.span.start_ns, s.span.end_ns)).collect::<Vec<_>>();
    let trace = trace_of(&rows.join("\n"));
    assert_eq!(steps(&trace), [(1, 0, 7_000), (2, 8_000, 13_000)]);
    assert_eq!(slices(&trace)[..2], ["step step 1 0+7000 @7/7", "dataloader fetch.iter 0+2000 @7/7"]);
    let numbered = |cat: &str, name: &str, ts: i64, step: i64| {
        row(name, ts, 3, &format!(r#""epoch":1,"step":{step}"#)).replace("dataloader", cat)
    };
    let one = [numbered("app", "train", 0, 4), numbered("app", "train", 5, 5)];
    assert_eq!(steps(&trace_of(&one.join("\n"))), [(4, 0, 3_000), (5, 5_000, 8_000)]);
    let two = [one.join("\n"), numbered("compute", "forward", 1, 4), numbered("compute", "forward", 6, 5)];
    assert_eq!(steps(&trace_of(&two.join("\n"))), [(0, 0, 9_000)], "two names: nobody says which");
}

#[test]
fn counters_and_sums_are_counters() {
    let trace = trace_of(
        r#"{"name":"net-    lo","cat":"net","type":7,"ts":10,"ph":2,"pid":0,"tid":0,"args":{"hhash":"6882804a826580cd","bytes_sent":3.5,"state":"up"}}
{"name":"read","cat":"POSIX","type":3,"ts":20,"ph":3,"pid":7,"tid":7,"args":{"dft_cnt":2,"dur_min":1,"dur_max":4,"dur_sum":5,"ret_sum":300}}
{"name":"read","cat":"POSIX","type":3,"ts":20,"ph":3,"pid":7,"tid":8,"args":{"dft_cnt":1,"dur":2,"ret":70}}
{"name":"empty","cat":"sys","type":7,"ts":20,"ph":2,"pid":0,"tid":0,"args":{}}"#,
    );
    let counters: Vec<_> =
        trace.counters.iter().map(|c| (trace.strings.get(c.name), c.time_ns[0], c.value[0])).collect();
    let expected = [
        ("net net-lo bytes_sent", 0, 3.5),
        ("POSIX read calls", 10_000, 3.0),
        ("POSIX read dur_ns", 10_000, 7_000.0),
        ("POSIX read bytes", 10_000, 370.0),
    ];
    assert_eq!(counters, expected);
    assert_eq!(findings(&trace), ["UnsupportedEvent x1", "AggregatedEvents x2"]);
}

#[test]
fn a_process_without_an_end_was_killed() {
    let trace = trace_of(
        r#"{"id":1,"name":"start","cat":"dftracer","type":1,"pid":7,"tid":7,"ts":1,"dur":0,"ph":1,"args":{"hhash":"6882804a826580cd","ppid":3}}"#,
    );
    assert_eq!(findings(&trace), ["ProcessKilled x1"]);
    assert_eq!(trace.instants.len(), 1);
}

/// What a Python script counts in the files: slices, calls on files, bytes read, bytes written, ns in slices.
#[test]
fn what_releases_wrote_is_what_an_independent_count_finds() {
    let check = |name: &str, expected: (usize, usize, i64, i64, i64)| {
        let trace = open(fixture(name)).expect("a trace");
        check_sane(&trace);
        let moved =
            |action| -> i64 { trace.io.iter().filter(|io| io.action == action).filter_map(|io| io.bytes).sum() };
        // Steps that were added are no rows.
        let is_row = |id: &SliceId| !trace.slice_name(*id).starts_with("step ");
        let rows: Vec<SliceId> = trace.slices.ids().filter(is_row).collect();
        let total_ns = rows.iter().map(|id| trace.slices.dur_ns[id.index()]).sum::<i64>();
        let found = (rows.len(), trace.io.len(), moved(IoAction::Read), moved(IoAction::Write), total_ns);
        assert_eq!(found, expected, "{name}");
        assert_eq!(trace.findings.count(FindingCode::UnreadableEvent), 0);
        assert_eq!(trace.findings.count(FindingCode::UnnamedFile), 0);
        trace
    };
    let pids =
        |trace: &Trace| trace.processes.iter().map(|p| (p.pid.is_some(), p.parent_pid.is_some())).collect::<Vec<_>>();
    let steps = |trace: &Trace| trace.steps.iter().map(|step| step.number).collect::<Vec<_>>();
    // Nothing in it says that a worker was forked.
    let trace = check("wheel-1.0.4.pfw", (93, 88, 2_960, 40_800, 9_121_000));
    assert_eq!((pids(&trace), steps(&trace)), (vec![(true, false), (true, false)], vec![0, 1, 0, 1]));
    for (name, total_ns) in
        [("wheel-1.0.5.pfw", 13_809_000), ("wheel-1.0.8.pfw", 12_572_000), ("wheel-1.0.9.pfw", 10_444_000)]
    {
        let trace = check(name, (95, 88, 2_960, 40_800, total_ns));
        assert_eq!(pids(&trace), [(true, false), (true, true), (true, true)], "{name}");
        assert_eq!(steps(&trace), [0, 1, 0, 1]);
        let mains = trace.tracks.iter().filter(|track| trace.processes[track.process.index()].pid == track.tid);
        assert_eq!(mains.count(), 3, "each process has its first thread");
    }
    let trace = check("wheel-2.2.0", (116, 88, 2_960, 40_800, 132_309_000));
    assert_eq!((pids(&trace).len(), steps(&trace)), (3, vec![1, 2, 3]));
    check("wheel-2.2.0-ns.pfw.gz", (94, 66, 2_220, 30_600, 142_888_000));
    let trace = check("wheel-2.2.0-aggregated.pfw", (0, 0, 0, 0, 0));
    assert_eq!(trace.findings.count(FindingCode::AggregatedEvents), 37);
    let trace = check("service-2.2.0.pfw.gz", (0, 0, 0, 0, 0));
    assert_eq!(trace.counters.len(), 119);
}

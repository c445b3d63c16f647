//! One rank of a run by itself: all of them merged are the run.

use crate::made_capture::MadeCapture;
use std::path::Path;
use stepscope_import::{ImportError, Joining, Parts, Progress, RunRanks, open};
use stepscope_trace::{SliceId, Trace, merge};

const MS: i64 = 1_000_000;
const HOUR: i64 = 3_600_000 * MS;

/// A process of a rank that begins at a moment of its host's clock: operators, and two steps.
fn trainer(pid: u64, rank: u32, (boot, opened_ms): (u8, i64)) -> MadeCapture {
    let mut made = MadeCapture::new(pid);
    (made.boot, made.opened_ns) = (boot, opened_ms * MS);
    made.thread(pid as u32, 0, "main");
    made.fact("host", &format!("node{boot}"));
    made.fact("process_name", &format!("process {pid}"));
    made.fact("rank", &rank.to_string());
    for at_ms in [1, 11, 21] {
        made.begin(at_ms * MS, "aten::mm", Some(at_ms as u64));
        made.begin((at_ms + 1) * MS, &format!("of {pid}"), None);
        made.end((at_ms + 2) * MS);
        made.end((at_ms + 5) * MS + pid as i64);
    }
    for at_ms in [31, 41] {
        made.begin_label(at_ms * MS, &format!("ProfilerStep#{at_ms}"));
        made.end((at_ms + 9) * MS);
    }
    made.sample(32 * MS, "RSS (kB)", pid as i64);
    made
}

/// Two ranks on one host, whose time of day is set between them, one on another host, and one that recorded nothing. Rank 0
/// has a worker, whose steps begin between its own, and started the process of rank 1; rank 2 still ran when it was read.
fn write(run: &Path) {
    std::fs::write(run.join("run.json"), r#"{"format":"stepscope-run","version":1,"created_unix_ns":1}"#).unwrap();
    let mut of_rank_1 = trainer(11, 1, (1, 3));
    (of_rank_1.moved_ns, of_rank_1.parent_pid) = (HOUR, 10);
    let mut worker = trainer(20, 0, (1, 8));
    worker.parent_pid = 10;
    let mut running = trainer(12, 2, (2, 900));
    running.is_running = true;
    running.begin(60 * MS, "unfinished", None);
    let mut nothing = MadeCapture::new(13);
    nothing.thread(13, 0, "main");
    nothing.fact("rank", "3");
    nothing.is_killed = true;
    [trainer(10, 0, (1, 5)), of_rank_1, worker, running, nothing].iter().for_each(|made| made.write(run));
    std::fs::write(run.join("raw/99-1.capture"), "no capture").unwrap();
}

/// Everything that rows say, without ids.
fn text(trace: &Trace) -> Vec<String> {
    let slice = |id: SliceId| {
        let track = &trace.tracks[trace.slices.track[id.index()].index()];
        let process = &trace.processes[track.process.index()];
        let (name, kind) = (trace.slice_name(id), trace.slices.kind(id));
        let parent = trace.slices.parent(id).map(|parent| trace.slice_name(parent));
        let op = trace.ops.get(id).map(|info| info.sequence_number);
        let (span, is_open) = (trace.slices.span(id), trace.slices.is_unfinished[id.index()]);
        format!("{:?} {} {name} {kind:?} {span:?} {is_open} {parent:?} {op:?}", process.pid, track.name)
    };
    let slices = trace.slices.ids().map(slice);
    let processes = trace.processes.iter().map(|process| format!("{process:?}"));
    let steps = trace.steps.iter().map(|step| format!("{step:?}"));
    let findings = trace.findings.iter().map(|finding| format!("{finding:?}"));
    let counters = trace.counters.iter().map(|counter| format!("{:?} {:?}", counter.time_ns, counter.value));
    let of_trace = [format!("{} {:?} {:?}", trace.name, trace.sources, trace.start_unix_ns)].into_iter();
    let facts = trace.facts.iter().map(|fact| format!("{fact:?}"));
    of_trace.chain(facts).chain(processes).chain(slices).chain(steps).chain(findings).chain(counters).collect()
}

fn open_rank(run: &Path, rank: u32) -> Result<Trace, ImportError> {
    RunRanks::of(run)?.open(rank, &Progress::default())
}

fn check(run: &Path) {
    let ranks = RunRanks::of(run).unwrap();
    assert_eq!(ranks.ranks(), [0, 1, 2, 3]);
    assert_eq!([0, 1, 2, 3, 4].map(|rank| ranks.files(rank).len()), [2, 1, 1, 1, 0]);
    let whole = open(run).unwrap();
    let processes: Vec<_> = whole.processes.iter().map(|of| (of.rank, of.pid, of.parent_pid)).collect();
    let expected = [(0, 10, None), (0, 20, Some(10)), (1, 11, None), (2, 12, None), (3, 13, None)];
    assert_eq!(processes, expected.map(|(rank, pid, parent)| (rank, Some(pid), parent)));
    // Each as if nobody had listed the run before.
    let alone = || ranks.ranks().iter().map(|rank| open_rank(run, *rank).unwrap());
    // In any order.
    let mut listed: Vec<Trace> =
        [3, 1, 2, 0].map(|rank| ranks.open(rank, &Progress::default()).unwrap()).into_iter().collect();
    listed.sort_by_key(|trace| trace.ranks());
    for (alone, listed) in alone().zip(&listed) {
        assert_eq!(text(&alone), text(listed));
    }
    // Where nothing else of the run is looked at.
    for (rank, listed) in (0..).zip(&listed) {
        let told = serde_json::to_string(&ranks.alone(rank, Path::to_path_buf)).unwrap();
        let alone: RunRanks = serde_json::from_str(&told).unwrap();
        assert_eq!((alone.ranks(), alone.surroundings(rank)), ([rank].as_slice(), ranks.surroundings(rank)));
        assert_eq!(text(&alone.open(rank, &Progress::default()).unwrap()), text(listed));
    }
    let starts = alone().map(|trace| trace.start_unix_ns.unwrap());
    let merged = merge(whole.name.clone(), alone().zip(starts).collect(), Some(0));
    assert_eq!(text(&merged), text(&whole));
    let parts = Parts::of(&[run.into()]).unwrap().unwrap();
    let joining = Joining::default();
    let joined = parts.join(&joining, &mut |at| parts.open(at, &joining, &Progress::default())).unwrap();
    assert_eq!((text(&joined.trace), joined.files), (text(&whole), vec![0, 1, 2, 3]));
    for (rank, trace) in (0..).zip(&listed) {
        assert_eq!(trace.ranks(), [rank]);
        let of_rank = |trace: &Trace, start_ns: i64| -> Vec<_> {
            let steps = trace.steps.iter().filter(|step| step.rank == rank);
            steps.map(|step| (step.number, step.span.start_ns + start_ns, step.span.duration_ns())).collect()
        };
        let start_ns = |trace: &Trace| trace.start_unix_ns.unwrap();
        assert_eq!(of_rank(trace, start_ns(trace)), of_rank(&whole, start_ns(&whole)));
    }
    // By the monotonic clock of their host, although their times of day are an hour apart.
    let start_ns = |at: usize| listed[at].start_unix_ns.unwrap();
    assert_eq!(start_ns(1) - start_ns(0), -2 * MS);
}

#[test]
fn ranks_merged_are_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path();
    write(run);
    check(run);
    // All but the one that runs became process files; now they are read from these.
    let raw = std::fs::read_dir(run.join("raw")).unwrap().count();
    assert_eq!(raw, 2, "the one that runs, and the one that is no capture");
    check(run);
}

#[test]
fn a_run_in_a_folder_that_cannot_be_compacted_is_read_from_its_captures() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    // What would be the folders of ranks are files.
    (0..4).for_each(|rank| std::fs::write(folder.path().join(format!("rank={rank}")), "").unwrap());
    check(folder.path());
    assert_eq!(std::fs::read_dir(folder.path().join("raw")).unwrap().count(), 6);
}

#[test]
fn what_concerns_the_run_is_of_its_first_rank_and_what_concerns_a_rank_of_that_rank() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let codes = |rank: u32| -> Vec<_> {
        let trace = open_rank(folder.path(), rank).unwrap();
        trace.findings.iter().map(|finding| (finding.code.code(), finding.count)).collect()
    };
    assert_eq!(codes(0), [("capture.damaged_segment", 1)]);
    assert_eq!(codes(1), [("capture.clock_moved", 1)]);
    assert_eq!(codes(2), [("capture.unfinished_slices", 1), ("capture.process_running", 1)]);
    assert_eq!(codes(3), [("capture.process_killed", 1)]);
    let error = open_rank(folder.path(), 7).unwrap_err().to_string();
    assert_eq!(error, format!("the run has no rank 7: {}", folder.path().display()));
}

#[test]
fn a_run_of_one_rank_is_its_only_part() {
    let folder = tempfile::tempdir().unwrap();
    trainer(10, 0, (1, 5)).write(folder.path());
    let parts = Parts::of(&[folder.path().into()]).unwrap().unwrap();
    assert_eq!(parts.count(), 1);
    let alone = parts.open(0, &Joining::default(), &Progress::default()).unwrap();
    assert_eq!(text(&alone), text(&open(folder.path()).unwrap()));
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/ddp-cpu");
    assert_eq!(Parts::of(&[recorded]).unwrap().map(|parts| parts.count()), Some(2));
}

#[test]
fn an_earlier_process_of_its_host_moves_a_rank_and_its_surroundings_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path();
    std::fs::write(run.join("run.json"), r#"{"format":"stepscope-run","version":1,"created_unix_ns":1}"#).unwrap();
    let state = || {
        let ranks = RunRanks::of(run).unwrap();
        let start = |rank: u32| ranks.open(rank, &Progress::default()).unwrap().start_unix_ns;
        (ranks.surroundings(2), start(2))
    };
    let mut of_rank_2 = trainer(12, 2, (1, 30));
    of_rank_2.moved_ns = HOUR;
    [trainer(10, 0, (2, 5)), of_rank_2].iter().for_each(|made| made.write(run));
    let alone = state();
    trainer(13, 3, (1, 90)).write(run);
    assert_eq!(state(), alone, "a later process says nothing of the clock");
    trainer(11, 1, (1, 3)).write(run);
    let moved = state();
    assert_eq!(moved.1.zip(alone.1).map(|(moved, alone)| alone - moved), Some(HOUR));
    assert_ne!(moved.0, alone.0);
    let first = RunRanks::of(run).unwrap().surroundings(0);
    std::fs::remove_file(run.join("run.json")).unwrap();
    let ranks = RunRanks::of(run).unwrap();
    assert_eq!(ranks.surroundings(2), moved.0, "what concerns the run is of its first rank");
    assert_ne!(ranks.surroundings(0), first);
}

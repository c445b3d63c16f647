use super::*;
use std::fmt::Write;

/// The trace of a rank as PyTorch writes it: two steps of kernels, operators and an all-reduce that both end with.
fn written(folder: &Path, name: &str, rank: u32, late_us: i64) -> PathBuf {
    let mut events = Vec::new();
    let mut slice = |cat: &str, name: &str, tid: &str, ts: i64, dur: i64, args: &str| {
        let place = format!(r#""ph":"X","cat":"{cat}","name":"{name}","pid":{rank},"tid":{tid}"#);
        events.push(format!(r#"{{{place},"ts":{ts},"dur":{dur},"args":{{{args}}}}}"#));
    };
    for step in 0..2_i64 {
        let at = 1_000_000 + step * 1_000;
        slice("user_annotation", &format!("ProfilerStep#{step}"), "1", at, 1_000, "");
        slice("cpu_op", "aten::mm", "1", at + 10, 50, r#""External id":1"#);
        let id = rank * 100 + step as u32 * 10;
        slice("cuda_runtime", "cudaLaunchKernel", "1", at + 20, 10, &format!(r#""correlation":{id}"#));
        slice("kernel", "gemm", "7", at + 50, 300 + late_us, &format!(r#""device":0,"stream":7,"correlation":{id}"#));
        let id = id + 1;
        slice("cuda_runtime", "cudaLaunchKernel", "1", at + 80, 10, &format!(r#""correlation":{id}"#));
        let said = format!(
            r#""device":0,"stream":9,"correlation":{id},"Collective name":"allreduce","Process Group Name":"0","Process Group Description":"default_pg","Group size":2,"Process Group Ranks":"[0, 1]","dtype":"Float","In msg nelems":100,"Out msg nelems":100,"Seq":{step}"#
        );
        let from = at + 360 + late_us;
        slice("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "9", from, at + 600 - from, &said);
    }
    let mut text = String::new();
    let info = format!(r#""distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": 2}}"#);
    let _ = write!(text, r#"{{{info}, "baseTimeNanoseconds": 0, "traceEvents": [{}]}}"#, events.join(",\n"));
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn two_ranks() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    // By name the second rank comes first.
    written(folder.path(), "a.json", 1, 100);
    written(folder.path(), "b.json", 0, 0);
    folder
}

fn opened_run(folder: &Path) -> OpenedRun {
    OpenedRun::open(&[folder], &OpenOptions::default(), &Progress::default()).unwrap()
}

#[test]
fn a_run_of_files_answers_as_one_that_has_all_events() {
    let folder = two_ranks();
    let whole = crate::open_run(&[folder.path()]).unwrap();
    let run = opened_run(folder.path());
    assert!(run.files.is_some() && run.trace().slices.len() < whole.slices.len());
    let step = Selection { step: Some(1), ..Selection::default() };
    let rank = Selection { ranks: 1.into(), ..Selection::default() };
    let window = Selection { window: Some(Span::new(0, 1_500_000)), ..Selection::default() };
    for selection in [Selection::default(), step, rank, window] {
        for analysis in catalogue() {
            let expected = crate::analyze(&whole, analysis.name, &selection).unwrap();
            assert_eq!(run.analyze(analysis, &selection).unwrap(), expected, "{} of {selection:?}", analysis.name);
        }
    }
    let late = run.analyze(crate::find_analysis("stragglers").unwrap(), &Selection::default()).unwrap();
    let held_up = &late.results.column("held_up_ns").unwrap().values;
    assert_eq!(held_up, &Values::Int(vec![Some(200_000), Some(0)]));
}

#[test]
fn no_events_are_read_for_what_is_known_of_ranks() {
    let folder = two_ranks();
    let run = opened_run(folder.path());
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let selection = Selection::default();
    let is_answered = |needs: Needs| {
        let analyses: Vec<_> = catalogue().iter().filter(|analysis| analysis.needs == needs).collect();
        assert!(!analyses.is_empty());
        analyses.iter().filter(|analysis| run.analyze(analysis, &selection).is_ok()).count() == analyses.len()
    };
    assert!(is_answered(Needs::Condensed) && is_answered(Needs::EachRank) && !is_answered(Needs::Events));
}

#[test]
fn a_kept_summary_is_read_instead_of_the_trace() {
    let folder = two_ranks();
    let path = folder.path().join("a.json");
    let (joining, progress) = (Joining::default(), Progress::default());
    let made = summary(&path, &joining, true, &progress).unwrap();
    let place = Place::of(&path).unwrap();
    let mut other = place.read().expect("it was kept");
    assert_eq!(other.tables, made.tables);
    // What is kept is what is given, whatever the trace says.
    other.trace.name = "kept".into();
    assert!(place.write(&other));
    assert_eq!(summary(&path, &joining, true, &progress).unwrap().trace.name, "kept");
    assert_ne!(summary(&path, &joining, false, &progress).unwrap().trace.name, "kept");
}

#[test]
fn two_files_of_one_rank_and_time_are_read_whole() {
    let folder = two_ranks();
    written(folder.path(), "c.json", 0, 5);
    let run = opened_run(folder.path());
    assert!(run.files.is_none());
    assert_eq!(run.trace().ranks(), [0, 1]);
}

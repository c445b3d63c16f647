use super::*;
use crate::each;
use crate::report::report;
use crate::{Align, Compared, Joining, compare, with_options};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use stepscope_analyses::{Compat, Values};
use stepscope_base::{IntervalSet, Span};
use stepscope_summary::Place;
use stepscope_trace::DeviceEventClass;
use summaries::summary;

/// The trace of a rank as PyTorch writes it: two steps of kernels, operators and an all-reduce that both end with.
pub(super) fn written(folder: &Path, name: &str, rank: u32, late_us: i64) -> PathBuf {
    written_at(folder, name, rank, late_us, 1_000_000)
}

/// The same, which begins at this time of its clock.
fn written_at(folder: &Path, name: &str, rank: u32, late_us: i64, start_us: i64) -> PathBuf {
    let mut events = Vec::new();
    let mut slice = |cat: &str, name: &str, tid: &str, ts: i64, dur: i64, args: &str| {
        let place = format!(r#""ph":"X","cat":"{cat}","name":"{name}","pid":{rank},"tid":{tid}"#);
        events.push(format!(r#"{{{place},"ts":{ts},"dur":{dur},"args":{{{args}}}}}"#));
    };
    for step in 0..2_i64 {
        let at = start_us + step * 1_000;
        slice("user_annotation", &format!("ProfilerStep#{step}"), "1", at, 1_000, "");
        slice("python_function", "train.py(12): step", "1", at + 2, 95, r#""Python id":1"#);
        slice("python_function", "nn.Module: Net_0", "1", at + 4, 72, r#""Python id":2,"Python module id":0"#);
        let layer = format!("nn.Module: Linear_{rank}");
        slice("python_function", &layer, "1", at + 5, 70, r#""Python id":3,"Python module id":0"#);
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
    for step in 0..2_i64 {
        let place = format!(r#""ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":{rank},"tid":1"#);
        let ts = start_us + step * 1_000 + 15;
        let (bytes, total) = (64 + late_us * 8, (step + 1) * (64 + late_us * 8));
        let args = format!(
            r#""Device Type":1,"Device Id":0,"Addr":{},"Bytes":{bytes},"Total Allocated":{total},"Total Reserved":4096"#,
            100 + step
        );
        events.push(format!(r#"{{{place},"ts":{ts},"args":{{{args}}}}}"#));
    }
    let mut text = String::new();
    let info = format!(r#""distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": 2}}"#);
    let _ = write!(text, r#"{{{info}, "baseTimeNanoseconds": 0, "traceEvents": [{}]}}"#, events.join(",\n"));
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

pub(super) fn two_ranks() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    // By name the second rank comes first.
    written(folder.path(), "a.json", 1, 100);
    written(folder.path(), "b.json", 0, 0);
    folder
}

fn opened_run(folder: &Path) -> OpenedRun {
    OpenedRun::open(&[folder], &OpenOptions::default(), &Progress::default()).unwrap()
}

/// The run in memory that has no room for events.
fn opened_without_room(folder: &Path) -> OpenedRun {
    let options = OpenOptions { max_memory: Some(0), ..OpenOptions::default() };
    OpenedRun::open(&[folder], &options, &Progress::default()).unwrap()
}

/// Compares an answer of a run of files with that of all its events. What needs all of them has none without room.
#[track_caller]
fn check_answer(run: &OpenedRun, whole: &OpenedRun, analysis: &Analysis, selection: &Selection) {
    let own = run.analyze(analysis, selection);
    if matches!(analysis.needs_for(selection), Needs::AllEvents) && !run.fits_in_memory() {
        assert!(matches!(own, Err(EngineError::TooLarge { .. })), "{} of {selection:?}", analysis.name);
        return;
    }
    assert_eq!(own, whole.analyze(analysis, selection), "{} of {selection:?}", analysis.name);
}

/// The work of devices is that of all events of each rank, without gaps of less than a thousandth of it.
#[track_caller]
fn check_device_work(run: &OpenedRun, whole: &Trace) {
    let mut expected: BTreeMap<u32, Vec<Span>> = BTreeMap::new();
    for event in whole.device_events.iter() {
        let of_rank = expected.entry(whole.devices[event.device.index()].rank).or_default();
        of_rank.extend(Some(whole.slices.span(event.slice)).filter(|_| event.class != DeviceEventClass::Communication));
    }
    let mut found: BTreeMap<u32, Vec<Span>> = BTreeMap::new();
    for work in run.device_work() {
        found.entry(work.rank).or_default().extend(&work.spans);
    }
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (found, expected) in found.into_values().zip(expected.into_values()) {
        let [found, expected] = [found, expected].map(IntervalSet::from_unsorted);
        assert_eq!((found.hull(), expected.subtract(&found)), (expected.hull(), IntervalSet::default()));
        let length_ns = found.hull().map_or(0, Span::duration_ns);
        let closed = found.subtract(&expected);
        assert!(closed.spans().iter().all(|gap| gap.duration_ns() * 1_000 < length_ns.max(1)), "{closed:?}");
    }
}

/// Compares every answer of a run of files with that of all its events, with and without room for events.
#[track_caller]
fn check_against_events(folder: &Path) -> OpenedRun {
    let whole = OpenedRun::of(crate::open_run(&[folder]).unwrap());
    let step = Selection { step: Some(1), ..Selection::default() };
    let rank = Selection { ranks: 1.into(), ..Selection::default() };
    let ranks = Selection { ranks: "0,2".parse().unwrap(), ..Selection::default() };
    let ranks = Some(ranks).filter(|ranks| check_selection(whole.trace(), ranks).is_ok());
    let window = Selection { window: Some(Span::new(0, 1_500_000)), ..Selection::default() };
    let window_of_rank = Selection { ranks: 1.into(), ..window.clone() };
    let complete = Selection { complete_steps: true, ..Selection::default() };
    let selections = [Selection::default(), step, rank, window, window_of_rank, complete];
    let selections: Vec<Selection> = selections.into_iter().chain(ranks).collect();
    for run in [opened_run(folder), opened_without_room(folder)] {
        assert!(!run.has_all_events() && run.trace().slices.len() < whole.trace().slices.len());
        check_device_work(&run, whole.trace());
        for selection in &selections {
            catalogue().iter().for_each(|analysis| check_answer(&run, &whole, analysis, selection));
            let [own, expected] = [&run, &whole].map(|run| report(run, selection, "RUN").unwrap());
            assert_eq!(own, expected, "{selection:?}");
        }
        for analysis in catalogue() {
            let groups = analysis.options.group_by.iter();
            let texts = groups.map(|by| (Some(by.as_str().to_string()), None));
            let compat = analysis.options.compat.iter().map(|compat| (None, Some(compat.as_str().to_string())));
            for (group_by, compat) in texts.chain(compat) {
                let texts = crate::OptionTexts { group_by, compat, ..crate::OptionTexts::default() };
                let selection = with_options(analysis, Selection::default(), &texts).unwrap();
                check_answer(&run, &whole, analysis, &selection);
            }
        }
    }
    opened_run(folder)
}

#[test]
fn a_run_of_files_answers_as_one_that_has_all_events() {
    let folder = two_ranks();
    let run = check_against_events(folder.path());
    let late = run.analyze(crate::find_analysis("stragglers").unwrap(), &Selection::default()).unwrap();
    let held_up = &late.results.column("held_up_ns").unwrap().values;
    assert_eq!(held_up, &Values::Int(vec![Some(200_000), Some(0)]));
    let rows = |name: &str| run.analyze(crate::find_analysis(name).unwrap(), &Selection::default()).unwrap().results;
    for name in
        ["modules", "source_lines", "roofline", "kernel_durations", "memory_summary", "memory_events", "idle_gaps"]
    {
        assert!(!rows(name).is_empty(), "{name}");
    }
    let modules = rows("modules");
    let Values::Text(paths) = &modules.column("path").unwrap().values else { panic!() };
    let paths: Vec<&str> = paths.iter().flatten().map(|path| &**path).collect();
    assert_eq!(paths, ["Net_0", "Net_0.Linear_0", "Net_0.Linear_1"]);
}

#[test]
fn some_of_three_ranks_are_put_together() {
    let folder = two_ranks();
    written(folder.path(), "0.json", 2, 30);
    check_against_events(folder.path());
}

/// The recorded run of two ranks, whose processes also read and write files at all times.
fn two_ranks_with_files() -> tempfile::TempDir {
    use stepscope_capture::IoCall;
    use stepscope_capture::io::IoFunction::{Lseek, Open, Pread, Pwrite};
    let folder = tempfile::tempdir().unwrap();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/ddp-cpu");
    std::fs::copy(recorded.join("run.json"), folder.path().join("run.json")).unwrap();
    for rank in ["rank=0", "rank=1"] {
        std::fs::create_dir(folder.path().join(rank)).unwrap();
        for entry in std::fs::read_dir(recorded.join(rank)).unwrap() {
            let part = entry.unwrap().path();
            let mut capture = stepscope_run::read_part(&part).unwrap();
            capture.files = vec!["/data/a".into(), "/data/b".into(), "/out/c".into()];
            let (first, last) = (capture.opened_ns, capture.events.iter().map(|event| event.end_ns).max().unwrap());
            let between = (last - first) / 400;
            let call = |at: i64| {
                let (file, function) = match at % 7 {
                    0 => (at % 2, Open),
                    1 => (2, Pwrite),
                    2 => (0, Lseek),
                    _ => (at / 10 % 2, Pread),
                };
                let bytes = function.moves_bytes().then_some(4_096 * (at % 3));
                let start_ns = first + at * between;
                IoCall {
                    thread: 0,
                    start_ns,
                    end_ns: start_ns + between * (1 + at % 3) / 4,
                    function,
                    errno: if at % 50 == 0 { 2 } else { 0 },
                    file: Some(file as u32),
                    other_file: None,
                    bytes,
                    asked_bytes: bytes.filter(|_| at % 2 == 0).map(|bytes| bytes + 1),
                    offset: bytes.map(|_| at * 4_096),
                }
            };
            capture.io = (0..400).map(call).collect();
            let again = folder.path().join(rank).join(part.file_name().unwrap());
            stepscope_run::write_part(&again, &capture).unwrap();
        }
    }
    folder
}

#[test]
fn calls_on_files_of_ranks_are_those_of_all_events() {
    let folder = two_ranks_with_files();
    let run = check_against_events(folder.path());
    for name in ["io_summary", "io_files", "io_curve"] {
        let rows = run.analyze(crate::find_analysis(name).unwrap(), &Selection::default()).unwrap().results;
        let Values::Int(ranks) = &rows.column("rank").unwrap().values else { panic!() };
        assert!(ranks.contains(&Some(0)) && ranks.contains(&Some(1)), "{name}");
    }
}

#[test]
fn only_what_compares_ranks_event_by_event_needs_all_events() {
    let named = |compat: Option<Compat>| {
        let selection = Selection { compat, ..Selection::default() };
        let needing = |analysis: &&Analysis| matches!(analysis.needs_for(&selection), Needs::AllEvents);
        let answering =
            catalogue().iter().filter(|analysis| compat.is_none_or(|of| analysis.options.compat.contains(&of)));
        answering.filter(needing).map(|analysis| analysis.name).collect::<Vec<_>>()
    };
    assert_eq!(named(None), ["critical_path_ranks"]);
    assert_eq!(named(Some(Compat::Tb)), ["stragglers"]);
    assert!(named(Some(Compat::Hta)).is_empty());
}

#[test]
fn no_more_is_made_at_once_than_there_is_room_for() {
    let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let made = each(9, 1, |at| {
        most.fetch_max(running.fetch_add(1, Relaxed) + 1, Relaxed);
        std::thread::yield_now();
        running.fetch_sub(1, Relaxed);
        at
    });
    assert_eq!((made, most.into_inner()), ((0..9).collect(), 1));
}

#[test]
fn clocks_that_are_corrected_are_so_in_all_answers() {
    let folder = tempfile::tempdir().unwrap();
    written_at(folder.path(), "a.json", 1, 100, 6_000_000);
    written_at(folder.path(), "b.json", 0, 0, 1_000_000);
    let run = check_against_events(folder.path());
    assert_eq!(run.trace().clocks.iter().filter(|clock| clock.offset_ns != 0).count(), 1);
    let options = OpenOptions { offsets: vec![(0, 7_000)], align: Align::Base, ..OpenOptions::default() };
    let whole = crate::open_run_with_progress(&[folder.path()], &options, &Progress::default()).unwrap();
    let run = OpenedRun::open(&[folder.path()], &options, &Progress::default()).unwrap();
    let starts = |trace: &Trace, rank: u32| {
        let ids = trace.slices.ids().filter(|id| trace.rank_of_track(trace.slices.track[id.index()]) == rank);
        ids.map(|id| trace.slices.span(id)).collect::<Vec<_>>()
    };
    for rank in [0, 1] {
        let events = run.events(&rank.into()).unwrap();
        assert_eq!((starts(&events, rank), starts(&events, 1 - rank)), (starts(&whole, rank), vec![]));
    }
    let whole = OpenedRun::of(whole);
    catalogue().iter().for_each(|analysis| check_answer(&run, &whole, analysis, &Selection::default()));
}

#[test]
fn windows_of_a_rank_are_together_what_the_rank_did() {
    let folder = two_ranks();
    written_at(folder.path(), "c.json", 0, 50, 1_010_000);
    let run = check_against_events(folder.path());
    let rows = run.analyze(crate::find_analysis("temporal_breakdown").unwrap(), &Selection::default()).unwrap();
    assert_eq!(rows.results.column("rank").unwrap().values, Values::Int(vec![Some(0), Some(1)]));
}

#[test]
fn what_does_not_fit_into_memory_is_answered_rank_by_rank_or_not_at_all() {
    let folder = two_ranks();
    let all_bytes = opened_run(folder.path()).contents().held_bytes;
    let options = OpenOptions { max_memory: Some(all_bytes - 1), ..OpenOptions::default() };
    let run = OpenedRun::open(&[folder.path()], &options, &Progress::default()).unwrap();
    let together = crate::find_analysis("critical_path_ranks").unwrap();
    let error = run.analyze(together, &Selection::default()).unwrap_err();
    assert!(matches!(error, EngineError::TooLarge { files: 2, .. }), "{error:?}");
    let of_each = crate::find_analysis("critical_path").unwrap();
    assert_eq!(run.analyze(of_each, &Selection::default()).unwrap().results.len(), 4);
    assert!(report(&run, &Selection { step: Some(1), ..Selection::default() }, "RUN").is_ok());
    let all = run.analyze_all(&Selection::default()).unwrap();
    let of = |name: &str| run.analyze(crate::find_analysis(name).unwrap(), &Selection::default());
    assert!(all.left_out.iter().any(|(name, _)| *name == "critical_path_ranks"));
    assert!(all.left_out.iter().all(|(name, why)| of(name).as_ref() == Err(why)));
    assert!(all.results.iter().all(|result| of(result.analysis).as_ref() == Ok(result)));
    assert_eq!(all.results.len() + all.left_out.len(), catalogue().len());
}

#[test]
fn runs_of_files_are_compared_as_ones_that_have_all_events() {
    let (folder, other) = (two_ranks(), tempfile::tempdir().unwrap());
    written(other.path(), "a.json", 1, 40);
    written(other.path(), "b.json", 0, 70);
    let of_files = [folder.path(), other.path()].map(opened_run);
    let without_room = [folder.path(), other.path()].map(opened_without_room);
    let whole = [folder.path(), other.path()].map(|folder| OpenedRun::of(crate::open_run(&[folder]).unwrap()));
    let (all, rank) = (Selection::default(), Selection { ranks: 1.into(), ..Selection::default() });
    for (of_a, of_b) in [(&all, &all), (&rank, &all), (&rank, &rank)] {
        for what in Compared::ALL {
            let [own, without_room, expected] =
                [&of_files, &without_room, &whole].map(|[a, b]| compare((a, of_a), (b, of_b), what).unwrap());
            assert_eq!(own, expected, "{what:?}");
            assert_eq!(without_room, expected, "{what:?}");
        }
    }
}

#[test]
fn all_analyses_give_what_each_gives() {
    let folder = two_ranks();
    let selection = Selection { step: Some(1), ..Selection::default() };
    for run in [opened_run(folder.path()), OpenedRun::of(crate::open_run(&[folder.path()]).unwrap())] {
        let each = catalogue().iter().map(|analysis| run.analyze(analysis, &selection).unwrap());
        let expected = AllResults { results: each.collect(), left_out: Vec::new() };
        assert_eq!(run.analyze_all(&selection), Ok(expected));
        assert!(run.analyze_all(&Selection { step: Some(7), ..Selection::default() }).is_err());
    }
}

#[test]
fn no_events_are_read_for_what_is_known_of_ranks() {
    let folder = two_ranks();
    let run = opened_run(folder.path());
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let selection = Selection::default();
    for analysis in catalogue() {
        let is_known =
            matches!(analysis.needs, Needs::Condensed | Needs::EachRankKept | Needs::Rows | Needs::RowsTogether);
        assert_eq!(run.analyze(analysis, &selection).is_ok(), is_known, "{}", analysis.name);
    }
    let memory = run.analyze(crate::find_analysis("memory_summary").unwrap(), &selection).unwrap();
    assert_eq!(memory.results.len(), 2);
    assert!(report(&run, &selection, "RUN").is_ok());
}

#[test]
fn a_kept_summary_is_read_instead_of_the_trace() {
    let folder = two_ranks();
    let path = folder.path().join("a.json");
    let parts = Parts::of(&[folder.path().into()]).unwrap().unwrap();
    let summary = |is_kept| summary(&parts, 0, &Joining::default(), is_kept, &Progress::default()).unwrap();
    let made = summary(true);
    let place = Place::of(folder.path(), "a.json", &[path], "").unwrap();
    let mut other = place.read().expect("it was kept");
    assert_eq!((&other.rows, &other.advice), (&made.rows, &made.advice));
    assert!(other.table("memory_summary").is_some_and(|table| Some(table) == made.table("memory_summary")));
    // What is kept is what is given, whatever the trace says.
    other.trace.name = "kept".into();
    place.write(&mut other);
    assert_eq!(summary(true).trace.name, "kept");
    assert_ne!(summary(false).trace.name, "kept");
}

#[test]
fn what_is_moved_is_from_where_it_is_now() {
    let folder = two_ranks();
    let summary = |folder: &Path| {
        let parts = Parts::Files { name: "run".into(), files: vec![folder.join("a.json")] };
        (summary(&parts, 0, &Joining::default(), true, &Progress::default()).unwrap().trace.sources, parts.source(0))
    };
    let (made, source) = summary(folder.path());
    assert_eq!(made, [source]);
    let moved = tempfile::tempdir().unwrap();
    for name in [".stepscope", "a.json"] {
        std::fs::rename(folder.path().join(name), moved.path().join(name)).unwrap();
    }
    let (kept, source) = summary(moved.path());
    assert_eq!(kept, [source]);
}

#[test]
fn two_files_of_one_rank_and_time_are_read_whole() {
    let folder = two_ranks();
    written(folder.path(), "c.json", 0, 5);
    let run = opened_run(folder.path());
    assert!(run.has_all_events());
    assert_eq!(run.trace().ranks(), [0, 1]);
}

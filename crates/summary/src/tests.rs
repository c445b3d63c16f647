use super::*;
use stepscope_analyses::{AnalysisContext, Needs, RankAdvice, RankRows, Selection, catalogue, condensed};
use stepscope_base::StringId;
use stepscope_trace::simulated::{Job, Schedule};
use stepscope_trace::{Contents, IoAction, IoEvent, IoLayer, SliceId};

fn summary_of(trace: &Trace) -> Summary {
    let all = Selection::default();
    let context = AnalysisContext::new(trace, &all);
    let (condensed, results) = condensed(&context);
    let of_each_rank = catalogue().iter().filter(|analysis| matches!(analysis.needs, Needs::EachRankKept));
    let tables = of_each_rank.map(|analysis| (analysis.name, (analysis.run)(&context).table)).collect();
    let steps = Selection { complete_steps: true, ..Selection::default() };
    let rows_in_steps = Some(RankRows::of(&AnalysisContext::new(trace, &steps)));
    let (contents, rows, advice) = (Contents::of(trace), RankRows::of(&context), RankAdvice::of(&context));
    Summary { trace: condensed, contents, results, rows, rows_in_steps, advice, tables, ..Summary::default() }
}

fn simulated(has_devices: bool) -> Trace {
    let schedule = Schedule::Pipeline { stages: 2, micro_batches: 3 };
    Job { ranks: 4, steps: 3, schedule, has_devices, jitter_ns: 5_000, ..Job::default() }.run().trace_of(1)
}

/// The analyses whose results are kept.
fn names() -> impl Iterator<Item = &'static str> {
    let kept = catalogue().iter().filter(|analysis| matches!(analysis.needs, Needs::EachRankKept));
    kept.map(|analysis| analysis.name)
}

/// A call that says all that can be said.
fn call(slice: SliceId, file: StringId) -> IoEvent {
    let (layer, action, bytes, asked_bytes) = (IoLayer::Posix, IoAction::Read, Some(0), Some(i64::MAX));
    let (other_file, errno) = (file, Some(IoEvent::UNKNOWN_ERROR));
    IoEvent { slice, layer, action, file, other_file, bytes, asked_bytes, offset: Some(7), errno }
}

/// All that a summary holds.
fn text(summary: &Summary) -> String {
    let Summary { trace, contents, results, rows, rows_in_steps, advice, .. } = summary;
    let tables: Vec<_> = names().map(|name| (name, summary.table(name))).collect();
    let Trace { strings, .. } = trace;
    let texts = (0..strings.len()).map(|at| strings.get(stepscope_base::StringId::from_index(at)).to_string());
    let events: Vec<_> = trace.device_events.iter().map(|event| (event.slice, event.launch, event.op)).collect();
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {events:?} {:?} {contents:?} {results:?} {rows:?} {rows_in_steps:?} {advice:?} {tables:?}",
        texts.collect::<Vec<_>>(),
        trace.processes,
        trace.devices,
        trace.tracks,
        trace.slices,
        trace.ops,
        trace.io,
        trace.collectives,
        trace.steps,
        trace.findings,
        trace.facts
    )
}

#[test]
fn what_is_written_comes_back() {
    for has_devices in [true, false] {
        let mut trace = simulated(has_devices);
        trace.facts.push(("torch_version".into(), "2.13.0".into()));
        trace.io = vec![call(SliceId(0), trace.strings.intern("/data/a"))];
        trace.findings.add(stepscope_trace::FindingCode::RankFromName, || "rank 1: a.json".into());
        trace.findings.add_count(stepscope_trace::FindingCode::RankFromName, 9);
        let summary = summary_of(&trace);
        assert!(summary.trace.is_sound() && summary.tables.iter().any(|(_, table)| !table.is_empty()));
        let bytes = to_bytes(&summary, 7).unwrap();
        let mut back = from_bytes(bytes.clone(), 7).unwrap();
        assert!(back.tables.is_empty(), "they are read when they are asked for");
        let table = |name| Some((name, table_from_bytes(bytes.clone(), 7, name).unwrap()?));
        back.tables = names().filter_map(table).collect();
        assert_eq!(text(&back), text(&summary));
        assert!(from_bytes(to_bytes(&summary, 7).unwrap(), 8).is_err(), "it is of something else");
    }
}

#[test]
fn the_rank_can_be_stated_later() {
    let mut summary = summary_of(&simulated(true));
    summary.set_rank(7);
    let tables: Vec<Table> = names().filter_map(|name| summary.table(name)).collect();
    let ranks = tables.iter().filter_map(|table| table.column("rank"));
    let ranks: Vec<_> = ranks.map(|column| column.values.clone()).collect();
    assert!(
        ranks.iter().all(|values| matches!(values, Values::Int(ranks) if ranks.iter().all(|rank| *rank == Some(7))))
    );
    assert!(ranks.iter().any(|values| !values.is_empty()));
}

#[test]
fn damaged_bytes_are_an_error() {
    let bytes = to_bytes(&summary_of(&simulated(true)), 7).unwrap();
    for end in (0..bytes.len()).step_by(997) {
        assert!(from_bytes(bytes[..end].to_vec(), 7).is_err(), "{end}");
    }
    for at in (0..bytes.len()).step_by(101) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        // Some bits say nothing; what comes back fits together all the same.
        if let Ok(summary) = from_bytes(damaged, 7) {
            assert!(summary.trace.is_sound() && summary.results.fits(&summary.trace), "{at}");
        }
    }
}

#[test]
fn a_summary_is_kept_beside_its_trace_until_that_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rank1.json");
    std::fs::write(&path, "{}").unwrap();
    let beside =
        |surroundings| Place::of(folder.path(), "rank1.json", std::slice::from_ref(&path), surroundings).unwrap();
    let of = || beside("");
    let place = of();
    assert!(place.read().is_none());
    let summary = summary_of(&simulated(true));
    let write = |place: &Place| {
        let mut kept = summary.clone();
        place.write(&mut kept);
        assert!(kept.place.is_some() && kept.tables.is_empty());
        assert_eq!(text(&kept), text(&summary), "what was let go of is read again");
    };
    write(&place);
    assert_eq!(text(&of().read().unwrap()), text(&summary));
    assert!(beside("an earlier clock").read().is_none(), "it depends on more than its file");
    let kept = || std::fs::read_dir(folder.path().join(".stepscope")).unwrap().count();
    std::fs::write(&path, "{ }").unwrap();
    let changed = of();
    assert!(changed != place && changed.read().is_none());
    write(&changed);
    assert_eq!(kept(), 1, "the earlier one is of no trace any more");
}

//! Traces that other people recorded with DFTracer, where the folder with them is there: numbers that a Python script
//! counted row by row, and what holds after damage.

use std::path::{Path, PathBuf};
use stepscope_analyses::step_breakdown::step_breakdown;
use stepscope_analyses::{AnalysisContext, Compat, Selection, Values, find};
use stepscope_import::{open, open_bytes};
use stepscope_trace::{FindingCode, IoAction, Trace};

fn folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let folder = std::env::var_os("STEPSCOPE_TRACES").map_or(beside, PathBuf::from);
    let folder = folder.join("dftracer");
    folder.is_dir().then_some(folder)
}

/// Slices, calls on files, distinct files, bytes read, bytes written, ns in slices.
fn counts(trace: &Trace) -> [i64; 6] {
    let moved = |action| trace.io.iter().filter(|io| io.action == action).filter_map(|io| io.bytes).sum::<i64>();
    let mut files: Vec<_> = trace.io.iter().map(|io| io.file).collect();
    files.sort_unstable();
    files.dedup();
    [
        trace.slices.len() as i64,
        trace.io.len() as i64,
        files.len() as i64,
        moved(IoAction::Read),
        moved(IoAction::Write),
        trace.slices.dur_ns.iter().sum(),
    ]
}

#[test]
fn everything_equals_an_independent_count() {
    let Some(folder) = folder() else { return };
    let trace = open(folder.join("test.pfw")).expect("a trace");
    assert_eq!(counts(&trace), [1_012, 1_012, 2, 131_072_000, 3_276_800, 931_087_000]);
    let trace = open(folder.join("dlio_resnet50_v1.pfw.gz")).expect("a trace");
    assert_eq!(counts(&trace), [89_054, 88_010, 102, 21_455_286_649, 0, 902_585_708_000]);
    assert_eq!(trace.findings.count(FindingCode::RepeatedEvent), 4_840);
    let trace = open(folder.join("cm1")).expect("a trace");
    assert_eq!(counts(&trace), [25_728, 25_728, 829, 243_994, 61_512_836, 3_319_439_000]);
    assert_eq!(trace.findings.count(FindingCode::AmbiguousFile), 124);
    assert_eq!(trace.ranks(), [0, 1, 2, 3]);
}

/// Rows of the summary of DFAnalyzer as `rank category calls total busy bytes files`, times in ns.
fn facts_of_dfanalyzer(trace: &Trace) -> Vec<String> {
    let selection = Selection { compat: Some(Compat::DfAnalyzer), ..Selection::default() };
    let table = (find("io_summary").expect("an analysis").run)(&AnalysisContext::new(trace, &selection)).table;
    let cell = |name: &str, row: usize| match &table.column(name).expect("a column").values {
        Values::Int(values) => values[row].expect("a number").to_string(),
        Values::Text(values) => values[row].as_deref().expect("a text").to_string(),
        _ => panic!("{name} is neither a number nor a text"),
    };
    let names = ["rank", "category", "count", "total_ns", "busy_ns", "bytes", "files"];
    (0..table.len()).map(|row| names.map(|name| cell(name, row)).join(" ")).collect()
}

/// `dfanalyzer.py` beside the fixtures counted them by DFAnalyzer's definitions.
#[test]
fn the_summary_of_dfanalyzer_is_what_a_script_counts() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/dftracer");
    let counted = std::fs::read_to_string(fixtures.join("dfanalyzer.txt")).expect("what the script printed");
    let mut jobs: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in counted.lines() {
        match jobs.last_mut() {
            Some((_, rows)) if line.contains(' ') => rows.push(line),
            _ => jobs.push((line, Vec::new())),
        }
    }
    assert_eq!(jobs.len(), 6);
    for (job, rows) in jobs {
        assert_eq!(facts_of_dfanalyzer(&open(fixtures.join(job)).expect("a trace")), rows, "{job}");
    }
}

#[test]
fn calls_on_files_are_a_class_of_step_time() {
    let Some(folder) = folder() else { return };
    // One thread: calls do not overlap, and their time is the sum that the script found.
    let trace = open(folder.join("test.pfw")).expect("a trace");
    let row = step_breakdown(&trace, &Selection::default()).remove(0);
    assert_eq!((row.io_ns, row.total_ns - row.io_ns), (931_087_000, row.other_ns));
}

#[test]
fn a_cut_trace_gives_what_stands_before_the_cut() {
    let Some(folder) = folder() else { return };
    let path = folder.join("test.pfw");
    let bytes = std::fs::read(&path).expect("a file");
    let mut before = 0;
    for cut in (1..=200).map(|part| bytes.len() * part / 200) {
        let slices = open_bytes(&path, &bytes[..cut]).expect("a trace").slices.len();
        assert!(slices >= before, "cut at {cut}");
        before = slices;
    }
    assert_eq!(before, 1_012);
}

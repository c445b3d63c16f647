//! Sizes that hold whatever a run has, and which runs may be opened.

use crate::pages::{Asked, MAX_BYTES, MAX_ROWS, Page};
use crate::runs::Runs;
use crate::serve::Options;
use crate::slowest::What;
use crate::{tools, verdict};
use rmcp::model::JsonObject;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stepscope_engine::report::{NotJudged, Report, report};
use stepscope_engine::{Column, Envelope, FindingRow, OpenedRun, Selection, Table, Unit, find_analysis, list_analyses};
use stepscope_trace::drawn::drawn;

/// Bytes of all tools as a client lists them.
const MAX_LIST_BYTES: usize = 6 << 10;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// `cells` with each a thousand times as long.
fn long(cells: &str) -> String {
    cells.chars().map(|cell| cell.to_string().repeat(1_000)).collect()
}

/// `cells` again and again, in the time that they take there: what a device does once is no advice.
fn often(cells: &str) -> String {
    cells.chars().map(|cell| cell.to_string().repeat(125)).collect::<String>().repeat(8)
}

fn report_of(drawing: &str) -> Report {
    report(&OpenedRun::of(drawn(drawing)), &Selection::default(), "").unwrap()
}

/// A report in which every text is `text`, with many answers.
fn report_with(text: &str) -> Report {
    let mut report = report_of(&format!("rank 0 step {}\nrank 0 stream 7 {}", long("00001111"), often("CCCCNNNN")));
    assert!(!report.advice.is_empty());
    let mut row = report.advice[0].clone();
    row.says = text.into();
    (row.line, row.slice) = (Some(text.into()), Some(text.into()));
    (row.rank, row.device, row.others) = (Some(u32::MAX), Some(i64::MAX), usize::MAX / 100);
    (row.gain_ns, row.gain_ratio) = (Some(i64::MAX), Some(0.123_456_789_012_345_6));
    (row.gain_low_ns, row.gain_high_ns, row.own_gain_ns) = (Some(i64::MAX), Some(i64::MAX), Some(0));
    // As long as one is at most, with what JSON writes with two characters.
    row.diff = Some(Box::leak("+\"\n".repeat(100).into_boxed_str()));
    row.to_do = Box::leak(text.to_string().into_boxed_str());
    report.advice = vec![row; 50];
    report.run.name = text.into();
    report.verdict = vec![text.into(); 50];
    report.healthy = Some(text.into());
    report.coverage.not_judged = vec![NotJudged { lacks: text.into(), rules: vec!["a.rule"; 60] }; 60];
    let finding = FindingRow {
        code: "analysis.a_finding_with_a_long_name",
        severity: "severe",
        count: u64::MAX,
        says: "",
        examples: vec![text.into()],
    };
    report.findings = vec![finding; 50];
    report
}

#[test]
fn a_verdict_never_takes_more_than_2048_bytes() {
    let texts =
        ["", "x", "\"\\", "void kernel<float, 4>(int) ", "層", "\u{1f525}", "e\u{301}\u{301}", "\u{1b}\u{202e}\u{0}\n"];
    for text in texts {
        for times in [1, 7, 40, 100, 5_000] {
            let verdict = verdict::in_short(&report_with(&text.repeat(times)));
            assert!(verdict.len() <= verdict::MAX_BYTES, "{text:?} × {times}: {} bytes", verdict.len());
            let verdict = parsed(&verdict);
            assert!(!verdict["answers"].as_array().unwrap().is_empty(), "an answer is told in any case");
            assert_eq!(verdict["answers"][0]["id"], "comm.overlap@0.0");
            assert!(verdict["answers_total"].as_u64().unwrap() > 50, "what is left out is counted");
        }
    }
}

#[test]
fn a_verdict_has_the_answers_of_the_report_in_their_order() {
    let report = report_of(&format!("rank 0 stream 7 {}\nrank 1 stream 7 {}", often("CCCCNNNN"), often("CCCCCCNN")));
    let verdict = parsed(&verdict::in_short(&report));
    let answers = verdict["answers"].as_array().unwrap();
    let told: Vec<_> = answers.iter().map(|row| (row["id"].as_str(), row["gain_ns"].as_i64())).collect();
    let known: Vec<_> = report.advice.iter().map(|row| (Some(row.id.as_str()), row.gain_ns)).collect();
    assert_eq!(told, known);
    let range: Vec<_> = answers.iter().map(|row| (row["gain_low_ns"].as_i64(), row["gain_high_ns"].as_i64())).collect();
    assert_eq!(range, report.advice.iter().map(|row| (row.gain_low_ns, row.gain_high_ns)).collect::<Vec<_>>());
    assert_eq!(range[0], (Some(0), report.advice[0].gain_ns), "an upper bound");
    assert_eq!(verdict["answers_total"], 2, "one rule of two ranks");
    assert_eq!(verdict["run"]["ranks"], 2);
    assert_eq!(verdict["coverage"]["rules_judged"], report.coverage.rules_judged);
    assert_eq!(verdict["coverage"]["explain"], "not_judged");
}

#[test]
fn the_first_answer_has_the_change_where_it_is_mechanical() {
    let mut report = report_of(&format!("rank 0 stream 7 {}", often("CCCCNNNN")));
    let plain = parsed(&verdict::in_short(&report));
    assert!(plain["answers"][0].get("diff").is_none(), "{plain}");
    report.advice[0].diff = Some("-a\n+b");
    report.advice.push(report.advice[0].clone());
    let verdict = parsed(&verdict::in_short(&report));
    assert_eq!(verdict["answers"][0]["diff"], "-a\n+b");
    assert!(verdict["answers"][1]["fault"].is_string() && verdict["answers"][1].get("diff").is_none(), "{verdict}");
}

#[test]
fn a_healthy_run_says_so_first_and_has_no_answers() {
    let report = report_of(&format!("rank 0 step {}\nrank 0 stream 7 {}", long("0011223344"), long("CCCCCCCCCC")));
    let verdict = parsed(&verdict::in_short(&report));
    assert!(verdict["says"][0].as_str().unwrap().starts_with("Nothing above 4 % to gain, by "), "{verdict}");
    assert_eq!((&verdict["answers"], &verdict["answers_total"]), (&json!([]), &json!(0)));
    assert_eq!((&verdict["run"]["steps"], &verdict["run"]["step_mean_ns"]), (&json!(5), &json!(2_000_000)));
}

#[test]
fn an_empty_trace_is_no_healthy_run() {
    let verdict = parsed(&verdict::in_short(&report_of("")));
    assert_eq!(verdict["says"], json!(["Nothing was recorded: the trace holds no events."]));
    assert_eq!(verdict["coverage"]["rules_judged"], 0);
}

fn result(texts: Vec<String>) -> Envelope {
    let (names, numbers): (Vec<_>, Vec<_>) = texts.into_iter().zip(0_i64..).unzip();
    let name = Column::new("name", Unit::Text, "", names.iter().map(|name| Some(name.as_str())).collect());
    let total = Column::new("total_ns", Unit::Nanoseconds, "", numbers.into_iter().map(Some).collect());
    let run = OpenedRun::of(drawn(""));
    let envelope = run.analyze(find_analysis("operators").unwrap(), &Selection::default()).unwrap();
    Envelope { results: Table { columns: vec![name, total] }, ..envelope }
}

fn page(texts: &[String], asked: &Asked) -> Value {
    parsed(&Page::of_result(result(texts.to_vec()), asked).unwrap().to_json())
}

#[test]
fn a_page_has_at_most_so_many_rows_and_says_where_the_rest_begins() {
    let texts: Vec<String> = (0..500).map(|row| row.to_string()).collect();
    let counts = |limit, offset| {
        let page = page(&texts, &Asked { limit, offset, ..Asked::default() });
        (page["rows"].as_array().unwrap().len(), page["rows_total"].as_u64().unwrap(), page["next_offset"].as_u64())
    };
    assert_eq!(counts(None, 0), (20, 500, Some(20)));
    assert_eq!(counts(Some(9_999), 0), (MAX_ROWS, 500, Some(200)));
    assert_eq!(counts(Some(30), 480), (20, 500, None));
    assert_eq!(counts(Some(usize::MAX), usize::MAX), (0, 500, None));
    assert_eq!(counts(Some(0), 0), (0, 500, Some(0)));
}

#[test]
fn pages_that_follow_each_other_have_every_row_once_whatever_their_size() {
    let texts: Vec<String> = (0..300).map(|row| "層\"".repeat(row * 7 % 900)).collect();
    for has_whole_texts in [false, true] {
        let (mut seen, mut offset) = (Vec::new(), Some(0));
        while let Some(at) = offset {
            let asked = Asked { limit: Some(MAX_ROWS), offset: at as usize, has_whole_texts, ..Asked::default() };
            let page = page(&texts, &asked);
            let rows = page["rows"].as_array().unwrap();
            let bytes: usize = rows.iter().map(|row| row.to_string().len()).sum();
            assert!(rows.len() == 1 || bytes <= MAX_BYTES, "{} rows in {bytes} bytes", rows.len());
            seen.extend(rows.iter().map(|row| row["total_ns"].as_u64().unwrap()));
            offset = page["next_offset"].as_u64();
        }
        assert_eq!(seen, (0..300).collect::<Vec<_>>());
    }
}

#[test]
fn long_texts_are_shortened_openly_and_told_whole_when_asked_for() {
    let texts = ["void gemm(int)".to_string(), "x".repeat(5_000)];
    let short = page(&texts, &Asked::default());
    assert_eq!(short["shortened"], json!(["name"]));
    assert_eq!(short["rows"][0]["name"], "void gemm(int)");
    assert!(short["rows"][1]["name"].as_str().unwrap().contains('…'));
    let whole = page(&texts, &Asked { has_whole_texts: true, ..Asked::default() });
    assert_eq!((&whole["shortened"], &whole["rows"][1]["name"]), (&json!([]), &json!(texts[1])));
}

#[test]
fn the_list_of_tools_is_small_and_its_schemas_say_what_is_needed() {
    let list = serde_json::to_value(tools::list()).unwrap();
    assert!(list.to_string().len() <= MAX_LIST_BYTES, "{} bytes", list.to_string().len());
    let tools = list.as_array().unwrap();
    let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    assert_eq!(tool("explain")["inputSchema"]["required"], json!(["id"]));
    let what = &tool("slowest")["inputSchema"]["properties"]["what"];
    assert_eq!(what["enum"], json!(["operators", "kernels", "steps", "modules", "collectives", "files"]), "{what}");
    let table = &tool("table")["inputSchema"]["properties"];
    assert_eq!((&table["limit"]["type"], &table["columns"]["items"]["type"]), (&json!("integer"), &json!("string")));
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(!tool.to_string().contains("null"), "{tool}");
    }
}

#[test]
fn every_kind_of_what_is_slowest_is_of_columns_that_there_are() {
    for what in [What::Operators, What::Kernels, What::Steps, What::Modules, What::Collectives, What::Files] {
        let columns = find_analysis(what.analysis()).unwrap().columns(&Selection::default());
        for name in what.columns().iter().chain(what.measures()) {
            assert!(columns.iter().any(|column| column.name == *name), "{what:?} has no {name}");
        }
    }
}

/// A trace with one operator, written to `path`.
fn write_trace(path: &Path, operator: &str) {
    let event = format!(r#"{{"ph":"X","cat":"cpu_op","name":"{operator}","pid":1,"tid":1,"ts":1,"dur":5}}"#);
    std::fs::write(path, format!(r#"{{"traceEvents":[{event}]}}"#)).unwrap();
}

fn runs_of(given: &[PathBuf], only: bool) -> Runs {
    Runs::of(Options { runs: given.to_vec(), only, ..Options::default() }).unwrap()
}

fn call(runs: &Runs, tool: &str, arguments: Value) -> Result<Value, Value> {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    tools::call(runs, tool, arguments).map(|text| parsed(&text)).map_err(|failure| parsed(&failure.to_json()))
}

#[test]
fn a_run_is_read_once_until_its_file_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    write_trace(&path, "aten::mm");
    let runs = runs_of(std::slice::from_ref(&path), false);
    let [first, again] = [runs.get(None).unwrap(), runs.get(path.to_str()).unwrap()];
    assert!(Arc::ptr_eq(&first, &again));
    write_trace(&path, "aten::addmm_");
    assert!(!Arc::ptr_eq(&first, &runs.get(None).unwrap()));
    let rows = call(&runs, "table", json!({ "analysis": "operators", "columns": ["name"] })).unwrap();
    assert_eq!(rows["rows"], json!([{ "name": "aten::addmm_" }]));
    std::fs::remove_file(&path).unwrap();
    let gone = call(&runs, "verdict", json!({})).unwrap_err();
    assert_eq!(gone["error"]["what"], "no such file or folder");
}

#[test]
fn the_runs_asked_for_last_stay_open() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..6).map(|run| folder.path().join(format!("{run}.json"))).collect();
    paths.iter().for_each(|path| write_trace(path, "aten::mm"));
    let runs = runs_of(&[], false);
    let open = |run: usize| runs.get(paths[run].to_str()).unwrap();
    let first = open(0);
    (1..4).for_each(|run| drop(open(run)));
    assert!(Arc::ptr_eq(&first, &open(0)), "four fit");
    let second = open(1);
    [4, 5, 2].into_iter().for_each(|run| drop(open(run)));
    assert!(Arc::ptr_eq(&second, &open(1)));
    assert!(!Arc::ptr_eq(&first, &open(0)), "it made room");
}

#[test]
fn one_run_stays_where_memory_is_scarce() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a.json", "b.json"].map(|name| folder.path().join(name));
    [&a, &b].into_iter().for_each(|path| write_trace(path, "aten::mm"));
    let mut options = Options::default();
    options.open.max_memory = Some(1);
    let runs = Runs::of(options).unwrap();
    let open = |path: &PathBuf| runs.get(path.to_str()).unwrap();
    let first = open(&a);
    assert!(Arc::ptr_eq(&first, &open(&a)));
    let _ = open(&b);
    assert!(!Arc::ptr_eq(&first, &open(&a)));
}

#[test]
fn with_only_nothing_else_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let [inside, outside] = ["runs", "other"].map(|name| folder.path().join(name));
    [&inside, &outside].into_iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
    [&inside, &outside].into_iter().for_each(|folder| write_trace(&folder.join("a.json"), "aten::mm"));
    let link = inside.join("link.json");
    #[cfg(unix)]
    std::os::unix::fs::symlink(outside.join("a.json"), &link).unwrap();
    let list = inside.join("list");
    std::fs::write(&list, outside.join("a.json").to_str().unwrap()).unwrap();
    let runs = runs_of(std::slice::from_ref(&inside), true);
    assert!(runs.get(inside.join("a.json").to_str()).is_ok());
    let around = inside.join("../other/a.json");
    for path in [outside.join("a.json"), around, link, PathBuf::from(format!("@{}", list.display()))] {
        let error = call(&runs, "verdict", json!({ "run": path })).unwrap_err();
        assert!(error["error"]["what"].as_str().unwrap().contains("--only"), "{}: {error}", path.display());
    }
    assert!(runs_of(&[inside], false).get(outside.join("a.json").to_str()).is_ok());
}

#[test]
fn standard_input_is_no_run() {
    for run in ["-", "/dev/stdin", "/dev/null"] {
        let error = call(&runs_of(&[], false), "verdict", json!({ "run": run })).unwrap_err();
        assert_eq!(error["error"]["what"], "neither a file nor a folder", "{run}");
    }
}

#[test]
fn what_cannot_be_answered_says_what_where_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    write_trace(&path, "aten::mm");
    std::fs::write(folder.path().join("text"), "no trace").unwrap();
    let runs = runs_of(std::slice::from_ref(&path), false);
    let cases = [
        ("verdict", json!({ "run": "not/there" }), "no such file", "not/there", "runs at hand: "),
        ("verdict", json!({ "run": folder.path().join("text") }), "", "text", ""),
        ("verdict", json!({ "runs": "a" }), "unknown field `runs`", "", "its arguments are run"),
        ("explain", json!({}), "missing field `id`", "", "its arguments are "),
        ("explain", json!({ "id": "comm.exposed" }), "no answer called \"comm.exposed\"", "", "not_judged"),
        ("slowest", json!({ "what": "threads" }), "unknown variant `threads`", "", "arguments"),
        ("slowest", json!({ "what": "steps", "limit": -1 }), "-1", "", "arguments"),
        ("table", json!({ "analysis": "operatros" }), "no analysis called", "", "did you mean \"operators\"?"),
        ("table", json!({ "analysis": "xyzzy" }), "no analysis called", "", "the tool analyses lists them"),
        (
            "table",
            json!({ "analysis": "operators", "sort": "time" }),
            "no column called",
            "operators",
            "its columns are",
        ),
        (
            "table",
            json!({ "analysis": "operators", "columns": ["x"] }),
            "no column called",
            "operators",
            "its columns are",
        ),
        ("table", json!({ "analysis": "operators", "rank": 7 }), "rank 7 is not in this run", "a", "its ranks are 0"),
        ("table", json!({ "analysis": "operators", "step": 7 }), "step 7 is not", "a", "leave step out"),
        ("table", json!({ "analysis": "kernels", "group_by": "color" }), "does not accept group-by", "", "it accepts"),
        ("analyses", json!({ "analysis": "kernel" }), "no analysis called", "", "kernel"),
        ("compare", json!({ "a": path, "b": "not/there" }), "no such file", "not/there", "runs at hand"),
        ("query", json!({}), "there is no tool called \"query\"", "", "the tools are verdict, explain, "),
    ];
    for (tool, arguments, what, place, hint) in cases {
        let error = call(&runs, tool, arguments.clone()).unwrap_err();
        let has = |field: &str, text: &str| error["error"][field].as_str().unwrap_or_default().contains(text);
        assert!(has("what", what) && has("where", place) && has("hint", hint), "{tool} {arguments}: {error}");
    }
    let several = runs_of(&[path.clone(), path], false);
    assert!(call(&several, "verdict", json!({})).unwrap_err().to_string().contains("no run was named"));
}

#[test]
fn every_analysis_can_be_listed_and_read_by_its_name() {
    let listed = parsed(&tools::call(&runs_of(&[], false), "analyses", JsonObject::new()).unwrap());
    assert_eq!(listed["analyses"].as_array().unwrap().len(), list_analyses().len());
    let run = OpenedRun::of(drawn("rank 0 step 0011\nrank 0 cpu 1 aab.\nrank 0 stream 7 CCNN"));
    for (name, _) in list_analyses() {
        let page = parsed(&Page::of(&run, name, &Asked::default()).unwrap().to_json());
        assert_eq!(page["analysis"], name);
        assert!(page["rows_total"].as_u64() >= Some(page["rows"].as_array().unwrap().len() as u64), "{page}");
    }
}

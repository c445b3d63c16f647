//! Results are those of the engine, number for number, however they are asked for.

use crate::served::{Served, inputs};
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;
use stepscope_engine::{self as engine, OpenedRun, Selection, Trace};

fn of_engine(trace: &Trace, name: &str, selection: &Selection) -> Value {
    serde_json::from_str(&engine::analyze(trace, name, selection).unwrap().to_json()).unwrap()
}

#[test]
fn every_analysis_gives_what_the_command_prints() {
    for input in inputs() {
        // By the name that it was given, so that the sources are the same.
        let (served, trace) = (Served::of(input.clone()), engine::open_run(std::slice::from_ref(&input)).unwrap());
        let step = trace.steps.get(trace.steps.len() / 2).map_or(0, |step| step.number);
        let (start_ns, end_ns) = trace.span().map(|span| (span.start_ns, span.end_ns / 2)).unwrap();
        let window = Selection::window_of(Some(start_ns), Some(end_ns));
        let parts = [
            (String::new(), Selection::default()),
            (format!("&rank=0&step={step}"), Selection { ranks: 0.into(), step: Some(step), ..Selection::default() }),
            (
                format!("&rank=0,0-3&start_ns={start_ns}&end_ns={end_ns}"),
                Selection { ranks: "0-3".parse().unwrap(), window, ..Selection::default() },
            ),
        ];
        for (name, _) in engine::list_analyses() {
            for (query, selection) in &parts {
                let expected = of_engine(&trace, name, selection);
                let answer = served.json(&format!("runs/0/analyses/{name}?limit=10000{query}"));
                let rows = expected["results"].as_array().unwrap();
                for field in ["schema", "analysis", "definition", "run", "coverage", "findings"] {
                    assert_eq!(answer[field], expected[field], "{name}{query} {field}");
                }
                assert_eq!(answer["results"].as_array().unwrap()[..], rows[..rows.len().min(10_000)], "{name}{query}");
                assert_eq!(answer["page"]["total"].as_u64(), Some(rows.len() as u64));
                let columns: Vec<&str> = answer["columns"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|column| column["name"].as_str().unwrap())
                    .collect();
                if let Some(Value::Object(row)) = rows.first() {
                    assert!(
                        row.keys().all(|key| columns.contains(&key.as_str())) && row.len() == columns.len(),
                        "{name}"
                    );
                }
            }
        }
        let report =
            engine::report::report(&OpenedRun::of(trace.clone()), &Selection::default(), &input.display().to_string())
                .unwrap();
        let mut printed: Value = serde_json::from_str(&report.to_json()).unwrap();
        // Where there is a list of steps by rank, the report does not repeat it.
        let listed = printed.pointer_mut("/steps").and_then(Value::as_object_mut).and_then(|of| of.remove("steps"));
        assert_eq!(listed.map_or(0, |steps| steps.as_array().unwrap().len()), trace.steps.len());
        assert_eq!(served.json("runs/0/report"), printed);
        let page = served.get("runs/0/report.html");
        assert!(
            page.text().contains("<!DOCTYPE html>")
                && page.header("content-disposition").unwrap().starts_with("attachment")
        );
    }
}

#[test]
fn rows_are_sorted_searched_and_paged_here() {
    let input = &inputs()[0];
    let (served, trace) = (Served::of(input.clone()), engine::open_run(std::slice::from_ref(&input)).unwrap());
    let all = of_engine(&trace, "operators", &Selection::default());
    let mut rows: Vec<Value> = all["results"].as_array().unwrap().clone();
    rows.retain(|row| row["name"].as_str().unwrap().contains("mm") && row["count"].as_i64() > Some(100));
    rows.sort_by_key(|row| row["count"].as_i64());
    let answer = served.json("runs/0/analyses/operators?search=MM&where=count:gt:100&sort=-count&offset=1&limit=2");
    assert_eq!(answer["results"].as_array().unwrap()[..], rows[1..3]);
    assert_eq!(
        answer["page"],
        serde_json::json!({
            "offset": 1, "rows": 2, "matching": rows.len(), "total": all["results"].as_array().unwrap().len(),
            "matching_sums": 0, "total_sums": 0,
        })
    );
    let by_module = served.json("runs/0/analyses/operators?group_by=category&limit=1");
    let group_by = Some(stepscope_analyses::GroupBy::Category);
    assert_eq!(
        by_module["results"][0],
        of_engine(&trace, "operators", &Selection { group_by, ..Selection::default() })["results"][0]
    );
}

#[test]
fn files_have_all_rows_that_match() {
    let served = Served::of(inputs()[0].clone());
    let ask = |format: &str| served.get(&format!("runs/0/analyses/operators?search=aten&limit=1&format={format}"));
    let matching = ask("json").json()["page"]["matching"].as_u64().unwrap() as usize;
    assert!(matching > 20);
    assert_eq!(ask("csv").text().lines().count(), matching + 1);
    assert_eq!(ask("tsv").text().lines().count(), matching + 1);
    assert_eq!(ask("md").text().lines().filter(|line| line.starts_with("| aten")).count(), matching);
    let parquet = SerializedFileReader::new(parquet_bytes(ask("parquet").body)).unwrap();
    assert_eq!(parquet.metadata().file_metadata().num_rows(), matching as i64);
    let arrow = ask("arrow");
    let batches = arrow_ipc::reader::StreamReader::try_new(arrow.body.as_slice(), None).unwrap();
    assert_eq!(batches.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), matching);
    let disposition = |format: &str| ask(format).header("content-disposition").unwrap().to_string();
    assert_eq!(disposition("csv"), "attachment; filename=\"gpt-cpu.operators.csv\"");
    assert_eq!(ask("xlsx").status, 400);
}

fn parquet_bytes(bytes: Vec<u8>) -> std::fs::File {
    use std::io::Write;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    file
}

#[test]
fn the_catalogue_says_what_each_analysis_is() {
    let served = Served::of(inputs()[0].clone());
    let catalogue = served.json("analyses");
    let names: Vec<&str> = catalogue.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, engine::list_analyses().into_iter().map(|(name, _)| name).collect::<Vec<_>>());
    for row in catalogue.as_array().unwrap() {
        assert_eq!(row["sections"].as_object().unwrap().len(), 4, "{row}");
    }
}

#[test]
fn what_cannot_be_answered_says_why() {
    let served = Served::of(inputs()[0].clone());
    for (path, status, word) in [
        ("runs/9", 404, "no such run"),
        ("runs/x/report", 404, "no such run"),
        ("runs/0/analyses/operatros", 404, "operatros"),
        ("runs/0/analyses/operators?sort=xyz", 400, "xyz"),
        ("runs/0/analyses/operators?rank=7", 400, "rank 7"),
        ("runs/0/analyses/operators?step=9999", 400, "step 9999"),
        ("runs/0/analyses/operators?group_by=moon", 400, "moon"),
        ("runs/0/analyses/operators?limt=3", 400, "limt"),
        ("runs/0/analyses/operators?limit=3.5", 400, "3.5"),
        ("runs/0/export?format=zip", 400, "format"),
        ("runs/0/export", 400, "format"),
        ("nothing", 404, "nothing of this name"),
        ("runs/0/slices/99999999", 404, "slice"),
        ("runs/0/tiles?rows=0&level=3&first=0", 400, "\"v\""),
        ("runs/0/tiles?v=1&rows=0&level=3&first=0", 404, "version"),
    ] {
        let reply = served.get(path);
        let error = &reply.json()["error"];
        assert_eq!(reply.status, status, "{path}: {error}");
        assert!(error["what"].as_str().unwrap().contains(word), "{path}: {error}");
        assert_eq!(reply.header("content-type"), Some("application/json"));
    }
}

#[test]
fn two_runs_stand_side_by_side() {
    let served = Served::with(stepscope_server::Options::new(inputs()));
    for run in 0..3 {
        served.ready(run);
    }
    let runs: Vec<OpenedRun> =
        inputs().iter().map(|input| OpenedRun::of(engine::open_run(std::slice::from_ref(input)).unwrap())).collect();
    let all = Selection::default();
    let rank = Selection { ranks: 0.into(), ..all };
    for what in engine::Compared::ALL {
        for (query, b_selection) in [("", &all), ("&b_rank=0", &rank)] {
            let expected = engine::compare((&runs[1], &all), (&runs[2], b_selection), what).unwrap().to_json();
            let expected: Value = serde_json::from_str(&expected).unwrap();
            let answer = served.json(&format!("compare?a=1&b=2&what={}&limit=10000{query}", what.as_str()));
            for field in ["analysis", "definition", "run", "results", "coverage", "findings"] {
                assert_eq!(answer[field], expected[field], "{what:?} {field}");
            }
        }
    }
    let begun = served.running.long_work_begun();
    served.json("compare?a=1&b=2&what=operators&sort=name&offset=1&limit=2");
    assert_eq!(served.running.long_work_begun(), begun, "what was compared is kept");
    let steps = served.json("compare?a=0&b=0&what=steps");
    assert_eq!(steps["results"][0]["change_ns"].as_i64(), Some(0), "{steps}");
    assert!(served.get("compare?a=0&b=1&what=operators&format=csv").text().starts_with("name,"));
    for wrong in ["a=0&b=1", "a=0&b=9&what=steps", "a=0&b=1&what=colours", "a=0&b=1&what=steps&a_rank=7"] {
        assert!([400, 404].contains(&served.get(&format!("compare?{wrong}")).status), "{wrong}");
    }
}

//! A run that our own recorder wrote, read back: format version 1 stays readable, and the numbers are those that another
//! reader counts in the same files.

mod command;

use command::{run, stepscope};
use std::path::Path;

fn recorded_run() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/gpt-cpu");
    path.to_str().expect("a UTF-8 path").to_string()
}

fn analyze(name: &str) -> serde_json::Value {
    let ended = run(&mut stepscope(&["analyze", name, &recorded_run(), "--json"]));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).expect("JSON")
}

fn sum(rows: &serde_json::Value, column: &str) -> i64 {
    rows.as_array().expect("rows").iter().filter_map(|row| row[column].as_i64()).sum()
}

#[test]
fn operators_are_counted_as_another_reader_of_the_parts_counts_them() {
    // Counted with pyarrow and a stack a thread; an operator that is all that one of its own name calls is one with it.
    let operators = &analyze("operators")["results"];
    assert_eq!(sum(operators, "count"), 44_151);
    assert_eq!(sum(operators, "host_total_ns"), 5_173_936_418);
    let mm = operators.as_array().unwrap().iter().find(|row| row["name"] == "aten::mm").expect("aten::mm");
    assert_eq!((mm["count"].as_i64(), mm["host_total_ns"].as_i64()), (Some(408), Some(717_014_385)));
}

#[test]
fn every_step_is_there_and_its_parts_sum() {
    let breakdown = &analyze("step_breakdown")["results"];
    let steps: Vec<_> = breakdown.as_array().unwrap().iter().filter(|row| !row["step"].is_null()).collect();
    assert_eq!(steps.len(), 12);
    for step in steps {
        let parts = ["kernel", "comm", "memcpy", "memset", "runtime", "dataloader", "io", "cpu", "other"];
        let total: i64 = parts.iter().map(|part| step[format!("{part}_ns")].as_i64().expect("a part")).sum();
        assert_eq!(Some(total), step["total_ns"].as_i64());
        assert!(step["dataloader_ns"].as_i64() > Some(0), "the loop waited for its workers");
    }
}

#[test]
fn the_report_names_the_training_and_its_workers() {
    let ended = run(&mut stepscope(&["report", &recorded_run()]));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for text in ["3 processes: train.py", "2 workers", "A step takes 179 ms (mean of 12)", "aten::mm", "PyTorch 2.13.0"]
    {
        assert!(ended.stdout.contains(text), "{text:?} is missing in\n{}", ended.stdout);
    }
}

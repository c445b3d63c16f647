//! What results look like: the JSON of the interface, lines that fit, no colours where nobody sees them.

mod command;

use command::{fixture, real_traces, run, stepscope};
use serde_json::Value;
use std::io::Read;
use std::process::Stdio;
use unicode_width::UnicodeWidthStr;

const MAX_WIDTH: usize = 100;

/// The names of all analyses.
fn analyses() -> impl Iterator<Item = &'static str> {
    stepscope_engine::list_analyses().into_iter().map(|(name, _)| name)
}

fn output_of(arguments: &[&str]) -> String {
    let ended = run(&mut stepscope(arguments));
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{arguments:?}");
    ended.stdout
}

fn json_of(arguments: &[&str]) -> Value {
    serde_json::from_str(&output_of(arguments)).unwrap()
}

#[test]
fn the_envelope_is_that_of_the_interface() {
    let trace = fixture("two_steps.json");
    let json = json_of(&["analyze", "temporal_breakdown", &trace, "--json"]);
    assert_eq!(json["schema"], "stepscope/1");
    assert_eq!(json["analysis"], "temporal_breakdown");
    assert!(json["definition"].as_str().unwrap().ends_with('.'));
    assert_eq!(json["run"]["name"], "two_steps");
    assert_eq!(json["run"]["ranks"], serde_json::json!([0]));
    assert_eq!(json["run"]["sources"], serde_json::json!([trace]));
    let row = &json["results"][0];
    let ns = |name: &str| row[name].as_i64().unwrap();
    assert_eq!((ns("span_ns"), ns("compute_ns"), ns("idle_ns")), (580_000, 200_000, 255_000));
    assert_eq!((ns("exposed_comm_ns"), ns("exposed_copy_ns"), ns("device_events")), (100_000, 25_000, 3));
    assert!(json["coverage"]["device_ns_linked_ratio"].as_f64().unwrap() < 1.0);
    let findings = json["findings"].as_array().unwrap();
    let unlinked = findings.iter().find(|row| row["code"] == "import.unlinked_device_event").unwrap();
    assert_eq!((unlinked["severity"].as_str(), unlinked["count"].as_u64()), (Some("suspect"), Some(1)));
    assert!(unlinked["says"].is_string() && unlinked["examples"].is_array());
}

#[test]
fn files_of_ranks_are_one_run_or_reported_on_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(fixture("two_steps.json")).unwrap();
    for name in ["rank0.json", "rank1.json"] {
        std::fs::write(folder.path().join(name), &text).unwrap();
    }
    let path = folder.path().to_str().unwrap();
    let json = json_of(&["report", path, "--json"]);
    let line = "2 ranks from 2 files: rank from names (2); clocks: ";
    assert!(json["joined"]["says"].as_str().unwrap().starts_with(line), "{}", json["joined"]);
    assert_eq!((&json["joined"]["ranks_named"], &json["joined"]["files"]), (&2.into(), &2.into()));
    assert!(output_of(&["report", path]).lines().nth(2).unwrap().starts_with(line));
    assert!(output_of(&["report", path, "--markdown"]).contains(&format!("\n- {line}")));
    let each = output_of(&["report", path, "--separate", "--json"]);
    let names = each.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["run"]["name"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["rank0", "rank1"]);
    std::fs::write(folder.path().join("rank2.json"), "no trace").unwrap();
    let ended = run(&mut stepscope(&["report", path, "--separate"]));
    assert_eq!((ended.code, ended.stdout.matches("stepscope report  rank").count()), (1, 2));
    assert!(ended.stderr.contains("rank2.json"), "{}", ended.stderr);
}

#[test]
fn every_analysis_speaks_json_csv_and_text() {
    let trace = fixture("two_steps.json");
    for name in analyses() {
        let json = json_of(&["analyze", name, &trace, "--json"]);
        let csv = output_of(&["analyze", name, &trace, "--csv"]);
        let rows = json["results"].as_array().unwrap();
        assert_eq!(csv.lines().count(), rows.len() + 1, "{name}");
        assert!(output_of(&["analyze", name, &trace]).starts_with(&format!("{name}\n")));
    }
    let columns = output_of(&["analyze", "operators", "--group-by", "shapes", "--columns"]);
    assert!(columns.starts_with("column") && columns.contains("\nhost_self_ns  "), "{columns}");
    assert!(columns.contains("\nshapes"), "{columns}");
    let list = output_of(&["analyze"]);
    assert!(analyses().all(|name| list.lines().any(|line| line.starts_with(name))), "{list}");
}

#[test]
fn rows_are_sorted_limited_and_written_to_a_file() {
    let trace = fixture("two_steps.json");
    let json = json_of(&["analyze", "operators", &trace, "--sort", "host-self-ns", "--limit", "2", "--json"]);
    let rows = json["results"].as_array().unwrap();
    let times: Vec<i64> = rows.iter().map(|row| row["host_self_ns"].as_i64().unwrap()).collect();
    assert!(times.len() == 2 && times[0] >= times[1], "{times:?}");
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    assert_eq!(output_of(&["analyze", "kernels", &trace, "--csv", "-o", path]), "");
    assert!(std::fs::read_to_string(path).unwrap().starts_with("name,"));
}

#[test]
fn a_report_tells_what_stands_out() {
    let trace = fixture("two_steps.json");
    let text = output_of(&["report", &trace]);
    for wanted in [
        "GPU 0 was idle for 44.0 % of 580 µs; the rest is 34.5 % computing, 17.2 % exposed communication",
        "(mean of 2)",
        "Where the time goes",
        "Device time",
        "Top operators",
        "aten::addmm",
        "Top kernels",
        "suspect",
        "stepscope analyze kernels",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in:\n{text}");
    }
    let json = json_of(&["report", &trace, "--json"]);
    assert_eq!(json["steps"]["count"], 2);
    assert_eq!(json["devices"][0]["breakdown"]["parts"][3]["ns"], 255_000);
    let one = json_of(&["report", &trace, "--step", "2", "--json"]);
    assert_eq!((one["step"].as_i64(), one["steps"]["count"].as_i64()), (Some(2), Some(1)));
}

#[test]
fn no_line_is_wider_than_a_hundred_columns_and_none_has_colours() {
    let fixture = std::path::PathBuf::from(fixture("two_steps.json"));
    for path in real_traces().into_iter().chain([fixture]) {
        let path = path.to_str().unwrap();
        let mut texts = vec![output_of(&["report", path])];
        texts.extend(analyses().map(|name| output_of(&["analyze", name, path])));
        for line in texts.iter().flat_map(|text| text.lines()) {
            assert!(line.width() <= MAX_WIDTH, "{} columns in {path}: {line}", line.width());
            assert!(!line.contains('\u{1b}'), "colours in {path}: {line:?}");
        }
    }
}

#[test]
fn help_fits_and_has_an_example() {
    for command in ["record", "report", "analyze", "compare", "check", "convert", "recover", "doctor"] {
        let help = output_of(&[command, "--help"]);
        assert!(help.contains("Example"), "{help}");
        assert!(help.contains(&format!("\n  stepscope {command}")), "{help}");
        assert!(help.lines().all(|line| line.width() <= MAX_WIDTH), "{help}");
    }
    assert!(output_of(&["--version"]).starts_with("stepscope "));
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    let trace = fixture("two_steps.json");
    for arguments in [vec!["report", &trace], vec!["analyze", "operators", &trace, "--json"], vec!["--help"]] {
        let mut child = stepscope(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

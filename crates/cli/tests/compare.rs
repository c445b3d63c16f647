//! `stepscope compare`: the sentence, the tables, the JSON of the interface, and the exit code.

mod command;
mod steps;

use command::{fixture, run, stepscope};
use serde_json::Value;
use std::path::PathBuf;
use steps::steps_of;
use unicode_width::UnicodeWidthStr;

fn output_of(arguments: &[&str]) -> String {
    let ended = run(&mut stepscope(arguments));
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{arguments:?}");
    ended.stdout
}

fn json_of(arguments: &[&str]) -> Value {
    serde_json::from_str(&output_of(arguments)).unwrap()
}

/// A slow run, a fast one, and one of a single step.
fn runs(folder: &tempfile::TempDir) -> [String; 3] {
    let before = steps_of(folder, "before.json", &[1_000, 1_010, 1_020, 1_030, 1_040]);
    let now = steps_of(folder, "now.json", &[1_500, 1_510, 1_520, 1_530, 1_540]);
    [before, now, steps_of(folder, "one.json", &[1_000])]
}

#[test]
fn a_comparison_says_what_changed() {
    let folder = tempfile::tempdir().unwrap();
    let [before, now, _] = runs(&folder);
    let text = output_of(&["compare", &before, &now]);
    for wanted in [
        "stepscope compare  before → now",
        "A step takes 500 µs (49.0 %) longer",
        "significant (p = 0.008)",
        "Where the difference comes from  of the mean step, the largest changes first",
        "Operators  host self of a step, the largest changes first",
        "aten::mm",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in:\n{text}");
    }
    let line = |name: &str| {
        let line =
            text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("operators on the CPU"), "operators on the CPU 510 µs 760 µs 250 µs 49.0 %");
    assert_eq!(line("· aten::mm"), "· aten::mm 510 µs 760 µs 250 µs 49.0 %");
    assert_eq!(line("outside of operators"), "outside of operators 510 µs 760 µs 250 µs 49.0 %");
    assert_eq!(line("a step"), "a step 1.02 ms 1.52 ms 500 µs 49.0 %");
    assert!(!text.contains("waiting for data"), "it is 0 in both:\n{text}");
    assert!(!text.contains("Kernels"), "neither run has any:\n{text}");
    assert!(text.lines().all(|line| line.width() <= 100), "{text}");
    let steps = output_of(&["compare", &before, &now, "--what", "steps"]);
    assert!(steps.starts_with("compare\n") && steps.contains("A step takes 500 µs"), "{steps}");
}

#[test]
fn json_has_every_section_or_the_one_that_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let [before, now, _] = runs(&folder);
    let all = json_of(&["compare", &before, &now, "--json"]);
    let names: Vec<&String> = all.as_object().unwrap().keys().collect();
    assert_eq!(names.len(), 7, "{names:?}");
    for what in ["steps", "step_breakdown", "operators", "kernels", "modules", "outside_of_steps", "setting"] {
        assert_eq!(all[what], json_of(&["compare", &before, &now, "--what", what, "--json"]), "{what}");
    }
    assert_eq!(all["steps"]["schema"], "stepscope/1");
    assert_eq!(all["steps"]["run"]["name"], "before → now");
    let steps = &all["steps"]["results"][0];
    let numbers = ["a_median_ns", "b_median_ns", "change_ns"].map(|name| steps[name].as_i64().unwrap());
    assert_eq!(numbers, [1_020_000, 1_520_000, 500_000]);
    assert_eq!(steps["is_significant"], true);
    assert_eq!(all["operators"]["results"][0]["change_host_self_ns"], 250_000);
    let csv = output_of(&["compare", &before, &now, "--what", "step-durations", "--csv"]);
    assert!(csv.starts_with("from_ns,to_ns,a_steps,b_steps\n"), "{csv}");
}

#[test]
fn two_ranks_of_one_run_are_two_sides() {
    let trace = fixture("two_steps.json");
    let same = ["compare", &trace, &trace, "--rank-a", "0", "--rank-b", "0", "--what", "operators", "--json"];
    let json = json_of(&same);
    assert_eq!(json["run"]["name"], "two_steps (rank 0) → two_steps (rank 0)");
    let rows = json["results"].as_array().unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["change_host_self_ns"] == 0), "{json}");
    let ended = run(&mut stepscope(&["compare", &trace, &trace, "--rank-b", "7"]));
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.starts_with("error: ") && ended.stderr.contains('7'), "{}", ended.stderr);
}

#[test]
fn a_program_is_told_by_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let [before, now, one] = runs(&folder);
    let code = |a: &str, b: &str, condition: &str| run(&mut stepscope(&["compare", a, b, "--fail-if", condition])).code;
    assert_eq!(code(&before, &now, "step_ns > +3%"), 3);
    assert_eq!(code(&before, &now, "step_ns > 400us"), 3);
    assert_eq!(code(&before, &now, "step_ns > +60%"), 0);
    assert_eq!(code(&before, &now, "step_ns < -3%"), 0);
    assert_eq!(code(&now, &before, "step_ns < -3%"), 3);
    assert_eq!(code(&before, &before, "step_ns > -1%"), 0, "a difference of 0 is not significant");
    assert_eq!(code(&before, &now, "loss > 3%"), 2);
    let ended = run(&mut stepscope(&["compare", &one, &now, "--fail-if", "step_ns > 3%"]));
    assert_eq!(ended.code, 1);
    assert_eq!(ended.stderr.lines().count(), 3, "{}", ended.stderr);
}

#[test]
fn what_is_asked_wrongly_is_said() {
    let trace = PathBuf::from(fixture("two_steps.json"));
    let trace = trace.to_str().unwrap();
    let error = |arguments: &[&str]| {
        let ended = run(&mut stepscope(arguments));
        assert_eq!(ended.stdout, "", "{arguments:?}");
        (ended.code, ended.stderr)
    };
    let (code, text) = error(&["compare", trace, trace, "--what", "colours"]);
    assert!(code == 2 && text.contains("steps, step_durations, step_breakdown"), "{text}");
    let (code, text) = error(&["compare", trace, "no/trace.json"]);
    assert!(code == 1 && text.contains("at: no/trace.json"), "{text}");
    assert_eq!(error(&["compare", trace]).0, 2);
    assert_eq!(error(&["compare", trace, trace, "--csv"]).0, 2, "of what?");
    let (code, text) = error(&["compare", trace, trace, "--what", "kernels", "--sort", "colour"]);
    assert!(code == 1 && text.contains("colour"), "{text}");
}

#[test]
fn what_differs_in_the_setting_and_what_lies_outside_of_steps_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let trace = |name: &str, world_size: u32, steps: &[u32]| {
        let path = steps_of(&folder, name, steps);
        let text = std::fs::read_to_string(&path).unwrap();
        let said = format!(r#"{{"distributedInfo":{{"rank":0,"world_size":{world_size}}},"#);
        let extra = r#""traceEvents":[{"ph":"X","cat":"cpu_op","name":"aten::eval","pid":1,"tid":1,"ts":10,"dur":7},"#;
        std::fs::write(&path, text.replacen('{', &said, 1).replacen(r#""traceEvents":["#, extra, 1)).unwrap();
        path
    };
    let (a, b) = (trace("a.json", 8, &[1_000, 1_010]), trace("b.json", 2, &[1_000, 1_010]));
    let text = output_of(&["compare", &a, &b]);
    for wanted in ["world size: 8 before, 2 now", "now: 1 of 3 calls of operators, 0 of 0 device events"] {
        assert!(text.contains(wanted), "{wanted:?} is not in:\n{text}");
    }
    assert!(!text.contains("aten::eval"), "it is in no step:\n{text}");
    let outside = json_of(&["compare", &a, &b, "--what", "outside_of_steps", "--json"]);
    assert_eq!(outside["results"][0]["a_run_ns"], 7_000);
}

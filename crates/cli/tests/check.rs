//! `stepscope check`: limits and a baseline, what is printed and written, and the exit code.

mod command;
mod steps;

use command::{Ended, fixture, run, stepscope};
use serde_json::Value;
use std::path::Path;
use steps::steps_of;
use unicode_width::UnicodeWidthStr;

fn ended(arguments: &[&str]) -> Ended {
    run(&mut stepscope(&[&["check"], arguments].concat()))
}

fn runs(folder: &tempfile::TempDir) -> [String; 2] {
    let before = steps_of(folder, "before.json", &[1_000, 1_010, 1_020, 1_030, 1_040]);
    [before, steps_of(folder, "now.json", &[1_500, 1_510, 1_520, 1_530, 1_540])]
}

#[test]
fn the_exit_code_says_whether_all_limits_hold() {
    let folder = tempfile::tempdir().unwrap();
    let [run, _] = runs(&folder);
    for (budget, code) in [
        ("step_p50 < 1021us", 0),
        ("step_p50 <= 1.02ms", 0),
        ("step_p50 < 1.02ms", 3),
        ("step_max<1.04ms", 3),
        ("step-mean >= 1ms", 0),
        ("steps >= 5", 0),
        ("steps > 5", 3),
        ("input_wait_ratio < 1%", 0),
        ("findings < 1", 0),
        // It has no device, and too few steps.
        ("idle_ratio < 99%", 3),
        ("step_p99 < 1h", 3),
        ("loss < 3", 2),
        ("step_p50 < 3GiB", 2),
        ("step_p50", 2),
    ] {
        let ended = ended(&[&run, "--budget", budget]);
        assert_eq!(ended.code, code, "{budget}: {}{}", ended.stdout, ended.stderr);
    }
    let typo = ended(&[&run, "--budget", "step_p5 < 1ms"]);
    assert!(typo.stderr.contains("did you mean step_p50?"), "{}", typo.stderr);
    let two = ended(&[&run, "--budget", "step_p50 < 2ms", "--budget", "step_p50 < 1ms"]);
    assert_eq!(two.code, 3, "{}", two.stdout);
    assert!(two.stdout.contains("1 of 2 checks holds: 1 fails"), "{}", two.stdout);
}

#[test]
fn a_line_says_what_was_measured_or_why_it_was_not_judged() {
    let folder = tempfile::tempdir().unwrap();
    let [run, _] = runs(&folder);
    let text = ended(&[&run, "--budget", "step_p50 < 210ms", "--budget", "peak_memory < 3GiB"]).stdout;
    let lines: Vec<String> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for wanted in [
        "stepscope check before",
        "holds step_p50 < 210 ms",
        "1.02 ms",
        "not judged peak_memory < 3 GiB",
        "no memory was recorded",
        "1 of 2 checks holds: 1 is not judged",
    ] {
        assert!(lines.iter().any(|line| line == wanted), "{wanted:?} is not in:\n{text}");
    }
    assert!(text.lines().all(|line| line.width() <= 100), "{text}");
}

#[test]
fn steps_that_take_significantly_longer_than_the_baselines_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let [before, now] = runs(&folder);
    let slower = ended(&[&now, "--against", &before]);
    assert_eq!(slower.code, 3, "{}", slower.stderr);
    for wanted in [
        "step_ns <= +3 % against before",
        "A step takes 500 µs (49.0 %) longer",
        "Where the difference comes from",
        "operators on the CPU",
        "· aten::mm",
    ] {
        assert!(slower.stdout.contains(wanted), "{wanted:?} is not in:\n{}", slower.stdout);
    }
    assert_eq!(ended(&[&before, "--against", &now]).code, 0, "it is faster");
    assert_eq!(ended(&[&before, "--against", &before]).code, 0);
    assert_eq!(ended(&[&now, "--against", &before, "--tolerance", "50%"]).code, 0);
    assert_eq!(ended(&[&now, "--against", &before, "--tolerance", "499us"]).code, 3);
    assert_eq!(ended(&[&now, "--tolerance", "50%"]).code, 2, "without a baseline");
    let one = steps_of(&folder, "one.json", &[1_000]);
    let unknown = ended(&[&one, "--against", &before]);
    assert_eq!(unknown.code, 3);
    assert!(
        unknown.stdout.contains("not judged") && unknown.stdout.contains("two steps of each run"),
        "{}",
        unknown.stdout
    );
}

#[test]
fn without_limits_nothing_of_high_priority_and_no_severe_finding_may_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let [run, _] = runs(&folder);
    let good = ended(&[&run]);
    assert_eq!(good.code, 0, "{}", good.stdout);
    assert!(good.stdout.contains("advice_high < 1") && good.stdout.contains("findings_severe < 1"), "{}", good.stdout);
    let text = std::fs::read_to_string(&run).unwrap();
    let cut = folder.path().join("cut.json");
    std::fs::write(&cut, &text[..text.len() - 40]).unwrap();
    let bad = ended(&[cut.to_str().unwrap()]);
    assert_eq!(bad.code, 3, "{}", bad.stdout);
    assert!(bad.stdout.contains("severe"), "{}", bad.stdout);
}

#[test]
fn json_has_every_check_with_its_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let [before, now] = runs(&folder);
    let ended =
        ended(&[&now, "--budget", "step_p50 < 1.5ms", "--budget", "idle_ratio<0.1", "--against", &before, "--json"]);
    assert_eq!(ended.code, 3);
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&told["schema"], &told["holds"], &told["run"]["name"]),
        (&"stepscope/1".into(), &false.into(), &"now".into())
    );
    let statuses: Vec<&str> =
        told["checks"].as_array().unwrap().iter().map(|check| check["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["fails", "not_judged", "fails"]);
    let budget = &told["checks"][0];
    assert_eq!(
        (&budget["metric"], &budget["measured"], &budget["limit"], &budget["unit"]),
        (&"step_p50".into(), &1_520_000.into(), &1_500_000.0.into(), &"ns".into())
    );
    let parts = told["checks"][2]["parts"].as_array().unwrap();
    let classes: i64 = parts[..parts.len() - 1]
        .iter()
        .filter(|part| part["is_part"] == false)
        .map(|part| part["change_ns"].as_i64().unwrap())
        .sum();
    assert_eq!((classes, parts.last().unwrap()["change_ns"].as_i64()), (500_000, Some(500_000)));
}

#[test]
fn markdown_is_printed_or_written() {
    let folder = tempfile::tempdir().unwrap();
    let [before, now] = runs(&folder);
    let printed = ended(&[&now, "--budget", "step_p50 < 1s", "--against", &before, "--markdown"]).stdout;
    for wanted in [
        "# stepscope check now",
        "**1 of 2 checks holds: 1 fails**",
        "| step_p50 &lt; 1 s | holds | 1.52 ms |",
        "## Where the difference comes from",
    ] {
        assert!(printed.contains(wanted), "{wanted:?} is not in:\n{printed}");
    }
    let file = folder.path().join("check.md");
    let option = format!("--markdown={}", file.display());
    let text = ended(&[&now, "--budget", "step_p50 < 1s", "--against", &before, &option]).stdout;
    assert!(text.starts_with("stepscope check"), "{text}");
    assert_eq!(std::fs::read_to_string(file).unwrap(), printed);
}

#[test]
fn a_recorded_run_is_checked() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/gpt-cpu");
    let path = path.to_str().unwrap();
    let good = ended(&[
        path,
        "--budget",
        "steps >= 12",
        "--budget",
        "step_mean < 1s",
        "--budget",
        "input_wait_ratio < 50%",
        "--against",
        path,
    ]);
    assert_eq!(good.code, 0, "{}{}", good.stdout, good.stderr);
    assert!(good.stdout.contains("4 of 4 checks hold"), "{}", good.stdout);
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let missing = ended(&["no/such/run"]);
    assert_eq!(missing.code, 1, "{}", missing.stderr);
    let trace = fixture("two_steps.json");
    let baseline = ended(&[&trace, "--against", "no/such/run"]);
    assert_eq!(baseline.code, 1, "{}", baseline.stderr);
    let unwritable = ended(&[&trace, "--budget", "steps > 0", "--junit", "no/such/folder/check.xml"]);
    assert_eq!(unwritable.code, 1, "{}", unwritable.stderr);
}

#[test]
fn every_number_is_in_the_help_and_in_the_documents() {
    let help = ended(&["--help"]).stdout;
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/comparing.md")).unwrap();
    for metric in stepscope_engine::METRICS {
        assert!(help.contains(metric.name), "{} is not in:\n{help}", metric.name);
        assert!(
            page.contains(&format!("| `{}` | {} |", metric.name, metric.says)),
            "docs/comparing.md lacks {}",
            metric.name
        );
    }
}

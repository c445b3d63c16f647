//! `stepscope convert`, and reports and results as files: what is written is read back, and nothing is written by mistake.

mod command;

use command::{fixture, run, stepscope};
use serde_json::Value;
use std::path::Path;

fn call(folder: &Path, arguments: &[&str]) -> command::Ended {
    run(stepscope(arguments).current_dir(folder))
}

fn output_of(folder: &Path, arguments: &[&str]) -> String {
    let ended = call(folder, arguments);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{arguments:?}");
    ended.stdout
}

/// The rows of every analysis of a file.
fn results(folder: &Path, file: &str) -> Vec<Value> {
    let analyses = ["step_breakdown", "temporal_breakdown", "operators", "kernels"];
    let json = |name: &str| -> Value {
        serde_json::from_str(&output_of(folder, &["analyze", name, file, "--json"])).expect("JSON")
    };
    analyses.map(|name| json(name)["results"].clone()).into()
}

#[test]
fn what_is_converted_to_chrome_json_has_the_same_results() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let trace = fixture("two_steps.json");
    output_of(folder, &["convert", &trace, "-o", "a.json.gz"]);
    assert_eq!(results(folder, "a.json.gz"), results(folder, &trace));
    let printed = output_of(folder, &["convert", "a.json.gz", "-o", "-"]);
    std::fs::write(folder.join("b.json"), printed).unwrap();
    assert_eq!(results(folder, "b.json"), results(folder, &trace));
}

#[test]
fn the_files_of_ranks_are_one_run_however_they_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let trace = std::fs::read_to_string(fixture("two_steps.json")).unwrap();
    std::fs::create_dir(folder.join("traces")).unwrap();
    let files = ["traces/a.json", "traces/b.json"];
    for (rank, file) in files.iter().enumerate() {
        let info = format!("{{\"distributedInfo\": {{\"rank\": {rank}, \"world_size\": 2}},");
        std::fs::write(folder.join(file), trace.replacen('{', &info, 1)).unwrap();
    }
    let of_folder = results(folder, "traces");
    let ranks: Vec<u64> = of_folder[1].as_array().unwrap().iter().filter_map(|row| row["rank"].as_u64()).collect();
    assert_eq!(ranks, [0, 1]);
    let steps = output_of(folder, &["analyze", "temporal_breakdown", files[1], files[0], "--json"]);
    let steps: Value = serde_json::from_str(&steps).unwrap();
    assert_eq!(steps["results"], of_folder[1], "in any order");
    output_of(folder, &["convert", files[0], files[1], "-o", "job.pftrace"]);
    output_of(folder, &["convert", "traces", "-o", "{rank}.json"]);
    assert_eq!(results(folder, "1.json"), results(folder, files[1]));
    output_of(folder, &["convert", "traces", "--rank", "1", "-o", "only.json"]);
    assert_eq!(results(folder, "only.json"), results(folder, files[1]));
    assert_eq!(output_of(folder, &["convert", "traces", "--rank", "1", "-o", "of-{rank}.json"]), "of-1.json\n");
    assert_eq!(results(folder, "of-1.json"), results(folder, files[1]));
    let other = call(folder, &["convert", "traces", "--rank", "2", "-o", "2.json"]);
    assert_eq!(other.code, 1);
    assert!(other.stderr.starts_with("error: rank 2 is not in this run\n"), "{}", other.stderr);
    assert!(output_of(folder, &["report", "traces"]).contains("2 ranks"));
    // Two files of a rank and a time are read with all others.
    std::fs::copy(folder.join(files[1]), folder.join("traces/c.json")).unwrap();
    let mixed = call(folder, &["convert", "traces", "--rank", "1", "-o", "mixed.pftrace"]);
    assert_eq!(mixed.code, 2);
    assert!(
        mixed.stderr.starts_with("error: rank 0 cannot be told apart from the ranks asked for\n"),
        "{}",
        mixed.stderr
    );
    assert_eq!(output_of(folder, &["convert", "traces", "--rank", "1", "-o", "both-{rank}.json"]), "both-1.json\n");
}

#[test]
fn every_format_is_written_whole_and_never_over_something_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let trace = fixture("two_steps.json");
    for out in ["a.json", "a.json.gz", "a.pftrace", "a.pftrace.gz", "a.parquet", "tables/"] {
        assert!(output_of(folder, &["convert", &trace, "-o", out]).contains("slices"), "{out}");
        let again = call(folder, &["convert", &trace, "-o", out]);
        assert_eq!(again.code, 1, "{out}");
        assert!(again.stderr.starts_with("error: the output exists already\n"), "{}", again.stderr);
        assert!(again.stderr.contains(" hint: choose another path, or pass --force to replace it"), "{}", again.stderr);
        output_of(folder, &["convert", &trace, "-o", out, "--force"]);
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 6);
    assert_eq!(std::fs::read_dir(folder.join("tables")).unwrap().count(), 18);
}

#[test]
fn mistakes_are_told_and_leave_everything_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::copy(fixture("two_steps.json"), folder.join("a.json")).unwrap();
    let before = std::fs::read(folder.join("a.json")).unwrap();
    let error = |arguments: &[&str], code: i32| {
        let ended = call(folder, arguments);
        assert_eq!(
            (ended.code, ended.stdout.as_str(), ended.stderr.lines().count()),
            (code, "", 3),
            "{}",
            ended.stderr
        );
        ended.stderr.lines().next().unwrap_or_default().to_string()
    };
    assert_eq!(
        error(&["convert", "a.json", "-o", "a.csv"], 2),
        "error: unknown output format: unrecognised file extension"
    );
    let over = "error: the output would overwrite the input";
    assert_eq!(error(&["convert", "a.json", "-o", "./a.json", "--force"], 2), over);
    assert_eq!(error(&["convert", "no.json", "-o", "b.json"], 1), "error: no such file or folder");
    assert!(error(&["convert", "a.json", "-o", "no/b.json"], 1).starts_with("error: cannot write the result: no such"));
    assert_eq!(std::fs::read(folder.join("a.json")).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1);
}

#[test]
fn reports_and_results_become_files() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let trace = fixture("two_steps.json");
    assert_eq!(output_of(folder, &["report", &trace, "--html", "a.html", "--markdown=a.md"]), "");
    let page = std::fs::read_to_string(folder.join("a.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("GPU 0 was idle for 44.0 % of 580 µs"), "{page}");
    let markdown = std::fs::read_to_string(folder.join("a.md")).unwrap();
    assert_eq!(output_of(folder, &["report", &trace, "--markdown"]), markdown);
    assert!(output_of(folder, &["analyze", "kernels", &trace, "--markdown"]).starts_with("# kernels\n"));
    output_of(folder, &["analyze", "kernels", &trace, "--parquet", "kernels.parquet"]);
    assert!(std::fs::read(folder.join("kernels.parquet")).unwrap().starts_with(b"PAR1"));
}

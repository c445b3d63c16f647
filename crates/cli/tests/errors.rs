//! What a person is told when an input is not what it should be: what, where, what to do.

mod command;

use command::{fixture, run, stepscope};
use std::path::Path;

/// The three lines of an error and the exit code of `arguments` in `folder`.
fn error_of(folder: &Path, arguments: &[&str]) -> (Vec<String>, i32) {
    let ended = run(stepscope(arguments).current_dir(folder));
    assert_eq!(ended.stdout, "", "errors leave standard output alone");
    (ended.stderr.lines().map(str::to_string).collect(), ended.code)
}

#[test]
fn a_missing_file() {
    let folder = tempfile::tempdir().unwrap();
    let (lines, code) = error_of(folder.path(), &["report", "no/trace.json"]);
    assert_eq!(
        lines,
        [
            "error: no such file or folder",
            "   at: no/trace.json",
            " hint: check the path; a run is a folder, other profilers' traces are files",
        ]
    );
    assert_eq!(code, 1);
}

#[test]
fn a_window_that_ends_before_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    let window = ["--start-ns", "5", "--end-ns", "4"];
    for command in [&["report", "trace.json"][..], &["analyze", "kernels", "trace.json"]] {
        let (lines, code) = error_of(folder.path(), &[command, &window].concat());
        assert_eq!(
            lines,
            [
                "error: the window ends before it begins: start_ns is 5, end_ns is 4",
                " hint: give the earlier moment as start_ns and the later one as end_ns",
            ]
        );
        assert_eq!(code, 1);
    }
}

#[test]
fn an_empty_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    for command in ["report", "recover"] {
        let (lines, code) = error_of(folder.path(), &[command, "empty"]);
        assert_eq!((lines.len(), code), (3, 1), "{lines:?}");
        assert_eq!(lines[1], "   at: empty", "{lines:?}");
    }
    assert_eq!(error_of(folder.path(), &["recover", "empty"]).0[0], "error: this folder is not a run");
    assert_eq!(error_of(folder.path(), &["recover", "no"]).0[0], "error: no such file or folder");
    let (lines, _) = error_of(folder.path(), &["report", "empty"]);
    assert_eq!(lines[0], "error: this folder is not a run");
}

#[test]
fn a_file_that_is_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let error = |content: &str| {
        std::fs::write(folder.path().join("file"), content).unwrap();
        let (lines, code) = error_of(folder.path(), &["report", "file"]);
        assert_eq!((lines.len(), code), (3, 1), "{lines:?}");
        assert_eq!(lines[1], "   at: file");
        lines[0].clone()
    };
    assert_eq!(error(""), "error: expected a trace, found an empty file");
    assert_eq!(error("hello"), "error: expected JSON ('{' or '['), found 'h' at byte 0");
    assert!(error("{\"a\": 1}").starts_with("error: expected a trace (JSON with traceEvents, or a list of events)"));
    assert_eq!(
        error("PK\u{3}\u{4} and more"),
        "error: expected compressed data, found damage in its first block (invalid Zip archive: Could not find EOCD)"
    );
}

#[test]
fn a_truncated_trace_is_read_up_to_the_cut_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read_to_string(fixture("two_steps.json")).unwrap();
    let cut = whole.find("\"Memcpy HtoD").unwrap();
    std::fs::write(folder.path().join("cut.json"), &whole[..cut]).unwrap();
    let ended = run(stepscope(&["report", "cut.json"]).current_dir(folder.path()));
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.contains("severe   1 × the input ends in the middle"), "{}", ended.stdout);
    assert!(ended.stdout.contains("1 finding says that data is missing"), "{}", ended.stdout);
}

#[test]
fn a_misspelt_analysis() {
    let (lines, code) = error_of(Path::new("."), &["analyze", "operatros", &fixture("two_steps.json")]);
    assert_eq!(lines, ["error: there is no analysis called \"operatros\"", " hint: did you mean \"operators\"?"]);
    assert_eq!(code, 1);
}

#[test]
fn a_run_where_the_analysis_should_stand() {
    let trace = fixture("two_steps.json");
    let (lines, _) = error_of(Path::new("."), &["analyze", &trace]);
    assert_eq!(lines[1], format!(" hint: name an analysis first: stepscope analyze operators {trace}"));
}

#[test]
fn a_column_rank_or_step_that_is_not_there() {
    let trace = fixture("two_steps.json");
    let (lines, code) = error_of(Path::new("."), &["analyze", "operators", &trace, "--sort", "time"]);
    assert_eq!(lines[0], "error: the result has no column called \"time\"");
    assert_eq!(lines[1], "   at: analysis operators");
    assert!(lines[2].starts_with(" hint: its columns are ") && lines[2].contains("host_self_ns"), "{lines:?}");
    assert_eq!(code, 1);
    let (lines, _) = error_of(Path::new("."), &["report", &trace, "--step", "9"]);
    assert_eq!(lines, ["error: step 9 is not in this run", "   at: two_steps", " hint: its steps reach from 1 to 2"]);
    let (lines, _) = error_of(Path::new("."), &["report", &trace, "--rank", "4"]);
    assert_eq!(lines, ["error: rank 4 is not in this run", "   at: two_steps", " hint: its ranks are 0"]);
    let (lines, _) = error_of(Path::new("."), &["report", &trace, "--rank", "0,2-4"]);
    assert_eq!(lines[0], "error: none of the ranks 2-4 is in this run");
    let (lines, code) = error_of(Path::new("."), &["report", &trace, "--rank", "4-2"]);
    assert!(lines[0].contains("expected a number, a range, or several with commas") && code == 2, "{lines:?}");
}

#[test]
fn no_run_and_no_command() {
    assert_eq!(error_of(Path::new("."), &["report"]).1, 2);
    assert_eq!(error_of(Path::new("."), &["analyze", "operators"]).1, 2);
    assert_eq!(error_of(Path::new("."), &["frobnicate"]).1, 2);
}

#[test]
fn a_result_that_cannot_be_written() {
    let trace = fixture("two_steps.json");
    let (lines, code) =
        error_of(Path::new("."), &["analyze", "operators", &trace, "--csv", "-o", "no/such/folder/a.csv"]);
    let wanted = [
        "error: cannot write the result: no such file or directory",
        "   at: no/such/folder/a.csv",
        " hint: create the parent folder first",
    ];
    assert_eq!(lines, wanted);
    assert_eq!(code, 1);
}

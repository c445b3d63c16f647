//! Runs are read in the background, and followed.

use crate::served::{Served, fixture};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;
use stepscope_engine::{Joining, OpenOptions, Regex};
use stepscope_server::Options;

fn trace(slices: usize) -> String {
    let event = |at: usize| {
        format!(
            "{{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"op{at}\", \"pid\": 1, \"tid\": 1, \"ts\": {}, \"dur\": 1}}",
            at * 2
        )
    };
    format!("{{\"traceEvents\": [{}]}}", (0..slices).map(event).collect::<Vec<_>>().join(","))
}

/// Looks for changes all the time.
fn watching(input: std::path::PathBuf) -> Served {
    let every = Some(Duration::from_millis(10));
    Served::with(Options { watch_every: every, reread_after: Duration::ZERO, ..Options::new(vec![input]) })
}

#[test]
fn of_a_folder_each_run_is_read_when_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.json"), trace(3)).unwrap();
    fs::write(folder.path().join("b.json"), "nonsense").unwrap();
    fs::write(folder.path().join("notes.txt"), "").unwrap();
    let served = watching(folder.path().into());
    let runs = served.json("runs");
    let summary: Vec<_> = runs
        .as_array()
        .unwrap()
        .iter()
        .map(|run| (run["name"].as_str().unwrap(), run["state"].as_str().unwrap()))
        .collect();
    assert_eq!(summary, [("a.json", "waiting"), ("b.json", "waiting")]);
    assert_eq!(served.get("runs/0").status, 202);
    served.ready(0);
    assert_eq!(served.json("runs/0")["counts"]["slices"], 3);
    assert_eq!(served.get("runs/1/steps?rank=0").status, 409);
    let error = served.wait(|runs| (runs[1]["state"] == "failed").then(|| runs[1]["error"].clone()));
    assert!(error["what"].as_str().unwrap().contains("expected JSON"), "{error}");
    let refused = served.get("runs/1/report");
    assert_eq!((refused.status, &refused.json()["error"]), (404, &error));
    // What appears is added, and numbers stay.
    fs::write(folder.path().join("0.json"), trace(5)).unwrap();
    served.wait(|runs| (runs.as_array().unwrap().len() == 3).then_some(()));
    assert_eq!(served.json("runs")[2]["name"], "0.json");
    // What could not be read is read again once it is another.
    fs::write(folder.path().join("b.json"), trace(7)).unwrap();
    served.ready_again(1);
    assert_eq!(served.json("runs/1")["counts"]["slices"], 7);
}

#[test]
fn traces_of_the_ranks_of_a_job_are_one_run_and_joined_as_asked() {
    let folder = tempfile::tempdir().unwrap();
    for rank in 0..3 {
        fs::write(folder.path().join(format!("rank{rank}.json")), trace(2 + rank)).unwrap();
    }
    let runs = |options: Options| {
        let served = Served::with(options);
        let count = served.json("runs").as_array().unwrap().len();
        // Of several, one is read when it is asked for.
        served.get("runs/0");
        served.ready(0);
        (count, served.json("runs/0")["run"]["ranks"].clone(), served.json("runs/0")["counts"]["slices"].clone())
    };
    let of = |folder: &std::path::Path| Options::new(vec![folder.into()]);
    assert_eq!(runs(of(folder.path())), (1, json!([0, 1, 2]), json!(9)));
    let joining = |pattern: &str, is_one_job| Joining { rank_from: Some(Regex::new(pattern).unwrap()), is_one_job };
    let open = |joining| OpenOptions { joining, ..OpenOptions::default() };
    let (none, all) = (open(joining("worker([0-9])", false)), open(joining("([0-9]).json", true)));
    // A trace that says no rank, and has none in its name, has nothing to do with the others.
    assert_eq!(runs(Options { open: none, ..of(folder.path()) }), (3, json!([0]), json!(2)));
    assert_eq!(runs(Options { open: all, ..of(folder.path()) }), (1, json!([0, 1, 2]), json!(9)));
    fs::write(folder.path().join("other.json"), trace(1)).unwrap();
    assert_eq!(runs(of(folder.path())).0, 4);
}

impl Served {
    /// Waits until a run that failed is read.
    fn ready_again(&self, id: usize) {
        self.wait(|runs| (runs[id]["state"] == "ready").then_some(()));
    }
}

#[test]
fn a_run_that_changes_is_read_again_and_the_old_answers_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.json");
    fs::write(&path, trace(3)).unwrap();
    let served = watching(path.clone());
    let mut version = served.ready(0);
    for slices in [4, 5, 6] {
        fs::write(folder.path().join("next"), trace(slices)).unwrap();
        fs::rename(folder.path().join("next"), &path).unwrap();
        let newer = served.wait(|runs| {
            assert_eq!(runs[0]["state"], "ready");
            // It always has an answer.
            assert_eq!(served.get("runs/0").status, 200);
            runs[0]["version"].as_u64().filter(|found| *found != version)
        });
        assert!(newer > version);
        version = newer;
        let summary = served.json("runs/0");
        assert_eq!(
            (summary["counts"]["slices"].as_u64(), summary["version"].as_u64()),
            (Some(slices as u64), Some(version))
        );
        let operators = served.json("runs/0/analyses/operators");
        assert_eq!(operators["page"]["total"].as_u64(), Some(slices as u64));
    }
    // What was taken away, or is damaged now, is still shown, and that it is so is told.
    assert_eq!((&served.json("runs")[0]["error"], &served.json("runs")[0]["is_gone"]), (&Value::Null, &json!(false)));
    fs::write(&path, "nonsense").unwrap();
    let error = served.wait(|runs| (!runs[0]["error"].is_null()).then(|| runs[0]["error"].clone()));
    assert!(error["what"].as_str().unwrap().contains("expected JSON"), "{error}");
    fs::remove_file(&path).unwrap();
    served.wait(|runs| (runs[0]["is_gone"] == true && runs[0]["state"] == "ready").then_some(()));
    assert_eq!((served.ready(0), served.json("runs/0")["counts"]["slices"].as_u64()), (version, Some(6)));
}

#[test]
fn what_happens_is_told_as_it_happens() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.json"), trace(3)).unwrap();
    fs::write(folder.path().join("b.json"), trace(3)).unwrap();
    let served = watching(folder.path().into());
    let mut stream = TcpStream::connect(served.running.address).unwrap();
    write!(stream, "GET /api/events?token={} HTTP/1.0\r\nHost: localhost\r\n\r\n", served.running.token).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(600))).unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap).filter_map(|line| {
        line.strip_prefix("data: ").map(|data| serde_json::from_str::<serde_json::Value>(data).unwrap())
    });
    assert_eq!(lines.next().unwrap()[1]["state"], "waiting");
    served.get("runs/1");
    assert!(lines.any(|runs| runs[1]["state"] == "ready"));
    fs::write(folder.path().join("c.json"), trace(3)).unwrap();
    assert!(lines.any(|runs| runs[2]["name"] == "c.json"));
}

#[test]
fn what_is_named_twice_is_there_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    fs::write(&path, trace(3)).unwrap();
    fs::write(folder.path().join("b.json"), trace(3)).unwrap();
    let served = Served::with(Options::new(vec![path.clone(), folder.path().into(), path]));
    let runs = served.json("runs");
    let names: Vec<&str> = runs.as_array().unwrap().iter().map(|run| run["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a.json", "b.json"]);
}

#[test]
fn a_run_says_what_it_is() {
    let served = Served::of(fixture("gpt-cpu"));
    let run = served.json("runs/0");
    assert_eq!(run["run"]["ranks"], serde_json::json!([0]));
    let steps = serde_json::json!({ "count": 12, "first_rank": 0, "numbers": [[0, 11]] });
    assert_eq!(run["steps"], steps);
    assert_eq!((&run["has"]["devices"], &run["has"]["memory"]), (&false.into(), &false.into()));
    let listed = served.json("runs");
    assert_eq!(
        (&listed[0]["name"], &listed[0]["is_live"], &listed[0]["version"]),
        (&"gpt-cpu".into(), &false.into(), &run["version"])
    );
}

#[test]
fn a_port_that_is_taken_says_so() {
    let served = Served::of(fixture("gpt-cpu"));
    let options = Options { address: served.running.address, ..Options::new(vec![fixture("gpt-cpu")]) };
    let error = stepscope_server::serve(options).unwrap_err();
    assert!(error.hint().unwrap().contains("another port"), "{error}");
}

#[test]
fn a_run_of_many_steps_is_told_in_short_and_its_steps_by_rank_or_number() {
    const STEPS: usize = 5_000;
    let step = |number: usize| {
        let args = r#""pid": 1, "tid": 1, "dur": 2"#;
        let name = format!("ProfilerStep#{}", number + 7);
        format!(r#"{{"ph": "X", "cat": "user_annotation", "name": "{name}", {args}, "ts": {}}}"#, number * 2)
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("steps.json");
    let events: Vec<String> = (0..STEPS).map(step).collect();
    fs::write(&path, format!("{{\"traceEvents\": [{}]}}", events.join(","))).unwrap();
    let served = Served::of(path);
    // Neither tells of each step, or it would have at least a digit and a comma for it.
    for path in ["runs/0", "runs/0/report"] {
        let reply = served.get(path);
        assert!(reply.status == 200 && reply.body.len() < 2 * STEPS, "{path}: {} bytes", reply.body.len());
    }
    let summary = served.json("runs/0");
    assert_eq!(summary["steps"], serde_json::json!({ "count": STEPS, "first_rank": 0, "numbers": [[7, STEPS + 6]] }));
    assert_eq!(served.json("runs/0/report")["steps"]["count"], STEPS);
    let own = served.json("runs/0/steps?rank=0");
    assert_eq!(own.as_array().unwrap().len(), STEPS);
    let third = served.json("runs/0/steps?step=9");
    assert_eq!(third, serde_json::json!([own[2]]));
    let keys = (&own[2]["rank"], &own[2]["number"], &own[2]["start_ns"], &own[2]["end_ns"], &own[2]["source"]);
    assert_eq!(keys, (&0.into(), &9.into(), &4_000.into(), &6_000.into(), &"label".into()));
    assert_eq!(served.json("runs/0/steps?rank=0&step=9"), third);
    assert_eq!(served.json("runs/0/steps?rank=3"), serde_json::json!([]));
    assert_eq!(served.get("runs/0/steps").status, 400);
    assert_eq!(served.get("runs/0/steps?limit=5").status, 400);
}

#[test]
fn steps_of_two_ranks_are_told_apart() {
    let served = Served::of(fixture("ddp-cpu"));
    assert_eq!(
        served.json("runs/0")["steps"],
        serde_json::json!({ "count": 24, "first_rank": 0, "numbers": [[0, 11]] })
    );
    for rank in [0, 1] {
        let own = served.json(&format!("runs/0/steps?rank={rank}"));
        let found: Vec<_> = own.as_array().unwrap().iter().map(|step| (&step["rank"], &step["number"])).collect();
        assert_eq!(found.len(), 12);
        assert!(found.iter().enumerate().all(|(at, (of, number))| **of == rank && **number == at));
    }
    let both = served.json("runs/0/steps?step=4");
    let ranks: Vec<_> = both.as_array().unwrap().iter().map(|step| step["rank"].as_u64().unwrap()).collect();
    assert_eq!(ranks, [0, 1]);
}

#[test]
fn a_key_names_the_same_run_when_others_are_added_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("b.json"), trace(3)).unwrap();
    let first = watching(folder.path().into());
    let key = first.json("runs")[0]["key"].as_str().unwrap().to_string();
    drop(first);
    fs::write(folder.path().join("a.json"), trace(5)).unwrap();
    let served = watching(folder.path().into());
    assert_eq!(served.get(&format!("runs/{key}")).status, 202);
    served.ready(1);
    let summary = served.json(&format!("runs/{key}"));
    assert_eq!((&summary["id"], &summary["counts"]["slices"]), (&json!(1), &json!(3)));
    assert_eq!(served.json(&format!("compare?a={key}&b=1&what=steps"))["page"]["rows"], 1);
    assert_eq!(served.get("runs/b.json-00000000").status, 404);
}

#[test]
fn only_stacks_that_name_files_are_source() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.json");
    let call = |name: &str| {
        let args = r#"{"Python id": 1, "Python parent id": null}"#;
        format!(
            r#"{{"traceEvents": [{{"ph": "X", "cat": "python_function", "name": "{name}", "pid": 1, "tid": 1, "ts": 1, "dur": 9, "args": {args}}}]}}"#
        )
    };
    for (name, is_source) in [("<built-in method mul of Tensor object at 0x7f>", false), ("train.py(3): main", true)] {
        fs::write(&path, call(name)).unwrap();
        let has = Served::of(path.clone()).json("runs/0")["has"].clone();
        assert_eq!((&has["python"], &has["source"]), (&json!(true), &json!(is_source)), "{name}");
    }
}

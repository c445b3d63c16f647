//! Queries: what the program that runs them is told, and what becomes of what it says.

use crate::served::{Reply, Served, encoded, fixture};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use stepscope_engine::OpenOptions;
use stepscope_server::Options;
use tempfile::TempDir;

/// A server of a trace in a folder of its own, with a program that only says that it runs SQL.
struct Queries {
    served: Served,
    folder: TempDir,
}

impl Queries {
    fn new() -> Self {
        let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http/fake_sql.sh");
        Self::with(Some(fake))
    }

    fn with(sql_program: Option<PathBuf>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("a=b.json.gz");
        std::fs::copy(fixture("kineto/a100_alexnet_sync.json.gz"), &trace).unwrap();
        let stepscope_program = Some(PathBuf::from("/bin/stepscope"));
        let open = OpenOptions { max_memory: Some(1 << 30), ..OpenOptions::default() };
        let options = Options::new(vec![trace]);
        let served = Served::with(Options { open, sql_program, stepscope_program, ..options });
        served.ready(0);
        Self { served, folder }
    }

    fn ask(&self, sql: &str, more: &str) -> Reply {
        self.served.get(&format!("runs/0/query?sql={}{more}", encoded(sql)))
    }

    fn file(&self, sql: &str, format: &str) -> Reply {
        self.served.get(&format!("runs/0/query/file?sql={}&format={format}", encoded(sql)))
    }

    /// What the program wrote beside the trace, once it is there.
    fn wrote(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        wait(|| std::fs::read_to_string(&path).ok().filter(|text| !text.is_empty()))
    }
}

fn wait<T>(wish: impl Fn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = wish() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "it does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process runs; one whose end nobody has asked for yet does not.
fn runs(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn rows_pass_through_and_the_program_knows_what_it_is_asked() {
    let queries = Queries::new();
    let reply = queries.ask("SELECT count(*) AS n\nFROM slice -- ü", "&limit=7");
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")), "{}", reply.text());
    let columns = r#"[{"name":"n","type":"int","unit":"count","doc":null}]"#;
    assert_eq!(
        reply.text().trim(),
        format!(r#"{{"columns":{columns},"rows":[[9007199254740993]],"is_complete":true}}"#)
    );
    let called = queries.wrote("called");
    let (arguments, sql) = called.split_once('\n').unwrap();
    let trace = queries.folder.path().join("a=b.json.gz");
    let made = std::fs::read_dir(queries.folder.path().join(".stepscope")).unwrap();
    let tables = made.map(|entry| entry.unwrap().path()).next().unwrap();
    let expected = format!(
        "--tables=a_b.json.gz={} --input={} --pages 7 --stepscope /bin/stepscope \
         --opened-with=--align=auto --memory=1073741824 -f -",
        tables.display(),
        trace.display()
    );
    assert_eq!((arguments, sql), (expected.as_str(), "SELECT count(*) AS n\nFROM slice -- ü\n"));
    assert!(tables.join("slice").is_dir());
    for (more, limit) in [("", "--pages 1000 "), ("&limit=1000000000", "--pages 100000 "), ("&limit=0", "--pages 1 ")] {
        queries.ask("SELECT 1", more);
        assert!(queries.wrote("called").contains(limit), "{more}");
    }
}

#[test]
fn what_is_wrong_with_a_query_is_told_with_its_place() {
    let queries = Queries::new();
    let reply = queries.ask("SELECT wrong", "");
    assert_eq!(reply.status, 400);
    let expected = r#"{"error":{"hint":"did you mean name?","what":"no column `nme`","where":"line 1, column 8"}}"#;
    assert_eq!(reply.text(), expected);
    for format in ["csv", "parquet"] {
        let reply = queries.file("SELECT wrong", format);
        assert_eq!((reply.status, reply.text()), (400, expected), "{format}");
    }
    let killed = queries.ask("killed", "");
    assert_eq!(killed.status, 500);
    assert!(killed.json()["error"]["hint"].as_str().unwrap().contains("memory"), "{}", killed.text());
    for wrong in ["query", "query?sql=", "query?sql=1&limit=x", "query?sq=1", "query/file?sql=1", "query/schema?x=1"] {
        assert_eq!(queries.served.get(&format!("runs/0/{wrong}")).status, 400, "{wrong}");
    }
    assert_eq!(queries.file("SELECT 1", "xlsx").status, 400);
    assert_eq!(queries.served.get("runs/9/query?sql=1").status, 404);
    assert_eq!(
        crate::served::ask(queries.served.running.address, "/api/runs/0/query?sql=1", &["Host: localhost"]).status,
        401
    );
}

#[test]
fn a_program_that_is_not_there_is_one_to_install() {
    let queries = Queries::with(None);
    assert_eq!(queries.served.json("about")["sql"], false);
    for path in ["query?sql=SELECT", "query/schema", "query/file?sql=SELECT&format=csv"] {
        let reply = queries.served.get(&format!("runs/0/{path}"));
        assert_eq!(reply.status, 501, "{path}");
        assert!(reply.json()["error"]["hint"].as_str().unwrap().starts_with("pip install 'stepscope[sql]'"), "{path}");
    }
    // Nothing was made in vain.
    assert!(!queries.folder.path().join(".stepscope").exists());
    assert_eq!(Queries::new().served.json("about")["sql"], true);
    let gone = Queries::with(Some("/nowhere/stepscope-sql".into())).ask("SELECT 1", "");
    assert_eq!((gone.status, &gone.json()["error"]["where"]), (500, &"/nowhere/stepscope-sql".into()));
}

#[test]
fn a_client_that_goes_away_ends_the_program_and_what_it_called() {
    let queries = Queries::new();
    for path in ["query?sql=slow", "query/file?sql=slow&format=csv", "query/file?sql=slow&format=parquet"] {
        let mut client = TcpStream::connect(queries.served.running.address).unwrap();
        let token = &queries.served.running.token;
        write!(client, "GET /api/runs/0/{path}&token={token} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let pids = queries.wrote("pids");
        let pids: Vec<&str> = pids.split_whitespace().collect();
        assert!(pids.len() == 2 && pids.iter().all(|pid| runs(pid)), "{path}: {pids:?}");
        if path.ends_with("csv") {
            // It is being sent already.
            let mut beginning = [0];
            client.read_exact(&mut beginning).unwrap();
        }
        drop(client);
        wait(|| pids.iter().all(|pid| !runs(pid)).then_some(()));
        // Nothing is left of the program: the server has asked for its end.
        wait(|| (!Path::new("/proc").join(pids[0]).exists()).then_some(()));
        std::fs::remove_file(queries.folder.path().join("pids")).unwrap();
    }
    assert_eq!(queries.ask("SELECT 1", "").status, 200);
}

#[test]
fn a_result_is_read_page_by_page() {
    let queries = Queries::new();
    let rest = |reply: &Reply| reply.json()["rest"].as_u64();
    let next = |number: u64| queries.served.get(&format!("runs/0/query/rows?rest={number}"));
    let of = |reply: &Reply| (reply.status, reply.json()["rows"][0][0].as_i64(), reply.json()["is_complete"].as_bool());
    let first = queries.ask("three pages", "");
    assert_eq!(of(&first), (200, Some(1), Some(false)));
    let second = next(rest(&first).unwrap());
    assert_eq!(of(&second), (200, Some(2), Some(false)));
    let third = next(rest(&second).unwrap());
    assert_eq!((of(&third), rest(&third)), ((200, Some(3), Some(true)), None));
    // What was read is not there any more.
    let gone = next(rest(&first).unwrap());
    assert_eq!((gone.status, gone.json()["error"]["hint"].is_string()), (410, true), "{}", gone.text());
    for wrong in ["", "?rest=x", "?rest=-1", "?sql=1"] {
        assert_eq!(queries.served.get(&format!("runs/0/query/rows{wrong}")).status, 400, "{wrong}");
    }
    // One that fails on the way is not the end of the rows.
    let failing = next(rest(&queries.ask("pages without the last", "")).unwrap());
    assert_eq!(next(rest(&failing).unwrap()).status, 500);
}

#[test]
fn of_the_programs_that_wait_the_oldest_ends_and_all_end_with_the_server() {
    let queries = Queries::new();
    let pids: Vec<String> = (0..5)
        .map(|_| {
            assert!(queries.ask("pages that stay", "").json()["rest"].is_number());
            let pid = queries.wrote("pid").trim().to_string();
            std::fs::remove_file(queries.folder.path().join("pid")).unwrap();
            pid
        })
        .collect();
    wait(|| (!runs(&pids[0])).then_some(()));
    assert!(pids[1..].iter().all(|pid| runs(pid)));
    queries.served.running.stop();
    wait(|| pids.iter().all(|pid| !runs(pid)).then_some(()));
}

#[test]
fn a_server_that_ends_ends_queries() {
    let queries = Queries::new();
    let mut client = TcpStream::connect(queries.served.running.address).unwrap();
    let token = &queries.served.running.token;
    write!(client, "GET /api/runs/0/query?sql=slow&token={token} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let pids = queries.wrote("pids");
    queries.served.running.stop();
    wait(|| pids.split_whitespace().all(|pid| !runs(pid)).then_some(()));
}

#[test]
fn long_queries_hold_no_quick_request_up() {
    let queries = Queries::new();
    let token = &queries.served.running.token;
    let clients: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut client = TcpStream::connect(queries.served.running.address).unwrap();
            write!(client, "GET /api/runs/0/query?sql=slow&token={token} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            client
        })
        .collect();
    queries.wrote("pids");
    assert_eq!(queries.served.get("runs/0/analyses/operators?limit=1").status, 200);
    assert_eq!(queries.file("SELECT 1", "csv").status, 200);
    drop(clients);
    assert_eq!(queries.ask("SELECT 1", "").status, 200);
}

#[test]
fn a_result_is_saved_whole_or_breaks_off() {
    let queries = Queries::new();
    let csv = queries.file("SELECT name", "csv");
    assert_eq!((csv.status, csv.text()), (200, "name\na\nb\n"));
    assert_eq!(csv.header("content-disposition"), Some("attachment; filename=\"a_b.json.gz.query.csv\""));
    assert_eq!(queries.file("nothing", "csv").text(), "");
    let parquet = queries.file("SELECT name", "parquet");
    assert!(parquet.text().lines().any(|line| line == "slice"), "{}", parquet.text());
    assert_eq!(parquet.header("content-type"), Some("application/vnd.apache.parquet"));
    // An answer in pieces that does not end with the last of them was cut.
    let mut client = TcpStream::connect(queries.served.running.address).unwrap();
    let token = &queries.served.running.token;
    let path = format!("/api/runs/0/query/file?sql=breaks&format=csv&token={token}");
    write!(client, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    // What was not on its way when the program failed is lost with it, so this may be the headers alone.
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("transfer-encoding: chunked"), "{answer}");
    assert!(!answer.ends_with("0\r\n\r\n"), "{answer}");
}

#[test]
fn what_there_is_to_ask_about_is_asked_for_once() {
    let queries = Queries::new();
    for _ in 0..3 {
        assert_eq!(queries.served.json("runs/0/query/schema")["tables"][0]["name"], "slice");
    }
    assert_eq!(queries.wrote("schemas"), "x\n");
    assert!(queries.wrote("called").contains(" --schema --json "));
}

//! Many people at once, and those who do not wait for their answer.

use crate::served::{Served, encoded};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use stepscope_server::Options;

/// Times that a person looks elsewhere.
const ROUNDS: usize = 60;

/// A trace with `slices` operators of up to 5,000 names, in which finding the critical path and grouping take a while.
fn large(slices: usize) -> String {
    let mut text = String::from("{\"traceEvents\": [");
    for at in 0..slices {
        let (name, thread, start) = (at % 5_000, at % 4, at * 3);
        text += &format!(
            "{}{{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"op{name}\", \"pid\": 1, \"tid\": {thread}, \"ts\": {start}, \"dur\": 9}}",
            if at == 0 { "" } else { "," }
        );
    }
    text + "]}"
}

fn served(folder: &tempfile::TempDir, slices: usize) -> Served {
    let path = folder.path().join("large.json");
    std::fs::write(&path, large(slices)).unwrap();
    Served::of(path)
}

#[test]
fn twenty_people_pan_while_analyses_run() {
    let folder = tempfile::tempdir().unwrap();
    let served = served(&folder, 300_000);
    let version = served.ready(0);
    let end_ns = served.json("runs/0")["span"]["end_ns"].as_i64().unwrap();
    let (analyses, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut answers: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    std::thread::scope(|scope| {
        // Each is another question, so that none is answered from what is kept.
        scope.spawn(|| {
            for number in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let path = format!("runs/0/analyses/operators?start_ns={number}&end_ns={end_ns}&search=op1&sort=count");
                assert_eq!(served.get(&path).status, 200);
                analyses.fetch_add(1, Ordering::Relaxed);
            }
        });
        let people: Vec<_> = (0..20_usize)
            .map(|person| {
                let served = &served;
                scope.spawn(move || {
                    let mut seen = BTreeMap::new();
                    for step in 0..ROUNDS {
                        let level = 12 + (person + step) % 10;
                        let first = (step % 7) as i64;
                        let path = format!("runs/0/tiles?v={version}&rows=0,1,2&level={level}&first={first}&count=4");
                        let reply = served.get(&path);
                        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
                        seen.entry(path).or_insert(reply.body);
                        if step % 16 == 0 {
                            let query = encoded(&format!("op{}", person * step));
                            assert_eq!(served.get(&format!("runs/0/search?q={query}")).status, 200);
                            assert_eq!(
                                served.get(&format!("runs/0/sums?start_ns=0&end_ns={end_ns}&by=name&limit=5")).status,
                                200
                            );
                        }
                    }
                    seen
                })
            })
            .collect();
        for person in people {
            // Everybody sees the same.
            for (path, body) in person.join().unwrap() {
                assert_eq!(answers.entry(path).or_insert_with(|| body.clone()), &body);
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    // Tiles that waited for analyses would come one for one with them.
    let analyses = analyses.into_inner();
    assert!(analyses > 0 && analyses < 20 * ROUNDS, "{analyses}");
}

#[test]
fn who_goes_away_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let served = served(&folder, 300_000);
    // Two hundred questions that nobody waits for: each would take a good part of a second.
    for number in 0..200 {
        let mut stream = TcpStream::connect(served.running.address).unwrap();
        let path = format!("/api/runs/0/report?start_ns={number}&token={}", served.running.token);
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    }
    assert_eq!(served.get("runs/0/analyses/operators?limit=1").status, 200);
    // What had begun was finished; what waited for its turn was left.
    let begun = served.running.long_work_begun();
    assert!((1..100).contains(&begun), "{begun}");
}

#[test]
fn a_large_trace_is_sent_whole() {
    let folder = tempfile::tempdir().unwrap();
    let served = served(&folder, 200_000);
    for format in ["chrome", "perfetto"] {
        let reply = served.get(&format!("runs/0/export?format={format}"));
        // More than is written at once.
        assert!(reply.body.len() > 1 << 20, "{format}: {} bytes", reply.body.len());
        if format == "chrome" {
            let read = stepscope_import::open_bytes("export.json", &reply.body).unwrap();
            assert_eq!(read.slices.len(), 200_000);
        }
    }
}

#[test]
fn a_slow_reader_of_files_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let served = served(&folder, 100_000);
    let mut slow = Vec::new();
    for _ in 0..8 {
        let mut stream = TcpStream::connect(served.running.address).unwrap();
        let path = format!("/api/runs/0/export?format=chrome&token={}", served.running.token);
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        slow.push(stream);
    }
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(served.get("runs/0/analyses/operators?limit=1").status, 200);
    assert_eq!(served.get("runs/0/timeline").status, 200);
    // Those who went away leave their place to others.
    drop(slow);
    assert_eq!(served.get("runs/0/export?format=chrome&start_ns=0&end_ns=1000").status, 200);
}

#[test]
fn a_server_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.json");
    std::fs::write(&path, large(1_000)).unwrap();
    let served = Served::with(Options::new(vec![path]));
    let address = served.running.address;
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /api/events?token={} HTTP/1.1\r\nHost: localhost\r\n\r\n", served.running.token).unwrap();
    served.running.stop();
    assert!(TcpStream::connect(address).is_err());
}

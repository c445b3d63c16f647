//! A server on a real socket, and a client of few words.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use stepscope_server::{Options, Running, serve};

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// With names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

/// A server for a test.
pub(crate) struct Served {
    pub(crate) running: Running,
}

impl Served {
    pub(crate) fn with(options: Options) -> Self {
        Self { running: serve(options).expect("a server") }
    }

    /// Of this input, once it is read.
    pub(crate) fn of(input: PathBuf) -> Self {
        let served = Self::with(Options::new(vec![input]));
        served.ready(0);
        served
    }

    /// What `api/PATH` answers who has the token.
    pub(crate) fn get(&self, path: &str) -> Reply {
        let token = format!("Authorization: Bearer {}", self.running.token);
        ask(self.running.address, &format!("/api/{path}"), &["Host: localhost", &token])
    }

    /// The JSON of an answer that is good.
    pub(crate) fn json(&self, path: &str) -> Value {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    /// Waits until a run is read, and gives its version.
    pub(crate) fn ready(&self, id: usize) -> u64 {
        let row = self.wait(|runs| {
            assert_ne!(runs[id]["state"], "failed", "{runs}");
            (runs[id]["state"] == "ready").then(|| runs[id].clone())
        });
        row["version"].as_u64().expect("a version")
    }

    /// Waits until the list of runs is as wished; asks for the first run meanwhile.
    pub(crate) fn wait<T>(&self, wish: impl Fn(&Value) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            let runs = self.json("runs");
            if let Some(found) = wish(&runs) {
                return found;
            }
            assert!(begun.elapsed() < Duration::from_secs(600), "{runs}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Asks for a path with these lines of a head. HTTP/1.0: the answer ends with the connection.
pub(crate) fn ask(address: SocketAddr, path: &str, head: &[&str]) -> Reply {
    ask_raw(address, format!("GET {path} HTTP/1.0\r\n{}\r\n\r\n", head.join("\r\n")).as_bytes())
}

/// Sends `request` as it is.
pub(crate) fn ask_raw(address: SocketAddr, request: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(600))).expect("a limit");
    stream.write_all(request).expect("sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = text.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|word| word.parse().ok());
    let pair = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_string()));
    Reply {
        status: status.expect("a status"),
        headers: lines.filter_map(pair).collect(),
        body: bytes[end + 4..].to_vec(),
    }
}

/// A text as it stands in a query.
pub(crate) fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// A run or trace of the project.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name)
}

/// Every kind of input: a run of our own, a GPU's trace, a trace of files.
pub(crate) fn inputs() -> Vec<PathBuf> {
    vec![
        fixture("gpt-cpu"),
        fixture("kineto/a100_event_sync_multi_stream.json.gz"),
        fixture("kineto/a100_alexnet_sync.json.gz"),
    ]
}

//! Who is let in, and what is never given away.

use crate::served::{Reply, Served, ask, ask_raw, encoded, fixture, inputs};
use std::fs;
use stepscope_server::{Options, Running, serve};

fn raw(served: &Served, path: &str, head: &[&str]) -> Reply {
    ask(served.running.address, path, head)
}

#[test]
fn without_the_token_nothing_is_told() {
    let served = Served::of(inputs()[1].clone());
    let token = served.running.token.clone();
    let paths = [
        "runs",
        "analyses",
        "events",
        "about",
        "runs/0",
        "runs/0/report",
        "runs/0/tiles?v=1",
        "compare?a=0&b=0",
        "nothing",
        "%72uns",
        "../api/runs",
        "./runs",
    ];
    for path in paths {
        for (query, header) in [
            (String::new(), String::new()),
            ("token=".into(), String::new()),
            (format!("token={}", &token[..31]), String::new()),
            (String::new(), format!("Authorization: Bearer {}0", &token[1..])),
            (String::new(), format!("Authorization: Basic {token}")),
            // What the header says counts, when there is one.
            (format!("token={token}"), "Authorization: Bearer x".into()),
        ] {
            let joint = if path.contains('?') { "&" } else { "?" };
            let mut head = vec!["Host: localhost"];
            head.extend((!header.is_empty()).then_some(header.as_str()));
            let reply = raw(&served, &format!("/api/{path}{joint}{query}"), &head);
            assert!(
                [401, 404].contains(&reply.status) && !reply.text().contains("gpt"),
                "{path} {query} {header}: {}",
                reply.text()
            );
            assert!(reply.status == 401 || path.contains(".."), "{path}: {}", reply.status);
        }
    }
    assert_eq!(raw(&served, &format!("/api/runs?token={token}"), &["Host: localhost"]).status, 200);
    assert!(served.running.url.ends_with(&token));
}

#[test]
fn other_names_and_other_sites_are_refused() {
    let served =
        Served::with(Options { allowed_hosts: vec!["Hub.Example".into()], ..Options::new(vec![inputs()[1].clone()]) });
    let address = served.running.address;
    let token = format!("Authorization: Bearer {}", served.running.token);
    let own = format!("http://{address}");
    for (host, origin, status) in [
        (address.to_string(), None, 200),
        (address.to_string(), Some(own.as_str()), 200),
        ("hub.example".into(), Some("https://hub.example"), 200),
        (address.to_string(), Some("https://hub.example"), 200),
        ("evil.example".into(), None, 403),
        (format!("evil.example:{}", address.port()), None, 403),
        (address.to_string(), Some("http://evil.example"), 403),
        (address.to_string(), Some("http://127.0.0.1:1"), 403),
        (address.to_string(), Some("null"), 403),
    ] {
        for path in ["/api/runs", "/"] {
            let mut head = vec![format!("Host: {host}"), token.clone()];
            head.extend(origin.map(|origin| format!("Origin: {origin}")));
            let head: Vec<&str> = head.iter().map(String::as_str).collect();
            assert_eq!(raw(&served, path, &head).status, status, "{path} {head:?}");
        }
    }
    assert_eq!(raw(&served, "/", &[]).status, 403);
}

#[test]
fn nothing_can_be_changed() {
    let served = Served::of(inputs()[1].clone());
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let request = format!(
            "{method} /api/runs?token={} HTTP/1.0\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
            served.running.token
        );
        assert_eq!(ask_raw(served.running.address, request.as_bytes()).status, 405, "{method}");
    }
}

#[test]
fn every_answer_keeps_a_browser_careful() {
    let served = Served::of(inputs()[1].clone());
    for path in ["/", "/nothing", "/api/runs", "/api/nothing", "/assets/../../etc/passwd"] {
        let reply = raw(&served, path, &["Host: localhost"]);
        let policy = reply.header("content-security-policy").unwrap();
        assert!(
            policy.contains("default-src 'none'")
                && policy.contains("frame-ancestors 'none'")
                && !policy.contains("unsafe")
        );
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(reply.header("cross-origin-resource-policy"), Some("same-origin"));
        assert_eq!(reply.header("x-frame-options"), Some("DENY"));
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
    let framed = Served::with(Options { allows_frames: true, ..Options::new(vec![inputs()[1].clone()]) });
    let reply = raw(&framed, "/", &["Host: localhost"]);
    assert!(
        !reply.header("content-security-policy").unwrap().contains("frame-ancestors")
            && reply.header("x-frame-options").is_none()
    );
}

#[test]
fn nonsense_is_refused_and_the_server_lives() {
    let served = Served::of(inputs()[1].clone());
    let address = served.running.address;
    let long = format!("GET /api/runs?q={} HTTP/1.0\r\nHost: localhost\r\n\r\n", "x".repeat(40_000));
    let headers = format!("GET / HTTP/1.0\r\n{}\r\n", "A: b\r\n".repeat(5_000));
    for request in [
        "\r\n\r\n",
        "GET\r\n\r\n",
        "\u{0}\u{1}\u{2}\r\n\r\n",
        "GET /api/%ff%00 HTTP/1.0\r\nHost: localhost\r\n\r\n",
        &long,
        &headers,
    ] {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        use std::io::{Read, Write};
        // It may be closed before all is sent.
        let _ = stream.write_all(request.as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.0 200") && !answer.starts_with(b"HTTP/1.1 200"), "{request:.60}");
    }
    let too_long = format!("runs/0/analyses/operators?search={}", "x".repeat(20_000));
    assert_eq!(served.get(&too_long).status, 414);
    assert_eq!(served.get("runs").status, 200);
}

/// A trace whose stacks and names a person with bad intentions wrote.
const HOSTILE: &str = r#"{"traceEvents": [
 {"ph": "X", "cat": "cpu_op", "name": "<script>alert(1)</script>", "pid": 1, "tid": 1, "ts": 1, "dur": 9,
  "args": {"Call stack": "own.py(2): f;STEAL(1): g;../secret.py(1): h;<img src=x onerror=alert(1)>(3): i"}},
 {"ph": "X", "cat": "python_function", "name": "link.py(1): \u0000\"'><svg onload=alert(1)>", "pid": 1, "tid": 2, "ts": 1, "dur": 9}
]}"#;

#[test]
fn source_files_are_given_from_allowed_folders_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (inside, secret) = (folder.path().join("in"), folder.path().join("secret.py"));
    fs::create_dir(&inside).unwrap();
    fs::write(inside.join("own.py"), "one\ntwo <b>\nthree\n").unwrap();
    fs::write(inside.join("unnamed.py"), "not in a stack").unwrap();
    fs::write(&secret, "secret").unwrap();
    std::os::unix::fs::symlink(&secret, inside.join("link.py")).unwrap();
    let steal = secret.display().to_string();
    fs::write(inside.join("t.json"), HOSTILE.replace("STEAL", &steal)).unwrap();
    let served = Served::with(Options {
        source_roots: Some(vec![inside.clone()]),
        editor: Some("vscode".parse().unwrap()),
        ..Options::new(vec![inside.join("t.json")])
    });
    served.ready(0);
    let source = |file: &str| served.get(&format!("runs/0/source?file={}&line=2&around=1", encoded(file)));
    let shown = source("own.py").json();
    assert_eq!(shown["lines"], serde_json::json!(["one", "two <b>", "three"]));
    let path = inside.canonicalize().unwrap().join("own.py").display().to_string();
    assert_eq!((shown["first_line"].as_u64(), shown["editor_path"].as_str()), (Some(1), Some(path.as_str())));
    assert_eq!(shown["editor_url"], format!("vscode://file{path}:2"));
    for file in [
        steal.as_str(),
        "../secret.py",
        "link.py",
        "unnamed.py",
        "in/../own.py",
        ".",
        "",
        "/etc/passwd",
        "<img src=x onerror=alert(1)>",
    ] {
        let reply = source(file);
        // What a stack names, but is not here to be shown, is told in one way, wherever it lies.
        let is_withheld = reply.status == 200 && reply.json()["lines"].is_null();
        assert!([400, 404].contains(&reply.status) || is_withheld, "{file}: {}", reply.text());
        assert!(!reply.text().contains("root:") && !reply.text().contains("\"secret\""), "{file}: {}", reply.text());
    }
}

#[test]
fn text_of_a_trace_stays_text() {
    let folder = tempfile::tempdir().unwrap();
    let name = "<b>&\"run\u{e9}.json";
    fs::write(folder.path().join(name), HOSTILE).unwrap();
    let served = Served::of(folder.path().join(name));
    for path in
        ["runs", "runs/0", "runs/0/analyses/operators", "runs/0/slices/0", "runs/0/search?q=script", "runs/0/timeline"]
    {
        let reply = served.get(path);
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")), "{path}");
        reply.json();
    }
    let operators = served.json("runs/0/analyses/operators");
    assert_eq!(operators["results"][0]["name"], "<script>alert(1)</script>");
    let page = served.get("runs/0/report.html");
    assert!(!page.text().contains("<script>alert"), "{}", page.text());
    let csv = served.get("runs/0/analyses/operators?format=csv");
    assert_eq!(csv.header("content-disposition"), Some("attachment; filename=\"_b___run_.json.operators.csv\""));
}

#[test]
fn a_token_of_ones_own_is_taken_and_shown_as_an_address_has_it() {
    let options = Options { token: Some("a b&c".into()), ..Options::new(vec![fixture("gpt-cpu")]) };
    let served = Served::with(options);
    assert!(served.running.url.ends_with("/?token=a+b%26c"), "{}", served.running.url);
    let path = format!("/api/runs?token={}", encoded("a b&c"));
    assert_eq!(raw(&served, &path, &["Host: localhost"]).status, 200);
}

#[test]
fn a_port_that_was_named_has_the_same_token_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (state, input) = (folder.path().join("state"), fixture("gpt-cpu"));
    let on = |port: u16, state_folder| {
        let mut options = Options { state_folder, ..Options::new(vec![input.clone()]) };
        options.address.set_port(port);
        serve(options)
    };
    let token = |running: Running| (running.address.port(), running.token.clone());
    // One that was free a moment ago; another program may be quicker.
    let (port, first) = (0..20)
        .find_map(|_| {
            let (free, _) = token(on(0, None).unwrap());
            on(free, Some(state.clone())).ok().map(token)
        })
        .expect("a port");
    let again = (0..50).find_map(|_| on(port, Some(state.clone())).ok()).expect("the port again");
    assert_eq!(again.token, first);
    drop(again);
    assert!(state.join(format!("{port}.token")).is_file());
    // What nobody named is new each time, and leaves nothing behind.
    let (free, other) = token(on(0, Some(state.clone())).unwrap());
    assert!(other != first && (free == port || !state.join(format!("{free}.token")).exists()));
}

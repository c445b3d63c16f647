//! Broken, cut and hostile texts: what is sound in them is read.

use super::*;

#[test]
fn a_stray_quote_costs_its_own_event() {
    let text = r#"{"traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 1},
        {"ph": "X", "cat": "cpu_op", "name": "C:\dir\", "pid": 1, "tid": 1, "ts": 2, "dur": 1},
        {"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": 1, "ts": 4, "dur": 1, "args": {"path": "C:\Users"}},
        {"ph": "X", "cat": "cpu_op", "name": "D:\tools\x", "pid": 1, "tid": 1, "ts": 6, "dur": 1},
        {"ph": "X", "cat": "cpu_op", "name": "open, "args": {"x": [1, 2}, "ts": 8},
        {"ph": "X", "cat": "cpu_op", "name": "c", "pid": 1, "tid": 1, "ts": 8, "dur": 1}
    ], "hostname": "box", "schemaVersion": 1}"#;
    let trace = trace_of(text);
    assert_eq!(slices(&trace), ["op a 0+1000", "op b 4000+1000", "op D:\tools\\x 6000+1000", "op c 8000+1000"]);
    assert_eq!(findings(&trace), ["UnreadableEvent x2", "RepairedText x1"]);
    assert_eq!(trace.processes[0].host.as_deref(), Some("box"));
}

#[test]
fn a_broken_head_does_not_hide_the_events() {
    let trace = trace_of(&format!("{{\"host\": \"C:\\dir\\\", \"a\": 1, \"traceEvents\": [{{{OP}}}]}}"));
    assert_eq!(slices(&trace), ["op aten::mm 0+4000"]);
    assert_eq!(findings(&trace), ["UnreadableEvent x1"]);
}

#[test]
fn invalid_utf8_and_marks_are_read_through() {
    let mut text =
        b"\xef\xbb\xbf{\"traceEvents\": [{\"ph\": \"X\", \"name\": \"a\xff\nb\", \"ts\": 1, \"dur\": N/A}]} ".to_vec();
    let trace = try_read(&text).expect("a trace");
    assert_eq!(slices(&trace), ["other a\u{fffd}\nb 0+0"]);
    assert_eq!(findings(&trace), ["MissingDuration x1", "RepairedText x1", "RepairedNumber x1"]);
    text.extend(b"tail");
    assert!(findings(&try_read(&text).expect("a trace")).contains(&"UnreadableEvent x1".into()));
}

#[test]
fn a_text_cut_anywhere_gives_the_events_before() {
    let text = format!(
        "{{\"schemaVersion\": 1, \"traceEvents\": [{{{OP}}}, {{{OP}, \"args\": {{\"grid\": [1, 2, 3]}}}}], \"k\": [1]}}"
    );
    for cut in 0..text.len() {
        let Ok(trace) = try_read(&text.as_bytes()[..cut]) else {
            assert!(cut <= text.find("[{").expect("events"), "cut at {cut}");
            continue;
        };
        let ends = text[..cut].matches("}, {").count() + text[..cut].matches("}], ").count();
        assert!(trace.slices.len() >= ends, "cut at {cut}");
        assert_eq!(trace.findings.count(FindingCode::TruncatedInput), 1, "cut at {cut}");
        assert_eq!(trace.findings.count(FindingCode::UnreadableEvent), 0, "cut at {cut}");
    }
}

#[test]
fn deep_nesting_and_endless_breakage_end_soon() {
    assert!(try_read("[".repeat(1 << 20).as_bytes()).is_err());
    let nested = format!("{{\"traceEvents\": [{}", "{\"args\": ".repeat(1 << 18));
    let broken = format!("{{\"traceEvents\": [{}", "{\"ph\": \"X\", \"a\": [\"".repeat(1 << 16));
    for text in [nested, broken] {
        assert_eq!(try_read(text.as_bytes()).map(|trace| trace.slices.len()).unwrap_or(0), 0);
    }
}

/// Pieces of which random texts are made: tokens, and events cut in two.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u12",
    "1",
    "-",
    "1e9",
    "null",
    "NaN",
    " ",
    "\n",
    "\"ph\":",
    "\"X\"",
    "\"ts\":",
    "\"dur\":",
    "\"args\":{",
    "\"name\":\"a\"",
    "\"traceEvents\":[",
    "{\"ph\":\"X\",\"ts\":1,\"dur\":2}",
    "{\"ph\":\"B\",\"ts\":3,\"pid\":1}",
    "{\"ph\":\"E\",\"ts\":2,\"pid\":1}",
    "\"cat\":\"kernel\",",
    "\"pid\":",
    "9999999999999999",
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":5,\"dur\":1,\"args\":{\"correlation\":1}}",
    "{\"ph\":\"s\",\"cat\":\"ac2g\",\"id\":1,\"ts\":1}",
    "{\"ph\":\"f\",\"cat\":\"fwdbwd\",\"id\":1,\"ts\":1}",
    "\"deviceProperties\":[{\"id\":0}]",
    "\u{e9}",
];

proptest! {
    #[test]
    fn any_bytes_give_a_trace_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_sane(&bytes);
        check_sane(&[b"{\"traceEvents\":[", bytes.as_slice()].concat());
    }

    #[test]
    fn any_tokens_give_a_trace_or_an_error(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60)) {
        let text: String = pieces.concat();
        check_sane(text.as_bytes());
        check_sane(format!("{{\"traceEvents\":[{text}").as_bytes());
    }
}

//! Whatever is asked, there is an answer: what was asked for, or why not. Nothing panics.

use crate::served::{Reply, Served, encoded, fixture};
use proptest::prelude::*;
use std::sync::OnceLock;

fn served() -> &'static Served {
    static SERVED: OnceLock<Served> = OnceLock::new();
    SERVED.get_or_init(|| {
        let served = Served::of(fixture("kineto/a100_event_sync_multi_stream.json.gz"));
        served.ready(0);
        served
    })
}

/// An answer is good, or says what is wrong; 500 would be a defect.
fn is_sound(reply: &Reply) -> bool {
    match reply.status {
        200 | 304 => true,
        202 | 400 | 404 | 409 | 414 => reply.json()["error"]["what"].as_str().is_some_and(|what| !what.is_empty()),
        _ => false,
    }
}

fn number() -> impl Strategy<Value = String> {
    let known = [
        "",
        "0",
        "1",
        "-1",
        "5",
        "43",
        "44",
        "512",
        "1000",
        "9223372036854775807",
        "-9223372036854775808",
        "4294967295",
    ];
    prop_oneof![
        6 => prop::sample::select(known.to_vec()).prop_map(str::to_string),
        3 => any::<i64>().prop_map(|number| number.to_string()),
        1 => (0_i64..2_000_000).prop_map(|number| number.to_string()),
        1 => ".{0,6}",
    ]
}

fn word() -> impl Strategy<Value = String> {
    let known = [
        "name",
        "kind",
        "track",
        "class",
        "chrome",
        "csv",
        "arrow",
        "operators",
        "operator_tree",
        "call_tree",
        "callers",
        "kernel_durations",
        "step_durations",
        "steps",
        "modules",
        "a",
        "-count",
        "tb",
        "module",
        "total_ns:gt:5",
        "\u{0}",
        "é<",
    ];
    prop_oneof![4 => prop::sample::select(known.to_vec()).prop_map(str::to_string), 1 => ".{0,8}"]
}

fn query() -> impl Strategy<Value = String> {
    let numbers = [
        "rank",
        "step",
        "start_ns",
        "end_ns",
        "offset",
        "limit",
        "rows",
        "row",
        "level",
        "first",
        "count",
        "points",
        "at_ns",
        "after",
        "before",
        "after_ns",
        "before_ns",
        "slice",
        "line",
        "around",
        "a",
        "b",
        "bucket_ms",
        "depth",
        "top",
        "a_rank",
        "b_rank",
    ];
    let words = ["sort", "search", "where", "format", "by", "q", "name", "file", "group_by", "compat", "what"];
    let pair = prop_oneof![
        2 => (prop::sample::select(numbers.to_vec()), number()),
        1 => (prop::sample::select(words.to_vec()), word()),
    ];
    let text = |(name, value): (&str, String)| format!("{name}={}", encoded(&value));
    prop::collection::vec(pair.prop_map(text), 0..6).prop_map(|pairs| pairs.join("&"))
}

/// What each question needs at least, so that most are understood.
const PATHS: [(&str, &[&str]); 18] = [
    ("runs/0", &[]),
    (
        "runs/0/analyses/kernels",
        &["rank", "step", "start_ns", "end_ns", "group_by", "sort", "search", "where", "offset", "limit", "format"],
    ),
    ("runs/0/analyses/memory_curve", &["bucket_ms", "rank", "start_ns", "end_ns"]),
    ("runs/0/analyses/gpu_utilization_curve", &["bucket_ms", "rank", "start_ns", "end_ns"]),
    ("runs/0/analyses/queue_length_curve", &["bucket_ms", "group_by", "rank", "step"]),
    ("runs/0/analyses/modules", &["group_by", "depth", "top", "rank"]),
    ("runs/0/analyses/idle_gaps", &["start_ns", "end_ns", "sort", "limit"]),
    ("runs/0/analyses/critical_path", &["start_ns", "end_ns", "step"]),
    ("runs/0/report", &["rank", "step", "start_ns", "end_ns"]),
    ("runs/0/timeline", &[]),
    ("runs/0/tiles", &["rows", "level", "first", "count"]),
    ("runs/0/counters", &["rows", "start_ns", "end_ns", "points"]),
    ("runs/0/search", &["q", "limit"]),
    ("runs/0/search/next", &["q", "after_ns", "before_ns", "slice"]),
    ("runs/0/sums", &["rows", "start_ns", "end_ns", "by", "limit"]),
    ("runs/0/slices", &["row", "at_ns", "after", "before", "rank", "start_ns", "end_ns", "name", "rows", "limit"]),
    ("runs/0/source", &["file", "line", "around"]),
    ("compare", &["a", "b", "what", "a_rank", "b_rank"]),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_query_is_answered(
        at in 0..PATHS.len(), numbers in prop::collection::vec(number(), 12), words in prop::collection::vec(word(), 12),
        kept in prop::collection::vec(prop::bool::weighted(0.7), 12), more in query(),
    ) {
        let (path, names) = PATHS[at];
        let is_word = |name: &str| ["group_by", "sort", "search", "where", "format", "q", "by", "name", "file", "what"].contains(&name);
        let mut pairs: Vec<String> = Vec::new();
        for (at, name) in names.iter().enumerate().filter(|(at, _)| kept[*at]) {
            let value = if is_word(name) { &words[at] } else { &numbers[at] };
            pairs.push(format!("{name}={}", encoded(value)));
        }
        if path.ends_with("tiles") {
            pairs.push(format!("v={}", served().ready(0)));
        }
        if names.is_empty() || !kept[0] {
            pairs.push(more);
        }
        let path = format!("{path}?{}", pairs.join("&"));
        let reply = served().get(&path);
        prop_assert!(is_sound(&reply), "{path}: {} {}", reply.status, String::from_utf8_lossy(&reply.body));
    }

    #[test]
    fn any_path_is_answered(path in "(runs|api|\\.\\.|%2e|analyses|0|-1|18446744073709551616|slices|é|/|\\?|=|&|#| ){0,8}") {
        let reply = served().get(&path.replace([' ', '#'], "").replace('é', "%c3%a9"));
        prop_assert!(is_sound(&reply), "{path}: {}", reply.status);
    }
}

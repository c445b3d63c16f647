//! The timeline over HTTP is the one of its crate, and all of its tiles together have all slices.

use crate::served::{Reply, Served, ask, encoded, fixture, inputs};
use serde_json::{Value, json};
use std::fs::{OpenOptions, copy, remove_file};
use std::process::Command;
use std::thread;
use stepscope_engine::{Joined, Part, last_to_come, open_run};
use stepscope_server::Options;
use stepscope_timeline::{SumBy, Timeline};
use stepscope_trace::{SliceId, Trace};

fn rows_of(group: &Value, rows: &mut Vec<Value>) {
    rows.extend(group["rows"].as_array().unwrap().iter().cloned());
    group["groups"].as_array().unwrap().iter().for_each(|group| rows_of(group, rows));
}

fn served_rows(served: &Served) -> (Value, Vec<Value>) {
    let timeline = served.json("runs/0/timeline");
    let mut rows = Vec::new();
    timeline["groups"].as_array().unwrap().iter().for_each(|group| rows_of(group, &mut rows));
    (timeline, rows)
}

/// The sum of the column `count` of tiles, and their magic number.
fn count_in(tiles: &[u8]) -> (u32, u64) {
    let word = |at: usize| u32::from_le_bytes(tiles[at..at + 4].try_into().unwrap());
    let (blocks, items) = (word(4) as usize, word(8) as usize);
    let after_words = |at: usize, count: usize| (at + 4 * count).next_multiple_of(8);
    let counts = after_words(after_words(16, blocks) + 3 * 8 * items, items);
    (word(0), (0..items).map(|item| u64::from(word(counts + 4 * item))).sum())
}

#[test]
fn counts_over_all_tiles_are_the_slices() {
    for input in inputs() {
        let served = Served::of(input);
        let version = served.ready(0);
        let (timeline, rows) = served_rows(&served);
        let end_ns = timeline["span"]["end_ns"].as_i64().unwrap();
        let level = 20;
        let tiles = end_ns / (512 << level) + 1;
        let mut slices = 0;
        for row in rows.iter().filter(|row| row["kind"] == "slices") {
            let mut found = 0;
            for first in (0..tiles).step_by(256) {
                let count = (tiles - first).min(256);
                let path =
                    format!("runs/0/tiles?v={version}&rows={}&level={level}&first={first}&count={count}", row["id"]);
                let (magic, counted) = count_in(&served.get(&path).body);
                assert_eq!(magic, 0x314C_5453);
                found += counted;
            }
            assert_eq!(Some(found), row["slices"].as_u64(), "{row}");
            slices += found;
        }
        assert_eq!(Some(slices), served.json("runs/0")["counts"]["slices"].as_u64());
    }
}

#[test]
fn a_browser_keeps_tiles_of_a_version() {
    let served = Served::of(inputs()[1].clone());
    let version = served.ready(0);
    let path = format!("runs/0/tiles?v={version}&rows=0&level=9&first=0&count=2");
    let first = served.get(&path);
    let etag = first.header("etag").unwrap().to_string();
    assert!(first.header("cache-control").unwrap().contains("immutable"));
    let token = format!("Authorization: Bearer {}", served.running.token);
    let head = |extra: &str| ask(served.running.address, &format!("/api/{path}"), &["Host: localhost", &token, extra]);
    let again = head(&format!("If-None-Match: {etag}"));
    assert_eq!((again.status, again.body.len()), (304, 0));
    assert_eq!(head("If-None-Match: \"other\"").body, first.body);
    let packed = head("Accept-Encoding: gzip");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed.body.as_slice()), &mut bytes).unwrap();
    assert_eq!(bytes, first.body);
    for wrong in [
        "rows=0&level=99&first=0",
        "rows=0&level=9&first=0&count=257",
        "rows=999999&level=9&first=0",
        "rows=&level=9&first=0",
        "rows=0&level=9&first=9223372036854775807",
    ] {
        assert_eq!(served.get(&format!("runs/0/tiles?v={version}&{wrong}")).status, 400, "{wrong}");
    }
}

#[test]
fn what_is_there_as_a_whole_is_packed_at_once() {
    let served = Served::of(inputs()[1].clone());
    let path = format!("runs/0/tiles?v={}&rows=0&level=9&first=0&count=256", served.ready(0));
    let token = format!("Authorization: Bearer {}", served.running.token);
    let taking = |coding: &str| {
        let headers = ["Host: localhost", &token, &format!("Accept-Encoding: {coding}")];
        ask(served.running.address, &format!("/api/{path}"), &headers)
    };
    let (plain, packed) = (taking("identity"), taking("gzip, br, zstd"));
    assert_eq!([plain.header("content-encoding"), packed.header("content-encoding")], [None, Some("zstd")]);
    assert_eq!(packed.header("content-length"), Some(&*packed.body.len().to_string()));
    assert_eq!(packed.header("etag"), plain.header("etag"));
    let timings = |answer: &Reply| -> Vec<String> {
        let of = answer.headers.iter().filter(|(name, _)| name == "server-timing");
        of.map(|(_, timing)| timing.split(';').next().unwrap_or_default().to_string()).collect()
    };
    assert_eq!(
        (timings(&plain), timings(&packed)),
        (vec!["server".into()], vec!["server".into(), "compression".into()])
    );
    assert_eq!(zstd::decode_all(packed.body.as_slice()).unwrap(), plain.body);
    assert_eq!(taking("gzip, zstd;q=0").header("content-encoding"), Some("gzip"));
}

#[test]
fn look_ups_are_those_of_the_timeline() {
    for input in inputs() {
        let served = Served::of(input.clone());
        let trace: Trace = open_run(&[input]).unwrap();
        let timeline = Timeline::of(&trace);
        let (_, rows) = served_rows(&served);
        let span = trace.span().unwrap();
        for slice in trace.slices.ids().step_by(trace.slices.len() / 50 + 1) {
            let mut details =
                serde_json::to_value(stepscope_timeline::details(&timeline, &trace, slice).unwrap()).unwrap();
            assert_eq!(served.json(&format!("runs/0/slices/{}", slice.0)), details);
            let text = served.json(&format!("runs/0/slices/{}/source_text", slice.0));
            if let Some(text) = text["source_text"].as_str() {
                let event: Value = serde_json::from_str(text).unwrap();
                assert_eq!(event["name"], details["slice"]["name"], "{text}");
            }
            let brief = details["slice"].take();
            let (start, row) = (brief["start_ns"].as_i64().unwrap(), brief["row"].as_u64().unwrap());
            let named = format!(
                "runs/0/slices?rank={}&start_ns={start}&name={}",
                brief["rank"],
                encoded(brief["name"].as_str().unwrap())
            );
            let found = served.json(&named);
            assert_eq!(
                (&found["name"], &found["start_ns"], &found["rank"]),
                (&brief["name"], &brief["start_ns"], &brief["rank"])
            );
            let at = served.json(&format!("runs/0/slices?row={row}&at_ns={start}"));
            let expected = timeline.slice_at(&trace, row as u32, start).map(|slice| slice.0);
            assert_eq!(at["id"].as_u64().map(|id| id as u32), expected);
            let after = served.json(&format!("runs/0/slices?row={row}&after={}", slice.0));
            if let Some(next) = after["id"].as_u64() {
                assert_eq!(served.json(&format!("runs/0/slices?row={row}&before={next}"))["id"], slice.0);
            }
        }
        let (from, to) = (span.start_ns, span.start_ns + span.duration_ns() / 3);
        for (word, by) in
            [("name", SumBy::Name), ("kind", SumBy::Kind), ("track", SumBy::Track), ("class", SumBy::Class)]
        {
            let window = stepscope_base::Span::new(from, to);
            let expected = serde_json::to_value(timeline.sums(&trace, &[], window, by, 5)).unwrap();
            assert_eq!(served.json(&format!("runs/0/sums?start_ns={from}&end_ns={to}&by={word}&limit=5")), expected);
        }
        let ids: Vec<String> = rows.iter().map(|row| row["id"].to_string()).take(20).collect();
        let ids = ids.join(",");
        let list = served.json(&format!("runs/0/slices?rows={ids}&start_ns={from}&end_ns={to}&limit=7"));
        assert!(list.as_array().unwrap().len() <= 7);
        assert!(served.json(&format!("runs/0/counters?rows={ids}&start_ns={from}&end_ns={to}&points=9")).is_array());
    }
}

#[test]
fn every_hit_of_a_search_is_found_in_turn() {
    let input = inputs()[0].clone();
    let served = Served::of(input.clone());
    let trace = open_run(&[input]).unwrap();
    let has = |id: &SliceId| trace.slice_name(*id).to_lowercase().contains("addmm");
    let expected = trace.slices.ids().filter(has).count() as u64;
    let found = served.json("runs/0/search?q=ADDmm&limit=3");
    assert_eq!(found["slices"].as_u64(), Some(expected));
    let histogram: u64 = found["histogram"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(histogram, expected);
    let mut next = served.json("runs/0/search/next?q=addmm&after_ns=0");
    for position in 0..5 {
        assert_eq!((next["position"].as_u64(), next["slices"].as_u64()), (Some(position), Some(expected)));
        let (slice, at) = (next["hit"]["id"].clone(), next["hit"]["start_ns"].clone());
        next = served.json(&format!("runs/0/search/next?q=addmm&after_ns={at}&slice={slice}"));
    }
    assert_eq!(served.json("runs/0/search?q=no-such-name")["slices"], 0);
    assert_eq!(served.json("runs/0/search/next?q=no-such-name&after_ns=0")["hit"], json!(null));
}

#[test]
fn what_lies_in_a_window_can_be_taken_along() {
    let input = inputs()[2].clone();
    let served = Served::of(input.clone());
    let trace = open_run(&[input]).unwrap();
    let mut starts = trace.slices.start_ns.clone();
    starts.sort_unstable();
    let (from, to) = (starts[starts.len() / 3], starts[starts.len() / 2]);
    let part = trace.part(stepscope_base::Span::new(from, to));
    assert!(part.slices.len() > 10 && part.slices.len() < trace.slices.len());
    for (format, query, expected) in
        [("chrome", String::new(), &trace), ("chrome", format!("&start_ns={from}&end_ns={to}"), &part)]
    {
        let reply = served.get(&format!("runs/0/export?format={format}{query}"));
        assert_eq!(reply.status, 200);
        let read = stepscope_import::open_bytes("export.json", &reply.body).unwrap();
        assert_eq!(read.slices.len(), expected.slices.len());
        assert_eq!(read.slices.dur_ns.iter().sum::<i64>(), expected.slices.dur_ns.iter().sum::<i64>());
        let names = |trace: &Trace| {
            let mut names: Vec<String> = trace.slices.ids().map(|id| trace.slice_name(id).to_string()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&read), names(expected));
    }
    let mut expected = Vec::new();
    stepscope_export::write_perfetto(&part, &mut expected).unwrap();
    let reply = served.get(&format!("runs/0/export?format=perfetto&start_ns={from}&end_ns={to}"));
    assert_eq!(reply.body, expected);
    assert!(reply.header("content-disposition").unwrap().ends_with(".pftrace\""));
}

#[test]
fn a_slice_does_not_wait_for_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json.gz");
    copy(fixture("kineto/a100_alexnet_sync.json.gz"), &trace).unwrap();
    let mut options = Options::new(vec![trace.clone()]);
    // The file is not read again meanwhile.
    options.watch_every = None;
    let served = Served::with(options);
    served.ready(0);
    let details = served.json("runs/0/slices/7");
    let text = served.json("runs/0/slices/7/source_text");
    assert!(text["source_text"].as_str().unwrap().starts_with('{'), "{text}");
    assert_eq!(served.get("runs/0/slices/999999999/source_text").status, 404);
    // A file that cannot be read before another process writes it takes longer than any other.
    remove_file(&trace).unwrap();
    assert!(Command::new("mkfifo").arg(&trace).status().unwrap().success());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| served.json("runs/0/slices/7/source_text"));
        assert_eq!(served.json("runs/0/slices/7"), details);
        assert!(!waiting.is_finished());
        drop(OpenOptions::new().write(true).open(&trace).unwrap());
        assert_eq!(waiting.join().unwrap()["source_text"], json!(null));
    });
}

#[test]
fn a_collective_is_told_on_all_ranks_by_any_slice_of_it() {
    let served = Served::of(fixture("ddp-cpu"));
    served.ready(0);
    let trace = open_run(&[fixture("ddp-cpu")]).unwrap();
    let (joined, mut collectives) = (Joined::of(&trace), 0);
    let of = |slice: SliceId| served.json(&format!("runs/0/slices/{}/joined", slice.0));
    for said in trace.collectives.iter().step_by(7) {
        let parts = joined.of_slice(&trace, said.slice);
        let told = of(said.slice);
        let rows: Vec<_> = told["parts"].as_array().unwrap().iter().collect();
        let row = |row: &Value| {
            let id = |slice: &Value| slice["id"].as_u64();
            let [rank, start_ns, dur_ns] = ["rank", "start_ns", "dur_ns"].map(|name| row[name].as_i64());
            (rank, start_ns, dur_ns, id(&row["slice"]), id(&row["asked_by"]))
        };
        let part = |part: &Part| {
            let id = |slice: SliceId| u64::from(slice.0);
            let asked_by = Some(part.asked_by).filter(|asked_by| *asked_by != part.carried_by).map(id);
            let carried_by = Some(id(part.carried_by));
            (Some(i64::from(part.rank)), Some(part.start_ns), Some(part.dur_ns), carried_by, asked_by)
        };
        assert_eq!(rows.into_iter().map(row).collect::<Vec<_>>(), parts.iter().map(part).collect::<Vec<_>>());
        collectives += usize::from(parts.len() == 2);
        assert_eq!(told["last"], last_to_come(parts).map_or(Value::Null, Value::from));
    }
    assert!(collectives > 1, "the ranks did several together");
    let step = trace.slices.ids().find(|id| joined.of_slice(&trace, *id).is_empty()).unwrap();
    assert_eq!(of(step), json!({ "parts": [], "last": null }));
    assert_eq!(served.get(&format!("runs/0/slices/{}/joined", trace.slices.len())).status, 404);
}

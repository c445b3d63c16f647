//! A run of many ranks whose events do not fit into memory at once.

use crate::served::Served;
use stepscope_engine::{OpenOptions, OpenedRun, Progress, Trace, catalogue};
use stepscope_export::{Format, save_trace};
use stepscope_server::Options;
use stepscope_trace::SliceId;
use stepscope_trace::simulated::{Job, Schedule};
use tempfile::TempDir;

const RANKS: u32 = 4;

/// The ranks of a simulated job, a file each.
fn job() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let schedule = Schedule::Ddp { buckets: 3, overlaps: true };
    let run = Job { ranks: RANKS, steps: 6, schedule, ..Job::default() }.run();
    for rank in 0..RANKS {
        let path = folder.path().join(format!("rank{rank}.json"));
        save_trace(&run.trace_of(rank), &path, Format::Chrome { is_packed: false }, false).unwrap();
    }
    folder
}

/// A server that may hold all events but for one byte.
fn served(job: &TempDir) -> Served {
    let run = OpenedRun::open(&[job.path()], &OpenOptions::default(), &Progress::default()).unwrap();
    let open = OpenOptions { max_memory: Some(run.contents().held_bytes - 1), ..OpenOptions::default() };
    let served = Served::with(Options { open, ..Options::new(vec![job.path().into()]) });
    served.ready(0);
    assert_eq!(served.json("runs/0")["shows_all"], false);
    served
}

/// What stands between two texts.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    text.split_once(from).and_then(|(_, rest)| rest.split_once(to)).map_or("", |(found, _)| found)
}

#[test]
fn the_report_as_a_page_has_what_fits_and_says_what_it_lacks() {
    let job = job();
    let served = served(&job);
    let reply = served.get("runs/0/report.html");
    assert_eq!(reply.status, 200);
    let page = reply.text();
    assert!(page.contains("Device time") && page.contains("Top kernels"));
    let lacks = between(page, "<h2>Not on this page</h2>", "</section>");
    let mut refused = 0;
    for analysis in catalogue() {
        let reply = served.get(&format!("runs/0/analyses/{}", analysis.name));
        let (is_there, is_lacking) = (
            page.contains(&format!("<summary><code>{}</code>", analysis.name)),
            lacks.contains(&format!("<code>{}</code>", analysis.name)),
        );
        refused += usize::from(reply.status != 200);
        assert_eq!((is_there, is_lacking), (reply.status == 200, reply.status == 400), "{}", analysis.name);
    }
    assert_eq!(lacks.contains("all events of 4 files would take about"), refused > 0, "{lacks}");
    // Of one rank everything fits that needs no other.
    assert!(served.get("runs/0/report.html?rank=2").text().contains("<summary><code>modules</code>"));
}

#[test]
fn on_the_timeline_of_all_a_rank_is_a_strip_of_work_and_communication() {
    let job = job();
    let served = served(&job);
    let timeline = served.json("runs/0/timeline");
    let (version, groups) = (&timeline["version"], timeline["groups"].as_array().unwrap());
    assert_eq!(groups.len(), RANKS as usize);
    for group in groups {
        let strip = &group["rows"][0];
        assert_eq!((&strip["id"], &strip["kind"]), (&group["summary"], &"projected".into()), "{group}");
        let tiles = served.get(&format!("runs/0/tiles?v={version}&rows={}&level=12&first=0&count=8", strip["id"]));
        let has = |name: &str| tiles.body.windows(name.len()).any(|part| part == name.as_bytes());
        assert_eq!((tiles.status, has("device work"), has("ncclDevKernel")), (200, true, true), "{group}");
    }
}

/// The slices of a rank: how long after its first each begins, how long it is, and its name.
fn slices(trace: &Trace, rank: u32) -> Vec<(i64, i64, &str)> {
    let ids = trace.slices.ids().filter(|id| trace.rank_of_track(trace.slices.track[id.index()]) == rank);
    let slice =
        |id: SliceId| (trace.slices.start_ns[id.index()], trace.slices.dur_ns[id.index()], trace.slice_name(id));
    let mut slices: Vec<(i64, i64, &str)> = ids.map(slice).collect();
    slices.sort_unstable();
    let first_ns = slices[0].0;
    slices.iter_mut().for_each(|(start_ns, ..)| *start_ns -= first_ns);
    slices
}

#[test]
fn one_rank_can_be_taken_along_and_all_are_refused() {
    let job = job();
    let served = served(&job);
    let reply = served.get("runs/0/export?format=chrome&of_rank=2");
    assert_eq!(reply.status, 200);
    assert!(reply.header("content-disposition").unwrap().ends_with(".rank2.json\""));
    let read = stepscope_import::open_bytes("export.json", &reply.body).unwrap();
    assert_eq!(read.ranks(), [2]);
    assert_eq!(slices(&read, 2), slices(&stepscope_engine::open_run(&[job.path()]).unwrap(), 2));
    let all = served.get("runs/0/export?format=chrome");
    assert_eq!(all.status, 400);
    let error = &all.json()["error"];
    assert!(error["what"].as_str().unwrap().starts_with("all events of 4 files would take"), "{error}");
    assert_eq!(error["hint"], "choose fewer ranks, or start `stepscope view` with --memory 1GiB");
    assert_eq!(served.get("runs/0/export?format=chrome&of_rank=9").status, 400);
}

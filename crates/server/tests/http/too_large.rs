//! A run of many ranks whose events do not fit into memory at once.

use crate::served::Served;
use stepscope_engine::{OpenOptions, OpenedRun, Progress, catalogue};
use stepscope_export::{Format, save_trace};
use stepscope_server::Options;
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

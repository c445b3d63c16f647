//! Writes a simulated job as traces that are read like those of `torch.profiler`, a file for each rank:
//! `simulated FOLDER RANKS STEPS pipeline|ddp`.
//!
//! The pages are tested, and measured, on such jobs: of any number of ranks, and the same each time.

use std::path::Path;
use stepscope_export::{Format, save_trace};
use stepscope_trace::simulated::{Job, Schedule, Straggler};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, ranks, steps, schedule] = &arguments[..] else { return Err("FOLDER RANKS STEPS SCHEDULE".into()) };
    let schedule = match schedule.as_str() {
        "pipeline" => Schedule::Pipeline { stages: 4, micro_batches: 6 },
        "ddp" => Schedule::Ddp { buckets: 3, overlaps: true },
        other => return Err(format!("no such schedule: {other}").into()),
    };
    let stragglers = vec![Straggler { rank: 1, op: None, percent: 40 }];
    let (ranks, steps) = (ranks.parse()?, steps.parse()?);
    let job = Job { ranks, steps, schedule, stragglers, jitter_ns: 9_000, ..Job::default() };
    let run = job.run();
    std::fs::create_dir_all(folder)?;
    for rank in 0..job.ranks {
        let path = Path::new(folder).join(format!("rank{rank}.json"));
        save_trace(&run.trace_of(rank), &path, Format::Chrome { is_packed: false }, true)?;
    }
    Ok(())
}

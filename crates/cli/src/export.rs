//! `stepscope export`: what a tracker of experiments keeps of a run.

use crate::Ending;
use crate::convert::is_taken;
use crate::opening::{self, JoinArguments};
use crate::output::{deliver, print, shown};
use crate::report::to_type;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use stepscope_engine::{self as engine, Ranks, Selection};
use stepscope_export::{self as export, ExportError, Format, report_numbers, tensorboard_events};

/// Write what a tracker of experiments keeps of a run into a folder: the report as a page, the trace, and some numbers
///
/// report.html; the trace as Chrome JSON, stepscope.pt.trace.json.gz, which W&B shows only decompressed; numbers.json. For
/// TensorBoard also a file of events, with the numbers as scalars and the report as a text. In a program,
/// stepscope.log_to() hands the same to the tracker that is active.
#[derive(Args)]
#[command(after_help = "\
Examples:
  stepscope export stepscope-runs/20260101-120000-train --for wandb -o offline/
  stepscope export stepscope-runs/20260101-120000-train --for tensorboard -o logs/profile/")]
pub(crate) struct ExportArguments {
    /// A run folder, a trace file, or a folder of the traces of ranks
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// Who reads it
    #[arg(long = "for", value_name = "TRACKER")]
    tracker: Tracker,
    /// The folder to write into
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    #[command(flatten)]
    joined: JoinArguments,
    /// Replace what is there
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tracker {
    Wandb,
    Mlflow,
    Clearml,
    Tensorboard,
}

/// Carries `stepscope export` out.
pub(crate) fn export(arguments: &ExportArguments) -> Ending {
    let folder = arguments.output.as_path();
    if !arguments.force && is_taken(folder) {
        return Err(ExportError::Exists { path: folder.into() }.into());
    }
    let run = opening::open(&arguments.runs, &arguments.joined.options())?;
    let report = engine::report::report(&run, &Selection::default(), &to_type(&arguments.runs[0]))?;
    let all = run.analyze_all(&Selection::default())?;
    std::fs::create_dir_all(folder)
        .map_err(|error| crate::failure::Failure::file("cannot make the folder", folder, &error))?;
    let mut files: Vec<PathBuf> = Vec::new();
    let mut write = |name: &str, text: &str| {
        files.push(folder.join(name));
        deliver(text, Some(&folder.join(name)))
    };
    write("report.html", &export::report_html(&report, &all))?;
    let numbers = report_numbers(&report);
    let json: serde_json::Map<String, serde_json::Value> =
        numbers.iter().map(|(name, value)| (name.clone(), (*value).into())).collect();
    write("numbers.json", &(serde_json::Value::Object(json).to_string() + "\n"))?;
    if arguments.tracker == Tracker::Tensorboard {
        let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        let path = folder.join(format!("events.out.tfevents.{}.stepscope", unix_s as u64));
        let events = tensorboard_events("stepscope", &numbers, &export::report_markdown(&report), unix_s);
        std::fs::write(&path, events).map_err(|error| crate::failure::Failure::file("cannot write", &path, &error))?;
        files.push(path);
    }
    let is_packed = arguments.tracker != Tracker::Wandb;
    let path = folder.join(if is_packed { "stepscope.pt.trace.json.gz" } else { "stepscope.pt.trace.json" });
    let trace = run.events(&Ranks::default())?;
    export::save_trace(&trace, &path, Format::Chrome { is_packed }, arguments.force)?;
    files.push(path);
    print(&files.iter().map(|file: &PathBuf| shown(Path::new(file)) + "\n").collect::<String>())?;
    Ok(0)
}

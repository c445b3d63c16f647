//! `recorded FILE`: what happens to a raw capture after the recording, a stage at a time.

use crate::resources::{Spent, median, timed};
use crate::text_table::{TextTable, grouped};
use serde::Serialize;
use std::path::{Path, PathBuf};
use stepscope_analyses::{AnalysisContext, Selection, catalogue};
use stepscope_export::{Format, write_trace};

/// What `recorded` is told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Raw capture (RUN/raw/….capture); it is only read
    file: PathBuf,
    /// How often each stage runs; the run in the middle counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Only stages whose name has this in it
    #[arg(long, default_value = "")]
    only: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What the stages took on one capture.
#[derive(Debug, Serialize)]
struct Recorded {
    file: PathBuf,
    events: u64,
    raw_bytes: u64,
    part_bytes: u64,
    stages: Vec<Stage>,
}

/// One stage.
#[derive(Debug, Serialize)]
struct Stage {
    name: &'static str,
    spent: Spent,
    /// Of what it made, where that is a file.
    bytes: Option<u64>,
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let recorded = measure(arguments)?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&recorded).expect("plain data"));
    } else {
        print!("{}", text(&recorded));
    }
    Ok(())
}

/// Runs each stage on what the one before made, in a folder that goes away.
fn measure(arguments: &Arguments) -> Result<Recorded, String> {
    let folder = std::env::temp_dir().join(format!("stepscope-bench-{}", std::process::id()));
    let measured = measure_in(&folder, arguments);
    // What is left is in the system's folder for such things.
    let _ = std::fs::remove_dir_all(&folder);
    measured
}

fn measure_in(folder: &Path, arguments: &Arguments) -> Result<Recorded, String> {
    let (file, repeat) = (&arguments.file, arguments.repeat);
    let said = |error: &dyn std::fmt::Display| error.to_string();
    std::fs::create_dir_all(folder.join("rank=0")).map_err(|error| said(&error))?;
    let part = folder.join("rank=0/part-1-1.parquet");
    let capture = stepscope_capture::read(file).map_err(|error| said(&error))?;
    stepscope_run::write_part(&part, &capture).map_err(|error| said(&error))?;
    let trace = stepscope_import::open(folder).map_err(|error| said(&error))?;
    let everything = Selection::default();
    let operators =
        catalogue().iter().find(|analysis| analysis.name == "operators").ok_or("no analysis of operators")?;
    let [json, packed, perfetto] = ["trace.json", "trace.json.gz", "trace.pftrace"].map(|name| folder.join(name));
    let export = |path: &Path| {
        let format = Format::of_path(path).expect("a format");
        let mut out = std::fs::File::create(path).expect("a file");
        write_trace(&trace, format, &mut out).expect("a trace is written");
    };
    let mut stages = Vec::new();
    let mut stage = |name: &'static str, made: Option<&Path>, work: &dyn Fn()| {
        if !name.contains(arguments.only.as_str()) {
            return;
        }
        let spent = median((0..repeat).map(|_| timed(work).1).collect());
        let bytes = made.and_then(|made| Some(std::fs::metadata(made).ok()?.len()));
        stages.push(Stage { name, spent, bytes });
    };
    stage("read the raw capture", None, &|| drop(stepscope_capture::read(file)));
    stage("write the part", Some(&part), &|| drop(stepscope_run::write_part(&part, &capture)));
    stage("read the part", None, &|| drop(stepscope_run::read_part(&part)));
    stage("open the run of it", None, &|| drop(stepscope_import::open(folder)));
    stage("operators", None, &|| drop((operators.run)(&AnalysisContext::new(&trace, &everything))));
    stage("export .json", Some(&json), &|| export(&json));
    stage("export .json.gz", Some(&packed), &|| export(&packed));
    stage("export .pftrace", Some(&perfetto), &|| export(&perfetto));
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let (raw_bytes, part_bytes) = (size(file), size(&part));
    Ok(Recorded { file: file.into(), events: capture.events.len() as u64, raw_bytes, part_bytes, stages })
}

fn text(recorded: &Recorded) -> String {
    let mut table = TextTable::new(&["stage", "wall ms", "CPU ms", "ns an event", "bytes"]);
    let ms = |s: f64| format!("{:.1}", s * 1e3);
    let events = recorded.events.max(1) as f64;
    for Stage { name, spent, bytes } in &recorded.stages {
        let ns = format!("{:.0}", spent.cpu_s * 1e9 / events);
        let bytes = bytes.map_or(String::new(), grouped);
        table.add(vec![name.to_string(), ms(spent.wall_s), ms(spent.cpu_s), ns, bytes]);
    }
    let weights = [("raw", recorded.raw_bytes), ("compacted", recorded.part_bytes)];
    let weights = weights.map(|(name, bytes)| format!("{name} {:.1} bytes an event", bytes as f64 / events));
    let (file, events) = (recorded.file.display(), grouped(recorded.events));
    format!("{file}: {events} events, {}\n{}", weights.join(", "), table.text())
}

//! `averages FILE`: the table of operators that `key_averages()` shows, from a raw capture; its time and memory.

use crate::resources::{median, peak_resident_bytes, timed};
use serde::Serialize;
use std::ops::Range;
use std::path::PathBuf;
use stepscope_run::{Exclude, RecordFilter};
use stepscope_torch_events::{Grouping, read_averages};

/// What `averages` is told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Raw capture (RUN/raw/….capture); it is only read
    file: PathBuf,
    /// How often it is read; the run in the middle counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What it took.
#[derive(Serialize)]
struct Took {
    wall_s: f64,
    cpu_s: f64,
    /// The most memory that the process had, beyond what it had before.
    added_bytes: Option<u64>,
    averages: usize,
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let before = peak_resident_bytes();
    let exclude = Exclude { calls: true, ..Exclude::default() };
    let filter =
        RecordFilter { spans: vec![Range { start: i64::MIN, end: i64::MAX }], exclude, ..RecordFilter::default() };
    let read = || read_averages(&arguments.file, &filter, Grouping::default());
    let averages = read().map_err(|error| error.to_string())?.len();
    let added_bytes = peak_resident_bytes().zip(before).map(|(after, before)| after.saturating_sub(before));
    let spent = median((0..arguments.repeat).map(|_| timed(read).1).collect());
    let took = Took { wall_s: spent.wall_s, cpu_s: spent.cpu_s, added_bytes, averages };
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&took).expect("plain data"));
        return Ok(());
    }
    let mb = added_bytes.map_or(String::new(), |bytes| format!(", {:.0} MB added", bytes as f64 / 1e6));
    let (wall_s, cpu_s) = (took.wall_s, took.cpu_s);
    println!("{}: {averages} averages, wall {wall_s:.3} s, CPU {cpu_s:.3} s{mb}", arguments.file.display());
    Ok(())
}

//! `import FILE…`: opens traces with `stepscope_import::open`, each in a process of its own so that its peak of memory is
//! its own.

use crate::resources::{Spent, median, peak_resident_bytes, timed};
use crate::text_table::{TextTable, grouped, megabytes};
use crate::trace_text::{self, TextSize};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `import` is told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Traces to open
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// How often each is opened; the run in the middle counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Measure here, not in a child process
    #[arg(long, hide = true)]
    here: bool,
}

/// What a process found that opened one file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Opened {
    /// The run in the middle.
    pub(crate) spent: Spent,
    /// What the first opening added to the peak of resident memory; absent where the system does not say.
    pub(crate) peak_added_bytes: Option<u64>,
    /// Slices of the trace.
    pub(crate) slices: u64,
}

/// One file's row.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measured {
    /// The file.
    pub(crate) file: PathBuf,
    /// Bytes of its text, decompressed.
    pub(crate) text_bytes: u64,
    /// Its rows of `traceEvents`.
    pub(crate) events: u64,
    /// What opening it took.
    #[serde(flatten)]
    pub(crate) opened: Opened,
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    if arguments.here {
        let opened = open_here(&arguments.files[0], arguments.repeat)?;
        println!("{}", serde_json::to_string(&opened).expect("plain data"));
        return Ok(());
    }
    let rows = arguments.files.iter().map(|file| measure(file, arguments.repeat)).collect::<Result<Vec<_>, _>>()?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&rows).expect("plain data"));
        return Ok(());
    }
    let heading = ["file", "MB", "wall s", "CPU s", "MB/s wall", "MB/CPU-s", "events/s", "slices", "peak added"];
    let mut table = TextTable::new(&heading);
    for row in &rows {
        let (mb, spent) = (row.text_bytes as f64 * 1e-6, row.opened.spent);
        table.add(vec![
            row.file.display().to_string(),
            format!("{mb:.1}"),
            format!("{:.3}", spent.wall_s),
            format!("{:.3}", spent.cpu_s),
            format!("{:.0}", mb / spent.wall_s),
            format!("{:.0}", mb / spent.cpu_s),
            grouped((row.events as f64 / spent.wall_s) as u64),
            grouped(row.opened.slices),
            row.opened.peak_added_bytes.map_or("–".into(), megabytes),
        ]);
    }
    print!("{}", table.text());
    Ok(())
}

/// Opens a file in a process of its own.
pub(crate) fn measure(file: &Path, repeat: u32) -> Result<Measured, String> {
    measure_on(None, file, repeat)
}

/// As [`measure`], on one processor, by its number, or on all.
pub(crate) fn measure_on(processor: Option<usize>, file: &Path, repeat: u32) -> Result<Measured, String> {
    let failed = |message: String| format!("{}: {message}", file.display());
    let TextSize { bytes, events } = trace_text::size_of(file).map_err(|error| failed(error.to_string()))?;
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let mut child = match processor {
        Some(number) => {
            let mut taskset = Command::new("taskset");
            taskset.arg("--cpu-list").arg(number.to_string()).arg(program);
            taskset
        }
        None => Command::new(program),
    };
    child.args(["import", "--here", "--repeat", &repeat.to_string()]).arg(file);
    let output = child.output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_string()));
    }
    let opened = serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))?;
    Ok(Measured { file: file.into(), text_bytes: bytes, events, opened })
}

fn open_here(file: &Path, repeat: u32) -> Result<Opened, String> {
    let before = peak_resident_bytes();
    let (mut runs, mut slices, mut after) = (Vec::new(), 0, None);
    for _ in 0..repeat {
        let (trace, spent) = timed(|| stepscope_import::open(file));
        // Later runs find memory that earlier ones left fragmented: the first one tells what a user pays.
        after = after.or_else(peak_resident_bytes);
        slices = trace.map_err(|error| error.to_string())?.slices.len() as u64;
        runs.push(spent);
    }
    let peak_added_bytes = after.zip(before).map(|(after, before)| after.saturating_sub(before));
    Ok(Opened { spent: median(runs), peak_added_bytes, slices })
}

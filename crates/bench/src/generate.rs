//! `generate`: writes a trace of any size to a file.

use crate::generator::{Size, Written, write};
use crate::resources::timed;
use crate::text_table::grouped;
use crate::{describe, quantity};
use flate2::{Compression, write::GzEncoder};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// What `generate` is told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// File to write; one that ends in .gz is gzipped
    #[arg(short, long, required_unless_present = "describe")]
    output: Option<PathBuf>,
    /// About this many bytes of text: 10M, 1G
    #[arg(long, value_parser = quantity::parse, conflicts_with = "events")]
    bytes: Option<u64>,
    /// About this many rows of traceEvents: 1M
    #[arg(long, value_parser = quantity::parse)]
    events: Option<u64>,
    /// Every number follows from it
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Write nothing, print the shape of these traces
    #[arg(long, num_args = 1.., conflicts_with_all = ["output", "bytes", "events"])]
    describe: Vec<PathBuf>,
}

/// Of the traces that are compared.
const SEED: u64 = 1;

/// Writes or describes.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    if !arguments.describe.is_empty() {
        return describe::run(&arguments.describe);
    }
    let Some(output) = &arguments.output else { return Err("no file to write".into()) };
    let size = arguments.events.map_or(Size::Bytes(arguments.bytes.unwrap_or(100_000_000)), Size::Events);
    let (written, spent) = timed(|| write_to(arguments.seed, size, output, is_gzip(output)));
    let Written { bytes, events, steps } = written?;
    println!(
        "{}: {:.1} MB, {} rows, {steps} steps; {:.0} MB/s",
        output.display(),
        bytes as f64 * 1e-6,
        grouped(events),
        bytes as f64 * 1e-6 / spent.wall_s
    );
    Ok(())
}

/// Writes a trace of the usual kind, when the file is not there.
pub(crate) fn write_once(size: Size, output: &Path) -> Result<(), String> {
    if output.exists() {
        return Ok(());
    }
    // Half a file would be taken for a whole one next time.
    let unfinished = output.with_extension("unfinished");
    write_to(SEED, size, &unfinished, is_gzip(output))?;
    std::fs::rename(&unfinished, output).map_err(|error| failed(output, &error))
}

fn is_gzip(output: &Path) -> bool {
    output.extension().is_some_and(|ending| ending == "gz")
}

fn write_to(seed: u64, size: Size, output: &Path, is_packed: bool) -> Result<Written, String> {
    let written = File::create(output).and_then(|mut file| {
        if !is_packed {
            return write(seed, size, &mut file);
        }
        let mut encoder = GzEncoder::new(file, Compression::default());
        let written = write(seed, size, &mut encoder)?;
        encoder.finish()?;
        io::Result::Ok(written)
    });
    written.map_err(|error| failed(output, &error))
}

fn failed(output: &Path, error: &io::Error) -> String {
    format!("cannot write: {error}: {}", output.display())
}

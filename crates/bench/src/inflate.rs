//! `inflate FILE`: how fast the gzip library alone unpacks a file, for comparison with opening it.

use crate::resources::{Spent, median, timed};
use crate::text_table::TextTable;
use crate::trace_text;
use std::path::{Path, PathBuf};

/// What `inflate` is told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Gzipped files
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// How often each is decompressed; the run in the middle counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let mut table = TextTable::new(&["file", "MB", "wall s", "CPU s", "MB/CPU-s"]);
    for file in &arguments.files {
        let (bytes, spent) = measure(file, arguments.repeat)?;
        let mb = bytes as f64 * 1e-6;
        table.add(vec![
            file.display().to_string(),
            format!("{mb:.1}"),
            format!("{:.3}", spent.wall_s),
            format!("{:.3}", spent.cpu_s),
            format!("{:.0}", mb / spent.cpu_s),
        ]);
    }
    print!("{}", table.text());
    Ok(())
}

/// Unpacks a file into a small buffer; the number of bytes that came out.
pub(crate) fn measure(file: &Path, repeat: u32) -> Result<(u64, Spent), String> {
    let (mut bytes, mut runs) = (0, Vec::new());
    for _ in 0..repeat {
        bytes = 0;
        let (read, spent) = timed(|| {
            trace_text::open(file).and_then(|text| trace_text::each_piece(text, |piece| bytes += piece.len() as u64))
        });
        read.map_err(|error| format!("cannot unpack: {error}: {}", file.display()))?;
        runs.push(spent);
    }
    Ok((bytes, median(runs)))
}

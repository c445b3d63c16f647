//! `real FILE…`: opens traces that real jobs left, as they are and made longer, on one processor and on all: what reading
//! costs on text that no generator of ours wrote.

use crate::import::measure_on;
use crate::text_table::TextTable;
use crate::{quantity, repeat, trace_text};
use std::io::Read;
use std::path::{Path, PathBuf};

/// What `real` is told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Traces of torch.profiler, packed or not
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Where their texts are written, as they are and made longer
    #[arg(long)]
    folder: PathBuf,
    /// Leave out those whose text is smaller: they measure the start of the program
    #[arg(long, default_value = "8M", value_parser = quantity::parse)]
    at_least: u64,
    /// How long each is made, by repeating its rows
    #[arg(long, default_value = "290M", value_parser = quantity::parse)]
    repeated: u64,
    /// How often each is opened, in each round; the run in the middle counts
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// How often each is measured on one processor and then on all, so that both meet the same hours of a machine; the
    /// round in the middle counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

/// Measures and prints; the last lines are medians.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{error}: {}", arguments.folder.display());
    std::fs::create_dir_all(&arguments.folder).map_err(failed)?;
    let heading = ["trace", "MB", "MB/CPU-s, one processor", "MB/CPU-s, all", "CPU, all to one"];
    let mut table = TextTable::new(&heading);
    let (mut as_is, mut longer) = (Speeds::default(), Speeds::default());
    for file in &arguments.files {
        let text = text_of(file)?;
        if (text.len() as u64) < arguments.at_least {
            continue;
        }
        let stem = file.file_name().unwrap_or_default().to_string_lossy().replace(".gz", "");
        let plain = arguments.folder.join(&stem);
        std::fs::write(&plain, &text).map_err(failed)?;
        as_is.add(&mut table, &stem, &plain, arguments)?;
        let repeated = arguments.folder.join(format!("repeated-{stem}"));
        let mut output = std::io::BufWriter::new(std::fs::File::create(&repeated).map_err(failed)?);
        repeat::write(&text, arguments.repeated, &mut output).map_err(failed)?;
        drop(output);
        longer.add(&mut table, &format!("{stem}, repeated"), &repeated, arguments)?;
        std::fs::remove_file(&repeated).map_err(failed)?;
    }
    as_is.add_median(&mut table, "median, as they are");
    longer.add_median(&mut table, "median, repeated");
    print!("{}", table.text());
    Ok(())
}

fn text_of(file: &Path) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    let read = trace_text::open(file).and_then(|mut unpacked| unpacked.read_to_end(&mut text));
    read.map(|_| text).map_err(|error| format!("{error}: {}", file.display()))
}

/// MB a CPU second on one processor, on all, and what all cost to what one costs.
#[derive(Default)]
struct Speeds(Vec<[f64; 3]>);

impl Speeds {
    fn add(&mut self, table: &mut TextTable, name: &str, file: &Path, arguments: &Arguments) -> Result<(), String> {
        let mut mb = 0.0;
        let mut rounds = Vec::new();
        for _ in 0..arguments.rounds {
            let [one, all] = [Some(0), None].map(|processor| measure_on(processor, file, arguments.repeat));
            let (one, all) = (one?, all?);
            mb = one.text_bytes as f64 * 1e-6;
            rounds.push([one, all].map(|measured| measured.opened.spent.cpu_s));
        }
        let row = [
            mb / middle(rounds.iter().map(|[one, _]| *one)),
            mb / middle(rounds.iter().map(|[_, all]| *all)),
            middle(rounds.iter().map(|[one, all]| all / one)),
        ];
        table.add(cells(name, format!("{mb:.1}"), row));
        self.0.push(row);
        Ok(())
    }

    fn add_median(&self, table: &mut TextTable, name: &str) {
        if !self.0.is_empty() {
            let row = std::array::from_fn(|column| middle(self.0.iter().map(|row| row[column])));
            table.add(cells(name, String::new(), row));
        }
    }
}

/// The median.
fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
}

fn cells(name: &str, mb: String, [one, all, ratio]: [f64; 3]) -> Vec<String> {
    vec![name.into(), mb, format!("{one:.0}"), format!("{all:.0}"), format!("{ratio:.2}x")]
}

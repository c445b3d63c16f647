//! `stepscope convert`: a run or a trace as a file that other programs read.

use crate::Ending;
use crate::failure::Failure;
use crate::opening::{self, ClockArguments};
use crate::output::{print, shown};
use crate::plural::plural;
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use stepscope_engine::Trace;
use stepscope_export::{Format, RANK_PLACE, save_ranks, save_trace, write_trace};

/// Write a run or a trace file in another format, told by the ending of OUT
///
/// *.json and *.json.gz: Chrome JSON as PyTorch's profiler writes it; *.pftrace and *.pftrace.gz: Perfetto; *.parquet: the
/// table of slices; a folder, with a / at its end: every table as Parquet; -: Chrome JSON to standard output. With {rank}
/// in the name of a *.json or *.json.gz, each rank has a file of its own.
#[derive(Args)]
#[command(after_help = "\
Examples:
  stepscope convert stepscope-runs/20260101-120000-train -o train.json.gz
  stepscope convert stepscope-runs/20260101-120000-train -o 'ranks/{rank}.json.gz'
  stepscope convert trace.json.gz -o trace.pftrace
  stepscope convert rank0.json.gz rank1.json.gz -o job.json.gz
  stepscope convert trace.json.gz -o tables/")]
pub(crate) struct ConvertArguments {
    /// A run folder, a trace file, or a folder of the traces of ranks; several are the ranks of one job
    #[arg(value_name = "IN", required = true)]
    inputs: Vec<PathBuf>,
    /// What to write; the ending says in which format
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    clocks: ClockArguments,
    /// Replace what is there
    #[arg(long)]
    force: bool,
}

/// Carries `stepscope convert` out.
pub(crate) fn convert(arguments: &ConvertArguments) -> Ending {
    let (inputs, output) = (&arguments.inputs, arguments.output.as_path());
    if output == Path::new("-") {
        let trace = opening::open(inputs, arguments.clocks.align())?;
        print_trace(&trace)?;
        return Ok(0);
    }
    let format = Format::of_path(output)?;
    if inputs.iter().any(|input| is_same_file(input, output)) {
        let failure = Failure::new("the output would overwrite the input").at(output.display());
        return Err(failure.hint("name another file with -o").code(2));
    }
    // Before the work, so that nobody waits for it in vain; it is looked at again when the work is done.
    if !arguments.force && is_taken(output) {
        return Err(stepscope_export::ExportError::Exists { path: output.into() }.into());
    }
    let trace = opening::open(inputs, arguments.clocks.align())?;
    if output.to_string_lossy().contains(RANK_PLACE) {
        let files = save_ranks(&trace, output, arguments.force)?;
        print(&files.iter().map(|file| shown(file) + "\n").collect::<String>())?;
        return Ok(0);
    }
    save_trace(&trace, output, format, arguments.force)?;
    print(&format!("{}: {}\n", shown(output), plural(trace.slices.len() as u64, "slice")))?;
    Ok(0)
}

/// True where a file lies, or a folder that holds something.
fn is_taken(output: &Path) -> bool {
    match std::fs::read_dir(output) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => output.symlink_metadata().is_ok(),
    }
}

fn is_same_file(input: &Path, output: &Path) -> bool {
    let paths = (std::fs::canonicalize(input), std::fs::canonicalize(output));
    matches!(paths, (Ok(input), Ok(output)) if input == output)
}

fn print_trace(trace: &Trace) -> Result<(), Failure> {
    let mut stdout = std::io::stdout();
    let written = write_trace(trace, Format::Chrome { is_packed: false }, &mut stdout).and_then(|()| stdout.flush());
    written.map_err(|error| Failure::file("cannot write the trace", Path::new("standard output"), &error))
}

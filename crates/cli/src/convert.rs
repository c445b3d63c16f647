//! `stepscope convert`: a run or a trace as a file that other programs read. `stepscope merge` is the same, and accepts
//! the flags of other tools that merge traces.

use crate::Ending;
use crate::failure::Failure;
use crate::opening::{self, JoinArguments};
use crate::output::{print, shown};
use crate::plural::plural;
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stepscope_engine::{OpenOptions, Ranks, Selection, Trace, check_selection};
use stepscope_export::{Format, RANK_PLACE, save_ranks, save_tables, save_trace, write_trace};

/// Write a run or a trace file in another format, told by the ending of OUT
///
/// *.json and *.json.gz: Chrome JSON as PyTorch's profiler writes it; *.pftrace and *.pftrace.gz: Perfetto; *.parquet: the
/// table of slices; a folder, with a / at its end: every table as Parquet, a file for each rank; -: Chrome JSON to standard output. With {rank}
/// in the name of a *.json or *.json.gz, each rank has a file of its own.
#[derive(Args)]
#[command(after_help = "\
Examples:
  stepscope convert stepscope-runs/20260101-120000-train -o train.json.gz
  stepscope convert stepscope-runs/20260101-120000-train -o 'ranks/{rank}.json.gz'
  stepscope convert trace.json.gz -o trace.pftrace
  stepscope convert traces/ --rank 3 -o rank3.pftrace
  stepscope merge rank0.json.gz rank1.json.gz -o job.json.gz
  stepscope merge torch-trace-*-of-24.json trace-*-of-24.pfw -o job.pftrace
  stepscope convert trace.json.gz -o tables/")]
pub(crate) struct ConvertArguments {
    /// A run folder, a trace file, or a folder of the traces of ranks; several, a pattern such as 'rank*.json', or @FILE
    /// with a path on each line are merged: ranks of one job, or profilers of one rank
    #[arg(value_name = "IN", required_unless_present_any = ["named_inputs", "file_list"])]
    inputs: Vec<PathBuf>,
    /// More of IN, as other tools that merge traces take it
    #[arg(long = "inputs", value_name = "IN", num_args = 1..)]
    named_inputs: Vec<PathBuf>,
    /// As @FILE
    #[arg(long, value_name = "FILE")]
    file_list: Option<PathBuf>,
    /// What to write; the ending says in which format
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Only these ranks: 3, 0-7 or 0,4,8-11. Of a run of many files, only theirs are then in memory
    #[arg(long, value_name = "RANKS")]
    rank: Option<Ranks>,
    #[command(flatten)]
    joined: JoinArguments,
    /// Replace what is there
    #[arg(long)]
    force: bool,
}

impl ConvertArguments {
    fn has_rank(&self, rank: u32) -> bool {
        self.rank.as_ref().is_none_or(|ranks| ranks.has(rank))
    }

    /// Everything that is to be read.
    fn inputs(&self) -> Vec<PathBuf> {
        let list = self.file_list.iter().map(|file| {
            let mut named = std::ffi::OsString::from("@");
            named.push(file);
            named.into()
        });
        self.inputs.iter().chain(&self.named_inputs).cloned().chain(list).collect()
    }
}

/// The tables of what is to be written, in the folder `output`.
fn write_tables(arguments: &ConvertArguments, inputs: &[PathBuf], output: &Path) -> Ending {
    let run = opening::open(inputs, &arguments.joined.options())?;
    let selection = Selection { ranks: arguments.rank.clone().unwrap_or_default(), ..Selection::default() };
    check_selection(run.trace(), &selection)?;
    let slices = save_tables(&run, &selection.ranks, output, arguments.force)?;
    print(&format!("{}: {}\n", shown(output), plural(slices, "slice")))?;
    Ok(0)
}

/// What is to be written; of ranks that share a file with ranks that are asked for, too.
fn opened(arguments: &ConvertArguments, inputs: &[PathBuf]) -> Result<Arc<Trace>, Failure> {
    let options = arguments.joined.options();
    let Some(ranks) = arguments.rank.clone() else { return Ok(Arc::new(opening::open_whole(inputs, &options)?)) };
    // However large they are, as without --rank.
    let run = opening::open(inputs, &OpenOptions { max_memory: Some(u64::MAX), ..options })?;
    let selection = Selection { ranks, ..Selection::default() };
    check_selection(run.trace(), &selection)?;
    Ok(run.events(&selection.ranks)?)
}

/// `trace`, when no other ranks are in it than those asked for.
fn only_asked(arguments: &ConvertArguments, trace: Arc<Trace>) -> Result<Arc<Trace>, Failure> {
    match trace.ranks().into_iter().find(|rank| !arguments.has_rank(*rank)) {
        None => Ok(trace),
        Some(other) => {
            let failure = Failure::new(format!("rank {other} cannot be told apart from the ranks asked for"));
            Err(failure
                .hint("write each rank to a file of its own, as in -o '{rank}.json', or leave --rank out")
                .code(2))
        }
    }
}

/// Carries `stepscope convert` out.
pub(crate) fn convert(arguments: &ConvertArguments) -> Ending {
    let (inputs, output) = (&arguments.inputs(), arguments.output.as_path());
    if output == Path::new("-") {
        let trace = only_asked(arguments, opened(arguments, inputs)?)?;
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
    if format == Format::Tables {
        return write_tables(arguments, inputs, output);
    }
    let trace = opened(arguments, inputs)?;
    if output.to_string_lossy().contains(RANK_PLACE) {
        let ranks = trace.ranks().into_iter().filter(|rank| arguments.has_rank(*rank));
        let files = save_ranks(&trace, ranks, output, arguments.force)?;
        print(&files.iter().map(|file| shown(file) + "\n").collect::<String>())?;
        return Ok(0);
    }
    let trace = only_asked(arguments, trace)?;
    save_trace(&trace, output, format, arguments.force)?;
    print(&format!("{}: {}\n", shown(output), plural(trace.slices.len() as u64, "slice")))?;
    Ok(0)
}

/// True where a file lies, or a folder that holds something.
pub(crate) fn is_taken(output: &Path) -> bool {
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

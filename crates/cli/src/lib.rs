//! The `stepscope` command: one file a command. Commands choose and lay out; every number comes from the engine.

mod analyze;
mod bar;
mod check;
mod color;
mod compare;
mod condition;
mod convert;
mod doctor;
mod export;
mod failure;
mod line_wrap;
mod mcp;
mod opening;
mod output;
mod package;
mod plural;
mod python;
mod record;
mod recover;
mod report;
mod sql;
mod upload;
mod view;

use clap::{Parser, Subcommand};
use failure::Failure;
use std::ffi::OsString;

/// What a command ends with: the exit code, or why it could not do its work.
type Ending = Result<i32, Failure>;

/// Record, analyse and read deep-learning jobs: where do time, memory and I/O go?
#[derive(Parser)]
#[command(name = "stepscope", version, max_term_width = 100, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  stepscope record -- python train.py      run and record, nothing to change in the code
  stepscope report stepscope-runs/…        what the time went to
  stepscope report trace.json.gz           the same for a trace of the PyTorch profiler
  stepscope view trace.json.gz             look at it in the browser
  stepscope compare runs/a runs/b          what changed, and whether it may be chance
  stepscope sql runs/a 'select …'          any question about it
  stepscope check runs/b --against runs/a  whether limits hold, for a pipeline
  stepscope analyze                        list the analyses";

#[derive(Subcommand)]
enum Command {
    Record(record::RecordArguments),
    Report(report::ReportArguments),
    View(view::ViewArguments),
    Analyze(analyze::AnalyzeArguments),
    Compare(compare::CompareArguments),
    Check(check::CheckArguments),
    #[command(visible_alias = "merge")]
    Convert(convert::ConvertArguments),
    Export(export::ExportArguments),
    Sql(sql::SqlArguments),
    Recover(recover::RecoverArguments),
    Upload(upload::UploadArguments),
    Mcp(mcp::McpArguments),
    Doctor(doctor::DoctorArguments),
}

/// Runs the command that `args` spell, where `args[0]` is the program's own name, and returns its exit code: 0 good,
/// 1 failure, 2 wrong usage, 3 where `check` finds that something does not hold, or `compare --fail-if` that it
/// does; `record` passes the code of the program it ran.
///
/// Writes to standard output and standard error; a reader that goes away ends the command quietly.
pub fn main_with_args(args: Vec<OsString>) -> i32 {
    let arguments = match Arguments::try_parse_from(args) {
        Ok(arguments) => arguments,
        Err(error) => {
            // A reader that went away is no reason to fail.
            let _ = error.print();
            return error.exit_code();
        }
    };
    let ending = match arguments.command {
        Command::Record(arguments) => record::record(arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::View(arguments) => view::view(arguments),
        Command::Analyze(arguments) => analyze::analyze(&arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Convert(arguments) => convert::convert(&arguments),
        Command::Export(arguments) => export::export(&arguments),
        Command::Sql(arguments) => sql::sql(&arguments),
        Command::Recover(arguments) => recover::recover(&arguments),
        Command::Upload(arguments) => upload::upload(&arguments),
        Command::Mcp(arguments) => mcp::mcp(arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
    };
    ending.unwrap_or_else(|failure| failure.report())
}

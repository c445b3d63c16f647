//! `stepscope-bench`: traces to measure with, and what measures import and analyses on them.

mod analyze;
mod averages;
mod compare;
mod describe;
mod device_capture;
mod generate;
mod generator;
mod import;
mod inflate;
mod quantity;
mod random;
mod ranks;
mod real;
mod recorded;
mod repeat;
mod resources;
mod row_copies;
mod text_table;
mod trace_text;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Makes traces to measure with, and measures import and analyses on them
#[derive(Parser)]
#[command(name = "stepscope-bench")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a trace as PyTorch's profiler does, of any size
    Generate(generate::Arguments),
    /// Open traces, each in a process of its own: time and memory
    Import(import::Arguments),
    /// Open traces of real jobs, as they are and made longer, on one processor and on all
    Real(real::Arguments),
    /// Open a trace once and time each analysis
    Analyze(analyze::Arguments),
    /// What happens to a raw capture after the recording: each stage's time
    Recorded(recorded::Arguments),
    /// The table of operators of a raw capture: time and memory
    Averages(averages::Arguments),
    /// Write a raw capture of operators that launch kernels
    GenerateCapture(device_capture::Arguments),
    /// Unpack gzipped files with the gzip library alone
    Inflate(inflate::Arguments),
    /// Ours and its peers on the same generated traces
    Compare(compare::Arguments),
    /// Open jobs of many ranks, and put their clocks together
    Ranks(ranks::Arguments),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Real(arguments) => real::run(&arguments),
        Command::Analyze(arguments) => analyze::run(&arguments),
        Command::Recorded(arguments) => recorded::run(&arguments),
        Command::Averages(arguments) => averages::run(&arguments),
        Command::GenerateCapture(arguments) => device_capture::run(&arguments),
        Command::Inflate(arguments) => inflate::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Ranks(arguments) => ranks::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

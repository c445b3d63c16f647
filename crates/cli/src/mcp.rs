//! `stepscope mcp`: runs as tools for a model's client.

use crate::Ending;
use crate::failure::Failure;
use crate::opening::{JoinArguments, MemoryArgument};
use clap::Args;
use std::io::{IsTerminal, stdin};
use std::path::PathBuf;
use stepscope_mcp::{Options, ServeError, serve};

/// Give an assistant the verdict on runs, and the rows behind it, by the Model Context Protocol
///
/// An editor or an assistant starts it and speaks with it over standard input and output. Runs are only read, and nothing
/// goes over a network. It ends when its standard input does.
#[derive(Args)]
#[command(after_help = "\
Examples:
  claude mcp add stepscope -- stepscope mcp                 Claude Code; it names runs by their paths
  stepscope mcp runs/a                                      tools look at runs/a unless told otherwise
  stepscope mcp --only stepscope-runs/                      no file outside of that folder is opened")]
pub(crate) struct McpArguments {
    /// Runs at hand: run folders, trace files, or folders of the traces of ranks; each is one run
    #[arg(value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Open nothing but RUN, and what is below it; without it, any path that the client names
    #[arg(long, requires = "runs")]
    only: bool,
    #[command(flatten)]
    joined: JoinArguments,
    #[command(flatten)]
    memory: MemoryArgument,
}

/// Carries `stepscope mcp` out.
pub(crate) fn mcp(arguments: McpArguments) -> Ending {
    let McpArguments { runs, only, joined, memory } = arguments;
    if stdin().is_terminal() {
        eprintln!("stepscope: waits for a client of the Model Context Protocol on standard input · Ctrl-C ends it");
    }
    serve(Options { runs, only, open: memory.with(joined.options()) })?;
    Ok(0)
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Run(error) => error.into(),
            ServeError::Client(_) => Self::new(error.to_string()).hint("a client of the protocol starts this command"),
            ServeError::Start(_) => Self::new(error.to_string()),
        }
    }
}

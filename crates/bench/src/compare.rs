//! `compare import`, `compare analyze`: ours and its peers on the same generated traces, in turn, in one table.

mod analyzing;
mod importing;
mod inputs;
pub(crate) mod peers;

use crate::quantity;
use inputs::Input;
use peers::Peers;
use std::path::PathBuf;

/// What `compare` is told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What to compare
    what: What,
    /// Where generated traces are kept
    #[arg(long)]
    folder: PathBuf,
    /// Sizes of the traces in bytes of text
    #[arg(long, value_delimiter = ',', value_parser = quantity::parse)]
    sizes: Vec<u64>,
    /// Sizes of the traces in rows of traceEvents
    #[arg(long, value_delimiter = ',', value_parser = quantity::parse)]
    events: Vec<u64>,
    /// How often ours runs on each; the run in the middle counts. Peers run once
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Python that has the peers' packages; without it no peer runs
    #[arg(long)]
    python: Option<PathBuf>,
    /// Folder with the peers' scripts
    #[arg(long, default_value = "benches/peers")]
    scripts: PathBuf,
    /// The largest trace that peers run on; parsers alone run on ten times as much
    #[arg(long, default_value = "120M", value_parser = quantity::parse)]
    peer_limit: u64,
    /// Generate the traces anew
    #[arg(long)]
    fresh: bool,
}

/// What can be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum What {
    /// From a file to what can be asked questions
    Import,
    /// The questions
    Analyze,
}

/// Sizes when none is given.
const SIZES: [u64; 3] = [10_000_000, 100_000_000, 1_000_000_000];

/// Generates what is missing, measures and prints.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let is_default = arguments.sizes.is_empty() && arguments.events.is_empty();
    let sizes = if is_default { &SIZES[..] } else { &arguments.sizes };
    let inputs: Vec<Input> = sizes
        .iter()
        .copied()
        .map(Input::of_bytes)
        .chain(arguments.events.iter().copied().map(Input::of_events))
        .collect();
    let peers = Peers {
        python: arguments.python.clone(),
        scripts: arguments.scripts.clone(),
        limit_bytes: arguments.peer_limit,
    };
    for input in &inputs {
        input.write(&arguments.folder, arguments.what == What::Import, arguments.fresh)?;
    }
    match arguments.what {
        What::Import => importing::compare(&inputs, &arguments.folder, &peers, arguments.repeat),
        What::Analyze => {
            inputs.iter().try_for_each(|input| analyzing::compare(input, &arguments.folder, &peers, arguments.repeat))
        }
    }
}

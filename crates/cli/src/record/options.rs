//! What `stepscope record` records beside operators, labels and steps. `python/stepscope/_options.py` reads it.

use clap::{Args, ValueEnum};
use serde_json::json;

/// What to record; the defaults are all that is cheap.
#[derive(Args)]
#[command(next_help_heading = "What to record")]
pub(super) struct Options {
    /// What each operator is called with: shapes, types, strides, values
    #[arg(long)]
    shapes: bool,
    /// Every allocation and free
    #[arg(long)]
    memory: bool,
    /// Python's call stack of each operator; with `calls`, every Python call as well
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "ops")]
    stacks: Option<Stacks>,
    /// Leave out the calls of modules
    #[arg(long)]
    no_modules: bool,
    /// Leave out Python's garbage collections
    #[arg(long)]
    no_gc: bool,
    /// Leave out the process's memory and CPU time
    #[arg(long)]
    no_counters: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Stacks {
    Ops,
    Calls,
}

impl Options {
    /// As the recorded processes read it.
    pub(super) fn to_environment(&self) -> String {
        let stacks = match self.stacks {
            None => "",
            Some(Stacks::Ops) => "ops",
            Some(Stacks::Calls) => "calls",
        };
        let options = json!({
            "shapes": self.shapes,
            "memory": self.memory,
            "stacks": stacks,
            "modules": !self.no_modules,
            "gc": !self.no_gc,
            "counters": !self.no_counters,
        });
        options.to_string()
    }
}

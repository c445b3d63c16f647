//! What `stepscope record` records beside operators, labels and steps. `python/stepscope/_options.py` reads it.

use super::when::{self, Schedule};
use crate::failure::Failure;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

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
    /// Do not sample which line of Python each thread is in
    #[arg(long)]
    no_stack_samples: bool,
    /// What GPUs do: by their own profiler, once that is proven here; `native`, without a proof; `torch`, by a session of torch.profiler; `off`
    #[arg(long, value_name = "HOW", default_value = "auto", hide_possible_values = true)]
    gpu: Gpu,
    /// Calls on files from the program's first one on, and those of all that it starts, whatever they are; `net`: those on sockets, too
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "files")]
    io: Option<Io>,
    /// Leave out calls on files
    #[arg(long, conflicts_with_all = ["io", "io_include", "io_exclude"])]
    no_io: bool,
    /// Calls on files in this folder only; may be given several times
    #[arg(long, value_name = "FOLDER")]
    io_include: Vec<PathBuf>,
    /// No calls on files in this folder; may be given several times
    #[arg(long, value_name = "FOLDER")]
    io_exclude: Vec<PathBuf>,
    /// Be what programs and frameworks call as torch.profiler.profile; `no-json`: write no Chrome traces for it
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "1", hide_possible_values = true, value_parser = ["1", "no-json"])]
    as_torch_profiler: Option<String>,
    /// Ranges that the program marks with NVTX
    #[arg(long)]
    nvtx: bool,
    /// Be a flight recorder: keep only the last seconds, as 30s or 2m
    #[arg(long, value_name = "TIME", value_parser = when::seconds)]
    ring: Option<f64>,
    /// With --ring: keep what is in it after a step that takes this many times the median
    #[arg(long, value_name = "TIMES", requires = "ring", value_parser = when::times)]
    slow_step: Option<f64>,
    /// Record a few steps of this many, now and then
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["steps", "schedule"])]
    every: Option<u32>,
    /// How many steps of --every
    #[arg(long = "for", value_name = "STEPS", default_value_t = 5, requires = "every", value_parser = clap::value_parser!(u32).range(1..))]
    steps_of_each: u32,
    /// Record steps A to B, which count from 0; both are recorded, and without B all from A on
    #[arg(long, value_name = "A..B", conflicts_with = "schedule", value_parser = when::steps)]
    steps: Option<Schedule>,
    /// Record steps as torch.profiler.schedule says: wait=…,warmup=…,active=…,repeat=…,skip_first=…
    #[arg(long, value_name = "SCHEDULE", value_parser = when::schedule)]
    schedule: Option<Schedule>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Io {
    /// Calls on files.
    Files,
    /// Calls on sockets, too.
    Net,
}

#[derive(Clone, Copy, ValueEnum)]
enum Stacks {
    Ops,
    Calls,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Gpu {
    Auto,
    Native,
    Torch,
    Off,
}

impl Gpu {
    fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Native => "native",
            Self::Torch => "torch",
            Self::Off => "off",
        }
    }
}

impl Options {
    /// Refuses what contradicts itself and the parser cannot see.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.gpu == Gpu::Torch && self.is_ring() {
            return Err(Failure::new("--gpu torch does not go with --ring: PyTorch's profiler would keep everything")
                .hint("record some steps now and then, with --every or --schedule")
                .code(2));
        }
        if self.io.is_some() && !cfg!(target_os = "linux") {
            return Err(Failure::new("calls on files are recorded on Linux only").hint("leave --io out").code(2));
        }
        match self.every {
            Some(every) if self.steps_of_each > every => Err(Failure::new(format!(
                "of each {every} steps at most {every} can be recorded, not {}",
                self.steps_of_each
            ))
            .hint("give --for a smaller number, or --every a larger one")
            .code(2)),
            _ => Ok(()),
        }
    }

    /// True when only some steps are recorded.
    pub(super) fn is_sampled(&self) -> bool {
        self.every.is_some() || self.steps.is_some() || self.schedule.is_some()
    }

    /// True when a flight recorder is asked for.
    pub(super) fn is_ring(&self) -> bool {
        self.ring.is_some()
    }

    /// True when calls on files are recorded by a library that the system loads first.
    pub(super) fn is_io(&self) -> bool {
        self.io.is_some()
    }

    /// True when those on sockets are, too.
    pub(super) fn has_sockets(&self) -> bool {
        self.io == Some(Io::Net)
    }

    /// How calls of `torch.profiler.profile` are answered, when it is us who do.
    pub(super) fn as_torch_profiler(&self) -> Option<&str> {
        self.as_torch_profiler.as_deref()
    }

    /// Which folders' files are recorded, and which are not.
    pub(super) fn folders(&self) -> (&[PathBuf], &[PathBuf]) {
        (&self.io_include, &self.io_exclude)
    }

    /// How much of the past a flight recorder keeps, ns.
    pub(super) fn ring_ns(&self) -> Option<u64> {
        self.ring.map(|seconds| (seconds * 1e9) as u64)
    }

    /// As the recorded processes read it: `NAME=VALUE,…`, without what a shell would take for something else.
    pub(super) fn to_environment(&self) -> String {
        let stacks = match self.stacks {
            None => "",
            Some(Stacks::Ops) => "ops",
            Some(Stacks::Calls) => "calls",
        };
        let schedule = self.every.map(|every| when::sampled(every, self.steps_of_each));
        let schedule = schedule.as_ref().or(self.steps.as_ref()).or(self.schedule.as_ref());
        let flag = |is_set: bool| u8::from(is_set).to_string();
        let options = [
            ("shapes", flag(self.shapes)),
            ("memory", flag(self.memory)),
            ("stacks", stacks.to_string()),
            ("modules", flag(!self.no_modules)),
            ("gc", flag(!self.no_gc)),
            ("counters", flag(!self.no_counters)),
            ("stack_samples", flag(!self.no_stack_samples)),
            ("io", flag(cfg!(target_os = "linux") && !self.no_io)),
            ("gpu", self.gpu.as_str().to_string()),
            ("nvtx", flag(self.nvtx)),
            ("ring", self.ring.unwrap_or(0.0).to_string()),
            ("slow_step", self.slow_step.unwrap_or(0.0).to_string()),
            ("schedule", schedule.map(Schedule::to_string).unwrap_or_default()),
        ];
        options.map(|(name, value)| format!("{name}={value}")).join(",")
    }
}

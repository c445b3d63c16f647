//! `stepscope record`: run a program and record it.

mod child;
mod files;
mod options;
mod other_nodes;
mod program;
mod run_folder;
mod sending;
mod when;

use crate::Ending;
use crate::color::{DIM, HINT, WARNING};
use crate::failure::Failure;
use crate::output::shown;
use crate::package::{find_package, injected_folder};
use crate::recover::{problems, sum};
use crate::report::to_type;
use clap::Args;
use run_folder::RunFolder;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use stepscope_base::utc;

/// The environment variable that tells recorded processes where their run is.
const RUN_VARIABLE: &str = "STEPSCOPE_RUN";
/// The environment variable that tells them what to record.
const OPTIONS_VARIABLE: &str = "STEPSCOPE_OPTIONS";
/// The one that tells them to stand in for `torch.profiler.profile`.
const TORCH_PROFILER_VARIABLE: &str = "STEPSCOPE_AS_TORCH_PROFILER";

/// Run a program and record it: every Python process with PyTorch, all threads, forked and spawned workers
///
/// The program's code needs no change. Its exit code is passed on; 128 and the signal's number when a signal killed it.
#[derive(Args)]
#[command(
    override_usage = "stepscope record [OPTIONS] [--] CMD...",
    after_help = "\
Examples:
  stepscope record -- python train.py --epochs 1
  stepscope record --shapes --memory -- python train.py
  stepscope record --ring 30s --slow-step 3 -- python train.py
  stepscope record --every 1000 --for 5 -- python train.py
  stepscope record -o runs/baseline -- torchrun --nproc-per-node 4 train.py
  stepscope record -o /shared/run --join -- torchrun --nnodes 2 --node-rank 0 train.py
  stepscope record -o s3://bucket/run -- python train.py"
)]
pub(crate) struct RecordArguments {
    /// The run's folder [default: stepscope-runs/<UTC time>-<name>]; of an address such as s3://BUCKET/FOLDER that folder is
    /// recorded into, and sent there as processes end
    #[arg(short, long, value_name = "RUN")]
    output: Option<PathBuf>,
    /// Join the run that another `stepscope record` has begun there, as with one on each node; begin it when there is none
    #[arg(long, requires = "output")]
    join: bool,
    #[command(flatten)]
    options: options::Options,
    /// The program and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Carries `stepscope record` out.
pub(crate) fn record(arguments: RecordArguments) -> Ending {
    arguments.options.check()?;
    let mut command = arguments.command;
    program::check(&command[0])?;
    let Some(package) = find_package() else {
        return Err(Failure::new("the recorder's Python package is not installed here")
            .hint("pip install stepscope, or name its folder in STEPSCOPE_PACKAGE"));
    };
    let default_path = |command: &[OsString]| run_folder::default_path(command, &utc::compact_utc(SystemTime::now()));
    let (address, output): (Vec<PathBuf>, Vec<PathBuf>) =
        arguments.output.into_iter().partition(|output| stepscope_store::is_remote(output));
    let path = output.into_iter().next().unwrap_or_else(|| default_path(&command));
    if let Some(python) = program::python_instead(&command[0]) {
        let says = format!("{} has no PyTorch: running {}", command[0].to_string_lossy(), shown(&python));
        let _ = anstream::stderr().write_all(format!("{DIM}stepscope: {says}{DIM:#}\n").as_bytes());
        command[0] = python.into();
    }
    let command = command.as_slice();
    let address = address.into_iter().next();
    // In a store, runs of several hosts come together without a folder that all of them have.
    let is_joined = arguments.join && address.is_none();
    let run = if is_joined { RunFolder::join(&path, command)? } else { RunFolder::create(&path, command)? };
    let upload = address.map(|to| sending::begun(run.path(), &to, arguments.join)).transpose();
    let mut upload = upload.inspect_err(|_| run.discard())?;
    let mut environment = environment(run.path(), &package, &arguments.options);
    environment.extend(files::environment(&package, &arguments.options)?);
    let other_nodes = other_nodes::reach(command, &environment);
    if let Some(warning) = &other_nodes.warning {
        let _ = writeln!(anstream::stderr(), "{WARNING}stepscope:{WARNING:#} {warning}");
    }
    environment.extend(other_nodes.environment.iter().cloned());
    let keep = || run.keep();
    let on_keep: Option<&(dyn Fn() + Sync)> = if arguments.options.is_ring() { Some(&keep) } else { None };
    let status = std::thread::scope(|scope| {
        let sending = upload.as_mut().map(|upload| sending::beside(scope, upload));
        let status = child::run(command, &environment, on_keep);
        if let Some((ends, thread)) = sending {
            drop(ends);
            let _ = thread.join();
        }
        status
    });
    let status = match status {
        Ok(status) => status,
        Err(error) => {
            run.discard();
            return Err(program::failure(&command[0], &error));
        }
    };
    summarise(&path, arguments.options.is_sampled());
    stepscope_engine::keep_summaries(&path);
    if let Some(upload) = upload {
        sending::finish(upload, &path);
    }
    Ok(child::exit_code(status))
}

/// What the program's environment has beside ours.
fn environment(run: &Path, package: &Path, options: &options::Options) -> Vec<(&'static str, OsString)> {
    let mut search_path = injected_folder(package).into_os_string();
    if let Some(before) = std::env::var_os("PYTHONPATH").filter(|before| !before.is_empty()) {
        search_path.push(if cfg!(windows) { ";" } else { ":" });
        search_path.push(before);
    }
    let mut all = vec![
        (RUN_VARIABLE, run.as_os_str().to_os_string()),
        (OPTIONS_VARIABLE, options.to_environment().into()),
        ("PYTHONPATH", search_path),
    ];
    all.extend(options.as_torch_profiler().map(|how| (TORCH_PROFILER_VARIABLE, how.into())));
    all
}

/// Closes the run and tells on standard error what is in it. The program has ended: nothing here changes its exit code.
fn summarise(path: &Path, is_sampled: bool) {
    let recovered = match stepscope_engine::recover(path) {
        Ok(recovered) => recovered,
        Err(error) => {
            Failure::run(&error, path).report();
            return;
        }
    };
    let place = shown(path);
    let mut lines = Vec::new();
    if recovered.events == 0 {
        lines.push(format!("{WARNING}stepscope:{WARNING:#} nothing was recorded in {place}"));
        if recovered.processes == 0 {
            let why = "no Python process with PyTorch reached the recorder; `stepscope doctor` tells what works here";
            lines.push(format!("{DIM}stepscope: {why}{DIM:#}"));
        } else if is_sampled {
            let why = "the program ended before the first step that was to be recorded, or no optimizer stepped";
            lines.push(format!("{DIM}stepscope: {why}{DIM:#}"));
        }
    } else {
        lines.push(format!("{DIM}stepscope:{DIM:#} recorded {} in {place}", sum(&recovered)));
        lines.extend(
            problems(&recovered).into_iter().map(|trouble| format!("{WARNING}stepscope:{WARNING:#} {trouble}")),
        );
        let kept = stepscope_run::kept_in(path);
        lines.extend(kept.iter().map(|kept| format!("{DIM}stepscope: kept a window:{DIM:#} {}", shown(kept))));
        lines.push(format!("{DIM}stepscope: next:{DIM:#} {HINT}stepscope report {}{HINT:#}", to_type(path)));
    }
    // The job's own ending must not depend on whether somebody reads this.
    let _ = anstream::stderr().write_all((lines.join("\n") + "\n").as_bytes());
}

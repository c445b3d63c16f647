//! `stepscope recover`: close a run whose process was killed.

use crate::Ending;
use crate::failure::Failure;
use crate::output::print;
use crate::plural::plural;
use clap::Args;
use std::path::PathBuf;
use stepscope_base::units::format_bytes;
use stepscope_engine::EngineError;
use stepscope_run::Recovered;

/// Close a run whose process was killed, so that it is read faster
///
/// Every reading command does the same on the fly: nothing is lost without it.
#[derive(Args)]
#[command(after_help = "Example:\n  stepscope recover stepscope-runs/20260101-120000-train")]
pub(crate) struct RecoverArguments {
    /// The run's folder
    #[arg(value_name = "RUN")]
    run: PathBuf,
}

/// Carries `stepscope recover` out.
pub(crate) fn recover(arguments: &RecoverArguments) -> Ending {
    let run = &arguments.run;
    if !run.exists() {
        return Err(EngineError::NotFound { path: run.clone() }.into());
    }
    let recovered = stepscope_engine::recover(run).map_err(|error| Failure::run(&error, run))?;
    let mut text = format!("{}\n", sum(&recovered));
    problems(&recovered).iter().for_each(|trouble| text.push_str(&format!("{trouble}\n")));
    print(&text)?;
    stepscope_engine::keep_summaries(run);
    Ok(0)
}

/// What is in a run: `8,000 events of 2 processes, 31.6 KiB`.
pub(crate) fn sum(recovered: &Recovered) -> String {
    let processes = plural(recovered.processes.into(), "process");
    let bytes = format_bytes(i64::try_from(recovered.bytes).unwrap_or(i64::MAX));
    let kept = match recovered.kept {
        0 => String::new(),
        kept => format!(", and {} kept", plural(kept.into(), "window")),
    };
    format!("{} of {processes}, {bytes}{kept}", plural(recovered.events, "event"))
}

/// What is not as it should be, one line each.
pub(crate) fn problems(recovered: &Recovered) -> Vec<String> {
    let problems = [
        (recovered.killed, "process", "ended without closing the capture: all up to the last complete record is there"),
        (recovered.running, "process", "still recording: read again later for the rest"),
        (recovered.unreadable, "file", "not readable"),
    ];
    let found = problems.into_iter().filter(|(count, ..)| *count > 0);
    found.map(|(count, noun, what)| format!("{} {what}", plural(count.into(), noun))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_summed_up_and_its_troubles_told() {
        let recovered = Recovered { processes: 2, killed: 1, events: 8_000, bytes: 32_000, ..Recovered::default() };
        assert_eq!(sum(&recovered), "8,000 events of 2 processes, 31.2 KiB");
        let problems = problems(&recovered);
        assert!(problems.len() == 1 && problems[0].starts_with("1 process ended without"), "{problems:?}");
    }
}

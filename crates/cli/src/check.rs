//! `stepscope check`: whether a run keeps to limits, for a pipeline that reads the exit code.

mod judged;
mod junit;
mod markdown;
mod summary;

use crate::Ending;
use crate::compare::{is_beyond, says, slower_by};
use crate::condition::{Condition, Limit};
use crate::failure::Failure;
use crate::opening;
use crate::output::{deliver, line_width};
use clap::Args;
use judged::{Check, Outcome, Status};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use stepscope_engine::{
    self as engine, Compared, METRICS, Measurements, Metric, OpenOptions, OpenedRun, RunIdentity, Selection, Unit,
    difference_lines, finding_rows,
};

/// What a check that does not hold ends with.
const DOES_NOT_HOLD: i32 = 3;
/// What is checked where nothing else was asked for.
const DEFAULT: [&str; 2] = ["advice_high < 1", "findings_severe < 1"];
/// How much longer steps may take than in the baseline.
const TOLERANCE: &str = "3%";

/// Hold a run against limits and against a baseline: the exit code is 3 when one does not hold
#[derive(Args)]
#[command(after_help = after_help())]
pub(crate) struct CheckArguments {
    /// A run folder, a trace file, or a folder of the traces of ranks
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// What has to hold, once for each: 'step_p50 < 210ms'. Without it and without --against: no advice of high priority,
    /// and no severe finding
    #[arg(long = "budget", value_name = "CONDITION", value_parser = budget)]
    budgets: Vec<Budget>,
    /// Steps must not take significantly longer than in this run, by more than --tolerance
    #[arg(long, value_name = "BASELINE")]
    against: Option<PathBuf>,
    /// How much longer steps may take than in the baseline: a share of its median, or a time [default: 3%]
    #[arg(long, value_name = "LIMIT", requires = "against", value_parser = tolerance)]
    tolerance: Option<(Limit, String)>,
    /// Also write the checks to FILE as JUnit XML, which GitLab, Jenkins and actions of GitHub show
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print Markdown, or write it to FILE as well: for the summary of a job
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    markdown: Option<Option<PathBuf>>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn after_help() -> String {
    let width = METRICS.iter().map(|metric| metric.name.len()).max().unwrap_or(0);
    let mut text = String::from(
        "Examples:
  stepscope check runs/change
  stepscope check runs/change --budget 'step_p50 < 210ms' --budget 'idle_ratio < 10%'
  stepscope check runs/change --against runs/main --tolerance 5% --junit check.xml

Numbers for --budget:
",
    );
    for metric in METRICS {
        let _ = writeln!(text, "  {:width$}  {}", metric.name, metric.says);
    }
    text + "\nUnits: ns us ms s min h; B KiB MiB GiB TiB KB MB GB TB; a share is 0.1 or 10%; counts have none."
}

/// A limit of a number of the run.
#[derive(Clone, Debug)]
struct Budget {
    metric: &'static Metric,
    condition: Condition,
}

fn budget(text: &str) -> Result<Budget, String> {
    let condition = Condition::parse(text)?;
    let metric = Metric::named(&condition.name).ok_or_else(|| {
        let nearest = engine::nearest_of(&condition.name, METRICS.iter().map(|metric| metric.name));
        let names = || METRICS.iter().map(|metric| metric.name).collect::<Vec<_>>().join(", ");
        let hint = nearest.map_or_else(|| format!("there are {}", names()), |name| format!("did you mean {name}?"));
        format!("there is no number {}; {hint}", condition.name)
    })?;
    let (fits, example) = match metric.unit {
        Unit::Nanoseconds => (matches!(condition.limit, Limit::Nanoseconds(_)), "210ms"),
        Unit::Bytes => (matches!(condition.limit, Limit::Bytes(_)), "40GiB"),
        Unit::Ratio => (matches!(condition.limit, Limit::Ratio(_) | Limit::Plain(_)), "10%"),
        _ => (matches!(condition.limit, Limit::Plain(_)), "1"),
    };
    match fits {
        true => Ok(Budget { metric, condition }),
        false => Err(format!("the limit of {} needs another unit, as in {example}", metric.name)),
    }
}

fn tolerance(text: &str) -> Result<(Limit, String), String> {
    let limit = Limit::parse(text)?;
    let fits = matches!(limit.0, Limit::Ratio(of) | Limit::Nanoseconds(of) if of >= 0.0);
    fits.then_some(limit).ok_or_else(|| "expected a share or a time, as in 3% or 5ms".into())
}

/// Carries `stepscope check` out.
pub(crate) fn check(arguments: &CheckArguments) -> Ending {
    let run = opened(&arguments.run)?;
    let mut checks = Vec::new();
    let default = DEFAULT.map(|text| budget(text).expect("they are known")).to_vec();
    let budgets = match arguments.budgets.is_empty() && arguments.against.is_none() {
        true => &default,
        false => &arguments.budgets,
    };
    let measurements = Measurements::of(&run);
    for Budget { metric, condition } in budgets {
        checks.push(Check::of_budget(metric, condition, measurements.measured(metric)?));
    }
    let mut findings = finding_rows(&run.trace().findings);
    if let Some(path) = &arguments.against {
        let baseline = opened(path)?;
        let all = Selection::default();
        let compared = |what| engine::compare((&baseline, &all), (&run, &all), what);
        let (limit, typed) = match &arguments.tolerance {
            Some(given) => given.clone(),
            None => tolerance(TOLERANCE).expect("it is one"),
        };
        let steps = compared(Compared::Steps)?;
        let name =
            format!("step_ns <= +{} against {}", typed.trim_start_matches('+'), RunIdentity::of(baseline.trace()).name);
        let status = match is_beyond(&slower_by(limit, typed), &steps) {
            None => Status::NotJudged,
            Some(true) => Status::Fails,
            Some(false) => Status::Holds,
        };
        let parts = difference_lines(&compared(Compared::StepBreakdown)?.results);
        checks.push(Check::of_baseline(name, status, says(&steps).unwrap_or_default().into(), parts));
        findings = finding_rows(&steps.findings);
    }
    let outcome = Outcome::new(RunIdentity::of(run.trace()), checks, findings);
    if let Some(file) = &arguments.junit {
        deliver(&junit::junit(&outcome)?, Some(file))?;
    }
    if let Some(Some(file)) = &arguments.markdown {
        deliver(&markdown::markdown(&outcome), Some(file))?;
    }
    let text = match (arguments.json, &arguments.markdown) {
        (true, _) => outcome.to_json() + "\n",
        (false, Some(None)) => markdown::markdown(&outcome),
        _ => summary::summary(&outcome, line_width()),
    };
    deliver(&text, None)?;
    Ok(if outcome.holds { 0 } else { DOES_NOT_HOLD })
}

/// The run at `path`, which is complete.
fn opened(path: &Path) -> Result<OpenedRun, Failure> {
    let run = opening::open(&[path.to_path_buf()], &OpenOptions::default())?;
    match run.is_live() {
        true => Err(Failure::new("the run is still being recorded: its numbers would change")
            .at(path.display())
            .hint("wait until the job has ended")),
        false => Ok(run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_of_a_number_that_there_is_and_in_its_unit() {
        assert_eq!(budget("step-p50<210ms").unwrap().metric.name, "step_p50");
        assert!(budget("gpu_utilization >= 0.8").is_ok() && budget("gpu_utilization >= 80%").is_ok());
        let error = |text| budget(text).unwrap_err();
        assert_eq!(error("step_p5 < 1ms"), "there is no number step_p5; did you mean step_p50?");
        assert!(error("loss < 1").contains("there are steps, step_mean, "), "{}", error("loss < 1"));
        for (text, example) in [
            ("step_p50 < 3%", "210ms"),
            ("peak_memory < 3s", "40GiB"),
            ("idle_ratio < 3ms", "10%"),
            ("findings < 3%", "as in 1"),
        ] {
            assert!(error(text).contains(example), "{text}: {}", error(text));
        }
        assert!(DEFAULT.into_iter().all(|text| budget(text).is_ok()));
        assert!(tolerance(TOLERANCE).is_ok() && tolerance("5ms").is_ok());
        assert!(["3", "-3%", "3GiB", ""].into_iter().all(|text| tolerance(text).is_err()));
    }
}

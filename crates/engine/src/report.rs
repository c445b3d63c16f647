//! The report: what a person wants to know of a run first, as plain data. Every number comes from an analysis; here
//! they are chosen, put in order and said in words, so that terminal, page and document tell the same.

mod advice;
mod breakdown;
mod coverage;
mod devices;
mod joined;
mod next;
mod processes;
mod ranks;
mod steps;
mod top;
mod verdict;

pub use advice::AdviceRow;
pub use breakdown::{Breakdown, Part, class_words};
pub use coverage::{NotJudged, ReportCoverage};
pub use devices::DeviceTime;
pub use joined::JoinedFiles;
pub use next::NextCommand;
pub use processes::ProcessRow;
pub use ranks::{HangingRank, RanksTogether, Straggler};
pub use steps::{StepSummary, StepTime};
pub use top::Top;

use crate::{
    AnalysisContext, EngineError, FindingRow, OpenedRun, RunIdentity, SCHEMA, Selection, Trace, check_selection,
    finding_rows,
};
use serde::Serialize;
use std::panic::resume_unwind;
use std::thread::{self, ScopedJoinHandle};
use stepscope_analyses::{Needs, has_stacks, kernels, operators, step_breakdown, temporal_breakdown};

/// A fact about where a run ran.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fact {
    /// What it is about, in words: `PyTorch`.
    pub name: &'static str,
    /// What is so.
    pub value: String,
}

/// What a report is about and what it says.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The version of the JSON form.
    pub schema: &'static str,
    /// The run.
    pub run: RunIdentity,
    /// The rank that was asked for, when it is a single one.
    pub rank: Option<u32>,
    /// The ranks that were asked for, as in `0-7`, when they are several; none is all, or `rank`.
    pub ranks: Option<String>,
    /// The step that was asked for; none is all.
    pub step: Option<i64>,
    /// What stands out, in one to three sentences with their numbers.
    pub verdict: Vec<String>,
    /// What to change, what there is most to gain from first; of each rule the first row.
    pub advice: Vec<AdviceRow>,
    /// That there is nothing to gain that is worth a change; none where there is, or where that is not known.
    pub healthy: Option<String>,
    /// What advice rests on, and what could not be judged.
    pub coverage: ReportCoverage,
    /// From the first to the last event; none in an empty trace.
    pub span_ns: Option<i64>,
    /// What files the run was put together from, and how; none when it is of one.
    pub joined: Option<JoinedFiles>,
    /// What the run ran on, as far as the input says.
    pub environment: Vec<Fact>,
    /// The processes that were recorded.
    pub processes: Vec<ProcessRow>,
    /// How long steps take; none without events.
    pub steps: Option<StepSummary>,
    /// Where a step's time goes, on average over complete steps; none without steps.
    pub step_breakdown: Option<Breakdown>,
    /// What ranks do to each other; none of a single rank or a window, or where they have nothing together.
    pub ranks_together: Option<RanksTogether>,
    /// Where each device's time goes.
    pub devices: Vec<DeviceTime>,
    /// The operators that take the most time.
    pub operators: Top,
    /// The kernels that take the most time.
    pub kernels: Top,
    /// What is doubtful or incomplete, the most severe first.
    pub findings: Vec<FindingRow>,
    /// What to type to learn more.
    pub next: Vec<NextCommand>,
}

impl Report {
    /// The ranks that were asked for, as a person types them; none is all.
    pub fn asked_ranks(&self) -> Option<String> {
        self.rank.map(|rank| rank.to_string()).or_else(|| self.ranks.clone())
    }

    /// The report as JSON, on one line.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a report holds only what JSON can say")
    }
}

/// Sums up the part of `run` that was asked for. `input` is what a person types to name the run.
///
/// # Errors
/// [`EngineError::UnknownRank`], [`EngineError::UnknownStep`]; what the readers say of files that are read for it.
pub fn report(run: &OpenedRun, selection: &Selection, input: &str) -> Result<Report, EngineError> {
    check_selection(run.trace(), selection)?;
    let asked = run.trace().ranks().into_iter().filter(|rank| selection.has_rank(*rank)).count();
    let together = match asked > 1 && selection.window.is_none() {
        true => run.with_context(selection, Needs::Condensed, ranks::ranks_together)?,
        false => None,
    };
    run.with_context(selection, Needs::RowsTogether, |context| of_rows(run.trace(), context, together, input))
}

/// The report on a run of which `trace` has at least what is condensed, from the rows in `context`.
fn of_rows(trace: &Trace, context: &AnalysisContext<'_>, together: Option<RanksTogether>, input: &str) -> Report {
    let selection = context.selection;
    let (operators, kernels, (advice, coverage), devices, steps) = thread::scope(|scope| {
        let operators = scope.spawn(|| operators::rows(context));
        let kernels = scope.spawn(|| kernels::rows(context));
        let advice = scope.spawn(|| (AdviceRow::first_of_each(context), ReportCoverage::of(context)));
        let devices = devices::device_times(trace, &temporal_breakdown::rows(context));
        let steps = step_breakdown::rows(context);
        (result_of(operators), result_of(kernels), result_of(advice), devices, steps)
    });
    let step_summary = steps::step_summary(&steps);
    let step_breakdown = steps::step_breakdown(&steps);
    let mut report = Report {
        schema: SCHEMA,
        run: RunIdentity::of(trace),
        rank: selection.ranks.only(),
        ranks: selection.ranks.text().filter(|_| selection.ranks.only().is_none()),
        step: selection.step,
        verdict: Vec::new(),
        healthy: coverage.healthy(&advice, step_summary.as_ref(), step_breakdown.as_ref()),
        advice,
        coverage,
        span_ns: trace.span().map(|span| span.duration_ns()),
        joined: joined::joined_files(trace),
        environment: environment(trace, &devices),
        processes: processes::process_rows(trace, selection),
        steps: step_summary,
        step_breakdown,
        operators: top::top_operators(operators, &devices),
        kernels: top::top_kernels(kernels),
        ranks_together: together,
        devices,
        findings: finding_rows(&trace.findings),
        next: Vec::new(),
    };
    report.verdict = verdict::verdict(&report);
    report.next = next::next_commands(&report, input, has_stacks(context));
    report
}

fn result_of<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// The facts that a person looks for first, then the devices that did something; all known ones when none did; when none is
/// known, those that the machine has.
fn environment(trace: &Trace, devices: &[DeviceTime]) -> Vec<Fact> {
    const NOT_RECORDED: &str = "GPU (not recorded)";
    const SHOWN: [(&str, &str); 8] = [
        ("host", "host"),
        ("host_name", "host"),
        ("cpu", "CPU"),
        ("python_version", "Python"),
        ("torch_version", "PyTorch"),
        ("cuda_version", "CUDA"),
        ("nccl_version", "NCCL"),
        ("gpus", NOT_RECORDED),
    ];
    let value_of = |key: &str| trace.facts.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
    let fact = |(key, name): &(&str, &'static str)| Some(Fact { name, value: value_of(key)? });
    let mut shown: Vec<Fact> = SHOWN.iter().filter_map(fact).filter(|fact| !fact.value.is_empty()).collect();
    let used = devices.iter().filter_map(|device| device.name.clone());
    let known = trace.devices.iter().filter_map(|device| device.name.clone());
    let names: Vec<String> = if devices.is_empty() { known.collect() } else { used.collect() };
    if !names.is_empty() {
        shown.retain(|fact| fact.name != NOT_RECORDED);
    }
    let mut counted: Vec<(String, usize)> = Vec::new();
    for name in names {
        match counted.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counted.push((name, 1)),
        }
    }
    let times = |(name, count): (String, usize)| if count > 1 { format!("{count} × {name}") } else { name };
    shown.extend(counted.into_iter().map(|device| Fact { name: "GPU", value: times(device) }));
    shown
}

#[cfg(test)]
mod tests;

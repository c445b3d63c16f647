//! What to type to learn more.

use super::Report;
use serde::Serialize;

/// One command worth typing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NextCommand {
    /// The command.
    pub command: String,
    /// What it shows.
    pub shows: String,
}

/// A step this much longer than the mean is worth a look.
const SLOW_STEP: (i64, i64) = (5, 4);

/// `has_stacks` where allocations have call stacks.
pub(super) fn next_commands(report: &Report, input: &str, has_stacks: bool) -> Vec<NextCommand> {
    let rank = report.asked_ranks().map(|ranks| format!(" --rank {ranks}")).unwrap_or_default();
    let mut next = Vec::new();
    let mut add = |command: String, shows: String| next.push(NextCommand { command, shows });
    if let Some(steps) = report.steps.as_ref().filter(|steps| steps.count > 1) {
        let (numerator, denominator) = SLOW_STEP;
        let slowest = &steps.slowest;
        if slowest.total_ns * denominator > steps.mean_ns * numerator {
            let rank = format!(" --rank {}", slowest.rank);
            let rank = if report.run.ranks.len() > 1 { rank } else { String::new() };
            add(format!("stepscope report {input}{rank} --step {}", slowest.step), "the slowest step alone".into());
        }
        add(format!("stepscope analyze step_breakdown {input}{rank}"), "every step".into());
    }
    let step = report.step.map(|step| format!(" --step {step}")).unwrap_or_default();
    if report.operators.count > report.operators.table.len() {
        let shows = format!("all {} operators", report.operators.count);
        add(format!("stepscope analyze operators {input}{rank}{step}"), shows);
    }
    if report.kernels.count > 0 {
        add(format!("stepscope analyze kernels {input}{rank}{step}"), "kernels in detail".into());
    }
    if has_stacks {
        let command = format!("stepscope analyze memory_peak {input}{rank}{step} --group-by stack");
        add(command, "memory at its peak, by stack".into());
    }
    if report.findings.iter().any(|finding| !finding.examples.is_empty()) {
        add(format!("stepscope analyze findings {input}"), "with examples".into());
    }
    next
}

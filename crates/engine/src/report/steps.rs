//! How long steps take and where their time goes, from `step_breakdown`.

use super::Breakdown;
use serde::Serialize;
use stepscope_analyses::step_breakdown::StepBreakdown;

/// One step.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StepTime {
    /// Its rank.
    pub rank: u32,
    /// Its number, as the job counts.
    pub step: i64,
    /// How long it took.
    pub total_ns: i64,
    /// False when recording began or ended inside it.
    pub is_complete: bool,
}

/// How long steps take. Numbers are over complete steps, or over all when none is complete.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StepSummary {
    /// How their limits are known: `label`, inferred from `optimizer` or `kernels`, or `whole` when nothing marks steps.
    pub source: &'static str,
    /// Steps in the selection.
    pub count: usize,
    /// Of them, those cut by the start or the end of recording.
    pub incomplete_count: usize,
    /// Mean duration.
    pub mean_ns: i64,
    /// Shortest.
    pub min_ns: i64,
    /// Longest.
    pub max_ns: i64,
    /// The longest one.
    pub slowest: StepTime,
    /// Every step, in order of rank and start; none where they are not wanted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepTime>,
}

impl StepSummary {
    /// How many steps the numbers are over.
    pub fn averaged_count(&self) -> usize {
        if self.incomplete_count < self.count { self.count - self.incomplete_count } else { self.count }
    }
}

impl StepTime {
    fn of(row: &StepBreakdown) -> Option<Self> {
        let is_complete = row.is_complete == Some(true);
        Some(Self { rank: row.rank, step: row.step?, total_ns: row.total_ns, is_complete })
    }
}

/// The rows that averages are over: complete steps, or all when none is complete.
fn averaged(rows: &[StepBreakdown]) -> Vec<&StepBreakdown> {
    let complete: Vec<&StepBreakdown> = rows.iter().filter(|row| row.is_complete == Some(true)).collect();
    if complete.is_empty() { rows.iter().filter(|row| row.step.is_some()).collect() } else { complete }
}

pub(super) fn step_summary(rows: &[StepBreakdown]) -> Option<StepSummary> {
    let averaged = averaged(rows);
    let slowest = averaged.iter().rev().max_by_key(|row| row.total_ns)?;
    let times = averaged.iter().map(|row| row.total_ns);
    let steps: Vec<StepTime> = rows.iter().filter_map(StepTime::of).collect();
    Some(StepSummary {
        source: slowest.source?.as_str(),
        count: steps.len(),
        incomplete_count: steps.iter().filter(|step| !step.is_complete).count(),
        mean_ns: times.clone().sum::<i64>() / averaged.len() as i64,
        min_ns: times.clone().min()?,
        max_ns: times.max()?,
        slowest: StepTime::of(slowest)?,
        steps,
    })
}

/// Of one rank, the analysis' own average; of several, the average over the steps of all.
pub(super) fn step_breakdown(rows: &[StepBreakdown]) -> Option<Breakdown> {
    let averages: Vec<&StepBreakdown> = rows.iter().filter(|row| row.step.is_none()).collect();
    let rows = if averages.len() == 1 { averages } else { averaged(rows) };
    let mean = |of: fn(&StepBreakdown) -> i64| rows.iter().map(|row| of(row)).sum::<i64>() / rows.len().max(1) as i64;
    let parts = [
        ("kernel", mean(|row| row.kernel_ns)),
        ("comm", mean(|row| row.comm_ns)),
        ("memcpy", mean(|row| row.memcpy_ns)),
        ("memset", mean(|row| row.memset_ns)),
        ("runtime", mean(|row| row.runtime_ns)),
        ("dataloader", mean(|row| row.dataloader_ns)),
        ("io", mean(|row| row.io_ns)),
        ("cpu", mean(|row| row.cpu_ns)),
        ("other", mean(|row| row.other_ns)),
    ];
    let total_ns = parts.iter().map(|(_, ns)| ns).sum();
    (!rows.is_empty()).then(|| Breakdown::new(total_ns, parts))
}

//! How long steps take and where their time goes, from `step_breakdown`.

use super::Breakdown;
use crate::cells::Cells;
use crate::{Selection, Table, Trace};
use serde::Serialize;
use stepscope_trace::{Step, StepSource};

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

/// The classes of `step_breakdown`, in its order.
const CLASSES: [(&str, &str); 9] = [
    ("kernel", "kernel_ns"),
    ("comm", "comm_ns"),
    ("memcpy", "memcpy_ns"),
    ("memset", "memset_ns"),
    ("runtime", "runtime_ns"),
    ("dataloader", "dataloader_ns"),
    ("io", "io_ns"),
    ("cpu", "cpu_ns"),
    ("other", "other_ns"),
];

/// One row of the analysis that is a step, not an average.
struct Row {
    row: usize,
    step: StepTime,
    source: StepSource,
}

/// The rows of `table` that stand for the steps asked for.
fn rows(trace: &Trace, selection: &Selection, table: &Table) -> Vec<Row> {
    let known: Vec<&Step> = selection.steps(trace).collect();
    // Rows have the order of steps: the one that is meant is next, of half a million too.
    let mut next = 0;
    let row = |row: usize| {
        let number = table.int_at("step", row)?;
        let rank = table.int_at("rank", row);
        let start_ns = table.int_at("start_ns", row);
        let is_same = |at: &usize| {
            let step = known[*at];
            let is_rank = rank.is_none_or(|rank| rank == i64::from(step.rank));
            is_rank && step.number == number && start_ns.is_none_or(|start_ns| start_ns == step.span.start_ns)
        };
        let at = (next..known.len()).chain(0..next).find(is_same)?;
        next = at + 1;
        let step = known[at];
        let total_ns = table.int_at("total_ns", row)?;
        let time = StepTime { rank: step.rank, step: number, total_ns, is_complete: step.is_complete };
        Some(Row { row, step: time, source: step.source })
    };
    (0..table.len()).filter_map(row).collect()
}

/// The rows that averages are over: complete steps, or all when none is complete.
fn averaged(rows: &[Row]) -> Vec<&Row> {
    let complete: Vec<&Row> = rows.iter().filter(|row| row.step.is_complete).collect();
    if complete.is_empty() { rows.iter().collect() } else { complete }
}

pub(super) fn step_summary(trace: &Trace, selection: &Selection, table: &Table) -> Option<StepSummary> {
    let rows = rows(trace, selection, table);
    let averaged = averaged(&rows);
    let slowest = averaged.iter().rev().max_by_key(|row| row.step.total_ns)?;
    let times = averaged.iter().map(|row| row.step.total_ns);
    Some(StepSummary {
        source: slowest.source.as_str(),
        count: rows.len(),
        incomplete_count: rows.iter().filter(|row| !row.step.is_complete).count(),
        mean_ns: times.clone().sum::<i64>() / averaged.len() as i64,
        min_ns: times.clone().min()?,
        max_ns: times.max()?,
        slowest: slowest.step.clone(),
        steps: rows.iter().map(|row| row.step.clone()).collect(),
    })
}

/// Of one rank, the analysis' own average; of several, the average over the steps of all.
pub(super) fn step_breakdown(trace: &Trace, selection: &Selection, table: &Table) -> Option<Breakdown> {
    let averages: Vec<usize> = (0..table.len()).filter(|row| table.int_at("step", *row).is_none()).collect();
    let steps = rows(trace, selection, table);
    let rows: Vec<usize> = match averages.as_slice() {
        [average] => vec![*average],
        _ => averaged(&steps).iter().map(|row| row.row).collect(),
    };
    let sum = |column: &str| rows.iter().filter_map(|row| table.int_at(column, *row)).sum::<i64>();
    let parts = CLASSES.map(|(class, column)| (class, sum(column) / rows.len().max(1) as i64));
    let total_ns = parts.iter().map(|(_, ns)| ns).sum();
    (!rows.is_empty()).then(|| Breakdown::new(total_ns, parts))
}

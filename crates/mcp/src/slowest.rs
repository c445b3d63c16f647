//! What takes the most time, of each kind: which analysis has it, in which order, and which of its columns tell.

use crate::failure::Failure;
use crate::pages::{Asked, Page};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use stepscope_engine::{OpenedRun, Selection, Table, Values, find_analysis, report, with_rows};

/// A kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    Operators,
    Kernels,
    Steps,
    Modules,
    Collectives,
    Files,
}

impl What {
    /// The analysis that has it.
    pub(crate) fn analysis(self) -> &'static str {
        match self {
            Self::Operators => "operators",
            Self::Kernels => "kernels",
            Self::Steps => "step_breakdown",
            Self::Modules => "modules",
            Self::Collectives => "collectives",
            Self::Files => "io_files",
        }
    }

    /// The columns that tell.
    pub(crate) fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Operators => &["name", "count", "host_self_ns", "host_total_ns", "device_self_ns", "device_total_ns"],
            Self::Kernels => &["name", "count", "total_ns", "mean_ns", "max_ns", "kind"],
            Self::Steps => &[
                "rank",
                "step",
                "total_ns",
                "kernel_ns",
                "comm_ns",
                "memcpy_ns",
                "memset_ns",
                "runtime_ns",
                "dataloader_ns",
                "io_ns",
                "cpu_ns",
                "other_ns",
                "is_complete",
            ],
            Self::Modules => &["path", "count", "forward_host_total_ns", "backward_host_total_ns", "device_total_ns"],
            Self::Collectives => {
                &["rank", "name", "group", "size_bytes", "calls", "device_ns", "exposed_ns", "work_ns", "host_ns"]
            }
            Self::Files => &["rank", "file", "count", "total_ns", "read_bytes", "write_bytes", "errors"],
        }
    }

    /// What decides the order: of several the first that is not 0 throughout.
    pub(crate) fn measures(self) -> &'static [&'static str] {
        match self {
            Self::Operators => &["device_self_ns", "host_self_ns"],
            Self::Kernels | Self::Steps | Self::Files => &["total_ns"],
            Self::Modules => &["device_total_ns", "forward_host_total_ns"],
            Self::Collectives => &["device_ns", "work_ns", "host_ns"],
        }
    }
}

/// The rows that take the most time, as JSON.
///
/// # Errors
/// When events that are needed cannot be read.
pub(crate) fn slowest(run: &OpenedRun, what: What, limit: Option<usize>) -> Result<String, Failure> {
    let all = Selection::default();
    // Which side of operators takes the time is decided as in the report.
    let by = match what {
        What::Operators => Some(report::report(run, &all, "")?.operators.by),
        _ => None,
    };
    let mut envelope = run.analyze(find_analysis(what.analysis())?, &all)?;
    if what == What::Steps {
        envelope.results = without_means(&envelope.results);
    }
    let by = by.unwrap_or_else(|| measure(&envelope.results, what.measures()));
    let columns = what.columns().iter().map(ToString::to_string).collect();
    Ok(Page::of_result(envelope, &Asked { columns, sort: Some(by.into()), limit, ..Asked::default() })?.to_json())
}

/// The rows of `table` that are one step each.
fn without_means(table: &Table) -> Table {
    let is_step = |row: &usize| match table.column("step").map(|column| &column.values) {
        Some(Values::Int(steps)) => steps[*row].is_some(),
        _ => true,
    };
    with_rows(table, &(0..table.len()).filter(is_step).collect::<Vec<_>>())
}

/// The first of `names` with a value that is not 0; the last where there is none.
fn measure(table: &Table, names: &[&'static str]) -> &'static str {
    let tells = |name: &&&str| match table.column(name).map(|column| &column.values) {
        Some(Values::Int(values)) => values.iter().flatten().any(|value| *value != 0),
        _ => false,
    };
    names.iter().find(tells).or(names.last()).copied().unwrap_or_default()
}

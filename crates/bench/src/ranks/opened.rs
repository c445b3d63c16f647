//! A folder of ranks opened once, in this process: the report, and every analysis of several ranks; time and memory.

use crate::resources::{Spent, peak_resident_bytes, timed};
use serde::{Deserialize, Serialize};
use std::path::Path;
use stepscope_analyses::stragglers::stragglers;
use stepscope_analyses::{AnalysisContext, Selection};
use stepscope_engine::{find_analysis, open_run, report};

/// What a person asks of a job of several ranks.
pub(super) const ANALYSES: [&str; 10] = [
    "ranks_overview",
    "collectives",
    "stragglers",
    "lateness",
    "imbalance",
    "bubbles",
    "layout",
    "what_if",
    "hangs",
    "clock_residuals",
];

/// What opening a job took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Opened {
    /// All of it.
    pub(super) all: Spent,
    /// Reading the files, and putting ranks on one clock.
    pub(super) open: Spent,
    /// The report.
    pub(super) report: Spent,
    /// Each of [`ANALYSES`], what they share counted with the first that needs it.
    pub(super) analyses: Vec<Spent>,
    /// The most memory of the process, and when it had only opened the files.
    pub(super) peak_bytes: Option<u64>,
    pub(super) peak_open_bytes: Option<u64>,
    /// Slices of the trace, and ranks.
    pub(super) slices: u64,
    pub(super) ranks: u64,
    /// The first row of `stragglers`.
    pub(super) straggler: Option<u32>,
}

/// Opens and analyzes.
pub(super) fn measure(folder: &Path) -> Result<Opened, String> {
    let selection = Selection::default();
    let (opened, all) = timed(|| -> Result<_, String> {
        let (trace, open) = timed(|| open_run(&[folder]));
        let trace = trace.map_err(|error| error.to_string())?;
        let peak_open_bytes = peak_resident_bytes();
        let (told, report) = timed(|| report::report(&trace, &selection, "job"));
        told.map_err(|error| error.to_string())?;
        let context = AnalysisContext::new(&trace, &selection);
        let analyses = ANALYSES.map(|name| {
            let analysis = find_analysis(name).map_err(|error| error.to_string())?;
            Ok(timed(|| drop((analysis.run)(&context))).1)
        });
        let analyses = analyses.into_iter().collect::<Result<Vec<Spent>, String>>()?;
        drop(context);
        Ok((trace, open, report, analyses, peak_open_bytes))
    });
    let (trace, open, report, analyses, peak_open_bytes) = opened?;
    let peak_bytes = peak_resident_bytes();
    Ok(Opened {
        all,
        open,
        report,
        analyses,
        peak_bytes,
        peak_open_bytes,
        slices: trace.slices.len() as u64,
        ranks: trace.ranks().len() as u64,
        straggler: stragglers(&trace, &selection).first().map(|row| row.rank),
    })
}

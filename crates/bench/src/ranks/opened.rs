//! A folder of ranks opened once, in this process, the report and every analysis of several ranks; time and memory.

use crate::resources::{Spent, peak_resident_bytes, timed};
use serde::{Deserialize, Serialize};
use std::path::Path;
use stepscope_engine::report::report;
use stepscope_engine::{EngineError, OpenOptions, OpenedRun, Progress, Selection, Values, find_analysis};

/// What a person asks of a job of several ranks: the report, and analyses.
pub(super) const QUESTIONS: [&str; 11] = [
    REPORT,
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

const REPORT: &str = "report";

/// What opening a job took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Opened {
    /// All of it.
    pub(super) all: Spent,
    /// Reading the files, and putting ranks on one clock.
    pub(super) open: Spent,
    /// Each of [`QUESTIONS`], what they share counted with the first that needs it.
    pub(super) answers: Vec<Spent>,
    /// The most memory of the process, and when it had only opened the files.
    pub(super) peak_bytes: Option<u64>,
    pub(super) peak_open_bytes: Option<u64>,
    /// Slices that were held, and ranks.
    pub(super) slices: u64,
    pub(super) ranks: u64,
    /// The first row of `stragglers`.
    pub(super) straggler: Option<u32>,
}

/// Opens and analyzes.
pub(super) fn measure(folder: &Path) -> Result<Opened, String> {
    let selection = Selection::default();
    let (opened, all) = timed(|| -> Result<_, String> {
        let told = |error: EngineError| error.to_string();
        let (run, open) = timed(|| OpenedRun::open(&[folder], &OpenOptions::default(), &Progress::default()));
        let run = run.map_err(told)?;
        let peak_open_bytes = peak_resident_bytes();
        let answers = QUESTIONS.map(|name| {
            let (answer, spent) = timed(|| match name {
                REPORT => report(&run, &selection, "RUN").map(drop),
                name => run.analyze(find_analysis(name)?, &selection).map(drop),
            });
            answer.map_err(told)?;
            Ok(spent)
        });
        let answers = answers.into_iter().collect::<Result<Vec<Spent>, String>>()?;
        let first = run.analyze(find_analysis("stragglers").map_err(told)?, &selection).map_err(told)?.results;
        let straggler = match first.column("rank").map(|column| &column.values) {
            Some(Values::Int(ranks)) => ranks.first().copied().flatten().and_then(|rank| u32::try_from(rank).ok()),
            _ => None,
        };
        Ok((run, open, straggler, answers, peak_open_bytes))
    });
    let (run, open, straggler, answers, peak_open_bytes) = opened?;
    let peak_bytes = peak_resident_bytes();
    Ok(Opened {
        all,
        open,
        answers,
        peak_bytes,
        peak_open_bytes,
        slices: run.trace().slices.len() as u64,
        ranks: run.trace().ranks().len() as u64,
        straggler,
    })
}

//! `analyze FILE`: opens a trace once, then times each analysis of the catalogue alone, and all together, which share
//! what they have in common and run on all processors.

use crate::resources::{Spent, median, timed};
use crate::text_table::{TextTable, grouped};
use serde::Serialize;
use std::path::{Path, PathBuf};
use stepscope_analyses::{Analysis, AnalysisContext, Selection, catalogue};
use stepscope_engine::outcomes;

/// What `analyze` is told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Trace to analyze
    file: PathBuf,
    /// How often each analysis runs; the run in the middle counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What the analyses took on one trace.
#[derive(Debug, Serialize)]
pub(crate) struct Analyzed {
    /// The trace.
    pub(crate) file: PathBuf,
    /// Its slices.
    pub(crate) slices: u64,
    /// Opening it, once.
    pub(crate) open: Spent,
    /// Each analysis.
    pub(crate) analyses: Vec<Row>,
    /// All of them together.
    pub(crate) all: Spent,
}

/// One analysis.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    /// Its name in the catalogue.
    pub(crate) name: &'static str,
    /// Rows of its result.
    pub(crate) rows: usize,
    /// What it took.
    pub(crate) spent: Spent,
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let analyzed = measure(&arguments.file, arguments.repeat)?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&analyzed).expect("plain data"));
    } else {
        print!("{}", text(&analyzed));
    }
    Ok(())
}

/// Opens and analyzes a trace.
pub(crate) fn measure(file: &Path, repeat: u32) -> Result<Analyzed, String> {
    let (trace, open) = timed(|| stepscope_import::open(file));
    let trace = trace.map_err(|error| error.to_string())?;
    let everything = Selection::default();
    let mut analyses = Vec::new();
    for analysis in catalogue() {
        let runs =
            (0..repeat).map(|_| timed(|| (analysis.run)(&AnalysisContext::new(&trace, &everything)).table.len()));
        let (rows, runs): (Vec<usize>, Vec<Spent>) = runs.unzip();
        analyses.push(Row { name: analysis.name, rows: rows[0], spent: median(runs) });
    }
    let catalogue: Vec<&Analysis> = catalogue().iter().collect();
    let all = (0..repeat).map(|_| timed(|| drop(outcomes(&AnalysisContext::new(&trace, &everything), &catalogue))).1);
    let all = median(all.collect());
    Ok(Analyzed { file: file.into(), slices: trace.slices.len() as u64, open, analyses, all })
}

/// As a table.
pub(crate) fn text(analyzed: &Analyzed) -> String {
    let mut table = TextTable::new(&["analysis", "wall ms", "CPU ms", "rows"]);
    let ms = |s: f64| format!("{:.1}", s * 1e3);
    let mut add = |name: &str, spent: Spent, rows: String| {
        table.add(vec![name.into(), ms(spent.wall_s), ms(spent.cpu_s), rows]);
    };
    add("(opening)", analyzed.open, String::new());
    analyzed.analyses.iter().for_each(|row| add(row.name, row.spent, grouped(row.rows as u64)));
    add("all together", analyzed.all, String::new());
    format!("{}: {} slices\n{}", analyzed.file.display(), grouped(analyzed.slices), table.text())
}

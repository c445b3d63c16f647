//! `stepscope analyze`: one analysis, or the list of them.

use crate::Ending;
use crate::color::{DIM, HEADING};
use crate::failure::Failure;
use crate::line_wrap::wrap;
use crate::opening::{self, JoinArguments, MemoryArgument};
use crate::output::{deliver, line_width};
use crate::report::{PartArguments, advice_with_evidence, examples_text, findings_text};
use clap::Args;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use stepscope_engine::report::AdviceRow;
use stepscope_engine::{
    self as engine, Column, EngineError, Envelope, OpenedRun, OptionTexts, Selection, Trace, finding_rows, text_table,
    to_csv, unit_word,
};
use stepscope_export as export;

/// Run one analysis on a run or a trace file; without a name, list the analyses
#[derive(Args)]
#[command(after_help = "\
Examples:
  stepscope analyze
  stepscope analyze operators --columns
  stepscope analyze operators stepscope-runs/20260101-120000-train --sort host_self_ns --limit 20
  stepscope analyze kernels trace.json.gz --csv -o kernels.csv
  stepscope analyze kernels trace.json.gz --parquet kernels.parquet")]
pub(crate) struct AnalyzeArguments {
    /// The analysis
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// A run folder, a trace file, or a folder of the traces of ranks; several, a pattern such as 'rank*.json', or @FILE
    /// with a path on each line are the ranks of one job
    #[arg(value_name = "RUN")]
    runs: Vec<PathBuf>,
    #[command(flatten)]
    part: PartArguments,
    #[command(flatten)]
    joined: JoinArguments,
    #[command(flatten)]
    memory: MemoryArgument,
    /// What a row stands for: name, shapes, stack, module, category, line, file, process, class or properties, where the
    /// analysis accepts it
    #[arg(long, value_name = "WHAT")]
    group_by: Option<String>,
    /// Use another tool's definition, tb, hta, dfanalyzer or deepspeed, where the analysis knows it
    #[arg(long, value_name = "TOOL")]
    compat: Option<String>,
    /// Width of a curve's buckets in milliseconds
    #[arg(long, value_name = "MS")]
    bucket: Option<String>,
    /// How deep a tree is shown, where rows are one: 0 for its roots alone
    #[arg(long, value_name = "N")]
    depth: Option<String>,
    /// Of each depth of a tree only the N rows that are most of it, by each of its measures
    #[arg(long, value_name = "N")]
    top: Option<String>,
    /// Order by this column: the largest numbers first, texts from A to Z
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,
    /// Print what each column of the analysis means; needs no run. With --parquet, a file with the columns and without rows
    #[arg(long, conflicts_with_all = ["json", "csv", "markdown"])]
    columns: bool,
    /// Only the first N rows
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print JSON: the rows with what they mean and what they rest on
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
    /// Print Markdown
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    markdown: bool,
    /// Write Parquet to FILE; definitions of columns go into its metadata
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "csv", "markdown", "output"])]
    parquet: Option<PathBuf>,
    /// Write to FILE instead of the terminal
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Carries `stepscope analyze` out.
pub(crate) fn analyze(arguments: &AnalyzeArguments) -> Ending {
    let Some(name) = &arguments.name else {
        let list = if arguments.json { list_json() } else { list_text(line_width()) };
        deliver(&list, arguments.output.as_deref())?;
        return Ok(0);
    };
    let analysis = engine::find_analysis(name).map_err(|error| about_name(error, name))?;
    let texts = OptionTexts {
        group_by: arguments.group_by.clone(),
        compat: arguments.compat.clone(),
        bucket_ms: arguments.bucket.clone(),
        depth: arguments.depth.clone(),
        top: arguments.top.clone(),
    };
    let selection = engine::with_options(analysis, arguments.part.selection()?, &texts)?;
    if let (true, Some(file)) = (arguments.columns, &arguments.parquet) {
        let of_nothing = engine::with_options(analysis, Selection::default(), &texts)?;
        let envelope = OpenedRun::of(Trace::default()).analyze(analysis, &of_nothing)?;
        export::Destination::write(file, |out| export::write_result(&envelope, out))?;
        return Ok(0);
    }
    if arguments.columns {
        deliver(&columns_text(&analysis.columns(&selection), line_width()), arguments.output.as_deref())?;
        return Ok(0);
    }
    let run = opening::open(&arguments.runs, &arguments.memory.with(arguments.joined.options()))?;
    let mut envelope = run.analyze(analysis, &selection)?;
    let count = envelope.results.len();
    let mut order: Vec<usize> = (0..count).collect();
    if let Some(column) = &arguments.sort {
        let column = engine::find_column(&envelope.results, column, envelope.analysis)?;
        engine::sort_rows(&envelope.results, &mut order, column, false);
    }
    order.truncate(arguments.limit.unwrap_or(count));
    if arguments.sort.is_some() || order.len() < count {
        envelope.results = engine::with_rows(&envelope.results, &order);
    }
    if let Some(file) = &arguments.parquet {
        export::Destination::write(file, |out| export::write_result(&envelope, out))?;
        return Ok(0);
    }
    let text = match (arguments.json, arguments.csv, arguments.markdown) {
        (true, ..) => envelope.to_json() + "\n",
        (_, true, _) => to_csv(&envelope.results),
        (.., true) => export::result_markdown(&envelope),
        _ => {
            let width = line_width();
            let rows = match envelope.analysis {
                "findings" => Some(examples_text(&in_order(&finding_rows(&envelope.findings), &order), width)),
                "advice" => {
                    let rows = run.with_context(&selection, analysis.needs, AdviceRow::all)?;
                    Some(advice_with_evidence(&in_order(&rows, &order), width))
                }
                _ => None,
            };
            envelope_text(&envelope, rows, count, width)
        }
    };
    deliver(&text, arguments.output.as_deref())?;
    Ok(0)
}

/// The failure of naming an analysis; somebody who gave a run instead is told so.
fn about_name(error: EngineError, name: &str) -> Failure {
    let failure = Failure::from(error);
    match Path::new(name).exists() {
        true => failure.hint(format!("name an analysis first: stepscope analyze operators {name}")),
        false => failure,
    }
}

/// Every analysis with its definition, as JSON.
fn list_json() -> String {
    let analyses = engine::catalogue().iter().map(|analysis| {
        let (name, definition, is_by_rank) = (analysis.name, analysis.definition(), analysis.needs.is_by_rank());
        serde_json::json!({"name": name, "definition": definition, "is_by_rank": is_by_rank})
    });
    format!("{}\n", serde_json::Value::from_iter(analyses))
}

/// Every analysis with its definition.
fn list_text(width: usize) -> String {
    let analyses = engine::list_analyses();
    let name_width = analyses.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, definition) in analyses {
        let lines = wrap(&definition, width - name_width - 2);
        let names = std::iter::once(name).chain(std::iter::repeat(""));
        for (line, name) in lines.iter().zip(names) {
            let _ = writeln!(text, "{HEADING}{name:name_width$}{HEADING:#}  {line}");
        }
    }
    text
}

/// Every column with its unit and what it means.
fn columns_text(columns: &[Column], width: usize) -> String {
    let longest = |texts: &mut dyn Iterator<Item = &str>| texts.map(str::len).max().unwrap_or(0);
    let name_width = longest(&mut columns.iter().map(|column| column.name).chain(["column"]));
    let unit_width = longest(&mut columns.iter().map(unit_word).chain(["unit"]));
    let doc_width = width.saturating_sub(name_width + unit_width + 4).max(30);
    let mut text = format!("{HEADING}{:name_width$}  {:unit_width$}  meaning{HEADING:#}\n", "column", "unit");
    for column in columns {
        let (mut name, mut unit) = (column.name, unit_word(column));
        for line in wrap(column.doc, doc_width) {
            let _ = writeln!(text, "{HEADING}{name:name_width$}{HEADING:#}  {unit:unit_width$}  {line}");
            (name, unit) = ("", "");
        }
    }
    text
}

fn in_order<T: Clone>(rows: &[T], order: &[usize]) -> Vec<T> {
    order.iter().map(|row| rows[*row].clone()).collect()
}

/// The result as `rows`, or else as a table, with what it means above and what is doubtful about it below. `count` rows
/// in the whole.
pub(crate) fn envelope_text(envelope: &Envelope, rows: Option<String>, count: usize, width: usize) -> String {
    let mut text = format!("{HEADING}{}{HEADING:#}\n", envelope.analysis);
    for line in wrap(&envelope.definition, width) {
        let _ = writeln!(text, "{DIM}{line}{DIM:#}");
    }
    text.push('\n');
    let mut remarks = Vec::new();
    if let Some(rows) = rows {
        text.push_str(&rows);
    } else {
        let table = text_table(&envelope.results, width);
        table.heading.iter().for_each(|line| text.push_str(&format!("{HEADING}{line}{HEADING:#}\n")));
        table.rows.iter().for_each(|line| text.push_str(&format!("{line}\n")));
        if !table.zero.is_empty() {
            remarks.push(format!("0 throughout: {}", table.zero.join(", ")));
        }
        if !table.left_out.is_empty() {
            remarks.push(format!("no room for {}: use --csv or --json", table.left_out.join(", ")));
        }
    }
    if envelope.results.is_empty() {
        remarks.push("nothing in this run to show".to_string());
    }
    if envelope.results.len() < count {
        remarks.push(format!("the first {} of {count} rows", envelope.results.len()));
    }
    for remark in remarks {
        wrap(&remark, width).iter().for_each(|line| text.push_str(&format!("{DIM}{line}{DIM:#}\n")));
    }
    let doubts = findings_text(&finding_rows(&envelope.findings), width);
    if envelope.analysis != "findings" && !doubts.is_empty() {
        let _ = write!(text, "\n{doubts}");
    }
    text
}

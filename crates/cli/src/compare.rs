//! `stepscope compare`: two runs, or two ranks of one, side by side.

mod breakdown_text;
mod fail_if;
mod summary;

pub(crate) use breakdown_text::{as_table, breakdown_text};
pub(crate) use fail_if::{is_beyond, slower_by};
pub(crate) use summary::says;

use crate::Ending;
use crate::analyze::envelope_text;
use crate::condition::Condition;
use crate::failure::Failure;
use crate::opening;
use crate::output::{deliver, line_width};
use clap::Args;
use std::path::PathBuf;
use stepscope_engine::{self as engine, Compared, EngineError, Envelope, OpenOptions, OpenedRun, Selection};
use stepscope_export as export;
use summary::{SECTIONS, sentence, summary_text};

/// What a `--fail-if` that held ends with.
const HELD: i32 = 3;

/// Put two runs side by side: how long steps take, whether the difference may be chance, and what changed
#[derive(Args)]
#[command(after_help = "\
Examples:
  stepscope compare runs/before runs/after
  stepscope compare before.json.gz after.json.gz --what kernels --csv -o kernels.csv
  stepscope compare runs/a runs/a --rank-a 0 --rank-b 1
  stepscope compare runs/main runs/change --fail-if 'step_ns > +3%'")]
pub(crate) struct CompareArguments {
    /// What was before: a run folder or a trace file
    #[arg(value_name = "A")]
    a: PathBuf,
    /// What is now; the same again to compare two of its ranks
    #[arg(value_name = "B")]
    b: PathBuf,
    /// steps, step_durations, step_breakdown, operators, operator_durations, operator_tree, call_tree, callers,
    /// kernels, kernel_durations, modules, outside_of_steps or setting; the largest changes without it
    #[arg(long, value_name = "WHAT", value_parser = what)]
    what: Option<Compared>,
    /// Only this rank of A
    #[arg(long, value_name = "R")]
    rank_a: Option<u32>,
    /// Only this rank of B
    #[arg(long, value_name = "R")]
    rank_b: Option<u32>,
    /// Order by this column: the largest numbers first, texts from A to Z
    #[arg(long, value_name = "COLUMN", requires = "what")]
    sort: Option<String>,
    /// Only the first N rows
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print JSON: the rows with what they mean; without --what, those of steps, step_breakdown, operators, kernels, modules,
    /// outside_of_steps and setting
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values
    #[arg(long, requires = "what")]
    csv: bool,
    /// Print Markdown
    #[arg(long, requires = "what", conflicts_with_all = ["json", "csv"])]
    markdown: bool,
    /// Write Parquet to FILE
    #[arg(long, value_name = "FILE", requires = "what", conflicts_with_all = ["json", "csv", "markdown", "output"])]
    parquet: Option<PathBuf>,
    /// Write to FILE instead of the terminal
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// End with 3 when steps are that much longer (>) or shorter (<), and it is significant: 'step_ns > +3%', 'step_ns > 5ms'
    #[arg(long, value_name = "CONDITION", value_parser = fail_if::parse)]
    fail_if: Option<Condition>,
}

fn what(text: &str) -> Result<Compared, String> {
    let known = || Compared::ALL.map(Compared::as_str).join(", ");
    Compared::from_name(text).ok_or_else(|| format!("there is no such thing to compare; there are {}", known()))
}

/// Carries `stepscope compare` out.
pub(crate) fn compare(arguments: &CompareArguments) -> Ending {
    let runs = Runs::open(arguments)?;
    match arguments.what {
        Some(what) => print_one(arguments, runs.compared(what)?)?,
        None => print_all(arguments, &runs)?,
    }
    match &arguments.fail_if {
        Some(condition) if fail_if::holds(condition, &runs.compared(Compared::Steps)?)? => Ok(HELD),
        _ => Ok(0),
    }
}

/// What is compared.
struct Runs {
    a: OpenedRun,
    /// Absent when it is the first one again.
    b: Option<OpenedRun>,
    of_a: Selection,
    of_b: Selection,
}

impl Runs {
    fn open(arguments: &CompareArguments) -> Result<Self, EngineError> {
        let a = opening::open(std::slice::from_ref(&arguments.a), &OpenOptions::default())?;
        let b = match arguments.a == arguments.b {
            true => None,
            false => Some(opening::open(std::slice::from_ref(&arguments.b), &OpenOptions::default())?),
        };
        let of_rank = |rank: Option<u32>| Selection { ranks: rank.into(), ..Selection::default() };
        Ok(Self { a, b, of_a: of_rank(arguments.rank_a), of_b: of_rank(arguments.rank_b) })
    }

    fn compared(&self, what: Compared) -> Result<Envelope, EngineError> {
        let b = self.b.as_ref().unwrap_or(&self.a);
        engine::compare((&self.a, &self.of_a), (b, &self.of_b), what)
    }
}

/// One thing that was asked for, in the form that was asked for.
fn print_one(arguments: &CompareArguments, mut envelope: Envelope) -> Result<(), Failure> {
    if let Some(column) = &arguments.sort {
        envelope.results = engine::sorted(&envelope.results, column, envelope.analysis)?;
    }
    let count = envelope.results.len();
    if let Some(limit) = arguments.limit {
        envelope.results = engine::limited(&envelope.results, limit);
    }
    if let Some(file) = &arguments.parquet {
        export::Destination::write(file, |out| export::write_result(&envelope, out))?;
        return Ok(());
    }
    let text = match (arguments.json, arguments.csv, arguments.markdown) {
        (true, ..) => envelope.to_json() + "\n",
        (_, true, _) => engine::to_csv(&envelope.results),
        (.., true) => export::result_markdown(&envelope),
        _ => {
            // A sentence has no room in a table.
            let says = sentence(&envelope, line_width());
            envelope.results.columns.retain(|column| column.name != "says");
            let below: String = says.iter().map(|line| format!("\n{line}")).collect();
            envelope_text(&envelope, None, count, line_width()) + &below + if below.is_empty() { "" } else { "\n" }
        }
    };
    deliver(&text, arguments.output.as_deref())
}

/// The sentence on steps and what changed most.
fn print_all(arguments: &CompareArguments, runs: &Runs) -> Result<(), Failure> {
    let steps = runs.compared(Compared::Steps)?;
    let breakdown = runs.compared(Compared::StepBreakdown)?;
    let sections = SECTIONS.map(|what| runs.compared(what).map(|envelope| (what, envelope)));
    let sections = sections.into_iter().collect::<Result<Vec<_>, _>>()?;
    let text = if arguments.json {
        let limited = |envelope: &Envelope| match arguments.limit {
            Some(limit) => Envelope { results: engine::limited(&envelope.results, limit), ..envelope.clone() },
            None => envelope.clone(),
        };
        let beside = [Compared::OutsideOfSteps, Compared::Setting].map(|what| Ok((what, runs.compared(what)?)));
        let beside = beside.into_iter().collect::<Result<Vec<_>, EngineError>>()?;
        let all = [(Compared::Steps, limited(&steps)), (Compared::StepBreakdown, limited(&breakdown))].into_iter();
        let all = all.chain(sections.iter().chain(&beside).map(|(what, envelope)| (*what, limited(envelope))));
        let fields = all.map(|(what, envelope)| format!("\"{}\":{}", what.as_str(), envelope.to_json()));
        format!("{{{}}}\n", fields.collect::<Vec<_>>().join(","))
    } else {
        summary_text(&steps, &breakdown, &sections, arguments, line_width())
    };
    deliver(&text, arguments.output.as_deref())
}

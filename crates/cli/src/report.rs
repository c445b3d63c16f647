//! `stepscope report`: what stands out in a run, for a person in a terminal.

mod advice_text;
mod devices_text;
mod findings_text;
mod report_text;
mod section;
mod steps_text;
mod top_text;

pub(crate) use advice_text::advice_with_evidence;
pub(crate) use findings_text::{examples_text, findings_text};
pub(crate) use section::heading;

use crate::Ending;
use crate::failure::Failure;
use crate::opening::{self, JoinArguments, MemoryArgument};
use crate::output::{deliver, line_width, print};
use clap::Args;
use std::path::{Path, PathBuf};
use stepscope_engine::report::Report;
use stepscope_engine::{self as engine, EngineError, OpenOptions, Ranks, Selection, width_of};
use stepscope_export as export;

/// Sum a run up: verdict, advice, where the time goes, top operators and kernels, what is doubtful, what to look at next
#[derive(Args)]
#[command(after_help = "\
Examples:
  stepscope report stepscope-runs/20260101-120000-train
  stepscope report trace.json.gz --step 7
  stepscope report trace.json.gz --html report.html")]
pub(crate) struct ReportArguments {
    /// A run folder, a trace file, or a folder of the traces of ranks; several, a pattern such as 'rank*.json', or @FILE
    /// with a path on each line are the ranks of one job
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    #[command(flatten)]
    part: PartArguments,
    #[command(flatten)]
    joined: JoinArguments,
    #[command(flatten)]
    memory: MemoryArgument,
    /// Report on each file by itself, also on those of a folder, which are one run otherwise
    #[arg(long, conflicts_with_all = ["html", "markdown", "join"])]
    separate: bool,
    /// Print JSON
    #[arg(long, conflicts_with_all = ["html", "markdown"])]
    json: bool,
    /// Write a page that opens in a browser without a network, with the results of every analysis
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print Markdown, or write it to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    markdown: Option<Option<PathBuf>>,
}

/// What part of a run a command is about.
#[derive(Args)]
pub(crate) struct PartArguments {
    /// Only these ranks: 3, 0-7 or 0,4,8-11
    #[arg(long, value_name = "RANKS")]
    rank: Option<Ranks>,
    /// Only the step with this number
    #[arg(long, value_name = "N")]
    step: Option<i64>,
    /// Only what begins, or is launched, at this moment or later: nanoseconds since the start of the trace
    #[arg(long, value_name = "NS")]
    start_ns: Option<i64>,
    /// Only what begins, or is launched, before this moment
    #[arg(long, value_name = "NS")]
    end_ns: Option<i64>,
}

impl PartArguments {
    /// The selection that it spells.
    pub(crate) fn selection(&self) -> Result<Selection, EngineError> {
        let ranks = self.rank.clone().unwrap_or_default();
        let window = engine::window(self.start_ns, self.end_ns)?;
        Ok(Selection { ranks, step: self.step, window, ..Selection::default() })
    }
}

impl ReportArguments {
    fn options(&self) -> OpenOptions {
        self.memory.with(self.joined.options())
    }
}

/// Carries `stepscope report` out.
pub(crate) fn report(arguments: &ReportArguments) -> Ending {
    let selection = arguments.part.selection()?;
    if arguments.separate {
        return report_each(arguments, &selection);
    }
    let run = opening::open(&arguments.runs, &arguments.options())?;
    let input = to_type_all(&arguments.runs);
    let report = engine::report::report(&run, &selection, &input)?;
    if let Some(file) = &arguments.html {
        let all = run.analyze_all(&selection)?;
        deliver(&export::report_html(&report, &all), Some(file))?;
    }
    if let Some(file) = &arguments.markdown {
        deliver(&export::report_markdown(&report), file.as_deref())?;
    }
    if arguments.html.is_none() && arguments.markdown.is_none() {
        print(&text_or_json(&report, &input, arguments.json))?;
    }
    Ok(0)
}

fn text_or_json(report: &Report, input: &str, is_json: bool) -> String {
    if is_json { report.to_json() + "\n" } else { report_text::report_text(report, input, line_width()) }
}

/// A report on each file, one after the other. What cannot be read is told in between, and the exit code then.
fn report_each(arguments: &ReportArguments, selection: &Selection) -> Ending {
    let mut code = 0;
    for (at, file) in engine::separate(&arguments.runs)?.into_iter().enumerate() {
        let open = || opening::open(std::slice::from_ref(&file), &arguments.options());
        let input = to_type(&file);
        match open().and_then(|run| engine::report::report(&run, selection, &input)) {
            Ok(report) => {
                let gap = if at == 0 || arguments.json { "" } else { "\n" };
                print(&format!("{gap}{}", text_or_json(&report, &input, arguments.json)))?;
            }
            Err(error) => code = Failure::from(error).report(),
        }
    }
    Ok(code)
}

/// A few paths as a person types them in a shell; `RUN` in place of more.
fn to_type_all(paths: &[PathBuf]) -> String {
    const MOST: usize = 2;
    match paths {
        [only] => to_type(only),
        paths if paths.len() <= MOST => paths.iter().map(|path| to_type(path)).collect::<Vec<_>>().join(" "),
        _ => "RUN".into(),
    }
}

/// `path` as a person types it in a shell; `RUN` when it is too long to stand in a line of text.
pub(crate) fn to_type(path: &Path) -> String {
    const MAX_WIDTH: usize = 48;
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%…".contains(c);
    let quoted = if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) };
    if width_of(&quoted) <= MAX_WIDTH && !quoted.contains(char::is_control) { quoted } else { "RUN".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_shown_as_a_shell_takes_it() {
        assert_eq!(to_type(Path::new("runs/a")), "runs/a");
        assert_eq!(to_type(Path::new("my runs/it's")), r"'my runs/it'\''s'");
        assert_eq!(to_type(Path::new(&"x/".repeat(40))), "RUN");
    }
}

//! `stepscope doctor`: what can be recorded here, and why not.

mod gpu;
mod host;
mod python;

use crate::Ending;
use crate::color::{DIM, ERROR, GOOD, HEADING, HINT, WARNING};
use crate::line_wrap::wrap;
use crate::output::{line_width, print};
use crate::package::find_package;
use crate::python::usual_python;
use clap::Args;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;
use stepscope_engine::SCHEMA;

/// Tell what can be recorded here, and why not
#[derive(Args)]
#[command(after_help = "\
Examples:
  stepscope doctor
  stepscope doctor --python .venv/bin/python")]
pub(crate) struct DoctorArguments {
    /// The Python that runs your job [default: the one that stepscope is installed in, or else python3]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Where runs would be written
    #[arg(short, long, value_name = "FOLDER", default_value = ".")]
    output: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How a check went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Health {
    /// Works.
    Good,
    /// Works in part, or less well.
    Limited,
    /// Does not work.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Check {
    /// What was looked at.
    name: &'static str,
    /// How it went.
    health: Health,
    /// What was found.
    says: String,
    /// What to do about it.
    hint: Option<String>,
}

impl Check {
    fn new(name: &'static str, health: Health, says: impl Into<String>) -> Self {
        Self { name, health, says: says.into(), hint: None }
    }

    fn good(name: &'static str, says: impl Into<String>) -> Self {
        Self::new(name, Health::Good, says)
    }

    fn limited(name: &'static str, says: impl Into<String>) -> Self {
        Self::new(name, Health::Limited, says)
    }

    fn missing(name: &'static str, says: impl Into<String>) -> Self {
        Self::new(name, Health::Missing, says)
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Checkup<'a> {
    schema: &'static str,
    /// True when operators of PyTorch can be recorded.
    can_record: bool,
    checks: &'a [Check],
}

/// Carries `stepscope doctor` out: 0 when PyTorch can be recorded here, else 1.
pub(crate) fn doctor(arguments: &DoctorArguments) -> Ending {
    let package = find_package();
    let mut checks = vec![host::platform(), host::clock(), host::disk(&arguments.output)];
    let python = arguments.python.clone().unwrap_or_else(usual_python);
    checks.extend(python::checks(&python, package.as_deref()));
    checks.extend(gpu::checks(&python, package.as_deref()));
    let can_record = checks.iter().all(|check| check.health != Health::Missing);
    let text = if arguments.json {
        let checkup = Checkup { schema: SCHEMA, can_record, checks: &checks };
        serde_json::to_string(&checkup).expect("a checkup holds only what JSON can say") + "\n"
    } else {
        checkup_text(&checks, can_record, line_width())
    };
    print(&text)?;
    Ok(if can_record { 0 } else { 1 })
}

fn checkup_text(checks: &[Check], can_record: bool, width: usize) -> String {
    let name_width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let indent = 4 + name_width + 2;
    let mut text = format!("{HEADING}What can be recorded here{HEADING:#}\n");
    for check in checks {
        let (style, mark) = match check.health {
            Health::Good => (GOOD, '✓'),
            Health::Limited => (WARNING, '!'),
            Health::Missing => (ERROR, '✗'),
        };
        let mut lines = wrap(&check.says, width - indent).into_iter();
        let (name, first) = (check.name, lines.next().unwrap_or_default());
        let _ = writeln!(text, "  {style}{mark}{style:#} {name:name_width$}  {first}");
        lines.for_each(|line| text.push_str(&format!("{:indent$}{line}\n", "")));
        for line in check.hint.iter().flat_map(|hint| wrap(hint, width - indent)) {
            let _ = writeln!(text, "{:indent$}{DIM}{line}{DIM:#}", "");
        }
    }
    let verdict = match can_record {
        true => format!("Ready: {HINT}stepscope record -- python train.py{HINT:#}"),
        false => "Operators of PyTorch cannot be recorded here; what is marked ✗ says why.".to_string(),
    };
    text + "\n" + &verdict + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_stand_below_what_they_belong_to() {
        let checks =
            [Check::good("disk", "9 GiB free"), Check::missing("torch", "not found").hint("pip install torch")];
        let text = anstream::adapter::strip_str(&checkup_text(&checks, false, 60)).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1..4], ["  ✓ disk   9 GiB free", "  ✗ torch  not found", "           pip install torch"]);
    }
}

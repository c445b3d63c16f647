//! Every analysis, by name. One line here makes it a command, a Python method, a JSON document and a page.

use crate::{Selection, Table};
use stepscope_trace::{Findings, Trace};

/// What a result rests on.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Coverage {
    /// Share of device time, in the selection, whose launch is known; `None` without device time.
    pub device_ns_linked_ratio: Option<f64>,
}

/// What an analysis found, in the form that every face prints.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// The result.
    pub table: Table,
    /// What it rests on.
    pub coverage: Coverage,
    /// What is doubtful about it, beside the findings of the trace.
    pub findings: Findings,
}

/// One entry of the catalogue.
#[derive(Clone, Copy)]
pub struct Analysis {
    /// Its name on the command line, in JSON and in Python.
    pub name: &'static str,
    /// The source of its file, whose comment is its reference page.
    pub source: &'static str,
    /// Computes it.
    pub run: fn(&Trace, &Selection) -> Outcome,
}

impl Analysis {
    /// The text under a heading of the file's comment: `Definition`, `Units`, `Source`, `Edge cases`.
    pub fn section(&self, heading: &str) -> String {
        let lines = self.source.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
        let from_heading = lines.skip_while(|line| line.strip_prefix("# ") != Some(heading)).skip(1);
        let body: Vec<&str> = from_heading.take_while(|line| !line.starts_with("# ")).collect();
        body.join("\n").trim().to_string()
    }

    /// The first sentence of its definition, on one line.
    pub fn definition(&self) -> String {
        let text = self.section("Definition").replace('\n', " ");
        match text.split_once(". ") {
            Some((first, _)) => format!("{first}."),
            None => text,
        }
    }
}

macro_rules! catalogue_of {
    ($($name:ident),* $(,)?) => {
        &[$(Analysis {
            name: stringify!($name),
            source: include_str!(concat!(stringify!($name), ".rs")),
            run: crate::$name::outcome,
        },)*]
    };
}

/// Every analysis, in the order a person would read them.
pub fn catalogue() -> &'static [Analysis] {
    catalogue_of![]
}

/// The analysis called `name`; `-` and `_` are the same.
pub fn find(name: &str) -> Option<&'static Analysis> {
    let name = name.replace('-', "_");
    catalogue().iter().find(|analysis| analysis.name == name)
}

//! A time and the classes it goes to.

use serde::Serialize;

/// One class of a breakdown.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Part {
    /// The class: the column of the analysis without its unit (`kernel`, `exposed_comm`, `idle`).
    pub class: &'static str,
    /// Its time.
    pub ns: i64,
    /// Its share of the total.
    pub ratio: f64,
}

/// A class in words; one that has none is shown under its own name.
pub fn class_words(class: &str) -> &str {
    match class {
        "kernel" => "compute kernels",
        "comm" | "exposed_comm" => "exposed communication",
        "memcpy" => "copies",
        "exposed_copy" => "exposed copies",
        "memset" => "memsets",
        "runtime" => "device API calls",
        "dataloader" => "waiting for data",
        "io" => "reading and writing files",
        "cpu" => "operators on the CPU",
        "other" => "outside of operators",
        class => class,
    }
}

/// A total and its parts, which sum to it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Breakdown {
    /// The time that is broken down.
    pub total_ns: i64,
    /// The parts, in the analysis' order, zeros included.
    pub parts: Vec<Part>,
}

impl Breakdown {
    /// A breakdown of `total_ns`; shares of nothing are 0.
    pub(super) fn new(total_ns: i64, parts: impl IntoIterator<Item = (&'static str, i64)>) -> Self {
        let ratio = |ns: i64| if total_ns > 0 { ns as f64 / total_ns as f64 } else { 0.0 };
        Self { total_ns, parts: parts.into_iter().map(|(class, ns)| Part { class, ns, ratio: ratio(ns) }).collect() }
    }

    /// The time of a class; 0 when it is not there.
    pub fn ns_of(&self, class: &str) -> i64 {
        self.parts.iter().find(|part| part.class == class).map_or(0, |part| part.ns)
    }

    /// The share of a class; 0 when it is not there.
    pub fn ratio_of(&self, class: &str) -> f64 {
        self.parts.iter().find(|part| part.class == class).map_or(0.0, |part| part.ratio)
    }
}

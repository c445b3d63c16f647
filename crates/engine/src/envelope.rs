//! One result with all that is needed to read it: what it means, what it is about, what it rests on.

use crate::{
    AnalysisContext, Column, Coverage, EngineError, Rows, Selection, Table, Trace, check_selection, finding_rows,
    unit_word,
};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use stepscope_analyses::{Analysis, Outcome, catalogue, find};
use stepscope_trace::Findings;
use strsim::osa_distance;

/// The version of the JSON form; it changes when a field changes its meaning or goes away.
pub const SCHEMA: &str = "stepscope/1";

/// Which run a result is about.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct RunIdentity {
    /// What a person calls it.
    pub name: String,
    /// Its ranks, ascending.
    pub ranks: Vec<u32>,
    /// Where it was read from.
    pub sources: Vec<String>,
}

impl RunIdentity {
    /// The identity of the run that `trace` is of.
    pub fn of(trace: &Trace) -> Self {
        Self { name: trace.name.clone(), ranks: trace.ranks(), sources: trace.sources.clone() }
    }
}

/// A result of an analysis; serialises to the JSON that all faces give.
#[derive(Clone, PartialEq, Debug)]
pub struct Envelope {
    /// The analysis' name.
    pub analysis: &'static str,
    /// Its definition in one sentence.
    pub definition: String,
    /// The run it is about.
    pub run: RunIdentity,
    /// The result.
    pub results: Table,
    /// What the result rests on.
    pub coverage: Coverage,
    /// What is doubtful about the input or the result.
    pub findings: Findings,
}

impl Envelope {
    /// The envelope as JSON, on one line.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("an envelope holds only what JSON can say")
    }
}

impl Serialize for Envelope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = self.results.columns.iter().map(ColumnRow::of).collect();
        Described { envelope: self, columns }.serialize(serializer)
    }
}

/// What one column of a result means, as JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ColumnRow {
    /// Its name.
    pub name: &'static str,
    /// What it counts, as [`unit_word`] has it.
    pub unit: &'static str,
    /// What it means.
    pub doc: &'static str,
}

impl ColumnRow {
    /// What `column` means.
    pub fn of(column: &Column) -> Self {
        Self { name: column.name, unit: unit_word(column), doc: column.doc }
    }
}

/// An envelope as JSON, with `columns` that say what its columns are.
pub struct Described<'a, C> {
    /// The envelope.
    pub envelope: &'a Envelope,
    /// Its columns.
    pub columns: Vec<C>,
}

impl<C: Serialize> Serialize for Described<'_, C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { envelope, columns } = self;
        let mut fields = serializer.serialize_struct("Envelope", 8)?;
        fields.serialize_field("schema", SCHEMA)?;
        fields.serialize_field("analysis", envelope.analysis)?;
        fields.serialize_field("definition", &envelope.definition)?;
        fields.serialize_field("run", &envelope.run)?;
        fields.serialize_field("results", &Rows(&envelope.results))?;
        fields.serialize_field("coverage", &CoverageFields::of(&envelope.coverage))?;
        fields.serialize_field("findings", &finding_rows(&envelope.findings))?;
        fields.serialize_field("columns", columns)?;
        fields.end()
    }
}

/// [`Coverage`] as JSON.
#[derive(serde::Serialize)]
struct CoverageFields {
    device_ns_linked_ratio: Option<f64>,
}

impl CoverageFields {
    fn of(coverage: &Coverage) -> Self {
        Self { device_ns_linked_ratio: coverage.device_ns_linked_ratio }
    }
}

/// Runs the analysis called `name` (`-` and `_` are the same) on the part of `trace` that was asked for.
///
/// # Errors
/// [`EngineError::UnknownAnalysis`], [`EngineError::UnknownRank`], [`EngineError::UnknownStep`].
pub fn analyze(trace: &Trace, name: &str, selection: &Selection) -> Result<Envelope, EngineError> {
    let analysis = find_analysis(name)?;
    check_selection(trace, selection)?;
    Ok(analyze_in(&AnalysisContext::new(trace, selection), analysis))
}

/// Runs an analysis in a context, which other analyses may share. Rank and step exist, as [`check_selection`] says.
pub fn analyze_in(context: &AnalysisContext<'_>, analysis: &Analysis) -> Envelope {
    envelope(context.trace, analysis, (analysis.run)(context))
}

pub(crate) fn envelope(trace: &Trace, analysis: &Analysis, outcome: Outcome) -> Envelope {
    let mut findings = trace.findings.clone();
    findings.extend(&outcome.findings);
    Envelope {
        analysis: analysis.name,
        definition: analysis.definition(),
        run: RunIdentity::of(trace),
        results: outcome.table,
        coverage: outcome.coverage,
        findings,
    }
}

/// The analysis called `name`; `-` and `_` are the same.
///
/// # Errors
/// [`EngineError::UnknownAnalysis`], with the name that looks most like it.
pub fn find_analysis(name: &str) -> Result<&'static Analysis, EngineError> {
    find(name).ok_or_else(|| EngineError::UnknownAnalysis { name: name.into(), nearest: nearest_name(name) })
}

/// Every analysis: its name and its definition in one sentence.
pub fn list_analyses() -> Vec<(&'static str, String)> {
    catalogue().iter().map(|analysis| (analysis.name, analysis.definition())).collect()
}

fn nearest_name(name: &str) -> Option<&'static str> {
    nearest_of(name, catalogue().iter().map(|analysis| analysis.name))
}

/// The one of `names` that has `name` in it, else the one that differs from it in the fewest letters, when that is at most
/// a third of them.
pub fn nearest_of<'n>(name: &str, names: impl Iterator<Item = &'n str> + Clone) -> Option<&'n str> {
    let name = name.replace('-', "_").to_lowercase();
    let distance = |known: &&str| osa_distance(&name, known);
    let is_part = |known: &&str| name.len() >= 3 && known.contains(&name);
    let close = names.clone().min_by_key(distance);
    let close = close.filter(|known| distance(known) * 3 <= known.len().max(name.len()));
    names.clone().find(is_part).or(close)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn every_analysis_gives_an_envelope_of_an_empty_trace() {
        for (name, definition) in list_analyses() {
            assert!(definition.ends_with('.'), "{name}: {definition:?}");
            let json = analyze(&Trace::default(), name, &Selection::default()).unwrap().to_json();
            assert!(json.starts_with(&format!("{{\"schema\":\"stepscope/1\",\"analysis\":\"{name}\"")), "{json}");
        }
    }

    #[test]
    fn the_envelope_has_the_fields_of_the_interface_in_their_order() {
        let trace = drawn("rank 0 stream 7 CC..NN");
        let json = analyze(&trace, "temporal-breakdown", &Selection::default()).unwrap().to_json();
        let fields = ["schema", "analysis", "definition", "run", "results", "coverage", "findings"];
        let places: Vec<usize> = fields.iter().map(|field| json.find(&format!("\"{field}\":")).unwrap()).collect();
        assert!(places.is_sorted(), "{json}");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["run"]["name"], "drawn");
        assert_eq!(value["results"][0]["span_ns"], 6_000);
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_nearest() {
        let nearest = |name: &str| analyze(&Trace::default(), name, &Selection::default()).unwrap_err().hint();
        assert_eq!(nearest("operatros").as_deref(), Some("did you mean \"operators\"?"));
        assert_eq!(nearest("temporal").as_deref(), Some("did you mean \"temporal_breakdown\"?"));
        assert_eq!(nearest("xyzzy").as_deref(), Some("`stepscope analyze` lists them"));
    }
}

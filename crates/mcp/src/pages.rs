//! Rows of a result, some at a time: how many there are is always told, and where the rest begins.

use crate::cut::cut_name;
use crate::doubts::Doubts;
use crate::failure::Failure;
use serde::Serialize;
use serde::ser::Serializer;
use serde_json::json;
use std::sync::Arc;
use stepscope_engine::{
    ColumnRow, Envelope, OpenedRun, OptionTexts, Rows, Selection, Table, Values, find_analysis, find_column,
    finding_rows, list_analyses, sorted, with_options, with_rows,
};

/// Rows unless another number is asked for.
pub(crate) const ROWS: usize = 20;
/// Rows at most.
pub(crate) const MAX_ROWS: usize = 200;
/// Bytes that rows take at most; one row is told in any case.
pub(crate) const MAX_BYTES: usize = 24 << 10;
/// Bytes of a text, unless whole ones are asked for.
pub(crate) const MAX_TEXT_BYTES: usize = 300;

/// What of a result is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) selection: Selection,
    pub(crate) group_by: Option<String>,
    /// None are all.
    pub(crate) columns: Vec<String>,
    pub(crate) sort: Option<String>,
    pub(crate) limit: Option<usize>,
    pub(crate) offset: usize,
    /// Whether long texts stay as they are.
    pub(crate) has_whole_texts: bool,
}

/// Some rows of a result.
#[derive(Serialize)]
pub(crate) struct Page {
    analysis: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    /// What decides the order, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    sorted_by: Option<&'static str>,
    rows_total: usize,
    offset: usize,
    /// Where the rest begins; null where there is none.
    next_offset: Option<usize>,
    /// Columns of which texts are shortened here: their middle gave way to `…`.
    shortened: Vec<&'static str>,
    #[serde(serialize_with = "as_rows")]
    rows: Table,
    findings: Doubts,
}

fn as_rows<S: Serializer>(table: &Table, serializer: S) -> Result<S::Ok, S::Error> {
    Rows(table).serialize(serializer)
}

impl Page {
    /// Rows of the analysis called `name`.
    ///
    /// # Errors
    /// When there is no such analysis, column, rank or step, or when events that are needed cannot be read.
    pub(crate) fn of(run: &OpenedRun, name: &str, asked: &Asked) -> Result<Self, Failure> {
        let analysis = find_analysis(name)?;
        let texts = OptionTexts { group_by: asked.group_by.clone(), ..OptionTexts::default() };
        let selection = with_options(analysis, asked.selection.clone(), &texts)?;
        Self::of_result(run.analyze(analysis, &selection)?, asked)
    }

    /// Rows of a result: as many as are asked for, and fit.
    ///
    /// # Errors
    /// When it has no such column.
    pub(crate) fn of_result(envelope: Envelope, asked: &Asked) -> Result<Self, Failure> {
        let (analysis, mut table) = (envelope.analysis, envelope.results);
        let mut sorted_by = None;
        if let Some(name) = &asked.sort {
            sorted_by = Some(find_column(&table, name, analysis)?.name);
            table = sorted(&table, name, analysis)?;
        }
        if !asked.columns.is_empty() {
            let found = asked.columns.iter().map(|name| find_column(&table, name, analysis).cloned());
            table = Table { columns: found.collect::<Result<_, _>>()? };
        }
        let rows_total = table.len();
        let offset = asked.offset.min(rows_total);
        let wanted = offset.saturating_add(asked.limit.unwrap_or(ROWS).min(MAX_ROWS)).min(rows_total);
        let mut rows = with_rows(&table, &(offset..wanted).collect::<Vec<_>>());
        let shortened = if asked.has_whole_texts { Vec::new() } else { shorten(&mut rows) };
        let rows = fitting(rows);
        let end = offset + rows.len();
        Ok(Self {
            analysis,
            note: None,
            sorted_by,
            rows_total,
            offset,
            next_offset: (end < rows_total).then_some(end),
            shortened,
            rows,
            findings: Doubts::of(&finding_rows(&envelope.findings)),
        })
    }

    /// It with a remark.
    pub(crate) fn with_note(self, note: &'static str) -> Self {
        Self { note: Some(note), ..self }
    }

    /// It as JSON, on one line.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a page holds only what JSON can say")
    }
}

/// Shortens long texts of `table`; gives the columns that have any.
fn shorten(table: &mut Table) -> Vec<&'static str> {
    let mut shortened = Vec::new();
    for column in &mut table.columns {
        let Values::Text(values) = &mut column.values else { continue };
        let is_long = |value: &&mut Arc<str>| value.len() > MAX_TEXT_BYTES;
        let long: Vec<_> = values.iter_mut().flatten().filter(is_long).collect();
        if !long.is_empty() {
            shortened.push(column.name);
        }
        long.into_iter().for_each(|value| *value = Arc::from(cut_name(value, MAX_TEXT_BYTES)));
    }
    shortened
}

/// The first rows of `table` that take no more than [`MAX_BYTES`], and at least one.
fn fitting(table: Table) -> Table {
    let bytes_of = |row: usize| serde_json::to_string(&Rows(&with_rows(&table, &[row]))).map_or(0, |json| json.len());
    let mut bytes = 0;
    let fits = |row: &usize| {
        bytes += bytes_of(*row);
        *row == 0 || bytes <= MAX_BYTES
    };
    let rows: Vec<usize> = (0..table.len()).take_while(fits).collect();
    with_rows(&table, &rows)
}

/// The analyses with their definitions; of one, its columns.
///
/// # Errors
/// When there is no such analysis.
pub(crate) fn analyses(name: Option<&str>) -> Result<String, Failure> {
    let Some(name) = name else {
        let all: Vec<String> = list_analyses().into_iter().map(|(name, says)| format!("{name}: {says}")).collect();
        return Ok(json!({ "analyses": all }).to_string());
    };
    let analysis = find_analysis(name)?;
    let columns = analysis.columns(&Selection::default());
    let group_by: Vec<&str> = analysis.options.group_by.iter().map(|choice| choice.as_str()).collect();
    Ok(json!({
        "analysis": analysis.name,
        "definition": analysis.definition(),
        "group_by": group_by,
        "columns": columns.iter().map(ColumnRow::of).collect::<Vec<_>>(),
    })
    .to_string())
}

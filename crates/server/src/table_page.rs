//! What a page of a table shows: rows that were searched for, in an order, and of those a few.

use crate::failure::Failure;
use crate::query::Query;
use serde::Serialize;
use serde_json::{Value, json};
use std::cmp::Ordering;
use stepscope_base::cut_text;
use stepscope_engine::{
    Column, Table, Values, column_headings, find_column, has_answers, is_right_aligned, sort_rows, unit_word, with_rows,
};

/// What a request may say of rows.
pub(crate) const PARAMETERS: [&str; 6] = ["sort", "search", "or", "where", "offset", "limit"];
const LIMIT: usize = 100;
const MAX_LIMIT: usize = 10_000;
/// Bytes of a text.
const LONGEST_TEXT: usize = 16 << 10;
/// Conditions of one request.
const MAX_CONDITIONS: usize = 32;

/// Which rows a request wants: sorted, searched, filtered, and of those one page.
#[derive(Clone, Debug)]
pub(crate) struct PageQuery {
    /// The column, and whether its order is turned.
    sort: Option<(String, bool)>,
    /// In lower case.
    search: Option<String>,
    /// Whole texts that a search finds as well.
    or: Vec<String>,
    conditions: Vec<Condition>,
    offset: usize,
    limit: usize,
}

/// What a row must be like: `column:op:value`.
#[derive(Clone, Debug)]
struct Condition {
    column: String,
    op: Op,
    value: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Has,
}

/// How much of a table is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Page {
    offset: usize,
    rows: usize,
    matching: usize,
    total: usize,
    /// How many of these rows stand for others: their sums and means.
    matching_sums: usize,
    total_sums: usize,
}

impl PageQuery {
    /// What `query` asks for.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn of(query: &Query) -> Result<Self, Failure> {
        let conditions = query.texts("where").map(Condition::parse).collect::<Result<Vec<_>, _>>()?;
        if conditions.len() > MAX_CONDITIONS {
            return Err(Failure::bad_request(format!("more than {MAX_CONDITIONS} conditions")));
        }
        let sort = query.text("sort").map(|text| match text.strip_prefix('-') {
            Some(name) => (name.to_string(), true),
            None => (text.to_string(), false),
        });
        Ok(Self {
            sort,
            search: query.text("search").map(str::to_lowercase),
            or: query.texts("or").map(str::to_string).collect(),
            conditions,
            offset: query.number("offset")?.unwrap_or(0),
            limit: query.number("limit")?.unwrap_or(LIMIT).min(MAX_LIMIT),
        })
    }

    /// The rows of `table` that match, in the order asked for. `analysis` is only for errors.
    ///
    /// # Errors
    /// When a column is not there, or a value is none of the column's kind.
    fn matching(&self, table: &Table, analysis: &str) -> Result<Vec<usize>, Failure> {
        let mut rows: Vec<usize> = (0..table.len()).collect();
        for condition in &self.conditions {
            let column = find_column(table, &condition.column, analysis)?;
            let holds = condition.on(column)?;
            rows.retain(|row| holds(*row));
        }
        if let Some(search) = &self.search {
            let is_other = |text: &str| self.or.iter().any(|other| other == text);
            rows.retain(|row| has_text(table, *row, search) || is_any_text(table, *row, is_other));
        }
        if let Some((name, is_reversed)) = &self.sort {
            sort_rows(table, &mut rows, find_column(table, name, analysis)?, *is_reversed);
        }
        Ok(rows)
    }

    /// The page of `table` that is asked for.
    pub(crate) fn page(&self, table: &Table, analysis: &str) -> Result<(Table, Page), Failure> {
        let rows = self.matching(table, analysis)?;
        let of_page: Vec<usize> = rows.iter().copied().skip(self.offset).take(self.limit).collect();
        let page = Page {
            offset: self.offset,
            rows: of_page.len(),
            matching: rows.len(),
            total: table.len(),
            matching_sums: rows.iter().filter(|row| stands_for_others(table, **row)).count(),
            total_sums: (0..table.len()).filter(|row| stands_for_others(table, *row)).count(),
        };
        Ok((with_cut_texts(with_rows(table, &of_page)), page))
    }

    /// All rows of `table` that match.
    pub(crate) fn all(&self, table: &Table, analysis: &str) -> Result<Table, Failure> {
        Ok(with_rows(table, &self.matching(table, analysis)?))
    }
}

/// The table without what of long texts nobody reads on a page; files have them whole.
fn with_cut_texts(mut table: Table) -> Table {
    for column in &mut table.columns {
        let Values::Text(values) = &mut column.values else { continue };
        for text in values.iter_mut().flatten().filter(|text| text.len() > LONGEST_TEXT) {
            *text = cut_text(text, LONGEST_TEXT).into();
        }
    }
    table
}

impl Condition {
    fn parse(text: &str) -> Result<Self, Failure> {
        const OPS: [(&str, Op); 7] = [
            ("eq", Op::Eq),
            ("ne", Op::Ne),
            ("lt", Op::Lt),
            ("le", Op::Le),
            ("gt", Op::Gt),
            ("ge", Op::Ge),
            ("has", Op::Has),
        ];
        let mut parts = text.splitn(3, ':');
        let (column, op, value) = (parts.next(), parts.next(), parts.next());
        let op = OPS.iter().find(|(word, _)| Some(*word) == op).map(|(_, op)| *op);
        match (column, op, value) {
            (Some(column), Some(op), Some(value)) => Ok(Self { column: column.into(), op, value: value.into() }),
            _ => {
                let short: String = text.chars().take(80).collect();
                let failure = Failure::bad_request(format!("invalid `where`: {short:?}"));
                Err(failure.hint("use COLUMN:OP:VALUE, with eq, ne, lt, le, gt, ge or has"))
            }
        }
    }

    /// Whether it holds for a row of `column`. "No answer" is equal to no value only, and fulfils nothing else.
    fn on<'a>(&'a self, column: &'a Column) -> Result<Box<dyn Fn(usize) -> bool + 'a>, Failure> {
        let op = self.op;
        if self.value.is_empty() && matches!(op, Op::Eq | Op::Ne) {
            return Ok(Box::new(move |row| has_answer(&column.values, row) == (op == Op::Ne)));
        }
        let wrong = |expected: &str| {
            let value: String = self.value.chars().take(80).collect();
            Failure::bad_request(format!("column {} takes {expected}, not {value:?}", column.name))
        };
        if op == Op::Has && !matches!(column.values, Values::Text(_)) {
            let failure = Failure::bad_request(format!("column {} is not text", column.name));
            return Err(failure.hint("has is for texts; use eq, ne, lt, le, gt or ge"));
        }
        Ok(match &column.values {
            Values::Int(values) => {
                let number: f64 = self.value.parse().map_err(|_| wrong("numbers"))?;
                match self.value.parse::<i64>() {
                    Ok(whole) => {
                        Box::new(move |row| values[row].is_some_and(|value| op.holds(Some(value.cmp(&whole)))))
                    }
                    Err(_) => Box::new(move |row| {
                        values[row].is_some_and(|value| op.holds((value as f64).partial_cmp(&number)))
                    }),
                }
            }
            Values::Float(values) => {
                let number: f64 = self.value.parse().map_err(|_| wrong("numbers"))?;
                Box::new(move |row| values[row].is_some_and(|value| op.holds(value.partial_cmp(&number))))
            }
            Values::Bool(values) => {
                let flag = match self.value.as_str() {
                    "true" | "yes" => true,
                    "false" | "no" => false,
                    _ => return Err(wrong("yes and no")),
                };
                Box::new(move |row| values[row].is_some_and(|value| op.holds(Some(value.cmp(&flag)))))
            }
            Values::Text(values) if op == Op::Has => {
                let part = self.value.to_lowercase();
                Box::new(move |row| values[row].as_deref().is_some_and(|text| text.to_lowercase().contains(&part)))
            }
            Values::Text(values) => {
                Box::new(move |row| values[row].as_deref().is_some_and(|text| op.holds(Some(text.cmp(&self.value)))))
            }
        })
    }
}

impl Op {
    /// Whether a value that compares so with the condition's fulfils it; what cannot be compared does not.
    fn holds(self, order: Option<Ordering>) -> bool {
        order.is_some_and(|order| match self {
            Self::Eq | Self::Has => order.is_eq(),
            Self::Ne => order.is_ne(),
            Self::Lt => order.is_lt(),
            Self::Le => order.is_le(),
            Self::Gt => order.is_gt(),
            Self::Ge => order.is_ge(),
        })
    }
}

/// False for "no answer".
fn has_answer(values: &Values, row: usize) -> bool {
    match values {
        Values::Int(values) => values[row].is_some(),
        Values::Float(values) => values[row].is_some(),
        Values::Bool(values) => values[row].is_some(),
        Values::Text(values) => values[row].is_some(),
    }
}

/// Whether any text of a row has `part`, which is in lower case, or has it with `_` for spaces: `host_sync` reads as
/// "host sync" on the pages.
fn has_text(table: &Table, row: usize, part: &str) -> bool {
    let joined = part.replace(' ', "_");
    is_any_text(table, row, |text| {
        let text = text.to_lowercase();
        text.contains(part) || text.contains(&joined)
    })
}

/// Whether any text of a row is as `is_wanted` says.
fn is_any_text(table: &Table, row: usize, is_wanted: impl Fn(&str) -> bool) -> bool {
    table.columns.iter().any(|column| match &column.values {
        Values::Text(values) => values[row].as_deref().is_some_and(&is_wanted),
        _ => false,
    })
}

/// Whether a row is a sum or a mean of others: its column `row` says so.
fn stands_for_others(table: &Table, row: usize) -> bool {
    match table.column("row").map(|column| &column.values) {
        Some(Values::Text(values)) => values[row].as_deref().is_some_and(|word| word != "one"),
        _ => false,
    }
}

/// What a page needs to lay a table's columns out. Whether a column has answers is told of all rows.
pub(crate) fn columns(table: &Table) -> Vec<Value> {
    let headings = column_headings(&table.columns.iter().collect::<Vec<_>>());
    let column = |(column, label): (&Column, String)| {
        json!({
            "name": column.name,
            "label": label,
            "unit": unit_word(column),
            "doc": column.doc,
            "is_right_aligned": is_right_aligned(column),
            "has_answers": has_answers(column),
        })
    };
    table.columns.iter().zip(headings).map(column).collect()
}

#[cfg(test)]
mod tests;

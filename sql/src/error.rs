//! Why a query could not be answered: what, where in its text, what to do.

use datafusion::common::{Column, DataFusionError, Diagnostic, SchemaError};
use datafusion::sql::sqlparser::parser::ParserError;
use serde_json::json;
use std::io::ErrorKind;

/// Between an error and its hint, where both pass through the engine as one text.
pub(crate) const HINT_FOLLOWS: char = '\u{1f}';

/// What errors of files begin with, behind what the engine says before.
pub(crate) const STORE: &str = "stepscope";
const STORE_SAYS: &str = "Generic stepscope error: ";

/// A query that failed.
#[derive(Debug, Default)]
pub(crate) struct QueryError {
    /// What is wrong, in a line.
    pub(crate) what: String,
    /// Where: `line 1, column 8`, or a file.
    pub(crate) place: Option<String>,
    /// What to do.
    pub(crate) hint: Option<String>,
    /// The reader of the output has gone.
    pub(crate) is_reader_gone: bool,
    /// Ended by Ctrl-C.
    pub(crate) is_interrupted: bool,
}

impl QueryError {
    /// A failure; `what` is one line in lower case.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), ..Self::default() }
    }

    /// Says where.
    pub(crate) fn at(self, place: impl Into<String>) -> Self {
        Self { place: Some(place.into()), ..self }
    }

    /// Says where, unless that is known.
    pub(crate) fn or_at(self, place: Option<String>) -> Self {
        Self { place: self.place.or(place), ..self }
    }

    /// Says what to do.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// What an error of the engine says, which may have a hint in it.
    fn with_hint(text: &str) -> Self {
        let text = text.rsplit(STORE_SAYS).next().unwrap_or(text);
        match text.split_once(HINT_FOLLOWS) {
            Some((what, hint)) => Self::new(what).hint(hint),
            None => Self::new(text),
        }
    }

    /// Ended by Ctrl-C.
    pub(crate) fn interrupted() -> Self {
        Self { is_interrupted: true, ..Self::new("interrupted") }
    }

    /// The error of writing rows.
    pub(crate) fn writing(error: &std::io::Error) -> Self {
        Self {
            is_reader_gone: error.kind() == ErrorKind::BrokenPipe,
            ..Self::new(format!("cannot write the rows: {error}"))
        }
    }

    /// Prints it: as JSON to standard output, or for people to standard error.
    pub(crate) fn report(&self, as_json: bool) {
        if as_json {
            println!("{}", json!({"error": {"what": self.what, "where": self.place, "hint": self.hint}}));
            return;
        }
        eprintln!("error: {}", self.what);
        if let Some(place) = &self.place {
            eprintln!("   at: {place}");
        }
        if let Some(hint) = &self.hint {
            eprintln!(" hint: {hint}");
        }
    }
}

/// `line 1, column 8`.
pub(crate) fn place(line: u64, column: u64) -> Option<String> {
    (line > 0).then(|| format!("line {line}, column {column}"))
}

impl From<ParserError> for QueryError {
    fn from(error: ParserError) -> Self {
        let text = match error {
            ParserError::TokenizerError(text) | ParserError::ParserError(text) => text,
            ParserError::RecursionLimitExceeded => "the query is nested too deeply".to_string(),
        };
        let (what, at) = split_place(&text);
        Self { place: at, ..Self::new(lower(what)) }
    }
}

/// `Expected: an expression, found: EOF at Line: 1, Column: 8` in two parts.
fn split_place(text: &str) -> (&str, Option<String>) {
    let Some((what, at)) = text.rsplit_once(" at Line: ") else { return (text, None) };
    let Some((line, column)) = at.split_once(", Column: ") else { return (text, None) };
    let number = |text: &str| text.trim().parse().ok();
    match (number(line), number(column)) {
        (Some(line), Some(column)) => (what, place(line, column)),
        _ => (text, None),
    }
}

impl From<DataFusionError> for QueryError {
    fn from(error: DataFusionError) -> Self {
        match error {
            DataFusionError::Diagnostic(diagnostic, inner) => Self::from(*inner).with(&diagnostic),
            DataFusionError::Context(_, inner) => Self::from(*inner),
            DataFusionError::Collection(errors) => {
                errors.into_iter().next().map_or_else(|| Self::new("unknown error"), Self::from)
            }
            DataFusionError::Shared(inner) => Self::with_hint(&lower(&inner.message())),
            DataFusionError::SQL(error, _) => Self::from(*error),
            DataFusionError::SchemaError(error, _) => Self::from(*error),
            DataFusionError::ResourcesExhausted(text) => {
                let first = text.lines().next().unwrap_or_default();
                Self::new(format!("not enough memory: {first}")).hint("raise --memory, or ask for less at once")
            }
            DataFusionError::External(error) => Self::with_hint(&error.to_string()),
            other => Self::with_hint(&lower(of_types(&other.message()).unwrap_or(&other.message()))),
        }
    }
}

/// The first half of what is said of a function that does not take some types: the other half has all that it takes.
fn of_types(text: &str) -> Option<&str> {
    let (what, _) = text.split_once(", errors: ")?;
    what.contains("failed to match any signature").then_some(what)
}

impl From<SchemaError> for QueryError {
    fn from(error: SchemaError) -> Self {
        match error {
            SchemaError::FieldNotFound { field, valid_fields } => {
                let what = match &field.relation {
                    Some(table) => format!("there is no column {} in {table}", field.name),
                    None => format!("there is no column {}", field.name),
                };
                let names: Vec<&str> = valid_fields.iter().map(Column::name).collect();
                // A text in double quotes is a name for SQL.
                let is_name = field.name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
                let quoted = || format!("a text is written in single quotes: '{}'", field.name.replace('\'', "''"));
                let hint = if is_name { hint_of(field.name(), &names) } else { Some(quoted()) };
                Self { hint, ..Self::new(what) }
            }
            SchemaError::AmbiguousReference { field } => {
                Self::new(format!("several tables have a column {}", field.name))
                    .hint("write the table before it, with a dot")
            }
            other => Self::new(lower(&other.to_string())),
        }
    }
}

impl QueryError {
    fn with(mut self, diagnostic: &Diagnostic) -> Self {
        if let Some(span) = diagnostic.span {
            self.place = self.place.or_else(|| place(span.start.line, span.start.column));
        }
        if self.hint.is_none() {
            let helps = diagnostic.helps.iter().map(|help| help.message.as_str());
            let notes = diagnostic.notes.iter().map(|note| note.message.as_str());
            self.hint = helps.chain(notes).next().map(lower);
        }
        self
    }
}

/// The names that may be meant by `name`, or all of them.
pub(crate) fn hint_of(name: &str, known: &[&str]) -> Option<String> {
    let mut names: Vec<&str> = known.to_vec();
    names.sort_unstable();
    names.dedup();
    let distance = |other: &str| {
        datafusion::common::utils::datafusion_strsim::levenshtein(&name.to_lowercase(), &other.to_lowercase())
    };
    let best = names.iter().copied().min_by_key(|other| distance(other))?;
    if distance(best) <= name.len().div_ceil(3).max(1) {
        return Some(format!("did you mean {best}?"));
    }
    let shown = names.iter().take(30).copied().collect::<Vec<_>>().join(", ");
    Some(if names.len() > 30 { format!("there are {shown} …") } else { format!("there are {shown}") })
}

/// A message that begins in lower case, on one line.
fn lower(text: &str) -> String {
    let text = text.lines().next().unwrap_or_default();
    let text =
        text.trim_start_matches("Error during planning: ").trim_start_matches("Internal error: ").trim_end_matches('.');
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if letters.as_str().starts_with(|next: char| next.is_lowercase() || next == ' ') => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_taken_out_of_the_text() {
        let error = QueryError::from(ParserError::ParserError("Expected: x, found: EOF at Line: 3, Column: 8".into()));
        assert_eq!(
            (error.what.as_str(), error.place.as_deref()),
            ("expected: x, found: EOF", Some("line 3, column 8"))
        );
        let error = QueryError::from(ParserError::TokenizerError("no place".into()));
        assert_eq!((error.what.as_str(), error.place), ("no place", None));
    }

    #[test]
    fn near_names_are_proposed_else_all() {
        let known = ["start_ns", "dur_ns", "name"];
        assert_eq!(hint_of("durns", &known).unwrap(), "did you mean dur_ns?");
        assert_eq!(hint_of("NAME", &known).unwrap(), "did you mean name?");
        assert_eq!(hint_of("colour", &known).unwrap(), "there are dur_ns, name, start_ns");
        assert_eq!(hint_of("x", &[]), None);
    }
}

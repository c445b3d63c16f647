//! Questions that are typed one after the other, with a history and completion.

use crate::arguments::OutputArguments;
use crate::error::QueryError;
use crate::examples::EXAMPLES;
use crate::functions::FUNCTIONS;
use crate::query;
use crate::schema::{table_text, tables_text};
use crate::session::Session;
use datafusion::catalog::TableProvider;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Editor, Helper};
use std::path::PathBuf;

const HELP: &str = "\
A query ends with ; and may have several lines.
  .tables           the tables
  .schema [TABLE]   what the columns of a table, or of all tables, are
  .functions        functions beside those of SQL
  .examples         questions that people ask first
  .quit             leave; so does Ctrl-D. Ctrl-C ends a query that runs";

/// Words of SQL that are completed.
const WORDS: [&str; 36] = [
    "select",
    "from",
    "where",
    "group by",
    "order by",
    "limit",
    "join",
    "left join",
    "using",
    "on",
    "with",
    "as",
    "and",
    "or",
    "not",
    "in",
    "between",
    "like",
    "is null",
    "is not null",
    "distinct",
    "count(*)",
    "sum(",
    "avg(",
    "min(",
    "max(",
    "median(",
    "approx_percentile_cont(",
    "case",
    "when",
    "then",
    "else",
    "end",
    "desc",
    "having",
    "explain analyze",
];

/// Asks until the person leaves.
///
/// # Errors
/// When the terminal cannot be used.
pub(crate) async fn prompt(session: &Session, arguments: &OutputArguments) -> Result<(), QueryError> {
    let failed = |error: ReadlineError| QueryError::new(format!("cannot use the terminal: {error}"));
    let mut editor = Editor::new().map_err(failed)?;
    editor.set_helper(Some(Words::of(session).await?));
    let history = history_file();
    if let Some(history) = &history {
        // The first time there is none.
        let _ = editor.load_history(history);
    }
    let names: Vec<&str> = session.runs.iter().map(|run| run.name.as_str()).collect();
    println!(
        "SQL over {}. {} tables; .help says what else there is.",
        names.join(", "),
        session.tables.names().count()
    );
    loop {
        let line = match editor.readline("sql> ") {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(failed(error)),
        };
        let text = line.trim();
        if text.is_empty() {
            continue;
        }
        let _ = editor.add_history_entry(text);
        if let Some(command) = text.strip_prefix('.') {
            match command.trim_end_matches(';') {
                "quit" | "exit" | "q" => break,
                other => match answer(session, other).await {
                    Ok(text) => println!("{text}"),
                    Err(error) => error.report(false),
                },
            }
            continue;
        }
        match query::run_until_interrupted(session, text, arguments).await {
            Ok(()) => {}
            Err(error) if error.is_reader_gone => return Err(error),
            Err(error) => error.report(false),
        }
    }
    if let Some(history) = &history {
        // A history that cannot be kept is no reason to fail.
        let _ = history.parent().map(std::fs::create_dir_all);
        let _ = editor.save_history(history);
    }
    Ok(())
}

/// The answer to a word with a dot before it.
async fn answer(session: &Session, command: &str) -> Result<String, QueryError> {
    let mut words = command.split_whitespace();
    Ok(match (words.next().unwrap_or_default(), words.next()) {
        ("tables", _) => {
            let tables =
                session.tables.all().await?.into_iter().map(|(name, table)| format!("{name:12} {}", table.row));
            tables.collect::<Vec<_>>().join("\n")
        }
        ("schema", Some(name)) => match session.tables.open(name).await? {
            Some(table) => table_text(name, &table),
            None => format!("there is no table {name}: .tables lists them"),
        },
        ("schema", None) => tables_text(session).await?,
        ("functions", _) => FUNCTIONS
            .iter()
            .map(|function| format!("{:32} {}", function.call, function.doc))
            .collect::<Vec<_>>()
            .join("\n"),
        ("examples", _) => EXAMPLES
            .iter()
            .map(|example| format!("-- {}\n{};\n", example.title, example.sql))
            .collect::<Vec<_>>()
            .join("\n"),
        _ => HELP.to_string(),
    })
}

fn history_file() -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = of("XDG_STATE_HOME").or_else(|| Some(of("HOME")?.join(".local/state")))?;
    Some(state.join("stepscope").join("sql_history"))
}

/// Completes words; a query is whole once it ends with `;`.
struct Words {
    known: Vec<String>,
}

impl Words {
    async fn of(session: &Session) -> Result<Self, QueryError> {
        let schemas = session.tables.all().await?.into_iter().map(|(_, table)| table.schema());
        let columns =
            schemas.flat_map(|schema| schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>());
        let functions = FUNCTIONS.iter().map(|function| format!("{}(", function.name));
        let tables = session.tables.names().map(String::from);
        let mut known: Vec<String> =
            tables.chain(columns).chain(functions).chain(WORDS.iter().map(ToString::to_string)).collect();
        known.sort();
        known.dedup();
        Ok(Self { known })
    }

    /// Where the word before `at` begins, and what it may become.
    fn candidates(&self, line: &str, at: usize) -> (usize, Vec<String>) {
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let begin = line[..at].rfind(|letter| !is_part(letter)).map_or(0, |before| before + 1);
        let word = line[begin..at].to_lowercase();
        if word.is_empty() {
            return (at, Vec::new());
        }
        (begin, self.known.iter().filter(|known| known.starts_with(&word)).cloned().collect())
    }
}

impl Completer for Words {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.candidates(line, at))
    }
}

impl Validator for Words {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input().trim();
        let is_whole = text.is_empty() || text.starts_with('.') || text.ends_with(';');
        Ok(if is_whole { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}

impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_before_the_cursor_is_completed() {
        let words = Words { known: ["dur_ns", "duration", "name"].map(String::from).to_vec() };
        assert_eq!(words.candidates("select du", 9), (7, vec!["dur_ns".to_string(), "duration".to_string()]));
        assert_eq!(words.candidates("select op.NA", 12), (10, vec!["name".to_string()]));
        assert_eq!(words.candidates("select ", 7), (7, vec![]));
    }
}

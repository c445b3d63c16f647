//! What can be asked: tables with their columns, functions, examples.

use crate::error::QueryError;
use crate::examples::EXAMPLES;
use crate::functions::FUNCTIONS;
use crate::output::column_json;
use crate::session::Session;
use crate::tables::RunTable;
use datafusion::catalog::TableProvider;
use serde_json::{Value, json};
use std::io::Write;

/// Prints it, as JSON or for people.
///
/// # Errors
/// Where it cannot be printed.
pub(crate) async fn print(session: &Session, as_json: bool) -> Result<(), QueryError> {
    let text = if as_json { format!("{}\n", of(session).await?) } else { text(session).await? };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| QueryError::writing(&error))
}

/// All of it for people.
async fn text(session: &Session) -> Result<String, QueryError> {
    let functions = FUNCTIONS.iter().map(|function| format!("  {:32} {}\n", function.call, function.doc));
    let analyses = "what `stepscope analyze NAME` gives, such as operators(group_by => 'module')";
    let tables = tables_text(session).await?;
    Ok(format!(
        "{tables}\nfunctions\n{}  {:32} {analyses}\n",
        functions.collect::<String>(),
        "ANALYSIS(option => value)"
    ))
}

/// All tables with their columns, for people.
///
/// # Errors
/// When a file cannot be read.
pub(crate) async fn tables_text(session: &Session) -> Result<String, QueryError> {
    let tables = session.tables.all().await?.into_iter().map(|(name, table)| table_text(name, &table));
    Ok(tables.collect::<Vec<_>>().join("\n"))
}

/// A table with its columns, for people.
pub(crate) fn table_text(name: &str, table: &RunTable) -> String {
    let mut text = format!("{name}: {}\n", table.row);
    for field in table.schema().fields() {
        let about = column_json(field);
        let [kind, unit, doc] = ["type", "unit", "doc"].map(|key| about[key].as_str().unwrap_or_default().to_string());
        let unit = if ["text", "flag", "count", "plain"].contains(&unit.as_str()) { String::new() } else { unit };
        text += format!("  {:22} {kind:5} {unit:6} {doc}", field.name()).trim_end();
        text.push('\n');
    }
    text
}

async fn of(session: &Session) -> Result<Value, QueryError> {
    let tables = session.tables.all().await?.into_iter().map(|(name, table)| {
        let columns: Vec<Value> = table.schema().fields().iter().map(|field| column_json(field)).collect();
        json!({"name": name, "row": table.row, "columns": columns})
    });
    let functions =
        FUNCTIONS.iter().map(|function| json!({"name": function.name, "call": function.call, "doc": function.doc}));
    let functions = functions.chain(analyses(session).await);
    let examples = EXAMPLES.iter().map(|example| json!({"title": example.title, "sql": example.sql}));
    Ok(json!({
        "tables": tables.collect::<Vec<_>>(),
        "functions": functions.collect::<Vec<_>>(),
        "examples": examples.collect::<Vec<_>>(),
    }))
}

/// The analyses, each a table.
async fn analyses(session: &Session) -> Vec<Value> {
    let described = |analysis: Value| {
        let name = analysis["name"].as_str().unwrap_or_default();
        json!({"name": name, "call": format!("{name}(option => value)"), "doc": analysis["definition"]})
    };
    session.analyses().await.into_iter().map(described).collect()
}

//! What can be asked: tables with their columns, functions, examples.

use crate::error::QueryError;
use crate::examples::EXAMPLES;
use crate::functions::FUNCTIONS;
use crate::output::column_json;
use crate::session::Session;
use datafusion::catalog::TableProvider;
use serde_json::{Value, json};
use std::io::Write;
use tokio::process::Command;

/// Prints it, as JSON or for people.
///
/// # Errors
/// Where it cannot be printed.
pub(crate) async fn print(session: &Session, as_json: bool) -> Result<(), QueryError> {
    let text = if as_json { format!("{}\n", of(session).await) } else { text(session) };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| QueryError::writing(&error))
}

/// All of it for people.
fn text(session: &Session) -> String {
    let tables = session.tables.keys().filter_map(|name| table_text(session, name));
    let functions = FUNCTIONS.iter().map(|function| format!("  {:32} {}\n", function.call, function.doc));
    let analyses = "what `stepscope analyze NAME` gives, such as operators(group_by => 'module')";
    let tables = tables.collect::<Vec<_>>().join("\n");
    format!("{tables}\nfunctions\n{}  {:32} {analyses}\n", functions.collect::<String>(), "ANALYSIS(option => value)")
}

/// A table with its columns, for people.
pub(crate) fn table_text(session: &Session, name: &str) -> Option<String> {
    let table = session.tables.get(name)?;
    let mut text = format!("{name}: {}\n", table.row);
    for field in table.schema().fields() {
        let about = column_json(field);
        let [kind, unit, doc] = ["type", "unit", "doc"].map(|key| about[key].as_str().unwrap_or_default().to_string());
        let unit = if ["text", "flag", "count", "plain"].contains(&unit.as_str()) { String::new() } else { unit };
        text += format!("  {:22} {kind:5} {unit:6} {doc}", field.name()).trim_end();
        text.push('\n');
    }
    Some(text)
}

async fn of(session: &Session) -> Value {
    let tables = session.tables.iter().map(|(name, table)| {
        let columns: Vec<Value> = table.schema().fields().iter().map(|field| column_json(field)).collect();
        json!({"name": name, "row": table.row, "columns": columns})
    });
    let functions =
        FUNCTIONS.iter().map(|function| json!({"name": function.name, "call": function.call, "doc": function.doc}));
    let functions = functions.chain(analyses(session).await);
    let examples = EXAMPLES.iter().map(|example| json!({"title": example.title, "sql": example.sql}));
    json!({
        "tables": tables.collect::<Vec<_>>(),
        "functions": functions.collect::<Vec<_>>(),
        "examples": examples.collect::<Vec<_>>(),
    })
}

/// The analyses, each a table; none where the program that runs them is not there.
async fn analyses(session: &Session) -> Vec<Value> {
    let listed = Command::new(&session.stepscope).args(["analyze", "--json"]).kill_on_drop(true).output().await;
    let listed = listed.ok().and_then(|listed| serde_json::from_slice::<Vec<Value>>(&listed.stdout).ok());
    let described = |analysis: Value| {
        let name = analysis["name"].as_str().unwrap_or_default();
        json!({"name": name, "call": format!("{name}(option => value)"), "doc": analysis["definition"]})
    };
    listed.into_iter().flatten().map(described).collect()
}

//! What can be asked: tables with their columns, functions, examples.

use crate::error::QueryError;
use crate::examples::EXAMPLES;
use crate::functions::FUNCTIONS;
use crate::output::column_json;
use crate::session::Session;
use datafusion::catalog::TableProvider;
use serde_json::{Value, json};
use tokio::process::Command;

/// Prints it, as JSON or for people.
///
/// # Errors
/// Where it cannot be printed.
pub(crate) async fn print(session: &Session, as_json: bool) -> Result<(), QueryError> {
    if as_json {
        println!("{}", of(session).await);
        return Ok(());
    }
    for name in session.tables.keys() {
        println!("{}", table_text(session, name).unwrap_or_default());
    }
    println!("functions");
    for function in FUNCTIONS {
        println!("  {:32} {}", function.call, function.doc);
    }
    println!(
        "  {:32} what `stepscope analyze NAME` gives, such as operators(group_by => 'module')",
        "ANALYSIS(option => value)"
    );
    Ok(())
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

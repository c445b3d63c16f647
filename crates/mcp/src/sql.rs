//! SQL over the tables of a run: the program that answers it is one of its own.

use crate::cut::cut_name;
use crate::failure::Failure;
use crate::pages::{MAX_BYTES, MAX_ROWS, MAX_TEXT_BYTES, ROWS};
use crate::runs::Runs;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use stepscope_engine::SqlComplaint;

/// How long a query may take: nobody can end it.
const LONGEST: Duration = Duration::from_secs(60);
/// How long it may take to end what it has started.
const ENDS_IN: Duration = Duration::from_secs(2);
/// How often its end is looked for.
const PAUSE: Duration = Duration::from_millis(5);
/// Bytes of an answer that are read.
const MAX_ANSWER_BYTES: u64 = 32 << 20;

/// What the program gives.
#[derive(Deserialize)]
struct Answer {
    columns: Vec<AnswerColumn>,
    rows: Vec<Vec<Value>>,
    is_complete: bool,
}

#[derive(Deserialize)]
struct AnswerColumn {
    name: String,
}

/// The rows of a query on the run called `run`; without a query, what there is to ask about.
///
/// # Errors
/// When the run cannot be opened, the program is not installed, or what it says of the query.
pub(crate) fn sql(
    runs: &Runs,
    run: Option<&str>,
    query: Option<&str>,
    limit: Option<usize>,
) -> Result<String, Failure> {
    let mut command = runs.sql_command(run)?;
    let Some(query) = query else {
        return Ok(schema(&answered(command.args(["--schema", "--json"]))?).to_string());
    };
    let limit = limit.unwrap_or(ROWS).min(MAX_ROWS);
    command.args(["--json", "--limit", &limit.to_string(), "--", query]);
    let answer: Answer = serde_json::from_value(answered(&mut command)?)
        .map_err(|error| Failure::new(format!("the program that runs SQL gave no rows: {error}")))?;
    let names: Vec<String> = answer.columns.into_iter().map(|column| column.name).collect();
    let mut shortened = BTreeSet::new();
    let mut bytes = 0;
    let mut rows = Vec::new();
    let asked = answer.rows.len();
    for mut row in answer.rows {
        for (cell, name) in row.iter_mut().zip(&names) {
            if let Value::String(text) = cell
                && text.len() > MAX_TEXT_BYTES
            {
                *text = cut_name(text, MAX_TEXT_BYTES);
                shortened.insert(name);
            }
        }
        let row = Value::from(row);
        bytes += row.to_string().len();
        if bytes > MAX_BYTES && !rows.is_empty() {
            break;
        }
        rows.push(row);
    }
    let is_complete = answer.is_complete && rows.len() == asked;
    Ok(json!({"columns": names, "rows": rows, "is_complete": is_complete, "shortened": shortened}).to_string())
}

/// The tables, functions and examples in few bytes.
fn schema(whole: &Value) -> Value {
    let each = |name: &str| whole[name].as_array().cloned().unwrap_or_default().into_iter();
    let column = |column: &Value| column["name"].as_str().unwrap_or_default().to_string();
    let tables = each("tables").map(|table| {
        let columns: Vec<String> = table["columns"].as_array().into_iter().flatten().map(column).collect();
        let about = json!({"row": table["row"], "columns": columns.join(", ")});
        (table["name"].as_str().unwrap_or_default().to_string(), about)
    });
    let calls: Vec<Value> = each("functions").map(|function| function["call"].clone()).collect();
    json!({
        "tables": tables.collect::<serde_json::Map<_, _>>(),
        "functions": calls,
        "examples": each("examples").map(|example| example["sql"].clone()).collect::<Vec<_>>(),
        "note": "analyses are tables, too: select * from kernels(rank => 0); SQL is DataFusion's",
    })
}

/// What the program answers, as JSON.
fn answered(command: &mut Command) -> Result<Value, Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("the program that runs SQL failed: {error}"));
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(failed)?;
    let out = child.stdout.take().expect("it was asked for");
    let reading = thread::spawn(move || {
        let mut answer = Vec::new();
        // Once nobody reads what it writes, the program ends.
        out.take(MAX_ANSWER_BYTES + 1).read_to_end(&mut answer).map(|_| answer)
    });
    if !ends_within(&mut child, LONGEST).map_err(failed)? {
        end(&mut child).map_err(failed)?;
        let failure = Failure::new(format!("the query took longer than {} s, and was ended", LONGEST.as_secs()));
        return Err(failure.hint("ask for a rank, a step or a window of time"));
    }
    let answer = reading.join().map_err(|_| Failure::new("the answer of the program that runs SQL was lost"))?;
    let answer = answer.map_err(failed)?;
    if answer.len() as u64 > MAX_ANSWER_BYTES {
        let failure = Failure::new(format!("the answer is larger than {} MiB", MAX_ANSWER_BYTES >> 20));
        return Err(failure.hint("ask for shorter texts"));
    }
    match (SqlComplaint::of(&answer), serde_json::from_slice(&answer)) {
        (Some(complaint), _) => Err(complaint.into()),
        (None, Ok(answer)) => Ok(answer),
        (None, Err(error)) => Err(Failure::new(format!("the program that runs SQL gave no answer: {error}"))),
    }
}

fn ends_within(child: &mut Child, longest: Duration) -> std::io::Result<bool> {
    let begun = Instant::now();
    while child.try_wait()?.is_none() {
        if begun.elapsed() > longest {
            return Ok(false);
        }
        thread::sleep(PAUSE);
    }
    Ok(true)
}

/// Has the program end what it has started, and itself.
fn end(child: &mut Child) -> std::io::Result<()> {
    #[cfg(unix)]
    if let Some(id) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        rustix::process::kill_process(id, rustix::process::Signal::INT)?;
        if ends_within(child, ENDS_IN)? {
            return Ok(());
        }
    }
    child.kill().and_then(|()| child.wait()).map(drop)
}

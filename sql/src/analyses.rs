//! Analyses as tables: `operators(group_by => 'module', rank => 3)` is what `stepscope analyze` gives of it.

use crate::cluster::{AnalysisTable, Cluster, Part};
use crate::error::{QueryError, hint_of, place};
use crate::session::{Run, Session};
use crate::tables::RunTable;
use datafusion::catalog::TableProvider;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, Spanned, TableFactor, Value, VisitMut, VisitorMut,
};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::process::Command;

/// The functions of the engine that give tables.
const OF_ENGINE: [&str; 3] = ["generate_series", "range", "unnest"];
/// What an analysis may be told: which part of the run, and what rows stand for. Nothing that names a file.
const OPTIONS: [&str; 11] =
    ["bucket", "compat", "depth", "end_ns", "group_by", "limit", "rank", "sort", "start_ns", "step", "top"];
/// Before the number of a result.
const PREFIX: &str = "stepscope result ";

/// Parts of an analysis for each worker.
const PARTS_OF_WORKER: usize = 4;
/// Options with which the rows of ranks together are not those of each.
const OF_ALL_RANKS: [&str; 4] = ["compat", "limit", "rank", "sort"];

/// The number of the next result.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A call of an analysis in a query.
#[derive(Debug, PartialEq, Eq)]
struct Call {
    name: String,
    /// Name and value of each option, as `stepscope analyze` takes them.
    options: Vec<(String, String)>,
    /// The table that stands in its place.
    table: String,
    /// Where it stands.
    place: Option<String>,
}

impl Call {
    /// Its options, as `stepscope analyze` takes them.
    fn told(&self) -> impl Iterator<Item = String> {
        self.options.iter().map(|(name, value)| format!("--{}={value}", name.replace('_', "-")))
    }

    /// Whether it may be asked of each rank.
    fn is_of_each_rank(&self) -> bool {
        !self.options.iter().any(|(name, _)| OF_ALL_RANKS.contains(&name.as_str()))
    }
}

/// Runs the analyses that a statement calls, and puts tables with their results in their places; with a cluster, tables that
/// run them when they are read. Gives the names of these.
///
/// # Errors
/// What `stepscope analyze` says.
pub(crate) async fn replace(session: &Session, statement: &mut Statement) -> Result<Vec<String>, QueryError> {
    let calls = taken_out(statement)?;
    for call in &calls {
        let table = match &session.cluster {
            Some(cluster) => later(session, cluster, call).await,
            None => now(session, call).await,
        };
        let table = table.map_err(|error| error.or_at(call.place.clone()))?;
        session.context.register_table(quoted(&call.table), table)?;
    }
    Ok(calls.into_iter().map(|call| call.table).collect())
}

/// The result of a call, made now.
async fn now(session: &Session, call: &Call) -> Result<Arc<dyn TableProvider>, QueryError> {
    let mut files = Vec::new();
    for (at, of) in session.runs.iter().enumerate() {
        let file = session.scratch.path().join(format!("{}-{at}.parquet", call.table));
        run(&session.stepscope, &arguments(session, call, of)?, &file).await?;
        files.push((of.name.clone(), file));
    }
    Ok(Arc::new(RunTable::open(&files, &session.context.runtime_env()).await?))
}

/// The result of a call, to be made by workers.
async fn later(session: &Session, cluster: &Cluster, call: &Call) -> Result<Arc<dyn TableProvider>, QueryError> {
    // Its columns are known without a run.
    let file = session.scratch.path().join(format!("{}-0.parquet", call.table));
    let mut without_run = vec!["analyze".to_string(), call.name.clone(), "--columns".to_string()];
    without_run.extend(call.told());
    run(&session.stepscope, &without_run, &file).await?;
    let schema = RunTable::open(&[(String::new(), file)], &session.context.runtime_env()).await?.schema();
    let is_by_rank = call.is_of_each_rank() && session.is_by_rank(&call.name).await;
    let mut parts = Vec::new();
    for of in &session.runs {
        let arguments = arguments(session, call, of)?;
        let ranks = if is_by_rank { of.ranks() } else { Vec::new() };
        let part = |more: Option<String>| {
            let arguments = arguments.iter().cloned().chain(more).collect();
            Part { run: of.name.clone(), arguments }
        };
        match ranks.len() {
            0 | 1 => parts.push(part(None)),
            // A worker that is done sooner takes no part of another one: several are nearly as long together.
            count => {
                let each = count.div_ceil(cluster.count() * PARTS_OF_WORKER);
                parts.extend(ranks.chunks(each).map(|ranks| part(Some(format!("--rank={}", spelled(ranks))))));
            }
        }
    }
    Ok(Arc::new(AnalysisTable::new(schema, parts)))
}

/// Ranks as the command line takes them, such as `0-3,8`.
fn spelled(ranks: &[u32]) -> String {
    let apart = |one: &u32, other: &u32| one.checked_add(1) == Some(*other);
    let spelled = ranks.chunk_by(apart).map(|ranks| match ranks {
        [first, .., last] => format!("{first}-{last}"),
        ranks => ranks.iter().map(u32::to_string).collect(),
    });
    spelled.collect::<Vec<_>>().join(",")
}

/// Forgets results of analyses.
pub(crate) fn forget(session: &Session, tables: &[String]) {
    for table in tables {
        // They are gone with the session at the latest.
        let _ = session.context.deregister_table(quoted(table));
        for at in 0..session.runs.len() {
            let _ = std::fs::remove_file(session.scratch.path().join(format!("{table}-{at}.parquet")));
        }
    }
}

fn quoted(table: &str) -> String {
    format!("\"{table}\"")
}

/// What `stepscope` is called with for a run.
fn arguments(session: &Session, call: &Call, of: &Run) -> Result<Vec<String>, QueryError> {
    if of.inputs.is_empty() || of.inputs == [of.folder.clone()] {
        let error =
            QueryError::new(format!("{} is an analysis, and the run that the tables are of is not told", call.name));
        return Err(error.hint("stepscope sql RUN tells it"));
    }
    let mut arguments = vec!["analyze".to_string(), call.name.clone()];
    for input in &of.inputs {
        let Some(input) = input.to_str() else {
            let error = QueryError::new("an analysis needs a path in UTF-8");
            return Err(error.at(input.display().to_string()));
        };
        arguments.push(input.to_string());
    }
    arguments.extend(session.opened_with.iter().cloned());
    arguments.extend(session.memory.map(|bytes| format!("--memory={bytes}")));
    arguments.extend(call.told());
    Ok(arguments)
}

/// Runs an analysis, which writes its result to a file.
///
/// # Errors
/// What it says.
pub(crate) async fn run(program: &Path, arguments: &[String], file: &Path) -> Result<(), QueryError> {
    let mut command = Command::new(program);
    command.args(arguments).arg("--parquet").arg(file).kill_on_drop(true);
    let failed = |error: std::io::Error| QueryError::new(format!("cannot start {}: {error}", program.display()));
    let done = command.output().await.map_err(failed)?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let line = |mark: &str| said.lines().find_map(|line| Some(line.trim().strip_prefix(mark)?.trim().to_string()));
    let what = line("error:").unwrap_or_else(|| said.trim().lines().last().unwrap_or_default().to_string());
    let name = arguments.get(1).map_or("", String::as_str);
    let error = QueryError::new(format!("{name}: {what}"));
    Err(QueryError { hint: line("hint:"), ..error })
}

/// Takes the calls of analyses out of a statement.
fn taken_out(statement: &mut Statement) -> Result<Vec<Call>, QueryError> {
    let mut visitor = Calls { found: Vec::new() };
    let statement = match statement {
        Statement::Statement(statement) => statement.as_mut(),
        Statement::Explain(explain) => return taken_out(&mut explain.statement),
        _ => return Ok(Vec::new()),
    };
    match statement.visit(&mut visitor) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(visitor.found),
    }
}

struct Calls {
    found: Vec<Call>,
}

impl VisitorMut for Calls {
    type Break = QueryError;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<QueryError> {
        let TableFactor::Table { name, alias, args, .. } = factor else { return ControlFlow::Continue(()) };
        let Some(arguments) = args else { return ControlFlow::Continue(()) };
        let called = name.to_string().to_lowercase();
        if OF_ENGINE.contains(&called.as_str()) {
            return ControlFlow::Continue(());
        }
        let place = place_of(&*name);
        let mut options = Vec::new();
        for argument in &arguments.args {
            let at = || place_of(argument).or_else(|| place.clone());
            match option(argument) {
                Some((name, _)) if !OPTIONS.contains(&name.as_str()) => {
                    let error = QueryError::new(format!("{called} has no option {name}"));
                    return ControlFlow::Break(QueryError { hint: hint_of(&name, &OPTIONS), ..error.or_at(at()) });
                }
                Some(option) => options.push(option),
                None => {
                    let error = QueryError::new(format!("{called}: options are written NAME => VALUE, not {argument}"));
                    let error = error.hint("such as operators(group_by => 'module', rank => 3)");
                    return ControlFlow::Break(error.or_at(at()));
                }
            }
        }
        let table = format!("{PREFIX}{}", NEXT.fetch_add(1, Ordering::Relaxed));
        *args = None;
        *name = ObjectName::from(vec![Ident::with_quote('"', table.clone())]);
        if alias.is_none() {
            let name = Ident::new(called.clone());
            *alias = Some(ast::TableAlias { explicit: true, name, columns: Vec::new(), at: None });
        }
        self.found.push(Call { name: called, options, table, place });
        ControlFlow::Continue(())
    }
}

/// Where a part of a statement begins, as far as the parser knows it.
fn place_of(part: &impl Spanned) -> Option<String> {
    let start = part.span().start;
    place(start.line, start.column)
}

/// `group_by => 'module'` as an option and its value.
fn option(argument: &FunctionArg) -> Option<(String, String)> {
    let (name, value) = match argument {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => (name.value.clone(), value),
        FunctionArg::ExprNamed { name: Expr::Identifier(name), arg: FunctionArgExpr::Expr(value), .. } => {
            (name.value.clone(), value)
        }
        _ => return None,
    };
    let value = match value {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.clone(),
            Value::SingleQuotedString(text) => text.clone(),
            Value::Boolean(flag) => flag.to_string(),
            _ => return None,
        },
        Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(value) => format!("-{value}"),
            _ => return None,
        },
        _ => return None,
    };
    Some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::parser::DFParser;

    fn calls(sql: &str) -> Result<Vec<Call>, QueryError> {
        taken_out(&mut DFParser::parse_sql(sql).unwrap()[0])
    }

    #[test]
    fn calls_are_found_wherever_a_table_may_stand() {
        let found = calls(
            "explain with a as (select * from kernels(rank => 3)) select * from a, \
             (select * from Operators(group_by => 'module', depth => -1) as o) join range(1, 5) on true",
        );
        let found: Vec<_> = found.unwrap().into_iter().map(|call| (call.name, call.options)).collect();
        let option = |name: &str, value: &str| (name.to_string(), value.to_string());
        let operators = vec![option("group_by", "module"), option("depth", "-1")];
        assert_eq!(found, [("kernels".to_string(), vec![option("rank", "3")]), ("operators".to_string(), operators)]);
    }

    #[test]
    fn what_is_wrong_with_a_call_has_a_place() {
        let place = |sql: &str| calls(sql).unwrap_err().place;
        assert_eq!(place("select *\nfrom operators('module')").unwrap(), "line 2, column 16");
        assert_eq!(place("select * from operators(rank => 3, groupby => 'name')").unwrap(), "line 1, column 36");
        assert_eq!(place("select * from operators(*)").unwrap(), "line 1, column 15");
        let calls = calls("select 1 from op,\n kernels() as k, (select * from operators()) as o").unwrap();
        let places: Vec<_> = calls.into_iter().filter_map(|call| call.place).collect();
        assert_eq!(places, ["line 2, column 2", "line 2, column 33"]);
    }

    #[test]
    fn ranks_are_spelled_briefly() {
        assert_eq!(spelled(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(spelled(&[3]), "3");
    }

    #[test]
    fn options_without_a_name_are_refused() {
        let error = calls("select * from operators('module')").unwrap_err();
        assert!(error.what.contains("NAME => VALUE") && error.hint.unwrap().contains("group_by =>"));
        assert!(calls("select * from operators(a => (select 1))").is_err());
        assert_eq!(calls("select * from slice").unwrap(), []);
        let error = calls("select * from operators(output => '/tmp/x')").unwrap_err();
        assert_eq!(error.what, "operators has no option output");
        let error = calls("select * from operators(groupby => 'name')").unwrap_err();
        assert_eq!(error.hint.unwrap(), "did you mean group_by?");
    }
}

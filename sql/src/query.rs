//! Answers the statements of a text, one after the other.

use crate::analyses;
use crate::arguments::OutputArguments;
use crate::error::{QueryError, hint_of, place};
use crate::output;
use crate::session::Session;
use datafusion::common::DataFusionError;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{Expr, Spanned, Value, visit_expressions_mut};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use futures_util::StreamExt;
use std::ops::ControlFlow;

/// Answers a text until it is done or Ctrl-C is pressed.
///
/// # Errors
/// What is wrong with a statement, or where rows cannot be written.
pub(crate) async fn run_until_interrupted(
    session: &Session,
    text: &str,
    arguments: &OutputArguments,
) -> Result<(), QueryError> {
    tokio::select! {
        // First, so that it is listened to before there is anything to interrupt.
        biased;
        _ = tokio::signal::ctrl_c() => Err(QueryError::interrupted()),
        done = run(session, text, arguments) => done,
    }
}

async fn run(session: &Session, text: &str, arguments: &OutputArguments) -> Result<(), QueryError> {
    let statements = parsed(text)?;
    let last = statements.len().saturating_sub(1);
    for (at, statement) in statements.into_iter().enumerate() {
        let is_for_people = arguments.is_for_people();
        match planned(session, statement).await? {
            None if at == last && !is_for_people => {
                let error = QueryError::new("the last statement gives no rows");
                return Err(error.hint("end with a select"));
            }
            None => {}
            Some((frame, results)) => {
                // Only the last one has an answer that a program reads.
                let answered = match at == last || is_for_people {
                    true => output::write(session, frame, arguments).await,
                    false => drained(session, frame).await,
                };
                analyses::forget(session, &results);
                answered?;
            }
        }
    }
    Ok(())
}

/// Carries a query out of which nobody reads the rows.
async fn drained(session: &Session, frame: DataFrame) -> Result<(), QueryError> {
    let mut rows = session.rows(frame).await?;
    while let Some(batch) = rows.next().await {
        batch?;
    }
    Ok(())
}

/// The statements of a text.
///
/// # Errors
/// Where it is not SQL.
pub(crate) fn parsed(text: &str) -> Result<Vec<Statement>, QueryError> {
    let dialect = GenericDialect {};
    let parser = DFParserBuilder::new(text).with_dialect(&dialect).build();
    let statements = parser.and_then(|mut parser| parser.parse_statements());
    // Where the text ends too early, the place is its end.
    let end =
        || place(text.lines().count() as u64, text.lines().last().map_or(0, |line| line.chars().count()) as u64 + 1);
    let with_place = |error: QueryError| QueryError { place: error.place.clone().or_else(end), ..error };
    let statements = statements.map_err(|error| with_place(error.into()))?;
    let statements: Vec<Statement> = statements.into_iter().collect();
    if statements.is_empty() {
        return Err(
            QueryError::new("there is nothing to ask").hint("such as select name, sum(dur_ns) from op group by name")
        );
    }
    Ok(statements)
}

/// Expressions of a statement that are left out to find which one is wrong: planning takes about a millisecond.
const MOST_EXPRESSIONS: usize = 200;

/// A question, and the tables that were made for it; none of a name for a question, which is given now.
type Planned = Option<(DataFrame, Vec<String>)>;

async fn planned(session: &Session, mut statement: Statement) -> Result<Planned, QueryError> {
    let results = analyses::replace(session, &mut statement).await?;
    let planned = async {
        let plan = session.context.state().statement_to_plan(statement.clone()).await?;
        check(&plan)?;
        let is_definition = matches!(plan, LogicalPlan::Ddl(_));
        Ok((session.context.execute_logical_plan(plan).await?, is_definition))
    };
    match planned.await {
        // What a view is of stays as long as the view may be asked.
        Ok((_, true)) => Ok(None),
        Ok((frame, false)) => Ok(Some((frame, results))),
        Err(error) => {
            let error = with_tables(session, error);
            let place = match error.place {
                None => place_of_fault(session, &statement).await,
                place => place,
            };
            analyses::forget(session, &results);
            Err(QueryError { place, ..error })
        }
    }
}

/// Where the innermost expression is without which the statement can be planned: the engine tells no place where types do not
/// fit.
async fn place_of_fault(session: &Session, statement: &Statement) -> Option<String> {
    let Statement::Statement(statement) = statement else { return None };
    for nth in 0..MOST_EXPRESSIONS {
        let mut without = statement.clone();
        let mut before = nth;
        // What lies in an expression comes before it.
        let left_out = visit_expressions_mut(&mut without, |expression: &mut Expr| {
            if before > 0 {
                before -= 1;
                return ControlFlow::Continue(());
            }
            let span = expression.span();
            *expression = Expr::value(Value::Null);
            ControlFlow::Break(span)
        });
        let ControlFlow::Break(span) = left_out else { return None };
        if session.context.state().statement_to_plan(Statement::Statement(without)).await.is_ok() {
            return place(span.start.line, span.start.column);
        }
    }
    None
}

/// Queries read tables; beside that, they may give a name to a query. Nothing else is carried out, wherever in a plan it
/// stands: to explain a query with its measures is to carry it out.
fn check(plan: &LogicalPlan) -> Result<(), DataFusionError> {
    let is_view =
        |plan: &LogicalPlan| matches!(plan, LogicalPlan::Ddl(DdlStatement::CreateView(_) | DdlStatement::DropView(_)));
    plan.apply_with_subqueries(|part| {
        let refused = match part {
            LogicalPlan::Ddl(_) if is_view(part) && std::ptr::eq(part, plan) => return Ok(TreeNodeRecursion::Continue),
            LogicalPlan::Ddl(_) => "a definition of anything but a view",
            LogicalPlan::Dml(_) => "a change of rows",
            LogicalPlan::Copy(_) => "a copy into a file",
            LogicalPlan::Statement(_) => "a change of settings",
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        datafusion::common::plan_err!("{refused} is not possible: the tables of a run are only read")
    })
    .map(drop)
}

/// The error, with the tables or functions that may be meant where one is not there.
fn with_tables(session: &Session, error: DataFusionError) -> QueryError {
    let error = QueryError::from(error);
    let function = error.what.to_lowercase().starts_with("invalid function '").then(|| error.what.split('\'').nth(1));
    if let Some(function) = function.flatten() {
        let state = session.context.state();
        let known = state.scalar_functions().keys().chain(state.aggregate_functions().keys());
        let names: Vec<&str> = known.chain(state.window_functions().keys()).map(String::as_str).collect();
        let what = format!("there is no function {function}");
        return QueryError { what, hint: hint_of(function, &names), ..error };
    }
    let missing = error.what.strip_prefix("table '").and_then(|rest| rest.strip_suffix("' not found"));
    let Some(missing) = missing.and_then(|name| name.rsplit('.').next()).map(str::to_string) else { return error };
    let names: Vec<&str> = session.tables.names().collect();
    let hint = hint_of(&missing, &names);
    QueryError { what: format!("there is no table {missing}"), hint, ..error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_sql_has_a_place() {
        let error = parsed("select 1;\nselect from").unwrap_err();
        assert!(error.place.unwrap().starts_with("line 2"), "{}", error.what);
        assert_eq!(parsed("select 1; select 2").unwrap().len(), 2);
        assert!(parsed("  -- nothing").is_err());
    }
}

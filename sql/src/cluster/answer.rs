//! The rows of a query, asked again where a worker was lost meanwhile.
//!
//! What a query gives does not depend on who answers it, and it changes nothing: it can be asked again as often as it takes.
//! But rows that were given cannot be taken back, so they wait in a file until the last of them is there.

use super::workers::{Answering, Workers, address};
use crate::error::QueryError;
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::common::DataFusionError;
use datafusion::common::format::ExplainFormat;
use datafusion::dataframe::DataFrame;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::Explain;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_distributed::{display_plan_ascii, display_plan_graphviz};
use futures_util::{StreamExt, stream};
use std::fs::File;
use std::io::{BufReader, BufWriter, Seek};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often a query is asked while workers come and go.
const ATTEMPTS: usize = 5;
/// When workers are looked at after an error: one that ends may answer for a moment longer.
const WAITS: [Duration; 2] = [Duration::ZERO, Duration::from_millis(500)];

pub(super) async fn rows(
    workers: &Workers,
    frame: DataFrame,
    scratch: &Path,
) -> Result<SendableRecordBatchStream, QueryError> {
    let mut before = workers.look_again().await?;
    for attempt in 1.. {
        match gathered(frame.clone(), scratch).await {
            Ok((schema, file)) => return given(schema, file),
            Err(error) => {
                let mut after = Answering::default();
                let mut lost = Vec::new();
                for wait in WAITS {
                    tokio::time::sleep(wait).await;
                    let Ok(found) = workers.found().await else { return Err(error) };
                    after = found.answering;
                    lost = before.iter().filter(|(url, process)| after.get(url) != Some(process)).collect();
                    if !lost.is_empty() {
                        break;
                    }
                }
                let lost: Vec<String> = lost.into_iter().map(|(url, _)| address(url)).collect();
                if lost.is_empty() || attempt == ATTEMPTS {
                    return Err(error);
                }
                let (lost, left) = (lost.join(", "), after.len());
                eprintln!("warning: worker {lost} was lost; the query is asked again, of {left} workers");
                before = after;
            }
        }
    }
    unreachable!("the last attempt has returned")
}

/// What each worker would do, where `explain` asks for it: the engine says what one process would do. With `verbose`, what is
/// asked for stands before it.
pub(super) async fn plan(frame: DataFrame, explain: &Explain) -> Result<SendableRecordBatchStream, QueryError> {
    let schema: SchemaRef = Arc::clone(explain.schema.inner());
    let plan = frame.into_parts().0.create_physical_plan(&explain.plan).await?;
    let told = match &explain.explain_format {
        ExplainFormat::Indent => display_plan_ascii(plan.as_ref(), false),
        ExplainFormat::Graphviz => display_plan_graphviz(plan)?,
        other => {
            let format = other.to_string();
            return Err(QueryError::new(format!(
                "with --cluster a plan has the format indent or graphviz, not {format}"
            )));
        }
    };
    let mut plans = vec![("distributed_plan", told)];
    if explain.verbose {
        plans.insert(0, ("logical_plan", explain.plan.display_indent().to_string()));
    }
    let (kinds, plans): (Vec<_>, Vec<_>) = plans.into_iter().unzip();
    let columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from(kinds)), Arc::new(StringArray::from(plans))];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(DataFusionError::from)?;
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter([Ok(batch)]))))
}

/// All rows in a file without a name.
async fn gathered(frame: DataFrame, scratch: &Path) -> Result<(SchemaRef, File), QueryError> {
    let mut rows = frame.execute_stream().await?;
    let schema = rows.schema();
    let mut writer = StreamWriter::try_new(BufWriter::new(file(scratch)?), &schema).map_err(DataFusionError::from)?;
    while let Some(batch) = rows.next().await {
        writer.write(&batch?).map_err(DataFusionError::from)?;
    }
    let out = writer.into_inner().map_err(DataFusionError::from)?;
    let mut file = out.into_inner().map_err(|error| not_kept(error.error()))?;
    file.rewind().map_err(|error| not_kept(&error))?;
    Ok((schema, file))
}

fn given(schema: SchemaRef, file: File) -> Result<SendableRecordBatchStream, QueryError> {
    let batches = StreamReader::try_new(BufReader::new(file), None).map_err(DataFusionError::from)?;
    let batches = stream::iter(batches.map(|batch| batch.map_err(DataFusionError::from)));
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
}

fn file(scratch: &Path) -> Result<File, QueryError> {
    tempfile::tempfile_in(scratch).map_err(|error| not_kept(&error))
}

fn not_kept(error: &std::io::Error) -> QueryError {
    QueryError::new(format!("cannot keep rows in a temporary file: {error}"))
}

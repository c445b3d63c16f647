//! Rows as text, CSV, JSON, Arrow or Parquet: written as they come, never all of them in memory.

mod cell;
mod text;

use crate::arguments::OutputArguments;
use crate::error::QueryError;
use crate::session::Session;
use cell::Cells;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::common::DataFusionError;
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::LogicalPlan;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_plan::SendableRecordBatchStream;
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

/// Rows that are printed where it is not said.
const PRINTED_ROWS: usize = 1_000;

impl OutputArguments {
    /// Whether a person reads it.
    pub(crate) fn is_for_people(&self) -> bool {
        !(self.is_json() || self.csv || self.arrow || self.parquet.is_some())
    }

    /// Whether what is printed is JSON, errors included.
    pub(crate) fn is_json(&self) -> bool {
        self.json || self.pages.is_some()
    }

    /// How many rows are given at most.
    fn rows(&self) -> Option<usize> {
        self.limit.or_else(|| (self.is_for_people() || self.json).then_some(PRINTED_ROWS))
    }
}

/// Writes the rows that a query gives where `arguments` say.
///
/// # Errors
/// What is wrong with the query, or with the place.
pub(crate) async fn write(session: &Session, frame: DataFrame, arguments: &OutputArguments) -> Result<(), QueryError> {
    // What is said of a plan is no table of rows.
    let is_plan = matches!(frame.logical_plan(), LogicalPlan::Explain(_) | LogicalPlan::Analyze(_));
    let limit = arguments.rows().filter(|_| !is_plan);
    // One more tells whether there are more.
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let frame = match limit {
        Some(limit) => frame.limit(0, Some(limit.saturating_add(1)))?,
        None => frame,
    };
    let rows = Rows { schema, stream: session.rows(frame).await?, left: limit, is_complete: true };
    if let Some(file) = &arguments.parquet {
        return write_parquet(rows, file).await;
    }
    let out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    match arguments {
        OutputArguments { json: true, .. } => write_json(rows, None, out).await,
        OutputArguments { pages: Some(of), .. } => write_json(rows, Some(of.get()), out).await,
        OutputArguments { csv: true, .. } => write_csv(rows, out).await,
        OutputArguments { arrow: true, .. } => write_arrow(rows, out).await,
        _ => text::write(rows, is_plan, out).await,
    }
}

/// Rows as they come, up to a limit.
struct Rows {
    schema: SchemaRef,
    stream: SendableRecordBatchStream,
    left: Option<usize>,
    /// False once there were more rows than the limit.
    is_complete: bool,
}

impl Rows {
    async fn next(&mut self) -> Result<Option<RecordBatch>, QueryError> {
        while let Some(batch) = self.stream.next().await {
            let batch = batch?;
            let Some(left) = &mut self.left else { return Ok(Some(batch)) };
            if batch.num_rows() > *left {
                self.is_complete = false;
            }
            let batch = batch.slice(0, batch.num_rows().min(*left));
            *left -= batch.num_rows();
            if batch.num_rows() > 0 {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}

fn failed(error: io::Error) -> QueryError {
    QueryError::writing(&error)
}

/// Comes when nobody can read any more what is printed, as the process that asked was killed: a query that has no rows yet
/// would not find out.
#[cfg(unix)]
pub(crate) async fn reader_gone() {
    use rustix::event::{PollFd, PollFlags, poll};
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let stdout = io::stdout();
        // An end is told without being asked for, and nothing else is.
        let mut ends = [PollFd::new(&stdout, PollFlags::empty())];
        while let Err(rustix::io::Errno::INTR) = poll(&mut ends, None) {}
        if ends[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            let _ = tell.send(());
        }
    });
    if told.await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(not(unix))]
pub(crate) async fn reader_gone() {
    std::future::pending::<()>().await;
}

async fn write_csv(mut rows: Rows, mut out: impl Write) -> Result<(), QueryError> {
    let names = rows.schema.fields().iter().map(|field| csv_cell(field.name())).collect::<Vec<_>>();
    writeln!(out, "{}\r", names.join(",")).map_err(failed)?;
    while let Some(batch) = rows.next().await? {
        let columns = Cells::of(&batch)?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|cells| cells.text(row).map(|text| csv_cell(&text)).unwrap_or_default());
            let line = cells.collect::<Vec<_>>().join(",");
            // An empty line is no row for those who read it.
            let line = if line.is_empty() { "\"\"" } else { &line };
            writeln!(out, "{line}\r").map_err(failed)?;
        }
    }
    out.flush().map_err(failed)
}

/// A cell by RFC 4180.
fn csv_cell(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_string(),
    }
}

/// Writes one object with all rows, a row on each line; or one for each `page` rows, each on a line of its own.
async fn write_json(mut rows: Rows, page: Option<usize>, mut out: impl Write) -> Result<(), QueryError> {
    let columns: Vec<Value> = rows.schema.fields().iter().map(|field| column_json(field)).collect();
    let begin = format!("{{\"columns\":{},\"rows\":[", Value::from(columns));
    let line = if page.is_some() { "" } else { "\n" };
    write!(out, "{begin}").map_err(failed)?;
    let mut written = 0;
    while let Some(batch) = rows.next().await? {
        let columns = Cells::of(&batch)?;
        for row in 0..batch.num_rows() {
            // Ended by the row that has no room: whether there is one is a part of it.
            if page == Some(written) {
                writeln!(out, "],\"is_complete\":false}}").and_then(|()| out.flush()).map_err(failed)?;
                write!(out, "{begin}").map_err(failed)?;
                written = 0;
            }
            let cells: Vec<Value> = columns.iter().map(|cells| cells.json(row)).collect();
            let separator = if written > 0 { "," } else { "" };
            write!(out, "{separator}{line}{}", Value::from(cells)).map_err(failed)?;
            written += 1;
        }
    }
    writeln!(out, "],\"is_complete\":{}}}", rows.is_complete).map_err(failed)?;
    out.flush().map_err(failed)
}

/// Units that a column has only as long as it has numbers.
const IS_OF_NUMBERS: [&str; 6] = ["bytes", "count", "id", "ns", "plain", "ratio"];

/// What a column is: its unit and meaning where it is one of a table, or an aggregate of one that has its name.
pub(crate) fn column_json(field: &Field) -> Value {
    let about = |key: &str| field.metadata().get(key).cloned();
    let unit = about("stepscope.unit")
        .filter(|unit| field.data_type().is_numeric() || !IS_OF_NUMBERS.contains(&unit.as_str()));
    let unit = unit.or_else(|| unit_by_name(field).map(String::from));
    json!({"name": field.name(), "type": type_name(field.data_type()), "unit": unit, "doc": about("stepscope.doc")})
}

/// Names end with their unit.
fn unit_by_name(field: &Field) -> Option<&'static str> {
    if !field.data_type().is_numeric() {
        return None;
    }
    [("_ns", "ns"), ("bytes", "bytes"), ("_ratio", "ratio")]
        .into_iter()
        .find_map(|(end, unit)| field.name().ends_with(end).then_some(unit))
}

fn type_name(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "flag",
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => "text",
        DataType::Float16 | DataType::Float32 | DataType::Float64 => "float",
        other if other.is_integer() => "int",
        DataType::Decimal128(..) | DataType::Decimal256(..) => "float",
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 | DataType::Time64(_) => "time",
        DataType::List(_) | DataType::LargeList(_) | DataType::Struct(_) => "list",
        _ => "other",
    }
}

async fn write_arrow(mut rows: Rows, out: impl Write) -> Result<(), QueryError> {
    let schema = for_programs(&rows.schema);
    let failed = |error| match error {
        ArrowError::IoError(_, error) => QueryError::writing(&error),
        other => QueryError::from(DataFusionError::from(other)),
    };
    let mut writer = StreamWriter::try_new(out, &schema).map_err(failed)?;
    while let Some(batch) = rows.next().await? {
        writer.write(&cast_to(&batch, &schema)?).map_err(failed)?;
    }
    writer.finish().map_err(failed)
}

async fn write_parquet(mut rows: Rows, path: &Path) -> Result<(), QueryError> {
    let failed = |error: &dyn std::fmt::Display| {
        QueryError::new(format!("cannot write the rows: {error}")).at(path.display().to_string())
    };
    let schema = for_programs(&rows.schema);
    // The file has its name once it is whole.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = tempfile::Builder::new().prefix(".writing").tempfile_in(folder).map_err(|error| failed(&error))?;
    let level = ZstdLevel::try_new(3).map_err(|error| failed(&error))?;
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
    let mut writer = ArrowWriter::try_new(BufWriter::new(&file), Arc::clone(&schema), Some(properties))
        .map_err(|error| failed(&error))?;
    while let Some(batch) = rows.next().await? {
        writer.write(&cast_to(&batch, &schema)?).map_err(|error| failed(&error))?;
    }
    writer.close().map_err(|error| failed(&error))?;
    give_rights_of_new_files(file.as_file()).map_err(|error| failed(&error))?;
    file.persist(path).map(drop).map_err(|error| failed(&error))
}

/// Those that a file has that a program makes: temporary ones are only for their owner.
#[cfg(unix)]
fn give_rights_of_new_files(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn give_rights_of_new_files(_: &File) -> io::Result<()> {
    Ok(())
}

/// The schema with the types that all readers of Arrow know.
fn for_programs(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let data_type = match field.data_type() {
            DataType::Utf8View => DataType::Utf8,
            DataType::BinaryView => DataType::Binary,
            other => other.clone(),
        };
        Field::clone(field).with_data_type(data_type).with_nullable(true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn cast_to(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, QueryError> {
    let cast = |(column, field): (&ArrayRef, &Arc<Field>)| cast(column, field.data_type());
    let columns = batch.columns().iter().zip(schema.fields()).map(cast).collect::<Result<Vec<_>, _>>();
    let batch = columns.and_then(|columns| RecordBatch::try_new(Arc::clone(schema), columns));
    batch.map_err(|error| QueryError::from(DataFusionError::from(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_csv_are_quoted_where_they_must_be() {
        assert_eq!(csv_cell("aten::mm"), "aten::mm");
        assert_eq!(csv_cell("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
    }
}

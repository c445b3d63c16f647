//! A summary as a Parquet file: one row, a column for each part of the trace, and one for the rows of each analysis.

use crate::Summary;
use crate::stored::{self, Stored};
use crate::tables;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, FieldRef, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use stepscope_analyses::Table;

/// Why a summary is none.
#[derive(Debug)]
pub struct SummaryError(pub(crate) String);

impl fmt::Display for SummaryError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for SummaryError {}

macro_rules! errors_from {
    ($($error:ty),*) => {
        $(impl From<$error> for SummaryError {
            fn from(error: $error) -> Self {
                Self(error.to_string())
            }
        })*
    };
}

errors_from!(ParquetError, ArrowError, serde_arrow::Error);

/// The columns of a file: those of [`Stored`], found from its type, and one for each analysis.
struct Columns {
    stored: Vec<FieldRef>,
    all: SchemaRef,
}

impl Columns {
    /// They are the same in every file.
    fn get() -> Result<&'static Self, SummaryError> {
        static COLUMNS: OnceLock<Result<Columns, String>> = OnceLock::new();
        let find = || {
            let stored = stored::fields().map_err(|error| error.to_string())?;
            let all: Vec<FieldRef> = stored.iter().cloned().chain(tables::fields()).collect();
            Ok(Self { stored, all: Arc::new(Schema::new(all)) })
        };
        COLUMNS.get_or_init(find).as_ref().map_err(|error| SummaryError(error.clone()))
    }
}

/// What the file's metadata calls the sum of what the trace and the program were.
const OF: &str = "stepscope.summary_of";

/// The content of the file with the summary of what has this sum.
///
/// # Errors
/// When the summary holds what Parquet cannot say.
pub fn to_bytes(summary: &Summary, of: u64) -> Result<Vec<u8>, SummaryError> {
    let fields = Columns::get()?;
    let mut columns = serde_arrow::to_arrow(&fields.stored, &[Stored::of(summary)])?;
    columns.extend(tables::columns(summary));
    let batch = RecordBatch::try_new(Arc::clone(&fields.all), columns)?;
    // Neither compressed nor with dictionaries: each of hundreds of columns would begin with a decompressor and a
    // dictionary of its own, which takes longer than reading the column.
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_key_value_metadata(Some(vec![KeyValue::new(OF.into(), format!("{of:016x}"))]))
        .build();
    let mut bytes = Vec::new();
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(&mut bytes, batch.schema(), options)?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(bytes)
}

/// The summary that a file of these bytes is, of what has this sum; without the results of analyses.
///
/// # Errors
/// When they are none, or that of something else.
pub fn from_bytes(bytes: impl Into<Bytes>, of: u64) -> Result<Summary, SummaryError> {
    undamaged(|| {
        let fields = Columns::get()?;
        let columns = read(bytes.into(), of, 0..fields.stored.len())?;
        let stored: Vec<Stored> = serde_arrow::from_arrow(&fields.stored, &columns)?;
        stored.into_iter().next().ok_or_else(no_row)?.into_summary()
    })
}

/// The result of the analysis called `name` in such a file; `None` where it is not kept.
///
/// # Errors
/// As [`from_bytes`].
pub fn table_from_bytes(bytes: impl Into<Bytes>, of: u64, name: &str) -> Result<Option<Table>, SummaryError> {
    undamaged(|| {
        let Ok(place) = Columns::get()?.all.index_of(name) else { return Ok(None) };
        Ok(tables::of_column(name, &read(bytes.into(), of, place..place + 1)?[0]))
    })
}

/// The results of all analyses in such a file, by name.
///
/// # Errors
/// As [`from_bytes`].
pub(crate) fn tables_from_bytes(bytes: Bytes, of: u64) -> Result<Vec<(&'static str, Table)>, SummaryError> {
    undamaged(|| {
        let fields = Columns::get()?;
        let columns = read(bytes, of, fields.stored.len()..fields.all.fields().len())?;
        let tables = tables::names().zip(&columns);
        Ok(tables.filter_map(|(name, column)| Some((name, tables::of_column(name, column)?))).collect())
    })
}

fn no_row() -> SummaryError {
    SummaryError("it has no row".into())
}

/// What `read` gives; the library panics at some damages of pages.
fn undamaged<T>(read: impl FnOnce() -> Result<T, SummaryError>) -> Result<T, SummaryError> {
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
    read.unwrap_or_else(|_| Err(SummaryError("its pages are damaged".into())))
}

/// The columns at `places` of all.
fn read(bytes: Bytes, of: u64, places: Range<usize>) -> Result<Vec<ArrayRef>, SummaryError> {
    let options = ArrowReaderOptions::new().with_schema(Arc::clone(&Columns::get()?.all));
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes, options)?;
    let entries = reader.metadata().file_metadata().key_value_metadata().into_iter().flatten();
    let own = entries.filter(|entry| entry.key == OF).find_map(|entry| entry.value.as_deref());
    if own != Some(format!("{of:016x}").as_str()) {
        return Err(SummaryError("it is of something else".into()));
    }
    let asked = ProjectionMask::roots(reader.parquet_schema(), places);
    let batch = reader.with_projection(asked).build()?.next().ok_or_else(no_row)??;
    Ok(batch.columns().to_vec())
}

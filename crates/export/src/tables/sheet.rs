//! A table described by how each cell is looked up, written batch by batch.

use arrow_array::builder::{Float64Builder, Int64Builder, StringDictionaryBuilder, UInt64Builder};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;
use stepscope_trace::Trace;

/// Rows in memory at a time.
const BATCH_ROWS: usize = 1 << 16;

/// Looks a cell up by its row; none is no answer.
type Accessor<'a, T> = Box<dyn Fn(usize) -> Option<T> + 'a>;

enum Cells<'a> {
    Int(Accessor<'a, i64>),
    Unsigned(Accessor<'a, u64>),
    Float(Accessor<'a, f64>),
    Flag(Accessor<'a, bool>),
    Text(Accessor<'a, Cow<'a, str>>),
}

/// A table: its name, its rows, its columns.
pub(super) struct Sheet<'a> {
    pub(super) name: &'static str,
    rows: usize,
    columns: Vec<(Cow<'static, str>, Cells<'a>)>,
}

impl<'a> Sheet<'a> {
    pub(super) fn new(name: &'static str, rows: usize) -> Self {
        Self { name, rows, columns: Vec::new() }
    }

    pub(super) fn int(mut self, name: impl Into<Cow<'static, str>>, look: impl Fn(usize) -> Option<i64> + 'a) -> Self {
        self.columns.push((name.into(), Cells::Int(Box::new(look))));
        self
    }

    pub(super) fn unsigned(
        mut self,
        name: impl Into<Cow<'static, str>>,
        look: impl Fn(usize) -> Option<u64> + 'a,
    ) -> Self {
        self.columns.push((name.into(), Cells::Unsigned(Box::new(look))));
        self
    }

    pub(super) fn float(
        mut self,
        name: impl Into<Cow<'static, str>>,
        look: impl Fn(usize) -> Option<f64> + 'a,
    ) -> Self {
        self.columns.push((name.into(), Cells::Float(Box::new(look))));
        self
    }

    pub(super) fn flag(
        mut self,
        name: impl Into<Cow<'static, str>>,
        look: impl Fn(usize) -> Option<bool> + 'a,
    ) -> Self {
        self.columns.push((name.into(), Cells::Flag(Box::new(look))));
        self
    }

    pub(super) fn text(
        mut self,
        name: impl Into<Cow<'static, str>>,
        look: impl Fn(usize) -> Option<&'a str> + 'a,
    ) -> Self {
        self.columns.push((name.into(), Cells::Text(Box::new(move |row| look(row).map(Cow::Borrowed)))));
        self
    }

    /// Adds a column of texts that are put together.
    pub(super) fn made_text(
        mut self,
        name: impl Into<Cow<'static, str>>,
        look: impl Fn(usize) -> Option<String> + 'a,
    ) -> Self {
        self.columns.push((name.into(), Cells::Text(Box::new(move |row| look(row).map(Cow::Owned)))));
        self
    }

    /// Writes it as one Parquet file.
    pub(super) fn write<W: Write + Send>(&self, trace: &Trace, out: W) -> io::Result<()> {
        let schema = Arc::new(self.schema());
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).map_err(io::Error::other)?))
            .set_key_value_metadata(Some(vec![KeyValue::new("stepscope".into(), metadata(trace))]))
            .build();
        let mut writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties)).map_err(plain_error)?;
        let starts = (0..self.rows).step_by(BATCH_ROWS);
        for rows in starts.map(|start| start..self.rows.min(start + BATCH_ROWS)) {
            let columns =
                self.columns.iter().map(|(_, cells)| array(cells, rows.clone())).collect::<io::Result<_>>()?;
            let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(io::Error::other)?;
            writer.write(&batch).map_err(plain_error)?;
        }
        writer.close().map(drop).map_err(plain_error)
    }

    fn schema(&self) -> Schema {
        let data_type = |cells: &Cells<'_>| match cells {
            Cells::Int(_) => DataType::Int64,
            Cells::Unsigned(_) => DataType::UInt64,
            Cells::Float(_) => DataType::Float64,
            Cells::Flag(_) => DataType::Boolean,
            Cells::Text(_) => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        };
        Schema::new(
            self.columns
                .iter()
                .map(|(name, cells)| Field::new(name.as_ref(), data_type(cells), true))
                .collect::<Vec<_>>(),
        )
    }
}

/// The cells of some rows.
fn array(cells: &Cells<'_>, rows: Range<usize>) -> io::Result<ArrayRef> {
    Ok(match cells {
        Cells::Int(look) => {
            let mut builder = Int64Builder::with_capacity(rows.len());
            rows.for_each(|row| builder.append_option(look(row)));
            Arc::new(builder.finish())
        }
        Cells::Unsigned(look) => {
            let mut builder = UInt64Builder::with_capacity(rows.len());
            rows.for_each(|row| builder.append_option(look(row)));
            Arc::new(builder.finish())
        }
        Cells::Float(look) => {
            let mut builder = Float64Builder::with_capacity(rows.len());
            rows.for_each(|row| builder.append_option(look(row)));
            Arc::new(builder.finish())
        }
        Cells::Flag(look) => Arc::new(rows.map(look).collect::<BooleanArray>()),
        Cells::Text(look) => {
            let mut builder = StringDictionaryBuilder::<Int32Type>::new();
            for row in rows {
                match look(row) {
                    Some(text) => drop(builder.append(text).map_err(io::Error::other)?),
                    None => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
    })
}

/// What holds for the whole file: which run, and which Unix time its time 0 is.
fn metadata(trace: &Trace) -> String {
    let metadata = serde_json::json!({
        "schema": stepscope_engine::SCHEMA,
        "run": trace.name,
        "sources": trace.sources,
        "start_unix_ns": trace.start_unix_ns,
    });
    metadata.to_string()
}

/// The system's own error, where the Parquet writer wraps one.
pub(crate) fn plain_error(error: parquet::errors::ParquetError) -> io::Error {
    match error {
        parquet::errors::ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(inner) => io::Error::other(inner),
        },
        other => io::Error::other(other),
    }
}

//! A table described by how each cell is looked up, written batch by batch.

use super::source::Source;
use arrow_array::builder::{Float64Builder, Int64Builder, UInt64Builder};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::sync::Arc;
use stepscope_base::StringId;
use stepscope_engine::Unit;
use stepscope_trace::Trace;

/// Rows in memory at a time.
const BATCH_ROWS: usize = 1 << 16;
/// Rows of a group, of which a reader can tell by its limits, and by which names are in it, that it has not to read it.
const GROUP_ROWS: usize = 1 << 17;
/// The distinct names that a group is expected to have.
const NAMES: u64 = 4_000;

/// Looks a cell up by its row; none is no answer.
type Accessor<'a, T> = Box<dyn Fn(usize) -> Option<T> + Send + Sync + 'a>;

enum Cells<'a> {
    Int(Accessor<'a, i64>),
    Unsigned(Accessor<'a, u64>),
    Float(Accessor<'a, f64>),
    Flag(Accessor<'a, bool>),
    /// The text by a number that equal ones have in common, and of the first row that has the number.
    Text(Accessor<'a, u64>, Box<dyn Fn(usize) -> Cow<'a, str> + Send + Sync + 'a>),
}

struct SheetColumn<'a> {
    name: Cow<'static, str>,
    unit: &'static str,
    doc: &'static str,
    cells: Cells<'a>,
}

/// A table: its name, what a row is, its rows, its columns.
pub(super) struct Sheet<'a> {
    pub(super) name: &'static str,
    pub(super) doc: &'static str,
    rows: usize,
    /// The rank of a row; none where rows belong to no rank.
    rank: Option<Box<dyn Fn(usize) -> u32 + Send + Sync + 'a>>,
    columns: Vec<SheetColumn<'a>>,
}

impl<'a> Sheet<'a> {
    pub(super) fn new(name: &'static str, doc: &'static str, rows: usize) -> Self {
        Self { name, doc, rows, rank: None, columns: Vec::new() }
    }

    fn with(mut self, name: impl Into<Cow<'static, str>>, unit: Unit, doc: &'static str, cells: Cells<'a>) -> Self {
        self.columns.push(SheetColumn { name: name.into(), unit: unit.as_str(), doc, cells });
        self
    }

    /// Adds the column of ranks, by which the rows of a run are parted.
    pub(super) fn rank(mut self, look: impl Fn(usize) -> u32 + Clone + Send + Sync + 'a) -> Self {
        self.rank = Some(Box::new(look.clone()));
        self.int("rank", "The rank that it belongs to.", move |row| Some(look(row).into()))
    }

    pub(super) fn int(
        self,
        name: impl Into<Cow<'static, str>>,
        doc: &'static str,
        look: impl Fn(usize) -> Option<i64> + Send + Sync + 'a,
    ) -> Self {
        self.with(name, Unit::Count, doc, Cells::Int(Box::new(look)))
    }

    /// A column of numbers by which something is named.
    pub(super) fn id(
        mut self,
        name: &'static str,
        doc: &'static str,
        look: impl Fn(usize) -> Option<i64> + Send + Sync + 'a,
    ) -> Self {
        self.columns.push(SheetColumn { name: name.into(), unit: "id", doc, cells: Cells::Int(Box::new(look)) });
        self
    }

    pub(super) fn ns(
        self,
        name: &'static str,
        doc: &'static str,
        look: impl Fn(usize) -> Option<i64> + Send + Sync + 'a,
    ) -> Self {
        self.with(name, Unit::Nanoseconds, doc, Cells::Int(Box::new(look)))
    }

    pub(super) fn bytes(
        self,
        name: &'static str,
        doc: &'static str,
        look: impl Fn(usize) -> Option<i64> + Send + Sync + 'a,
    ) -> Self {
        self.with(name, Unit::Bytes, doc, Cells::Int(Box::new(look)))
    }

    pub(super) fn unsigned(
        self,
        name: impl Into<Cow<'static, str>>,
        doc: &'static str,
        look: impl Fn(usize) -> Option<u64> + Send + Sync + 'a,
    ) -> Self {
        self.with(name, Unit::Count, doc, Cells::Unsigned(Box::new(look)))
    }

    pub(super) fn float(
        self,
        name: impl Into<Cow<'static, str>>,
        unit: Unit,
        doc: &'static str,
        look: impl Fn(usize) -> Option<f64> + Send + Sync + 'a,
    ) -> Self {
        self.with(name, unit, doc, Cells::Float(Box::new(look)))
    }

    pub(super) fn flag(
        self,
        name: impl Into<Cow<'static, str>>,
        doc: &'static str,
        look: impl Fn(usize) -> Option<bool> + Send + Sync + 'a,
    ) -> Self {
        self.with(name, Unit::Flag, doc, Cells::Flag(Box::new(look)))
    }

    /// A column of texts: few rows, or texts of the program.
    pub(super) fn text(
        self,
        name: &'static str,
        doc: &'static str,
        look: impl Fn(usize) -> Option<&'a str> + Clone + Send + Sync + 'a,
    ) -> Self {
        // Equal texts at two addresses are two entries of a dictionary, which does no harm.
        let key = look.clone();
        let key = move |row| key(row).map(|text| (text.as_ptr() as u64) << 16 ^ text.len() as u64);
        let text = move |row| Cow::Borrowed(look(row).unwrap_or_default());
        self.with(name, Unit::Text, doc, Cells::Text(Box::new(key), Box::new(text)))
    }

    /// A column of texts of the trace.
    pub(super) fn named(
        self,
        name: &'static str,
        doc: &'static str,
        source: &'a Source<'a>,
        look: impl Fn(usize) -> Option<StringId> + Clone + Send + Sync + 'a,
    ) -> Self {
        let text = {
            let look = look.clone();
            move |row| Cow::Borrowed(look(row).map_or("", |text| source.trace.strings.get(text)))
        };
        let key = move |row| look(row).map(|text| text.0.into());
        self.with(name, Unit::Text, doc, Cells::Text(Box::new(key), Box::new(text)))
    }

    /// A column of texts that are put together, for each number that `key` gives once.
    pub(super) fn made(
        self,
        name: &'static str,
        doc: &'static str,
        key: impl Fn(usize) -> Option<u64> + Send + Sync + 'a,
        text: impl Fn(usize) -> String + Send + Sync + 'a,
    ) -> Self {
        self.with(name, Unit::Text, doc, Cells::Text(Box::new(key), Box::new(move |row| Cow::Owned(text(row)))))
    }

    /// What its columns are: name, unit, meaning.
    pub(super) fn columns(&self) -> impl Iterator<Item = (&str, &'static str, &'static str)> {
        self.columns.iter().map(|column| (column.name.as_ref(), column.unit, column.doc))
    }

    /// The rows of each rank of which there are some, in parts of at most `most`; of all ranks together where rows belong
    /// to none.
    pub(super) fn parts(&self, most: usize) -> Vec<(Option<u32>, Vec<u32>)> {
        let rows = 0..self.rows as u32;
        let Some(rank_of) = &self.rank else { return vec![(None, rows.collect())] };
        let mut of_ranks = BTreeMap::<u32, Vec<u32>>::new();
        rows.for_each(|row| of_ranks.entry(rank_of(row as usize)).or_default().push(row));
        let parts = of_ranks
            .into_iter()
            .flat_map(|(rank, rows)| rows.chunks(most).map(|part| (Some(rank), part.to_vec())).collect::<Vec<_>>());
        parts.collect()
    }

    /// Writes all rows as one Parquet file.
    pub(super) fn write_all<W: Write + Send>(&self, run: &Trace, out: W) -> io::Result<()> {
        self.write(run, &(0..self.rows as u32).collect::<Vec<_>>(), out)
    }

    /// Writes some rows as one Parquet file of a run.
    pub(super) fn write<W: Write + Send>(&self, run: &Trace, rows: &[u32], out: W) -> io::Result<()> {
        let schema = Arc::new(self.schema());
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).map_err(io::Error::other)?))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_column_bloom_filter_enabled(ColumnPath::from("name"), true)
            .set_column_bloom_filter_max_ndv(ColumnPath::from("name"), NAMES)
            .set_key_value_metadata(Some(vec![KeyValue::new("stepscope".into(), self.metadata(run))]))
            .build();
        let mut writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties)).map_err(plain_error)?;
        for rows in rows.chunks(BATCH_ROWS) {
            let columns = self.columns.iter().map(|column| array(&column.cells, rows)).collect();
            let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(io::Error::other)?;
            writer.write(&batch).map_err(plain_error)?;
        }
        writer.close().map(drop).map_err(plain_error)
    }

    fn schema(&self) -> Schema {
        let field = |column: &SheetColumn<'_>| {
            let data_type = match column.cells {
                Cells::Int(_) => DataType::Int64,
                Cells::Unsigned(_) => DataType::UInt64,
                Cells::Float(_) => DataType::Float64,
                Cells::Flag(_) => DataType::Boolean,
                Cells::Text(..) => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            };
            let about = [("stepscope.doc", column.doc), ("stepscope.unit", column.unit)];
            let about: HashMap<String, String> = about.map(|(key, value)| (key.into(), value.into())).into();
            Field::new(column.name.as_ref(), data_type, true).with_metadata(about)
        };
        Schema::new(self.columns.iter().map(field).collect::<Vec<_>>())
    }

    /// What holds for the whole file: what a row is, which run, and which Unix time its time 0 is.
    fn metadata(&self, run: &Trace) -> String {
        let metadata = serde_json::json!({
            "schema": stepscope_engine::SCHEMA,
            "table": self.name,
            "row": self.doc,
            "run": run.name,
            "sources": run.sources,
            "start_unix_ns": run.start_unix_ns,
        });
        metadata.to_string()
    }
}

/// The cells of some rows.
fn array(cells: &Cells<'_>, rows: &[u32]) -> ArrayRef {
    let rows = rows.iter().map(|row| *row as usize);
    match cells {
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
        Cells::Text(key, text) => {
            let (mut seen, mut texts) = (FxHashMap::<u64, i32>::default(), Vec::new());
            let mut last = None;
            let keys = rows.map(|row| {
                let key = key(row)?;
                // Neighbours often have the same.
                if let Some((before, at)) = last
                    && before == key
                {
                    return Some(at);
                }
                let at = *seen.entry(key).or_insert_with(|| {
                    texts.push(text(row));
                    texts.len() as i32 - 1
                });
                last = Some((key, at));
                Some(at)
            });
            let keys: Int32Array = keys.collect();
            let texts = StringArray::from_iter_values(&texts);
            Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(texts)))
        }
    }
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

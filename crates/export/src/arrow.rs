//! A result as an Arrow batch, and as a Parquet file.

use crate::tables::plain_error;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;
use stepscope_engine::{Column, ColumnRow, Described, Envelope, Table, Values};

/// `table` as one batch; "no answer" is null. What the result means stands in the schema's metadata,
/// what a column means in that of its field.
///
/// # Panics
/// Never: columns of a table are equally long.
pub fn record_batch(envelope: &Envelope) -> RecordBatch {
    let table = &envelope.results;
    let doc = |column: &Column| HashMap::from([("stepscope.doc".to_string(), column.doc.to_string())]);
    let field = |column: &Column| Field::new(column.name, data_type(column), true).with_metadata(doc(column));
    let fields: Vec<Field> = table.columns.iter().map(field).collect();
    let about = [("stepscope.analysis", envelope.analysis), ("stepscope.definition", &envelope.definition)];
    let about: HashMap<String, String> = about.map(|(key, value)| (key.to_string(), value.to_string())).into();
    let schema = Arc::new(Schema::new(fields).with_metadata(about));
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(table.len()));
    let columns = table.columns.iter().map(array).collect();
    RecordBatch::try_new_with_options(schema, columns, &options).expect("columns of a table are equally long")
}

/// Writes a result as Parquet, with the envelope but its rows in the file's metadata.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_result<W: Write + Send>(envelope: &Envelope, out: W) -> io::Result<()> {
    let columns = envelope.results.columns.iter().map(ColumnRow::of).collect();
    let without_rows = Envelope { results: Table::default(), ..envelope.clone() };
    let about = serde_json::to_string(&Described { envelope: &without_rows, columns })?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).map_err(plain_error)?))
        .set_key_value_metadata(Some(vec![KeyValue::new("stepscope".into(), about)]))
        .build();
    let batch = record_batch(envelope);
    let mut writer = ArrowWriter::try_new(out, batch.schema(), Some(properties)).map_err(plain_error)?;
    writer.write(&batch).map_err(plain_error)?;
    writer.close().map(drop).map_err(plain_error)
}

/// Writes a result as a stream of Arrow's IPC, with what it means in the schema's metadata.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_arrow<W: Write>(envelope: &Envelope, out: W) -> io::Result<()> {
    let batch = record_batch(envelope);
    let failed = |error: arrow_schema::ArrowError| io::Error::other(error.to_string());
    let mut writer = StreamWriter::try_new(out, &batch.schema()).map_err(failed)?;
    writer.write(&batch).and_then(|()| writer.finish()).map_err(failed)
}

fn data_type(column: &Column) -> DataType {
    match &column.values {
        Values::Int(_) => DataType::Int64,
        Values::Float(_) => DataType::Float64,
        Values::Text(_) => DataType::Utf8,
        Values::Bool(_) => DataType::Boolean,
    }
}

fn array(column: &Column) -> ArrayRef {
    match &column.values {
        Values::Int(values) => Arc::new(Int64Array::from_iter(values.iter().copied())),
        Values::Float(values) => Arc::new(Float64Array::from_iter(values.iter().copied())),
        Values::Text(values) => Arc::new(StringArray::from_iter(values.iter().map(Option::as_deref))),
        Values::Bool(values) => Arc::new(BooleanArray::from_iter(values.iter().copied())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use stepscope_engine::{Selection, Trace, analyze, list_analyses};
    use stepscope_trace::drawn::drawn;

    #[test]
    fn a_result_is_read_back_with_what_it_means() {
        let trace = drawn("rank 0 cpu 1 aabbb\nrank 0 launch 1 .C...\nrank 0 stream 7 ..CC.");
        let envelope = analyze(&trace, "operators", &Selection::default()).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        write_result(&envelope, file.reopen().unwrap()).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file.reopen().unwrap()).unwrap();
        let about = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let about = about.iter().find(|entry| entry.key == "stepscope").unwrap().value.clone().unwrap();
        let about: serde_json::Value = serde_json::from_str(&about).unwrap();
        assert_eq!(
            (about["analysis"].as_str(), about["results"].as_array().map(Vec::len)),
            (Some("operators"), Some(0))
        );
        let doc = about["columns"][0]["doc"].as_str().unwrap();
        assert_eq!(reader.schema().field(0).metadata()["stepscope.doc"], doc);
        let batch = reader.build().unwrap().next().unwrap().unwrap();
        let counts = batch.column_by_name("count").unwrap().as_primitive::<Int64Type>();
        assert_eq!(counts.values().iter().sum::<i64>(), 2);
        assert_eq!(batch.num_rows(), envelope.results.len());
    }

    #[test]
    fn a_stream_has_the_batch() {
        let envelope = analyze(&drawn("rank 0 cpu 1 aabbb"), "operators", &Selection::default()).unwrap();
        let mut bytes = Vec::new();
        write_arrow(&envelope, &mut bytes).unwrap();
        let mut read = arrow_ipc::reader::StreamReader::try_new(bytes.as_slice(), None).unwrap();
        assert_eq!(read.next().unwrap().unwrap(), record_batch(&envelope));
        assert!(read.next().is_none());
    }

    #[test]
    fn every_analysis_becomes_a_batch_also_without_rows() {
        for (name, _) in list_analyses() {
            let envelope = analyze(&Trace::default(), name, &Selection::default()).unwrap();
            let batch = record_batch(&envelope);
            assert_eq!((batch.num_rows(), batch.num_columns()), (0, envelope.results.columns.len()), "{name}");
            write_result(&envelope, Vec::new()).unwrap();
        }
    }
}

//! The cells of a column as text and as JSON.

use crate::error::QueryError;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::DataFusionError;
use serde_json::{Map, Number, Value};

/// One column of a batch.
pub(super) struct Cells {
    values: ArrayRef,
    /// As it came, where its text says more than a number of JSON can.
    exact: Option<ArrayRef>,
}

impl Cells {
    /// The columns of a batch, in types that are printed.
    pub(super) fn of(batch: &RecordBatch) -> Result<Vec<Self>, QueryError> {
        let plain = |values: &ArrayRef| {
            let is_exact = values.data_type().is_floating() || values.data_type().is_decimal();
            let exact = is_exact.then(|| values.clone());
            let values = match plain_type(values.data_type()) {
                Some(data_type) => cast(values, &data_type).map_err(DataFusionError::from)?,
                None => values.clone(),
            };
            Ok(Self { values, exact })
        };
        batch.columns().iter().map(plain).collect()
    }

    /// The cell of a row; none where it is null.
    pub(super) fn text(&self, row: usize) -> Option<String> {
        if let Some(exact) = self.exact.as_ref().filter(|exact| exact.is_valid(row)) {
            let formatter = ArrayFormatter::try_new(exact, &FormatOptions::default()).ok()?;
            return Some(formatter.value(row).to_string());
        }
        match value(&self.values, row) {
            Value::Null => None,
            Value::String(text) => Some(text),
            other => Some(other.to_string()),
        }
    }

    /// The cell of a row as JSON.
    pub(super) fn json(&self, row: usize) -> Value {
        value(&self.values, row)
    }
}

/// The type in which a column is read, where it is another one.
fn plain_type(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 | DataType::Dictionary(..) => Some(DataType::Utf8),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => {
            Some(DataType::Int64)
        }
        DataType::Float16 | DataType::Float32 | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            Some(DataType::Float64)
        }
        _ => None,
    }
}

fn value(values: &ArrayRef, row: usize) -> Value {
    if values.is_null(row) {
        return Value::Null;
    }
    match values.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => Value::Bool(values.as_boolean().value(row)),
        DataType::Int64 => values.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt64 => values.as_primitive::<UInt64Type>().value(row).into(),
        // What is no number has no form in JSON.
        DataType::Float64 => {
            Number::from_f64(values.as_primitive::<Float64Type>().value(row)).map_or(Value::Null, Value::from)
        }
        DataType::Utf8 => values.as_string::<i32>().value(row).into(),
        DataType::List(_) => {
            let inner = values.as_list::<i32>().value(row);
            (0..inner.len()).map(|at| value(&inner, at)).collect()
        }
        DataType::Struct(fields) => {
            let columns = values.as_struct();
            let members = fields.iter().zip(columns.columns());
            Value::Object(
                members.map(|(field, column)| (field.name().clone(), value(column, row))).collect::<Map<_, _>>(),
            )
        }
        other => match plain_type(other).and_then(|data_type| cast(values, &data_type).ok()) {
            Some(plain) => value(&plain, row),
            None => {
                let formatter = ArrayFormatter::try_new(values, &FormatOptions::default());
                formatter.map_or(Value::Null, |formatter| formatter.value(row).to_string().into())
            }
        },
    }
}

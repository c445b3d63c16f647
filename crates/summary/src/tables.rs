//! Results of analyses as columns of a file of one row: each is the list of its rows.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, FieldRef};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use stepscope_analyses::{Analysis, Column, Needs, Selection, Table, Values, catalogue};

/// The rows of `table` as one list. What a column means is in the metadata of its field.
pub(crate) fn to_column(name: &str, table: &Table) -> (FieldRef, ArrayRef) {
    let column = |column: &Column| {
        let doc = HashMap::from([("stepscope.doc".to_string(), column.doc.to_string())]);
        let values = array(&column.values);
        let field = Field::new(column.name, values.data_type().clone(), true).with_metadata(doc);
        (Arc::new(field), values)
    };
    let rows = StructArray::from(table.columns.iter().map(column).collect::<Vec<_>>());
    let item = Arc::new(Field::new("item", rows.data_type().clone(), false));
    let lengths = OffsetBuffer::from_lengths([rows.len()]);
    let list = ListArray::new(Arc::clone(&item), lengths, Arc::new(rows), None);
    (Arc::new(Field::new(name, DataType::List(item), false)), Arc::new(list))
}

/// The results in a batch of one row; those of analyses that now have other columns are left out.
pub(crate) fn of_batch(batch: &RecordBatch) -> Vec<(&'static str, Table)> {
    let of_each_rank = catalogue().iter().filter(|analysis| matches!(analysis.needs, Needs::EachRankKept));
    of_each_rank.filter_map(|analysis| Some((analysis.name, of_column(analysis, batch)?))).collect()
}

fn of_column(analysis: &Analysis, batch: &RecordBatch) -> Option<Table> {
    let list = batch.column_by_name(analysis.name)?.as_list_opt::<i32>()?;
    let rows = (!list.is_empty()).then(|| list.value(0))?;
    let rows = rows.as_struct_opt()?;
    let mut texts = HashSet::new();
    let column = |column: Column| {
        let values = values(&column.values, rows.column_by_name(column.name)?, &mut texts)?;
        Some(Column { values, ..column })
    };
    Some(Table { columns: analysis.columns(&Selection::default()).into_iter().map(column).collect::<Option<_>>()? })
}

fn array(values: &Values) -> ArrayRef {
    match values {
        Values::Int(values) => Arc::new(Int64Array::from_iter(values.iter().copied())),
        Values::Float(values) => Arc::new(Float64Array::from_iter(values.iter().copied())),
        Values::Text(values) => Arc::new(StringArray::from_iter(values.iter().map(Option::as_deref))),
        Values::Bool(values) => Arc::new(BooleanArray::from_iter(values.iter().copied())),
    }
}

/// The values of a column that has those of `like`; equal texts are kept once.
fn values(like: &Values, array: &ArrayRef, texts: &mut HashSet<Arc<str>>) -> Option<Values> {
    let mut shared = |text: &str| match texts.get(text) {
        Some(known) => Arc::clone(known),
        None => {
            let new: Arc<str> = text.into();
            texts.insert(Arc::clone(&new));
            new
        }
    };
    Some(match like {
        Values::Int(_) => Values::Int(array.as_primitive_opt::<Int64Type>()?.iter().collect()),
        Values::Float(_) => Values::Float(array.as_primitive_opt::<Float64Type>()?.iter().collect()),
        Values::Text(_) => {
            let texts = array.as_string_opt::<i32>()?.iter();
            Values::Text(texts.map(|text| text.map(&mut shared)).collect())
        }
        Values::Bool(_) => Values::Bool(array.as_boolean_opt()?.iter().collect()),
    })
}

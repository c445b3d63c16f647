//! Results of analyses as columns of a file of one row: each is the list of its rows.

use crate::Summary;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, StringArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, FieldRef};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use stepscope_analyses::{Column, Needs, Selection, Table, Values, catalogue};

/// An analysis whose rows are kept, and its columns without values.
struct Kept {
    name: &'static str,
    columns: Vec<Column>,
}

fn kept() -> &'static [Kept] {
    static KEPT: OnceLock<Vec<Kept>> = OnceLock::new();
    KEPT.get_or_init(|| {
        let kept = catalogue().iter().filter(|analysis| matches!(analysis.needs, Needs::EachRankKept));
        kept.map(|analysis| Kept { name: analysis.name, columns: analysis.columns(&Selection::default()) }).collect()
    })
}

/// The names of the analyses whose rows are kept.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    kept().iter().map(|kept| kept.name)
}

/// The column of each analysis whose rows are kept. What a column of its rows means is in the metadata of its field.
pub(crate) fn fields() -> impl Iterator<Item = FieldRef> {
    kept().iter().map(|kept| {
        let rows = DataType::Struct(kept.columns.iter().map(field).collect());
        Arc::new(Field::new(kept.name, DataType::List(Arc::new(Field::new("item", rows, false))), true))
    })
}

fn field(column: &Column) -> Field {
    let doc = HashMap::from([("stepscope.doc".to_string(), column.doc.to_string())]);
    Field::new(column.name, array(&column.values).data_type().clone(), true).with_metadata(doc)
}

/// The rows of each of these analyses as one list, which is null where they are not kept.
pub(crate) fn columns(summary: &Summary) -> impl Iterator<Item = ArrayRef> {
    kept().iter().map(|kept| {
        let table = summary.table(kept.name);
        let is_kept = NullBuffer::from(vec![table.is_some()]);
        let table = table.as_ref().map_or(&kept.columns, |table| &table.columns);
        let column = |column: &Column| (Arc::new(field(column)), array(&column.values));
        let rows = StructArray::from(table.iter().map(column).collect::<Vec<_>>());
        let item = Arc::new(Field::new("item", rows.data_type().clone(), false));
        let lengths = OffsetBuffer::from_lengths([rows.len()]);
        let list: ArrayRef = Arc::new(ListArray::new(item, lengths, Arc::new(rows), Some(is_kept)));
        list
    })
}

/// The result of the analysis called `name` in its column.
pub(crate) fn of_column(name: &str, column: &ArrayRef) -> Option<Table> {
    let kept = kept().iter().find(|kept| kept.name == name)?;
    let list = column.as_list_opt::<i32>()?;
    let rows = (!list.is_empty() && list.is_valid(0)).then(|| list.value(0))?;
    let rows = rows.as_struct_opt()?;
    let mut texts = HashSet::new();
    let column = |(column, array): (&Column, &ArrayRef)| {
        let values = values(&column.values, array, &mut texts)?;
        Some(Column { values, ..column.clone() })
    };
    Some(Table { columns: kept.columns.iter().zip(rows.columns()).map(column).collect::<Option<_>>()? })
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

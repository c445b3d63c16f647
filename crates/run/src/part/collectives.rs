//! The columns that say what a range is as a collective: its description as a JSON object, and its number.

use super::reading::{NameIds, Text, column, name_id};
use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;
use stepscope_capture::collectives::{describe, pairs};
use stepscope_capture::{Capture, CollectiveOf};

/// The column of descriptions.
pub(super) fn texts(rows: impl Iterator<Item = Option<CollectiveOf>>, names: &[String]) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    let mut known: HashMap<u32, String> = HashMap::new();
    for row in rows {
        match row {
            None => builder.append_null(),
            Some(CollectiveOf { description, .. }) => {
                let text = || to_json(names.get(description as usize).map_or("", String::as_str));
                builder.append_value(known.entry(description).or_insert_with(text));
            }
        }
    }
    Arc::new(builder.finish())
}

/// The column of numbers.
pub(super) fn sequence_numbers(rows: impl Iterator<Item = Option<CollectiveOf>>) -> ArrayRef {
    Arc::new(rows.map(|row| row?.sequence_number).collect::<Int64Array>())
}

/// Both columns of a batch that has them; parts of version 1 have not.
pub(super) struct Collectives<'a> {
    texts: Text<'a>,
    sequence_numbers: &'a Int64Array,
}

impl<'a> Collectives<'a> {
    pub(super) fn of(batch: &'a RecordBatch) -> Option<Self> {
        let sequence_numbers = column(batch, "collective_sequence_number")?;
        Some(Self { texts: Text::of(batch, "collective")?, sequence_numbers })
    }

    pub(super) fn value(&self, row: usize, capture: &mut Capture, names: &mut NameIds) -> Option<CollectiveOf> {
        let description = name_id(&from_json(self.texts.value(row)?), "", capture, names);
        let number = self.sequence_numbers.is_valid(row).then(|| self.sequence_numbers.value(row));
        Some(CollectiveOf { description, sequence_number: number })
    }
}

/// A description as a JSON object, with whole numbers and truth values as such.
fn to_json(description: &str) -> String {
    let value = |text: &str| match (text.parse::<i64>(), text) {
        // A group's name is a name also where it is a number.
        (Ok(number), _) => Value::from(number),
        (_, "true" | "false") => Value::from(text == "true"),
        _ => Value::from(text),
    };
    let is_name = |key: &str| matches!(key, "name" | "group" | "group_description");
    let fields = pairs(description).map(|(key, text)| {
        let value = if is_name(key) { Value::from(text) } else { value(text) };
        (key.to_string(), value)
    });
    Value::from(fields.collect::<Map<_, _>>()).to_string()
}

/// A description from a JSON object; empty when it is none.
fn from_json(text: &str) -> String {
    let fields: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    describe(fields.iter().map(|(key, value)| (key.as_str(), value.as_str().map_or(value.to_string(), str::to_string))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_an_object_and_comes_back() {
        let text = "group=0\ngroup_ranks=[0, 1]\ngroup_size=2\nis_async=true\nname=\"all\\reduce\"";
        let json = r#"{"group":"0","group_ranks":"[0, 1]","group_size":2,"is_async":true,"name":"\"all\\reduce\""}"#;
        assert_eq!(to_json(text), json);
        assert_eq!(from_json(json), text);
        assert_eq!(from_json("[1]"), "");
    }
}

//! A result's rows as JSON objects, keyed by column name, in the order of the columns.

use crate::{Column, Table, Values};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// Serialises a table as a list of objects; "no answer" and what JSON cannot say (NaN, infinity) is null.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a>(pub &'a Table);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.0.len()))?;
        (0..self.0.len()).try_for_each(|row| rows.serialize_element(&OneRow { table: self.0, row }))?;
        rows.end()
    }
}

/// Serialises one row of a table as an object.
#[derive(Clone, Copy, Debug)]
pub struct OneRow<'a> {
    /// The table.
    pub table: &'a Table,
    /// The row, which it has.
    pub row: usize,
}

impl Serialize for OneRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(self.table.columns.len()))?;
        for Column { name, values, .. } in &self.table.columns {
            match values {
                Values::Int(values) => object.serialize_entry(name, &values[self.row])?,
                Values::Float(values) => object.serialize_entry(name, &values[self.row].filter(|x| x.is_finite()))?,
                Values::Text(values) => object.serialize_entry(name, &values[self.row].as_deref())?,
                Values::Bool(values) => object.serialize_entry(name, &values[self.row])?,
            }
        }
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unit;

    #[test]
    fn a_row_is_an_object_with_nulls_for_no_answer() {
        let table = Table {
            columns: vec![
                Column::new("name", Unit::Text, "", vec![Some("mm"), None]),
                Column::new("total_ns", Unit::Nanoseconds, "", vec![Some(5), None]),
                Column::new("idle_ratio", Unit::Ratio, "", vec![Some(0.5), Some(f64::NAN)]),
                Column::new("tensor_cores", Unit::Flag, "", vec![None, Some(true)]),
            ],
        };
        let json = serde_json::to_string(&Rows(&table)).unwrap();
        let first = r#"{"name":"mm","total_ns":5,"idle_ratio":0.5,"tensor_cores":null}"#;
        let second = r#"{"name":null,"total_ns":null,"idle_ratio":null,"tensor_cores":true}"#;
        assert_eq!(json, format!("[{first},{second}]"));
    }
}

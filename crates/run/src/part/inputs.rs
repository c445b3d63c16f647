//! The part's column of what operators were called with: a JSON object for each distinct call, kept once a batch.

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use arrow_schema::ArrowError;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use stepscope_capture::Inputs;

/// The column of rows that were called with these, by their index in `inputs`.
pub(crate) fn inputs_column(rows: &[Option<u32>], inputs: &[Inputs]) -> Result<ArrayRef, ArrowError> {
    let (mut texts, mut known) = (Vec::new(), HashMap::new());
    let keys: Int32Array = rows
        .iter()
        .map(|row| {
            let row = row.filter(|row| (*row as usize) < inputs.len())?;
            Some(*known.entry(row).or_insert_with(|| {
                texts.push(object_of(&inputs[row as usize]));
                texts.len() as i32 - 1
            }))
        })
        .collect();
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(StringArray::from(texts)))?))
}

fn members(inputs: &Inputs) -> [(&'static str, &str); 5] {
    [
        ("dims", &inputs.dims),
        ("types", &inputs.types),
        ("strides", &inputs.strides),
        ("concrete", &inputs.concrete),
        ("keywords", &inputs.keywords),
    ]
}

fn object_of(inputs: &Inputs) -> String {
    let mut object = String::from("{");
    for (key, text) in members(inputs).iter().filter(|(_, text)| !text.is_empty()) {
        let comma = if object.len() > 1 { "," } else { "" };
        let _ = write!(object, "{comma}\"{key}\":{text}");
    }
    object.push('}');
    object
}

/// Distinct inputs while a part is read.
#[derive(Default)]
pub(crate) struct InputsOfPart {
    rows: HashMap<String, u32>,
}

impl InputsOfPart {
    /// The index of the inputs that `text` tells, added to `inputs` when they are new; `None` when it tells none.
    pub(crate) fn row_of(&mut self, text: &str, inputs: &mut Vec<Inputs>) -> Option<u32> {
        if let Some(row) = self.rows.get(text) {
            return Some(*row);
        }
        let row = u32::try_from(inputs.len()).ok()?;
        inputs.push(inputs_of(text)?);
        self.rows.insert(text.into(), row);
        Some(row)
    }
}

fn inputs_of(text: &str) -> Option<Inputs> {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow, default)]
        dims: Option<&'a RawValue>,
        #[serde(borrow, default)]
        types: Option<&'a RawValue>,
        #[serde(borrow, default)]
        strides: Option<&'a RawValue>,
        #[serde(borrow, default)]
        concrete: Option<&'a RawValue>,
        #[serde(borrow, default)]
        keywords: Option<&'a RawValue>,
    }
    let object: Object = serde_json::from_str(text).ok()?;
    let text = |value: Option<&RawValue>| value.map_or_else(String::new, |value| value.get().to_string());
    Some(Inputs {
        dims: text(object.dims),
        types: text(object.types),
        strides: text(object.strides),
        concrete: text(object.concrete),
        keywords: text(object.keywords),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_come_back() {
        let of_op = Inputs {
            dims: "[[2,3],[]]".into(),
            types: r#"["float",""]"#.into(),
            strides: "[[3,1],[]]".into(),
            concrete: r#"["","None, 1"]"#.into(),
            keywords: String::new(),
        };
        let of_range = Inputs { keywords: r#"{"grid":"(1, \"2\")","stream":0}"#.into(), ..Inputs::default() };
        for inputs in [of_op, of_range, Inputs::default()] {
            assert_eq!(inputs_of(&object_of(&inputs)), Some(inputs));
        }
        assert_eq!(inputs_of("7").or(inputs_of("{\"dims\":")), None);
    }

    #[test]
    fn equal_inputs_have_one_row() {
        let (mut of_part, mut inputs) = (InputsOfPart::default(), Vec::new());
        let rows = ["{\"dims\":[[1]]}", "{\"dims\":[[2]]}", "{\"dims\":[[1]]}", "?"]
            .map(|text| of_part.row_of(text, &mut inputs));
        assert_eq!((rows, inputs.len()), ([Some(0), Some(1), Some(0), None], 2));
    }
}

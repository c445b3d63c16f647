//! JSON as the values of a pickle, for what PyTorch writes in both forms.

use super::{DictId, ListId, Plain, Value};
use serde_json::Value as Json;

impl Plain {
    /// The same data. The depth of JSON is limited by its parser.
    pub(crate) fn of_json(json: &Json) -> Self {
        let mut plain = Self::default();
        plain.root = Some(plain.add_json(json));
        plain
    }

    fn add_json(&mut self, json: &Json) -> Value {
        match json {
            Json::Null => Value::None,
            Json::Bool(is_true) => Value::Bool(*is_true),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(number), _) => {
                    self.large.push(number);
                    Value::Large((self.large.len() - 1) as u32)
                }
                (None, Some(number)) => {
                    self.floats.push(number);
                    Value::Float((self.floats.len() - 1) as u32)
                }
                (None, None) => Value::Other,
            },
            Json::String(text) => Value::Text(self.texts.intern(text)),
            Json::Array(items) => {
                let items = items.iter().map(|item| self.add_json(item)).collect();
                self.lists.push(items);
                Value::List(ListId::from_index(self.lists.len() - 1))
            }
            Json::Object(members) => {
                let pair = |(key, value): (&String, &Json)| {
                    let key = self.texts.intern(key);
                    (Value::Text(key), self.add_json(value))
                };
                let pairs = members.iter().map(pair).collect();
                self.dicts.push(pairs);
                Value::Dict(DictId::from_index(self.dicts.len() - 1))
            }
        }
    }
}

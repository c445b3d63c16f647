//! What a tool accepts, as a JSON schema of few bytes: a client sends the schemas of all tools to its model.

use rmcp::model::JsonObject;
use rmcp::schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

/// The schema of `T`, without what only programs read.
pub(crate) fn schema_of<T: JsonSchema>() -> JsonObject {
    let schema = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    match compact(schema.into_generator().into_root_schema_for::<T>().to_value()) {
        Value::Object(schema) => schema,
        other => panic!("arguments are an object, not {other}"),
    }
}

/// `schema` without formats, titles and defaults of nothing; what may be left out need not be null.
fn compact(schema: Value) -> Value {
    let Value::Object(fields) = schema else { return schema };
    let kept = fields.into_iter().filter_map(|(name, value)| match (name.as_str(), value) {
        ("$schema" | "title" | "format" | "minimum" | "maximum" | "default", _) => None,
        ("properties", Value::Object(properties)) => {
            let properties = properties.into_iter().map(|(name, property)| (name, compact(property)));
            Some((name, Value::Object(properties.collect())))
        }
        ("type", Value::Array(types)) => types.into_iter().find(|name| *name != "null").map(|only| (name, only)),
        ("enum", Value::Array(values)) => {
            Some((name, Value::Array(values.into_iter().filter(|value| !value.is_null()).collect())))
        }
        (_, value) => Some((name, value)),
    });
    Value::Object(kept.collect())
}

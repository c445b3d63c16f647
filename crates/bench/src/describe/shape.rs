//! The rows of a trace's text, counted by kind.

use crate::trace_text::rows;
use flate2::{Compression, write::GzEncoder};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::io::Write;

/// What a text holds.
#[derive(Debug, Default)]
pub(super) struct Shape {
    pub(super) text_bytes: u64,
    /// Without the blanks between tokens.
    pub(super) dense_bytes: u64,
    pub(super) gzip_bytes: u64,
    pub(super) rows: u64,
    /// Different names of rows.
    pub(super) names: usize,
    /// By category and phase.
    pub(super) kinds: BTreeMap<String, Kind>,
}

/// Rows of one category and phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Kind {
    pub(super) rows: u64,
    pub(super) arguments: u64,
    /// Without the blanks between tokens.
    pub(super) bytes: u64,
}

impl Shape {
    /// Counts; `None` for a text without rows.
    pub(super) fn of(text: &[u8]) -> Option<Self> {
        let mut shape = Shape { text_bytes: text.len() as u64, dense_bytes: dense(text), ..Shape::default() };
        let mut names = HashSet::new();
        for row in rows(text).map(|row| &text[row]) {
            let read: Row<'_> = serde_json::from_slice(row).unwrap_or_default();
            let kind =
                shape.kinds.entry(format!("{} {}", read.category.unwrap_or("-".into()), read.phase)).or_default();
            kind.rows += 1;
            kind.arguments += read.arguments.0;
            kind.bytes += dense(row);
            shape.rows += 1;
            names.insert(read.name);
        }
        shape.names = names.len();
        shape.gzip_bytes = packed(text);
        (shape.rows > 0).then_some(shape)
    }
}

/// What is counted of a row.
#[derive(Default, Deserialize)]
struct Row<'a> {
    #[serde(rename = "ph", borrow, default)]
    phase: Cow<'a, str>,
    #[serde(rename = "cat", borrow)]
    category: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(rename = "args", default)]
    arguments: Members,
}

/// The number of members of an object.
#[derive(Default)]
struct Members(u64);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Count;
        impl<'de> Visitor<'de> for Count {
            type Value = Members;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut count = 0;
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(Members(count))
            }
        }
        deserializer.deserialize_map(Count)
    }
}

/// Number of bytes but for blanks between tokens.
fn dense(text: &[u8]) -> u64 {
    let between: usize = tokens(text).filter(|(_, byte)| byte.is_ascii_whitespace()).count();
    (text.len() - between) as u64
}

/// The bytes outside strings, with their places.
fn tokens(text: &[u8]) -> impl Iterator<Item = (usize, u8)> {
    let (mut is_string, mut is_escaped) = (false, false);
    text.iter().copied().enumerate().filter(move |(_, byte)| {
        let was_string = is_string;
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_string,
            b'"' => is_string = !is_string,
            _ => {}
        }
        !was_string && *byte != b'"'
    })
}

fn packed(text: &[u8]) -> u64 {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).and_then(|()| encoder.finish()).map_or(0, |bytes| bytes.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_by_kind() {
        let text = br#"{"a": ["{"], "traceEvents": [
            {"ph": "X", "cat": "kernel", "name": "a \"}", "args": {"grid": [1, 2], "x": {"y": 1}}},
            {"ph": "X", "cat": "kernel", "name": "b"},
            {"ph": "M", "name": "process_name"} ], "z": 1}"#;
        let shape = Shape::of(text).expect("a trace");
        assert_eq!((shape.rows, shape.names), (3, 3));
        let bytes = r#"{"ph":"X","cat":"kernel","name":"a \"}","args":{"grid":[1,2],"x":{"y":1}}}"#.len()
            + r#"{"ph":"X","cat":"kernel","name":"b"}"#.len();
        assert_eq!(shape.kinds["kernel X"], Kind { rows: 2, arguments: 2, bytes: bytes as u64 });
        assert_eq!(shape.kinds["- M"].rows, 1);
    }

    #[test]
    fn a_text_without_rows_has_no_shape() {
        assert!(Shape::of(b"{\"traceEvents\": []}").is_none() && Shape::of(b"").is_none());
    }
}

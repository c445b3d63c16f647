//! A real trace made longer: its rows written again and again as they stand, only times and ids moved on. Keys, their order,
//! white space and names stay those of the program that wrote it.

use memchr::memmem;
use std::io::{self, Write};
use std::ops::Range;

/// Keys whose integers join rows, in rows and in their arguments: each repetition has its own.
const IDS: [&[u8]; 9] = [
    b"id",
    b"External id",
    b"external id",
    b"correlation",
    b"Python id",
    b"Python parent id",
    b"Ev Idx",
    b"Sequence number",
    b"Record function id",
];

/// Writes the trace `text` with its rows as often as needed for `bytes`, at least once; gives the bytes written.
///
/// # Errors
/// What `output` says, or that the text has no list of events.
pub(crate) fn write(text: &[u8], bytes: u64, output: &mut impl Write) -> io::Result<u64> {
    let list = list_of_events(text).ok_or_else(|| io::Error::other("no list of events"))?;
    let (before, rows, behind) = (&text[..list.start], &text[list.clone()], &text[list.end..]);
    let numbers = numbers(rows);
    let limit = |is_time| numbers.iter().filter(|number| number.is_time == is_time).map(|number| number.value).max();
    let first_us = numbers.iter().filter(|number| number.is_time).map(|number| number.value).min().unwrap_or(0);
    let span_us = limit(true).map_or(0, |last_us| last_us - first_us) + 1_000;
    let ids = limit(false).unwrap_or(0) + 1;
    let copies = bytes.div_ceil(rows.len().max(1) as u64).max(1);
    output.write_all(before)?;
    let mut written = (before.len() + behind.len()) as u64;
    for copy in 0..copies as i64 {
        let mut copied = Vec::with_capacity(rows.len() + numbers.len());
        let mut from = 0;
        for number in &numbers {
            copied.extend_from_slice(&rows[from..number.place.start]);
            write!(copied, "{}", number.value + copy * if number.is_time { span_us } else { ids })?;
            from = number.place.end;
        }
        copied.extend_from_slice(&rows[from..]);
        if copy + 1 < copies as i64 {
            // The comma behind the last row.
            copied.truncate(copied.trim_ascii_end().len());
            copied.push(b',');
        }
        output.write_all(&copied)?;
        written += copied.len() as u64;
    }
    output.write_all(behind)?;
    Ok(written)
}

/// The bytes between the brackets of `traceEvents`, or of a text that is a list itself.
fn list_of_events(text: &[u8]) -> Option<Range<usize>> {
    let begin = match memmem::find(text, b"\"traceEvents\"") {
        Some(key) => key + memchr::memchr(b'[', &text[key..])?,
        None => memchr::memchr(b'[', text)?,
    };
    let mut depth = 0;
    let mut at = begin;
    while at < text.len() {
        match text[at] {
            b'"' => at = string_end(text, at)?,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(begin + 1..at);
        }
        at += 1;
    }
    None
}

/// The place of the quote that ends the string that begins at `begin`.
fn string_end(text: &[u8], begin: usize) -> Option<usize> {
    let mut at = begin + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// An integer, or the whole microseconds of a time: what stands behind the point stays as it is.
struct Number {
    place: Range<usize>,
    value: i64,
    is_time: bool,
}

/// The times and ids of `rows`, in order. Those that are 0 or negative mean nothing, and stay.
fn numbers(rows: &[u8]) -> Vec<Number> {
    let mut numbers = Vec::new();
    let mut at = 0;
    while let Some(quote) = memchr::memchr(b'"', &rows[at..]).map(|offset| at + offset) {
        let Some(end) = string_end(rows, quote) else { break };
        let key = &rows[quote + 1..end];
        at = end + 1;
        let is_time = key == b"ts";
        if !is_time && !IDS.contains(&key) {
            continue;
        }
        let rest = rows[at..].trim_ascii_start();
        let Some(value) = rest.strip_prefix(b":").map(<[u8]>::trim_ascii_start) else { continue };
        let start = rows.len() - value.len();
        let len = value.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(value.len());
        let digits = std::str::from_utf8(&value[..len]).ok();
        if let Some(value) = digits.and_then(|digits| digits.parse().ok()).filter(|value| is_time || *value > 0) {
            numbers.push(Number { place: start..start + len, value, is_time });
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_differ_in_times_and_ids_alone() {
        let text = br#"{"a": [1], "traceEvents": [
  {"ts": 10.250, "name": "say \"id\": 3", "args": {"External id": 3, "stream": 7, "correlation": 0}},
  {"ts": 12, "id": 9 }
  ], "b": 2}"#;
        let mut written = Vec::new();
        let bytes = write(text, 230, &mut written).expect("a list");
        assert_eq!(bytes, written.len() as u64);
        let expected = br#"{"a": [1], "traceEvents": [
  {"ts": 10.250, "name": "say \"id\": 3", "args": {"External id": 3, "stream": 7, "correlation": 0}},
  {"ts": 12, "id": 9 },
  {"ts": 1012.250, "name": "say \"id\": 3", "args": {"External id": 13, "stream": 7, "correlation": 0}},
  {"ts": 1014, "id": 19 }
  ], "b": 2}"#;
        assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(expected));
    }

    #[test]
    fn a_text_without_rows_is_an_error() {
        assert!(write(b"{\"a\": 1}", 10, &mut Vec::new()).is_err());
    }
}

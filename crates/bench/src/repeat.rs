//! A real trace made longer: its rows written again and again, one copy after the other.

use crate::row_copies::{RowCopies, Shift};
use std::io::{self, Write};

/// From the begin of a copy's last row to the next copy.
const BETWEEN_NS: i64 = 1_000_000;

/// Writes the trace `text` with its rows as often as needed for `bytes`, at least once; gives the bytes written.
///
/// # Errors
/// What `output` says, or that the text has no rows.
pub(crate) fn write(text: &[u8], bytes: u64, output: &mut impl Write) -> io::Result<u64> {
    let rows = RowCopies::of(text)?;
    let (before, after) = (rows.before(), rows.after());
    let all = 0..rows.len();
    let begins = || rows.spans(all.clone()).map(|span| span.start);
    let first_us = begins().min().unwrap_or(0) / 1_000;
    // Whole microseconds: a time keeps its decimals, however many it has.
    let span_ns = (begins().max().unwrap_or(0) / 1_000 - first_us) * 1_000 + BETWEEN_NS;
    let copies = bytes.div_ceil((text.len() - before.len() - after.len()) as u64).max(1);
    output.write_all(before)?;
    let mut written = (before.len() + after.len()) as u64;
    for number in 0..copies as i64 {
        let mut copy = if number == 0 { Vec::new() } else { rows.separator().to_vec() };
        rows.copy(all.clone(), &Shift { number, time: &|ns| ns + number * span_ns }, &mut copy);
        output.write_all(&copy)?;
        written += copy.len() as u64;
    }
    output.write_all(after)?;
    Ok(written)
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
}

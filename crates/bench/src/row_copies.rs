//! The rows of a trace, written again as they are but for times, ids and numbers of steps. Keys, their order, white space
//! and names stay those of the program that wrote them.

use crate::trace_text;
use std::io::{self, Write};
use std::ops::Range;

/// Keys whose integers join rows, in rows and in their arguments: each copy has its own.
const IDS: [&[u8]; 11] = [
    b"id",
    b"External id",
    b"external id",
    b"correlation",
    b"wait_on_cuda_event_record_corr_id",
    b"Python id",
    b"Python parent id",
    b"Ev Idx",
    b"Sequence number",
    b"Seq",
    b"Record function id",
];
/// What the name of a step begins with, before its number.
const STEP: &[u8] = b"ProfilerStep#";

/// A trace's rows, and where in them is what differs between copies.
pub(crate) struct RowCopies<'a> {
    text: &'a [u8],
    rows: Vec<Range<usize>>,
    numbers: Vec<Number>,
    /// How far the ids, and the numbers of steps, of one copy are from those of the next.
    ids: i64,
    steps: i64,
}

/// What one copy has instead.
pub(crate) struct Shift<'a> {
    /// Of the copy; its ids follow from it.
    pub(crate) number: i64,
    /// When something happens that happened at this time, in ns.
    pub(crate) time: &'a dyn Fn(i64) -> i64,
}

/// A number of the text.
struct Number {
    place: Range<usize>,
    /// In ns for times; only what three decimals hold.
    value: i64,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Time { decimals: usize },
    Duration { decimals: usize },
    Id,
    Step,
}

impl<'a> RowCopies<'a> {
    /// Finds rows and numbers.
    ///
    /// # Errors
    /// When the text has no rows.
    pub(crate) fn of(text: &'a [u8]) -> io::Result<Self> {
        let rows: Vec<Range<usize>> = trace_text::rows(text).collect();
        let numbers: Vec<Number> = rows.iter().flat_map(|row| numbers(text, row.clone())).collect();
        let values = |kind| numbers.iter().filter(move |number| number.kind == kind).map(|number| number.value);
        let ids = values(Kind::Id).max().unwrap_or(0) + 1;
        let last_step = values(Kind::Step).max().unwrap_or(0);
        let steps = last_step - values(Kind::Step).min().unwrap_or(0) + 1;
        if rows.is_empty() {
            Err(io::Error::other("no list of events"))
        } else {
            Ok(Self { text, rows, numbers, ids, steps })
        }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The text of one row.
    pub(crate) fn row(&self, row: usize) -> &'a [u8] {
        &self.text[self.rows[row].clone()]
    }

    /// The text before the first row.
    pub(crate) fn before(&self) -> &'a [u8] {
        &self.text[..self.rows[0].start]
    }

    /// The text after the last row.
    pub(crate) fn after(&self) -> &'a [u8] {
        &self.text[self.rows[self.len() - 1].end..]
    }

    /// What is between two rows.
    pub(crate) fn separator(&self) -> &'a [u8] {
        self.rows.get(1).map_or(b",", |second| &self.text[self.rows[0].end..second.start])
    }

    /// When these rows begin and end; those without a duration at once.
    pub(crate) fn spans(&self, rows: Range<usize>) -> impl Iterator<Item = Range<i64>> {
        let mut begin = 0;
        self.numbers_of(&self.place(rows)).iter().filter_map(move |number| match number.kind {
            Kind::Time { .. } => {
                begin = number.value;
                Some(begin..begin)
            }
            Kind::Duration { .. } => Some(begin..begin + number.value),
            Kind::Id | Kind::Step => None,
        })
    }

    /// Adds these rows to `out`, with other numbers.
    pub(crate) fn copy(&self, rows: Range<usize>, shift: &Shift<'_>, out: &mut Vec<u8>) {
        let place = self.place(rows);
        let (mut from, mut begin) = (place.start, 0);
        for number in self.numbers_of(&place) {
            out.extend_from_slice(&self.text[from..number.place.start]);
            match number.kind {
                Kind::Time { decimals } => {
                    begin = number.value;
                    add_time(out, (shift.time)(begin), decimals);
                }
                Kind::Duration { decimals } => {
                    add_time(out, (shift.time)(begin + number.value) - (shift.time)(begin), decimals);
                }
                Kind::Id => add(out, number.value + shift.number * self.ids),
                Kind::Step => add(out, number.value + shift.number * self.steps),
            }
            from = number.place.end;
        }
        out.extend_from_slice(&self.text[from..place.end]);
    }

    fn place(&self, rows: Range<usize>) -> Range<usize> {
        self.rows[rows.start].start..self.rows[rows.end - 1].end
    }

    fn numbers_of(&self, place: &Range<usize>) -> &[Number] {
        let until = |end: usize| self.numbers.partition_point(|number| number.place.start < end);
        &self.numbers[until(place.start)..until(place.end)]
    }
}

fn add(out: &mut Vec<u8>, number: i64) {
    write!(out, "{number}").expect("memory takes all");
}

/// Microseconds with `decimals` decimals.
fn add_time(out: &mut Vec<u8>, ns: i64, decimals: usize) {
    add(out, ns / 1_000);
    if decimals > 0 {
        write!(out, ".{:03}", ns % 1_000).expect("memory takes all");
        out.truncate(out.len() - (3 - decimals));
    }
}

/// The numbers of one row, in order. Ids that are 0 mean nothing, and stay.
fn numbers(text: &[u8], row: Range<usize>) -> Vec<Number> {
    let mut numbers = Vec::new();
    let mut at = row.start;
    while let Some(quote) = memchr::memchr(b'"', &text[at..row.end]).map(|offset| at + offset) {
        let Some(end) = trace_text::string_end(text, quote) else { break };
        let key = &text[quote + 1..end];
        at = end + 1;
        let (kind, start) = match key {
            b"ts" => (Kind::Time { decimals: 0 }, value_at(text, at)),
            b"dur" => (Kind::Duration { decimals: 0 }, value_at(text, at)),
            _ if IDS.contains(&key) => (Kind::Id, value_at(text, at)),
            _ if key.starts_with(STEP) => (Kind::Step, Some(quote + 1 + STEP.len())),
            _ => continue,
        };
        numbers.extend(start.and_then(|start| number(&text[..row.end], start, kind)));
    }
    numbers
}

/// Where the value begins of the key that ends at `at`.
fn value_at(text: &[u8], at: usize) -> Option<usize> {
    let value = text[at..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    Some(text.len() - value.len())
}

fn number(text: &[u8], start: usize, kind: Kind) -> Option<Number> {
    let digits = |at: usize| text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = start + digits(start);
    let value: i64 = std::str::from_utf8(&text[start..whole]).ok()?.parse().ok()?;
    let decimals = if text.get(whole) == Some(&b'.') { digits(whole + 1).min(3) } else { 0 };
    let end = if decimals > 0 { whole + 1 + decimals } else { whole };
    let ns = || {
        let decimal =
            |place: usize| text[whole + 1..end.max(whole + 1)].get(place).map_or(0, |digit| i64::from(digit - b'0'));
        value.checked_mul(1_000)?.checked_add(decimal(0) * 100 + decimal(1) * 10 + decimal(2))
    };
    Some(match kind {
        Kind::Time { .. } => Number { place: start..end, value: ns()?, kind: Kind::Time { decimals } },
        Kind::Duration { .. } => Number { place: start..end, value: ns()?, kind: Kind::Duration { decimals } },
        Kind::Id if value == 0 => return None,
        Kind::Id | Kind::Step => Number { place: start..whole, value, kind },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_differ_in_times_ids_and_numbers_of_steps() {
        let text = br#"{"a": [1], "traceEvents": [
  {"ts": 10.250, "dur": 2.5, "name": "say \"id\": 3", "args": {"External id": 3, "stream": 7, "correlation": 0}},
  {"name": "ProfilerStep#4", "ts": 12, "dur": 3, "id": 9 }
  ], "b": 2}"#;
        let rows = RowCopies::of(text).expect("rows");
        let mut copy = Vec::new();
        rows.copy(0..2, &Shift { number: 2, time: &|ns| 2 * ns + 1_000 }, &mut copy);
        let expected = r#"{"ts": 21.500, "dur": 5.0, "name": "say \"id\": 3", "args": {"External id": 23, "stream": 7, "correlation": 0}},
  {"name": "ProfilerStep#6", "ts": 25, "dur": 6, "id": 29 }"#;
        assert_eq!(String::from_utf8_lossy(&copy), expected);
        assert_eq!(rows.spans(1..2).last(), Some(12_000..15_000));
        let whole = [rows.before(), rows.row(0), rows.separator(), rows.row(1), rows.after()].concat();
        assert_eq!(whole, text);
    }

    #[test]
    fn a_copy_with_the_same_numbers_is_the_same_text() {
        let text = br#"[{"ts":0.1,"dur":12345678901.2345},{"ts":-3,"dur":"x","id":null},{"ts":1e3,"id":18446744073709551615}]"#;
        let rows = RowCopies::of(text).expect("rows");
        let mut copy = Vec::new();
        rows.copy(0..3, &Shift { number: 0, time: &|ns| ns }, &mut copy);
        assert_eq!(copy, text[1..text.len() - 1]);
    }

    #[test]
    fn a_text_without_rows_is_an_error() {
        assert!(RowCopies::of(b"{\"a\": 1}").is_err() && RowCopies::of(b"").is_err());
    }
}

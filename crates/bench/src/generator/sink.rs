//! Where the text goes: a large buffer before a file, and what went through it.

use std::io::{self, Write};

const BUFFER_BYTES: usize = 1 << 20;

/// Collects text and hands it on in large pieces.
pub(super) struct Sink<'a> {
    out: &'a mut dyn Write,
    buffer: Vec<u8>,
    handed_on: u64,
    rows: u64,
}

impl<'a> Sink<'a> {
    /// Writes to `out`.
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self { out, buffer: Vec::with_capacity(BUFFER_BYTES + 64 * 1024), handed_on: 0, rows: 0 }
    }

    /// Adds text.
    #[inline]
    pub(super) fn text(&mut self, text: &str) {
        self.buffer.extend_from_slice(text.as_bytes());
    }

    /// Adds a whole number.
    #[inline]
    pub(super) fn number(&mut self, number: u64) {
        let mut digits = [0; 20];
        let start = write_digits(number, &mut digits);
        self.buffer.extend_from_slice(&digits[start..]);
    }

    /// Adds nanoseconds as microseconds with three decimals.
    #[inline]
    pub(super) fn microseconds(&mut self, ns: i64) {
        let ns = ns.max(0) as u64;
        self.number(ns / 1000);
        let rest = (ns % 1000) as u32;
        let digit = |of: u32| b'0' + (of % 10) as u8;
        self.buffer.extend_from_slice(&[b'.', digit(rest / 100), digit(rest / 10), digit(rest)]);
    }

    /// Says that a row is complete.
    #[inline]
    pub(super) fn end_row(&mut self) -> io::Result<()> {
        self.rows += 1;
        if self.buffer.len() >= BUFFER_BYTES { self.hand_on() } else { Ok(()) }
    }

    /// Number of rows so far.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Number of bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.handed_on + self.buffer.len() as u64
    }

    /// Hands on what is left.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.hand_on()?;
        self.out.flush()
    }

    fn hand_on(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.handed_on += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// Writes `number` at the end of `digits`; where it begins.
fn write_digits(mut number: u64, digits: &mut [u8; 20]) -> usize {
    const PAIRS: [[u8; 2]; 100] = pairs();
    let mut at = digits.len();
    while number >= 100 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    let last = PAIRS[number as usize];
    if number >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&last);
    } else {
        at -= 1;
        digits[at] = last[1];
    }
    at
}

/// `00` to `99`.
const fn pairs() -> [[u8; 2]; 100] {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(fill: impl FnOnce(&mut Sink<'_>)) -> String {
        let mut out = Vec::new();
        let mut sink = Sink::new(&mut out);
        fill(&mut sink);
        sink.finish().expect("memory takes all");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn numbers_are_decimal() {
        for number in [0, 7, 10, 99, 100, 12_345, u64::MAX] {
            assert_eq!(written(|sink| sink.number(number)), number.to_string());
        }
    }

    #[test]
    fn times_have_three_decimals() {
        assert_eq!(written(|sink| sink.microseconds(1_428_625_731_896_179)), "1428625731896.179");
        assert_eq!(written(|sink| sink.microseconds(5)), "0.005");
        assert_eq!(written(|sink| sink.microseconds(-5)), "0.000");
    }

    #[test]
    fn bytes_and_rows_are_counted() {
        let mut out = Vec::new();
        let mut sink = Sink::new(&mut out);
        for _ in 0..100_000 {
            sink.text("a row of twenty byte");
            sink.end_row().expect("memory takes all");
        }
        assert_eq!((sink.rows(), sink.bytes()), (100_000, 2_000_000));
    }
}

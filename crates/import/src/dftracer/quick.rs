//! Reads rows as DFTracer itself prints them, without white space and escapes. Whatever is printed otherwise is `None`
//! here, and left to the reader that knows all of JSON; both give the same row.

use super::numbers::leading_digits;
use super::row::{Args, Key, Row, key};

/// The row that begins at `at`, and where it ends.
pub(super) fn read_row(text: &[u8], at: usize) -> Option<(Row<'_>, usize)> {
    let mut row = Row::default();
    let mut at = expect(text, at, b'{')?;
    loop {
        let (key, value_at) = read_key(text, at)?;
        at = if key == key::ARGS && text.get(value_at) == Some(&b'{') {
            read_args(text, value_at, &mut row.args)?
        } else {
            let (written, end) = value(text, value_at)?;
            row.set(key, written);
            end
        };
        match text.get(at)? {
            b',' => at += 1,
            b'}' => return Some((row, at + 1)),
            _ => return None,
        }
    }
}

fn read_args<'a>(text: &'a [u8], from: usize, args: &mut Args<'a>) -> Option<usize> {
    let mut at = from + 1;
    if text.get(at) == Some(&b'}') {
        args.whole = &text[from..=at];
        return Some(at + 1);
    }
    loop {
        let (key, value_at) = read_key(text, at)?;
        let (written, end) = value(text, value_at)?;
        args.set(key, written);
        match text.get(end)? {
            b',' => at = end + 1,
            b'}' => {
                args.whole = &text[from..=end];
                return Some(end + 1);
            }
            _ => return None,
        }
    }
}

/// A key and where its value begins.
#[inline(always)]
fn read_key(text: &[u8], at: usize) -> Option<(Key, usize)> {
    let from = expect(text, at, b'"')?;
    if let Some(eight) = text.get(from..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*eight);
        let (quotes, escapes) = (marks(word, b'"'), marks(word, b'\\'));
        if quotes != 0 {
            let bits = quotes.trailing_zeros();
            let is_plain = bits < escapes.trailing_zeros();
            let key = Key(word & u64::MAX >> (63 - bits));
            return is_plain.then_some((key, expect(text, from + bits as usize / 8 + 1, b':')?));
        }
    }
    let len = plain_len(&text[from..])?;
    Some((Key::of(&text[from..from + len]), expect(text, from + len + 1, b':')?))
}

/// A string without escapes, or a number, and where it ends.
#[inline(always)]
fn value(text: &[u8], at: usize) -> Option<(&[u8], usize)> {
    match text.get(at)? {
        b'"' => {
            let len = plain_len(&text[at + 1..])?;
            Some((&text[at + 1..at + 1 + len], at + len + 2))
        }
        first @ (b'0'..=b'9' | b'-') => {
            let rest = &text[at..];
            let digits = 1 + digits_len(&rest[1..])?;
            let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
            let len = digits + rest[digits..].iter().position(|byte| !is_part(byte))?;
            (*first != b'-' || digits > 1).then_some((&rest[..len], at + len))
        }
        _ => None,
    }
}

/// The number of digits before something else.
#[inline(always)]
fn digits_len(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some((_, len)) = leading_digits(text, at) {
        at += len;
        if len < 8 {
            return Some(at);
        }
    }
    Some(at + text[at..].iter().position(|byte| !byte.is_ascii_digit())?)
}

fn expect(text: &[u8], at: usize, byte: u8) -> Option<usize> {
    (*text.get(at)? == byte).then_some(at + 1)
}

/// The length up to the next quote, looked for in eight bytes at a time; `None` when an escape stands before it.
#[inline(always)]
fn plain_len(rest: &[u8]) -> Option<usize> {
    let (chunks, tail) = rest.as_chunks::<8>();
    for (at, chunk) in chunks.iter().enumerate() {
        let eight = u64::from_le_bytes(*chunk);
        let (quotes, escapes) = (marks(eight, b'"'), marks(eight, b'\\'));
        if quotes | escapes != 0 {
            return (quotes.trailing_zeros() < escapes.trailing_zeros())
                .then(|| at * 8 + quotes.trailing_zeros() as usize / 8);
        }
    }
    let len = tail.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    (tail[len] == b'"').then_some(chunks.len() * 8 + len)
}

/// The highest bit of each byte that is `byte`; those behind the first such byte may be set wrongly.
#[inline(always)]
fn marks(eight: u64, byte: u8) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let different = eight ^ (ONES * u64::from(byte));
    different.wrapping_sub(ONES) & !different & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use super::super::scanner::Scanner;
    use super::*;
    use proptest::prelude::*;

    /// Where this reader gives a row, the other gives the same.
    fn check(text: &[u8]) -> bool {
        let Some((row, end)) = read_row(text, 0) else { return false };
        let mut scanner = Scanner::new(text);
        let other = Row::read(&mut scanner);
        assert_eq!(other.as_ref(), Ok(&row), "{}", String::from_utf8_lossy(text));
        assert_eq!(scanner.at(), end);
        true
    }

    #[test]
    fn what_dftracer_prints_is_read() {
        assert!(check(br#"{"id":"0","name":"open","cat":"POSIX","pid":"1","tid":"2","ts":"3","dur":"4","ph":"X","args":{"hostname":"h","ret":18,"fname":"/a/long/path/name.bat","size":-1}}"#));
        assert!(check(br#"{"id":1,"name":"a","cat":"b","type":3,"pid":1,"tid":1,"ts":9,"dur":0,"ph":1,"args":{}} "#));
        assert!(check(br#"{"name":"cpu","ph":2,"args":{"user_pct":1.5e-3,"hhash":"6882804a826580cd"}}"#));
    }

    #[test]
    fn what_is_printed_otherwise_is_left() {
        for text in [
            r#"{ "id":1}"#,
            r#"{"id": 1}"#,
            r#"{"name":"a\"b"}"#,
            r#"{"name":"0123456789\"b"}"#,
            r#"{"ts":null}"#,
            r#"{"ts":NaN}"#,
            r#"{"ts":-}"#,
            r#"{"ts":1x}"#,
            r#"{"args":{"cfg":{"a":1}}}"#,
            r#"{"args":[]}"#,
            "{}",
            r#"{"id":1,}"#,
            r#"{"id":1"#,
            r#"{"id"#,
            "",
        ] {
            assert!(!check(text.as_bytes()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn both_readers_agree(pieces in prop::collection::vec(prop::sample::select(vec![
            "{", "}", ",", ":", "\"", "\\", "1", "-", ".", "e", " ", "null", "[", "]", "\"id\":1", "\"ts\":\"5\"", "\"args\":{",
            "\"ret\":-5", "\"name\":\"abcdefghijkl\"", "\"ph\":1", "\"fhash\":\"0123456789abcdef\"", "\"size\":4}", "{\"a\":2}",
        ]), 0..24)) {
            check(pieces.concat().as_bytes());
            check(["{", &pieces.concat()].concat().as_bytes());
        }
    }
}

//! Reads rows as DFTracer itself prints them, without white space and escapes. Whatever is printed otherwise is `None`
//! here, and left to the reader that knows all of JSON; both give the same row.

use super::bytes::{find_quote_or_backslash, marks};
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
        let bits = marks(word).trailing_zeros();
        if bits < u64::BITS {
            let quote_at = from + bits as usize / 8;
            let key = Key(word & u64::MAX >> (63 - bits));
            return Some((key, expect(text, expect(text, quote_at, b'"')?, b':')?));
        }
    }
    let written = plain(text, from)?;
    Some((Key::of(written), expect(text, from + written.len() + 1, b':')?))
}

/// A string without escapes, or a number, and where it ends.
#[inline(always)]
fn value(text: &[u8], at: usize) -> Option<(&[u8], usize)> {
    match text.get(at)? {
        b'"' => {
            let written = plain(text, at + 1)?;
            Some((written, at + written.len() + 2))
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

/// What stands before the next quote; `None` when an escape does.
#[inline(always)]
fn plain(text: &[u8], from: usize) -> Option<&[u8]> {
    let end = find_quote_or_backslash(text, from)?;
    (text[end] == b'"').then(|| &text[from..end])
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

//! From the bytes between two quotes to text: escapes resolved, invalid ones kept as written, invalid UTF-8 replaced.

use std::borrow::Cow;

/// A string's text, and whether it had to be repaired.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Text<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) is_repaired: bool,
}

/// Resolves the escapes of a string as written. Raw control characters are kept, invalid escapes stay as written
/// (`C:\Users`), bytes that are not UTF-8 and halves of surrogate pairs become U+FFFD: each counts as a repair.
pub(crate) fn decode(written: &[u8]) -> Text<'_> {
    let mut is_repaired = written.iter().any(|byte| *byte < b' ');
    if !written.contains(&b'\\') {
        let text = String::from_utf8_lossy(written);
        is_repaired |= matches!(text, Cow::Owned(_));
        return Text { text, is_repaired };
    }
    let mut decoded: Vec<u8> = Vec::with_capacity(written.len());
    let mut rest = written;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        decoded.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let (len, character) = match escape(rest) {
            Some((len, Some(character))) => (len, character),
            Some((len, None)) => {
                is_repaired = true;
                (len, char::REPLACEMENT_CHARACTER)
            }
            None => {
                is_repaired = true;
                (1, '\\')
            }
        };
        decoded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &rest[len..];
    }
    decoded.extend_from_slice(rest);
    let text = match String::from_utf8(decoded) {
        Ok(text) => text,
        Err(error) => {
            is_repaired = true;
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        }
    };
    Text { text: Cow::Owned(text), is_repaired }
}

/// The length and character of the escape that `rest` begins with; no character for half a surrogate pair, `None` for
/// what is no escape.
fn escape(rest: &[u8]) -> Option<(usize, Option<char>)> {
    let character = match rest.get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode_escape(rest),
        _ => return None,
    };
    Some((2, Some(character)))
}

fn unicode_escape(rest: &[u8]) -> Option<(usize, Option<char>)> {
    let high = hex4(rest.get(2..6)?)?;
    if !(0xd800..0xdc00).contains(&high) {
        return Some((6, char::from_u32(high)));
    }
    let low = rest.get(6..12).filter(|next| next.starts_with(b"\\u")).and_then(|next| hex4(&next[2..]));
    match low.filter(|low| (0xdc00..0xe000).contains(low)) {
        Some(low) => Some((12, char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)))),
        None => Some((6, None)),
    }
}

fn hex4(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, digit| Some(number << 4 | (*digit as char).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: &[u8], text: &str, is_repaired: bool) {
        let decoded = decode(written);
        assert_eq!((decoded.text.as_ref(), decoded.is_repaired), (text, is_repaired), "{written:?}");
    }

    #[test]
    fn valid_strings_are_read_as_json_means_them() {
        check(b"aten::mm", "aten::mm", false);
        check("größe".as_bytes(), "größe", false);
        check(br#"a\"b\\c\/d\n\u00e9\ud83d\ude00"#, "a\"b\\c/d\n\u{e9}\u{1f600}", false);
    }

    #[test]
    fn invalid_ones_are_repaired() {
        check(br"C:\Users\q", r"C:\Users\q", true);
        check(b"a\xffb", "a\u{fffd}b", true);
        check(b"a\\n\xff", "a\n\u{fffd}", true);
        check(b"a\nb", "a\nb", true);
        check(br"\ud83d!", "\u{fffd}!", true);
        check(br"\udc00", "\u{fffd}", true);
        check(br"\u12", r"\u12", true);
        check(br"end\", r"end\", true);
    }
}

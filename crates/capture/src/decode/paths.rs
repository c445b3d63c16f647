//! Paths as text: bytes on the system's side, and not always UTF-8.

use std::fmt::Write;

/// A path as text, from which its bytes can be had again: what is not UTF-8 becomes `\xff`, and so does the backslash of
/// a path that has such text in it, `\x5cxff`.
pub(super) fn text_of_path(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(at) = rest.find('\\') {
            let (before, from) = rest.split_at(at);
            let looks_escaped = matches!(from.as_bytes(), [_, b'x', high, low, ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit());
            text.push_str(before);
            text.push_str(if looks_escaped { "\\x5c" } else { "\\" });
            rest = &from[1..];
        }
        text.push_str(rest);
        chunk.invalid().iter().for_each(|byte| _ = write!(text, "\\x{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::text_of_path;
    use proptest::prelude::*;

    /// By reading each escape for its byte.
    fn bytes_of(text: &str) -> Vec<u8> {
        let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
        while let [first, behind @ ..] = rest {
            let digits = behind.get(1..3).and_then(|digits| std::str::from_utf8(digits).ok());
            let is_number = |digits: &&str| digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let escaped = digits.filter(is_number).filter(|_| *first == b'\\' && behind[0] == b'x');
            match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                Some(byte) => (bytes.push(byte), rest = &behind[3..]).1,
                None => (bytes.push(*first), rest = behind).1,
            }
        }
        bytes
    }

    #[test]
    fn texts_stay_and_other_bytes_are_escaped() {
        assert_eq!(text_of_path("/data/Müller\\x".as_bytes()), "/data/Müller\\x");
        assert_eq!(text_of_path(b"/data/M\xfcller\xff"), "/data/M\\xfcller\\xff");
        assert_eq!(text_of_path(b"/data/\\xfc"), "/data/\\x5cxfc");
    }

    proptest! {
        #[test]
        fn no_two_paths_have_one_text(path in prop::collection::vec(
            prop_oneof![Just(b'\\'), Just(b'x'), Just(b'5'), Just(b'c'), Just(b'+'), any::<u8>()], 0..20
        )) {
            prop_assert_eq!(bytes_of(&text_of_path(&path)), path);
        }
    }
}

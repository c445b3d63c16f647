//! A pull tokenizer for JSON as profilers really write it. It never panics, never calls itself, and never allocates.
//! The end of a string is looked for eight bytes at a time, and in long ones with the processor's vector instructions
//! ([`memchr`] finds out at run time which there are).
//!
//! Beyond JSON it accepts: raw control characters and any bytes in strings, escapes that JSON does not know, commas too
//! many, and the bare words `NaN`, `Infinity` and `N/A` where a number belongs.

use super::bytes::{ENDS_BARE, IN_NUMBERS, find_quote_or_backslash, is_missing_number};
use super::numbers::{plain_integer, plain_us};

/// Why reading stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// The text ends here, in the middle of something.
    End,
    /// Something else was expected.
    Unexpected {
        /// What could stand there.
        expected: &'static str,
        /// Where, in bytes.
        at: usize,
    },
}

/// A value that is not a container, or the begin of one that is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Value<'a> {
    /// A string: the bytes between its quotes, escapes as written.
    Text(&'a [u8]),
    /// A number, `true`, `false` or `null` as written.
    Bare(&'a [u8]),
    /// A bare word that is none of these: a missing number.
    Missing,
    /// `{` or `[` stands here, not yet read.
    Container,
}

/// Containers inside one value may nest this deep; profilers need four.
const MAX_DEPTH: u32 = 64;

/// A place in a text.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    missing_numbers: u64,
}

impl<'a> Scanner<'a> {
    /// At the begin of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self::new_at(bytes, 0)
    }

    /// At the place `at` of `bytes`.
    #[inline(always)]
    pub(crate) fn new_at(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at: at.min(bytes.len()), missing_numbers: 0 }
    }

    /// The place, in bytes.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Goes to another place.
    pub(crate) fn go_to(&mut self, at: usize) {
        self.at = at.min(self.bytes.len());
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes from here on.
    #[inline(always)]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// How many bare words that are no JSON were read as missing numbers.
    pub(crate) fn missing_numbers(&self) -> u64 {
        self.missing_numbers
    }

    /// The next byte that is not white space, left unread.
    #[inline(always)]
    pub(crate) fn peek(&mut self) -> Result<u8, Stop> {
        match self.bytes.get(self.at) {
            Some(byte) if *byte > b' ' => Ok(*byte),
            _ => self.peek_behind_space(),
        }
    }

    #[inline(always)]
    fn peek_behind_space(&mut self) -> Result<u8, Stop> {
        // One space stands behind most colons and commas, a line break and some spaces before many keys.
        if let Some([b' ', byte]) = self.bytes.get(self.at..self.at + 2)
            && *byte > b' '
        {
            self.at += 1;
            return Ok(*byte);
        }
        self.peek_behind_long_space()
    }

    fn peek_behind_long_space(&mut self) -> Result<u8, Stop> {
        if self.bytes.get(self.at) == Some(&b'\n') {
            self.at += 1;
        }
        while self.bytes.get(self.at..self.at + 4) == Some(b"    ") {
            self.at += 4;
        }
        while let Some(byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Ok(*byte);
            }
            self.at += 1;
        }
        Err(Stop::End)
    }

    /// Reads `byte`, which must be next.
    #[inline(always)]
    pub(crate) fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), Stop> {
        if self.peek()? != byte {
            return Err(self.unexpected(expected));
        }
        self.at += 1;
        Ok(())
    }

    /// Says that something else was expected here.
    pub(crate) fn unexpected(&self, expected: &'static str) -> Stop {
        Stop::Unexpected { expected, at: self.at }
    }

    /// Reads a string; gives what is between its quotes, as written.
    #[inline(always)]
    pub(crate) fn string(&mut self) -> Result<&'a [u8], Stop> {
        self.expect(b'"', "a string")?;
        let from = self.at;
        let mut at = from;
        loop {
            match find_quote_or_backslash(self.bytes, at) {
                Some(end) if self.bytes[end] == b'"' => {
                    self.at = end + 1;
                    return Ok(&self.bytes[from..end]);
                }
                Some(backslash) => at = backslash + 2,
                None => {
                    self.at = self.bytes.len();
                    return Err(Stop::End);
                }
            }
        }
    }

    /// Reads a value that is not a container; leaves a container unread.
    #[inline(always)]
    pub(crate) fn value(&mut self) -> Result<Value<'a>, Stop> {
        match self.peek()? {
            b'"' => self.string().map(Value::Text),
            b'{' | b'[' => Ok(Value::Container),
            _ => self.bare(),
        }
    }

    /// Reads decimal microseconds as ns, when they are plain ([`plain_us`]); else nothing is read.
    #[inline(always)]
    pub(crate) fn plain_us(&mut self) -> Option<i64> {
        let (ns, len) = plain_us(self.bytes.get(self.at..)?)?;
        self.at += len;
        Some(ns)
    }

    /// Reads an integer, when it is plain ([`plain_integer`]); else nothing is read.
    #[inline(always)]
    pub(crate) fn plain_integer(&mut self) -> Option<i64> {
        let (number, len) = plain_integer(self.bytes.get(self.at..)?)?;
        self.at += len;
        Some(number)
    }

    /// Reads a value whatever it is; gives it when it is not a container.
    #[inline(always)]
    pub(crate) fn skip_value(&mut self) -> Result<Value<'a>, Stop> {
        let value = self.value()?;
        if value == Value::Container {
            self.skip_container()?;
        }
        Ok(value)
    }

    /// Reads a string without escapes that stands right here; else nothing is read.
    #[inline(always)]
    pub(crate) fn plain_string(&mut self) -> Option<&'a [u8]> {
        let from = self.at + 1;
        let end = find_quote_or_backslash(self.bytes, from).filter(|_| self.bytes[self.at] == b'"')?;
        if self.bytes[end] != b'"' {
            return None;
        }
        self.at = end + 1;
        Some(&self.bytes[from..end])
    }

    /// Reads the members of an object; `member` reads each one's value.
    #[inline(always)]
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &'a [u8]) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.expect(b'{', "an object")?;
        loop {
            match self.peek()? {
                b'}' => {
                    self.at += 1;
                    return Ok(());
                }
                b',' => self.at += 1,
                _ => {
                    let key = self.string()?;
                    self.expect(b':', "':' after a key")?;
                    member(self, key)?;
                    match self.peek()? {
                        b',' => self.at += 1,
                        b'}' => {}
                        _ => return self.after_item(b'}'),
                    }
                }
            }
        }
    }

    /// Reads the items of a list; `item` reads each one.
    pub(crate) fn list(&mut self, mut item: impl FnMut(&mut Self) -> Result<(), Stop>) -> Result<(), Stop> {
        self.expect(b'[', "a list")?;
        loop {
            match self.peek()? {
                b']' => {
                    self.at += 1;
                    return Ok(());
                }
                b',' => self.at += 1,
                _ => {
                    item(self)?;
                    self.after_item(b']')?;
                }
            }
        }
    }

    /// Checks that an item is followed by a comma or by the end of its container.
    #[inline(always)]
    pub(crate) fn after_item(&mut self, closing: u8) -> Result<(), Stop> {
        let byte = self.peek()?;
        if byte == b',' || byte == closing {
            Ok(())
        } else {
            Err(self.unexpected("',' or the end of the list or object"))
        }
    }

    fn bare(&mut self) -> Result<Value<'a>, Stop> {
        let rest = &self.bytes[self.at..];
        let len = rest.iter().position(|byte| ENDS_BARE[*byte as usize]).unwrap_or(rest.len());
        let word = &rest[..len];
        let is_number = matches!(word, [b'0'..=b'9', ..] | [b'-', b'0'..=b'9', ..]);
        if is_number || matches!(word, b"true" | b"false" | b"null") {
            self.at += len;
            return Ok(Value::Bare(word));
        }
        if is_missing_number(word) {
            self.at += len;
            self.missing_numbers += 1;
            return Ok(Value::Missing);
        }
        if len == rest.len() {
            self.at += len;
            return Err(Stop::End);
        }
        Err(self.unexpected("a value"))
    }

    /// Reads a container by its brackets alone; what they hold is not looked at.
    fn skip_container(&mut self) -> Result<(), Stop> {
        let (mut objects, mut depth) = (0u64, 0);
        loop {
            match self.peek()? {
                b'"' => drop(self.string()?),
                opening @ (b'{' | b'[') => {
                    if depth == MAX_DEPTH {
                        return Err(self.unexpected("less nesting"));
                    }
                    objects = objects << 1 | u64::from(opening == b'{');
                    depth += 1;
                    self.at += 1;
                }
                closing @ (b'}' | b']') => {
                    if (closing == b'}') != (objects & 1 == 1) {
                        return Err(self.unexpected("the other kind of closing bracket"));
                    }
                    objects >>= 1;
                    depth -= 1;
                    self.at += 1;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                b',' | b':' => self.at += 1,
                b'0'..=b'9' => {
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().position(|byte| !IN_NUMBERS[*byte as usize]).unwrap_or(rest.len());
                }
                _ => drop(self.bare()?),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(text: &str) -> Result<usize, Stop> {
        let mut scanner = Scanner::new(text.as_bytes());
        scanner.skip_value().map(|_| scanner.at())
    }

    #[test]
    fn a_value_ends_where_it_ends() {
        let list = "[1, {\"a\": \"]}\\\"\"}, [], NaN]";
        assert_eq!(skipped(&format!("{list} tail")), Ok(list.len()));
        assert_eq!(skipped("-12.5e3,"), Ok(7));
        assert_eq!(skipped("\"a\nb\\q\""), Ok(7));
    }

    #[test]
    fn the_end_of_a_string_is_found_at_any_distance() {
        for len in 0..200 {
            for filler in [b'x', b'!', b'#', b']', 0x80, 0xa2, 0xff] {
                let text = [b"\"".as_slice(), &vec![filler; len], b"\", \""].concat();
                assert_eq!(Scanner::new(&text).string().map(<[u8]>::len), Ok(len));
                let text = [b"\"".as_slice(), &vec![filler; len], b"\\\"\""].concat();
                assert_eq!(Scanner::new(&text).string().map(<[u8]>::len), Ok(len + 2));
                assert_eq!(Scanner::new(&text[..len + 1]).string(), Err(Stop::End));
            }
        }
    }

    #[test]
    fn what_is_cut_or_broken_says_where() {
        assert_eq!(skipped("[1, 2"), Err(Stop::End));
        assert_eq!(skipped("\"abc\\"), Err(Stop::End));
        assert!(matches!(skipped("[1}"), Err(Stop::Unexpected { at: 2, .. })));
        assert!(matches!(skipped("[1, what]"), Err(Stop::Unexpected { at: 4, .. })));
        assert!(matches!(skipped(&"[".repeat(1_000_000)), Err(Stop::Unexpected { at: 64, .. })));
    }

    #[test]
    fn bare_words_are_missing_numbers() {
        let mut scanner = Scanner::new(b"[N/A, NaN, -Infinity, null]");
        scanner.skip_value().unwrap();
        assert_eq!(scanner.missing_numbers(), 3);
    }

    #[test]
    fn members_are_given_with_their_keys() {
        let mut keys = Vec::new();
        let mut scanner = Scanner::new(br#"{"a": 1,, "b": {"c": 2}, }"#);
        let result = scanner.object(|scanner, key| {
            keys.push(String::from_utf8_lossy(key).into_owned());
            scanner.skip_value().map(drop)
        });
        assert_eq!(result, Ok(()));
        assert_eq!(keys, ["a", "b"]);
    }
}

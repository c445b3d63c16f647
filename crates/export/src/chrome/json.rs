//! JSON text, written piece by piece.

use std::io::Write;

/// Text under way. Writing to memory cannot fail, so nothing here does.
#[derive(Debug, Default)]
pub(super) struct Json {
    bytes: Vec<u8>,
    needs_comma: bool,
    /// Added to every moment.
    pub(super) zero_ns: i64,
}

impl Json {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Where numbers of the innermost object, which has some, can be [put](Self::put_numbers) later.
    pub(super) fn place(&self) -> usize {
        self.bytes.len()
    }

    /// Puts numbers where a place was.
    pub(super) fn put_numbers(&mut self, place: usize, numbers: [(&'static str, i64); 2]) {
        let mut text = Self { needs_comma: true, ..Self::default() };
        numbers.into_iter().for_each(|(key, number)| text.int(key, number));
        self.bytes.splice(place..place, text.bytes);
    }

    /// Text as it is; what follows stands after no comma.
    pub(super) fn raw(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.needs_comma = false;
    }

    /// Begins an object, as a member or as a value.
    pub(super) fn open(&mut self, key: Option<&'static str>) {
        key.into_iter().for_each(|key| self.key(key));
        self.bytes.push(b'{');
        self.needs_comma = false;
    }

    /// Ends an object.
    pub(super) fn close(&mut self) {
        self.bytes.push(b'}');
        self.needs_comma = true;
    }

    pub(super) fn text(&mut self, key: &'static str, value: &str) {
        self.key(key);
        self.string(value);
    }

    pub(super) fn int(&mut self, key: &'static str, value: i64) {
        self.key(key);
        self.integer(value);
    }

    /// An unsigned number.
    pub(super) fn unsigned(&mut self, key: &'static str, value: u64) {
        self.key(key);
        self.integer(value);
    }

    /// A fraction; `null` for what JSON cannot say.
    pub(super) fn float(&mut self, key: &'static str, value: f64) {
        self.key(key);
        self.float_value(value);
    }

    pub(super) fn float_value(&mut self, value: f64) {
        if value.is_finite() { self.number(format_args!("{value}")) } else { self.number(format_args!("null")) }
    }

    /// A fraction in as few digits as tell it from its neighbours.
    pub(super) fn short_float(&mut self, key: &'static str, value: f32) {
        self.key(key);
        if value.is_finite() { self.number(format_args!("{value}")) } else { self.number(format_args!("null")) }
    }

    /// A value that is JSON already.
    pub(super) fn verbatim(&mut self, key: &'static str, json: &str) {
        self.key(key);
        self.verbatim_value(json);
    }

    pub(super) fn verbatim_value(&mut self, json: &str) {
        self.bytes.extend_from_slice(json.as_bytes());
    }

    /// The members of an object that is JSON already; nothing for any other text.
    pub(super) fn members(&mut self, object: &str) {
        let inside = object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
        if !inside.is_empty() {
            if self.needs_comma {
                self.bytes.push(b',');
            }
            self.number(format_args!("{inside}"));
            self.needs_comma = true;
        }
    }

    /// A moment, by its nanoseconds since the start of the trace.
    pub(super) fn time(&mut self, ns: i64) {
        self.us("ts", ns.saturating_add(self.zero_ns));
    }

    /// Nanoseconds as microseconds with three decimals.
    pub(super) fn us(&mut self, key: &'static str, ns: i64) {
        self.key(key);
        self.us_value(ns);
    }

    /// A slice up to its arguments: `head` goes up to the value of `ts`.
    pub(super) fn open_slice(&mut self, head: &[u8], start_ns: i64, dur_ns: i64) {
        self.bytes.extend_from_slice(head);
        self.us_value(start_ns.saturating_add(self.zero_ns));
        self.bytes.extend_from_slice(b",\"dur\": ");
        self.us_value(dur_ns);
        self.bytes.extend_from_slice(b",\"args\": {");
        self.needs_comma = false;
    }

    fn us_value(&mut self, ns: i64) {
        if ns < 0 {
            self.bytes.push(b'-');
        }
        let (us, rest) = (ns.unsigned_abs() / 1_000, (ns.unsigned_abs() % 1_000) as u32);
        let mut digits = itoa::Buffer::new();
        let whole = digits.format(us).as_bytes();
        let digit = |of: u32| b'0' + (rest / of % 10) as u8;
        // Put together first: one short copy instead of two.
        let mut text = [0; 24];
        text[..whole.len()].copy_from_slice(whole);
        text[whole.len()..whole.len() + 4].copy_from_slice(&[b'.', digit(100), digit(10), digit(1)]);
        self.bytes.extend_from_slice(&text[..whole.len() + 4]);
    }

    pub(super) fn sizes(&mut self, key: &'static str, [x, y, z]: [u32; 3]) {
        self.key(key);
        self.number(format_args!("[{x}, {y}, {z}]"));
    }

    fn number(&mut self, text: std::fmt::Arguments<'_>) {
        self.bytes.write_fmt(text).expect("memory takes any text");
    }

    pub(super) fn integer(&mut self, value: impl itoa::Integer) {
        self.bytes.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    }

    /// A key of the format's own: it has nothing to escape.
    fn key(&mut self, key: &'static str) {
        let begin: &[u8] = if self.needs_comma { b",\"" } else { b"\"" };
        self.bytes.extend_from_slice(begin);
        self.bytes.extend_from_slice(key.as_bytes());
        self.bytes.extend_from_slice(b"\": ");
        self.needs_comma = true;
    }

    /// Any key; its value follows.
    pub(super) fn any_key(&mut self, key: &str) {
        if self.needs_comma {
            self.bytes.push(b',');
        }
        self.string(key);
        // With a blank, as Kineto writes it: some readers look for members with text searches.
        self.bytes.extend_from_slice(b": ");
        self.needs_comma = true;
    }

    pub(super) fn string(&mut self, text: &str) {
        if !text.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
            self.bytes.push(b'"');
            self.bytes.extend_from_slice(text.as_bytes());
            self.bytes.push(b'"');
            return;
        }
        serde_json::to_writer(&mut self.bytes, text).expect("memory takes any text");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_and_texts_are_those_of_the_library(ns in any::<i64>(), text in any::<String>(), plain in "[ -~]{0,20}") {
            let mut json = Json::default();
            json.open(None);
            json.us("ns", ns);
            json.int("n", ns);
            json.text("text", &text);
            json.text("plain", &plain);
            json.close();
            let (sign, us, rest) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs() / 1_000, ns.unsigned_abs() % 1_000);
            let [text, plain] = [text, plain].map(|text| serde_json::to_string(&text).unwrap());
            let expected = format!("{{\"ns\": {sign}{us}.{rest:03},\"n\": {ns},\"text\": {text},\"plain\": {plain}}}");
            prop_assert_eq!(std::str::from_utf8(json.bytes()).unwrap(), expected);
        }
    }

    #[test]
    fn microseconds_are_exact_and_text_is_escaped() {
        let mut json = Json::default();
        json.open(None);
        json.us("ts", 1_234_567_890_123_456_789);
        json.us("dur", 5);
        json.us("before", -1_500);
        json.text("name", "a \"b\"\n\u{1}");
        json.open(Some("args"));
        json.sizes("grid", [1, 2, 3]);
        json.short_float("blocks per SM", 0.1);
        json.float("nan", f64::NAN);
        json.close();
        json.close();
        let expected = r#"{"ts": 1234567890123456.789,"dur": 0.005,"before": -1.500,"name": "a \"b\"\n\u0001","args": {"grid": [1, 2, 3],"blocks per SM": 0.1,"nan": null}}"#;
        assert_eq!(std::str::from_utf8(json.bytes()).unwrap(), expected);
    }
}

//! Whether a text is DFTracer's, by its first rows.

use super::scanner::{Scanner, Stop, Value};

/// How much of a file is looked at.
pub(super) const HEAD_BYTES: usize = 1 << 16;
/// Broken or foreign rows before the first that is known.
const MAX_ROWS: usize = 16;

/// True when `bytes`, a text or the begin of one, hold rows of DFTracer.
pub(crate) fn is_dftracer(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    is_rows(head)
}

fn is_rows(text: &[u8]) -> bool {
    let mut at = 0;
    for _ in 0..MAX_ROWS {
        let Some(start) = text[at..].iter().position(|byte| *byte == b'{').map(|len| at + len) else { return false };
        let mut scanner = Scanner::new(text);
        scanner.go_to(start);
        let mut features = RowFeatures::default();
        let result = scanner.object(|scanner, key| features.read_member(scanner, key));
        features.is_whole = result.is_ok();
        features.next = result.ok().and_then(|()| scanner.peek().ok());
        if features.is_of_dftracer() {
            return true;
        }
        if features.is_foreign {
            return false;
        }
        let from = if features.is_whole { scanner.at() } else { start + 1 };
        let Some(line) = text[from..].iter().position(|byte| *byte == b'\n') else { return false };
        at = from + line;
    }
    false
}

/// What one row shows.
#[derive(Default)]
struct RowFeatures {
    keys: usize,
    /// `id` or `name` stands first.
    begins_well: bool,
    begins_with_id: bool,
    has_category: bool,
    has_name: bool,
    has_ids: bool,
    has_phase: bool,
    /// The category of DFTracer's own rows.
    is_own_category: bool,
    /// The phase is one of 2.x.
    is_integer_phase: bool,
    /// The host is named in the arguments.
    has_host: bool,
    /// It ends.
    is_whole: bool,
    /// What stands behind it.
    next: Option<u8>,
    is_foreign: bool,
}

impl RowFeatures {
    fn is_of_dftracer(&self) -> bool {
        let is_row = self.begins_well && self.has_category && self.has_name && self.has_ids;
        // Rows without arguments: other lists have commas between their rows.
        let is_apart = self.next == Some(b'{') || (self.begins_with_id && self.next != Some(b','));
        let is_bare_row = self.has_phase && self.is_whole && is_apart;
        is_row && (self.is_own_category || self.is_integer_phase || self.has_host || is_bare_row)
    }

    fn read_member(&mut self, scanner: &mut Scanner<'_>, key: &[u8]) -> Result<(), Stop> {
        self.keys += 1;
        if self.keys == 1 {
            self.begins_well = matches!(key, b"id" | b"name");
            self.begins_with_id = key == b"id";
        }
        self.is_foreign |= matches!(key, b"traceEvents" | b"deviceProperties" | b"schemaVersion");
        if key == b"args" && scanner.peek()? == b'{' {
            return scanner.object(|scanner, key| {
                self.has_host |= matches!(key, b"hhash" | b"hostname");
                scanner.skip_value().map(drop)
            });
        }
        let value = scanner.skip_value()?;
        match (key, value) {
            (b"cat", Value::Text(category)) => {
                self.has_category = true;
                self.is_own_category = category == b"dftracer";
            }
            (b"name", Value::Text(_)) => self.has_name = true,
            (b"pid" | b"tid", _) => self.has_ids = true,
            (b"ph", Value::Text(b"X" | b"M" | b"C")) => self.has_phase = true,
            (b"ph", Value::Bare(b"1" | b"2" | b"3" | b"4")) => self.is_integer_phase = true,
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: bool) {
        assert_eq!(is_dftracer(text.as_bytes()), expected, "{text}");
    }

    #[test]
    fn every_dialect_is_known_by_its_first_rows() {
        check(
            r#"[ {"id":"0","name":"a","cat":"POSIX","pid":"1","tid":"2","ts":"5","dur":"1","ph":"X","args":{"hostname":"h"#,
            true,
        );
        check(r#"[{"id":1,"name":"a","cat":"app","pid":1,"tid":2,"ts":5,"dur":1,"ph":"X"}"#, true);
        check("[{\"name\":\"a\",\"cat\":\"app\",\"pid\":1,\"ph\":\"X\"}\n{", true);
        check(r#"[{"id":1,"name":"HH","cat":"dftracer","pid":1,"tid":1,"ph":"M","args":{}}"#, true);
        check(r#"{"name":"cpu","cat":"sys","type":7,"ts":5,"ph":2,"pid":0,"tid":0,"args":{}}"#, true);
        check("[\ngarbage {\"id\n{\"id\":1,\"name\":\"HH\",\"cat\":\"dftracer\",\"pid\":1", true);
    }

    #[test]
    fn other_traces_are_left_to_their_readers() {
        check(r#"{"traceEvents":[{"name":"a","cat":"dftracer","pid":1,"ph":1}]}"#, false);
        check(r#"{"schemaVersion":1,"traceEvents":[{"id":1,"name":"a","cat":"dftracer","pid":1}"#, false);
        check(r#"[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1}]"#, false);
        check(r#"[{"name":"a","cat":"cpu_op","ph":"X","pid":1,"tid":1,"ts":1},{"name":"b"}]"#, false);
        check(r#"[{"name":"a","cat":"cpu_op","ph":"X","pid":1,"tid":1,"ts":1}]"#, false);
        check(r#"[{"name":"a","cat":"x","ph":"B","pid":1,"ts":1}]"#, false);
        check("", false);
        check("[1, 2]", false);
    }
}

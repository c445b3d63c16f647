//! One row, its known members as written; numbers are read where they are needed.

use super::numbers;
use super::scanner::{Scanner, Stop, Value};

/// What kind of row it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Phase {
    /// None is given, or one that no dialect has.
    #[default]
    Unknown,
    /// An event with a duration: `X`, 1.
    Complete,
    /// A sample: `C`, 2.
    Counter,
    /// Many events added up: `A`, 3.
    Aggregated,
    /// The name of a hash, and the like: `M`, 4.
    Metadata,
}

/// How a row names its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum FileName<'a> {
    /// Not at all.
    #[default]
    Missing,
    /// In full.
    Path(&'a [u8]),
    /// By a hash that another row explains.
    Hash(&'a [u8]),
}

/// One row. Texts are as written; missing ones are empty.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Row<'a> {
    pub(super) id: &'a [u8],
    pub(super) name: &'a [u8],
    pub(super) category: &'a [u8],
    pub(super) pid: &'a [u8],
    pub(super) tid: &'a [u8],
    pub(super) time: &'a [u8],
    pub(super) duration: &'a [u8],
    pub(super) phase: Phase,
    /// The phase is a number: a row of 2.x.
    pub(super) is_numbered_phase: bool,
    pub(super) args: Args<'a>,
}

/// The arguments that mean something here.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Args<'a> {
    /// All of them, as an object.
    pub(super) whole: &'a [u8],
    /// The host's name, or its hash.
    pub(super) host: &'a [u8],
    /// The host is given by a hash.
    pub(super) is_host_hashed: bool,
    pub(super) file: FileName<'a>,
    pub(super) result: &'a [u8],
    pub(super) count: &'a [u8],
    pub(super) size: &'a [u8],
    pub(super) offset: &'a [u8],
    pub(super) step: &'a [u8],
    pub(super) epoch: &'a [u8],
    /// For rows of metadata: what is named, and by what.
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
}

/// The name of a member, as one number, so that it is quickly compared: its bytes and the quote behind it, of which eight
/// are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key(pub(super) u64);

impl Key {
    /// Longer than all that mean something here.
    pub(super) const OTHER: Self = Self(0);

    pub(super) const fn of(name: &[u8]) -> Self {
        if name.len() > 8 {
            return Self::OTHER;
        }
        let (mut bytes, mut at) = ([0; 8], 0);
        while at < name.len() {
            bytes[at] = name[at];
            at += 1;
        }
        if at < 8 {
            bytes[at] = b'"';
        }
        Self(u64::from_le_bytes(bytes))
    }
}

/// Members that mean something here.
pub(super) mod key {
    use super::Key;

    pub(crate) const ARGS: Key = Key::of(b"args");
    pub(super) const ID: Key = Key::of(b"id");
    pub(super) const NAME: Key = Key::of(b"name");
    pub(super) const CAT: Key = Key::of(b"cat");
    pub(super) const PID: Key = Key::of(b"pid");
    pub(super) const TID: Key = Key::of(b"tid");
    pub(super) const TS: Key = Key::of(b"ts");
    pub(super) const DUR: Key = Key::of(b"dur");
    pub(super) const PH: Key = Key::of(b"ph");
    pub(super) const HHASH: Key = Key::of(b"hhash");
    pub(super) const HOSTNAME: Key = Key::of(b"hostname");
    pub(super) const FHASH: Key = Key::of(b"fhash");
    pub(super) const FNAME: Key = Key::of(b"fname");
    pub(super) const RET: Key = Key::of(b"ret");
    pub(super) const COUNT: Key = Key::of(b"count");
    pub(super) const SIZE: Key = Key::of(b"size");
    pub(super) const OFFSET: Key = Key::of(b"offset");
    pub(super) const STEP: Key = Key::of(b"step");
    pub(super) const EPOCH: Key = Key::of(b"epoch");
    pub(super) const VALUE: Key = Key::of(b"value");
}

impl<'a> Row<'a> {
    /// Reads the object that begins here.
    pub(super) fn read(scanner: &mut Scanner<'a>) -> Result<Self, Stop> {
        let mut row = Row::default();
        scanner.object(|scanner, key| row.read_member(scanner, key))?;
        Ok(row)
    }

    fn read_member(&mut self, scanner: &mut Scanner<'a>, key: &[u8]) -> Result<(), Stop> {
        if key == b"args" && scanner.peek()? == b'{' {
            let from = scanner.at();
            scanner.object(|scanner, key| self.args.read_member(scanner, key))?;
            self.args.whole = &scanner.bytes()[from..scanner.at()];
            return Ok(());
        }
        self.set(Key::of(key), written(scanner.skip_value()?));
        Ok(())
    }

    /// Keeps a member that is not the arguments.
    #[inline]
    pub(super) fn set(&mut self, key: Key, text: &'a [u8]) {
        match key {
            key::ID => self.id = text,
            key::NAME => self.name = text,
            key::CAT => self.category = text,
            key::PID => self.pid = text,
            key::TID => self.tid = text,
            key::TS => self.time = text,
            key::DUR => self.duration = text,
            key::PH => {
                (self.phase, self.is_numbered_phase) = (phase(text), text.first().is_some_and(u8::is_ascii_digit))
            }
            _ => {}
        }
    }
}

impl<'a> Args<'a> {
    fn read_member(&mut self, scanner: &mut Scanner<'a>, key: &[u8]) -> Result<(), Stop> {
        self.set(Key::of(key), written(scanner.skip_value()?));
        Ok(())
    }

    /// Keeps an argument.
    #[inline]
    pub(super) fn set(&mut self, key: Key, text: &'a [u8]) {
        match key {
            key::HHASH => (self.host, self.is_host_hashed) = (text, true),
            key::HOSTNAME => self.host = text,
            key::FHASH => self.file = FileName::Hash(text),
            key::FNAME => self.file = FileName::Path(text),
            key::RET => self.result = text,
            key::COUNT => self.count = text,
            key::SIZE => self.size = text,
            key::OFFSET => self.offset = text,
            key::STEP => self.step = text,
            key::EPOCH => self.epoch = text,
            key::NAME => self.name = text,
            key::VALUE => self.value = text,
            _ => {}
        }
    }

    /// Looks at all arguments again, for those that few rows have; `take` gets the key and what is written.
    pub(super) fn for_each(&self, mut take: impl FnMut(&'a [u8], &'a [u8])) {
        let mut scanner = Scanner::new(self.whole);
        let read = scanner.object(|scanner, key| {
            take(key, written(scanner.skip_value()?));
            Ok(())
        });
        debug_assert!(read.is_ok() || self.whole.is_empty(), "it was read before");
    }
}

/// A string or bare value as written; empty for `null`, missing numbers and containers.
fn written(value: Value<'_>) -> &[u8] {
    match value {
        Value::Bare(b"null") | Value::Missing | Value::Container => b"",
        Value::Text(bytes) | Value::Bare(bytes) => bytes,
    }
}

fn phase(text: &[u8]) -> Phase {
    match text {
        b"X" | b"1" => Phase::Complete,
        b"C" | b"2" => Phase::Counter,
        b"A" | b"3" => Phase::Aggregated,
        b"M" | b"4" => Phase::Metadata,
        _ => Phase::Unknown,
    }
}

/// An integer as written, if it is one.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    match plain_digits(text) {
        Some(number) => i64::try_from(number).ok(),
        None => numbers::integer(text),
    }
}

/// Up to 19 digits and nothing else.
pub(super) fn plain_digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 19 {
        return None;
    }
    let (eights, rest) = text.as_chunks::<8>();
    let eights =
        eights.iter().try_fold(0u64, |number, eight| Some(number * 100_000_000 + numbers::eight_digits(eight)?));
    rest.iter().try_fold(eights?, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| number * 10 + u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Row<'_> {
        Row::read(&mut Scanner::new(text.as_bytes())).expect("a row")
    }

    #[test]
    fn numbers_are_read_with_quotes_and_without() {
        let old = read(
            r#"{"id":"5","name":"write","cat":"POSIX","pid":"9","tid":"18","ts":"7","dur":"2","ph":"X","args":{"hostname":"corona237","ret":"3276800","count":"3276800","fname":"/a","fd":18}}"#,
        );
        assert_eq!((old.id, old.pid, old.time, old.phase), (&b"5"[..], &b"9"[..], &b"7"[..], Phase::Complete));
        assert_eq!((old.args.host, old.args.is_host_hashed), (&b"corona237"[..], false));
        assert_eq!((old.args.file, integer(old.args.result)), (FileName::Path(b"/a"), Some(3_276_800)));
        let new = read(
            r#"{"id":7,"name":"pread64","cat":"POSIX","type":3,"pid":9,"tid":9,"ts":7,"dur":2,"ph":1,"args":{"hhash":"6882804a826580cd","ret":-1,"offset":40,"fhash":"cbec22f6f5883604"}}"#,
        );
        assert_eq!((new.phase, integer(new.args.result)), (Phase::Complete, Some(-1)));
        assert_eq!((new.args.file, new.args.is_host_hashed), (FileName::Hash(b"cbec22f6f5883604"), true));
    }

    #[test]
    fn arguments_that_few_rows_have_are_found_again() {
        let row = read(r#"{"name":"end","args":{"hhash":"a","cfg":{"enable":1},"ppid":4,"cmd":"x \" y"}}"#);
        let mut seen = Vec::new();
        row.args.for_each(|key, value| seen.push((key, value)));
        assert_eq!(seen, [(&b"hhash"[..], &b"a"[..]), (b"cfg", b""), (b"ppid", b"4"), (b"cmd", br#"x \" y"#)]);
        assert_eq!(plain_digits(b"18446744073709551615"), None);
        assert_eq!((plain_digits(b"9999999999999999999"), integer(b"12x")), (Some(9_999_999_999_999_999_999), None));
    }
}

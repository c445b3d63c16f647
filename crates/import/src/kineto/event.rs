//! One row of `traceEvents`, its known members typed, everything else passed over.

use super::categories::Category;
use super::keys::{Fraction, Integer, Key, Size, Text};
use crate::json::numbers;
use crate::json::scanner::{Scanner, Stop, Value};

/// A `pid` or `tid`: numbers, or names such as `stream 7`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) enum RowId<'a> {
    /// Not given.
    #[default]
    Missing,
    /// A number, also when written as a string.
    Number(i64),
    /// A name as written.
    Name(&'a [u8]),
}

/// A number with a unit that may be absent or beyond reason.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) enum Quantity {
    /// Not given, `null`, or no number.
    #[default]
    Missing,
    /// Given, but no value that can be.
    Unreadable,
    /// Nanoseconds.
    Ns(i64),
}

/// An operator's inputs as written, by [`super::keys::Input`]; empty when not given.
pub(super) type InputTexts<'a> = [&'a [u8]; 4];

/// Values by their number. Which ones are given is kept apart, so that many are forgotten at once.
#[derive(Clone, Copy, Debug)]
struct Slots<T, const COUNT: usize> {
    values: [T; COUNT],
    given: u32,
}

impl<T: Copy + Default, const COUNT: usize> Default for Slots<T, COUNT> {
    fn default() -> Self {
        Self { values: [T::default(); COUNT], given: 0 }
    }
}

impl<T: Copy, const COUNT: usize> Slots<T, COUNT> {
    #[inline(always)]
    fn get(&self, at: usize) -> Option<T> {
        (self.given >> at & 1 == 1).then(|| self.values[at])
    }

    #[inline(always)]
    fn put(&mut self, at: usize, value: Option<T>) {
        match value {
            Some(value) => {
                self.values[at] = value;
                self.given |= 1 << at;
            }
            None => self.given &= !(1 << at),
        }
    }
}

/// One row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Event<'a> {
    /// Its phase: `X`, `B`, `M` …; empty when not given.
    pub(super) phase: &'a [u8],
    /// What its category says it is.
    pub(super) category: Category,
    pub(super) pid: RowId<'a>,
    pub(super) tid: RowId<'a>,
    pub(super) time: Quantity,
    pub(super) duration: Quantity,
    /// All arguments as written.
    pub(super) args: &'a [u8],
    /// The number of its inputs, where they are known ([`super::known_inputs`]).
    pub(super) known_inputs: Option<u32>,
    inputs: InputTexts<'a>,
    has_inputs: bool,
    integers: Slots<i64, { Integer::COUNT }>,
    texts: Slots<&'a [u8], { Text::COUNT }>,
    sizes: Slots<[u32; 3], 2>,
    fractions: Slots<f64, 2>,
}

impl<'a> Event<'a> {
    /// Forgets everything.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        (self.phase, self.args, self.category) = (b"", b"", Category::Other);
        (self.pid, self.tid) = (RowId::Missing, RowId::Missing);
        (self.time, self.duration) = (Quantity::Missing, Quantity::Missing);
        (self.known_inputs, self.has_inputs) = (None, false);
        (self.integers.given, self.texts.given, self.sizes.given, self.fractions.given) = (0, 0, 0, 0);
    }

    /// An integer; ids above `i64::MAX` are negative.
    #[inline(always)]
    pub(super) fn integer(&self, which: Integer) -> Option<i64> {
        self.integers.get(which as usize)
    }

    /// An id that joins rows, of which 0 means none.
    #[inline(always)]
    pub(super) fn id(&self, which: Integer) -> Option<i64> {
        self.integer(which).filter(|id| *id != 0)
    }

    /// A text as written; empty when not given.
    #[inline(always)]
    pub(super) fn text(&self, which: Text) -> &'a [u8] {
        self.texts.get(which as usize).unwrap_or_default()
    }

    /// A text; empty where it is not given or not known (`N/A`).
    pub(super) fn known_text(&self, which: Text) -> &'a [u8] {
        let text = self.text(which);
        if text.eq_ignore_ascii_case(b"N/A") { b"" } else { text }
    }

    /// True when a text is given, even an empty one.
    pub(super) fn has_text(&self, which: Text) -> bool {
        self.texts.get(which as usize).is_some()
    }

    /// The row's name as written.
    #[inline(always)]
    pub(super) fn name(&self) -> &'a [u8] {
        self.text(Text::Name)
    }

    /// A launch's size.
    pub(super) fn size(&self, which: Size) -> Option<[u32; 3]> {
        self.sizes.get(which as usize)
    }

    /// A finite number.
    pub(super) fn fraction(&self, which: Fraction) -> Option<f64> {
        self.fractions.get(which as usize)
    }

    /// True when any of an operator's inputs is given.
    #[inline(always)]
    pub(super) fn has_inputs(&self) -> bool {
        self.has_inputs
    }

    /// An operator's inputs.
    #[inline(always)]
    pub(super) fn inputs(&self) -> InputTexts<'a> {
        if self.has_inputs { self.inputs } else { InputTexts::default() }
    }

    /// Takes all of an operator's inputs.
    #[inline(always)]
    pub(super) fn set_inputs(&mut self, inputs: InputTexts<'a>) {
        (self.inputs, self.has_inputs) = (inputs, true);
    }

    /// True when the source itself says that this is a part of a collective.
    pub(super) fn is_of_collective(&self) -> bool {
        !self.known_text(Text::CollectiveName).is_empty() || !self.known_text(Text::Group).is_empty()
    }

    /// Reads the value of `key` when it is one of the many that are plain; else reads nothing, and says so.
    #[inline(always)]
    pub(super) fn read_plain(&mut self, key: Key, scanner: &mut Scanner<'a>) -> bool {
        match key {
            Key::Integer(which) => match scanner.plain_integer() {
                Some(number) => self.integers.put(which as usize, Some(number)),
                None => return false,
            },
            Key::Time | Key::Duration => match scanner.plain_us() {
                Some(ns) if key == Key::Time && ns < numbers::TIME_RANGE_NS.end => self.time = Quantity::Ns(ns),
                Some(ns) if key == Key::Duration && ns <= numbers::MAX_DURATION_NS => self.duration = Quantity::Ns(ns),
                Some(_) if key == Key::Time => self.time = Quantity::Unreadable,
                Some(_) => self.duration = Quantity::Unreadable,
                None => return false,
            },
            Key::Pid | Key::Tid => match scanner.plain_integer().map(RowId::Number) {
                Some(id) if key == Key::Pid => self.pid = id,
                Some(id) => self.tid = id,
                None => return false,
            },
            Key::Text(which) => match scanner.plain_string() {
                Some(text) => self.texts.put(which as usize, Some(text)),
                None => return false,
            },
            Key::Other => return scanner.plain_integer().is_some(),
            _ => return false,
        }
        true
    }

    /// Reads the value of `key`, whatever it is.
    ///
    /// # Errors
    /// Where it ends or breaks.
    #[inline(never)]
    pub(super) fn read_value(&mut self, key: Key, scanner: &mut Scanner<'a>) -> Result<(), Stop> {
        match key {
            Key::Time => self.time = quantity(scanner.skip_value()?, numbers::time_ns),
            Key::Duration => self.duration = quantity(scanner.skip_value()?, numbers::duration_ns),
            Key::Pid => self.pid = row_id(scanner.skip_value()?),
            Key::Tid => self.tid = row_id(scanner.skip_value()?),
            Key::Integer(which) => self.integers.put(which as usize, read_integer(scanner)?),
            Key::Text(which) => self.texts.put(which as usize, written(scanner.skip_value()?)),
            Key::Size(which) => self.sizes.put(which as usize, read_size(scanner)?),
            Key::Fraction(which) => self.fractions.put(which as usize, read_fraction(scanner)?),
            Key::Input(which) => {
                self.set_inputs(self.inputs());
                self.inputs[which as usize] = read_whole(scanner)?;
            }
            Key::Args | Key::Phase | Key::Category | Key::Other => drop(scanner.skip_value()?),
        }
        Ok(())
    }
}

/// The members of an object as written that are finite numbers, by key.
pub(super) fn numbers_of_object(whole: &[u8]) -> Vec<(&[u8], f64)> {
    let mut numbers = Vec::new();
    let _ = Scanner::new(whole).object(|scanner, key| {
        if let Some(number) = read_fraction(scanner)? {
            numbers.push((key, number));
        }
        Ok(())
    });
    numbers
}

/// Reads a value whatever it is; gives all of it as written.
#[inline(always)]
fn read_whole<'a>(scanner: &mut Scanner<'a>) -> Result<&'a [u8], Stop> {
    scanner.peek()?;
    let from = scanner.at();
    scanner.skip_value()?;
    Ok(&scanner.bytes()[from..scanner.at()])
}

fn read_integer(scanner: &mut Scanner<'_>) -> Result<Option<i64>, Stop> {
    match scanner.plain_integer() {
        Some(number) => Ok(Some(number)),
        None => Ok(written(scanner.skip_value()?).and_then(numbers::integer)),
    }
}

fn read_fraction(scanner: &mut Scanner<'_>) -> Result<Option<f64>, Stop> {
    Ok(written(scanner.skip_value()?).and_then(numbers::fraction))
}

/// A string or bare value as written; `None` for `null`, missing numbers and containers.
pub(super) fn written(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::Text(bytes) => Some(bytes),
        Value::Bare(b"null") | Value::Missing | Value::Container => None,
        Value::Bare(bytes) => Some(bytes),
    }
}

fn row_id(value: Value<'_>) -> RowId<'_> {
    match written(value) {
        None => RowId::Missing,
        Some(bytes) => numbers::integer(bytes).map_or(RowId::Name(bytes), RowId::Number),
    }
}

fn quantity(value: Value<'_>, read: fn(&[u8]) -> Option<i64>) -> Quantity {
    match written(value) {
        None => Quantity::Missing,
        Some(bytes) => read(bytes).map_or(Quantity::Unreadable, Quantity::Ns),
    }
}

/// Reads `[x, y, z]`; `None` when it is anything else.
fn read_size(scanner: &mut Scanner<'_>) -> Result<Option<[u32; 3]>, Stop> {
    if scanner.peek()? != b'[' {
        return scanner.skip_value().map(|_| None);
    }
    let (mut size, mut len) = ([0; 3], 0);
    scanner.list(|scanner| {
        let number = read_integer(scanner)?.and_then(|number| u32::try_from(number).ok());
        if let (Some(place), Some(number)) = (size.get_mut(len), number) {
            *place = number;
            len += 1;
        }
        Ok(())
    })?;
    Ok((len == 3).then_some(size))
}

#[cfg(test)]
mod tests {
    use super::super::row::RowCache;
    use super::*;

    fn read(text: &str) -> Event<'_> {
        let mut event = Event::default();
        event.read(&mut Scanner::new(text.as_bytes()), &mut RowCache::default()).expect("an event");
        event
    }

    #[test]
    fn a_kernel_of_a_modern_trace() {
        let event = read(
            r#"{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1.5, "dur": 2.25, "args": {
                "External id": 3, "device": 0, "stream": 7, "correlation": 9007199254740993, "grid": [4, 2, 1],
                "block": [128, 1], "est. achieved occupancy %": 75, "blocks per SM": N/A, "shared memory": 400,
                "Collective name": "allreduce"}}"#,
        );
        assert_eq!((event.phase, event.category, event.name()), (&b"X"[..], Category::Kernel, &b"gemm"[..]));
        assert_eq!((event.time, event.duration), (Quantity::Ns(1_500), Quantity::Ns(2_250)));
        let integer = |which| event.integer(which);
        assert_eq!((integer(Integer::Stream), integer(Integer::Correlation)), (Some(7), Some(9_007_199_254_740_993)));
        assert_eq!((event.size(Size::Grid), event.size(Size::Block)), (Some([4, 2, 1]), None));
        let fraction = |which| event.fraction(which);
        assert_eq!((fraction(Fraction::Occupancy), fraction(Fraction::BlocksPerSm)), (Some(75.0), None));
        assert_eq!(integer(Integer::SharedMemory), Some(400));
        assert!(event.is_of_collective());
    }

    #[test]
    fn rows_of_old_and_odd_traces() {
        let event =
            read(r#"{"pid": "25738", "tid": "stream 7", "ts": 18446744073709551615, "dur": NaN, "args": null}"#);
        assert_eq!((event.pid, event.tid), (RowId::Number(25_738), RowId::Name(b"stream 7")));
        assert_eq!((event.time, event.duration), (Quantity::Unreadable, Quantity::Missing));
        let event =
            read(r#"{"args": {"Fwd Thread Id": 1, "sequence number": 4, "Copy Kind": "HtoD", "Collective name": ""}}"#);
        assert_eq!((event.integer(Integer::ForwardThread), event.integer(Integer::SequenceNumber)), (Some(1), Some(4)));
        assert_eq!((event.text(Text::CopyKind), event.is_of_collective()), (&b"HtoD"[..], false));
    }
}

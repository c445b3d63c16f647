//! One row of `traceEvents`, its known members typed, everything else passed over.

use super::numbers;
use super::scanner::{Scanner, Stop, Value};

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

/// One row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Event<'a> {
    /// Its phase: `X`, `B`, `M` …; empty when not given.
    pub(super) phase: &'a [u8],
    /// Its category as written; empty when not given.
    pub(super) category: &'a [u8],
    /// Its name as written.
    pub(super) name: &'a [u8],
    pub(super) pid: RowId<'a>,
    pub(super) tid: RowId<'a>,
    pub(super) time: Quantity,
    pub(super) duration: Quantity,
    /// Joins the two ends of an arrow.
    pub(super) id: Option<i64>,
    pub(super) args: Args<'a>,
}

/// The arguments that mean something here.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Args<'a> {
    /// For rows of phase `M`: the name given.
    pub(super) name: Option<&'a [u8]>,
    pub(super) stream: Option<i64>,
    pub(super) device: Option<i64>,
    pub(super) correlation: Option<i64>,
    pub(super) sequence_number: Option<i64>,
    pub(super) forward_thread: Option<i64>,
    pub(super) grid: Option<[u32; 3]>,
    pub(super) block: Option<[u32; 3]>,
    pub(super) registers: Option<i64>,
    pub(super) shared_bytes: Option<i64>,
    pub(super) blocks_per_sm: Option<f64>,
    pub(super) occupancy_percent: Option<f64>,
    pub(super) bytes: Option<i64>,
    pub(super) copy_kind: Option<&'a [u8]>,
    pub(super) graph: Option<i64>,
    /// The source itself says that this is a part of a collective.
    pub(super) is_collective: bool,
}

impl<'a> Event<'a> {
    /// Reads the object that begins here.
    pub(super) fn read(scanner: &mut Scanner<'a>) -> Result<Self, Stop> {
        let mut event = Event::default();
        scanner.object(|scanner, key| event.read_member(scanner, key))?;
        Ok(event)
    }

    fn read_member(&mut self, scanner: &mut Scanner<'a>, key: &[u8]) -> Result<(), Stop> {
        if key == b"args" {
            return match scanner.value()? {
                Value::Container if scanner.peek()? == b'{' => {
                    scanner.object(|scanner, key| self.args.read_member(scanner, key))
                }
                Value::Container => scanner.skip_value().map(drop),
                _ => Ok(()),
            };
        }
        let value = scanner.skip_value()?;
        match key {
            b"ph" => self.phase = written(value).unwrap_or_default(),
            b"cat" => self.category = written(value).unwrap_or_default(),
            b"name" => self.name = written(value).unwrap_or_default(),
            b"pid" => self.pid = row_id(value),
            b"tid" => self.tid = row_id(value),
            b"ts" => self.time = quantity(value, numbers::time_ns),
            b"dur" => self.duration = quantity(value, numbers::duration_ns),
            b"id" => self.id = written(value).and_then(numbers::integer),
            _ => {}
        }
        Ok(())
    }
}

impl<'a> Args<'a> {
    fn read_member(&mut self, scanner: &mut Scanner<'a>, key: &[u8]) -> Result<(), Stop> {
        let mut lower = [0; 32];
        let Some(lower) = lower.get_mut(..key.len()) else { return scanner.skip_value().map(drop) };
        lower.copy_from_slice(key);
        lower.make_ascii_lowercase();
        let key: &[u8] = lower;
        if matches!(key, b"grid" | b"block") && scanner.peek()? == b'[' {
            let size = read_size(scanner)?;
            *(if key == b"grid" { &mut self.grid } else { &mut self.block }) = size;
            return Ok(());
        }
        let value = scanner.skip_value()?;
        let integer = || written(value).and_then(numbers::integer);
        let fraction = || written(value).and_then(numbers::fraction);
        match key {
            b"name" => self.name = written(value),
            b"stream" => self.stream = integer(),
            b"device" => self.device = integer(),
            b"correlation" => self.correlation = integer().filter(|id| *id != 0),
            b"sequence number" => self.sequence_number = integer(),
            b"fwd thread id" => self.forward_thread = integer(),
            b"registers per thread" => self.registers = integer(),
            b"shared memory" => self.shared_bytes = integer(),
            b"blocks per sm" => self.blocks_per_sm = fraction(),
            b"est. achieved occupancy %" => self.occupancy_percent = fraction(),
            b"bytes" => self.bytes = integer(),
            b"copy kind" | b"kind" => self.copy_kind = written(value),
            b"graph id" => self.graph = integer().filter(|id| *id != 0),
            b"collective name" | b"process group name" => self.is_collective |= is_said(value),
            _ => {}
        }
        Ok(())
    }
}

/// A string or bare value as written; `None` for `null`, missing numbers and containers.
pub(super) fn written(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::Text(bytes) => Some(bytes),
        Value::Bare(b"null") | Value::Missing | Value::Container => None,
        Value::Bare(bytes) => Some(bytes),
    }
}

fn is_said(value: Value<'_>) -> bool {
    matches!(value, Value::Text(text) if !text.is_empty() && !text.eq_ignore_ascii_case(b"N/A"))
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
    let (mut size, mut len) = ([0; 3], 0);
    scanner.list(|scanner| {
        let number = written(scanner.skip_value()?).and_then(numbers::integer).and_then(|n| u32::try_from(n).ok());
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
    use super::*;

    fn read(text: &str) -> Event<'_> {
        Event::read(&mut Scanner::new(text.as_bytes())).expect("an event")
    }

    #[test]
    fn a_kernel_of_a_modern_trace() {
        let event = read(
            r#"{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1.5, "dur": 2.25, "args": {
                "External id": 3, "device": 0, "stream": 7, "correlation": 9007199254740993, "grid": [4, 2, 1],
                "block": [128, 1], "est. achieved occupancy %": 75, "blocks per SM": N/A, "shared memory": 400,
                "Collective name": "allreduce"}}"#,
        );
        assert_eq!((event.phase, event.category, event.name), (&b"X"[..], &b"kernel"[..], &b"gemm"[..]));
        assert_eq!((event.time, event.duration), (Quantity::Ns(1_500), Quantity::Ns(2_250)));
        let args = event.args;
        assert_eq!((args.stream, args.correlation), (Some(7), Some(9_007_199_254_740_993)));
        assert_eq!((args.grid, args.block), (Some([4, 2, 1]), None));
        assert_eq!((args.occupancy_percent, args.blocks_per_sm, args.shared_bytes), (Some(75.0), None, Some(400)));
        assert!(args.is_collective);
    }

    #[test]
    fn rows_of_old_and_odd_traces() {
        let event =
            read(r#"{"pid": "25738", "tid": "stream 7", "ts": 18446744073709551615, "dur": NaN, "args": null}"#);
        assert_eq!((event.pid, event.tid), (RowId::Number(25_738), RowId::Name(b"stream 7")));
        assert_eq!((event.time, event.duration), (Quantity::Unreadable, Quantity::Missing));
        let event =
            read(r#"{"args": {"Fwd Thread Id": 1, "sequence number": 4, "Copy Kind": "HtoD", "Collective name": ""}}"#);
        assert_eq!((event.args.forward_thread, event.args.sequence_number), (Some(1), Some(4)));
        assert_eq!((event.args.copy_kind, event.args.is_collective), (Some(&b"HtoD"[..]), false));
    }
}

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
    pub(super) graph_node: Option<i64>,
    /// An op's inputs as written, lists of JSON.
    pub(super) inputs: InputTexts<'a>,
    pub(super) call_stack: Option<&'a [u8]>,
    pub(super) memory: MemoryArgs,
    pub(super) sync: SyncArgs<'a>,
    pub(super) collective: CollectiveArgs<'a>,
}

/// An op's inputs.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct InputTexts<'a> {
    pub(super) dims: &'a [u8],
    pub(super) types: &'a [u8],
    pub(super) strides: &'a [u8],
    pub(super) concrete: &'a [u8],
}

/// An allocation or a free.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct MemoryArgs {
    pub(super) address: Option<i64>,
    pub(super) device_type: Option<i64>,
    pub(super) device_id: Option<i64>,
    pub(super) total_allocated: Option<i64>,
    pub(super) total_reserved: Option<i64>,
}

/// A wait.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct SyncArgs<'a> {
    pub(super) kind: Option<&'a [u8]>,
    pub(super) event_stream: Option<i64>,
    pub(super) event_correlation: Option<i64>,
}

/// A part of a collective.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct CollectiveArgs<'a> {
    pub(super) name: &'a [u8],
    pub(super) dtype: &'a [u8],
    pub(super) input_elements: Option<i64>,
    pub(super) output_elements: Option<i64>,
    pub(super) group: &'a [u8],
    pub(super) group_description: &'a [u8],
    pub(super) group_ranks: &'a [u8],
    pub(super) group_size: Option<i64>,
    pub(super) sequence_number: Option<i64>,
}

impl CollectiveArgs<'_> {
    /// True when the source itself says that this is a part of a collective.
    pub(super) fn is_given(&self) -> bool {
        !self.name.is_empty() || !self.group.is_empty()
    }
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
        let mut lower = [0; 40];
        let Some(lower) = lower.get_mut(..key.len()) else { return scanner.skip_value().map(drop) };
        lower.copy_from_slice(key);
        lower.make_ascii_lowercase();
        let key: &[u8] = lower;
        if matches!(key, b"grid" | b"block") && scanner.peek()? == b'[' {
            let size = read_size(scanner)?;
            *(if key == b"grid" { &mut self.grid } else { &mut self.block }) = size;
            return Ok(());
        }
        scanner.peek()?;
        let from = scanner.at();
        let value = scanner.skip_value()?;
        let whole = &scanner.bytes()[from..scanner.at()];
        let integer = || written(value).and_then(numbers::integer);
        let said = || match value {
            Value::Text(text) if !text.eq_ignore_ascii_case(b"N/A") => text,
            _ => b"",
        };
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
            b"graph node id" => self.graph_node = integer().filter(|id| *id != 0),
            b"input dims" => self.inputs.dims = whole,
            b"input type" => self.inputs.types = whole,
            b"input strides" => self.inputs.strides = whole,
            b"concrete inputs" => self.inputs.concrete = whole,
            b"call stack" => self.call_stack = written(value),
            b"addr" => self.memory.address = integer(),
            b"device type" => self.memory.device_type = integer(),
            b"device id" => self.memory.device_id = integer(),
            b"total allocated" => self.memory.total_allocated = integer(),
            b"total reserved" => self.memory.total_reserved = integer(),
            b"cuda_sync_kind" => self.sync.kind = written(value),
            b"wait_on_stream" => self.sync.event_stream = integer(),
            b"wait_on_cuda_event_record_corr_id" => self.sync.event_correlation = integer().filter(|id| *id > 0),
            b"collective name" => self.collective.name = said(),
            b"dtype" => self.collective.dtype = said(),
            b"in msg nelems" => self.collective.input_elements = integer(),
            b"out msg nelems" => self.collective.output_elements = integer(),
            b"process group name" => self.collective.group = said(),
            b"process group description" => self.collective.group_description = said(),
            b"process group ranks" => self.collective.group_ranks = said(),
            b"group size" => self.collective.group_size = integer(),
            b"seq" => self.collective.sequence_number = integer(),
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
        assert!(args.collective.is_given());
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
        assert_eq!((event.args.copy_kind, event.args.collective.is_given()), (Some(&b"HtoD"[..]), false));
    }
}

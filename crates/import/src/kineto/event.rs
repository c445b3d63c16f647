//! One row of `traceEvents`, its known members typed, everything else passed over.

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
    /// All of it as written.
    pub(super) whole: &'a [u8],
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
    /// What our own export says in words beside what the form has place for.
    pub(super) words: &'a [u8],
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
    #[inline(always)]
    pub(super) fn read(scanner: &mut Scanner<'a>) -> Result<Self, Stop> {
        let mut event = Event::default();
        scanner.object(|scanner, key| event.read_member(scanner, key))?;
        Ok(event)
    }

    #[inline(always)]
    fn read_member(&mut self, scanner: &mut Scanner<'a>, key: &[u8]) -> Result<(), Stop> {
        let next = scanner.peek()?;
        match key {
            b"args" if next == b'{' => {
                let from = scanner.at();
                scanner.object(|scanner, key| self.args.read_member(scanner, key))?;
                self.args.whole = &scanner.bytes()[from..scanner.at()];
            }
            b"ts" => self.time = read_quantity(scanner, numbers::TIME_RANGE_NS.end - 1, numbers::time_ns)?,
            b"dur" => self.duration = read_quantity(scanner, numbers::MAX_DURATION_NS, numbers::duration_ns)?,
            b"pid" => self.pid = read_row_id(scanner)?,
            b"tid" => self.tid = read_row_id(scanner)?,
            b"id" => self.id = read_integer(scanner)?,
            _ => {
                let value = scanner.skip_value()?;
                match key {
                    b"ph" => self.phase = written(value).unwrap_or_default(),
                    b"cat" => self.category = written(value).unwrap_or_default(),
                    b"name" => self.name = written(value).unwrap_or_default(),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// The arguments that mean something here, in lower case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Arg {
    Name,
    Stream,
    Device,
    Correlation,
    SequenceNumber,
    ForwardThread,
    Grid,
    Block,
    Registers,
    SharedMemory,
    BlocksPerSm,
    Occupancy,
    Bytes,
    CopyKind,
    Graph,
    GraphNode,
    InputDims,
    InputType,
    InputStrides,
    ConcreteInputs,
    CallStack,
    Address,
    DeviceType,
    DeviceId,
    TotalAllocated,
    TotalReserved,
    SyncKind,
    WaitOnStream,
    WaitOnRecord,
    CollectiveName,
    Dtype,
    InElements,
    OutElements,
    Group,
    GroupDescription,
    GroupRanks,
    GroupSize,
    Seq,
    Words,
}

const ARGS: &[(&str, Arg)] = &[
    ("name", Arg::Name),
    ("stream", Arg::Stream),
    ("device", Arg::Device),
    ("correlation", Arg::Correlation),
    ("sequence number", Arg::SequenceNumber),
    ("fwd thread id", Arg::ForwardThread),
    ("grid", Arg::Grid),
    ("block", Arg::Block),
    ("registers per thread", Arg::Registers),
    ("shared memory", Arg::SharedMemory),
    ("blocks per sm", Arg::BlocksPerSm),
    ("est. achieved occupancy %", Arg::Occupancy),
    ("bytes", Arg::Bytes),
    ("copy kind", Arg::CopyKind),
    ("kind", Arg::CopyKind),
    ("graph id", Arg::Graph),
    ("graph node id", Arg::GraphNode),
    ("input dims", Arg::InputDims),
    ("input type", Arg::InputType),
    ("input strides", Arg::InputStrides),
    ("concrete inputs", Arg::ConcreteInputs),
    ("call stack", Arg::CallStack),
    ("addr", Arg::Address),
    ("device type", Arg::DeviceType),
    ("device id", Arg::DeviceId),
    ("total allocated", Arg::TotalAllocated),
    ("total reserved", Arg::TotalReserved),
    ("cuda_sync_kind", Arg::SyncKind),
    ("wait_on_stream", Arg::WaitOnStream),
    ("wait_on_cuda_event_record_corr_id", Arg::WaitOnRecord),
    ("collective name", Arg::CollectiveName),
    ("dtype", Arg::Dtype),
    ("in msg nelems", Arg::InElements),
    ("out msg nelems", Arg::OutElements),
    ("process group name", Arg::Group),
    ("process group description", Arg::GroupDescription),
    ("process group ranks", Arg::GroupRanks),
    ("group size", Arg::GroupSize),
    ("seq", Arg::Seq),
    ("stepscope", Arg::Words),
];

const LONGEST_ARG: usize = 40;

/// [`ARGS`] by the length of the name: where the names of a length begin and end in [`ARGS_BY_LEN`].
const fn args_by_len() -> ([u8; ARGS.len()], [(u8, u8); LONGEST_ARG]) {
    let (mut order, mut limits) = ([0; ARGS.len()], [(0, 0); LONGEST_ARG]);
    let (mut len, mut filled) = (0, 0);
    while len < LONGEST_ARG {
        limits[len].0 = filled as u8;
        let mut at = 0;
        while at < ARGS.len() {
            if ARGS[at].0.len() == len {
                order[filled] = at as u8;
                filled += 1;
            }
            at += 1;
        }
        limits[len].1 = filled as u8;
        len += 1;
    }
    assert!(filled == ARGS.len(), "every name is shorter than LONGEST_ARG");
    (order, limits)
}

static ARGS_BY_LEN: ([u8; ARGS.len()], [(u8, u8); LONGEST_ARG]) = args_by_len();

/// Which argument `key` is; upper and lower case are the same.
#[inline(always)]
fn arg(key: &[u8]) -> Option<Arg> {
    let (from, to) = *ARGS_BY_LEN.1.get(key.len())?;
    let first = *key.first()? | 0x20;
    let candidates = &ARGS_BY_LEN.0[from as usize..to as usize];
    let known = candidates.iter().map(|at| &ARGS[*at as usize]);
    let is_key = |name: &str| name.as_bytes()[0] == first && key.eq_ignore_ascii_case(name.as_bytes());
    known.into_iter().find(|(name, _)| is_key(name)).map(|(_, arg)| *arg)
}

impl<'a> Args<'a> {
    #[inline(always)]
    fn read_member(&mut self, scanner: &mut Scanner<'a>, key: &[u8]) -> Result<(), Stop> {
        let Some(arg) = arg(key) else { return scanner.skip_value().map(drop) };
        match arg {
            Arg::Stream => self.stream = read_integer(scanner)?,
            Arg::Device => self.device = read_integer(scanner)?,
            Arg::Correlation => self.correlation = read_integer(scanner)?.filter(|id| *id != 0),
            Arg::SequenceNumber => self.sequence_number = read_integer(scanner)?,
            Arg::ForwardThread => self.forward_thread = read_integer(scanner)?,
            Arg::Grid => self.grid = read_size(scanner)?,
            Arg::Block => self.block = read_size(scanner)?,
            Arg::Registers => self.registers = read_integer(scanner)?,
            Arg::SharedMemory => self.shared_bytes = read_integer(scanner)?,
            Arg::BlocksPerSm => self.blocks_per_sm = read_fraction(scanner)?,
            Arg::Occupancy => self.occupancy_percent = read_fraction(scanner)?,
            Arg::Bytes => self.bytes = read_integer(scanner)?,
            Arg::Graph => self.graph = read_integer(scanner)?.filter(|id| *id != 0),
            Arg::GraphNode => self.graph_node = read_integer(scanner)?.filter(|id| *id != 0),
            Arg::InputDims => self.inputs.dims = read_whole(scanner)?,
            Arg::InputType => self.inputs.types = read_whole(scanner)?,
            Arg::InputStrides => self.inputs.strides = read_whole(scanner)?,
            Arg::ConcreteInputs => self.inputs.concrete = read_whole(scanner)?,
            Arg::Address => self.memory.address = read_integer(scanner)?,
            Arg::DeviceType => self.memory.device_type = read_integer(scanner)?,
            Arg::DeviceId => self.memory.device_id = read_integer(scanner)?,
            Arg::TotalAllocated => self.memory.total_allocated = read_integer(scanner)?,
            Arg::TotalReserved => self.memory.total_reserved = read_integer(scanner)?,
            Arg::WaitOnStream => self.sync.event_stream = read_integer(scanner)?,
            Arg::WaitOnRecord => self.sync.event_correlation = read_integer(scanner)?.filter(|id| *id > 0),
            Arg::InElements => self.collective.input_elements = read_integer(scanner)?,
            Arg::OutElements => self.collective.output_elements = read_integer(scanner)?,
            Arg::GroupSize => self.collective.group_size = read_integer(scanner)?,
            Arg::Seq => self.collective.sequence_number = read_integer(scanner)?,
            Arg::Words => self.words = said(scanner.skip_value()?),
            Arg::Name => self.name = written(scanner.skip_value()?),
            Arg::CopyKind => self.copy_kind = written(scanner.skip_value()?),
            Arg::CallStack => self.call_stack = written(scanner.skip_value()?),
            Arg::SyncKind => self.sync.kind = written(scanner.skip_value()?),
            Arg::CollectiveName => self.collective.name = said(scanner.skip_value()?),
            Arg::Dtype => self.collective.dtype = said(scanner.skip_value()?),
            Arg::Group => self.collective.group = said(scanner.skip_value()?),
            Arg::GroupDescription => self.collective.group_description = said(scanner.skip_value()?),
            Arg::GroupRanks => self.collective.group_ranks = said(scanner.skip_value()?),
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

/// A text that says something.
fn said(value: Value<'_>) -> &[u8] {
    match value {
        Value::Text(text) if !text.eq_ignore_ascii_case(b"N/A") => text,
        _ => b"",
    }
}

/// Reads a value whatever it is; gives all of it as written.
#[inline(always)]
fn read_whole<'a>(scanner: &mut Scanner<'a>) -> Result<&'a [u8], Stop> {
    scanner.peek()?;
    let from = scanner.at();
    scanner.skip_value()?;
    Ok(&scanner.bytes()[from..scanner.at()])
}

#[inline(always)]
fn read_integer(scanner: &mut Scanner<'_>) -> Result<Option<i64>, Stop> {
    scanner.peek()?;
    match scanner.plain_integer() {
        Some(number) => Ok(Some(number)),
        None => Ok(written(scanner.skip_value()?).and_then(numbers::integer)),
    }
}

fn read_fraction(scanner: &mut Scanner<'_>) -> Result<Option<f64>, Stop> {
    Ok(written(scanner.skip_value()?).and_then(numbers::fraction))
}

#[inline(always)]
fn read_row_id<'a>(scanner: &mut Scanner<'a>) -> Result<RowId<'a>, Stop> {
    scanner.peek()?;
    match scanner.plain_integer() {
        Some(number) => Ok(RowId::Number(number)),
        None => Ok(row_id(scanner.skip_value()?)),
    }
}

/// Reads decimal microseconds that are at most `max_ns`.
#[inline(always)]
fn read_quantity(scanner: &mut Scanner<'_>, max_ns: i64, read: fn(&[u8]) -> Option<i64>) -> Result<Quantity, Stop> {
    scanner.peek()?;
    match scanner.plain_us() {
        Some(ns) if ns <= max_ns => Ok(Quantity::Ns(ns)),
        Some(_) => Ok(Quantity::Unreadable),
        None => Ok(quantity(scanner.skip_value()?, read)),
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

//! One row of `traceEvents`, its known members typed, everything else passed over.

use super::categories::{self, Category};
use super::keys::{self, Key};
use super::known_inputs::KnownInputs;
use super::layouts::{Layouts, Meaning, Place};
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
    /// What its category says it is.
    pub(super) category: Category,
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
    /// Their number where the same inputs were read before.
    pub(super) known_inputs: Option<u32>,
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

/// What the rows read so far teach about the next ones. It changes how fast they are read, never what is read.
#[derive(Debug, Default)]
pub(super) struct Learned {
    pub(super) layouts: Layouts,
    pub(super) inputs: KnownInputs,
}

impl<'a> Event<'a> {
    /// Reads the object that begins here.
    ///
    /// # Errors
    /// When it ends or breaks where the scanner then stands.
    #[inline(always)]
    pub(super) fn read(&mut self, scanner: &mut Scanner<'a>, learned: &mut Learned) -> Result<(), Stop> {
        *self = Event::default();
        scanner.expect(b'{', "an object")?;
        let mut row = Row { event: self, place: Some(Layouts::BEGIN), args_from: None, inputs: Inputs::Ahead };
        while row.read_part(scanner, learned)? != Meaning::EndOfRow {}
        Ok(())
    }
}

/// A row that is being read.
struct Row<'e, 'a> {
    event: &'e mut Event<'a>,
    /// Where its layout is, as long as it is one that can be learned.
    place: Option<Place>,
    /// Where the arguments begin, within them.
    args_from: Option<usize>,
    inputs: Inputs,
}

/// An operator's inputs.
#[derive(Clone, Copy, Debug)]
enum Inputs {
    /// None yet.
    Ahead,
    /// Read one after the other so far, from one byte to another; the layout's places before the first and last value.
    Among { from: usize, to: usize, first: Place, last: Place },
    /// All were read.
    Behind,
}

impl<'a> Row<'_, 'a> {
    /// Reads what stands before a value, and the value.
    #[inline(always)]
    fn read_part(&mut self, scanner: &mut Scanner<'a>, learned: &mut Learned) -> Result<Meaning, Stop> {
        let known = self.place.and_then(|place| learned.layouts.step(place, scanner.rest()));
        let meaning = match known {
            Some((place, len, meaning)) => {
                scanner.go_to(scanner.at() + len);
                self.place = Some(place);
                meaning
            }
            None => self.learn_step(scanner, &mut learned.layouts)?,
        };
        if let Meaning::Value(key) = meaning
            && key.is_input()
        {
            self.read_inputs(key, scanner, &mut learned.inputs)?;
            return Ok(meaning);
        }
        if let Inputs::Among { .. } = self.inputs {
            self.learn_inputs(scanner.bytes(), &mut learned.inputs);
        }
        let at = scanner.at();
        match meaning {
            Meaning::Value(key) => self.event.read_value(key, scanner)?,
            Meaning::Phase => self.event.phase = &scanner.bytes()[at - 2..at - 1],
            Meaning::Category(category) => self.event.category = category,
            Meaning::Args => self.args_from = Some(at - 1),
            Meaning::EndOfArgs => {
                let from = self.args_from.take().unwrap_or(at);
                self.event.args.whole = &scanner.bytes()[from..at];
            }
            Meaning::EndOfRow | Meaning::Nothing => {}
        }
        Ok(meaning)
    }

    /// Reads what stands before a value, and learns it.
    #[inline(never)]
    fn learn_step(&mut self, scanner: &mut Scanner<'a>, layouts: &mut Layouts) -> Result<Meaning, Stop> {
        let from = scanner.at();
        let meaning = self.read_step(scanner)?;
        let bytes = &scanner.bytes()[from..scanner.at()];
        self.place = self.place.and_then(|place| layouts.learn(place, bytes, meaning));
        Ok(meaning)
    }

    /// Reads what stands before a value; also the values that belong to the layout.
    fn read_step(&mut self, scanner: &mut Scanner<'a>) -> Result<Meaning, Stop> {
        let is_first = matches!(scanner.bytes()[..scanner.at()].last(), Some(b'{'));
        if !is_first {
            scanner.after_item(b'}')?;
        }
        while scanner.peek()? == b',' {
            scanner.go_to(scanner.at() + 1);
        }
        if scanner.peek()? == b'}' {
            scanner.go_to(scanner.at() + 1);
            return Ok(if self.args_from.is_some() { Meaning::EndOfArgs } else { Meaning::EndOfRow });
        }
        let name = scanner.string()?;
        scanner.expect(b':', "':' after a key")?;
        let next = scanner.peek()?;
        match if self.args_from.is_some() { keys::of_args(name) } else { keys::of_row(name) } {
            Key::Args if next == b'{' => {
                scanner.go_to(scanner.at() + 1);
                Ok(Meaning::Args)
            }
            Key::Phase => {
                let phase = scanner.skip_value()?;
                self.event.phase = written(phase).unwrap_or_default();
                Ok(if matches!(phase, Value::Text([_])) { Meaning::Phase } else { Meaning::Nothing })
            }
            Key::Category => {
                let written = written(scanner.skip_value()?).unwrap_or_default();
                self.event.category = categories::category(written);
                Ok(Meaning::Category(self.event.category))
            }
            key => Ok(Meaning::Value(key)),
        }
    }

    /// Reads one of an operator's inputs, or all at once where they are known.
    #[inline(always)]
    fn read_inputs(&mut self, key: Key, scanner: &mut Scanner<'a>, known: &mut KnownInputs) -> Result<(), Stop> {
        let from = scanner.at();
        if let (Inputs::Ahead, Some(place)) = (self.inputs, self.place)
            && let Some(known) = known.find(self.event.name, place, scanner.rest())
        {
            scanner.go_to(from + known.len);
            self.event.args.inputs = known.texts_in(&scanner.bytes()[from..]);
            self.event.args.known_inputs = Some(known.number);
            (self.place, self.inputs) = (Some(known.behind), Inputs::Behind);
            return Ok(());
        }
        self.event.read_value(key, scanner)?;
        let to = scanner.at();
        self.inputs = match (self.inputs, self.place) {
            (Inputs::Ahead, Some(place)) => Inputs::Among { from, to, first: place, last: place },
            (Inputs::Among { from, first, .. }, Some(last)) => Inputs::Among { from, to, first, last },
            _ => {
                // They do not stand together.
                self.event.args.known_inputs = None;
                Inputs::Behind
            }
        };
        Ok(())
    }

    fn learn_inputs(&mut self, bytes: &'a [u8], known: &mut KnownInputs) {
        if let Inputs::Among { from, to, first, last } = self.inputs {
            let args = &mut self.event.args;
            args.known_inputs = known.learn(self.event.name, (first, last), &bytes[from..to], &args.inputs);
            self.inputs = Inputs::Behind;
        }
    }
}

impl<'a> Event<'a> {
    /// Reads the value of `key`.
    #[inline(always)]
    fn read_value(&mut self, key: Key, scanner: &mut Scanner<'a>) -> Result<(), Stop> {
        let args = &mut self.args;
        match key {
            Key::Time => self.time = read_quantity(scanner, numbers::TIME_RANGE_NS.end - 1, numbers::time_ns)?,
            Key::Duration => self.duration = read_quantity(scanner, numbers::MAX_DURATION_NS, numbers::duration_ns)?,
            Key::Pid => self.pid = read_row_id(scanner)?,
            Key::Tid => self.tid = read_row_id(scanner)?,
            Key::Id => self.id = read_integer(scanner)?,
            Key::Name => self.name = written(scanner.skip_value()?).unwrap_or_default(),
            Key::Stream => args.stream = read_integer(scanner)?,
            Key::Device => args.device = read_integer(scanner)?,
            Key::Correlation => args.correlation = read_integer(scanner)?.filter(|id| *id != 0),
            Key::SequenceNumber => args.sequence_number = read_integer(scanner)?,
            Key::ForwardThread => args.forward_thread = read_integer(scanner)?,
            Key::Grid => args.grid = read_size(scanner)?,
            Key::Block => args.block = read_size(scanner)?,
            Key::Registers => args.registers = read_integer(scanner)?,
            Key::SharedMemory => args.shared_bytes = read_integer(scanner)?,
            Key::BlocksPerSm => args.blocks_per_sm = read_fraction(scanner)?,
            Key::Occupancy => args.occupancy_percent = read_fraction(scanner)?,
            Key::Bytes => args.bytes = read_integer(scanner)?,
            Key::Graph => args.graph = read_integer(scanner)?.filter(|id| *id != 0),
            Key::GraphNode => args.graph_node = read_integer(scanner)?.filter(|id| *id != 0),
            Key::InputDims => args.inputs.dims = read_whole(scanner)?,
            Key::InputType => args.inputs.types = read_whole(scanner)?,
            Key::InputStrides => args.inputs.strides = read_whole(scanner)?,
            Key::ConcreteInputs => args.inputs.concrete = read_whole(scanner)?,
            Key::Address => args.memory.address = read_integer(scanner)?,
            Key::DeviceType => args.memory.device_type = read_integer(scanner)?,
            Key::DeviceId => args.memory.device_id = read_integer(scanner)?,
            Key::TotalAllocated => args.memory.total_allocated = read_integer(scanner)?,
            Key::TotalReserved => args.memory.total_reserved = read_integer(scanner)?,
            Key::WaitOnStream => args.sync.event_stream = read_integer(scanner)?,
            Key::WaitOnRecord => args.sync.event_correlation = read_integer(scanner)?.filter(|id| *id > 0),
            Key::InElements => args.collective.input_elements = read_integer(scanner)?,
            Key::OutElements => args.collective.output_elements = read_integer(scanner)?,
            Key::GroupSize => args.collective.group_size = read_integer(scanner)?,
            Key::Seq => args.collective.sequence_number = read_integer(scanner)?,
            Key::Words => args.words = said(scanner.skip_value()?),
            Key::GivenName => args.name = written(scanner.skip_value()?),
            Key::CopyKind => args.copy_kind = written(scanner.skip_value()?),
            Key::CallStack => args.call_stack = written(scanner.skip_value()?),
            Key::SyncKind => args.sync.kind = written(scanner.skip_value()?),
            Key::CollectiveName => args.collective.name = said(scanner.skip_value()?),
            Key::Dtype => args.collective.dtype = said(scanner.skip_value()?),
            Key::Group => args.collective.group = said(scanner.skip_value()?),
            Key::GroupDescription => args.collective.group_description = said(scanner.skip_value()?),
            Key::GroupRanks => args.collective.group_ranks = said(scanner.skip_value()?),
            Key::Args | Key::Phase | Key::Category | Key::Other => scanner.pass_value()?,
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
    match scanner.plain_integer() {
        Some(number) => Ok(RowId::Number(number)),
        None => Ok(row_id(scanner.skip_value()?)),
    }
}

/// Reads decimal microseconds that are at most `max_ns`.
#[inline(always)]
fn read_quantity(scanner: &mut Scanner<'_>, max_ns: i64, read: fn(&[u8]) -> Option<i64>) -> Result<Quantity, Stop> {
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
        let mut event = Event::default();
        event.read(&mut Scanner::new(text.as_bytes()), &mut Learned::default()).expect("an event");
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
        assert_eq!((event.phase, event.category, event.name), (&b"X"[..], Category::Kernel, &b"gemm"[..]));
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

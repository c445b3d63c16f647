//! The bytes of a capture, version 3. Everything is little-endian.
//!
//! ```text
//! 0        4096              4096 + S           4096 + 2S
//! │ header │ segment 0       │ segment 1        │ …            S = segment_bytes
//!          │ 16 B│ records …0│                  │
//! ```
//!
//! A segment begins with its own 16-byte header; then records follow without gaps until a zero or the segment's end.
//! The first word of a record is `ticks << 8 | tag` and is written last, so that a reader never sees half a record.
//! Records are 8-byte aligned but for the short ones, which are 4-byte aligned and say what changed since the record
//! before (see
//! [`crate::short`]).
//! A segment's first record is a [`Tag::Thread`]; a later one hands the rest of the segment to another thread.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// The first eight bytes of every capture.
pub const MAGIC: [u8; 8] = *b"STEPSCP\x01";
/// The format version this code writes, and the newest it reads.
pub const VERSION: u32 = 3;
/// Bytes before the first segment.
pub const HEADER_BYTES: usize = 4096;
/// Bytes of a segment as written here; a reader takes the header's word for it.
pub const SEGMENT_BYTES: usize = 256 << 10;
/// Bytes of a segment's own header.
pub const SEGMENT_HEADER_BYTES: usize = 16;
/// The upper half of a used segment's first word; its lower half is the segment's index. The second word counts how
/// often segments of the capture were evicted before this one was taken into use: 0 but in a ring.
pub const SEGMENT_MAGIC: u32 = 0x5347_4d54;
/// The ordinal of no thread: what follows it is definitions that were carried over from evicted segments.
pub const NO_THREAD: u32 = u32::MAX;
/// Ticks are kept modulo 2^56.
pub const TICK_BITS: u32 = 56;

/// What the ticks of a capture count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum ClockKind {
    /// Nanoseconds of the monotonic clock.
    Monotonic = 0,
    /// The processor's invariant time-stamp counter.
    TimeStampCounter = 1,
}

/// The header page's fields. Those that change while recording are atomics.
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`].
    pub version: u32,
    /// [`HEADER_BYTES`].
    pub header_bytes: u32,
    /// [`SEGMENT_BYTES`].
    pub segment_bytes: u32,
    /// A [`ClockKind`].
    pub clock_kind: u32,
    /// Process id of the writer.
    pub pid: u64,
    /// Process id of the process that started it.
    pub parent_pid: u64,
    /// The writer's start time in clock ticks since boot, as `/proc/PID/stat` counts: with `pid` it names one process.
    pub process_start_ticks: u64,
    /// Inode of the writer's pid namespace.
    pub pid_namespace: u64,
    /// The host's boot id, raw; zero when unknown.
    pub boot_id: [u8; 16],
    /// Ticks when the capture was opened.
    pub opened_ticks: u64,
    /// Monotonic clock at the same moment, ns.
    pub opened_monotonic_ns: u64,
    /// Unix time at the same moment, ns.
    pub opened_unix_ns: u64,
    /// 0 while recording, 1 once closed.
    pub closed: AtomicU32,
    /// Bits of [`STOPPED_DISK_FULL`].
    pub stopped: AtomicU32,
    /// Unix time, ns, when the writer last said that it lives.
    pub heartbeat_unix_ns: AtomicU64,
    /// Records that were not written.
    pub dropped: AtomicU64,
    /// Segments asked for so far; one that could not be had leaves a hole.
    pub segments: AtomicU64,
    /// Of a ring: how many ns of the past it keeps, at least; 0 when everything is kept.
    pub ring_ns: u64,
    /// Of a ring: what was recorded up to this moment, in ticks, may have been evicted; 0 while nothing was.
    pub given_up_ticks: AtomicU64,
}

const _: () = assert!(size_of::<Header>() <= HEADER_BYTES);

/// Bit of [`Header::stopped`]: no room for another segment.
pub const STOPPED_DISK_FULL: u32 = 1;

macro_rules! tags {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        /// What a record is: the low byte of its first word.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Tag { $($(#[$doc])* $name = $value,)* }

        impl Tag {
            /// The tag with this value.
            pub fn from_byte(byte: u8) -> Option<Tag> {
                match byte { $($value => Some(Tag::$name),)* _ => None }
            }
        }
    };
}

tags! {
    /// An op or label begins: word 1 as [`BeginWord`] packs it.
    Begin = 1;
    /// An op or label begins, as `Begin`, with a sequence number that word 1 has no room for, in word 2, and the
    /// forward op's framework thread (0: none) in word 3.
    BeginSequence = 2;
    /// An op or label begins, as `Begin`, with the forward op's framework thread in word 2.
    BeginBackward = 3;
    /// A label begins whose name stands in the record: word 1 = byte length | scope << 32, then the text.
    BeginText = 4;
    /// The innermost open op or label of this thread ends.
    End = 5;
    /// An open op or label of this thread ends that is not the innermost: word 1 = how many open ones lie inside it.
    /// Those leave the thread's stack and may only be ended by an `EndLeft` or an `EndElsewhere`.
    EndOuter = 6;
    /// An op or label ends that is not on the stack of this thread: word 1 = name id, word 2 = framework id of the
    /// thread where it began.
    EndElsewhere = 7;
    /// A step begins: word 1 = its number.
    StepBegin = 8;
    /// A step ends: word 1 = its number.
    StepEnd = 9;
    /// An optimizer has just stepped, inside its label.
    OptimizerStep = 10;
    /// A name: word 1 = id | byte length << 32, then the text. Stands before the first record that uses it.
    Name = 11;
    /// What follows is of this thread: word 1 = ordinal | part << 32, word 2 = system thread id |
    /// [`Handle`](crate::device::Handle) << 32, word 3 = framework thread id (0: none).
    Thread = 12;
    /// This thread's name: word 1 = byte length, then the text.
    ThreadName = 13;
    /// A moment on all clocks: word 1 = monotonic ns, word 2 = Unix ns.
    Clock = 14;
    /// A metadata entry of the process: word 1 = key length | value length << 32, then key and value. The last one of a
    /// key holds.
    Fact = 15;
    /// Recording is switched: word 1 = 1 on, 0 off; word 2 = cycle.
    Window = 16;
    /// Eight bytes: an op or label begins.
    ShortBegin = 17;
    /// Eight bytes: a backward node begins whose forward thread is that of the one before.
    ShortBeginBackward = 18;
    /// Four bytes: the innermost open op or label of this thread ends.
    ShortEnd = 19;
    /// Four bytes without meaning: what follows is 8-byte aligned again.
    Pad = 20;
    /// Four bytes: what the op was called with that has just begun; in the place of the ticks the inputs' id.
    InputsReference = 21;
    /// What an open op or label of this thread was called with: word 1 = byte length | [`OpenPlace`] << 32, then the
    /// inputs as [`crate::inputs`] packs them. The last one of an op holds.
    InputsInPlace = 22;
    /// Inputs: word 1 = id | byte length << 32, then the inputs. Stands before the first record that uses it.
    Inputs = 23;
    /// Memory is allocated (bytes above 0) or freed (below), and its allocator holds nothing in reserve: word 1 =
    /// address
    /// | device << 48, word 2 = bytes, word 3 = bytes allocated in all. [`crate::memory`] says what a device is.
    Memory = 24;
    /// An allocation failed for want of memory: word 1 = bytes asked for, word 2 = bytes allocated in all, word 3 =
    /// bytes held from the device, word 4 = device.
    OutOfMemory = 25;
    /// As `Memory`: word 1 = address, word 2 = bytes, word 3 = bytes allocated in all, word 4 = bytes held from the
    /// device, word 5 = device.
    MemoryReserved = 26;
    /// A sampled quantity: word 1 = name id, word 2 = its value.
    Counter = 27;
    /// An optimizer has just stepped, inside its label: word 1 = the number of the step that it ends.
    NumberedOptimizerStep = 28;
    /// The overload of a name: word 1 = the name's id | byte length << 32, then the text.
    Overload = 30;
    /// The op or label that this thread began last is a collective: word 1 = id of the name that describes it, word 2 =
    /// its sequence number + 1 (0: none).
    Collective = 31;
    /// As `Collective`, with the description in the record: word 1 = byte length, word 2 = sequence number + 1, then
    /// the text.
    CollectiveText = 32;
    /// Four bytes: the innermost open call of this thread ends.
    ShortCallEnd = 33;
    /// The innermost open call of this thread ends; see [`scope`].
    CallEnd = 34;
    /// Calls are recorded no longer: those that are open, on any thread, reach to this moment.
    CallsStop = 35;
    /// What a device's profiler reports: word 1 says the kind and how many words follow, see [`crate::device`].
    Device = 36;
    /// The clock of the device's profiler, ns, was read in word 1 when this record was written.
    DeviceClock = 37;
    /// Eight bytes: an op, label or call without a sequence number begins. If it was short, and no record but an
    /// `InputsReference` stood behind it when it ended, the record says how long it took.
    TimedBegin = 38;
    /// As `TimedBegin`, with the last sequence number.
    TimedBeginSame = 39;
    /// As `TimedBegin`, with the sequence number after the last one.
    TimedBeginNext = 40;
    /// What this thread runs from here on was begun under the profiler state with the number in word 1, on this thread
    /// or another; see [`ProfilerState`](crate::ProfilerState).
    ProfilerState = 41;
    /// An op or label ends that an `EndOuter` took from the stack of this thread: word 1 = how many of those that it or
    /// another one took, and that have not ended so, came after it.
    EndLeft = 42;
    /// A file: word 1 = number | byte length << 32, then its path. Stands before the first record that uses it.
    File = 43;
    /// A call on a file, as [`crate::io`] packs it. It began at the record's ticks, and is written when it has ended.
    Io = 44;
    /// The step that is open on this thread is none: what ran since its begin is outside of steps.
    StepDropped = 45;
    /// A stack of Python: word 1 = id | id of its caller's stack + 1 << 32 (0: none), word 2 = name id of its innermost
    /// frame. Stands before the first record that uses it.
    Stack = 46;
    /// A sample of a thread, as [`crate::stack_samples`] packs it.
    StackSample = 47;
}

impl Tag {
    /// True for records that later ones of any thread need: a ring carries them over when it gives a segment up. They
    /// are long ones, and mean the same wherever they stand.
    pub fn is_definition(self) -> bool {
        matches!(self, Tag::Name | Tag::Overload | Tag::Inputs | Tag::Fact | Tag::File | Tag::Stack)
    }
}

/// What the samples are named that say the number which PyTorch gave to a range: each follows its range's begin.
pub const RANGE_NUMBER: &str = "number of the range";

/// Ids of inputs are smaller than this.
pub const INPUTS_IDS: u32 = 1 << 24;
/// Scopes of ranges beside the framework's own, which are below 10.
///
/// Ranges of these scopes are *calls*. Each thread has a stack of them apart from that of its ops and labels, since a
/// label begins inside the call that enters it and ends inside another one.
pub mod scope {
    /// An operator, or a function of Python.
    pub const FUNCTION: u8 = 0;
    /// A label of the program.
    pub const LABEL: u8 = 7;
    /// A call of a Python function.
    pub const PYTHON_CALL: u8 = 10;
    /// A call of a C function from Python.
    pub const C_CALL: u8 = 11;
    /// A call of a module. Its name is `Class:path`.
    pub const MODULE: u8 = 12;
    /// A garbage collection of Python; its generation stands in place of the sequence number.
    pub const GARBAGE_COLLECTION: u8 = 13;
    /// A label that says of itself that it may end on another thread. Once decoded it is a [`LABEL`].
    pub const ASYNC_LABEL: u8 = 14;

    /// True for ranges on the stack of calls.
    pub const fn is_call(scope: u8) -> bool {
        scope >= PYTHON_CALL && scope != ASYNC_LABEL
    }

    /// The scope of an event, and whether it says of itself that it may end on another thread.
    pub const fn decoded(scope: u8) -> (u8, bool) {
        if scope == ASYNC_LABEL { (LABEL, true) } else { (scope, false) }
    }
}

/// Word 1 of a begin: name id in bits 0..20, scope in 20..24, sequence number + 1 in 24..64 (0: none).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BeginWord {
    /// The name's id.
    pub name: u32,
    /// The framework's scope.
    pub scope: u8,
    /// Autograd's sequence number.
    pub sequence_number: Option<u64>,
}

impl BeginWord {
    /// Name ids are smaller than this.
    pub const NAMES: u32 = 1 << 20;
    /// Scopes are smaller than this.
    pub const SCOPES: u8 = 1 << 4;
    /// Sequence numbers smaller than this have room.
    pub const SEQUENCE_NUMBERS: u64 = (1 << 40) - 1;

    /// The word.
    #[inline(always)]
    pub const fn pack(name: u32, scope: u8, sequence_number_and_one: u64) -> u64 {
        name as u64 | (scope as u64) << 20 | sequence_number_and_one << 24
    }

    /// What the word holds.
    pub const fn unpack(word: u64) -> Self {
        let sequence_number = (word >> 24).checked_sub(1);
        Self { name: word as u32 & (Self::NAMES - 1), scope: (word >> 20) as u8 & (Self::SCOPES - 1), sequence_number }
    }
}

/// Which of a thread's open ops and labels a record is about; the innermost is `Open(0)`, which has the value 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenPlace {
    /// One on the stack, with this many open ones inside it.
    Open(u32),
    /// One that an `EndOuter` took from the stack, counted as `EndLeft` counts.
    Left(u32),
}

impl OpenPlace {
    const LEFT_BIT: u32 = 1 << 31;

    /// The value in a record.
    pub const fn pack(self) -> u32 {
        match self {
            Self::Open(inside) => inside,
            Self::Left(after) => after | Self::LEFT_BIT,
        }
    }

    /// What a value stands for.
    pub const fn unpack(value: u32) -> Self {
        if value & Self::LEFT_BIT == 0 { Self::Open(value) } else { Self::Left(value & !Self::LEFT_BIT) }
    }
}

/// Bytes that a text of `len` bytes takes in a record.
pub const fn padded(len: usize) -> usize {
    len.next_multiple_of(8)
}

/// The first word of a record.
pub const fn first_word(ticks: u64, tag: Tag) -> u64 {
    ticks << 8 | tag as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_begin_word_holds_what_was_put_in() {
        for (name, scope, sequence_number) in
            [(0, 0, None), (77, 7, Some(0)), (BeginWord::NAMES - 1, 15, Some(BeginWord::SEQUENCE_NUMBERS - 1))]
        {
            let word = BeginWord::pack(name, scope, sequence_number.map_or(0, |number| number + 1));
            assert_eq!(BeginWord::unpack(word), BeginWord { name, scope, sequence_number });
        }
    }
}

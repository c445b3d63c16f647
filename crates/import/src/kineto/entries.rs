//! What a chunk lists of its events, kind by kind: numbers, and texts and rows by their numbers in the chunk.

use super::categories::Category;
use crate::json::texts::{TextId, Texts};
use stepscope_trace::{DeviceEvent, Doing};

/// A `pid` or `tid` whose name is a text of the chunk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum ChunkRowId {
    Missing,
    Number(i64),
    Name(u32),
}

/// An event with a duration.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkSlice {
    pub(super) time_ns: i64,
    pub(super) dur_ns: i64,
    pub(super) name: TextId,
    /// Index into [`Chunk::rows`].
    pub(super) row: u32,
    /// Where it stands, in bytes from the chunk's begin.
    pub(super) at: u32,
    pub(super) category: Category,
}

/// What is known of an op.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkOp {
    pub(super) slice: u32,
    /// Index into [`Chunk::inputs`].
    pub(super) inputs: u32,
    pub(super) stack: TextId,
    /// Negative when there is none.
    pub(super) sequence_number: i64,
    pub(super) forward_thread: u64,
}

/// What a slice on a device carries; one for each such slice, in their order.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkDeviceRow {
    pub(super) copy_kind: TextId,
    pub(super) sync_kind: TextId,
    pub(super) device: Option<i64>,
    pub(super) correlation: Option<i64>,
    pub(super) event_stream: Option<i64>,
    pub(super) event_correlation: Option<i64>,
    /// All else that is known; its slice, device and class are not yet.
    pub(super) event: DeviceEvent,
}

/// A part of a collective.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkCollective {
    pub(super) slice: u32,
    /// Name, element type, group, its description, its ranks, splits of input and output.
    pub(super) texts: [TextId; 7],
    pub(super) input_elements: Option<i64>,
    pub(super) output_elements: Option<i64>,
    pub(super) group_size: Option<i64>,
    pub(super) group_rank: Option<i64>,
    pub(super) source_rank: Option<i64>,
    pub(super) destination_rank: Option<i64>,
    pub(super) is_async: Option<bool>,
    pub(super) sequence_number: Option<i64>,
}

impl ChunkCollective {
    /// True when what is carried is said: collective, element type, sizes, size of the group.
    pub(super) fn is_complete(&self) -> bool {
        let [name, dtype, ..] = self.texts;
        let numbers = [self.input_elements, self.output_elements, self.group_size];
        name != Texts::EMPTY && dtype != Texts::EMPTY && numbers.iter().all(Option::is_some)
    }
}

/// An allocation or a free.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkMemory {
    pub(super) is_out_of_memory: bool,
    pub(super) time_ns: i64,
    pub(super) row: u32,
    pub(super) device: Option<i64>,
    pub(super) address: u64,
    pub(super) bytes: i64,
    pub(super) allocated_bytes: Option<i64>,
    pub(super) reserved_bytes: Option<i64>,
}

/// An event without a duration.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkInstant {
    pub(super) time_ns: i64,
    pub(super) row: u32,
    pub(super) name: TextId,
    pub(super) is_on_thread: bool,
}

/// A sample of a thread's stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkStackSample {
    pub(super) time_ns: i64,
    pub(super) row: u32,
    /// The innermost of the text's `stackFrames`.
    pub(super) frame: Option<i64>,
    /// What our own export says that the thread did.
    pub(super) doing: Doing,
    pub(super) ran_ns: Option<i64>,
    pub(super) runnable_ns: Option<i64>,
}

/// One end of an arrow.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkArrow {
    pub(super) is_start: bool,
    pub(super) category: Category,
    pub(super) id: Option<i64>,
    pub(super) row: u32,
    pub(super) time_ns: i64,
}

/// A begin, whose slice is there without its duration, or an end.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkBorder {
    /// The slice of a begin.
    pub(super) begun: Option<u32>,
    pub(super) row: u32,
    pub(super) time_ns: i64,
    pub(super) name: TextId,
    pub(super) at: u64,
}

/// A name that the source gives to a thread or a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkRowName {
    pub(super) row: u32,
    pub(super) is_of_process: bool,
    pub(super) name: TextId,
}

/// A value of a counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkSample {
    pub(super) row: u32,
    pub(super) name: TextId,
    pub(super) series: TextId,
    pub(super) time_ns: i64,
    pub(super) value: f64,
}

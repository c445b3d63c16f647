//! A separate thread produces rows in batches, while the caller uses those before them.
//!
//! ```text
//! thread   capture ─▶ rows ─▶ batch ┐   at most so many wait
//! caller           used ◀── batch ◀─┘   and what is empty goes back
//! ```

use super::{SliceSink, StreamedSlice};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use stepscope_base::StringId;
use stepscope_trace::{Collective, MemoryEvent, OpInfo, SliceKind, TrackId};

/// Slices that are handed on at once: few enough to stay in a processor's cache.
const BATCH: usize = 2048;
/// Batches that wait at most.
const WAITING: usize = 3;

/// Some rows, in their order.
#[derive(Default)]
pub(super) struct Batch<'a> {
    slices: Vec<Row<'a>>,
    /// What few slices have.
    extras: Vec<Extra>,
    /// What comes before the slice with that number in this batch.
    interleaved: Vec<(usize, Interleaved)>,
}

/// A slice; names are those of the capture.
struct Row<'a> {
    kind: SliceKind,
    is_unfinished: bool,
    name: StringId,
    /// Which of the extras is its.
    extra: Option<u32>,
    text: &'a str,
    start_ns: i64,
    dur_ns: i64,
    op: Option<OpInfo>,
}

struct Extra {
    /// A name that is not the capture's.
    text: Option<String>,
    collective: Option<Collective>,
}

enum Interleaved {
    Thread(TrackId),
    Memory(MemoryEvent, bool),
}

impl Batch<'_> {
    fn clear(&mut self) {
        self.slices.clear();
        self.extras.clear();
        self.interleaved.clear();
    }

    fn write_to(&self, sink: &mut impl SliceSink) -> io::Result<()> {
        let mut interleaved = self.interleaved.iter().peekable();
        for (at, row) in self.slices.iter().enumerate() {
            while let Some((_, what)) = interleaved.next_if(|(before, _)| *before <= at) {
                what.write_to(sink)?;
            }
            let Row { kind, is_unfinished, name, text, start_ns, dur_ns, op, .. } = *row;
            let extra = row.extra.map(|extra| &self.extras[extra as usize]);
            let text = extra.and_then(|extra| extra.text.as_deref()).unwrap_or(text);
            let collective = extra.and_then(|extra| extra.collective);
            sink.slice(&StreamedSlice { kind, name, text, start_ns, dur_ns, is_unfinished, op, collective })?;
        }
        interleaved.try_for_each(|(_, what)| what.write_to(sink))
    }
}

impl Interleaved {
    fn write_to(&self, sink: &mut impl SliceSink) -> io::Result<()> {
        match self {
            Self::Thread(track) => sink.begin_thread(*track),
            Self::Memory(event, is_out_of_memory) => sink.memory(event, *is_out_of_memory)?,
        }
        Ok(())
    }
}

/// Collects rows as they are produced, and sends them in batches.
pub(super) struct RowBatcher<'a> {
    batch: Batch<'a>,
    filled: SyncSender<Batch<'a>>,
    recycled: Receiver<Batch<'a>>,
    has_receiver: bool,
}

impl<'a> RowBatcher<'a> {
    /// False when the receiver has stopped.
    pub(super) fn has_receiver(&self) -> bool {
        self.has_receiver
    }

    pub(super) fn begin_thread(&mut self, track: TrackId) {
        self.batch.interleaved.push((self.batch.slices.len(), Interleaved::Thread(track)));
    }

    pub(super) fn memory(&mut self, event: MemoryEvent, is_out_of_memory: bool) {
        self.batch.interleaved.push((self.batch.slices.len(), Interleaved::Memory(event, is_out_of_memory)));
        if self.batch.interleaved.len() >= BATCH {
            self.send_batch();
        }
    }

    /// Adds a slice, whose name is `own` where that is not one of the capture's.
    #[inline]
    pub(super) fn slice(&mut self, slice: &StreamedSlice<'a>, own: Option<String>) {
        let StreamedSlice { kind, name, text, start_ns, dur_ns, is_unfinished, op, collective } = *slice;
        let extra = (own.is_some() || collective.is_some()).then(|| {
            self.batch.extras.push(Extra { text: own, collective });
            self.batch.extras.len() as u32 - 1
        });
        self.batch.slices.push(Row { kind, is_unfinished, name, extra, text, start_ns, dur_ns, op });
        if self.batch.slices.len() >= BATCH {
            self.send_batch();
        }
    }

    fn send_batch(&mut self) {
        let next = self.recycled.try_recv().unwrap_or_default();
        let filled = std::mem::replace(&mut self.batch, next);
        self.has_receiver &= self.filled.send(filled).is_ok();
    }
}

/// Writes to `sink` what `produce` produces on a separate thread, and returns the result of `produce`.
///
/// # Errors
/// What `sink` says, and when the system has no more threads.
pub(super) fn write_batched<'a, T: Send>(
    produce: impl FnOnce(&mut RowBatcher<'a>) -> T + Send,
    sink: &mut impl SliceSink,
) -> io::Result<T> {
    let (filled, batches) = sync_channel(WAITING);
    let (empty, recycled) = sync_channel(WAITING + 2);
    std::thread::scope(|scope| {
        let producer = std::thread::Builder::new().name("stepscope-rows".into()).spawn_scoped(scope, move || {
            let mut batcher = RowBatcher { batch: Batch::default(), filled, recycled, has_receiver: true };
            let recorded = produce(&mut batcher);
            batcher.send_batch();
            recorded
        })?;
        // Dropped when `sink` fails: the producer then stops.
        for mut batch in batches {
            batch.write_to(sink)?;
            batch.clear();
            // There is room for all that there are.
            let _ = empty.try_send(batch);
        }
        Ok(producer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

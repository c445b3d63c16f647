//! Rows are made by a thread of their own, while those before them are used.
//!
//! ```text
//! thread   capture ─▶ rows ─▶ batch ┐   at most so many wait
//! caller           used ◀── batch ◀─┘   and what is empty goes back
//! ```

use super::{Rows, StreamedSlice};
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
    between: Vec<(usize, Between)>,
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

enum Between {
    Thread(TrackId),
    Memory(MemoryEvent, bool),
}

impl Batch<'_> {
    fn clear(&mut self) {
        self.slices.clear();
        self.extras.clear();
        self.between.clear();
    }

    fn give(&self, rows: &mut impl Rows) -> io::Result<()> {
        let mut between = self.between.iter().peekable();
        for (at, row) in self.slices.iter().enumerate() {
            while let Some((_, what)) = between.next_if(|(before, _)| *before <= at) {
                what.give(rows)?;
            }
            let Row { kind, is_unfinished, name, text, start_ns, dur_ns, op, .. } = *row;
            let extra = row.extra.map(|extra| &self.extras[extra as usize]);
            let text = extra.and_then(|extra| extra.text.as_deref()).unwrap_or(text);
            let collective = extra.and_then(|extra| extra.collective);
            rows.slice(&StreamedSlice { kind, name, text, start_ns, dur_ns, is_unfinished, op, collective })?;
        }
        between.try_for_each(|(_, what)| what.give(rows))
    }
}

impl Between {
    fn give(&self, rows: &mut impl Rows) -> io::Result<()> {
        match self {
            Self::Thread(track) => rows.begin_thread(*track),
            Self::Memory(event, is_out_of_memory) => rows.memory(event, *is_out_of_memory)?,
        }
        Ok(())
    }
}

/// Where rows are put as they are made.
pub(super) struct Made<'a> {
    batch: Batch<'a>,
    full: SyncSender<Batch<'a>>,
    emptied: Receiver<Batch<'a>>,
    is_wanted: bool,
}

impl<'a> Made<'a> {
    /// False when nobody wants any more.
    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    pub(super) fn begin_thread(&mut self, track: TrackId) {
        self.batch.between.push((self.batch.slices.len(), Between::Thread(track)));
    }

    pub(super) fn memory(&mut self, event: MemoryEvent, is_out_of_memory: bool) {
        self.batch.between.push((self.batch.slices.len(), Between::Memory(event, is_out_of_memory)));
        if self.batch.between.len() >= BATCH {
            self.hand_on();
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
            self.hand_on();
        }
    }

    fn hand_on(&mut self) {
        let next = self.emptied.try_recv().unwrap_or_default();
        let full = std::mem::replace(&mut self.batch, next);
        self.is_wanted &= self.full.send(full).is_ok();
    }
}

/// Gives `rows` what `make` makes on a thread of its own, and then what `make` says.
///
/// # Errors
/// What `rows` says, and when the system has no more threads.
pub(super) fn give_made<'a, T: Send>(
    make: impl FnOnce(&mut Made<'a>) -> T + Send,
    rows: &mut impl Rows,
) -> io::Result<T> {
    let (full, made) = sync_channel(WAITING);
    let (empty, emptied) = sync_channel(WAITING + 2);
    std::thread::scope(|scope| {
        let maker = std::thread::Builder::new().name("stepscope-rows".into()).spawn_scoped(scope, move || {
            let mut to = Made { batch: Batch::default(), full, emptied, is_wanted: true };
            let said = make(&mut to);
            to.hand_on();
            said
        })?;
        // Dropped when `rows` fails: nobody wants any more then.
        for mut batch in made {
            batch.give(rows)?;
            batch.clear();
            // There is room for all that there are.
            let _ = empty.try_send(batch);
        }
        Ok(maker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

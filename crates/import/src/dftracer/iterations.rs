//! Steps of the training loop, where the trace numbers them beyond doubt.
//!
//! 1. A loop over batches that DFTracer wraps: a row for each wait and one for each body, with the same number.
//!
//! ```text
//! fetch.iter   ██ 1              ██ 2
//! fetch.block    ████████████ 1    ████████ 2
//! step         ├──── 1 ──────┤   ├─── 2 ───┤
//! ```
//!
//! 2. Else rows of one name that carry `step`: when they follow each other on one thread, count upwards one by one (anew in
//!    each epoch), and no other name of that process does so.

use super::row::{Args, integer};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use stepscope_base::StringId;
use stepscope_trace::{ProcessId, SliceId, SliceKind, TraceBuilder, TrackId};

/// A slice that carries a step's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Numbered {
    start_ns: i64,
    end_ns: i64,
    epoch: Option<i64>,
    step: i64,
    slice: SliceId,
}

/// One turn of a loop over batches, from the begin of its wait to the end of its body.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Turn {
    track: TrackId,
    start_ns: i64,
    end_ns: i64,
    number: i64,
}

impl Turn {
    fn add_to(&self, builder: &mut TraceBuilder) {
        let name = builder.strings.intern(&format!("step {}", self.number));
        let dur_ns = self.end_ns - self.start_ns;
        let slice = builder.add_slice(self.track, SliceKind::Step, name, self.start_ns, dur_ns);
        builder.add_step_label(slice, self.number);
    }
}

/// What may become steps.
#[derive(Debug, Default)]
pub(super) struct Iterations {
    /// The last wait for a batch on each thread: its number and start.
    waits: FxHashMap<TrackId, (i64, i64)>,
    /// Turns of loops.
    turns: Vec<Turn>,
    /// By thread and name. Ordered, since the steps come from it.
    numbered: BTreeMap<(TrackId, StringId), Vec<Numbered>>,
}

impl Iterations {
    /// A row that waits for a batch.
    pub(super) fn add_wait(&mut self, track: TrackId, args: &Args<'_>, start_ns: i64) {
        if let Some(number) = turn_number(args) {
            self.waits.insert(track, (number, start_ns));
        }
    }

    /// The row of a loop's body.
    pub(super) fn add_body(&mut self, track: TrackId, args: &Args<'_>, start_ns: i64, end_ns: i64) {
        let wait = self.waits.remove(&track);
        if let Some((number, wait_ns)) = wait.filter(|wait| Some(wait.0) == turn_number(args) && wait.1 <= start_ns) {
            self.turns.push(Turn { track, start_ns: wait_ns, end_ns, number });
        }
    }

    /// A row of the application.
    pub(super) fn add(&mut self, track: TrackId, name: StringId, args: &Args<'_>, slice: SliceId, span_ns: (i64, i64)) {
        if let Some(step) = integer(args.step) {
            let (start_ns, end_ns) = span_ns;
            let row = Numbered { start_ns, end_ns, epoch: integer(args.epoch), step, slice };
            self.numbered.entry((track, name)).or_default().push(row);
        }
    }

    /// Tells the builder which steps there are.
    pub(super) fn finish(mut self, builder: &mut TraceBuilder) {
        let mut turns: BTreeMap<ProcessId, Vec<Turn>> = BTreeMap::new();
        for turn in self.turns {
            turns.entry(builder.track_mut(turn.track).process).or_default().push(turn);
        }
        for turns in turns.values_mut() {
            turns.sort_unstable();
            let follows = |pair: &[Turn]| pair[0].track == pair[1].track && pair[0].end_ns <= pair[1].start_ns;
            // Loops in loops, or in several threads: nobody says which is the training loop.
            if turns.windows(2).all(follows) {
                turns.iter().for_each(|turn| turn.add_to(builder));
            }
        }
        let mut candidates: BTreeMap<_, Vec<Vec<Numbered>>> = BTreeMap::new();
        for ((track, _), rows) in &mut self.numbered {
            let process = builder.track_mut(*track).process;
            rows.sort_unstable();
            if !turns.contains_key(&process) && are_steps(rows) {
                candidates.entry(process).or_default().push(std::mem::take(rows));
            }
        }
        for names in candidates.into_values().filter(|names| names.len() == 1) {
            for row in names.into_iter().flatten() {
                builder.set_kind(row.slice, SliceKind::Step);
                builder.add_step_label(row.slice, row.step);
            }
        }
    }
}

fn turn_number(args: &Args<'_>) -> Option<i64> {
    integer(args.count).or_else(|| integer(args.step))
}

fn are_steps(rows: &[Numbered]) -> bool {
    let follows = |pair: &[Numbered]| {
        let [a, b] = pair else { return false };
        let is_next = a.epoch == b.epoch && Some(b.step) == a.step.checked_add(1);
        let begins_anew = a.epoch < b.epoch && b.step <= a.step && a.epoch.is_some();
        a.end_ns <= b.start_ns && (is_next || begins_anew)
    };
    rows.len() >= 2 && rows.windows(2).all(follows) && rows.windows(2).any(|pair| pair[0].step != pair[1].step)
}

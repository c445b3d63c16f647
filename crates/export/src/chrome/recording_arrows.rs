//! Arrows from forward ops to backward nodes, of slices that come one after another: what is kept is that which a later
//! one may need.

use super::Document;
use super::arrows::{MAX_TRIES, write_forward_backward};
use rustc_hash::FxHashMap;
use std::io;
use stepscope_engine::SliceRow;
use stepscope_trace::{SliceKind, Trace, TrackId};

/// One end of an arrow.
#[derive(Clone, Copy, Debug)]
struct Point {
    id: i64,
    start_ns: i64,
    /// A moment at which nothing lies inside it.
    at_ns: i64,
    track: TrackId,
}

/// An op that the next one may lie in.
#[derive(Clone, Copy, Debug)]
struct Open {
    point: Point,
    end_ns: i64,
    /// How often an op lay where the moment was looked for.
    tries: usize,
    /// Number, and for a backward node the thread of its forward op.
    numbers: Option<(i64, Option<u64>)>,
}

/// What is known of arrows.
pub(super) struct Arrows<'a> {
    trace: &'a Trace,
    track: TrackId,
    open: Vec<Open>,
    /// The last op of each thread, by the framework's id of it, that has a number.
    forward: FxHashMap<(u64, i64), Point>,
    backward: Vec<((u64, i64), Point)>,
    needs_full_trace: bool,
}

impl<'a> Arrows<'a> {
    pub(super) fn new(trace: &'a Trace) -> Self {
        let (open, forward, backward) = (Vec::new(), FxHashMap::default(), Vec::new());
        Self { trace, track: TrackId(0), open, forward, backward, needs_full_trace: false }
    }

    pub(super) fn begin_thread(&mut self, track: TrackId) {
        self.close(i64::MAX);
        self.track = track;
    }

    /// Adds the next slice of the thread.
    #[inline]
    pub(super) fn add(&mut self, id: i64, slice: &SliceRow<'_>) {
        let Some(info) = slice.op else { return };
        let numbers = info.sequence_number.filter(|number| *number >= 0);
        let numbers = numbers.map(|number| (number, info.forward_thread.filter(|thread| *thread != 0)));
        if slice.kind != SliceKind::Op {
            // It has no moment of its own as ops have.
            self.needs_full_trace |= numbers.is_some();
            return;
        }
        let (start_ns, end_ns) = (slice.start_ns, slice.start_ns + slice.dur_ns);
        self.close(start_ns);
        if let Some(around) = self.open.last_mut()
            && around.point.at_ns >= start_ns
        {
            // What lies next to it at the same moment decides, which comes later.
            self.needs_full_trace |= start_ns == end_ns && around.numbers.is_some();
            if end_ns > around.point.at_ns {
                around.point.at_ns = end_ns;
                around.tries += 1;
            }
        }
        let point = Point { id, start_ns, at_ns: start_ns, track: self.track };
        self.open.push(Open { point, end_ns, tries: 0, numbers });
    }

    /// Ends the ops that have ended by then.
    #[inline]
    fn close(&mut self, by_ns: i64) {
        while let Some(ended) = self.open.pop_if(|open| open.end_ns <= by_ns) {
            if ended.numbers.is_some() {
                self.keep(ended);
            }
        }
    }

    fn keep(&mut self, Open { mut point, end_ns, tries, numbers }: Open) {
        if point.at_ns >= end_ns || tries >= MAX_TRIES {
            point.at_ns = point.start_ns;
        }
        match numbers {
            Some((number, Some(thread))) => self.backward.push(((thread, number), point)),
            Some((number, None)) => {
                let thread = self.trace.tracks[self.track.index()].framework_thread;
                let Some(thread) = thread else { return };
                let last = self.forward.entry((thread, number)).or_insert(point);
                if (last.start_ns, last.id) < (point.start_ns, point.id) {
                    *last = point;
                }
            }
            None => {}
        }
    }

    /// Writes all arrows; false when that is not possible.
    pub(super) fn write(mut self, document: &mut Document<'_>) -> io::Result<bool> {
        self.close(i64::MAX);
        let found = self.backward.iter().filter_map(|(key, to)| Some((*self.forward.get(key)?, *to)));
        let mut arrows: Vec<(Point, Point)> = found.collect();
        arrows.sort_unstable_by_key(|(from, to)| (from.id, to.id));
        for ((from, to), number) in arrows.iter().zip(1..) {
            let ends = [from, to].map(|point| (document.row(point.track), point.at_ns));
            write_forward_backward(document, number, ends)?;
        }
        Ok(!self.needs_full_trace)
    }
}

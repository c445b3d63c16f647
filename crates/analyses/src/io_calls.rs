//! The calls on files that analyses count: shared by those of files.
//!
//! ```text
//! MPI_File_write  WWWWWWWW     counts
//! write           ..wwww..     is how it was done: its bytes are those of the call around it
//! ```

mod sums;

use crate::context::Shared;
use crate::windows::Windows;
use crate::{AnalysisContext, Selection};
use rustc_hash::FxHashMap;
use stepscope_base::{Span, StringId, StringTable};
use stepscope_trace::{IoAction, IoEvent, IoLayer, ProcessId, Trace, TrackId};
pub(crate) use sums::{IoSums, RequestSizes, ratio};

/// A call on a file that lies in no other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IoCall {
    /// The call.
    pub(crate) event: IoEvent,
    /// The rank of its process.
    pub(crate) rank: u32,
    /// Its process.
    pub(crate) process: ProcessId,
    /// The lane that it lies on.
    pub(crate) track: TrackId,
    /// When it runs.
    pub(crate) span: Span,
    /// Whether it reads or writes from where the request before it ended: the one of the same process on the same
    /// file. `None` for what is no request, where the offset is not known, and for the first since the process opened
    /// the file.
    pub(crate) is_sequential: Option<bool>,
}

impl IoCall {
    /// Whether it is no call, but a page of a mapped file that was touched.
    pub(crate) fn is_page_fault(&self) -> bool {
        self.event.layer == IoLayer::PageFault
    }

    /// Whether it is a page of a mapped file that had to be read when it was touched.
    pub(crate) fn is_major_page_fault(&self) -> bool {
        self.is_page_fault() && self.event.action == IoAction::Read
    }

    /// Whether it is one half of a call that copies from file to file: its bytes took all of the call's time.
    fn is_half(&self) -> bool {
        let IoEvent { action, other_file, .. } = self.event;
        action.moves_bytes() && other_file != StringTable::EMPTY && !self.event.has_failed()
    }
}

/// Every call asked for that lies in no other call on a file of its thread, by thread and start.
impl Shared for Vec<IoCall> {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        io_calls(context.trace, context.selection)
    }
}

/// Every call on a socket asked for.
pub(crate) fn socket_calls(context: &AnalysisContext<'_>) -> Vec<IoCall> {
    calls(context.trace, context.selection, |event| event.layer == IoLayer::Net)
}

/// Every call asked for that lies in no other call on a file of its thread, by thread and start; none on sockets.
pub(crate) fn io_calls(trace: &Trace, selection: &Selection) -> Vec<IoCall> {
    // The slices before this one lie in the last call, or before it.
    let mut beyond = 0;
    calls(trace, selection, |event| {
        let at = event.slice.index();
        let is_outermost = at >= beyond;
        if is_outermost {
            beyond = end_of(trace, at);
        }
        is_outermost && event.layer != IoLayer::Net
    })
}

/// Those of all calls asked for that are wanted; each is offered, by thread and start.
pub(crate) fn calls(trace: &Trace, selection: &Selection, mut is_wanted: impl FnMut(&IoEvent) -> bool) -> Vec<IoCall> {
    let windows = Windows::of(trace, selection);
    let mut calls = Vec::new();
    let of_tracks =
        trace.io.chunk_by(|a, b| trace.slices.track[a.slice.index()] == trace.slices.track[b.slice.index()]);
    for events in of_tracks {
        let track = trace.slices.track[events[0].slice.index()];
        let of = &trace.tracks[track.index()];
        let (process, rank) = (of.process, trace.processes[of.process.index()].rank);
        let windows = windows.track(trace, of);
        for event in events.iter().filter(|event| is_wanted(event)) {
            let span = trace.slices.span(event.slice);
            if windows.is_some_and(|windows| windows.contains(span.start_ns)) {
                let call = IoCall { event: *event, rank, process, track, span, is_sequential: None };
                match event.copies() && !event.has_failed() {
                    true => calls.extend(halves(call)),
                    false => calls.push(call),
                }
            }
        }
    }
    find_sequences(&mut calls);
    calls
}

/// A call that moves bytes from a file to another as it counts: a read of the one in the first half of its time, and a write
/// of the other in the second.
fn halves(call: IoCall) -> [IoCall; 2] {
    let IoCall { event, span, .. } = call;
    let middle_ns = span.start_ns + span.duration_ns() / 2;
    let (first, second) = (Span { end_ns: middle_ns, ..span }, Span { start_ns: middle_ns, ..span });
    // Where it is written is not known.
    let write = IoEvent { action: IoAction::Write, file: event.other_file, offset: None, ..event };
    [IoCall { span: first, ..call }, IoCall { event: write, span: second, ..call }]
}

/// The first slice behind `at` that does not lie in it.
fn end_of(trace: &Trace, at: usize) -> usize {
    let slices = &trace.slices;
    let is_inside = |other: &usize| slices.track[*other] == slices.track[at] && slices.depth[*other] > slices.depth[at];
    at + 1 + (at + 1..slices.len()).take_while(is_inside).count()
}

/// Finds out which requests begin where the one before ended.
fn find_sequences(calls: &mut [IoCall]) {
    let is_request =
        |event: &IoEvent| event.action.moves_bytes() && !event.has_failed() && event.layer != IoLayer::PageFault;
    if !calls.iter().any(|call| is_request(&call.event) && call.event.offset.is_some()) {
        return;
    }
    let says = |call: &IoCall| is_request(&call.event) || call.event.action == IoAction::Open;
    // Where the last request of each layer on each file ended, if that is known: those of one layer carry out those of
    // another.
    let mut ends: FxHashMap<(ProcessId, StringId, IoLayer), Option<i64>> = FxHashMap::default();
    let mut last = ((ProcessId(0), StringTable::EMPTY, IoLayer::Posix), None);
    let mut judge = |call: &mut IoCall| {
        let IoCall { event, process, .. } = *call;
        let key = (process, event.file, event.layer);
        // Calls on one file follow each other.
        if last.0 != key {
            ends.insert(last.0, last.1);
            last = (key, ends.get(&key).copied().flatten());
        }
        let request = event.offset.filter(|_| event.action.moves_bytes());
        call.is_sequential = last.1.zip(request).map(|(end, offset)| end == offset);
        last.1 = request.zip(event.bytes).map(|(offset, bytes)| offset.saturating_add(bytes));
    };
    if calls.is_sorted_by_key(|call| (call.process, call.span.start_ns)) {
        return calls.iter_mut().filter(|call| says(call)).for_each(judge);
    }
    let starts = calls.iter().enumerate().filter(|(_, call)| says(call)).map(|(at, call)| (call.span.start_ns, at));
    let mut by_time: Vec<(i64, usize)> = starts.collect();
    by_time.sort();
    by_time.into_iter().for_each(|(_, at)| judge(&mut calls[at]));
}

/// Whole numbers in a second, rounded; `None` without time.
pub(crate) fn per_s(number: i128, ns: i128) -> Option<i64> {
    let whole = |value: i128| i64::try_from(value).unwrap_or(i64::MAX);
    (ns > 0).then(|| whole((number.saturating_mul(1_000_000_000).saturating_add(ns / 2)) / ns))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::sums::Moved;
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;
    use stepscope_trace::{IoAction, IoLayer, SliceId, SliceKind};

    /// The drawing with its `io` rows as calls: `r` reads and `w` writes 100 bytes a microsecond, `R` and `W` read and write
    /// what nobody says, `o` opens, every other letter does something else. The file is called as the label directly
    /// around the call, else `file`.
    pub(crate) fn with_calls(drawing: &str) -> Trace {
        let mut trace = drawn(drawing);
        let calls: Vec<SliceId> = trace.slices.ids().filter(|id| trace.slices.kind(*id) == SliceKind::Io).collect();
        for slice in calls {
            let name = trace.slice_name(slice).to_string();
            let action = match name.as_str() {
                "r" | "R" => IoAction::Read,
                "w" | "W" => IoAction::Write,
                "o" => IoAction::Open,
                _ => IoAction::Metadata,
            };
            let dur_ns = trace.slices.dur_ns[slice.index()];
            let bytes = matches!(name.as_str(), "r" | "w").then_some(dur_ns / 10);
            let around =
                trace.slices.parent[slice.index()].filter(|id| trace.slices.kind(*id) == SliceKind::Annotation);
            let file = around.map_or_else(|| trace.strings.intern("file"), |id| trace.slices.name[id.index()]);
            let (layer, asked_bytes, offset, errno) = (IoLayer::Posix, bytes, None, None);
            let other_file = StringTable::EMPTY;
            trace.io.push(IoEvent { slice, layer, action, file, other_file, bytes, asked_bytes, offset, errno });
        }
        trace
    }

    /// The trace with its calls `R` and `m` as page faults, a major one each and a minor one.
    pub(crate) fn with_page_faults(mut trace: Trace) -> Trace {
        for at in 0..trace.io.len() {
            let slice = trace.io[at].slice;
            if matches!(trace.slice_name(slice), "R" | "m") {
                trace.io[at].layer = IoLayer::PageFault;
                trace.slices.dur_ns[slice.index()] = 0;
            }
        }
        trace
    }

    fn names(trace: &Trace, selection: Selection) -> String {
        io_calls(trace, &selection).iter().map(|call| trace.slice_name(call.event.slice)).collect()
    }

    #[test]
    fn a_call_inside_a_call_is_a_part_of_it() {
        let trace = with_calls(
            "rank 0 io 1    wwwwwwrr.ooo
             rank 0 label 1 .aaa........
             rank 0 io 1    ..x.........
             rank 0 io 2    ..c.........",
        );
        assert_eq!(names(&trace, Selection::default()), "wroc");
    }

    /// The requests of a drawing in order of time, each at an offset of a list: `s` follows the one before, `j` jumps, `-`
    /// is not known.
    fn sequences(drawing: &str, offsets: &[i64]) -> String {
        let mut trace = with_calls(drawing);
        let mut by_time: Vec<usize> = (0..trace.io.len()).collect();
        by_time.sort_by_key(|at| trace.slices.start_ns[trace.io[*at].slice.index()]);
        let mut offsets = offsets.iter();
        for at in by_time {
            let event = &mut trace.io[at];
            event.offset =
                event.action.moves_bytes().then(|| *offsets.next().expect("an offset")).filter(|at| *at >= 0);
        }
        let mut calls = io_calls(&trace, &Selection::default());
        calls.sort_by_key(|call| call.span.start_ns);
        let letter = |is_sequential: Option<bool>| is_sequential.map_or('-', |is| if is { 's' } else { 'j' });
        calls.iter().filter(|call| call.event.action.moves_bytes()).map(|call| letter(call.is_sequential)).collect()
    }

    #[test]
    fn a_request_follows_the_one_before_on_the_same_file() {
        let one = "rank 0 io 1 r|r|r|rr|r|r";
        assert_eq!(sequences(one, &[0, 100, 200, 200, 400, 0]), "-ssjsj");
        assert_eq!(sequences(one, &[0, 100, -1, 300, 500, 600]), "-s--ss");
        // Two threads share a file; another process does not.
        assert_eq!(sequences("rank 0 io 1 r.r.\nrank 0 io 2 .r.r", &[0, 100, 200, 400]), "-ssj");
        assert_eq!(sequences("rank 0 io 1 r.r\nrank 1 io 1 .r.", &[0, 0, 100]), "--s");
        // Other files, and a file that is opened again.
        assert_eq!(sequences("rank 0 label 1 aabb.aabb\nrank 0 io 1 r.r..r.r", &[0, 0, 100, 300]), "--sj");
        assert_eq!(sequences("rank 0 io 1 rro|rr", &[0, 0]), "--");
    }

    #[test]
    fn a_copy_is_a_read_and_a_write_that_share_its_time() {
        let mut trace = with_calls("rank 0 io 1 rrr.r");
        let target = trace.strings.intern("target");
        trace.io.iter_mut().for_each(|event| event.other_file = target);
        trace.io[1].errno = Some(IoEvent::UNKNOWN_ERROR);
        let shown = |call: &IoCall| {
            let file = trace.strings.get(call.event.file);
            format!("{} {file} {}-{}", call.event.action.as_str(), call.span.start_ns, call.span.end_ns)
        };
        let calls = io_calls(&trace, &Selection::default());
        // One that failed copies nothing.
        let expected = ["read file 0-1500", "write target 1500-3000", "read file 4000-5000"];
        assert_eq!(calls.iter().map(shown).collect::<Vec<_>>(), expected);
        let sums = IoSums::of(&calls[..2]);
        assert_eq!([&sums.reads, &sums.writes].map(Moved::bytes_per_s), [Some(100_000_000); 2], "of the whole call");
        trace.io.iter_mut().for_each(|event| event.action = IoAction::Metadata);
        assert_eq!(io_calls(&trace, &Selection::default()).len(), 2);
    }

    #[test]
    fn a_request_follows_the_one_before_of_its_own_layer() {
        let mut trace = with_calls("rank 0 io 1 r|r|r|r");
        for (event, at) in trace.io.iter_mut().zip(0..) {
            event.layer = if at % 2 == 0 { IoLayer::MpiIo } else { IoLayer::Posix };
            event.offset = Some(at / 2 * 100);
        }
        let calls = io_calls(&trace, &Selection::default());
        let are_sequential: Vec<Option<bool>> = calls.iter().map(|call| call.is_sequential).collect();
        assert_eq!(are_sequential, [None, None, Some(true), Some(true)]);
    }

    #[test]
    fn calls_are_of_the_part_in_which_they_begin() {
        let trace = with_calls("rank 0 step 000111\nrank 0 io 1 r.wwc.\nrank 1 io 1 o.....");
        let of_step = |step| Selection { ranks: 0.into(), step: Some(step), ..Selection::default() };
        assert_eq!((names(&trace, of_step(0)), names(&trace, of_step(1))), ("rw".into(), "c".into()));
        assert_eq!(names(&trace, Selection { ranks: 1.into(), ..Selection::default() }), "o");
    }

    proptest! {
        #[test]
        fn calls_are_those_without_a_call_around_them(rows in prop::collection::vec(("[.rw|]{20}", 0..2), 1..5)) {
            let row = |(cells, kind): &(String, i32)| format!("rank 0 {} 1 {cells}\n", ["io", "label"][*kind as usize]);
            let trace = with_calls(&rows.iter().map(row).collect::<String>());
            let is_outermost = |event: &&IoEvent| {
                !trace.slices.with_ancestors(event.slice).skip(1).any(|id| trace.slices.kind(id) == SliceKind::Io)
            };
            let expected: Vec<SliceId> = trace.io.iter().filter(is_outermost).map(|event| event.slice).collect();
            let found = io_calls(&trace, &Selection::default());
            prop_assert_eq!(found.iter().map(|call| call.event.slice).collect::<Vec<_>>(), expected);
        }
    }
}

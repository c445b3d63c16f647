//! The calls on files that analyses count: shared by those of files.
//!
//! ```text
//! MPI_File_write  WWWWWWWW     counts
//! write           ..wwww..     is how it was done: its bytes are those of the call around it
//! ```

use crate::context::Shared;
use crate::windows::Windows;
use crate::{AnalysisContext, Selection};
use stepscope_base::Span;
use stepscope_trace::{IoEvent, ProcessId, Trace};

/// A call on a file that lies in no other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IoCall {
    /// The call.
    pub(crate) event: IoEvent,
    /// The rank of its process.
    pub(crate) rank: u32,
    /// Its process.
    pub(crate) process: ProcessId,
    /// When it runs.
    pub(crate) span: Span,
}

/// Every call asked for that lies in no other call on a file of its thread, by thread and start.
impl Shared for Vec<IoCall> {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        io_calls(context.trace, context.selection)
    }
}

fn io_calls(trace: &Trace, selection: &Selection) -> Vec<IoCall> {
    let windows = Windows::of(trace, selection);
    let mut calls = Vec::new();
    // The slices before this one lie in the last call, or before it.
    let mut beyond = 0;
    for event in &trace.io {
        let at = event.slice.index();
        if at < beyond {
            continue;
        }
        beyond = end_of(trace, at);
        let track = &trace.tracks[trace.slices.track[at].index()];
        if windows.track(trace, track).is_some_and(|windows| windows.contains(trace.slices.start_ns[at])) {
            let (process, span) = (track.process, trace.slices.span(event.slice));
            calls.push(IoCall { event: *event, rank: trace.processes[process.index()].rank, process, span });
        }
    }
    calls
}

/// The first slice behind `at` that does not lie in it.
fn end_of(trace: &Trace, at: usize) -> usize {
    let slices = &trace.slices;
    let is_inside = |other: &usize| slices.track[*other] == slices.track[at] && slices.depth[*other] > slices.depth[at];
    at + 1 + (at + 1..slices.len()).take_while(is_inside).count()
}

/// Whole bytes in a second, rounded; `None` without time.
pub(crate) fn bytes_per_s(bytes: i128, ns: i128) -> Option<i64> {
    let whole = |value: i128| i64::try_from(value).unwrap_or(i64::MAX);
    (ns > 0).then(|| whole((bytes.saturating_mul(1_000_000_000).saturating_add(ns / 2)) / ns))
}

#[cfg(test)]
pub(crate) mod tests {
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
            trace.io.push(IoEvent { slice, layer: IoLayer::Posix, action, file, bytes, offset: None });
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

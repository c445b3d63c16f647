//! The same document without a trace: rows are written as they are read. Allocations stand among the slices of their
//! thread.

use super::heads::Heads;
use super::host_args::{OpArgs, write_call};
use super::samples::{MEMORY, OUT_OF_MEMORY, write_allocation};
use super::slices::{category, shown_name, write_collective, write_words};
use super::streamed_arrows::Arrows;
use super::{Document, head, labels, samples, step_marks};
use std::io::{self, Write};
use stepscope_engine::{StreamedCut, StreamedRows, StreamedSlice};
use stepscope_trace::{MemoryEvent, SliceKind, TrackId};

/// Writes `cut` as Chrome JSON. False when only a whole trace tells: what was written then means nothing.
///
/// # Errors
/// When `out` cannot be written to.
pub(crate) fn write_chrome_cut(cut: &StreamedCut, out: &mut dyn Write) -> io::Result<bool> {
    let trace = cut.frame();
    if step_marks::need_all_slices(trace) {
        return Ok(false);
    }
    let mut document = Document::new(trace, None, cut.window(), out);
    head::write(&mut document);
    labels::write(&mut document)?;
    let ops = OpArgs::new(trace);
    let heads = Heads::new((0, 0));
    let (calls, arrows) = (Vec::new(), Arrows::new(trace));
    let mut rows = DocumentRows { document, ops, heads, last_id: 0, calls, arrows };
    if !cut.give(&mut rows)? {
        return Ok(false);
    }
    let DocumentRows { mut document, arrows, .. } = rows;
    samples::write(&mut document)?;
    step_marks::write(&mut document)?;
    if !arrows.write(&mut document)? {
        return Ok(false);
    }
    document.finish()?;
    Ok(true)
}

/// What rows are written into.
struct DocumentRows<'a> {
    document: Document<'a>,
    ops: OpArgs<'a>,
    heads: Heads,
    /// The number of the slice before, from 1 on: what joins it with other rows.
    last_id: i64,
    /// Ends and ids of the calls that the next slice may lie in.
    calls: Vec<(i64, i64)>,
    arrows: Arrows<'a>,
}

impl DocumentRows<'_> {
    /// The call that a call lies in.
    fn caller(&mut self, id: i64, slice: &StreamedSlice<'_>) -> Option<i64> {
        while self.calls.last().is_some_and(|(end_ns, _)| *end_ns <= slice.start_ns) {
            self.calls.pop();
        }
        let caller = self.calls.last().map(|(_, id)| *id);
        self.calls.push((slice.start_ns + slice.dur_ns, id));
        caller
    }
}

impl StreamedRows for DocumentRows<'_> {
    fn begin_thread(&mut self, track: TrackId) {
        self.heads = Heads::new(self.document.row(track));
        self.calls.clear();
        self.arrows.begin_thread(track);
    }

    #[inline]
    fn slice(&mut self, slice: &StreamedSlice<'_>) -> io::Result<()> {
        self.last_id += 1;
        let (id, kind) = (self.last_id, slice.kind);
        let category = category(kind, slice.op.is_some());
        let is_call = matches!(kind, SliceKind::PythonFunction | SliceKind::Module);
        let caller = if is_call { self.caller(id, slice) } else { None };
        let json = &mut self.document.json;
        let head = self.heads.of(slice.name, kind, category, || shown_name(kind, slice.text));
        json.open_slice(head, slice.start_ns, slice.dur_ns);
        if is_call {
            write_call(json, id, caller, (kind == SliceKind::Module).then_some(slice.name));
        } else {
            json.int("External id", id);
            slice.op.iter().for_each(|info| self.ops.write(json, info));
        }
        let strings = &self.document.trace.strings;
        slice.collective.iter().for_each(|collective| write_collective(json, strings, collective));
        write_words(json, kind, false, slice.is_unfinished);
        json.close();
        self.arrows.add(id, slice);
        self.document.end_event()
    }

    fn memory(&mut self, event: &MemoryEvent, is_out_of_memory: bool) -> io::Result<()> {
        write_allocation(&mut self.document, event, if is_out_of_memory { OUT_OF_MEMORY } else { MEMORY })
    }
}

//! A Chrome trace of a recording, without a trace in memory. Allocations stand among the slices of their thread.

use super::host_args::{OpArgs, write_call};
use super::ids::{is_call, is_range};
use super::profile::{Profile, ProfileOptions};
use super::recording_arrows::Arrows;
use super::samples::{MEMORY, OUT_OF_MEMORY, write_allocation};
use super::slice_prefixes::SlicePrefixCache;
use super::slices::{category, shown_name, write_collective, write_words};
use super::{Document, head, labels, samples, step_marks};
use std::borrow::Cow;
use std::io::{self, Write};
use stepscope_engine::{RecordingRows, SliceRow, SliceSink};
use stepscope_trace::{MemoryEvent, SliceKind, TrackId};

/// Writes `recording` as Chrome JSON, and gives the first number that no operator has. `None` when a
/// whole trace has to be read instead: what was written is then invalid.
///
/// # Errors
/// When `out` cannot be written to.
pub(crate) fn write_chrome_of_recording(
    recording: &RecordingRows,
    options: ProfileOptions,
    out: &mut dyn Write,
) -> io::Result<Option<i64>> {
    let trace = recording.skeleton();
    if step_marks::need_all_slices(trace) {
        return Ok(None);
    }
    let mut document = Document::new(trace, None, recording.window(), out);
    document.profile = Some(Profile::new(options));
    head::write(&mut document);
    labels::write(&mut document)?;
    let ops = OpArgs::new(trace);
    let prefixes = SlicePrefixCache::new((0, 0));
    let (calls, arrows) = (Vec::new(), Arrows::new(trace));
    let mut rows = DocumentRows { document, ops, prefixes, calls, arrows };
    if !recording.write_to(&mut rows)? {
        return Ok(None);
    }
    let DocumentRows { mut document, arrows, .. } = rows;
    samples::write(&mut document)?;
    step_marks::write(&mut document)?;
    if !arrows.write(&mut document)? {
        return Ok(None);
    }
    document.finish()?;
    Ok(document.profile.map(|profile| profile.ids.next()))
}

/// What rows are written into.
struct DocumentRows<'a> {
    document: Document<'a>,
    ops: OpArgs<'a>,
    prefixes: SlicePrefixCache,
    /// The calls that the next slice may lie in.
    calls: Vec<OpenCall>,
    arrows: Arrows<'a>,
}

/// A call that has not ended.
struct OpenCall {
    end_ns: i64,
    id: i64,
    /// As it is written; empty where stacks are not.
    name: String,
}

impl SliceSink for DocumentRows<'_> {
    fn begin_thread(&mut self, track: TrackId) {
        self.prefixes = SlicePrefixCache::new(self.document.row(track));
        self.calls.clear();
        self.document.profile.iter_mut().for_each(Profile::begin_thread);
        self.arrows.begin_thread(track);
    }

    #[inline]
    fn slice(&mut self, slice: &SliceRow<'_>) -> io::Result<()> {
        let kind = slice.kind;
        let category = category(kind, slice.op.is_some());
        let (is_call, is_range) = (is_call(kind, slice.text), is_range(kind));
        while self.calls.pop_if(|call| call.end_ns <= slice.start_ns).is_some() {}
        let caller = self.calls.last().map(|call| call.id);
        let Document { trace, json, profile, .. } = &mut self.document;
        let head = self.prefixes.of(slice.name, kind, category, || shown_name(kind, slice.text));
        json.open_slice(head, slice.start_ns, slice.dur_ns);
        let id = profile.as_mut().map_or(0, |profile| match () {
            () if is_call => profile.ids.take_call(),
            () if is_range => profile.ids.take(),
            () => 0,
        });
        if is_call {
            write_call(json, id, caller, (kind == SliceKind::Module).then_some((slice.name, slice.text)));
            profile.iter_mut().for_each(|profile| profile.write_call(json));
        } else if !is_range {
            profile.iter_mut().for_each(|profile| profile.write_number(json));
        } else {
            json.int("External id", id);
            slice.op.iter().for_each(|info| self.ops.write(json, &Profile::shown(info)));
            profile.iter_mut().for_each(|profile| profile.write_range(json, slice.text, slice.op.as_ref(), 0));
        }
        let functions = self.calls.iter().rev().map(|call| Cow::from(&call.name));
        profile.iter().for_each(|profile| profile.write_stack(json, functions.clone()));
        let strings = &trace.strings;
        slice.collective.iter().for_each(|collective| write_collective(json, strings, collective));
        write_words(json, kind, false, slice.is_unfinished);
        json.close();
        if is_call {
            let is_verbose = profile.as_ref().is_some_and(Profile::is_verbose);
            let name = if is_verbose { shown_name(kind, slice.text).into_owned() } else { String::new() };
            self.calls.push(OpenCall { end_ns: slice.start_ns + slice.dur_ns, id, name });
        }
        self.arrows.add(id, slice);
        self.document.end_event()
    }

    fn memory(&mut self, event: &MemoryEvent, is_out_of_memory: bool) -> io::Result<()> {
        write_allocation(&mut self.document, event, if is_out_of_memory { OUT_OF_MEMORY } else { MEMORY })
    }
}

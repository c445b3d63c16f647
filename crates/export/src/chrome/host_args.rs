//! What is known of a slice on the host: inputs, stack, sequence number, what it joins with.

use super::ids::{is_call, is_range};
use super::profile::{Profile, listed_module};
use super::slices::{op_around, shown_name};
use super::{Document, Json, joining_id};
use crate::by_slice::BySlice;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{IoEvent, OpInfo, OpInputs, SliceId, SliceKind, Trace, Track};

/// The tables that host slices have rows in.
pub(super) struct HostArgs<'a> {
    trace: &'a Trace,
    next_op: usize,
    /// The call around each row, of threads whose rows lie in several lanes.
    callers: BTreeMap<SliceId, SliceId>,
    io: BySlice<'a, IoEvent>,
    numbers: BySlice<'a, (SliceId, i64)>,
    ops: OpArgs<'a>,
}

/// What is written of ops.
pub(super) struct OpArgs<'a> {
    strings: &'a StringTable,
    /// The inputs that are sound JSON, by their id.
    inputs: Vec<SoundInputs>,
}

#[derive(Clone, Copy)]
struct SoundInputs {
    lists: [(&'static str, StringId); 4],
    /// An object, whose members stand beside the lists.
    keywords: StringId,
}

impl<'a> HostArgs<'a> {
    pub(super) fn new(trace: &'a Trace) -> Self {
        let io = BySlice::new(&trace.io, |row| row.slice);
        let numbers = BySlice::new(&trace.range_numbers, |row| row.0);
        Self { trace, next_op: 0, callers: callers(trace), io, numbers, ops: OpArgs::new(trace) }
    }

    /// What is known of `slice` as an op; slices come in ascending order.
    pub(super) fn op(&mut self, slice: SliceId) -> Option<OpInfo> {
        let rows = &self.trace.ops;
        self.next_op += rows.slice[self.next_op..].iter().take_while(|of| **of < slice).count();
        (rows.slice.get(self.next_op) == Some(&slice)).then(|| rows.info[self.next_op])
    }

    /// Writes the arguments of `slice`; slices come in ascending order.
    pub(super) fn write(&mut self, document: &mut Document<'_>, slice: SliceId, op: Option<OpInfo>) {
        let kind = document.trace.slices.kind(slice);
        match kind {
            kind if is_range(kind) => {
                let id = document.id_of(slice);
                document.json.int("External id", id);
                let is_profile = document.profile.is_some();
                let written = op.map(|info| if is_profile { Profile::shown(&info) } else { info });
                written.iter().for_each(|info| self.ops.write(&mut document.json, info));
                if let Some(profile) = &mut document.profile {
                    let number = self.numbers.of(slice).map_or(0, |row| row.1);
                    profile.write_range(&mut document.json, self.trace.slice_name(slice), op.as_ref(), number);
                    let functions = self.calls_around(slice).map(|call| shown(self.trace, call));
                    profile.write_stack(&mut document.json, functions);
                }
            }
            SliceKind::Runtime | SliceKind::Driver | SliceKind::HostSync => {
                op_around(document, slice).into_iter().for_each(|id| document.json.int("External id", id));
                document.json.int("correlation", joining_id(slice));
            }
            kind if is_call(kind, self.trace.slice_name(slice)) => self.write_python(document, slice, kind),
            SliceKind::PythonFunction => {
                if let Some(profile) = &mut document.profile {
                    profile.write_number(&mut document.json);
                    let functions = self.calls_around(slice).map(|call| shown(self.trace, call));
                    profile.write_stack(&mut document.json, functions);
                }
            }
            SliceKind::Io => self.io.of(slice).into_iter().for_each(|row| write_io(document, row)),
            _ => {}
        }
    }

    /// The call that a row lies in.
    fn caller(&self, slice: SliceId) -> Option<SliceId> {
        let slices = &self.trace.slices;
        let around =
            || slices.with_ancestors(slice).skip(1).find(|id| is_call(slices.kind(*id), self.trace.slice_name(*id)));
        self.callers.get(&slice).copied().or_else(around)
    }

    /// The calls that a row lies in, the innermost first.
    fn calls_around(&self, slice: SliceId) -> impl Iterator<Item = SliceId> {
        std::iter::successors(self.caller(slice), |call| self.caller(*call))
    }

    fn write_python(&self, document: &mut Document<'_>, slice: SliceId, kind: SliceKind) {
        let (id, caller) = (document.id_of(slice), self.caller(slice).map(|caller| document.id_of(caller)));
        let name = self.trace.slices.name[slice.index()];
        let module = (kind == SliceKind::Module).then(|| (name, self.trace.slice_name(slice)));
        write_call(&mut document.json, id, caller, module);
        if let Some(profile) = &mut document.profile {
            profile.write_call(&mut document.json);
            let functions = self.calls_around(slice).map(|call| shown(self.trace, call));
            profile.write_stack(&mut document.json, functions);
        }
    }
}

/// The name of a row as it is written.
fn shown(trace: &Trace, slice: SliceId) -> Cow<'_, str> {
    shown_name(trace.slices.kind(slice), trace.slice_name(slice))
}

impl<'a> OpArgs<'a> {
    pub(super) fn new(trace: &'a Trace) -> Self {
        let inputs = trace.ops.inputs.iter().map(|inputs| sound(trace, inputs)).collect();
        Self { strings: &trace.strings, inputs }
    }

    pub(super) fn write(&self, json: &mut Json, info: &OpInfo) {
        let strings = self.strings;
        info.sequence_number.into_iter().for_each(|number| json.int("Sequence number", number));
        info.forward_thread.into_iter().for_each(|thread| json.unsigned("Fwd thread id", thread));
        if let Some(SoundInputs { lists, keywords }) = self.inputs.get(info.inputs.index()) {
            let known = lists.iter().filter(|(_, text)| *text != StringTable::EMPTY);
            known.for_each(|(key, text)| json.verbatim(key, strings.get(*text)));
            json.members(strings.get(*keywords));
        }
        if info.stack != StringTable::EMPTY {
            json.text("Call stack", strings.get(info.stack));
        }
    }
}

/// Inputs are kept as the source wrote them; those that are no JSON would spoil the document and are left out.
fn sound(trace: &Trace, inputs: &OpInputs) -> SoundInputs {
    let is_sound = |id: StringId| serde_json::from_str::<IgnoredAny>(trace.strings.get(id)).is_ok();
    let sound = |id: StringId| if is_sound(id) { id } else { StringTable::EMPTY };
    let lists = [
        ("Input Dims", sound(inputs.dims)),
        ("Input type", sound(inputs.types)),
        ("Input Strides", sound(inputs.strides)),
        ("Concrete Inputs", sound(inputs.concrete)),
    ];
    // PyTorch gives its label of a loader's `next()` none.
    let is_of_next = trace.strings.get(inputs.keywords).starts_with(r#"{"dataflow":"next""#);
    let keywords = if is_of_next { StringTable::EMPTY } else { sound(inputs.keywords) };
    SoundInputs { lists, keywords }
}

/// The calls around rows of threads that have several lanes: calls nest among themselves, whatever they overlap.
fn callers(trace: &Trace) -> BTreeMap<SliceId, SliceId> {
    let mut callers = BTreeMap::new();
    let lanes = trace.tracks.chunk_by(|_, next| next.lane > 0).filter(|lanes| lanes.len() > 1);
    for lanes in lanes {
        let mut rows: Vec<SliceId> = lanes.iter().flat_map(Track::slice_ids).collect();
        rows.sort_by_key(|id| (trace.slices.start_ns[id.index()], Reverse(trace.slices.dur_ns[id.index()])));
        let mut open: Vec<(i64, SliceId)> = Vec::new();
        for row in rows {
            let span = trace.slices.span(row);
            while open.pop_if(|(end_ns, _)| *end_ns <= span.start_ns).is_some() {}
            callers.extend(open.last().map(|(_, caller)| (row, *caller)));
            if is_call(trace.slices.kind(row), trace.slice_name(row)) {
                open.push((span.end_ns, row));
            }
        }
    }
    callers
}

/// Calls of Python refer to the call they were made in. A module is given by its name in the trace.
pub(super) fn write_call(json: &mut Json, id: i64, caller: Option<i64>, module: Option<(StringId, &str)>) {
    json.int("Python id", id);
    match caller {
        Some(caller) => json.int("Python parent id", caller),
        None => json.verbatim("Python parent id", "null"),
    }
    if let Some((name, text)) = module {
        let listed = listed_module(text);
        json.int("Python module id", listed.map_or(name.0.into(), |(_, number, _)| number));
        listed.into_iter().for_each(|(.., place)| json.text("Stepscope module", place));
    }
}

fn write_io(document: &mut Document<'_>, row: &IoEvent) {
    let json = &mut document.json;
    json.text("layer", row.layer.as_str());
    json.text("action", row.action.as_str());
    for (key, file) in [("file", row.file), ("other file", row.other_file)] {
        if file != StringTable::EMPTY {
            json.text(key, document.trace.strings.get(file));
        }
    }
    row.bytes.into_iter().for_each(|bytes| json.int("bytes", bytes));
    row.asked_bytes.into_iter().for_each(|bytes| json.int("asked bytes", bytes));
    row.offset.into_iter().for_each(|offset| json.int("offset", offset));
    row.errno.into_iter().for_each(|errno| json.int("errno", errno.get().into()));
}

//! Slices: a begin and an end each. Those of a track nest, so that an end closes what began last.

use super::descriptors::track_uuid;
use super::details::Details;
use super::{Document, Message};
use std::io;
use stepscope_trace::{Flow, SliceId, TrackId};

/// Fields and values of `track_event.proto`.
pub(super) mod track_event {
    pub(crate) const CATEGORY: u32 = 3;
    pub(crate) const DETAIL: u32 = 4;
    pub(crate) const TYPE: u32 = 9;
    pub(crate) const NAME: u32 = 10;
    pub(crate) const TRACK: u32 = 11;
    pub(crate) const COUNT: u32 = 30;
    pub(crate) const FRACTION: u32 = 44;
    pub(crate) const FLOW: u32 = 47;
    pub(crate) const FLOW_END: u32 = 48;
    pub(crate) const BEGIN: u64 = 1;
    pub(crate) const END: u64 = 2;
    pub(crate) const INSTANT: u64 = 3;
    pub(crate) const COUNTER: u64 = 4;
}

pub(super) fn write(document: &mut Document<'_>) -> io::Result<()> {
    let trace = document.trace;
    let mut details = Details::new(trace);
    let mut arrows = Arrows::new(&trace.flows);
    for track in (0..trace.tracks.len()).map(TrackId::from_index) {
        let mut open: Vec<i64> = Vec::new();
        for slice in trace.tracks[track.index()].slice_ids() {
            let span = trace.slices.span(slice);
            while let Some(end_ns) = open.pop_if(|end_ns| *end_ns <= span.start_ns) {
                write_end(document, track, end_ns)?;
            }
            let mut event = Message::default();
            event.number(track_event::TYPE, track_event::BEGIN);
            event.number(track_event::TRACK, track_uuid(track));
            event.number(track_event::NAME, document.interned.name(trace, trace.slices.name[slice.index()]));
            event.number(track_event::CATEGORY, document.interned.category(trace.slices.kind(slice)));
            arrows.add_to(&mut event, slice);
            details.add_to(&mut event, document, slice);
            document.event(span.start_ns, &event)?;
            open.push(span.end_ns);
        }
        while let Some(end_ns) = open.pop() {
            write_end(document, track, end_ns)?;
        }
    }
    write_instants(document)
}

fn write_end(document: &mut Document<'_>, track: TrackId, end_ns: i64) -> io::Result<()> {
    let mut event = Message::default();
    event.number(track_event::TYPE, track_event::END);
    event.number(track_event::TRACK, track_uuid(track));
    document.event(end_ns, &event)
}

fn write_instants(document: &mut Document<'_>) -> io::Result<()> {
    let instants = &document.trace.instants;
    for at in 0..instants.len() {
        let mut event = Message::default();
        event.number(track_event::TYPE, track_event::INSTANT);
        event.number(track_event::TRACK, track_uuid(instants.track[at]));
        event.number(track_event::NAME, document.interned.name(document.trace, instants.name[at]));
        document.event(instants.time_ns[at], &event)?;
    }
    Ok(())
}

/// Arrows by their two ends, for slices in ascending order. An arrow's number is its place among the flows.
struct Arrows<'a> {
    flows: &'a [Flow],
    by_start: Vec<u32>,
    by_end: Vec<u32>,
    next_start: usize,
    next_end: usize,
}

impl<'a> Arrows<'a> {
    fn new(flows: &'a [Flow]) -> Self {
        let ordered = |end: fn(&Flow) -> SliceId| {
            let mut order: Vec<u32> = (0..flows.len() as u32).collect();
            order.sort_by_key(|at| end(&flows[*at as usize]));
            order
        };
        let (by_start, by_end) = (ordered(|flow| flow.from), ordered(|flow| flow.to));
        Self { flows, by_start, by_end, next_start: 0, next_end: 0 }
    }

    fn add_to(&mut self, event: &mut Message, slice: SliceId) {
        while let Some(at) = self.by_start.get(self.next_start).filter(|at| self.flows[**at as usize].from == slice) {
            event.fixed(track_event::FLOW, u64::from(*at) + 1);
            self.next_start += 1;
        }
        while let Some(at) = self.by_end.get(self.next_end).filter(|at| self.flows[**at as usize].to == slice) {
            event.fixed(track_event::FLOW_END, u64::from(*at) + 1);
            self.next_end += 1;
        }
    }
}

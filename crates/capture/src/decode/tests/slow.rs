//! The slow twin: every record in a list first, then one thread after the other, times last.

use super::super::events::{Mark, ProfilerState, Sample, StepRange, Window};
use super::super::process::is_of_process;
use super::super::record::{Record, half_at, read_record, word_at};
use super::Summary;
use crate::Thread;
use crate::clock::{ClockPoint, TickClock};
use crate::inputs::Inputs;
use crate::io::IoRecord;
use crate::layout::{BeginWord, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC, Tag, scope};
use crate::memory::MemoryEvent;
use crate::short::{Begin, Reference};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

#[derive(Default)]
pub(super) struct Slow {
    pub(super) threads: Vec<Thread>,
    pub(super) names: Vec<String>,
    pub(super) metadata: Vec<(String, String)>,
    pub(super) damaged: Vec<String>,
    pub(super) events: Vec<Summary>,
    pub(super) steps: Vec<StepRange>,
    pub(super) optimizer_steps: Vec<Mark>,
    pub(super) memory: Vec<MemoryEvent>,
    pub(super) samples: Vec<Sample>,
    pub(super) profiler_states: Vec<ProfilerState>,
    pub(super) windows: Vec<Window>,
    pub(super) last_ns: i64,
    pub(super) ended_elsewhere: usize,
    pub(super) steps_ended_elsewhere: usize,
    pub(super) with_inputs: usize,
}

/// An event in ticks; without end while open.
#[derive(Clone)]
struct Open {
    thread: u32,
    name: u32,
    begin: Begin,
    start: u64,
    end: Option<u64>,
    is_async: bool,
    collective: Option<(u32, Option<i64>)>,
    /// The one value that it was called with.
    value: Option<String>,
}

/// The end of a step that is none.
const DROPPED: Option<u64> = Some(u64::MAX);

#[derive(Default)]
struct Ticks {
    events: Vec<Open>,
    steps: Vec<(u32, i64, u64, Option<u64>)>,
    marks: Vec<(u32, u64, Option<i64>)>,
    /// Thread, ticks, address, bytes, what is in reserve, device.
    memory: Vec<(u32, u64, Option<u64>, u64, u64, u64)>,
    samples: Vec<(u32, u32, u64, i64)>,
    states: Vec<(u32, u64, u64)>,
    /// Name, origin, ticks and the thread that says so.
    elsewhere: Vec<(u32, u64, u64, u32)>,
    texts: HashMap<String, u32>,
    step_ends: Vec<(i64, u64)>,
    inputs: HashMap<u32, String>,
    last: BTreeMap<u32, u64>,
}

pub(super) fn decode(bytes: &[u8], segment_bytes: usize, opened: ClockPoint) -> Slow {
    let (mut slow, mut ticks) = (Slow::default(), Ticks::default());
    let mut parts: Vec<((u32, u32), Vec<Record>)> = Vec::new();
    for (index, segment) in bytes.chunks(segment_bytes).enumerate() {
        slow.damaged.extend(read_segment(segment, index, &mut parts));
    }
    let records = parts.iter().flat_map(|(_, records)| records);
    let mut metadata: BTreeMap<String, (u64, String)> = BTreeMap::new();
    let (mut points, mut windows, mut call_stops) = (Vec::new(), Vec::new(), Vec::new());
    for record in records {
        let (low, high) = record.halves(0);
        match record.tag {
            Tag::Name if low < BeginWord::NAMES => {
                slow.names.resize(slow.names.len().max(low as usize + 1), String::new());
                slow.names[low as usize] = record.text(8, high as usize);
            }
            Tag::Inputs => {
                let inputs = Inputs::read(record.bytes(8, high as usize));
                ticks.inputs.extend(inputs.map(|inputs| (low, inputs.concrete)));
            }
            Tag::Fact => {
                let said = (record.ticks, record.text(8 + low as usize, high as usize));
                let known = metadata.entry(record.text(8, low as usize)).or_default();
                if said.0 >= known.0 {
                    *known = said;
                }
            }
            Tag::Clock => points.push(ClockPoint {
                ticks: record.ticks,
                monotonic_ns: record.word(0) as i64,
                unix_ns: record.word(1) as i64,
            }),
            Tag::CallsStop => call_stops.push(record.ticks),
            Tag::Window => windows.push((record.ticks, record.word(0) != 0, record.word(1))),
            _ => {}
        }
    }
    metadata.retain(|_, (_, value)| !value.is_empty());
    slow.metadata = metadata.into_iter().map(|(key, (_, value))| (key, value)).collect();
    parts.sort_by_key(|(part, _)| *part);
    let named = slow.names.len() as u32;
    for parts in parts.chunk_by(|a, b| a.0.0 == b.0.0) {
        replay(parts.iter().flat_map(|(_, records)| records), named, &mut slow, &mut ticks);
    }
    for event in ticks.events.iter_mut().filter(|event| event.end.is_none() && scope::is_call(event.begin.scope)) {
        event.end = call_stops.iter().copied().filter(|stop| *stop >= event.start).min();
    }
    slow.with_inputs = ticks.events.iter().filter(|event| event.value.is_some()).count();
    slow.ended_elsewhere = end_elsewhere(&mut ticks, &slow.threads, &slow.names);
    slow.steps_ended_elsewhere = end_steps_elsewhere(&mut ticks);
    in_ns(&mut slow, &ticks, &TickClock::new(opened, points.iter().copied()), (&points, opened), &windows);
    add_written_of(parts.iter().flat_map(|(_, records)| records), &mut slow.threads);
    slow
}

/// The threads that others wrote of, and that wrote nothing.
fn add_written_of<'a>(records: impl Iterator<Item = &'a Record<'a>>, threads: &mut Vec<Thread>) {
    let of_others = records.filter_map(|record| match record.tag {
        Tag::Io => IoRecord::other_thread(|at| record.word(at)),
        Tag::StackSample => Some(record.word(0) as u32),
        _ => None,
    });
    let mut tids: Vec<u64> = of_others.map(u64::from).collect();
    tids.sort_unstable();
    for tid in tids {
        if threads.iter().all(|thread| thread.tid != tid) {
            let ordinal = threads.len() as u32;
            threads.push(Thread { ordinal, tid, name: format!("thread {tid}"), ..Thread::default() });
        }
    }
}

/// All records of segments that are not damaged.
pub(super) fn records_of(bytes: &[u8], segment_bytes: usize) -> Vec<Record<'_>> {
    let mut parts = Vec::new();
    let segments = bytes.chunks(segment_bytes).enumerate();
    segments.for_each(|(index, segment)| assert_eq!(read_segment(segment, index, &mut parts), None));
    parts.into_iter().flat_map(|(_, records)| records).collect()
}

fn read_segment<'a>(segment: &'a [u8], index: usize, parts: &mut Vec<((u32, u32), Vec<Record<'a>>)>) -> Option<String> {
    let first = word_at(segment, 0).filter(|first| *first != 0)?;
    if first != u64::from(SEGMENT_MAGIC) << 32 | index as u64 {
        return Some(format!("segment {index} has a damaged header"));
    }
    let mut at = SEGMENT_HEADER_BYTES;
    let mut reference = None;
    let mut end_of_last: Option<Record> = None;
    while half_at(segment, at).is_some_and(|half| half != 0) {
        if segment[at] != Tag::InputsReference as u8 {
            end_of_last.take().into_iter().for_each(|end| parts.last_mut().expect("a part").1.push(end));
        }
        let Some((record, len)) = read_record(segment, at, reference.as_ref()) else {
            return Some(format!("segment {index} cannot be decoded from byte {at}"));
        };
        at += len;
        if record.tag == Tag::Thread {
            reference = Some(Reference::at_thread(record.ticks));
            parts.push((record.halves(0), Vec::new()));
        }
        let Some(known) = &mut reference else {
            return Some(format!("segment {index} does not begin with a thread"));
        };
        known.ticks = record.ticks;
        record.begin.iter().for_each(|begin| known.note(begin));
        parts.last_mut().expect("a part").1.push(record);
        if let Some(ticks) = record.ended {
            let is_call = record.begin.is_some_and(|begin| scope::is_call(begin.scope));
            let tag = if is_call { Tag::CallEnd } else { Tag::End };
            end_of_last = Some(Record { tag, ticks, body: &[], begin: None, ended: None });
        }
    }
    end_of_last.into_iter().for_each(|end| parts.last_mut().expect("a part").1.push(end));
    None
}

fn replay<'a>(records: impl Iterator<Item = &'a Record<'a>>, named: u32, slow: &mut Slow, all: &mut Ticks) {
    let thread = slow.threads.len() as u32;
    let mut known = Thread { ordinal: thread, ..Thread::default() };
    let (mut open, mut open_calls): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    let (mut open_step, mut left): (Option<usize>, Vec<usize>) = (None, Vec::new());
    let end =
        |at: Option<usize>, ticks, events: &mut Vec<Open>| at.into_iter().for_each(|at| events[at].end = Some(ticks));
    for record in records {
        if record.tag == Tag::InputsInPlace {
            let (len, place) = record.halves(0);
            let ranges = if place >> 31 == 0 { &open } else { &left };
            let behind = (place & 0x7fff_ffff) as usize;
            if let Some(of) = ranges.len().checked_sub(behind + 1) {
                let inputs = Inputs::read(record.bytes(8, len as usize));
                all.events[ranges[of]].value = inputs.map(|inputs| inputs.concrete);
            }
        }
        if is_of_process(record.tag) || matches!(record.tag, Tag::Pad | Tag::Device) {
            continue;
        }
        let (ticks, word) = (record.ticks, record.word(0));
        let mut id_of = |text: String| {
            *all.texts.entry(text).or_insert_with_key(|text| {
                slow.names.push(text.clone());
                slow.names.len() as u32 - 1
            })
        };
        match record.tag {
            Tag::Thread => {
                known.tid = record.word(1) & 0xffff_ffff;
                known.handle = (record.word(1) >> 32) as u32;
                known.framework_thread = known.framework_thread.max(record.word(2));
            }
            Tag::ThreadName => known.name = record.text(8, word as u32 as usize),
            Tag::Begin | Tag::BeginSequence | Tag::BeginBackward | Tag::BeginText => {
                let in_text = Begin { name: 0, scope: (word >> 32) as u8, sequence_number: -1, forward_thread: 0 };
                let begin = record.begin.unwrap_or(in_text);
                let name = match record.begin {
                    Some(begin) if begin.name < named => begin.name,
                    Some(_) => id_of("(name lost)".into()),
                    None => id_of(record.text(8, word as u32 as usize)),
                };
                if scope::is_call(begin.scope) {
                    open_calls.push(all.events.len())
                } else {
                    open.push(all.events.len())
                }
                let start = ticks;
                all.events.push(Open {
                    thread,
                    name,
                    begin,
                    start,
                    end: None,
                    is_async: false,
                    collective: None,
                    value: None,
                });
            }
            Tag::InputsReference => {
                let id = record.body.iter().rev().fold(0, |id, byte| id << 8 | u32::from(*byte));
                open.iter().rev().take(1).for_each(|at| all.events[*at].value = all.inputs.get(&id).cloned());
            }
            Tag::End => end(open.pop(), ticks, &mut all.events),
            Tag::CallEnd => end(open_calls.pop(), ticks, &mut all.events),
            Tag::Counter => {
                let name = if (word as u32) < named { word as u32 } else { id_of("(name lost)".into()) };
                all.samples.push((thread, name, ticks, record.word(1) as i64));
            }
            Tag::EndOuter => {
                let at = open.len().checked_sub((word as usize).saturating_add(1));
                let outer = at.map(|at| open.remove(at));
                let first_inside = open.len().saturating_sub(word as usize);
                left.extend(open.drain(first_inside..));
                end(outer, ticks, &mut all.events);
            }
            Tag::EndLeft => {
                let at = left.len().checked_sub((word as usize).saturating_add(1));
                end(at.map(|at| left.remove(at)), ticks, &mut all.events);
            }
            Tag::EndElsewhere if (word as u32) < named => {
                all.elsewhere.push((word as u32, record.word(1), ticks, thread));
            }
            Tag::StepBegin => {
                open_step = Some(all.steps.len());
                all.steps.push((thread, word as i64, ticks, None));
            }
            Tag::StepEnd => match open_step.take_if(|step| all.steps[*step].1 == word as i64) {
                Some(step) => all.steps[step].3 = Some(ticks),
                None => all.step_ends.push((word as i64, ticks)),
            },
            Tag::StepDropped => open_step.take().into_iter().for_each(|step| all.steps[step].3 = DROPPED),
            Tag::Collective | Tag::CollectiveText => {
                let id = match record.tag {
                    Tag::Collective if (word as u32) < named => word as u32,
                    Tag::Collective => id_of("(name lost)".into()),
                    _ => id_of(record.text(16, word as u32 as usize)),
                };
                let number = record.word(1).checked_sub(1).map(|number| number as i64);
                open.last().into_iter().for_each(|at| all.events[*at].collective = Some((id, number)));
            }
            Tag::ProfilerState => all.states.push((thread, ticks, word)),
            Tag::OptimizerStep => all.marks.push((thread, ticks, None)),
            Tag::NumberedOptimizerStep => all.marks.push((thread, ticks, Some(word as i64))),
            Tag::Memory => {
                all.memory.push((thread, ticks, Some(word << 16 >> 16), record.word(1), 0, word >> 48));
            }
            Tag::MemoryReserved => all.memory.push((thread, ticks, Some(word), record.word(1), 88, 0x0201)),
            Tag::OutOfMemory => all.memory.push((thread, ticks, None, word, 88, 0xff00)),
            _ => {}
        }
        let last = all.last.entry(thread).or_default();
        // The last part tells.
        *last = if record.tag == Tag::Thread { ticks } else { ticks.max(*last) };
    }
    slow.threads.push(known);
}

/// Looks through all open events for each end.
fn end_elsewhere(ticks: &mut Ticks, threads: &[Thread], names: &[String]) -> usize {
    let text = |name: u32| names.get(name as usize);
    ticks.elsewhere.sort_by_key(|(_, _, ticks, _)| *ticks);
    let mut ended = 0;
    for (name, origin, end, thread) in std::mem::take(&mut ticks.elsewhere) {
        let is_it = |event: &&mut Open| {
            let is_there = threads[event.thread as usize].framework_thread == origin;
            event.end.is_none() && text(event.name) == text(name) && is_there && event.start <= end
        };
        let last = ticks.events.iter_mut().filter(is_it).max_by_key(|event| event.start);
        ended += usize::from(last.is_some());
        last.into_iter().for_each(|event| (event.end, event.is_async) = (Some(end), event.thread != thread));
    }
    ended
}

/// The same for steps.
fn end_steps_elsewhere(ticks: &mut Ticks) -> usize {
    ticks.step_ends.sort_unstable();
    let mut ended = 0;
    for (number, end) in std::mem::take(&mut ticks.step_ends) {
        let is_it = |step: &&mut (u32, i64, u64, Option<u64>)| step.3.is_none() && step.1 == number && step.2 <= end;
        let last = ticks.steps.iter_mut().filter(is_it).max_by_key(|step| step.2);
        ended += usize::from(last.is_some());
        last.into_iter().for_each(|step| step.3 = Some(end));
    }
    ended
}

fn in_ns(
    slow: &mut Slow,
    ticks: &Ticks,
    clock: &TickClock,
    (points, opened): (&[ClockPoint], ClockPoint),
    windows: &[(u64, bool, u64)],
) {
    let ns = |ticks: u64| clock.monotonic_ns(ticks);
    let moments = ticks.last.values().copied().chain(points.iter().map(|point| point.ticks));
    let last_ns = moments.map(ns).max().unwrap_or(opened.monotonic_ns).max(opened.monotonic_ns);
    let times = |start: u64, end: Option<u64>| (ns(start), end.map_or(last_ns, ns).max(ns(start)));
    let event = |event: &Open| {
        (
            event.thread,
            slow.names[event.name as usize].clone(),
            if event.begin.scope == 14 { 7 } else { event.begin.scope },
            times(event.start, event.end),
            (event.end.is_none(), event.is_async || event.begin.scope == 14),
            Some(event.begin.sequence_number).filter(|number| *number >= 0),
            Some(event.begin.forward_thread).filter(|thread| *thread != 0),
            event.collective.map(|(id, number)| (slow.names[id as usize].clone(), number)),
            event.value.clone(),
        )
    };
    let mut events: Vec<Summary> = ticks.events.iter().map(event).collect();
    events.sort_by_key(|event| (event.0, event.3.0, Reverse(event.3.1)));
    let step = |(thread, number, start, end): &(u32, i64, u64, Option<u64>)| {
        let (start_ns, end_ns) = times(*start, *end);
        StepRange { thread: *thread, number: *number, start_ns, end_ns, is_unfinished: end.is_none() }
    };
    let mut steps: Vec<StepRange> = ticks.steps.iter().filter(|step| step.3 != DROPPED).map(step).collect();
    steps.sort_by_key(|step| (step.start_ns, step.number));
    let mut marks: Vec<Mark> = ticks
        .marks
        .iter()
        .map(|(thread, at, number)| Mark { thread: *thread, time_ns: ns(*at), number: *number })
        .collect();
    marks.sort_by_key(|mark| mark.time_ns);
    let memory =
        |&(thread, at, address, bytes, reserved, device): &(u32, u64, Option<u64>, u64, u64, u64)| MemoryEvent {
            thread,
            time_ns: ns(at),
            address,
            bytes: bytes as i64,
            allocated_bytes: Some(77),
            reserved_bytes: Some(reserved as i64),
            device_type: (device % 256) as u8,
            device_index: Some((device / 256) as u8).filter(|index| *index < 255),
        };
    slow.memory = ticks.memory.iter().map(memory).collect();
    slow.memory.sort_by_key(|event| (event.thread, event.time_ns));
    let sample = |(thread, name, at, value): &(u32, u32, u64, i64)| Sample {
        thread: *thread,
        name: *name,
        time_ns: ns(*at),
        value: *value,
    };
    slow.samples = ticks.samples.iter().map(sample).collect();
    slow.samples.sort_by_key(|sample| (sample.time_ns, sample.name));
    let state = |&(thread, at, number): &(u32, u64, u64)| ProfilerState { thread, since_ns: ns(at), number };
    slow.profiler_states = ticks.states.iter().map(state).collect();
    slow.profiler_states.sort_by_key(|state| (state.thread, state.since_ns));
    let window = |(at, is_on, cycle): &(u64, bool, u64)| Window { time_ns: ns(*at), is_on: *is_on, cycle: *cycle };
    let mut windows: Vec<Window> = windows.iter().map(window).collect();
    windows.sort_by_key(|window| window.time_ns);
    (slow.events, slow.steps, slow.optimizer_steps, slow.windows, slow.last_ns) =
        (events, steps, marks, windows, last_ns);
}

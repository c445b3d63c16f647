//! From segments to events: each thread's parts in order, begins matched with ends.

use crate::Thread;
use crate::clock::{ClockPoint, TickClock};
use crate::layout::{BeginWord, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC, Tag, padded};
use crate::short::{Begin, Reference};
use std::collections::{BTreeMap, HashMap};

/// An op or a label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// Ordinal of its thread.
    pub thread: u32,
    /// Index into the capture's names.
    pub name: u32,
    /// The framework's scope: 0 op, 1 backward, 7 label …
    pub scope: u8,
    /// Start, ns.
    pub start_ns: i64,
    /// End, ns; of an unfinished event the last moment its process is known to have lived.
    pub end_ns: i64,
    /// True when its end was not recorded.
    pub is_unfinished: bool,
    /// Autograd's sequence number.
    pub sequence_number: Option<i64>,
    /// The framework thread that ran the forward op.
    pub forward_thread: Option<u64>,
}

/// A step that the job labelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepRange {
    /// Ordinal of its thread.
    pub thread: u32,
    /// Its number.
    pub number: i64,
    /// Start, ns.
    pub start_ns: i64,
    /// End, ns.
    pub end_ns: i64,
    /// True when its end was not recorded.
    pub is_unfinished: bool,
}

/// A moment on a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Ordinal of its thread.
    pub thread: u32,
    /// When, ns.
    pub time_ns: i64,
}

/// Recording was switched on or off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// When, ns.
    pub time_ns: i64,
    /// On or off.
    pub is_on: bool,
    /// The schedule's cycle.
    pub cycle: u64,
}

/// An [`Event`] whose times are still ticks; without end while open.
#[derive(Clone, Copy, Debug)]
struct RawEvent {
    thread: u32,
    name: u32,
    scope: u8,
    start: u64,
    end: Option<u64>,
    sequence_number: Option<i64>,
    forward_thread: Option<u64>,
}

/// Everything that a capture's segments say.
#[derive(Default, Debug)]
pub(crate) struct Decoded {
    pub(crate) threads: Vec<Thread>,
    pub(crate) names: Vec<String>,
    /// Each with the moment it was said: the last one holds.
    facts: BTreeMap<String, (u64, String)>,
    pub(crate) clock_points: Vec<ClockPoint>,
    pub(crate) damaged: Vec<String>,
    events: Vec<RawEvent>,
    steps: Vec<(u32, i64, u64, Option<u64>)>,
    marks: Vec<(u32, u64)>,
    windows: Vec<(u64, bool, u64)>,
    ends_elsewhere: Vec<(u32, u64, u64)>,
    text_names: HashMap<String, u32>,
    last_ticks: Vec<u64>,
}

/// One thread's records within one segment.
struct Part<'a> {
    ordinal: u32,
    part: u32,
    records: Vec<Record<'a>>,
}

/// One record: its tag, ticks, the bytes after its first word, and of a begin what it says.
#[derive(Clone, Copy)]
struct Record<'a> {
    tag: Tag,
    ticks: u64,
    body: &'a [u8],
    begin: Option<Begin>,
}

impl Record<'_> {
    fn word(&self, index: usize) -> u64 {
        word_at(self.body, index * 8).unwrap_or(0)
    }

    /// What a long begin with a name's id says.
    fn long_begin(&self) -> Option<Begin> {
        let (sequence_number, forward_thread) = match self.tag {
            Tag::Begin => (None, 0),
            Tag::BeginBackward => (None, self.word(1)),
            Tag::BeginSequence => (Some(self.word(1)), self.word(2)),
            _ => return None,
        };
        let packed = BeginWord::unpack(self.word(0));
        let sequence_number = sequence_number.or(packed.sequence_number).map_or(-1, |number| number as i64);
        Some(Begin { name: packed.name, scope: packed.scope, sequence_number, forward_thread })
    }

    /// The text of `len` bytes that begins `at` bytes into the body.
    fn text(&self, at: usize, len: usize) -> String {
        String::from_utf8_lossy(self.body.get(at..at + len).unwrap_or_default()).into_owned()
    }
}

/// Decodes all segments; whatever cannot be read is described in `damaged`.
pub(crate) fn decode_segments(bytes: &[u8], segment_bytes: usize) -> Decoded {
    let mut decoded = Decoded::default();
    let mut parts = Vec::new();
    for (index, segment) in bytes.chunks(segment_bytes).enumerate() {
        read_segment(segment, index, &mut decoded, &mut parts);
    }
    parts.sort_by_key(|part| (part.ordinal, part.part));
    for part in &parts {
        part.records.iter().for_each(|record| decoded.learn(record));
    }
    for thread_parts in parts.chunk_by(|a, b| a.ordinal == b.ordinal) {
        decoded.replay(thread_parts);
    }
    decoded.finish_elsewhere();
    decoded
}

/// Splits a segment into the parts of the threads that used it.
fn read_segment<'a>(segment: &'a [u8], index: usize, decoded: &mut Decoded, parts: &mut Vec<Part<'a>>) {
    match word_at(segment, 0) {
        Some(0) | None => return,
        Some(first) if first == u64::from(SEGMENT_MAGIC) << 32 | index as u64 => {}
        Some(_) => return decoded.damaged.push(format!("segment {index} has a damaged header")),
    }
    let mut at = SEGMENT_HEADER_BYTES;
    let mut reference = None;
    while half_at(segment, at).is_some_and(|half| half != 0) {
        let Some((record, len)) = read_record(segment, at, reference.as_ref()) else {
            return decoded.damaged.push(format!("segment {index} cannot be decoded from byte {at}"));
        };
        at += len;
        if record.tag == Tag::Thread {
            reference = Some(Reference::at_thread(record.ticks));
            let (ordinal, part) = (record.word(0) as u32, (record.word(0) >> 32) as u32);
            parts.push(Part { ordinal, part, records: Vec::new() });
        }
        match (parts.last_mut(), &mut reference) {
            (Some(part), Some(reference)) => {
                reference.ticks = record.ticks;
                record.begin.iter().for_each(|begin| reference.note(begin));
                part.records.push(record);
            }
            _ => return decoded.damaged.push(format!("segment {index} does not begin with a thread")),
        }
    }
}

fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
}

fn half_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|half| u32::from_le_bytes(half.try_into().unwrap_or_default()))
}

/// The record at `at` and its length; `None` when there is none, or a short one has nothing to count from.
fn read_record<'a>(segment: &'a [u8], at: usize, reference: Option<&Reference>) -> Option<(Record<'a>, usize)> {
    let half = half_at(segment, at)?;
    let tag = Tag::from_byte(half as u8)?;
    let short_len = match tag {
        Tag::ShortBegin | Tag::ShortBeginBackward => 8,
        Tag::ShortEnd | Tag::Pad => 4,
        _ => 0,
    };
    if short_len == 0 {
        let rest = segment.get(at + 8..)?;
        let body = &rest[..body_len(tag, rest)?];
        let mut record = Record { tag, ticks: word_at(segment, at)? >> 8, body, begin: None };
        record.begin = record.long_begin();
        return at.is_multiple_of(8).then_some((record, 8 + body.len()));
    }
    let reference = reference?;
    let (tag, begin) = match tag {
        Tag::Pad => (Tag::Pad, None),
        Tag::ShortEnd => (Tag::End, None),
        _ => (Tag::Begin, Some(reference.begin_of(tag, half_at(segment, at + 4)?))),
    };
    let ticks = if tag == Tag::Pad { reference.ticks } else { reference.ticks_of(half) };
    Some((Record { tag, ticks, body: &[], begin }, short_len))
}

/// Bytes that follow a record's first word; `None` when they are not all there.
fn body_len(tag: Tag, rest: &[u8]) -> Option<usize> {
    let word = || word_at(rest, 0);
    let (low, high) = (|word: u64| word as u32 as usize, |word: u64| (word >> 32) as usize);
    let len = match tag {
        Tag::End | Tag::OptimizerStep => 0,
        Tag::Begin | Tag::EndOuter | Tag::StepBegin | Tag::StepEnd => 8,
        Tag::BeginBackward | Tag::EndElsewhere | Tag::Clock | Tag::Window => 16,
        Tag::BeginSequence | Tag::Thread => 24,
        Tag::BeginText | Tag::ThreadName => 8 + padded(low(word()?)),
        Tag::Name => 8 + padded(high(word()?)),
        Tag::Fact => 8 + padded(low(word()?).checked_add(high(word()?))?),
        Tag::ShortBegin | Tag::ShortBeginBackward | Tag::ShortEnd | Tag::Pad => return None,
    };
    (len <= rest.len()).then_some(len)
}

impl Decoded {
    /// Takes in what holds for the whole process, before any event is replayed.
    fn learn(&mut self, record: &Record) {
        let (low, high) = (record.word(0) as u32, (record.word(0) >> 32) as u32);
        match record.tag {
            Tag::Name => {
                let id = low as usize;
                if id < BeginWord::NAMES as usize {
                    self.names.resize(self.names.len().max(id + 1), String::new());
                    self.names[id] = record.text(8, high as usize);
                }
            }
            Tag::Fact => {
                let (key, value) = (record.text(8, low as usize), record.text(8 + low as usize, high as usize));
                let fact = self.facts.entry(key).or_default();
                if record.ticks >= fact.0 {
                    *fact = (record.ticks, value);
                }
            }
            Tag::Clock => self.clock_points.push(ClockPoint {
                ticks: record.ticks,
                monotonic_ns: record.word(0) as i64,
                unix_ns: record.word(1) as i64,
            }),
            Tag::Window => self.windows.push((record.ticks, record.word(0) != 0, record.word(1))),
            _ => {}
        }
    }

    /// Replays one thread's records with the stack that its writer kept.
    fn replay(&mut self, parts: &[Part]) {
        let thread = self.threads.len() as u32;
        self.threads.push(Thread { ordinal: thread, tid: 0, framework_thread: 0, name: String::new() });
        let mut open: Vec<usize> = Vec::new();
        let mut open_step: Option<usize> = None;
        for record in parts.iter().flat_map(|part| &part.records) {
            let ticks = record.ticks;
            match record.tag {
                Tag::Thread => {
                    let known = &mut self.threads[thread as usize];
                    known.tid = record.word(1);
                    known.framework_thread = known.framework_thread.max(record.word(2));
                }
                Tag::ThreadName => self.threads[thread as usize].name = record.text(8, record.word(0) as u32 as usize),
                Tag::Begin | Tag::BeginSequence | Tag::BeginBackward | Tag::BeginText => {
                    open.push(self.events.len());
                    self.begin(thread, record);
                }
                Tag::End => self.end(open.pop(), ticks),
                Tag::EndOuter => {
                    let at = open.len().checked_sub((record.word(0) as usize).saturating_add(1));
                    let event = at.and_then(|at| open.drain(at..).next());
                    self.end(event, ticks);
                }
                Tag::EndElsewhere => self.ends_elsewhere.push((record.word(0) as u32, record.word(1), ticks)),
                Tag::StepBegin => {
                    open_step = Some(self.steps.len());
                    self.steps.push((thread, record.word(0) as i64, ticks, None));
                }
                Tag::StepEnd => {
                    if let Some(step) = open_step.take() {
                        self.steps[step].3 = Some(ticks);
                    }
                }
                Tag::OptimizerStep => self.marks.push((thread, ticks)),
                Tag::Name | Tag::Fact | Tag::Clock | Tag::Window | Tag::Pad => continue,
                // `read_record` gave them as the long ones that they stand for.
                Tag::ShortBegin | Tag::ShortBeginBackward | Tag::ShortEnd => continue,
            }
            self.last_ticks.resize(thread as usize + 1, ticks);
            self.last_ticks[thread as usize] = ticks;
        }
    }

    fn begin(&mut self, thread: u32, record: &Record) {
        let (name, begin) = match record.begin {
            Some(begin) => (self.known_name(begin.name), begin),
            None => {
                let (len, scope) = (record.word(0) as u32 as usize, (record.word(0) >> 32) as u8);
                let begin = Begin { name: 0, scope, sequence_number: -1, forward_thread: 0 };
                (self.name_of_text(record.text(8, len)), begin)
            }
        };
        self.events.push(RawEvent {
            thread,
            name,
            scope: begin.scope,
            start: record.ticks,
            end: None,
            sequence_number: Some(begin.sequence_number).filter(|number| *number >= 0),
            forward_thread: Some(begin.forward_thread).filter(|thread| *thread != 0),
        });
    }

    /// The id itself, or that of a stand-in when the name was never written.
    fn known_name(&mut self, id: u32) -> u32 {
        match self.names.get(id as usize) {
            Some(_) => id,
            None => self.name_of_text("(name lost)".into()),
        }
    }

    fn name_of_text(&mut self, text: String) -> u32 {
        let next = self.names.len() as u32;
        let id = *self.text_names.entry(text.clone()).or_insert(next);
        if id == next {
            self.names.push(text);
        }
        id
    }

    /// An end without a begin belongs to an op that was open when recording began: there is nothing to keep.
    fn end(&mut self, event: Option<usize>, ticks: u64) {
        if let Some(event) = event {
            self.events[event].end = Some(ticks);
        }
    }

    /// Ends ops that another thread ended: the last one begun, of that name, on that thread, that is still open.
    fn finish_elsewhere(&mut self) {
        let mut ends = std::mem::take(&mut self.ends_elsewhere);
        if ends.is_empty() {
            return;
        }
        ends.sort_unstable_by_key(|(_, _, ticks)| *ticks);
        let mut open: HashMap<(u32, u64), Vec<(u64, usize)>> = HashMap::new();
        for (at, event) in self.events.iter().enumerate().filter(|(_, event)| event.end.is_none()) {
            let thread = self.threads[event.thread as usize].framework_thread;
            open.entry((event.name, thread)).or_default().push((event.start, at));
        }
        open.values_mut().for_each(|begins| begins.sort_unstable());
        for (name, thread, ticks) in ends {
            // Without a begin it belongs to an op from before this capture: there is nothing to keep.
            let Some(begins) = open.get_mut(&(name, thread)) else { continue };
            if let Some(last) = begins.partition_point(|(start, _)| *start <= ticks).checked_sub(1) {
                let (_, event) = begins.remove(last);
                self.events[event].end = Some(ticks);
            }
        }
    }

    /// Facts about the process, sorted by key.
    pub(crate) fn facts(&self) -> Vec<(String, String)> {
        self.facts.iter().map(|(key, (_, value))| (key.clone(), value.clone())).collect()
    }

    /// Events in ns, ordered by (thread, start, longest first), and the last moment the process is known to have lived.
    pub(crate) fn events_in_ns(&self, clock: &TickClock, opened_ns: i64) -> (Vec<Event>, i64) {
        let moments = self.last_ticks.iter().chain(self.clock_points.iter().map(|point| &point.ticks));
        let last_ns = moments.map(|ticks| clock.monotonic_ns(*ticks)).max().unwrap_or(opened_ns).max(opened_ns);
        let event = |raw: &RawEvent| {
            let start_ns = clock.monotonic_ns(raw.start);
            let end_ns = raw.end.map_or(last_ns, |ticks| clock.monotonic_ns(ticks)).max(start_ns);
            Event {
                thread: raw.thread,
                name: raw.name,
                scope: raw.scope,
                start_ns,
                end_ns,
                is_unfinished: raw.end.is_none(),
                sequence_number: raw.sequence_number,
                forward_thread: raw.forward_thread,
            }
        };
        let mut events: Vec<Event> = self.events.iter().map(event).collect();
        events.sort_by_key(|event| (event.thread, event.start_ns, std::cmp::Reverse(event.end_ns)));
        (events, last_ns)
    }

    pub(crate) fn steps_in_ns(&self, clock: &TickClock, last_ns: i64) -> Vec<StepRange> {
        let step = |(thread, number, start, end): &(u32, i64, u64, Option<u64>)| {
            let start_ns = clock.monotonic_ns(*start);
            let end_ns = end.map_or(last_ns, |ticks| clock.monotonic_ns(ticks)).max(start_ns);
            StepRange { thread: *thread, number: *number, start_ns, end_ns, is_unfinished: end.is_none() }
        };
        let mut steps: Vec<StepRange> = self.steps.iter().map(step).collect();
        steps.sort_by_key(|step| (step.start_ns, step.number));
        steps
    }

    pub(crate) fn marks_in_ns(&self, clock: &TickClock) -> Vec<Mark> {
        let mark = |(thread, ticks): &(u32, u64)| Mark { thread: *thread, time_ns: clock.monotonic_ns(*ticks) };
        let mut marks: Vec<Mark> = self.marks.iter().map(mark).collect();
        marks.sort_by_key(|mark| mark.time_ns);
        marks
    }

    pub(crate) fn windows_in_ns(&self, clock: &TickClock) -> Vec<Window> {
        let window = |(ticks, is_on, cycle): &(u64, bool, u64)| Window {
            time_ns: clock.monotonic_ns(*ticks),
            is_on: *is_on,
            cycle: *cycle,
        };
        let mut windows: Vec<Window> = self.windows.iter().map(window).collect();
        windows.sort_by_key(|window| window.time_ns);
        windows
    }
}

//! What of a capture's threads must be known before their rows: the few events that steps, the begin of the trace and
//! the list of threads depend on.

use super::super::{USER_SCOPE, kind_of_label};
use super::own_functions::OwnFunctions;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use stepscope_capture::layout::scope;
use stepscope_capture::{Capture, Event, EventSink, Mark, MemoryEvent, StepRange};
use stepscope_run::{BACKWARD_SCOPE, ListedCalls, ResolvedFilter, ThreadFilter, note_forward};
use stepscope_trace::SliceKind;

/// The sink that picks them.
pub(super) struct TraceSkeleton<'a> {
    resolved: &'a ResolvedFilter,
    thread_filter: &'a ThreadFilter,
    /// By name: labels of steps, of waits for data, of optimizers.
    is_of_steps: Vec<bool>,
    calls: ListedCalls,
    thread: u32,
    own: OwnFunctions,
    /// The first event of the thread in each span that is no call, and the first call.
    first: Vec<[Option<Event>; 2]>,
    first_op: Option<Event>,
    /// For whose operators the thread ran backward nodes.
    forwards: Vec<u64>,
    /// The first call of each module on the thread, by name.
    modules: HashMap<u32, Option<Event>>,
    events: Vec<Event>,
    steps: Vec<StepRange>,
    marks: Vec<Mark>,
    /// The first of each thread, device and kind.
    memory: HashMap<(u32, u8, Option<u8>, bool), MemoryEvent>,
    /// Descriptions of collectives that were met, each on a thread.
    described: HashSet<(u32, u32)>,
    has_unfinished: bool,
}

impl<'a> TraceSkeleton<'a> {
    pub(super) fn new(resolved: &'a ResolvedFilter, thread_filter: &'a ThreadFilter, capture: &Capture) -> Self {
        let is_of_steps = |name: &String| kind_of_label(name) != SliceKind::Annotation;
        Self {
            resolved,
            thread_filter,
            is_of_steps: capture.names.iter().map(is_of_steps).collect(),
            calls: ListedCalls::of(&capture.names),
            thread: 0,
            own: OwnFunctions::default(),
            first: Vec::new(),
            first_op: None,
            forwards: Vec::new(),
            modules: HashMap::new(),
            events: Vec::new(),
            steps: Vec::new(),
            marks: Vec::new(),
            memory: HashMap::new(),
            described: HashSet::new(),
            has_unfinished: false,
        }
    }

    /// True when the end of something that is selected was not recorded.
    pub(super) fn has_unfinished(&self) -> bool {
        self.has_unfinished
    }

    /// True when the whole list is needed to know which calls are Stepscope's own.
    pub(super) fn is_unclear(&self) -> bool {
        self.own.is_unclear()
    }

    /// What follows is of this thread.
    pub(super) fn begin_thread(&mut self, thread: u32) {
        self.events.extend(self.first.drain(..).flatten().flatten());
        self.events.extend(self.first_op.take());
        // Not every thread may be shown in the end: each has its own.
        self.events.extend(self.modules.drain().filter_map(|(_, event)| event));
        self.own.begin_thread();
        self.thread = thread;
        self.forwards.clear();
    }

    /// Puts what was picked where a capture has it.
    pub(super) fn finish_into(&mut self, capture: &mut Capture) {
        self.begin_thread(0);
        let key = |event: &Event| (event.thread, event.start_ns, Reverse(event.end_ns));
        self.events.sort_by_key(key);
        // One may be the first op, and the first event at all.
        self.events.dedup();
        capture.events = std::mem::take(&mut self.events);
        self.steps.sort_by_key(|step| (step.start_ns, step.number));
        capture.steps = std::mem::take(&mut self.steps);
        self.marks.sort_by_key(|mark| mark.time_ns);
        capture.optimizer_steps = std::mem::take(&mut self.marks);
        capture.memory = self.memory.values().copied().collect();
        capture.memory.sort_by_key(|event| (event.thread, event.time_ns, event.device_type, event.device_index));
    }
}

/// Puts `event` in the place of one that starts later.
#[inline]
fn keep_first(first: &mut Option<Event>, event: &Event) {
    if first.is_none_or(|first| event.start_ns < first.start_ns) {
        *first = Some(*event);
    }
}

impl EventSink for TraceSkeleton<'_> {
    #[inline]
    fn range(&mut self, event: &Event) {
        if event.scope == BACKWARD_SCOPE {
            let known = self.forwards.len();
            note_forward(&mut self.forwards, event.forward_thread.unwrap_or(0));
            if self.forwards.len() > known {
                self.events.push(*event);
            }
        }
        let is_shown = self.thread_filter.has_event(event);
        let Some((start_ns, _)) = self.resolved.clip_event(event).filter(|_| is_shown) else { return };
        let is_call = scope::is_call(event.scope);
        if self.calls.is_own(event) {
            let ran = event.start_ns..event.end_ns;
            let calls = self.first.iter_mut().map(|[_, call]| call).chain(self.modules.values_mut());
            for call in calls {
                *call = call.filter(|call| !self.own.has(&ran, call.start_ns..call.end_ns));
            }
            self.own.add(ran);
            return;
        }
        if is_call && self.own.call(event.start_ns..event.end_ns) {
            return;
        }
        self.has_unfinished |= event.is_unfinished;
        let span = self.resolved.span_of(start_ns).unwrap_or(0);
        if self.first.len() <= span {
            self.first.resize(span + 1, [None; 2]);
        }
        keep_first(&mut self.first[span][usize::from(is_call)], event);
        match event.scope {
            USER_SCOPE if self.is_of_steps[event.name as usize] => self.events.push(*event),
            USER_SCOPE => {}
            scope::MODULE => keep_first(self.modules.entry(event.name).or_default(), event),
            _ if is_call => {}
            _ => keep_first(&mut self.first_op, event),
        }
        if let Some(recorded) = event.collective
            && self.described.insert((self.thread, recorded.description))
        {
            self.events.push(*event);
        }
    }

    fn memory(&mut self, event: &MemoryEvent) {
        if self.resolved.contains(event.time_ns) && self.thread_filter.has(event.thread, event.time_ns) {
            let key = (event.thread, event.device_type, event.device_index, event.is_out_of_memory());
            let first = self.memory.entry(key).or_insert(*event);
            if event.time_ns < first.time_ns {
                *first = *event;
            }
        }
    }

    fn step(&mut self, step: &StepRange) {
        self.has_unfinished |= step.is_unfinished && self.resolved.contains(step.start_ns);
        self.steps.push(*step);
    }

    fn mark(&mut self, mark: &Mark) {
        self.marks.push(*mark);
    }
}

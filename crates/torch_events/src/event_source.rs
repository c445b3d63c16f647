//! A capture's events and steps as one list of items, under the names that they are listed by.

use crate::calls::Calls;
use crate::device::{Annotation, DeviceActivities};
use crate::numbers::Numbers;
use crate::tree::Placed;
use rustc_hash::FxHashMap;
use std::ops::Range;
use stepscope_capture::layout::scope;
use stepscope_capture::{Capture, DeviceActivity, Event, MemoryEvent, StepRange};
use stepscope_run::ExcludeDevice;

/// Operators that only serve to record others or to look at a tensor: they are not listed.
const HIDDEN: [&str; 6] = [
    "profiler::_record_function_enter",
    "profiler::_record_function_enter_new",
    "profiler::_record_function_exit",
    "aten::is_leaf",
    "aten::output_nr",
    "aten::_version",
];
const STEP: &str = "ProfilerStep#";
/// What all steps are called together.
pub(crate) const ANY_STEP: &str = "ProfilerStep*";
/// What allocations and frees are called, and those that failed.
const MEMORY: [&str; 2] = ["[memory]", "[OutOfMemory]"];

/// For each name the first that is listed alike, the number of names for all steps; `None` for those that are not
/// listed.
pub(crate) fn listed(names: &[String]) -> Vec<Option<u32>> {
    let any_step = names.len() as u32;
    // The same text may have been written twice.
    let mut first: FxHashMap<&str, u32> = FxHashMap::default();
    let listed = |(id, name)| match name {
        name if HIDDEN.contains(&name) => None,
        name if name.starts_with(STEP) || name == ANY_STEP => Some(any_step),
        name => Some(*first.entry(name).or_insert(id)),
    };
    (0_u32..).zip(names.iter().map(String::as_str)).map(listed).collect()
}

/// What may be listed.
pub(crate) enum Item<'a> {
    Event(Event),
    Step(&'a StepRange),
    DeviceActivity(DeviceActivity),
    Annotation(Annotation),
    Memory(&'a MemoryEvent),
}

impl Item<'_> {
    /// True for what ran on a device.
    pub(crate) fn is_on_device(&self) -> bool {
        match self {
            Self::DeviceActivity(device_activity) => device_activity.record.thread().is_none(),
            Self::Annotation(_) => true,
            Self::Event(_) | Self::Step(_) | Self::Memory(_) => false,
        }
    }
}

/// Items are numbered: first the capture's events, then its steps, what devices' profilers reported, labels on devices,
/// then memory events.
pub(crate) struct EventSource<'a> {
    capture: &'a Capture,
    zero_ns: i64,
    /// For each name of the capture the first that is listed alike; `None` for those that are not listed.
    listed: Vec<Option<u32>>,
    pub(crate) calls: Calls,
    pub(crate) activities: DeviceActivities,
    pub(crate) numbers: Numbers,
}

impl<'a> EventSource<'a> {
    pub(crate) fn of(capture: &'a Capture, zero_ns: i64, exclude: ExcludeDevice) -> Self {
        let listed = listed(&capture.names);
        let activities = DeviceActivities::of(capture, exclude, &listed);
        Self { capture, zero_ns, listed, calls: Calls::of(capture), activities, numbers: Numbers::of(capture) }
    }

    /// How many events and steps there are.
    pub(crate) fn host_ranges(&self) -> usize {
        self.capture.events.len() + self.capture.steps.len()
    }

    /// The numbers of all that is no memory event.
    pub(crate) fn ranges(&self) -> Range<u32> {
        0..(self.host_ranges() + self.capture.device.len() + self.activities.annotations.len()) as u32
    }

    /// The numbers of memory events.
    pub(crate) fn memory_events(&self) -> Range<u32> {
        let first = self.ranges().end;
        first..first + self.capture.memory.len() as u32
    }

    /// The names that items refer to.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = self.capture.names.clone();
        names.push(ANY_STEP.into());
        names.extend(MEMORY.map(String::from));
        names.extend(self.calls.module_names().cloned());
        names.extend(self.activities.texts.iter().cloned());
        names
    }

    pub(crate) fn item(&self, number: u32) -> Item<'a> {
        let capture = self.capture;
        let (events, host, device) = (capture.events.len(), self.host_ranges(), capture.device.len());
        let annotations = &self.activities.annotations;
        match number as usize {
            at if at < events => Item::Event(capture.events.at(at)),
            at if at < host => Item::Step(&capture.steps[at - events]),
            at if at < host + device => Item::DeviceActivity(capture.device.at(at - host)),
            at if at < host + device + annotations.len() => Item::Annotation(annotations[at - host - device]),
            at => Item::Memory(&capture.memory[at - host - device - annotations.len()]),
        }
    }

    /// The event that an item is.
    pub(crate) fn event(&self, item: u32) -> Option<Event> {
        let is_event = (item as usize) < self.capture.events.len();
        is_event.then(|| self.capture.events.at(item as usize))
    }

    /// The item of the operator that launched an activity record; [`NO_ROW`](crate::NO_ROW) without one.
    pub(crate) fn operator(&self, device_activity: u32) -> u32 {
        self.activities.operator(device_activity as usize - self.host_ranges())
    }

    /// Whether it is shown; a memory event may be.
    pub(crate) fn is_listed(&self, item: u32) -> bool {
        match self.item(item) {
            Item::Event(event) if scope::is_call(event.scope) => self.calls.is_listed(item as usize),
            Item::Event(event) => self.listed[event.name as usize].is_some(),
            Item::DeviceActivity(_) => self.activities.is_listed(item as usize - self.host_ranges()),
            Item::Step(_) | Item::Annotation(_) | Item::Memory(_) => true,
        }
    }

    /// Where an item lies, and its name.
    pub(crate) fn placed(&self, item: u32) -> Placed {
        let any_step = self.listed.len() as u32;
        let (thread, name, start_ns, end_ns, is_nested) = match self.item(item) {
            Item::DeviceActivity(device_activity) => {
                let placed = self.activities.placed(item as usize - self.host_ranges(), &device_activity);
                let beyond = MEMORY.len() as u32 + self.calls.module_names().len() as u32;
                let name = if placed.name <= any_step { placed.name } else { placed.name + beyond };
                (placed.thread, name, placed.start_ns, placed.end_ns, placed.is_nested)
            }
            Item::Annotation(of) => (of.thread, self.placed(of.label).name, of.start_ns, of.end_ns, false),
            Item::Event(event) => {
                let module = self.calls.module(&event).map(|place| any_step + 1 + MEMORY.len() as u32 + place);
                let name = module.or(self.listed[event.name as usize]).unwrap_or(any_step);
                (event.thread, name, event.start_ns, event.end_ns, !event.is_async)
            }
            Item::Step(step) => (step.thread, any_step, step.start_ns, step.end_ns, true),
            Item::Memory(event) => {
                let name = any_step + 1 + u32::from(event.is_out_of_memory());
                (event.thread, name, event.time_ns, event.time_ns, true)
            }
        };
        let start_ns = start_ns.saturating_sub(self.zero_ns);
        Placed { start_ns, end_ns: end_ns.saturating_sub(self.zero_ns).max(start_ns), thread, name, is_nested }
    }

    /// What an item was called, where it is listed by another name.
    pub(crate) fn traced_name(&self, item: u32) -> Option<String> {
        match self.item(item) {
            Item::Step(step) => Some(format!("{STEP}{}", step.number)),
            Item::Event(event) => {
                let is_step = self.listed[event.name as usize] == Some(self.listed.len() as u32);
                is_step.then(|| self.capture.names[event.name as usize].clone())
            }
            Item::Annotation(annotation) => self.traced_name(annotation.label),
            Item::DeviceActivity(_) | Item::Memory(_) => None,
        }
    }
}

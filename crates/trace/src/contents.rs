//! What a trace has, and how much of it.

use crate::{DeviceEventClass, Frame, SliceKind, Trace};
use serde::{Deserialize, Serialize};
use stepscope_base::{StringId, StringTable};

/// What a trace has, and how much of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Contents {
    /// Number of slices.
    pub slices: u64,
    /// Number of instants.
    pub instants: u64,
    /// Number of device events.
    pub device_events: u64,
    /// Number of allocations and frees.
    pub memory: u64,
    /// Number of calls on files.
    pub io: u64,
    /// Number of statements about collectives.
    pub collectives: u64,
    /// Number of edges between slices.
    pub flows: u64,
    /// Number of samples of counters.
    pub samples: u64,
    /// Number of samples of what threads run.
    #[serde(default)]
    pub stack_samples: u64,
    /// Whether shapes of operators' inputs are known.
    pub has_shapes: bool,
    /// Whether call stacks of operators are known.
    pub has_stacks: bool,
    /// Whether modules were recorded.
    pub has_modules: bool,
    /// Whether Python functions were recorded.
    pub has_python: bool,
    /// Whether call stacks of operators, Python functions, or samples of stacks, name files.
    pub has_source: bool,
    /// Whether kernels communicate.
    pub has_communication: bool,
    /// About how many bytes of memory it takes: its largest tables.
    pub held_bytes: u64,
}

impl Contents {
    /// What `trace` has.
    pub fn of(trace: &Trace) -> Self {
        let is_there = |kind: SliceKind| trace.slices.kind.contains(&kind);
        let is_named = |id: StringId| id != StringTable::EMPTY;
        let held_bytes = trace.slices.len() * 45
            + trace.ops.slice.len() * 48
            + trace.device_events.len() * 24
            + trace.memory.len() * 104
            + trace.stacks.len() * 12
            + trace.strings.len() * 64;
        Self {
            slices: trace.slices.len() as u64,
            instants: trace.instants.len() as u64,
            device_events: trace.device_events.len() as u64,
            memory: trace.memory.len() as u64,
            io: trace.io.len() as u64,
            collectives: trace.collectives.len() as u64,
            flows: trace.flows.len() as u64,
            samples: trace.counters.iter().map(|counter| counter.time_ns.len() as u64).sum(),
            stack_samples: trace.stack_samples.len() as u64,
            has_shapes: trace.has_shapes(),
            has_stacks: trace.ops.info.iter().any(|info| is_named(info.stack)),
            has_modules: is_there(SliceKind::Module),
            has_python: is_there(SliceKind::PythonFunction),
            has_source: has_source(trace),
            has_communication: trace.device_events.iter().any(|event| event.class == DeviceEventClass::Communication),
            held_bytes: held_bytes as u64,
        }
    }

    /// What both have together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            slices: self.slices + other.slices,
            instants: self.instants + other.instants,
            device_events: self.device_events + other.device_events,
            memory: self.memory + other.memory,
            io: self.io + other.io,
            collectives: self.collectives + other.collectives,
            flows: self.flows + other.flows,
            samples: self.samples + other.samples,
            stack_samples: self.stack_samples + other.stack_samples,
            has_shapes: self.has_shapes | other.has_shapes,
            has_stacks: self.has_stacks | other.has_stacks,
            has_modules: self.has_modules | other.has_modules,
            has_python: self.has_python | other.has_python,
            has_source: self.has_source | other.has_source,
            has_communication: self.has_communication | other.has_communication,
            held_bytes: self.held_bytes.saturating_add(other.held_bytes),
        }
    }
}

fn has_source(trace: &Trace) -> bool {
    let names_file = |text: StringId| Frame::of_stack(trace.strings.get(text)).any(|frame| frame.file.is_some());
    let calls = trace.slices.ids().filter(|id| trace.slices.kind(*id) == SliceKind::PythonFunction);
    let mut texts = trace.ops.info.iter().map(|info| info.stack).chain(calls.map(|id| trace.slices.name[id.index()]));
    let samples = trace.stack_samples.iter().filter_map(|sample| sample.stack);
    let mut frames = samples.flat_map(|stack| trace.stacks.frames(stack));
    texts.any(names_file) || frames.any(names_file)
}

//! # Definition
//! For each module: how often it was called, and the time, memory and work of its forward and its backward pass.
//! A row is a place in the tree of calls, such as `GPT_0.Block_1.Linear_0`; totals include the modules that it calls,
//! self does not. Forward host time is that of its calls. Backward host time is that of the nodes of the backward pass
//! that belong to its operators. Device time is the sum of durations of the device events launched in either pass.
//! Allocated bytes are those that its operators asked for in both passes, whatever was freed; operations (`flops`) are
//! the work of its operators in both passes. Multiplications with an addition (`macs`) are half of the operations of
//! matrix products, convolutions, attention and recurrent layers. The time of the forward pass (`forward_ns`) is that on
//! devices where the trace has any, else that of the calls on the host. Shares are those of the outermost module.
//!
//! A row is a module, or all modules of one class at one depth (`--group-by class`), whose shares are those of all outermost
//! modules together. `--depth` leaves out what lies deeper. With `--top N` each depth has only the rows that are among its
//! first N by parameters, by multiplications of the forward pass or by time of the forward pass.
//!
//! # Units
//! Nanoseconds; counts of calls; bytes; operations, of which a multiplication with an addition is two; operations in a
//! second, rounded; shares from 0 to 1.
//!
//! # Source
//! Calls of `nn.Module` as the framework's profiler recorded them (`with_stack` or `with_modules`). A node of the backward
//! pass belongs to the module of its forward operator, by autograd's sequence number or the profiler's arrows; what runs
//! inside such a node belongs with it. Memory as the framework's allocators reported it (`profile_memory`), work by the
//! formulas that `operators` has. Parameters are those of the module and of the modules in it, each counted once, when it
//! was first called; traces of `torch.profiler` do not have them.
//!
//! # Edge cases
//! A module that is called again in the backward pass (checkpointing) keeps its place below the module that asked for
//! it; its call counts, its time is backward time. What runs in no module has no row, nor has what the framework records
//! of the backward pass without a link. Without memory events or shapes, bytes and operations are absent. For one step,
//! what starts inside it on the host. A module that only holds others, as a list does, is never called: it has no row, and
//! no depth of its own. Of ranks that do not have the same parameters, those with the most count, as of one GPU.

mod account;
mod classes;
mod profile;

use crate::{Analysis, AnalysisContext, GroupBy, Joined, Needs, Options, Outcome, Selection};
pub(crate) use account::ModuleTree;
pub use classes::ModuleClass;
pub use profile::ModuleProfile;
use stepscope_trace::Trace;

/// Time of one pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PassTime {
    /// On the host.
    pub host_total_ns: i64,
    /// The same without the modules that it calls.
    pub host_self_ns: i64,
    /// Sum of durations of device events.
    pub device_total_ns: i64,
    /// The same without the modules that it calls.
    pub device_self_ns: i64,
}

columns! {
    /// One module at one place in the tree of calls.
    #[derive(Clone, PartialEq, Eq, Debug, Default)]
    pub struct ModuleRow {
        /// The place of the module in the tree of calls: `GPT_0.Block_1.Linear_0`.
        path: String => Text,
        /// The class of the module. Absent when not known.
        module_class: Option<String> => Text,
        /// Number of modules around it.
        depth: i64 => Count,
        /// Number of calls.
        count: i64 => Count,
        /// How large it is, and what its forward pass computes.
        profile: ModuleProfile,
        ..ModuleProfile = |row| &row.profile,
        /// Time of the forward pass.
        forward: PassTime,
        /// Time of the backward pass.
        backward: PassTime,
        /// Time on the host in the forward pass, the modules that it calls included.
        forward_host_total_ns => Nanoseconds = |row| row.forward.host_total_ns,
        /// Time on the host in the forward pass, without the modules that it calls.
        forward_host_self_ns => Nanoseconds = |row| row.forward.host_self_ns,
        /// Time on the host in the backward pass, the modules that it calls included.
        backward_host_total_ns => Nanoseconds = |row| row.backward.host_total_ns,
        /// Time on the host in the backward pass, without the modules that it calls.
        backward_host_self_ns => Nanoseconds = |row| row.backward.host_self_ns,
        /// Sum of the durations of the device events of both passes, the modules that it calls included.
        device_total_ns => Nanoseconds = ModuleRow::device_total_ns,
        /// Sum of the durations of the device events of the forward pass, the modules that it calls included.
        forward_device_total_ns => Nanoseconds = |row| row.forward.device_total_ns,
        /// Sum of the durations of the device events of the forward pass, without the modules that it calls.
        forward_device_self_ns => Nanoseconds = |row| row.forward.device_self_ns,
        /// Sum of the durations of the device events of the backward pass, the modules that it calls included.
        backward_device_total_ns => Nanoseconds = |row| row.backward.device_total_ns,
        /// Sum of the durations of the device events of the backward pass, without the modules that it calls.
        backward_device_self_ns => Nanoseconds = |row| row.backward.device_self_ns,
        /// Bytes allocated, the modules that it calls included. Absent when not recorded.
        allocated_bytes: Option<i64> => Bytes,
        /// Bytes allocated, without the modules that it calls. Absent when not recorded.
        allocated_self_bytes: Option<i64> => Bytes,
        /// Number of arithmetic operations of both passes. Absent when not known.
        flops => Count = |row| row.profile.flops(),
        /// The name of the module itself.
        name: String => Text,
        /// The path of the module that calls it.
        parent: Option<String> => Text,
    }
}

impl ModuleRow {
    /// Sum of the durations of the device events of both passes, the modules that it calls included.
    pub fn device_total_ns(&self) -> i64 {
        self.forward.device_total_ns.saturating_add(self.backward.device_total_ns)
    }
}

/// Every module asked for, callers before what they call, in the order in which they first do anything.
pub fn modules(trace: &Trace, selection: &Selection) -> Vec<ModuleRow> {
    rows(&AnalysisContext::new(trace, selection))
}

pub(crate) fn rows(context: &AnalysisContext<'_>) -> Vec<ModuleRow> {
    let Selection { depth, top, .. } = *context.selection;
    let mut rows = context.get::<ModuleTree>().rows();
    rows.retain(|row| depth.is_none_or(|depth| row.depth <= depth));
    let rows = profile::top_of_each_depth(rows, top, |row| (row.depth, &row.profile));
    for pass in rows.iter().flat_map(|row| [row.forward, row.backward]) {
        assert!(pass.device_self_ns <= pass.device_total_ns, "self is part of total");
        assert!(pass.host_self_ns <= pass.host_total_ns, "self is part of total");
    }
    rows
}

pub(crate) const ANALYSIS: Analysis = Analysis {
    options: Options { group_by: &[GroupBy::Module, GroupBy::Class], tree: true, ..Options::NONE },
    ..Analysis::of(outcome)
}
.needing(Needs::Joined(Joined::by::<ModuleTree>()));

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    match context.selection.group_by {
        Some(GroupBy::Class) => Outcome::of(context, &classes::rows(context)),
        _ => Outcome::of(context, &rows(context)),
    }
}

#[cfg(test)]
mod tests;

//! The recording core that lives inside somebody's training process.
//!
//! Each thread owns a buffer over a mapped segment of the process's capture. Beginning or ending an op is a clock read
//! and a few stores: no lock, no system call, no allocation. Everything slower happens once a segment, or on a helper
//! thread. Nothing here panics, blocks for long or raises into the job: on trouble records are dropped and counted.
//!
//! The crate must never be unloaded while hooks may still call into it.

#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

mod buffer;
mod call_names;
mod calls;
mod clock;
mod control_group;
mod counters;
mod fork;
mod fork_state;
mod helper;
mod host_counters;
mod inputs;
mod io;
mod labels;
mod launchers;
mod lock;
mod memory;
mod names;
mod own_descriptors;
mod ring;
mod session;
mod snapshot;
mod stack_samples;

pub use buffer::{
    OpenOp, begin, begin_with_inputs, counter, describe, describe_collective, device_activity, device_clock, end,
    innermost, outermost_call, pop_call, pop_calls, pop_outer_call, push_call, set_framework_thread, set_outer_calls,
    set_profiler_state, set_thread_words, thread_words,
};
pub use call_names::{CallName, call_name, call_name_with};
pub use calls::{OpenCall, are_all_written, start_calls, stop_calls, thread_id};
pub use clock::{MonotonicTicks, ticks};
pub use counters::{start_counters, stop_counters};
pub use fork_state::{parent_window, publish_to_children};
pub use helper::{HELPER_THREAD, HelperTask, run_helper_task, set_helper_task, with_signals_blocked};
pub use io::{capture_number, define_file, io_call};
pub use labels::{
    begin_constant_label, begin_label, begin_label_as, begin_label_with_inputs, end_constant_label, end_label,
    mark_step, name_thread, reintroduce_thread, step_begin, step_drop, step_end,
};
pub use launchers::launcher_facts;
pub use lock::{ForkGuard, ForkLock};
pub use memory::{memory, out_of_memory};
pub use names::Name;
pub use snapshot::{before_snapshot, snapshot, snapshot_on_signal};
pub use stack_samples::StackWriter;
/// An activity record, and the kind of device that it is about.
pub use stepscope_capture::DeviceActivity;
/// Numbers of profiler states.
pub use stepscope_capture::ProfilerState;
/// How a collective is described.
pub use stepscope_capture::collectives;
/// What devices' profilers report.
pub use stepscope_capture::device;
/// A sample of what a thread runs, and what it does meanwhile.
pub use stepscope_capture::{Doing, StackSample};

pub use session::{
    Opened, close, close_at_exit, is_open, last_error, learn_metadata, open, open_ring, open_when_needed, set_metadata,
    set_own_metadata, set_window,
};
pub use stepscope_capture::inputs::Signature;
/// Which calls on files there are, and what is recorded of one.
pub use stepscope_capture::io::{IoAction, IoFunction, IoRecord, UNKNOWN_ERROR};
pub use stepscope_capture::layout::{RANGE_NUMBER, scope};

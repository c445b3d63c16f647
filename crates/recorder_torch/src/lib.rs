//! The PyTorch hook, in Rust alone: nothing is compiled against PyTorch.
//!
//! PyTorch calls registered callbacks around every operator, autograd node and user range. The functions that register
//! them are exported symbols; the object they receive has no stable layout, so its fields are found by behaviour: a few
//! known ops run at start-up ([`probe`]), and only an offset that explains every one of them, alone, is used. A layout
//! that a known release should not have is refused as well. What cannot be proven is not used: [`Refusal`] says why.

#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

mod api;
mod arguments;
mod collectives;
mod hook;
mod inputs;
mod kineto;
mod known_releases;
mod listeners;
mod numbers;
mod peek;
mod probe;
mod solve;
mod state;

pub use arguments::{Argument, ReadArguments, set_argument_reader};
pub use collectives::{
    InfoLayout, probe_collectives, prove_tensors_begin, prove_tensors_end, set_gloo_groups, set_labelled_group,
};
pub use hook::{are_inputs_recorded, hook, is_hooked, unhook};
pub use inputs::MAX_SCALARS;
pub use inputs::probe::{KnownTensor, inputs_probe_begin, inputs_probe_cancel, inputs_probe_end};
pub use kineto::is_kineto_used;
pub use listeners::{has_other_listeners, probe_listeners};
pub use numbers::want_numbers;
pub use peek::Peek;
pub use probe::{probe_begin, probe_cancel, probe_end};
pub use solve::{Layout, Refusal};
pub use state::{
    attend_thread, enter_state, is_attending, leave_state, others_begin, others_end, probe_state, start_state,
    step_aside, step_back, stop_state,
};

//! What is listed beside operators and labels, and worked out of them.

use stepscope_run::ExcludeDevice;

/// As the keywords of `torch.profiler` say it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// `profile_memory`: bytes, and rows for what lies outside of all events.
    pub memory: bool,
    /// `with_flops`: operations.
    pub flops: bool,
    /// `capture_overload_names`: the overloads of operators.
    pub overloads: bool,
    /// Of what devices' profilers reported, what is not listed.
    pub exclude_device: ExcludeDevice,
}

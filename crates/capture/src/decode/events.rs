//! What a capture says, once decoded.

/// An op, a label or a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Event {
    /// Ordinal of its thread.
    pub thread: u32,
    /// Index into the capture's names.
    pub name: u32,
    /// The framework's scope: 0 op, 1 backward, 7 label …; or one of [`scope`](crate::layout::scope).
    pub scope: u8,
    /// Start, ns.
    pub start_ns: i64,
    /// End, ns; of an unfinished event the last moment its process is known to have lived.
    pub end_ns: i64,
    /// True when its end was not recorded.
    pub is_unfinished: bool,
    /// True when it ended on another thread than it began on, or says of itself that it may.
    pub is_async: bool,
    /// Autograd's sequence number; of a garbage collection its generation.
    pub sequence_number: Option<i64>,
    /// The framework thread that ran the forward op.
    pub forward_thread: Option<u64>,
    /// What it was called with: index into the capture's inputs.
    pub inputs: Option<u32>,
    /// What it says of the collective that it is.
    pub collective: Option<CollectiveOf>,
}

/// The collective that an event is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CollectiveOf {
    /// Index into the capture's names of its description; see [`crate::collectives`].
    pub description: u32,
    /// Its number within its group.
    pub sequence_number: Option<i64>,
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

impl StepRange {
    /// Says when it ended.
    pub(super) fn end(&mut self, at_ns: i64) {
        self.end_ns = at_ns.max(self.start_ns);
        self.is_unfinished = false;
    }
}

/// A moment on a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Ordinal of its thread.
    pub thread: u32,
    /// When, ns.
    pub time_ns: i64,
    /// The number of the step that it ends, where that was recorded.
    pub number: Option<i64>,
}

/// A sampled quantity at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Ordinal of the thread that took it.
    pub thread: u32,
    /// Index into the capture's names: what was sampled.
    pub name: u32,
    /// When, ns.
    pub time_ns: i64,
    /// Its value, in the unit that the name says.
    pub value: i64,
}

/// From a moment on, what a thread runs was begun under a profiler state: PyTorch hands the state of a thread on with
/// the work that other threads do for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProfilerState {
    /// Ordinal of the thread.
    pub thread: u32,
    /// When, ns.
    pub since_ns: i64,
    /// The state's number within the process. [`NOT_KNOWN`](Self::NOT_KNOWN) where it is none of the recorder's.
    pub number: u64,
}

impl ProfilerState {
    /// The number of states that are none of the recorder's.
    pub const NOT_KNOWN: u64 = 0;
    /// The number of the state of threads that asked for none of their own.
    pub const OF_NOBODY: u64 = 1;
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

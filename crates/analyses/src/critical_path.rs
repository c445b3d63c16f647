//! # Definition
//! For each step, the chain of work that its length consists of, by class: shorten what is on it, and the step becomes
//! shorter. The chain is followed backwards from the end of the step's last work to the step's start; where something
//! waited, it goes on with what was waited for last. So the parts sum to the length, to the nanosecond.
//!
//! The step ends with its host window, or with the last device event launched inside it when that ends later; the chain
//! begins there, on the thread that runs the step or with that event. From then on:
//!
//! - A device event began when the last of these was there: its launch, the event before it on its stream, the last
//!   event of another stream that its stream was told to wait for. When it was the launch, the time up to the event's
//!   start is *launch latency*, and the chain goes on with the launching thread at the end of the launch (or at the
//!   event's start, if that was earlier). Else the time in between is *queue wait*, and it goes on with that event.
//! - A call in which the host waits for the device ended with the last device event that it waited for: what was
//!   launched before the call began, on the stream or before the event or on the device that it names, and ended within
//!   the call. The time from then to its end is *host sync*, and the chain goes on with that event. A call that waited
//!   for nothing is on the chain itself, as host sync.
//! - A thread that is in no operator, call or wait for data may wait for another: for the threads of the process that
//!   launch device work, that run the backward pass (they have backward nodes of operators of another thread) or run
//!   the step. The chain goes on with the thread that was last in one, if that was since the thread's own last one; the
//!   time until then is the thread's own.
//! - Else the chain follows the thread's own past.
//!
//! Time on a thread is by the first of these that it is in: a call that waits for the device (*host sync*), a wait for
//! data (*dataloader*), another call of the device's API (*runtime*), an operator (*host op*), *other*.
//!
//! # Units
//! Nanoseconds; `start_ns` counts from the start of the trace. `host_ns` is the length of the step's host window.
//!
//! # Source
//! Program order on threads and streams; launches by correlation; waits between host, streams and events, where the
//! device's profiler reports them; edges from forward operators to backward nodes.
//!
//! # Edge cases
//! Steps overlap when the device runs behind the host: the path of a step may then begin with device work of the step
//! before. A wait of which the profiler does not report what for is for all devices of the rank. Time of a stream that
//! nothing explains, before its first event or before one whose launch is not known, continues on the step's thread.
//! What other processes and ranks did is not followed: waiting inside a communication kernel is communication.
//! `critical_path_ranks` follows it. Device events of no duration are not on it.

mod graph;
mod meetings;
#[cfg(test)]
mod oracle;
mod pieces;
mod ranks;
mod slack;
mod walk;

use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
pub(crate) use pieces::{PathPiece, Paths, device_class, each_path};
pub use ranks::RankTime;
pub(crate) use ranks::{JobPath, job_paths};
pub(crate) use slack::slacks;

use stepscope_base::Span;
use stepscope_trace::{Step, StepSource, Trace};

/// What a part of a path is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PathClass {
    /// A computing kernel runs.
    Compute,
    /// A communication kernel runs.
    Communication,
    /// A copy or a fill runs.
    Copy,
    /// From a launch to its device event, which waited for nothing else.
    LaunchLatency,
    /// From one device event to the next, which was launched already.
    QueueWait,
    /// The host waits for a device, or comes back from it.
    HostSync,
    /// The training loop waits for its next batch.
    DataLoader,
    /// A thread is inside another call of the device's API.
    Runtime,
    /// A thread is inside an operator.
    HostOp,
    /// A thread does anything else, or nothing that was recorded.
    Other,
}

impl PathClass {
    /// Every class, in the order of the columns.
    pub const ALL: [Self; 10] = [
        Self::Compute,
        Self::Communication,
        Self::Copy,
        Self::LaunchLatency,
        Self::QueueWait,
        Self::HostSync,
        Self::DataLoader,
        Self::Runtime,
        Self::HostOp,
        Self::Other,
    ];

    /// The class's name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Communication => "communication",
            Self::Copy => "copy",
            Self::LaunchLatency => "launch_latency",
            Self::QueueWait => "queue_wait",
            Self::HostSync => "host_sync",
            Self::DataLoader => "dataloader",
            Self::Runtime => "runtime",
            Self::HostOp => "host_op",
            Self::Other => "other",
        }
    }
}

columns! {
    /// The time of a path, by class.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct PathParts {
        /// Time of each class, as [`PathClass::ALL`].
        ns: [i64; PathClass::ALL.len()],
        /// Time of the path in computing kernels.
        compute_ns => Nanoseconds = |parts| parts.of(PathClass::Compute),
        /// Time of the path in communication. Waiting for other ranks may be in it.
        comm_ns => Nanoseconds = |parts| parts.of(PathClass::Communication),
        /// Time of the path in memcpys and memsets.
        copy_ns => Nanoseconds = |parts| parts.of(PathClass::Copy),
        /// Time of the path from a launch to its device event, or from asking for a work on the host to the work, which
        /// waited for nothing else.
        launch_latency_ns => Nanoseconds = |parts| parts.of(PathClass::LaunchLatency),
        /// Time of the path from one device event, or work on the host, to the next one, which was already launched.
        queue_wait_ns => Nanoseconds = |parts| parts.of(PathClass::QueueWait),
        /// Time of the path in which the host waits for a device, or returns from waiting.
        host_sync_ns => Nanoseconds = |parts| parts.of(PathClass::HostSync),
        /// Time of the path in which the training loop waits for its next batch.
        dataloader_ns => Nanoseconds = |parts| parts.of(PathClass::DataLoader),
        /// Time of the path in other calls of the device's API.
        runtime_ns => Nanoseconds = |parts| parts.of(PathClass::Runtime),
        /// Time of the path in operators on the host.
        host_op_ns => Nanoseconds = |parts| parts.of(PathClass::HostOp),
        /// The rest of the path: host code outside of operators, or time in which nothing was recorded.
        other_ns => Nanoseconds = |parts| parts.of(PathClass::Other),
    }
}

impl PathParts {
    /// The time of one class.
    pub fn of(&self, class: PathClass) -> i64 {
        self.ns[class as usize]
    }

    /// All of it.
    pub fn total_ns(&self) -> i64 {
        self.ns.iter().sum()
    }

    pub(crate) fn add(&mut self, class: PathClass, ns: i64) {
        self.ns[class as usize] += ns;
    }
}

columns! {
    /// The critical path of one step.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct CriticalPath {
        /// The rank.
        rank: u32 => Count,
        /// The number of the step.
        step: i64 => Count,
        /// When the step starts, counted from the start of the trace.
        start_ns: i64 => Nanoseconds,
        /// Length of the critical path, from the start of the step to the end of its last work. It is the sum
        /// of the parts.
        length_ns: i64 => Nanoseconds,
        /// Length of the step on the host.
        host_ns: i64 => Nanoseconds,
        /// The parts.
        parts: PathParts,
        ..PathParts = |row| &row.parts,
        /// Whether all of the step was recorded.
        is_complete: bool => Flag,
        /// How the limits of the step are known.
        source: StepSource => Text,
    }
}

/// The path of every step asked for, by rank and start.
pub fn critical_path(trace: &Trace, selection: &Selection) -> Vec<CriticalPath> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<CriticalPath> {
    context.get::<Paths>().by_step.clone()
}

/// The row of a step, whose path fills `span`.
fn of_step(step: &Step, span: Span, pieces: &[PathPiece]) -> CriticalPath {
    let mut parts = PathParts::default();
    pieces.iter().for_each(|piece| parts.add(piece.class, piece.span.duration_ns()));
    let length_ns = span.duration_ns();
    assert_eq!(parts.total_ns(), length_ns, "parts sum to the path");
    CriticalPath {
        rank: step.rank,
        step: step.number,
        start_ns: span.start_ns,
        length_ns,
        host_ns: step.span.duration_ns(),
        parts,
        is_complete: step.is_complete,
        source: step.source,
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::EachRank);

named_cells!(PathClass);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream_waits::tests::add_wait;
    use stepscope_trace::drawn::drawn;
    use stepscope_trace::{Flow, FlowKind};

    /// Rows as `step: length = part class + …`, in us, empty parts left out.
    fn lines(trace: &Trace) -> Vec<String> {
        let line = |row: &CriticalPath| {
            let parts = PathClass::ALL.iter().zip(row.parts.ns).filter(|(_, ns)| *ns > 0);
            let parts: Vec<String> = parts.map(|(class, ns)| format!("{} {}", ns / 1_000, class.as_str())).collect();
            format!("{}: {} = {}", row.step, row.length_ns / 1_000, parts.join(" + "))
        };
        critical_path(trace, &Selection::default()).iter().map(line).collect()
    }

    fn check(drawing: &str, expected: &[&str]) {
        assert_eq!(lines(&drawn(drawing)), expected);
    }

    #[test]
    fn a_host_that_waits_for_the_device_is_not_on_the_path() {
        check(
            "rank 0 step     000000000000
             rank 0 cpu 1    .aaab.......
             rank 0 launch 1 ..C.........
             rank 0 sync 1   .....sssss..
             rank 0 stream 7 ....CCCC....",
            &["0: 12 = 4 compute + 1 launch_latency + 2 host_sync + 1 runtime + 1 host_op + 3 other"],
        );
    }

    #[test]
    fn a_step_reaches_to_the_end_of_its_device_work_and_back_through_the_queue() {
        check(
            "rank 0 step     00001111......
             rank 0 launch 1 C...NH........
             rank 0 stream 7 .CCCCCC.NNH...",
            &["0: 7 = 6 compute + 1 runtime", "1: 7 = 3 compute + 2 communication + 1 copy + 1 queue_wait"],
        );
    }

    #[test]
    fn a_device_that_is_not_behind_leaves_the_host_on_the_path() {
        check(
            "rank 0 step     00000000
             rank 0 input 1  ii......
             rank 0 cpu 1    ..aaaaa.
             rank 0 launch 1 ...C.D..
             rank 0 stream 7 ....C.D.",
            &["0: 8 = 2 dataloader + 2 runtime + 3 host_op + 1 other"],
        );
    }

    #[test]
    fn a_stream_that_waits_for_another_follows_it() {
        let mut trace = drawn(
            "rank 0 step     0000......
             rank 0 launch 1 NrwC......
             rank 0 stream 9 .NNNNN....
             rank 0 stream 7 .......CC.",
        );
        assert_eq!(lines(&trace), ["0: 9 = 2 compute + 3 launch_latency + 4 runtime"]);
        add_wait(&mut trace, ("w", 7), ("r", 9));
        assert_eq!(lines(&trace), ["0: 9 = 2 compute + 5 communication + 1 queue_wait + 1 runtime"]);
    }

    #[test]
    fn a_thread_that_pauses_follows_the_one_that_runs_its_backward_pass() {
        let mut trace = drawn(
            "rank 0 step     0000000000
             rank 0 python 1 pppppppppp
             rank 0 cpu 1    .ff.....u.
             rank 0 cpu 2    ....bbb...",
        );
        assert_eq!(lines(&trace), ["0: 10 = 3 host_op + 7 other"]);
        let slice = |name: &str| trace.slices.ids().find(|id| trace.slice_name(*id) == name).unwrap();
        let flow = Flow { from: slice("f"), to: slice("b"), kind: FlowKind::ForwardBackward };
        trace.flows.push(flow);
        assert_eq!(lines(&trace), ["0: 10 = 6 host_op + 4 other"]);
    }
}

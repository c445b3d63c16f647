//! Samples of what threads run, taken without following their calls.

use crate::{StackId, TrackId};
use serde::{Deserialize, Serialize};

/// What a thread does at the moment of a sample, as the system tells it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Doing {
    /// Not known.
    #[default]
    Unknown,
    /// It runs, or could.
    Running,
    /// It waits for the interpreter's lock.
    InterpreterLock,
    /// It waits for another thread: a lock, a condition, an event.
    Lock,
    /// It sleeps.
    Sleep,
    /// It reads or writes a file, or waits for the disk.
    File,
    /// It waits for a socket or a pipe, or for several at once.
    Connection,
    /// It waits for another process to end.
    Process,
    /// It is in another call of the system.
    System,
}

impl Doing {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Unknown,
        Self::Running,
        Self::InterpreterLock,
        Self::Lock,
        Self::Sleep,
        Self::File,
        Self::Connection,
        Self::Process,
        Self::System,
    ];

    /// Its name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Running => "running",
            Self::InterpreterLock => "interpreter_lock",
            Self::Lock => "lock",
            Self::Sleep => "sleep",
            Self::File => "file",
            Self::Connection => "connection",
            Self::Process => "process",
            Self::System => "system",
        }
    }
}

/// A sample of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackSample {
    /// The thread.
    pub track: TrackId,
    /// When, ns since the start of the trace.
    pub time_ns: i64,
    /// What it runs; `None` where that could not be read.
    pub stack: Option<StackId>,
    /// What it does.
    pub doing: Doing,
    /// Time that the thread ran since its sample before, ns; `None` for the first one, and where it is not known.
    pub ran_ns: Option<i64>,
    /// Time since then in which it could have run and did not.
    pub runnable_ns: Option<i64>,
}

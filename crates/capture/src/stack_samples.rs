//! Samples of what threads of Python run: where each one is, and what it waits for.

use std::collections::{BTreeMap, HashMap};

/// What a thread does at the moment of a sample, as the system tells it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Doing {
    /// Not known.
    #[default]
    Unknown = 0,
    /// It runs, or could.
    Running = 1,
    /// It waits for the interpreter's lock.
    InterpreterLock = 2,
    /// It waits for another thread: a lock, a condition, an event.
    Lock = 3,
    /// It sleeps.
    Sleep = 4,
    /// It reads or writes a file, or waits for the disk.
    File = 5,
    /// It waits for a socket or a pipe, or for several at once.
    Connection = 6,
    /// It waits for another process to end.
    Process = 7,
    /// It is in another call of the system.
    System = 8,
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

    /// Its name in files and tables.
    pub const fn as_str(self) -> &'static str {
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

    /// What has this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|doing| doing.as_str() == name)
    }
}

/// A sample of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackSample {
    /// Ordinal of the thread that was sampled.
    pub thread: u32,
    /// When, ns.
    pub time_ns: i64,
    /// Index into the capture's stacks; `None` where it could not be read.
    pub stack: Option<u32>,
    /// What the thread does.
    pub doing: Doing,
    /// Time that the thread has run so far, ns.
    pub cpu_ns: Option<i64>,
    /// Time that it could have run and did not so far, ns.
    pub runnable_ns: Option<i64>,
}

/// A stack: its innermost frame, as `file.py(12): function`, and the stack of its caller.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Called {
    /// Index into the capture's names.
    pub frame: u32,
    /// Index into the capture's stacks of one that stands before it.
    pub caller: Option<u32>,
}

/// Puts stacks in the order of their ids, callers first, and has samples refer to their places. `defined` are id, id of the
/// caller's stack and name of the frame; what refers to something that is not defined is not known.
pub(crate) fn resolve(defined: &[(u32, Option<u32>, u32)], names: u32, samples: &mut [StackSample]) -> Vec<Called> {
    let by_id: BTreeMap<u32, (Option<u32>, u32)> =
        defined.iter().map(|(id, caller, frame)| (*id, (*caller, *frame))).collect();
    let (mut stacks, mut places) = (Vec::with_capacity(by_id.len()), HashMap::new());
    for (id, (caller, frame)) in by_id {
        // A caller has the smaller id.
        let place_of_caller = caller.map(|caller| places.get(&caller).copied());
        if place_of_caller != Some(None) && frame < names {
            places.insert(id, stacks.len() as u32);
            stacks.push(Called { frame, caller: place_of_caller.flatten() });
        }
    }
    for sample in samples {
        sample.stack = sample.stack.and_then(|id| places.get(&id).copied());
    }
    stacks
}

/// The bits of a time; what is above them says what the thread does.
const TIME_BITS: u32 = 56;
/// A time that is not known.
const NO_TIME: u64 = (1 << TIME_BITS) - 1;

/// The words of a sample's record: what it says of which thread, by the system's number.
pub fn pack(tid: u32, sample: &StackSample) -> [u64; 3] {
    let stack = sample.stack.map_or(0, |stack| u64::from(stack) + 1);
    let time = |ns: Option<i64>| ns.and_then(|ns| u64::try_from(ns).ok()).map_or(NO_TIME, |ns| ns.min(NO_TIME - 1));
    [u64::from(tid) | stack << 32, time(sample.cpu_ns) | (sample.doing as u64) << TIME_BITS, time(sample.runnable_ns)]
}

/// The system's number of the thread, and what is said of it; its thread and time are 0.
pub fn unpack(words: [u64; 3]) -> (u32, StackSample) {
    let time = |word: u64| Some(word & NO_TIME).filter(|time| *time != NO_TIME).map(|time| time as i64);
    let doing = Doing::ALL.get((words[1] >> TIME_BITS) as usize).copied().unwrap_or_default();
    let sample = StackSample {
        thread: 0,
        time_ns: 0,
        stack: ((words[0] >> 32) as u32).checked_sub(1),
        doing,
        cpu_ns: time(words[1]),
        runnable_ns: time(words[2]),
    };
    (words[0] as u32, sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_stand_behind_their_callers_whatever_is_missing() {
        let sample = |stack| unpack(pack(1, &StackSample { stack, ..unpack([0; 3]).1 })).1;
        let mut samples = [sample(Some(5)), sample(Some(9)), sample(None), sample(Some(8)), sample(Some(6))];
        // 9 is called from one that is not there, 6 has a frame without a name; 5 stands before its caller.
        let defined = [(5, Some(3), 1), (3, None, 0), (9, Some(4), 1), (8, Some(3), 0), (6, None, 2)];
        let stacks = resolve(&defined, 2, &mut samples);
        let called = |frame, caller| Called { frame, caller };
        assert_eq!(stacks, [called(0, None), called(1, Some(0)), called(0, Some(0))]);
        assert_eq!(samples.map(|sample| sample.stack), [Some(1), None, None, Some(2), None]);
    }

    #[test]
    fn a_sample_is_read_as_it_was_written() {
        let whole = StackSample {
            thread: 0,
            time_ns: 0,
            stack: Some(7),
            doing: Doing::Sleep,
            cpu_ns: Some(12),
            runnable_ns: Some(1 << 40),
        };
        let bare = StackSample { stack: None, doing: Doing::Unknown, cpu_ns: None, runnable_ns: None, ..whole };
        for sample in [whole, bare] {
            assert_eq!(unpack(pack(77, &sample)), (77, sample));
        }
        assert_eq!(Doing::ALL.map(|doing| Doing::named(doing.as_str())), Doing::ALL.map(Some));
        assert_eq!(Doing::ALL.map(|doing| doing as usize), std::array::from_fn(|at| at));
    }
}

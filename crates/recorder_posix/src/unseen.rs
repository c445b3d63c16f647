//! What calls on files that are watched should have moved, as the system counts it: where that is more than what is
//! recorded, something went past the C library.
//!
//! The system counts the bytes of every `read` and `write` of a thread, whatever it is of. What this library sees to be of
//! something else is subtracted. A thread that ends does that itself: afterwards the system only knows what it moved
//! together with what finished children moved.

use crate::sockets;
use crate::thread_sums::{self, Sum, ThreadSums, ended, has_ended, known, mine, of_thread};
use std::fmt::Write;
use stepscope_recorder::{IoAction, IoFunction};

/// Metadata: of each thread its number, and the bytes that were read and written; with the number 0, of all threads that
/// have ended.
pub(crate) const KEY: &str = "io_bytes_of_system";

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Read,
    Written,
}

impl Way {
    /// That of a function that moves bytes.
    pub(crate) fn of(function: IoFunction) -> Self {
        if function.action() == IoAction::Write { Self::Written } else { Self::Read }
    }
}

/// The calling thread moved bytes of something that is not watched.
#[inline]
pub(crate) fn elsewhere(way: Way, moved: usize) {
    mine().add(if way == Way::Read { Sum::ReadElsewhere } else { Sum::WrittenElsewhere }, moved as u64);
}

/// Recording begins: what threads have moved so far is of no interest.
pub(crate) fn begin() {
    thread_sums::begin();
    sockets::begin();
    for tid in threads() {
        if let (Some(known), Some([read, written])) = (of_thread(tid), counted(tid)) {
            known.set(Sum::ReadElsewhere, read);
            known.set(Sum::WrittenElsewhere, written);
        }
    }
}

/// What the threads should have moved on files that are watched, as metadata say it.
pub(crate) fn of_system() -> String {
    // No thread ends meanwhile, and counts twice.
    let ended = ended();
    let mut text = String::new();
    let mut say = |tid: u32, [read, written]: [u64; 2]| {
        if read > 0 || written > 0 {
            let _ = write!(text, "{}{tid}:{read}:{written}", if text.is_empty() { "" } else { " " });
        }
    };
    say(0, ended.on_files);
    for tid in threads().filter(|tid| !has_ended(*tid)) {
        say(tid, on_files(tid, known(tid)).unwrap_or_default());
    }
    text
}

/// The bytes that a thread should have read and written on files that are watched; `sums`: what it moved elsewhere.
pub(crate) fn on_files(tid: u32, sums: Option<&ThreadSums>) -> Option<[u64; 2]> {
    let elsewhere = [Sum::ReadElsewhere, Sum::WrittenElsewhere].map(|sum| sums.map_or(0, |sums| sums.get(sum)));
    let [read, written] = counted(tid)?;
    Some([read.saturating_sub(elsewhere[0]), written.saturating_sub(elsewhere[1])])
}

fn threads() -> impl Iterator<Item = u32> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok())
}

/// The bytes that a thread has read and written by system calls.
fn counted(tid: u32) -> Option<[u64; 2]> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{tid}/io")).ok()?;
    let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some([number("rchar:")?, number("wchar:")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_counts_what_a_thread_reads() {
        let own = std::fs::read_link("/proc/thread-self").unwrap();
        let own = own.file_name().unwrap().to_str().unwrap().parse().unwrap();
        // Where other threads end meanwhile, the system may leave one out.
        assert!((0..1_000).any(|_| threads().any(|tid| tid == own)));
        let before = counted(own).unwrap()[0];
        let text = std::fs::read("/proc/self/stat").unwrap();
        assert!(counted(own).unwrap()[0] >= before + text.len() as u64);
    }
}

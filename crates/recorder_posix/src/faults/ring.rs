//! A ring into which the system writes the page faults of a thread, and what is mapped: its software events.

use std::ffi::{c_int, c_ulong};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which page faults a ring counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Faults {
    /// Each for which something had to be read. What is mapped comes with them.
    Major,
    /// One in [`MINOR_PERIOD`] of those that found their page in memory.
    Minor,
}

/// How many minor faults one stands for; the name of its function says it, too.
const MINOR_PERIOD: u64 = 64;

/// Where something happens: a thread, and one of the processors; all of them where it is negative.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) tid: c_int,
    pub(super) processor: c_int,
}

/// What the system wrote.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// When, on the monotonic clock.
    pub(super) time_ns: i64,
    pub(super) what: What,
}

#[derive(PartialEq, Eq, Debug)]
pub(super) enum What {
    Fault {
        faults: Faults,
        tid: u32,
        address: u64,
    },
    /// Memory with a file in it; the path is empty for other memory.
    Mapped {
        start: u64,
        end: u64,
        offset: u64,
        path: Vec<u8>,
    },
    /// There was no room for as many.
    Lost(u64),
}

/// `struct perf_event_attr`, as long as it is needed here.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    not_used: [u32; 11],
    clock: c_int,
    not_used_either: [u64; 2],
}

const _: () = assert!(size_of::<Attributes>() == 112);

const SOFTWARE: u32 = 1;
const MINOR_FAULTS: u64 = 5;
const MAJOR_FAULTS: u64 = 6;
/// A sample has the process and the thread, the time, the address.
const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 3;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
/// What is mapped, of data, too, with its path; each record with thread and time.
const MAPPINGS: u64 = 1 << 8 | 1 << 17 | 1 << 18 | 1 << 23;
const USE_CLOCK: u64 = 1 << 25;
const INHERIT_THREAD: u64 = 1 << 35;
const CLOSE_ON_EXEC: c_ulong = 1 << 3;

/// What more can be had, the best first: faults of the system on the process' behalf, which may need privileges, and
/// no processes that it forks, which older systems cannot leave out.
const CHOICES: [u64; 4] = [INHERIT_THREAD, INHERIT_THREAD | EXCLUDE_KERNEL, 0, EXCLUDE_KERNEL];

const PAGE: usize = 4096;
/// Pages of a ring, the first number for which the system lets the user have as much memory. Each mapping takes some 200
/// bytes, and where the processors are busy the helper thread may wait for a tenth of a second until it can read them.
const MAJOR_PAGES: [usize; 4] = [32, 8, 2, 1];
const MINOR_PAGES: [usize; 2] = [4, 1];

/// Where the first page says how far it is written and read.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// The kinds of records.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;

/// A ring. It has no descriptor: the mapping alone keeps it.
pub(super) struct Ring {
    base: *mut u8,
    data_bytes: usize,
    faults: Faults,
}

// SAFETY: the mapping is the value's own.
unsafe impl Send for Ring {}

fn last_error() -> c_int {
    crate::recorded::errno()
}

impl Ring {
    /// One for `place`, and with a processor for all threads that are started from there. `choice` is what an earlier one
    /// could have, the next one begins with that.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn open(faults: Faults, place: Place, choice: &mut usize) -> Result<Self, c_int> {
        let mut opened = Err(libc::EINVAL);
        for (at, more) in CHOICES.into_iter().enumerate().skip(*choice) {
            opened = open_event(faults, place, more);
            *choice = at;
            if !matches!(opened, Err(libc::EACCES | libc::EPERM | libc::EINVAL)) {
                break;
            }
        }
        let descriptor = opened.inspect_err(|_| *choice = 0)?;
        let pages: &[usize] = if faults == Faults::Major { &MAJOR_PAGES } else { &MINOR_PAGES };
        let mapped = pages.iter().find_map(|pages| map(descriptor, pages * PAGE));
        let reason = last_error();
        // SAFETY: it is ours. Past the C library, whose function this library stands for.
        unsafe { libc::syscall(libc::SYS_close, descriptor) };
        let (base, data_bytes) = mapped.ok_or(reason)?;
        Ok(Self { base, data_bytes, faults })
    }

    /// Hands over what was written since; the share of the ring that it filled.
    pub(super) fn read(&self, pid: u32, take: &mut dyn FnMut(Entry)) -> f64 {
        // SAFETY: both lie in the first page, aligned.
        let (head, tail) =
            unsafe { (&*self.base.add(HEAD).cast::<AtomicU64>(), &*self.base.add(TAIL).cast::<AtomicU64>()) };
        let end = head.load(Ordering::Acquire);
        let mut at = tail.load(Ordering::Relaxed);
        let filled = end.saturating_sub(at) as f64 / self.data_bytes as f64;
        let mut words = Vec::new();
        while at < end {
            let len = (self.word(at) >> 48) & !7;
            if len == 0 || at + len > end {
                break;
            }
            words.clear();
            words.extend((at..at + len).step_by(8).map(|at| self.word(at)));
            entry(&words, pid, self.faults).into_iter().for_each(&mut *take);
            at += len;
        }
        tail.store(end, Ordering::Release);
        filled
    }

    fn word(&self, at: u64) -> u64 {
        let at = at as usize & (self.data_bytes - 1) & !7;
        // SAFETY: within the data, which is as long as a power of two.
        unsafe { self.base.add(PAGE + at).cast::<u64>().read() }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: as it was mapped, and nobody else has it.
        unsafe { libc::syscall(libc::SYS_munmap, self.base, PAGE + self.data_bytes) };
    }
}

fn open_event(faults: Faults, place: Place, choice: u64) -> Result<c_int, c_int> {
    let is_major = faults == Faults::Major;
    // Without a processor nothing that is inherited could be read.
    let choice = if place.processor < 0 { choice & !INHERIT_THREAD } else { choice | INHERIT };
    let attributes = Attributes {
        kind: SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: if is_major { MAJOR_FAULTS } else { MINOR_FAULTS },
        sample_period: if is_major { 1 } else { MINOR_PERIOD },
        sample_type: SAMPLE_TYPE,
        read_format: 0,
        flags: USE_CLOCK | choice | if is_major { MAPPINGS } else { 0 },
        not_used: [0; 11],
        clock: libc::CLOCK_MONOTONIC,
        not_used_either: [0; 2],
    };
    // SAFETY: the attributes are as long as they say.
    let opened = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attributes, place.tid, place.processor, -1, CLOSE_ON_EXEC)
    };
    if opened < 0 { Err(last_error()) } else { Ok(opened as c_int) }
}

fn map(descriptor: c_int, data_bytes: usize) -> Option<(*mut u8, usize)> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // SAFETY: a new mapping.
    let base = unsafe {
        libc::syscall(libc::SYS_mmap, null_mut::<u8>(), PAGE + data_bytes, protection, flags, descriptor, 0_usize)
    };
    (base != -1).then_some((base as *mut u8, data_bytes))
}

/// What the words of a record say; `None` of other processes, and of what is not asked for.
fn entry(words: &[u64], pid: u32, faults: Faults) -> Option<Entry> {
    let word = |at: usize| words.get(at).copied().unwrap_or(0);
    // Each but a sample ends with thread and time.
    let behind = words.len().checked_sub(2)?;
    let (time, what) = match word(0) as u32 {
        SAMPLE => {
            let tid = (word(1) >> 32) as u32;
            (word(2), What::Fault { faults, tid, address: word(3) })
        }
        MMAP2 => {
            let path = words.get(9..behind)?.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0);
            let (start, has_file) = (word(2), word(6) != 0);
            let path = if has_file { path.collect() } else { Vec::new() };
            (word(behind + 1), What::Mapped { start, end: start.saturating_add(word(3)), offset: word(4), path })
        }
        LOST => return Some(Entry { time_ns: word(behind + 1) as i64, what: What::Lost(word(2)) }),
        _ => return None,
    };
    (word(1) as u32 == pid).then_some(Entry { time_ns: time as i64, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_say_what_happened() {
        let header = |kind: u32, words: u64| u64::from(kind) | (words * 8) << 48;
        let sample = [header(SAMPLE, 4), 8 << 32 | 7, 1_000, 0x7f00_1234];
        let fault = What::Fault { faults: Faults::Major, tid: 8, address: 0x7f00_1234 };
        assert_eq!(entry(&sample, 7, Faults::Major), Some(Entry { time_ns: 1_000, what: fault }));
        // Of another process.
        assert_eq!(entry(&sample, 6, Faults::Major), None);
        let name = u64::from_ne_bytes(*b"/data/a\0");
        let mut mapped =
            [header(MMAP2, 12), 8 << 32 | 7, 0x1000, 0x2000, 0x3000, 1, 99, 0, 0, name, 8 << 32 | 7, 2_000];
        let of = |path: &[u8]| What::Mapped { start: 0x1000, end: 0x3000, offset: 0x3000, path: path.to_vec() };
        assert_eq!(entry(&mapped, 7, Faults::Major), Some(Entry { time_ns: 2_000, what: of(b"/data/a") }));
        mapped[6] = 0;
        assert_eq!(entry(&mapped, 7, Faults::Major), Some(Entry { time_ns: 2_000, what: of(b"") }));
        // Of whichever process there was room again for.
        let lost = Entry { time_ns: 3_000, what: What::Lost(33) };
        assert_eq!(entry(&[header(LOST, 5), 1, 33, 9 << 32 | 9, 3_000], 7, Faults::Major), Some(lost));
        // A fork, and what is cut.
        assert_eq!(
            (entry(&[header(7, 3), 0, 0], 7, Faults::Minor), entry(&mapped[..4], 7, Faults::Major)),
            (None, None)
        );
    }
}

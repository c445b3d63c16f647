//! What the system says of a thread: how long it ran, how long it could have run, and in which call it waits.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};
use stepscope_recorder::Doing;

/// Threads whose files are kept open.
const MAX_THREADS: usize = 256;
/// Bytes of the longest line.
const LINE_BYTES: usize = 256;
/// A condition variable of the C library is no larger than this; threads wait at places in it.
const CONDITION_BYTES: usize = 48;
/// How long a thread may take until it waits for the interpreter's lock.
const PATIENCE: Duration = Duration::from_millis(200);

/// The files of a thread. What cannot be opened is not known.
struct ThreadFiles {
    times: Option<File>,
    call: Option<File>,
}

/// Asks the system.
#[derive(Default)]
pub(super) struct System {
    files: HashMap<u32, ThreadFiles>,
}

/// Since a thread began.
#[derive(Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) cpu_ns: Option<i64>,
    pub(super) runnable_ns: Option<i64>,
    /// How often it was given a processor.
    pub(super) turns: Option<i64>,
}

impl System {
    /// How long a thread ran, and how long it could have run.
    pub(super) fn times(&mut self, tid: u32) -> Times {
        if !self.files.contains_key(&tid) && self.files.len() >= MAX_THREADS {
            self.files.clear();
        }
        let files = self.files.entry(tid).or_insert_with(|| ThreadFiles {
            times: File::open(format!("/proc/self/task/{tid}/schedstat")).ok(),
            call: File::open(format!("/proc/self/task/{tid}/syscall")).ok(),
        });
        let mut bytes = [0; LINE_BYTES];
        match files.times.as_ref().map(|file| line(file, &mut bytes)) {
            Some(Some(times)) => {
                let mut numbers = times.split_ascii_whitespace().map(|number| number.parse().ok());
                let mut next = || numbers.next().flatten();
                Times { cpu_ns: next(), runnable_ns: next(), turns: next() }
            }
            // Another thread may have its number by now.
            Some(None) => {
                self.files.remove(&tid);
                Times::default()
            }
            None => Times::default(),
        }
    }

    /// What a thread does, after its times; `lock` is where threads wait for the interpreter's lock.
    pub(super) fn doing(&self, tid: u32, lock: &Option<Range<usize>>) -> Doing {
        let mut bytes = [0; LINE_BYTES];
        let call = self.files.get(&tid).and_then(|files| line(files.call.as_ref()?, &mut bytes));
        call.map_or(Doing::Unknown, |call| doing(call, lock))
    }

    /// Forgets threads that have ended.
    pub(super) fn keep(&mut self, threads: &[u32]) {
        if self.files.len() > threads.len() {
            self.files.retain(|tid, _| threads.contains(tid));
        }
    }
}

fn line<'a>(file: &File, bytes: &'a mut [u8]) -> Option<&'a str> {
    let len = file.read_at(bytes, 0).ok()?;
    std::str::from_utf8(&bytes[..len]).ok().filter(|line| !line.is_empty())
}

/// What a thread does by the call of the system that it is in: its number and its arguments, or that it runs.
fn doing(line: &str, lock: &Option<Range<usize>>) -> Doing {
    let mut words = line.split_ascii_whitespace();
    let Some(first) = words.next() else { return Doing::Unknown };
    if first == "running" {
        return Doing::Running;
    }
    let Ok(number) = first.parse::<i64>() else { return Doing::Unknown };
    let mut address = || usize::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    match number {
        libc::SYS_futex => match address() {
            Some(address) if lock.as_ref().is_some_and(|lock| lock.contains(&address)) => Doing::InterpreterLock,
            _ => Doing::Lock,
        },
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Doing::Sleep,
        libc::SYS_read | libc::SYS_write | libc::SYS_readv | libc::SYS_writev => {
            address().map_or(Doing::File, waits_for_descriptor)
        }
        libc::SYS_pread64
        | libc::SYS_pwrite64
        | libc::SYS_fsync
        | libc::SYS_fdatasync
        | libc::SYS_openat
        | libc::SYS_sendfile
        | libc::SYS_newfstatat
        | libc::SYS_statx
        | libc::SYS_io_getevents
        | libc::SYS_getdents64
        | libc::SYS_unlink
        | libc::SYS_rename
        | libc::SYS_open
        | libc::SYS_copy_file_range => Doing::File,
        libc::SYS_poll
        | libc::SYS_ppoll
        | libc::SYS_select
        | libc::SYS_pselect6
        | libc::SYS_epoll_wait
        | libc::SYS_epoll_pwait
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_connect
        | libc::SYS_accept
        | libc::SYS_accept4 => Doing::Connection,
        libc::SYS_wait4 | libc::SYS_waitid => Doing::Process,
        _ => Doing::System,
    }
}

/// What a thread waits for that reads or writes a descriptor: a file on a disk, or others that write or read its other end.
/// The name of the descriptor is asked for, and not its state, for which a file system of a network may take long.
fn waits_for_descriptor(descriptor: usize) -> Doing {
    let name = std::fs::read_link(format!("/proc/self/fd/{descriptor}"));
    match name.as_ref().map(|name| name.as_os_str().as_bytes()) {
        Ok(name) if name.starts_with(b"pipe:") || name.starts_with(b"socket:") => Doing::Connection,
        // Events, timers, terminals.
        Ok(name) if name.starts_with(b"anon_inode:") || is_device(name) => Doing::System,
        Ok(_) => Doing::File,
        // It was closed meanwhile.
        Err(_) => Doing::System,
    }
}

/// Whether it is no file of memory that many processes share.
fn is_device(name: &[u8]) -> bool {
    name.starts_with(b"/dev/") && !name.starts_with(b"/dev/shm/")
}

/// Where a thread waits that asks for the interpreter's lock while another one holds it. `tid` is that of such a thread.
pub(super) fn waits_at(tid: u32) -> Option<Range<usize>> {
    let file = File::open(format!("/proc/self/task/{tid}/syscall")).ok()?;
    let (begin, mut bytes, mut seen) = (Instant::now(), [0; LINE_BYTES], 0);
    while begin.elapsed() < PATIENCE {
        let mut words = line(&file, &mut bytes)?.split_ascii_whitespace();
        let is_waiting = words.next()?.parse() == Ok(libc::SYS_futex);
        let address = words.next().and_then(|word| usize::from_str_radix(word.strip_prefix("0x")?, 16).ok());
        // Twice the same: it has arrived there, and is not on its way.
        if let Some(address) = address.filter(|_| is_waiting) {
            if seen == address {
                return Some(address.saturating_sub(CONDITION_BYTES)..address + CONDITION_BYTES);
            }
            seen = address;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

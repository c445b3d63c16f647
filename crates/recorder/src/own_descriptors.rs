//! A thread of ours has descriptors of its own: a program that counts on the lowest number to be free, or closes one
//! twice, does not meet those that the thread opens meanwhile, and what the program closes is closed.

use libc::{c_int, c_uint};

const CLOSE_RANGE_UNSHARE: c_uint = 1 << 1;

/// This thread's descriptors are no longer the program's: it has `kept` alone, and nothing as standard input and output.
/// Systems before Linux 5.9 cannot do so: then they stay the program's.
pub(crate) fn keep_only(kept: c_int) {
    let Ok(kept @ 3..) = c_uint::try_from(kept) else { return };
    // SAFETY: plain system calls. From the first that succeeds on, all of it concerns this thread alone.
    unsafe {
        if libc::syscall(libc::SYS_close_range, kept + 1, c_uint::MAX, CLOSE_RANGE_UNSHARE) != 0 {
            return;
        }
        libc::syscall(libc::SYS_close_range, 0, kept - 1, 0);
        for _ in 0..3 {
            let (path, flags) = (c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
            if libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags) < 0 {
                libc::syscall(libc::SYS_memfd_create, c"none".as_ptr(), libc::MFD_CLOEXEC);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::keep_only;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;

    #[test]
    fn a_thread_neither_sees_nor_holds_the_programs_descriptors() {
        let (mut reading, mut writing) = std::io::pipe().unwrap();
        let kept = File::open("/proc/self/stat").unwrap();
        let (number, pipe) = (kept.as_raw_fd(), writing.as_raw_fd());
        let (has_own, is_own) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            keep_only(number);
            has_own.send(()).unwrap();
            let is_open = |number| std::path::Path::new(&format!("/proc/thread-self/fd/{number}")).exists();
            let seen = [0, 1, 2, number, pipe].map(is_open);
            // Lives on until the pipe is closed.
            std::thread::park();
            seen
        });
        is_own.recv().unwrap();
        writing.write_all(b"end").unwrap();
        drop(writing);
        let mut text = String::new();
        reading.read_to_string(&mut text).unwrap();
        thread.thread().unpark();
        assert_eq!((text.as_str(), thread.join().unwrap()), ("end", [true, true, true, true, false]));
        assert!(kept.metadata().is_ok());
    }
}

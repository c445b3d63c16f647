//! Reads memory that may end anywhere, without ever faulting.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A window onto this process's own memory: bytes go through a pipe, so that the kernel checks every address.
pub struct Peek {
    read: OwnedFd,
    write: OwnedFd,
}

impl Peek {
    /// Opens the pipe.
    ///
    /// # Errors
    /// When the process has no more file descriptors.
    pub fn new() -> std::io::Result<Self> {
        let mut fds = [0; 2];
        // SAFETY: room for two descriptors, which are then owned.
        unsafe {
            if libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(Self { read: OwnedFd::from_raw_fd(fds[0]), write: OwnedFd::from_raw_fd(fds[1]) })
        }
    }

    /// Copies `into.len()` bytes (at most one page) from `address`; gives how many were readable.
    pub fn copy(&self, address: *const u8, into: &mut [u8]) -> usize {
        let len = into.len().min(4096);
        // SAFETY: the kernel reports unreadable addresses instead of faulting; the pipe is empty and holds a page.
        unsafe {
            let written = libc::write(self.write.as_raw_fd(), address.cast(), len);
            let Ok(written) = usize::try_from(written) else { return 0 };
            let read = libc::read(self.read.as_raw_fd(), into.as_mut_ptr().cast(), written);
            usize::try_from(read).unwrap_or(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readable_bytes_are_copied_and_others_do_not_fault() {
        let peek = Peek::new().unwrap();
        let mut copy = [0; 5];
        assert_eq!(peek.copy(b"hello".as_ptr(), &mut copy), 5);
        assert_eq!(&copy, b"hello");
        assert_eq!(peek.copy(std::ptr::without_provenance(16), &mut copy), 0);
    }
}

//! Reads memory that may end anywhere, without ever faulting.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A window onto this process's own memory, of which the kernel checks every address. Where a sandbox refuses the call for
/// this, bytes go through a pipe.
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
        let here = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: len };
        let there = libc::iovec { iov_base: address.cast_mut().cast(), iov_len: len };
        // SAFETY: as many bytes are writable; the kernel reports unreadable addresses instead of faulting.
        let copied = unsafe { libc::process_vm_readv(libc::getpid(), &here, 1, &there, 1, 0) };
        if let Ok(copied) = usize::try_from(copied) {
            return copied;
        }
        match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::EFAULT) => 0,
            _ => self.copy_through_pipe(address, &mut into[..len]),
        }
    }

    fn copy_through_pipe(&self, address: *const u8, into: &mut [u8]) -> usize {
        let len = into.len();
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
        for copy_by in [Peek::copy, Peek::copy_through_pipe] {
            let mut copy = [0; 5];
            assert_eq!(copy_by(&peek, b"hello".as_ptr(), &mut copy), 5);
            assert_eq!(&copy, b"hello");
            assert_eq!(copy_by(&peek, std::ptr::without_provenance(16), &mut copy), 0);
        }
    }
}

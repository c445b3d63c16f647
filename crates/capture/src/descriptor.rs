//! The descriptor of a capture, in a process whose program may close it, and open a file of its own in its place.

#![allow(unsafe_code)]

use std::fs::{File, Metadata};
use std::io::{Error, Result};
use std::ops::Deref;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Where it is moved to, if it may be: beyond what a program or a shell numbers by itself.
const HIGH: RawFd = 900;

pub(crate) struct CaptureDescriptor {
    number: RawFd,
    path: PathBuf,
    /// The device and the inode.
    identity: (u64, u64),
}

/// The file while it is used.
pub(crate) enum CaptureHandle {
    /// Never closed here.
    Kept(std::mem::ManuallyDrop<File>),
    Reopened(File),
}

impl CaptureDescriptor {
    /// Takes `file`, which `path` is the place of.
    pub(crate) fn new(file: File, path: PathBuf) -> Result<Self> {
        let identity = identity(&file.metadata()?);
        let number = moved_high(file.into()).into_raw_fd();
        // The program may go to another folder.
        let path = std::path::absolute(&path).unwrap_or(path);
        Ok(Self { number, path, identity })
    }

    pub(crate) fn number(&self) -> RawFd {
        self.number
    }

    /// The file, by the descriptor, or by its path where the program has closed it.
    ///
    /// # Errors
    /// When neither leads to the file any more.
    pub(crate) fn file(&self) -> Result<CaptureHandle> {
        let is_it = |file: &File| file.metadata().is_ok_and(|metadata| identity(&metadata) == self.identity);
        // SAFETY: not closed by this value; it is not used unless it is the capture.
        let kept = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(self.number) });
        if is_it(&kept) {
            return Ok(CaptureHandle::Kept(kept));
        }
        let reopened = File::options().read(true).write(true).open(&self.path)?;
        if is_it(&reopened) {
            Ok(CaptureHandle::Reopened(reopened))
        } else {
            Err(Error::from_raw_os_error(libc::EBADF))
        }
    }
}

impl Drop for CaptureDescriptor {
    fn drop(&mut self) {
        // What the program has in its place is not ours to close.
        if let Ok(CaptureHandle::Kept(file)) = self.file() {
            drop(std::mem::ManuallyDrop::into_inner(file));
        }
    }
}

impl Deref for CaptureHandle {
    type Target = File;

    fn deref(&self) -> &File {
        match self {
            Self::Kept(file) => file,
            Self::Reopened(file) => file,
        }
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn moved_high(descriptor: OwnedFd) -> OwnedFd {
    // SAFETY: a plain system call on a descriptor that is open.
    let moved = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_DUPFD_CLOEXEC, HIGH) };
    // SAFETY: it was just opened and belongs to nobody else.
    if moved < 0 { descriptor } else { unsafe { OwnedFd::from_raw_fd(moved) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    #[test]
    fn a_file_that_the_program_has_in_its_place_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, other) = (folder.path().join("ours"), folder.path().join("other"));
        let opened = File::options().read(true).write(true).create_new(true).open(&ours).unwrap();
        let descriptor = CaptureDescriptor::new(opened, ours.clone()).unwrap();
        std::fs::write(&ours, "ours").unwrap();
        std::fs::write(&other, "other").unwrap();
        let text = |descriptor: &CaptureDescriptor| {
            let mut text = String::new();
            let handle = descriptor.file()?;
            let mut file: &File = &handle;
            file.rewind()?;
            file.read_to_string(&mut text).map(|_| text)
        };
        assert_eq!(text(&descriptor).unwrap(), "ours");
        let theirs = File::open(&other).unwrap();
        // SAFETY: as a program does that takes the number for its own.
        assert_eq!(unsafe { libc::dup2(theirs.as_raw_fd(), descriptor.number()) }, descriptor.number());
        assert_eq!(text(&descriptor).unwrap(), "ours");
        std::fs::rename(&ours, folder.path().join("moved")).unwrap();
        assert!(text(&descriptor).is_err());
        let number = descriptor.number();
        drop(descriptor);
        // SAFETY: the program's, from above.
        let theirs = unsafe { File::from_raw_fd(number) };
        assert!(theirs.metadata().is_ok_and(|metadata| metadata.len() == 5));
    }
}

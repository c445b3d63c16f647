//! A file that is open for reading.

use crate::chunks::Chunks;
use crate::location::Location;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

/// A file on disk or in a store.
#[derive(Debug)]
pub enum StoredFile {
    /// On disk.
    Local(File),
    /// In a store.
    Remote(RemoteFile),
}

/// An object in a store. Copies read from places of their own, and share what came.
#[derive(Clone)]
pub struct RemoteFile {
    chunks: Arc<Chunks>,
    at: u64,
}

impl std::fmt::Debug for RemoteFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RemoteFile").field("at", &self.at).finish_non_exhaustive()
    }
}

impl RemoteFile {
    pub(crate) fn open(location: Location) -> io::Result<Self> {
        let meta = location.object_meta()?;
        Ok(Self { chunks: Arc::new(Chunks::new(location, meta)), at: 0 })
    }

    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.chunks.meta.size
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends at most `wanted` bytes from the place `at` on; gives how many. 0 is the end.
    ///
    /// # Errors
    /// When the store refuses, or the object has changed.
    pub fn append_at(&self, bytes: &mut Vec<u8>, wanted: usize, at: u64) -> io::Result<usize> {
        let found = self.chunks.from(at)?;
        let len = found.len().min(wanted);
        bytes.extend_from_slice(&found[..len]);
        Ok(len)
    }
}

impl StoredFile {
    /// Its length in bytes.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn len(&self) -> io::Result<u64> {
        match self {
            Self::Local(file) => Ok(file.metadata()?.len()),
            Self::Remote(file) => Ok(file.len()),
        }
    }

    /// Whether it has no bytes.
    ///
    /// # Errors
    /// As [`StoredFile::len`].
    pub fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }

    /// Whether it can be read at any place, as a pipe cannot.
    pub fn is_regular(&self) -> bool {
        match self {
            Self::Local(file) => file.metadata().is_ok_and(|metadata| metadata.is_file()),
            Self::Remote(_) => true,
        }
    }

    /// Appends about `wanted` bytes, or fewer, from the place `at` on; gives how many. 0 is the end.
    ///
    /// # Errors
    /// When the disk or store refuses.
    pub fn append_at(&self, bytes: &mut Vec<u8>, wanted: usize, at: u64) -> io::Result<usize> {
        match self {
            Self::Local(file) => append_at(file, bytes, wanted, at),
            Self::Remote(file) => file.append_at(bytes, wanted, at),
        }
    }

    /// What its store has refused since it was opened, also of a copy: for readers below which an error is text.
    pub fn failure(&self) -> Option<io::Error> {
        match self {
            Self::Local(_) => None,
            Self::Remote(file) => file.chunks.failure().cloned().map(io::Error::from),
        }
    }

    /// Another reader of the same file, which begins where `self` is.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Local(file) => file.try_clone().map(Self::Local),
            Self::Remote(file) => Ok(Self::Remote(file.clone())),
        }
    }
}

/// Reads about `wanted` bytes, or fewer, at the place `at` of a file behind `bytes`. The memory for them is not cleared
/// before: that would take a tenth of the time that reading a trace takes.
#[cfg(unix)]
fn append_at(file: &File, bytes: &mut Vec<u8>, wanted: usize, at: u64) -> io::Result<usize> {
    bytes.reserve_exact(wanted);
    Ok(rustix::io::pread(file, rustix::buffer::spare_capacity(bytes), at)?)
}

#[cfg(windows)]
fn append_at(file: &File, bytes: &mut Vec<u8>, wanted: usize, at: u64) -> io::Result<usize> {
    let before = bytes.len();
    bytes.resize(before + wanted, 0);
    let read = std::os::windows::fs::FileExt::seek_read(file, &mut bytes[before..], at);
    bytes.truncate(before + *read.as_ref().unwrap_or(&0));
    read
}

impl Read for RemoteFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let found = self.chunks.from(self.at)?;
        let len = found.len().min(buffer.len());
        buffer[..len].copy_from_slice(&found[..len]);
        self.at += len as u64;
        Ok(len)
    }
}

impl Seek for RemoteFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

impl Read for StoredFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Local(file) => file.read(buffer),
            Self::Remote(file) => file.read(buffer),
        }
    }
}

impl Seek for StoredFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Local(file) => file.seek(to),
            Self::Remote(file) => file.seek(to),
        }
    }
}

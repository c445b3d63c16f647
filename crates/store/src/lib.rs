//! Files wherever they lie: on a disk, or in an object store.
//!
//! The functions are those of `std::fs`. A path such as `s3://bucket/run` is that of an object, or of a folder where
//! objects have names below it. Objects are read in ranges, some of them ahead; what a folder holds is listed once and known
//! for some seconds. Whatever a store refuses is an [`std::io::Error`] around a [`StoreError`], which says what to do.

mod aws_profile;
mod cache;
mod chunks;
mod error;
mod file;
mod listing;
mod location;
mod matching;
mod providers;
mod retry;
mod runtime;
mod upload;

pub use cache::cache_folder;
pub use error::{Fault, StoreError};
pub use file::{RemoteFile, StoredFile};
pub use location::is_remote;
pub use matching::matching;
pub use upload::{upload, write};

use bytes::Bytes;
use location::Location;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What is known of a file or folder without reading it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Metadata {
    /// Whether it holds files.
    pub is_folder: bool,
    /// Its length in bytes; 0 of a folder.
    pub len: u64,
    /// When it was last written, where that is known.
    pub modified: Option<SystemTime>,
    /// What changes with the content of an object: its `ETag`. `None` of what is on disk.
    pub version: Option<String>,
}

impl From<std::fs::Metadata> for Metadata {
    fn from(metadata: std::fs::Metadata) -> Self {
        let is_folder = metadata.is_dir();
        let len = if is_folder { 0 } else { metadata.len() };
        Self { is_folder, len, modified: metadata.modified().ok(), version: None }
    }
}

/// What is at `path`.
///
/// # Errors
/// When nothing is there, or the disk or store refuses.
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    match Location::of(path)? {
        Some(location) => location.metadata(),
        None => std::fs::metadata(path).map(Metadata::from),
    }
}

/// Whether something is at `path`, as far as it can be known.
pub fn exists(path: &Path) -> bool {
    metadata(path).is_ok()
}

/// Whether a file is at `path`.
pub fn is_file(path: &Path) -> bool {
    metadata(path).is_ok_and(|metadata| !metadata.is_folder)
}

/// Whether a folder is at `path`.
pub fn is_folder(path: &Path) -> bool {
    metadata(path).is_ok_and(|metadata| metadata.is_folder)
}

/// The length of the file at `path`; 0 without one.
pub fn len(path: &Path) -> u64 {
    metadata(path).map_or(0, |metadata| metadata.len)
}

/// What the folder at `path` holds, by name.
///
/// # Errors
/// When there is no such folder, or the disk or store refuses.
pub fn list(path: &Path) -> io::Result<Vec<PathBuf>> {
    if let Some(location) = Location::of(path)? {
        return Ok(location.names()?.iter().map(|name| path.join(name)).collect());
    }
    let mut paths: Vec<PathBuf> = std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort();
    Ok(paths)
}

/// Opens the file at `path` for reading.
///
/// # Errors
/// When there is no such file, or the disk or store refuses.
pub fn open(path: &Path) -> io::Result<StoredFile> {
    match Location::of(path)? {
        Some(location) => Ok(StoredFile::Remote(RemoteFile::open(location)?)),
        None => std::fs::File::open(path).map(StoredFile::Local),
    }
}

/// All bytes of the file at `path`.
///
/// # Errors
/// As [`open`], or when the file cannot be read to its end.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    match Location::of(path)? {
        Some(location) => location.bytes().map(Vec::from),
        None => std::fs::read(path),
    }
}

/// The bytes in a range of the file at `path`, and no others: nothing is read ahead, or kept. The file must be what
/// `known` says that it was.
///
/// # Errors
/// When the file has changed or is shorter, or the disk or store refuses.
pub fn read_range(path: &Path, known: &Metadata, range: Range<u64>) -> io::Result<Bytes> {
    if let Some(location) = Location::of(path)? {
        return location.range(known, range);
    }
    let file = StoredFile::Local(std::fs::File::open(path)?);
    if file.len()? != known.len {
        return Err(io::Error::other("the file was written while it was read"));
    }
    let mut bytes = Vec::new();
    let wanted = usize::try_from(range.end.saturating_sub(range.start)).map_err(io::Error::other)?;
    while bytes.len() < wanted {
        let (left, at) = (wanted - bytes.len(), range.start + bytes.len() as u64);
        if file.append_at(&mut bytes, left, at)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(bytes.into())
}

/// The text of the file at `path`.
///
/// # Errors
/// As [`read`], or when it is no UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// The path without links and relative parts; of an object, its address.
///
/// # Errors
/// When nothing is there.
pub fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    if is_remote(path) { Ok(path.into()) } else { path.canonicalize() }
}

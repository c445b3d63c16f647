//! Which open file each descriptor of the process is of.

use crate::files::{File, file};
use crate::mapped::map;
use crate::open_files::{self, OpenFile};
use crate::paths::is_watched;
use crate::recorded::{errno, set_errno};
use crate::sockets::Peer;
use crate::start::{has_own_descriptors, is_inside, is_on, is_vforked};
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Descriptors of a chunk, and chunks: more than a system allows a process.
const CHUNK: usize = 1 << 12;
const CHUNKS: usize = 1 << 12;

/// What a descriptor is of: nobody asked yet; no file that is watched; a socket; otherwise an open file's number and
/// [`FIRST`].
const NOT_KNOWN: u32 = 0;
const NOT_WATCHED: u32 = 1;
const NETWORK: u32 = 2;
const LOCAL: u32 = 3;
const FIRST: u32 = 4;

static TABLE: [AtomicPtr<[AtomicU32; CHUNK]>; CHUNKS] = [const { AtomicPtr::new(null_mut()) }; CHUNKS];

/// What a descriptor is of.
pub(crate) enum Of {
    /// A file that is watched.
    File(&'static OpenFile),
    Socket(Peer),
    /// Anything else.
    Other,
}

/// What a descriptor is of, where calls are recorded.
#[inline(always)]
pub(crate) fn of(descriptor: c_int) -> Of {
    match state(descriptor) {
        NOT_WATCHED => Of::Other,
        _ if has_own_descriptors() => Of::Other,
        NOT_KNOWN => of_state(look_up(descriptor)),
        state => of_state(state),
    }
}

#[inline(always)]
fn of_state(state: u32) -> Of {
    match state {
        NOT_KNOWN | NOT_WATCHED => Of::Other,
        NETWORK => Of::Socket(Peer::Network),
        LOCAL => Of::Socket(Peer::Local),
        number => open_files::get(number - FIRST).map_or(Of::Other, Of::File),
    }
}

/// Whether a descriptor is known to be of neither.
#[inline(always)]
pub(crate) fn is_other(descriptor: c_int) -> bool {
    state(descriptor) == NOT_WATCHED
}

/// The open file of a descriptor, when it is watched.
#[inline(always)]
pub(crate) fn watched(descriptor: c_int) -> Option<&'static OpenFile> {
    match is_on().then(|| of(descriptor)) {
        Some(Of::File(open)) => Some(open),
        _ => None,
    }
}

/// Whom a descriptor leads to that is no file which is watched.
#[inline]
pub(crate) fn peer(descriptor: c_int) -> Option<Peer> {
    match is_on().then(|| of(descriptor)) {
        Some(Of::Socket(peer)) => Some(peer),
        _ => None,
    }
}

#[inline(always)]
fn state(descriptor: c_int) -> u32 {
    let Some(chunk) = TABLE.get(descriptor as usize / CHUNK) else { return NOT_WATCHED };
    // SAFETY: null, or a chunk, which is never unmapped.
    let chunk = unsafe { chunk.load(Ordering::Acquire).as_ref() };
    chunk.map_or(NOT_KNOWN, |chunk| chunk[descriptor as usize % CHUNK].load(Ordering::Acquire))
}

/// The state of a descriptor that is of no file which is watched.
fn state_of(peer: Option<Peer>) -> u32 {
    match peer {
        Some(Peer::Network) => NETWORK,
        Some(Peer::Local) => LOCAL,
        None => NOT_WATCHED,
    }
}

fn slot(descriptor: c_int) -> Option<&'static AtomicU32> {
    let chunks = TABLE.get(usize::try_from(descriptor).ok()? / CHUNK)?;
    let mut chunk = chunks.load(Ordering::Acquire);
    if chunk.is_null() {
        let mapped = map(size_of::<[AtomicU32; CHUNK]>()).cast();
        chunk = match chunks.compare_exchange(null_mut(), mapped, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => mapped,
            Err(found) => found,
        };
    }
    // SAFETY: null, or a chunk, which is never unmapped.
    unsafe { chunk.as_ref() }.map(|chunk| &chunk[descriptor as usize % CHUNK])
}

/// The state of what was not seen to be opened: inherited, received over a socket, or opened past the C library.
#[cold]
fn look_up(descriptor: c_int) -> u32 {
    if is_inside() || is_vforked() {
        return NOT_KNOWN;
    }
    let reason = errno();
    let mut buffer = [0; PATH];
    let path = path_of(descriptor, &mut buffer);
    let peer = if path.is_none() { Peer::asked(descriptor) } else { None };
    let file = path.filter(|path| is_watched(path)).and_then(file);
    // SAFETY: a plain system call.
    let flags = unsafe { libc::syscall(libc::SYS_fcntl, descriptor, libc::F_GETFL) } as c_int;
    set_errno(reason);
    // Of one that is not open nothing is known: what opens it next may not be seen.
    if flags < 0 {
        return NOT_KNOWN;
    }
    let open = file.and_then(|file| open_files::open(file, position_at(flags, open_files::UNKNOWN)));
    let state = open.map_or(state_of(peer), |number| number + FIRST);
    set(descriptor, state);
    state
}

/// Room for a path.
pub(crate) const PATH: usize = libc::PATH_MAX as usize;

/// The path of the file that the system has open under a descriptor; `None` where it is no file.
pub(crate) fn path_of(descriptor: c_int, buffer: &mut [u8; PATH]) -> Option<&[u8]> {
    const DELETED: &[u8] = b" (deleted)";
    let mut link = [0; 32];
    let name = link_name(descriptor, &mut link)?;
    // SAFETY: the name is terminated; the system writes no more than there is room for.
    let len = unsafe {
        libc::syscall(libc::SYS_readlinkat, libc::AT_FDCWD, name.as_ptr(), buffer.as_mut_ptr(), buffer.len())
    };
    let path = buffer.get(..usize::try_from(len).ok()?)?;
    // A socket is `socket:[7]`.
    path.starts_with(b"/").then(|| path.strip_suffix(DELETED).unwrap_or(path))
}

/// `/proc/self/fd/N`, terminated.
fn link_name(descriptor: c_int, buffer: &mut [u8; 32]) -> Option<&[u8]> {
    const FOLDER: &[u8] = b"/proc/self/fd/";
    let mut number = u32::try_from(descriptor).ok()?;
    let mut digits = [0; 10];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    let digits = &digits[at..];
    buffer[..FOLDER.len()].copy_from_slice(FOLDER);
    buffer[FOLDER.len()..FOLDER.len() + digits.len()].copy_from_slice(digits);
    buffer.get(..=FOLDER.len() + digits.len())
}

fn set(descriptor: c_int, state: u32) {
    if has_own_descriptors() {
        return;
    }
    let Some(slot) = slot(descriptor) else { return };
    let before = slot.swap(state, Ordering::AcqRel);
    if before >= FIRST {
        open_files::unlink(before - FIRST);
    }
}

/// Where a file stands that is opened with these flags, and otherwise would stand at `position`.
pub(crate) fn position_at(flags: c_int, position: i64) -> i64 {
    if flags >= 0 && flags & libc::O_APPEND != 0 { open_files::APPENDS } else { position }
}

/// A descriptor of a file that is watched, or of anything else, was opened.
pub(crate) fn opened(descriptor: c_int, file: Option<&'static File>, position: i64) {
    match file.and_then(|file| open_files::open(file, position)) {
        Some(number) => set(descriptor, number + FIRST),
        None => set(descriptor, NOT_WATCHED),
    }
}

/// A descriptor of no file was opened; `peer`: of a socket.
pub(crate) fn opened_other(descriptor: c_int, peer: Option<Peer>) {
    set(descriptor, state_of(peer));
}

/// A descriptor is about to be closed. Said before it is: afterwards another thread may have it again.
pub(crate) fn closing(descriptor: c_int) {
    set(descriptor, NOT_KNOWN);
}

/// Those from `first` to `last` are about to be closed.
pub(crate) fn closing_all(first: c_int, last: c_int) {
    let (first, last) = (first.max(0) as usize, last.max(0) as usize);
    for (chunk, found) in TABLE.iter().enumerate().take(last / CHUNK + 1).skip(first / CHUNK) {
        if !found.load(Ordering::Acquire).is_null() {
            let of_chunk = (chunk * CHUNK).max(first)..((chunk + 1) * CHUNK).min(last + 1);
            of_chunk.for_each(|descriptor| closing(descriptor as c_int));
        }
    }
}

/// `copy` is another descriptor of what `original` is of.
pub(crate) fn duplicated(original: c_int, copy: c_int) {
    if has_own_descriptors() {
        return;
    }
    let state = slot(original).map_or(NOT_KNOWN, |slot| slot.load(Ordering::Acquire));
    if state >= FIRST {
        open_files::get(state - FIRST).into_iter().for_each(OpenFile::link);
    }
    set(copy, state);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_descriptors_have_names() {
        let mut buffer = [0; 32];
        assert_eq!(link_name(0, &mut buffer), Some(b"/proc/self/fd/0\0".as_slice()));
        assert_eq!(link_name(c_int::MAX, &mut [0; 32]), Some(b"/proc/self/fd/2147483647\0".as_slice()));
        assert_eq!(link_name(-1, &mut buffer), None);
    }

    #[test]
    fn copies_of_a_descriptor_share_a_position() {
        let file = file(b"/data/a").unwrap();
        opened(70_000, Some(file), 0);
        duplicated(70_000, 70_001);
        let number = |descriptor| slot(descriptor).unwrap().load(Ordering::Relaxed);
        assert_eq!(number(70_000), number(70_001));
        let open = open_files::get(number(70_000) - FIRST).unwrap();
        open.advance(512);
        closing(70_000);
        assert_eq!(open.position(|| panic!("it is known")), Some(512));
        assert!(std::ptr::eq(open.file().unwrap(), file));
        open_files::note_fork();
        assert_eq!(open.position(|| 700), Some(700));
        closing(70_001);
        assert!(open.file().is_none());
        // What is free is used again.
        let before = number(70_001);
        opened(70_002, Some(file), 0);
        assert_eq!((before, open.file().is_some()), (NOT_KNOWN, true));
    }
}

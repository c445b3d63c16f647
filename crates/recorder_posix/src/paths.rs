//! Absolute paths, and which of them are watched.

use crate::descriptors::{PATH, path_of};
use std::ffi::{CStr, c_char, c_int};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What the system shows of itself, which no disk holds.
const OF_THE_SYSTEM: [&[u8]; 4] = [b"/proc", b"/sys", b"/dev", b"/run/udev"];

/// Which folders are watched.
#[derive(Default, Debug)]
pub(crate) struct Watched {
    /// All, where none is named.
    pub(crate) included: Vec<Vec<u8>>,
    pub(crate) excluded: Vec<Vec<u8>>,
}

/// Null until something is watched.
static WATCHED: AtomicPtr<Watched> = AtomicPtr::new(null_mut());

/// Says which folders are watched from now on.
pub(crate) fn watch(watched: Watched) {
    // The one before stays: another thread may be reading it.
    WATCHED.store(Box::into_raw(Box::new(watched)), Ordering::Release);
}

/// Whether calls on this file are recorded.
pub(crate) fn is_watched(path: &[u8]) -> bool {
    // SAFETY: null, or never freed.
    unsafe { WATCHED.load(Ordering::Acquire).as_ref() }.is_some_and(|watched| watched.has(path))
}

impl Watched {
    fn has(&self, path: &[u8]) -> bool {
        let is_in = |folders: &[Vec<u8>]| folders.iter().any(|folder| is_below(path, folder));
        let is_included = self.included.is_empty() || is_in(&self.included);
        is_included && !is_in(&self.excluded) && !OF_THE_SYSTEM.iter().any(|folder| is_below(path, folder))
    }
}

/// Whether `path` is `folder`, or lies in it.
fn is_below(path: &[u8], folder: &[u8]) -> bool {
    let folder = folder.strip_suffix(b"/").unwrap_or(folder);
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// The absolute path of what a call names by `path`, from the folder that `descriptor` is of; links are not followed.
/// `None` where it has none, or a longer one than a system takes.
///
/// # Safety
/// `path` is null or terminated.
pub(crate) unsafe fn absolute(descriptor: c_int, path: *const c_char, buffer: &mut [u8; PATH]) -> Option<&[u8]> {
    if path.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    if path.starts_with(b"/") {
        buffer.get_mut(..path.len())?.copy_from_slice(path);
        return buffer.get(..path.len());
    }
    let folder_len = match descriptor {
        libc::AT_FDCWD => current_folder(buffer)?,
        descriptor => path_of(descriptor, buffer)?.len(),
    };
    joined(folder_len, path, buffer)
}

/// Puts `path` behind the folder that `buffer` begins with.
fn joined<'a>(folder_len: usize, mut path: &[u8], buffer: &'a mut [u8; PATH]) -> Option<&'a [u8]> {
    while let Some(rest) = path.strip_prefix(b"./") {
        path = rest;
    }
    if path.is_empty() || path == b"." {
        return buffer.get(..folder_len);
    }
    // The root ends with the slash already.
    let at = if folder_len == 1 { 0 } else { folder_len };
    let len = at + 1 + path.len();
    let end = buffer.get_mut(at..len)?;
    end[0] = b'/';
    end[1..].copy_from_slice(path);
    buffer.get(..len)
}

/// The length of the path of the current folder, which is written to `buffer`.
fn current_folder(buffer: &mut [u8; PATH]) -> Option<usize> {
    // SAFETY: the system writes no more than there is room for, and a zero behind it, which it counts.
    let len = unsafe { libc::syscall(libc::SYS_getcwd, buffer.as_mut_ptr(), buffer.len()) };
    usize::try_from(len).ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_told_from_names_that_begin_alike() {
        let folders = |folders: &[&str]| folders.iter().map(|folder| folder.as_bytes().to_vec()).collect();
        let watched = Watched { included: folders(&["/data", "/scratch/"]), excluded: folders(&["/data/tmp"]) };
        let cases = [
            ("/data", true),
            ("/data/train/1.jpg", true),
            ("/database", false),
            ("/scratch/x", true),
            ("/data/tmp", false),
            ("/data/tmp/x", false),
            ("/data/tmpfile", true),
            ("/opt/x", false),
        ];
        for (path, expected) in cases {
            assert_eq!(watched.has(path.as_bytes()), expected, "{path}");
        }
        let all = Watched::default();
        assert!(all.has(b"/opt/x") && !all.has(b"/proc/self/maps") && !all.has(b"/dev/shm/x"));
    }

    #[test]
    fn relative_paths_become_absolute() {
        let of = |path: &CStr| {
            let mut buffer = [0; PATH];
            // SAFETY: terminated.
            unsafe { absolute(libc::AT_FDCWD, path.as_ptr(), &mut buffer) }.map(<[u8]>::to_vec)
        };
        let here = std::env::current_dir().unwrap().into_os_string().into_encoded_bytes();
        assert_eq!(of(c"/a/b"), Some(b"/a/b".to_vec()));
        assert_eq!(of(c"a/b"), Some([&here, b"/a/b".as_slice()].concat()));
        assert_eq!(of(c"././a"), Some([&here, b"/a".as_slice()].concat()));
        assert_eq!(of(c"."), Some(here));
        let long = std::ffi::CString::new(vec![b'a'; PATH]).unwrap();
        assert_eq!(of(&long), None);
        let mut buffer = [0; PATH];
        buffer[0] = b'/';
        assert_eq!(joined(1, b"etc", &mut buffer), Some(b"/etc".as_slice()));
    }
}

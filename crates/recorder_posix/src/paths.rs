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
#[inline]
fn is_below(path: &[u8], folder: &[u8]) -> bool {
    let len = folder.len() - usize::from(folder.ends_with(b"/"));
    // Most differ in the first bytes. The C library compares 32 at once, which takes long where the last page ends before.
    len <= path.len()
        && path.get(len).is_none_or(|next| *next == b'/')
        && path.iter().zip(&folder[..len]).all(|(of_path, of_folder)| of_path == of_folder)
}

/// What `of` makes of the absolute path of what a call names by `path`, from the folder that `descriptor` is of. Slashes and
/// dots that mean nothing are left out; links are not followed, and `..` stays, since where it leads depends on them. `None`
/// where there is no path, or a longer one than a system takes.
///
/// # Safety
/// `path` is null or terminated.
#[inline(always)]
pub(crate) unsafe fn absolute<R>(
    descriptor: c_int,
    path: *const c_char,
    of: impl FnOnce(&[u8]) -> Option<R>,
) -> Option<R> {
    if path.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    if is_normal(path) {
        return of(path);
    }
    let mut buffer = [0; PATH];
    normal(descriptor, path, &mut buffer).and_then(of)
}

/// Whether a path is absolute and has nothing to leave out; names that begin with a dot are looked at again.
#[inline]
fn is_normal(path: &[u8]) -> bool {
    // All of it, which is quicker than to stop at the first.
    let has_more = path.windows(2).fold(false, |has, pair| has | (pair[0] == b'/' && matches!(pair[1], b'/' | b'.')));
    path.starts_with(b"/") && !has_more && !path.ends_with(b"/") && path.len() < PATH
}

#[cold]
fn normal<'a>(descriptor: c_int, path: &[u8], buffer: &'a mut [u8; PATH]) -> Option<&'a [u8]> {
    let folder_len = match descriptor {
        _ if path.starts_with(b"/") => 0,
        libc::AT_FDCWD => current_folder(buffer)?,
        descriptor => path_of(descriptor, buffer)?.len(),
    };
    // The root ends with the slash already.
    let mut len = if folder_len == 1 { 0 } else { folder_len };
    for part in path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".") {
        let end = buffer.get_mut(len..=len + part.len())?;
        end[0] = b'/';
        end[1..].copy_from_slice(part);
        len += end.len();
    }
    if len == 0 {
        (buffer[0], len) = (b'/', 1);
    }
    Some(&buffer[..len])
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
    fn paths_become_absolute_and_normal() {
        let of = |path: &CStr| {
            // SAFETY: terminated.
            unsafe { absolute(libc::AT_FDCWD, path.as_ptr(), |path| Some(path.to_vec())) }
        };
        let here = std::env::current_dir().unwrap().into_os_string().into_encoded_bytes();
        let in_it = |rest: &[u8]| Some([&here, rest].concat());
        assert_eq!(of(c"/a/b"), Some(b"/a/b".to_vec()));
        assert_eq!(of(c"a/b"), in_it(b"/a/b"));
        assert_eq!(of(c"././a"), in_it(b"/a"));
        assert_eq!(of(c"a//b/./c/"), in_it(b"/a/b/c"));
        assert_eq!(of(c"."), in_it(b""));
        for (path, normal) in [
            (c"/", "/"),
            (c"//", "/"),
            (c"/./", "/"),
            (c"//a", "/a"),
            (c"/a/", "/a"),
            (c"/a/./.b//c", "/a/.b/c"),
            (c"/a/../b", "/a/../b"),
            (c"/a/b/.", "/a/b"),
        ] {
            assert_eq!(of(path), Some(normal.as_bytes().to_vec()), "{path:?}");
        }
        for path in [vec![b'a'; PATH], [b"/".as_slice(), &[b'a'; PATH]].concat()] {
            assert_eq!(of(&std::ffi::CString::new(path).unwrap()), None);
        }
        let root = std::fs::File::open("/").unwrap();
        let root = std::os::fd::AsRawFd::as_raw_fd(&root);
        // SAFETY: terminated.
        let in_root = unsafe { absolute(root, c"etc".as_ptr(), |path| Some(path.to_vec())) };
        assert_eq!(in_root, Some(b"/etc".to_vec()));
    }
}

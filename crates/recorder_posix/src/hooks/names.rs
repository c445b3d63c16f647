//! Files are asked for, renamed, removed by name.

use crate::real::hooks;
use crate::recorded::{on_path, on_two_paths};
use libc::{AT_FDCWD, mode_t, size_t, ssize_t};
use std::ffi::{c_char, c_int, c_uint, c_void};
use stepscope_recorder::IoFunction::{
    Access, Chmod, Faccessat, Fchmodat, Fstatat, Link, Linkat, Lstat, Mkdir, Mkdirat, Readlink, Readlinkat, Rename,
    Renameat, Rmdir, Stat, Statx, Symlink, Symlinkat, Unlink, Unlinkat,
};

hooks! {
    fn stat(path: *const c_char, to: *mut c_void) -> c_int |real| on_path(Stat, (AT_FDCWD, path), real);
    fn stat64(path: *const c_char, to: *mut c_void) -> c_int |real| on_path(Stat, (AT_FDCWD, path), real);
    fn __xstat(version: c_int, path: *const c_char, to: *mut c_void) -> c_int
        |real| on_path(Stat, (AT_FDCWD, path), real);
    fn __xstat64(version: c_int, path: *const c_char, to: *mut c_void) -> c_int
        |real| on_path(Stat, (AT_FDCWD, path), real);
    fn lstat(path: *const c_char, to: *mut c_void) -> c_int |real| on_path(Lstat, (AT_FDCWD, path), real);
    fn lstat64(path: *const c_char, to: *mut c_void) -> c_int |real| on_path(Lstat, (AT_FDCWD, path), real);
    fn __lxstat(version: c_int, path: *const c_char, to: *mut c_void) -> c_int
        |real| on_path(Lstat, (AT_FDCWD, path), real);
    fn __lxstat64(version: c_int, path: *const c_char, to: *mut c_void) -> c_int
        |real| on_path(Lstat, (AT_FDCWD, path), real);
    fn fstatat(folder: c_int, path: *const c_char, to: *mut c_void, flags: c_int) -> c_int
        |real| on_path(Fstatat, (folder, path), real);
    fn fstatat64(folder: c_int, path: *const c_char, to: *mut c_void, flags: c_int) -> c_int
        |real| on_path(Fstatat, (folder, path), real);
    fn __fxstatat(version: c_int, folder: c_int, path: *const c_char, to: *mut c_void, flags: c_int) -> c_int
        |real| on_path(Fstatat, (folder, path), real);
    fn __fxstatat64(version: c_int, folder: c_int, path: *const c_char, to: *mut c_void, flags: c_int) -> c_int
        |real| on_path(Fstatat, (folder, path), real);
    fn statx(folder: c_int, path: *const c_char, flags: c_int, mask: c_uint, to: *mut c_void) -> c_int
        |real| on_path(Statx, (folder, path), real);
    fn access(path: *const c_char, mode: c_int) -> c_int |real| on_path(Access, (AT_FDCWD, path), real);
    fn faccessat(folder: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int
        |real| on_path(Faccessat, (folder, path), real);
    fn readlink(path: *const c_char, to: *mut c_char, len: size_t) -> ssize_t
        |real| on_path(Readlink, (AT_FDCWD, path), real);
    fn __readlink_chk(path: *const c_char, to: *mut c_char, len: size_t, room: size_t) -> ssize_t
        |real| on_path(Readlink, (AT_FDCWD, path), real);
    fn readlinkat(folder: c_int, path: *const c_char, to: *mut c_char, len: size_t) -> ssize_t
        |real| on_path(Readlinkat, (folder, path), real);
    fn __readlinkat_chk(folder: c_int, path: *const c_char, to: *mut c_char, len: size_t, room: size_t) -> ssize_t
        |real| on_path(Readlinkat, (folder, path), real);
    fn rename(from: *const c_char, to: *const c_char) -> c_int
        |real| on_two_paths(Rename, (AT_FDCWD, from), (AT_FDCWD, to), real);
    fn renameat(from_folder: c_int, from: *const c_char, to_folder: c_int, to: *const c_char) -> c_int
        |real| on_two_paths(Renameat, (from_folder, from), (to_folder, to), real);
    fn renameat2(from_folder: c_int, from: *const c_char, to_folder: c_int, to: *const c_char, flags: c_uint) -> c_int
        |real| on_two_paths(Renameat, (from_folder, from), (to_folder, to), real);
    fn unlink(path: *const c_char) -> c_int |real| on_path(Unlink, (AT_FDCWD, path), real);
    fn remove(path: *const c_char) -> c_int |real| on_path(Unlink, (AT_FDCWD, path), real);
    fn unlinkat(folder: c_int, path: *const c_char, flags: c_int) -> c_int
        |real| on_path(Unlinkat, (folder, path), real);
    fn mkdir(path: *const c_char, mode: mode_t) -> c_int |real| on_path(Mkdir, (AT_FDCWD, path), real);
    fn mkdirat(folder: c_int, path: *const c_char, mode: mode_t) -> c_int |real| on_path(Mkdirat, (folder, path), real);
    fn rmdir(path: *const c_char) -> c_int |real| on_path(Rmdir, (AT_FDCWD, path), real);
    fn link(from: *const c_char, to: *const c_char) -> c_int
        |real| on_two_paths(Link, (AT_FDCWD, from), (AT_FDCWD, to), real);
    fn linkat(from_folder: c_int, from: *const c_char, to_folder: c_int, to: *const c_char, flags: c_int) -> c_int
        |real| on_two_paths(Linkat, (from_folder, from), (to_folder, to), real);
    fn symlink(points_at: *const c_char, path: *const c_char) -> c_int |real| on_path(Symlink, (AT_FDCWD, path), real);
    fn symlinkat(points_at: *const c_char, folder: c_int, path: *const c_char) -> c_int
        |real| on_path(Symlinkat, (folder, path), real);
    fn chmod(path: *const c_char, mode: mode_t) -> c_int |real| on_path(Chmod, (AT_FDCWD, path), real);
    fn fchmodat(folder: c_int, path: *const c_char, mode: mode_t, flags: c_int) -> c_int
        |real| on_path(Fchmodat, (folder, path), real);
}

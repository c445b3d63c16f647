//! The process ends without telling the loader, or begins another program.

use crate::ends::finish;
use crate::programs::{Texts, begins, searched_begins};
use crate::real::hooks;
use libc::{AT_FDCWD, pid_t};
use std::ffi::{c_char, c_int, c_void};

hooks! {
    // It does not come back.
    fn _exit(status: c_int) -> c_int |real| { finish(); real() };
    // These only do when they fail.
    fn execv(path: *const c_char, arguments: Texts) -> c_int |real| {
        begins((AT_FDCWD, path), None);
        finish();
        real()
    };
    fn execve(path: *const c_char, arguments: Texts, environment: Texts) -> c_int |real| {
        begins((AT_FDCWD, path), Some(environment));
        finish();
        real()
    };
    fn execvp(name: *const c_char, arguments: Texts) -> c_int |real| {
        searched_begins(name, None);
        finish();
        real()
    };
    fn execvpe(name: *const c_char, arguments: Texts, environment: Texts) -> c_int |real| {
        searched_begins(name, Some(environment));
        finish();
        real()
    };
    fn fexecve(program: c_int, arguments: Texts, environment: Texts) -> c_int |real| { finish(); real() };
    fn execveat(folder: c_int, path: *const c_char, arguments: Texts, environment: Texts, flags: c_int) -> c_int |real| {
        begins((folder, path), Some(environment));
        finish();
        real()
    };
    fn posix_spawn(
        pid: *mut pid_t,
        path: *const c_char,
        actions: *const c_void,
        attributes: *const c_void,
        arguments: Texts,
        environment: Texts
    ) -> c_int |real| { begins((AT_FDCWD, path), Some(environment)); real() };
    fn posix_spawnp(
        pid: *mut pid_t,
        name: *const c_char,
        actions: *const c_void,
        attributes: *const c_void,
        arguments: Texts,
        environment: Texts
    ) -> c_int |real| { searched_begins(name, Some(environment)); real() };
}

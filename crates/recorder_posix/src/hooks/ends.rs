//! The process ends without telling the loader, or begins another program.

use crate::ends::finish;
use crate::real::hooks;
use std::ffi::{c_char, c_int};

/// The arguments of a program, and its environment.
type Texts = *const *const c_char;

hooks! {
    // It does not come back.
    fn _exit(status: c_int) -> c_int |real| { finish(); real() };
    // These only do when they fail.
    fn execv(path: *const c_char, arguments: Texts) -> c_int |real| { finish(); real() };
    fn execve(path: *const c_char, arguments: Texts, environment: Texts) -> c_int |real| { finish(); real() };
    fn execvp(name: *const c_char, arguments: Texts) -> c_int |real| { finish(); real() };
    fn execvpe(name: *const c_char, arguments: Texts, environment: Texts) -> c_int |real| { finish(); real() };
    fn fexecve(program: c_int, arguments: Texts, environment: Texts) -> c_int |real| { finish(); real() };
    fn execveat(folder: c_int, path: *const c_char, arguments: Texts, environment: Texts, flags: c_int) -> c_int
        |real| { finish(); real() };
}

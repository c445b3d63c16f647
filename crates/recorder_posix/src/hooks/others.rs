//! Descriptors that are of no file: the number may have been that of one which was closed where nobody saw it.

use crate::descriptors::opened;
use crate::real::hooks;
use crate::start::{is_on, is_vforked};
use std::ffi::{c_char, c_int, c_uint, c_void};

fn no_file(new: c_int) -> c_int {
    if new >= 0 && is_on() && !is_vforked() {
        opened(new, None, 0);
    }
    new
}

fn no_files(returned: c_int, new: *const c_int) -> c_int {
    if returned == 0 && !new.is_null() {
        // SAFETY: the system has just written both.
        unsafe { [*new, *new.add(1)] }.into_iter().for_each(|new| _ = no_file(new));
    }
    returned
}

hooks! {
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int |real| no_file(real());
    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, new: *mut c_int) -> c_int |real| no_files(real(), new);
    fn accept(socket: c_int, address: *mut c_void, len: *mut c_void) -> c_int |real| no_file(real());
    fn accept4(socket: c_int, address: *mut c_void, len: *mut c_void, flags: c_int) -> c_int |real| no_file(real());
    fn pipe(new: *mut c_int) -> c_int |real| no_files(real(), new);
    fn pipe2(new: *mut c_int, flags: c_int) -> c_int |real| no_files(real(), new);
    fn eventfd(value: c_uint, flags: c_int) -> c_int |real| no_file(real());
    fn epoll_create(size: c_int) -> c_int |real| no_file(real());
    fn epoll_create1(flags: c_int) -> c_int |real| no_file(real());
    fn memfd_create(name: *const c_char, flags: c_uint) -> c_int |real| no_file(real());
}

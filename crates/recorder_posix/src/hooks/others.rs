//! Descriptors that are of no file: the number may have been that of one which was closed where nobody saw it.

use crate::descriptors::{opened_other, peer};
use crate::real::hooks;
use crate::sockets::Peer;
use crate::start::{is_on, is_vforked};
use std::ffi::{c_char, c_int, c_uint, c_void};

fn other(new: c_int, peer: Option<Peer>) -> c_int {
    if new >= 0 && is_on() && !is_vforked() {
        opened_other(new, peer);
    }
    new
}

fn others(returned: c_int, new: *const c_int, peer: Option<Peer>) -> c_int {
    if returned == 0 && !new.is_null() {
        // SAFETY: the system has just written both.
        unsafe { [*new, *new.add(1)] }.into_iter().for_each(|new| _ = other(new, peer));
    }
    returned
}

hooks! {
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int |real| other(real(), Peer::of(domain));
    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, new: *mut c_int) -> c_int
        |real| others(real(), new, Peer::of(domain));
    fn accept(socket: c_int, address: *mut c_void, len: *mut c_void) -> c_int |real| {
        let peer = peer(socket);
        other(real(), peer)
    };
    fn accept4(socket: c_int, address: *mut c_void, len: *mut c_void, flags: c_int) -> c_int |real| {
        let peer = peer(socket);
        other(real(), peer)
    };
    fn pipe(new: *mut c_int) -> c_int |real| others(real(), new, None);
    fn pipe2(new: *mut c_int, flags: c_int) -> c_int |real| others(real(), new, None);
    fn eventfd(value: c_uint, flags: c_int) -> c_int |real| other(real(), None);
    fn epoll_create(size: c_int) -> c_int |real| other(real(), None);
    fn epoll_create1(flags: c_int) -> c_int |real| other(real(), None);
    fn memfd_create(name: *const c_char, flags: c_uint) -> c_int |real| other(real(), None);
}

//! Bytes go over sockets: they are counted.

use crate::descriptors::peer;
use crate::real::hooks;
use crate::sockets::moved;
use crate::start::is_vforked;
use crate::unseen::Way;
use libc::{mmsghdr, msghdr, size_t, socklen_t, ssize_t, timespec};
use std::ffi::{c_int, c_uint, c_void};

/// What is looked at stays, and counts when it is taken; what an error was about was counted when it was sent.
const COUNTS_NOT: c_int = libc::MSG_PEEK | libc::MSG_ERRQUEUE;

fn count(way: Way, (descriptor, flags): (c_int, c_int), real: impl FnOnce() -> ssize_t) -> ssize_t {
    counted(way, (descriptor, flags), real, |bytes| u64::try_from(bytes).unwrap_or(0))
}

/// Several messages at once.
fn count_messages(
    way: Way,
    (descriptor, flags): (c_int, c_int),
    messages: *const mmsghdr,
    real: impl FnOnce() -> c_int,
) -> c_int {
    counted(way, (descriptor, flags), real, |count| {
        let count = if messages.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) };
        // SAFETY: the system has just written the lengths of as many.
        (0..count).map(|at| u64::from(unsafe { (*messages.add(at)).msg_len })).sum()
    })
}

#[inline]
fn counted<R: Copy>(
    way: Way,
    (descriptor, flags): (c_int, c_int),
    real: impl FnOnce() -> R,
    bytes: impl FnOnce(R) -> u64,
) -> R {
    if flags & COUNTS_NOT != 0 || is_vforked() {
        return real();
    }
    // Before: the descriptor may be another's afterwards.
    let peer = peer(descriptor);
    let returned = real();
    if let (Some(peer), bytes @ 1..) = (peer, bytes(returned)) {
        moved(peer, way, bytes);
    }
    returned
}

hooks! {
    fn send(socket: c_int, from: *const c_void, len: size_t, flags: c_int) -> ssize_t
        |real| count(Way::Written, (socket, flags), real);
    fn sendto(
        socket: c_int,
        from: *const c_void,
        len: size_t,
        flags: c_int,
        address: *const c_void,
        address_len: socklen_t
    ) -> ssize_t |real| count(Way::Written, (socket, flags), real);
    fn sendmsg(socket: c_int, message: *const msghdr, flags: c_int) -> ssize_t
        |real| count(Way::Written, (socket, flags), real);
    fn sendmmsg(socket: c_int, messages: *mut mmsghdr, number: c_uint, flags: c_int) -> c_int
        |real| count_messages(Way::Written, (socket, flags), messages, real);
    fn recv(socket: c_int, to: *mut c_void, len: size_t, flags: c_int) -> ssize_t
        |real| count(Way::Read, (socket, flags), real);
    fn __recv_chk(socket: c_int, to: *mut c_void, len: size_t, room: size_t, flags: c_int) -> ssize_t
        |real| count(Way::Read, (socket, flags), real);
    fn recvfrom(
        socket: c_int,
        to: *mut c_void,
        len: size_t,
        flags: c_int,
        address: *mut c_void,
        address_len: *mut socklen_t
    ) -> ssize_t |real| count(Way::Read, (socket, flags), real);
    fn __recvfrom_chk(
        socket: c_int,
        to: *mut c_void,
        len: size_t,
        room: size_t,
        flags: c_int,
        address: *mut c_void,
        address_len: *mut socklen_t
    ) -> ssize_t |real| count(Way::Read, (socket, flags), real);
    fn recvmsg(socket: c_int, message: *mut msghdr, flags: c_int) -> ssize_t
        |real| count(Way::Read, (socket, flags), real);
    fn recvmmsg(socket: c_int, messages: *mut mmsghdr, number: c_uint, flags: c_int, until: *mut timespec) -> c_int
        |real| count_messages(Way::Read, (socket, flags), messages, real);
}

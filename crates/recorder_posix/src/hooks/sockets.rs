//! Bytes go over sockets: they are counted, and each call is recorded where that is asked for.

use crate::descriptors::peer;
use crate::real::hooks;
use crate::sockets::{connecting, moved, recorded};
use crate::start::is_vforked;
use crate::unseen::Way;
use libc::{mmsghdr, msghdr, size_t, sockaddr, socklen_t, ssize_t, timespec};
use std::ffi::{c_int, c_uint, c_void};
use stepscope_recorder::{IoAction, IoFunction};

/// What is looked at stays, and counts when it is taken; what an error was about was counted when it was sent.
const COUNTS_NOT: c_int = libc::MSG_PEEK | libc::MSG_ERRQUEUE;

/// One message, or part of a stream; `asked`: how many bytes there is room for, or are to be sent.
#[inline]
fn count(
    function: IoFunction,
    (descriptor, flags): (c_int, c_int),
    asked: impl FnOnce() -> usize,
    real: impl FnOnce() -> ssize_t,
) -> ssize_t {
    if flags & COUNTS_NOT != 0 || is_vforked() {
        return real();
    }
    // Before: the descriptor may be another's afterwards.
    let Some(peer) = peer(descriptor) else { return real() };
    let bytes = recorded(Some(function), descriptor, asked, real);
    if bytes > 0 {
        moved(peer, way(function), bytes as u64);
    }
    bytes
}

/// Several messages at once.
fn count_messages(
    function: IoFunction,
    (descriptor, flags): (c_int, c_int),
    (messages, number): (*const mmsghdr, c_uint),
    real: impl FnOnce() -> c_int,
) -> c_int {
    let mut returned = 0;
    let of = |at: usize| {
        // SAFETY: the program has as many, and the system has just written the lengths of those that it gave back.
        unsafe { &*messages.add(at) }
    };
    let asked = || (0..number as usize).filter(|_| !messages.is_null()).map(|at| asked_by(&of(at).msg_hdr)).sum();
    let moved = || {
        returned = real();
        let count = if messages.is_null() { 0 } else { usize::try_from(returned).unwrap_or(0) };
        let bytes: usize = (0..count).map(|at| of(at).msg_len as usize).sum();
        if returned < 0 { -1 } else { bytes as ssize_t }
    };
    count(function, (descriptor, flags), asked, moved);
    returned
}

fn way(function: IoFunction) -> Way {
    if function.action() == IoAction::Write { Way::Written } else { Way::Read }
}

/// How many bytes a message has, or has room for.
fn asked_by(message: *const msghdr) -> usize {
    // SAFETY: the program's message, and its parts; the system has read both.
    let parts = unsafe {
        let Some(message) = message.as_ref().filter(|message| !message.msg_iov.is_null()) else { return 0 };
        std::slice::from_raw_parts(message.msg_iov, message.msg_iovlen)
    };
    parts.iter().map(|part| part.iov_len).fold(0, usize::saturating_add)
}

hooks! {
    fn connect(socket: c_int, address: *const sockaddr, len: socklen_t) -> c_int
        // SAFETY: the program passes as much.
        |real| unsafe { connecting(socket, address, len, real) };
    fn send(socket: c_int, from: *const c_void, len: size_t, flags: c_int) -> ssize_t
        |real| count(IoFunction::Send, (socket, flags), || len, real);
    fn sendto(
        socket: c_int,
        from: *const c_void,
        len: size_t,
        flags: c_int,
        address: *const c_void,
        address_len: socklen_t
    ) -> ssize_t |real| count(IoFunction::Sendto, (socket, flags), || len, real);
    fn sendmsg(socket: c_int, message: *const msghdr, flags: c_int) -> ssize_t
        |real| count(IoFunction::Sendmsg, (socket, flags), || asked_by(message), real);
    fn sendmmsg(socket: c_int, messages: *mut mmsghdr, number: c_uint, flags: c_int) -> c_int
        |real| count_messages(IoFunction::Sendmmsg, (socket, flags), (messages, number), real);
    fn recv(socket: c_int, to: *mut c_void, len: size_t, flags: c_int) -> ssize_t
        |real| count(IoFunction::Recv, (socket, flags), || len, real);
    fn __recv_chk(socket: c_int, to: *mut c_void, len: size_t, room: size_t, flags: c_int) -> ssize_t
        |real| count(IoFunction::Recv, (socket, flags), || len, real);
    fn recvfrom(
        socket: c_int,
        to: *mut c_void,
        len: size_t,
        flags: c_int,
        address: *mut c_void,
        address_len: *mut socklen_t
    ) -> ssize_t |real| count(IoFunction::Recvfrom, (socket, flags), || len, real);
    fn __recvfrom_chk(
        socket: c_int,
        to: *mut c_void,
        len: size_t,
        room: size_t,
        flags: c_int,
        address: *mut c_void,
        address_len: *mut socklen_t
    ) -> ssize_t |real| count(IoFunction::Recvfrom, (socket, flags), || len, real);
    fn recvmsg(socket: c_int, message: *mut msghdr, flags: c_int) -> ssize_t
        |real| count(IoFunction::Recvmsg, (socket, flags), || asked_by(message), real);
    fn recvmmsg(socket: c_int, messages: *mut mmsghdr, number: c_uint, flags: c_int, until: *mut timespec) -> c_int
        |real| count_messages(IoFunction::Recvmmsg, (socket, flags), (messages, number), real);
}

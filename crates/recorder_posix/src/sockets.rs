//! What goes over sockets: counted, not recorded call by call.

use crate::recorded::{errno, set_errno};
use crate::start::{Inside, is_on, is_vforked};
use crate::thread_sums::{Sum, ended, mine, of_sockets};
use crate::unseen::Way;
use std::ffi::c_int;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use stepscope_recorder::set_own_metadata;

/// Metadata: calls, bytes received and bytes sent, over the network and to processes of the same host.
const KEY: &str = "io_sockets";
/// Time from one look at the sums to the next.
const PERIOD: Duration = Duration::from_secs(1);
/// Calls that were said last.
static SAID: AtomicU64 = AtomicU64::new(NOTHING);
const NOTHING: u64 = u64::MAX;

/// Whom a socket leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Peer {
    Network,
    Local,
}

impl Peer {
    /// That of a socket of a domain; `None` for one that is not counted, as to the kernel itself.
    pub(crate) fn of(domain: c_int) -> Option<Self> {
        match domain {
            libc::AF_INET | libc::AF_INET6 => Some(Self::Network),
            libc::AF_UNIX => Some(Self::Local),
            _ => None,
        }
    }

    /// That of a descriptor, if it is a socket.
    pub(crate) fn asked(descriptor: c_int) -> Option<Self> {
        let mut domain: c_int = 0;
        let mut len = size_of::<c_int>() as libc::socklen_t;
        // SAFETY: a plain system call, which writes no more than there is room for.
        let failed = unsafe {
            libc::syscall(
                libc::SYS_getsockopt,
                descriptor,
                libc::SOL_SOCKET,
                libc::SO_DOMAIN,
                &raw mut domain,
                &raw mut len,
            )
        };
        if failed == 0 { Self::of(domain) } else { None }
    }
}

/// The calling thread moved bytes over a socket.
#[inline]
pub(crate) fn moved(peer: Peer, way: Way, bytes: u64) {
    let (calls, sum) = match (peer, way) {
        (Peer::Network, Way::Read) => (Sum::NetworkCalls, Sum::NetworkReceived),
        (Peer::Network, Way::Written) => (Sum::NetworkCalls, Sum::NetworkSent),
        (Peer::Local, Way::Read) => (Sum::LocalCalls, Sum::LocalReceived),
        (Peer::Local, Way::Written) => (Sum::LocalCalls, Sum::LocalSent),
    };
    let mine = mine();
    mine.add(calls, 1);
    mine.add(sum, bytes);
    if SAID.load(Ordering::Relaxed) == NOTHING {
        say_first();
    }
}

/// The first bytes were moved. A process that uses no file is written down from now on, too.
#[cold]
fn say_first() {
    if is_vforked() {
        return;
    }
    let Some(_inside) = Inside::enter() else { return };
    let reason = errno();
    say();
    set_errno(reason);
}

/// Says what went over sockets so far; when to do so again.
pub(crate) fn say() -> Duration {
    let sums = of_sockets(&ended());
    let [network, _, _, local, ..] = sums;
    let calls = network.wrapping_add(local);
    if is_on() && SAID.swap(calls, Ordering::Relaxed) != calls {
        let mut text = String::new();
        for sum in sums {
            let _ = write!(text, "{}{sum}", if text.is_empty() { "" } else { " " });
        }
        set_own_metadata(KEY, &text);
    }
    PERIOD
}

/// Recording begins, or goes on in a forked child: nothing has been said yet.
pub(crate) fn begin() {
    SAID.store(NOTHING, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn sockets_to_the_network_are_told_from_others() {
        let network = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (local, _other) = UnixStream::pair().unwrap();
        let file = std::fs::File::open("/proc/self/stat").unwrap();
        assert_eq!(Peer::asked(network.as_raw_fd()), Some(Peer::Network));
        assert_eq!(Peer::asked(local.as_raw_fd()), Some(Peer::Local));
        assert_eq!(Peer::asked(file.as_raw_fd()), None);
        assert_eq!(Peer::of(libc::AF_NETLINK), None);
    }
}

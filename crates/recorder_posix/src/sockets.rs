//! What goes over sockets: counted, and recorded call by call where that is asked for.

use crate::files::{File, file};
use crate::recorded::{Call, bytes_and_asked, errno, set_errno, timed};
use crate::start::{Inside, is_on, is_vforked};
use crate::thread_sums::{Sum, ended, mine, of_sockets};
use crate::unseen::Way;
use libc::{sockaddr, sockaddr_in, sockaddr_in6, sockaddr_un, socklen_t};
use std::ffi::{CStr, c_int};
use std::fmt::Write as _;
use std::io::Write;
use std::mem::offset_of;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use stepscope_recorder::{IoFunction, set_own_metadata};

/// Metadata: calls, bytes received and bytes sent, over the network and to processes of the same host.
const KEY: &str = "io_sockets";
/// Time from one look at the sums to the next.
const PERIOD: Duration = Duration::from_secs(1);
/// Calls that were said last.
static SAID: AtomicU64 = AtomicU64::new(NOTHING);
const NOTHING: u64 = u64::MAX;

/// Set where each call is to be recorded.
const RECORD: &str = "STEPSCOPE_IO_SOCKETS";
static ARE_RECORDED: AtomicBool = AtomicBool::new(false);

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
        Self::of(option_of(descriptor, libc::SO_DOMAIN))
    }
}

/// What the system says of a socket; of what is none, 0.
fn option_of(descriptor: c_int, option: c_int) -> c_int {
    let mut value: c_int = 0;
    let mut len = size_of::<c_int>() as socklen_t;
    let (level, to) = (libc::SOL_SOCKET, &raw mut value);
    // SAFETY: a plain system call, which writes no more than there is room for.
    unsafe { libc::syscall(libc::SYS_getsockopt, descriptor, level, option, to, &raw mut len) };
    value
}

/// Who is at the other end of a socket, as a path is written: `tcp:10.0.0.1:443`, `unix:/run/a`.
struct PeerName {
    bytes: [u8; 160],
    len: usize,
}

impl PeerName {
    /// Of a socket that is connected; of any other, what kind it is.
    fn asked(socket: c_int) -> Self {
        let mut address = [0; size_of::<sockaddr_un>()];
        let mut len = address.len() as socklen_t;
        // SAFETY: a plain system call, which writes no more than there is room for.
        let failed = unsafe { libc::syscall(libc::SYS_getpeername, socket, address.as_mut_ptr(), &raw mut len) };
        let len = if failed == 0 { len as usize } else { 0 };
        Self::of(option_of(socket, libc::SO_TYPE), address.get(..len).unwrap_or(&address))
    }

    /// Of a `sockaddr`.
    fn of(kind: c_int, address: &[u8]) -> Self {
        let mut name = Self { bytes: [0; 160], len: 0 };
        let mut rest = name.bytes.as_mut_slice();
        let family = address.first_chunk().map_or(0, |bytes| c_int::from(u16::from_ne_bytes(*bytes)));
        let over = if kind == libc::SOCK_DGRAM { "udp" } else { "tcp" };
        let port = || address.get(2..4).and_then(|port| Some(u16::from_be_bytes(*port.first_chunk()?)));
        let bytes = |at: usize| address.get(at..).unwrap_or_default();
        let host = match family {
            libc::AF_INET => {
                bytes(offset_of!(sockaddr_in, sin_addr)).first_chunk::<4>().map(|host| IpAddr::from(*host))
            }
            libc::AF_INET6 => {
                bytes(offset_of!(sockaddr_in6, sin6_addr)).first_chunk::<16>().map(|host| IpAddr::from(*host))
            }
            _ => None,
        };
        // What does not fit is cut.
        let _ = match (host.zip(port()), bytes(offset_of!(sockaddr_un, sun_path))) {
            (Some((host, port)), _) => write!(rest, "{over}:{}", SocketAddr::new(host, port)),
            (None, _) if family != libc::AF_UNIX => write!(rest, "{over}"),
            (None, []) => write!(rest, "unix"),
            (None, [0, path @ ..]) => write!(rest, "unix:@").and_then(|()| rest.write_all(path)),
            (None, path) => {
                let path = CStr::from_bytes_until_nul(path).map_or(path, CStr::to_bytes);
                write!(rest, "unix:").and_then(|()| rest.write_all(path))
            }
        };
        let left = rest.len();
        name.len = name.bytes.len() - left;
        name
    }

    fn file(&self) -> Option<&'static File> {
        file(&self.bytes[..self.len])
    }
}

/// Calls `real`, one on a socket that gives back how many bytes it moved, and records it where that is asked for.
#[inline]
pub(crate) fn recorded(
    function: Option<IoFunction>,
    socket: c_int,
    asked: impl FnOnce() -> usize,
    real: impl FnOnce() -> isize,
) -> isize {
    let Some(function) = function.filter(|_| ARE_RECORDED.load(Ordering::Relaxed)) else { return real() };
    let file = named_by(|| PeerName::asked(socket));
    timed(real, |moved| {
        let (bytes, asked) = bytes_and_asked(moved, asked);
        Call { bytes, asked, ..Call::on(function, file) }
    })
}

/// As [`recorded`], one that connects to `address`.
///
/// # Safety
/// `address` is null, or has `len` bytes.
pub(crate) unsafe fn connecting(
    socket: c_int,
    address: *const sockaddr,
    len: socklen_t,
    real: impl FnOnce() -> c_int,
) -> c_int {
    if !is_on() || is_vforked() || !ARE_RECORDED.load(Ordering::Relaxed) {
        return real();
    }
    let len = if address.is_null() { 0 } else { len as usize };
    // SAFETY: the caller's promise.
    let address = if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(address.cast::<u8>(), len) } };
    let kind = || PeerName::of(option_of(socket, libc::SO_TYPE), address);
    let is_counted =
        address.first_chunk().is_some_and(|family| Peer::of(c_int::from(u16::from_ne_bytes(*family))).is_some());
    let file = if is_counted { named_by(kind) } else { None };
    timed(real, |_| Call::on(IoFunction::Connect, file))
}

fn named_by(name: impl FnOnce() -> PeerName) -> Option<&'static File> {
    let reason = errno();
    let file = name().file();
    set_errno(reason);
    file
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

/// Recording begins in a forked child: nothing has been said yet.
pub(crate) fn in_child() {
    SAID.store(NOTHING, Ordering::Relaxed);
}

/// Recording begins.
pub(crate) fn begin() {
    in_child();
    ARE_RECORDED.store(std::env::var_os(RECORD).is_some_and(|value| !value.is_empty()), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv6Addr, TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};

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

    #[test]
    fn peers_have_names() {
        let name = |socket: &dyn AsRawFd| {
            let name = PeerName::asked(socket.as_raw_fd());
            String::from_utf8(name.bytes[..name.len].to_vec()).unwrap()
        };
        let listening = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listening.local_addr().unwrap();
        assert_eq!(name(&TcpStream::connect(address).unwrap()), format!("tcp:{address}"));
        assert_eq!(name(&listening), "tcp");
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(name(&datagrams), "udp");
        datagrams.connect("127.0.0.1:9").unwrap();
        assert_eq!(name(&datagrams), "udp:127.0.0.1:9");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _listening = UnixListener::bind(&path).unwrap();
        assert_eq!(name(&UnixStream::connect(&path).unwrap()), format!("unix:{}", path.display()));
        assert_eq!(name(&UnixStream::pair().unwrap().0), "unix");
        let of = |address: &[u8]| {
            let name = PeerName::of(libc::SOCK_STREAM, address);
            String::from_utf8(name.bytes[..name.len].to_vec()).unwrap()
        };
        let v6 = [&[libc::AF_INET6 as u8, 0, 1, 187, 0, 0, 0, 0][..], &Ipv6Addr::LOCALHOST.octets(), &[0; 4]].concat();
        assert_eq!((of(&v6).as_str(), of(&v6[..9]).as_str(), of(b"").as_str()), ("tcp:[::1]:443", "tcp", "tcp"));
        assert_eq!(
            (of(b"\x01\0\0name").as_str(), of(&[b"\x01\0", &[b'a'; 300][..]].concat()).len()),
            ("unix:@name", 160)
        );
    }
}

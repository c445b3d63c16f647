//! Whether the process that wrote a capture still runs.

use std::time::{Duration, SystemTime};

/// Longest silence of a writer that cannot be looked up (another host, another container) before it counts as dead.
const SILENCE: Duration = Duration::from_secs(600);

/// What a capture's process is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It closed its capture.
    Closed,
    /// It still runs.
    Running,
    /// It ended without closing: killed, crashed, or left by `_exit`.
    Killed,
}

/// What names one process in the world.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProcessIdentity {
    /// Process id.
    pub pid: u64,
    /// Start time in clock ticks since boot.
    pub start_ticks: u64,
    /// Inode of its pid namespace.
    pub pid_namespace: u64,
    /// Boot id of its host.
    pub boot_id: [u8; 16],
}

impl ProcessIdentity {
    /// The identity of the calling process; unknown parts are 0.
    pub fn of_self() -> Self {
        let pid = u64::from(std::process::id());
        Self { pid, start_ticks: start_ticks(pid).unwrap_or(0), pid_namespace: pid_namespace(), boot_id: boot_id() }
    }

    /// True when the process runs. One that cannot be looked up from here runs as long as its heartbeat is recent.
    pub fn is_running(&self, heartbeat_unix_ns: u64) -> bool {
        let can_look_up = self.boot_id == boot_id() && self.pid_namespace == pid_namespace() && self.boot_id != [0; 16];
        if can_look_up {
            return match start_ticks(self.pid) {
                Some(start_ticks) => start_ticks == self.start_ticks,
                None => is_hidden(self.pid),
            };
        }
        let heartbeat = SystemTime::UNIX_EPOCH + Duration::from_nanos(heartbeat_unix_ns);
        // A heartbeat from the future is a clock that runs ahead of ours.
        SystemTime::now().duration_since(heartbeat).map_or(true, |silence| silence < SILENCE)
    }
}

/// Field 22 of `/proc/PID/stat`; `None` when there is no such process, or it is a zombie.
fn start_ticks(pid: u64) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.rsplit_once(") ")?.1;
    let mut fields = after_name.split(' ');
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// True for a process that exists but whose `/proc` entry is kept from us.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn is_hidden(pid: u64) -> bool {
    let Ok(pid) = libc::pid_t::try_from(pid) else { return false };
    if std::path::Path::new("/proc").join(pid.to_string()).exists() {
        return false;
    }
    // SAFETY: signal 0 only asks.
    let is_refused = unsafe { libc::kill(pid, 0) } != 0;
    is_refused && std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

#[cfg(not(target_os = "linux"))]
fn is_hidden(_: u64) -> bool {
    false
}

#[cfg(unix)]
fn pid_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino())
}

#[cfg(not(unix))]
fn pid_namespace() -> u64 {
    0
}

fn boot_id() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).map_or([0; 16], u128::to_be_bytes)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_runs_and_a_finished_one_does_not() {
        let me = ProcessIdentity::of_self();
        assert!(me.is_running(0));
        assert!(!ProcessIdentity { start_ticks: me.start_ticks + 1, ..me }.is_running(u64::MAX >> 1));
    }

    #[test]
    fn a_stranger_runs_while_its_heart_beats() {
        let stranger = ProcessIdentity { boot_id: [7; 16], ..ProcessIdentity::of_self() };
        let now_ns = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
        assert!(stranger.is_running(now_ns));
        assert!(stranger.is_running(now_ns + 5_000_000_000), "its clock may run ahead");
        assert!(!stranger.is_running(now_ns - 1_200_000_000_000));
    }
}

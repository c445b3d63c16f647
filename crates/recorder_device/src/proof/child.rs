//! The process that tries: what it is to its parent, and what it tells.

use super::{Verdict, prove};
use crate::Wanted;
use std::fs::File;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};
use std::time::Duration;

/// Tries, in a process that is there for nothing else, and writes lines to standard output: `at STAGE` before each
/// stage; then `proven`, `refused WHY` or `untried WHY`, the first after `device`, `library`, `version` and `works`.
///
/// The process ends with its parent, and at the latest after `limit`.
pub fn run_child(kind: &str, wanted: &Wanted, device: u32, limit: Duration) {
    // SAFETY: plain numbers. No core is kept of a crash that somebody waits for.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::alarm(u32::try_from(limit.as_secs()).unwrap_or(u32::MAX).saturating_add(5));
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
    }
    let Some(output) = keep_output_alone() else { return };
    // SAFETY: the descriptor is ours, and closed by nobody: it tells that the process has ended.
    let mut output = ManuallyDrop::new(unsafe { File::from_raw_fd(output) });
    let mut tell = |line: String| drop(output.write_all(format!("{}\n", line.replace('\n', " ")).as_bytes()));
    let verdict = prove(kind, wanted, device, &mut |stage| tell(format!("at {stage}")));
    match verdict {
        Verdict::Proven(tried) => {
            tell(format!("device {}", tried.device));
            tell(format!("library {}", tried.library.display()));
            tell(format!("version {}", tried.version));
            tell(format!("works {}", tried.works));
            tell("at its process ended".into());
            tell("proven".into());
        }
        Verdict::Refused(why) => tell(format!("refused {why}")),
        Verdict::Untried(why) => tell(format!("untried {why}")),
    }
}

/// Standard output under a number of its own, since libraries write to number 1, and nothing else that was inherited.
fn keep_output_alone() -> Option<RawFd> {
    // SAFETY: numbers of descriptors; nobody else in this process uses those that are closed.
    unsafe {
        let output = libc::fcntl(1, libc::F_DUPFD_CLOEXEC, 3);
        if output < 3 || libc::dup2(2, 1) < 0 {
            return None;
        }
        let last = libc::c_uint::try_from(output).ok()?;
        for (from, to) in [(3, last - 1), (last + 1, libc::c_uint::MAX)] {
            if from <= to {
                libc::syscall(libc::SYS_close_range, from, to, 0);
            }
        }
        Some(output)
    }
}

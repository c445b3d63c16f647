//! Another process, which may take only so long.

use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long is waited at a time, before the caller is asked whether it still wants to.
const SLICE: Duration = Duration::from_millis(50);
/// What does not fit is not what was expected.
const LONGEST_ANSWER: usize = 64 << 10;

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It took too long and was killed.
    Late,
    /// Somebody else was told.
    Unknown,
}

/// Runs a command to its end, without input, in a process group of its own; gives what it wrote to standard output. It
/// is killed after `limit`, or as soon as `is_wanted` says no.
///
/// # Errors
/// It cannot be started.
pub fn run_limited(
    command: &mut Command,
    limit: Duration,
    is_wanted: &mut dyn FnMut() -> bool,
) -> Result<(Vec<u8>, End), String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let end = Instant::now() + limit;
    let mut answer = Vec::new();
    let is_over = read(&mut child, &mut answer, end, is_wanted) && wait_until(end, &mut child, is_wanted);
    if is_over {
        return Ok((answer, end_of(&mut child)));
    }
    // SAFETY: a signal to the group that was made for this process, which has not been waited for.
    unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL) };
    // What hangs in a driver does not die at once, and perhaps never.
    wait_until(Instant::now() + Duration::from_secs(2), &mut child, &mut || true);
    Ok((answer, End::Late))
}

/// Reads until the other side ends; false when that takes too long.
fn read(child: &mut Child, answer: &mut Vec<u8>, end: Instant, is_wanted: &mut dyn FnMut() -> bool) -> bool {
    let Some(mut pipe) = child.stdout.take() else { return true };
    let mut chunk = [0; 4096];
    while Instant::now() < end && is_wanted() {
        let mut ready = libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor, as said.
        if unsafe { libc::poll(&mut ready, 1, SLICE.as_millis() as libc::c_int) } <= 0 {
            continue;
        }
        match pipe.read(&mut chunk) {
            Ok(0) => return true,
            Ok(count) if answer.len() < LONGEST_ANSWER => answer.extend(&chunk[..count]),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return true,
        }
    }
    false
}

/// True when it has ended, or nobody can tell.
fn wait_until(end: Instant, child: &mut Child, is_wanted: &mut dyn FnMut() -> bool) -> bool {
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= end || !is_wanted() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

fn end_of(child: &mut Child) -> End {
    match child.try_wait() {
        Ok(Some(status)) => status.code().map(End::Code).or(status.signal().map(End::Signal)).unwrap_or(End::Unknown),
        // A program may wait for whatever child ends.
        _ => End::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(text: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", text]);
        command
    }

    #[test]
    fn what_it_wrote_and_how_it_ended_are_told() {
        let run = |text| run_limited(&mut shell(text), Duration::from_secs(60), &mut || true).unwrap();
        assert_eq!(run("echo a; echo b >&2; exit 3"), (b"a\n".to_vec(), End::Code(3)));
        assert_eq!(run("echo c; kill -SEGV $$"), (b"c\n".to_vec(), End::Signal(libc::SIGSEGV)));
        // What it leaves behind keeps nobody waiting.
        assert_eq!(run("exec >&-; exit 0"), (vec![], End::Code(0)));
        assert!(run_limited(&mut Command::new("/no/such"), SLICE, &mut || true).is_err());
    }

    #[test]
    fn what_takes_too_long_is_killed_with_all_that_it_started() {
        let text = "echo begun; sleep 1000 & exec 9<&0; sleep 1000";
        let (answer, end) = run_limited(&mut shell(text), Duration::from_millis(300), &mut || true).unwrap();
        assert_eq!(end, End::Late);
        assert!(answer.is_empty() || answer == b"begun\n");
        // What is not wanted any more does not wait for the limit.
        let mut asked = 0;
        let mut is_wanted = || {
            asked += 1;
            asked < 3
        };
        let begin = Instant::now();
        let ended = run_limited(&mut shell("sleep 1000"), Duration::from_secs(1000), &mut is_wanted).unwrap();
        assert!(ended.1 == End::Late && begin.elapsed() < Duration::from_secs(500));
    }
}

//! The program while it runs: started, waited for, signals passed on.

use std::ffi::OsString;
use std::io;
use std::process::{Command, ExitStatus};

/// Runs `command` to its end with `environment` added to ours.
///
/// It shares our terminal and process group, so Ctrl-C reaches it directly; this process outlives such signals to
/// close the run. What is sent to this process alone (SIGTERM, SIGHUP) is passed on; `on_keep` is called on SIGUSR2.
pub(super) fn run(
    command: &[OsString],
    environment: &[(&str, OsString)],
    on_keep: Option<&(dyn Fn() + Sync)>,
) -> io::Result<ExitStatus> {
    let mut program = Command::new(&command[0]);
    program.args(&command[1..]).envs(environment.iter().map(|(name, value)| (name, value)));
    run_with_signals(program, on_keep)
}

#[cfg(unix)]
fn run_with_signals(mut program: Command, on_keep: Option<&(dyn Fn() + Sync)>) -> io::Result<ExitStatus> {
    use rustix::process::{Pid, Signal, kill_process};
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR2};
    use signal_hook::iterator::Signals;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    const HANDLED: [i32; 4] = [SIGINT, SIGQUIT, SIGTERM, SIGHUP];
    // Once the program has ended, signals are for this process again: a run that is being closed can be closed later.
    let has_ended = Arc::new(AtomicBool::new(false));
    for signal in HANDLED {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&has_ended))?;
    }
    // Registered before the start, so that no signal is lost; handlers, unlike ignored signals, end with exec.
    let mut signals = Signals::new(HANDLED)?;
    if on_keep.is_some() {
        signals.add_signal(SIGUSR2)?;
    }
    let handle = signals.handle();
    let mut child = program.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for signal in signals.forever() {
                let passed_on = match signal {
                    SIGTERM => Some(Signal::TERM),
                    SIGHUP => Some(Signal::HUP),
                    SIGUSR2 => {
                        on_keep.iter().for_each(|keep| keep());
                        None
                    }
                    _ => None,
                };
                if let (Some(pid), Some(signal)) = (pid, passed_on) {
                    // A program that has just ended needs no signal.
                    let _ = kill_process(pid, signal);
                }
            }
        });
        let status = child.wait();
        has_ended.store(true, Ordering::SeqCst);
        handle.close();
        status
    })
}

#[cfg(not(unix))]
fn run_with_signals(mut program: Command, _on_keep: Option<&(dyn Fn() + Sync)>) -> io::Result<ExitStatus> {
    program.status()
}

/// The program's exit code; 128 and the signal's number when a signal killed it, as shells say it.
pub(super) fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + signal_of(status))
}

#[cfg(unix)]
fn signal_of(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.signal().unwrap_or(0)
}

#[cfg(not(unix))]
fn signal_of(_status: ExitStatus) -> i32 {
    0
}

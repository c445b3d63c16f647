//! The one device profiler that this process listens to: begun, flushed and ended from any thread.

use crate::worker::{Request, Worker};
use crate::{DeviceProfiler, Found, Refusal, Wanted, cuda, forked, rocm, xpu};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use stepscope_recorder as recorder;
use stepscope_recorder::ForkLock;

/// How long a caller waits for the vendor's library. It may hang, and the job must not.
const TIMEOUT: Duration = Duration::from_secs(10);

/// And how long a window of the flight recorder waits for what the library has complete.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(2);

static CURRENT: ForkLock<Option<Arc<Worker>>> = ForkLock::new(None);

/// What listens to devices of a `kind`.
fn profiler_of(kind: &str) -> Result<Box<dyn DeviceProfiler>, Refusal> {
    match kind {
        "cuda" => Ok(Box::<cuda::Cuda>::default()),
        "rocm" => Ok(Box::<rocm::Rocm>::default()),
        "xpu" => Ok(Box::<xpu::Xpu>::default()),
        _ => Err(Refusal(format!("{kind} is not a kind of device that can be recorded: cuda, rocm, xpu"))),
    }
}

/// Looks what is able to listen to devices of a `kind` (`cuda`, `rocm`, `xpu`), without listening. With
/// `may_initialize` the process may begin to use the devices, which it never does otherwise.
///
/// # Errors
/// Why none is.
pub fn find(kind: &str, libraries: &[PathBuf], may_initialize: bool) -> Result<Found, Refusal> {
    if forked::is_forked() {
        return Err(is_forked());
    }
    profiler_of(kind)?.find(libraries, may_initialize)
}

/// Begins to listen to the devices of a `kind`.
///
/// # Errors
/// Why it cannot be done.
pub fn start(kind: &str, wanted: &Wanted) -> Result<Found, Refusal> {
    start_with(profiler_of(kind)?, wanted)
}

/// As [`start`], with a profiler at hand.
///
/// # Errors
/// Why it cannot be done.
pub fn start_with(profiler: Box<dyn DeviceProfiler>, wanted: &Wanted) -> Result<Found, Refusal> {
    start_within(TIMEOUT, profiler, wanted)
}

fn start_within(timeout: Duration, profiler: Box<dyn DeviceProfiler>, wanted: &Wanted) -> Result<Found, Refusal> {
    if forked::is_forked() {
        return Err(is_forked());
    }
    forked::watch();
    recorder::before_snapshot(flush_for_snapshot);
    let worker = {
        let mut current = CURRENT.lock();
        match current.as_ref() {
            Some(worker) if worker.is_over() => {}
            Some(worker) if worker.is_abandoned() => {
                return Err(Refusal("the devices' profiler hangs".into()));
            }
            Some(_) => return Err(Refusal("devices are recorded already".into())),
            None => {}
        }
        let worker = Worker::start(profiler, wanted.clone())
            .ok_or_else(|| Refusal("the system has no thread left to record devices with".into()))?;
        Arc::clone(current.insert(worker))
    };
    let Some(started) = worker.started(timeout) else {
        // It has been waited for long enough: what hangs as it starts would hang as it ends.
        worker.abandon();
        return Err(Refusal(format!("the devices' profiler did not start within {} s", timeout.as_secs_f32())));
    };
    if started.is_err() {
        end(&worker);
    }
    started
}

/// Has what is complete written. Waits for it, but not for long.
pub fn flush() {
    flush_within(TIMEOUT);
}

/// A window is about to be kept: what the device did last belongs to it.
fn flush_for_snapshot() {
    flush_within(SNAPSHOT_TIMEOUT);
}

fn flush_within(limit: Duration) {
    let worker = CURRENT.lock().clone();
    if let Some(worker) = worker {
        worker.request(Request::Flush, limit);
    }
}

/// Listens no longer. Waits until all is written, but not for ever.
pub fn stop() {
    let worker = CURRENT.lock().clone();
    let Some(worker) = worker else { return };
    end(&worker);
}

/// Ends the thread, or leaves it alone when that takes too long.
fn end(worker: &Arc<Worker>) {
    if !worker.request(Request::Stop, TIMEOUT) {
        return worker.abandon();
    }
    // Another may have begun in the meantime.
    let mut current = CURRENT.lock();
    if current.as_ref().is_some_and(|now| Arc::ptr_eq(now, worker)) {
        *current = None;
    }
}

fn is_forked() -> Refusal {
    Refusal("this process was forked from one that uses the devices, and cannot use them itself".into())
}

/// Nobody may be inside the lock when the process is copied.
pub(crate) unsafe extern "C" fn before_fork() {
    std::mem::forget(CURRENT.lock());
}

/// What [`before_fork`] took is free again. A child has no thread that listens.
pub(crate) fn after_fork(is_child: bool) {
    CURRENT.force_unlock();
    if is_child {
        // Not dropped: the parent's thread, which does not exist here, still counts as one that holds it.
        std::mem::forget(CURRENT.lock().take());
    }
}

#[cfg(test)]
mod tests;

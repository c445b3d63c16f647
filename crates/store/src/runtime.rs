//! Requests run on threads of their own, and the thread that asks waits for the answer.

use crate::location::Store;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::{Builder, Runtime};

/// Threads that wait for answers.
const THREADS: usize = 2;

/// What this process has open. A forked one begins anew: it has the memory of threads, and not the threads.
pub(crate) struct Process {
    pid: u32,
    runtime: Runtime,
    /// By the beginning of their addresses.
    pub(crate) stores: Mutex<HashMap<String, Arc<Store>>>,
}

/// That of this process.
pub(crate) fn process() -> io::Result<Arc<Process>> {
    static CURRENT: Mutex<Option<Arc<Process>>> = Mutex::new(None);
    let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    let pid = std::process::id();
    if let Some(process) = current.as_ref().filter(|process| process.pid == pid) {
        return Ok(process.clone());
    }
    let runtime =
        Builder::new_multi_thread().worker_threads(THREADS).thread_name("stepscope-store").enable_all().build()?;
    let process = Arc::new(Process { pid, runtime, stores: Mutex::default() });
    // Taking the other one down would wait for threads that are not here.
    std::mem::forget(current.replace(process.clone()));
    Ok(process)
}

/// Runs `future` beside this thread.
pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    process()?.runtime.spawn(future);
    Ok(())
}

/// Waits for what `future` gives, whatever thread this is.
pub(crate) fn wait<T: Send + 'static>(future: impl Future<Output = io::Result<T>> + Send + 'static) -> io::Result<T> {
    let (sender, receiver) = sync_channel(1);
    spawn(async move { drop(sender.send(future.await)) })?;
    receiver.recv().unwrap_or_else(|_| Err(io::Error::other("a request to a store was given up")))
}

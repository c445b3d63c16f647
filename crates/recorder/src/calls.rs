//! When calls of Python are recorded, and what threads were inside of when that began.

use crate::labels;
use crate::lock::ForkLock;
use crate::{CallName, clock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use stepscope_capture::layout::Tag;

/// Changes whenever threads must forget the calls they know of: these began to be recorded, or are no longer.
pub(crate) static CALLS_EPOCH: AtomicU64 = AtomicU64::new(1);
static ARE_ALL_WRITTEN: AtomicBool = AtomicBool::new(false);
pub(crate) static SEEDS: ForkLock<Seeds> = ForkLock::new(Seeds { start_ticks: 0, of_thread: BTreeMap::new() });

/// The calls that threads were inside of, until each takes its own.
pub(crate) struct Seeds {
    start_ticks: u64,
    of_thread: BTreeMap<u64, Vec<OpenCall>>,
}

/// A call that a thread is inside of.
#[derive(Clone, Copy, Debug)]
pub struct OpenCall {
    /// What tells it from other calls when it ends: the address of its code or function.
    pub key: usize,
    /// Its name.
    pub name: &'static CallName,
    /// One of [`crate::scope`].
    pub scope: u8,
}

/// Records calls from now on. `are_all_written`: every call becomes a range; else only those inside of which something
/// else is recorded. `open` has for threads (by [`thread_id`]) the calls they are inside of, the outermost first.
pub fn start_calls(are_all_written: bool, open: Vec<(u64, Vec<OpenCall>)>) {
    let mut seeds = SEEDS.lock();
    seeds.start_ticks = clock::ticks();
    seeds.of_thread = open.into_iter().collect();
    ARE_ALL_WRITTEN.store(are_all_written, Ordering::Relaxed);
    CALLS_EPOCH.fetch_add(1, Ordering::Release);
}

/// Records calls no longer; those that are open end now.
pub fn stop_calls() {
    labels::append(Tag::CallsStop, &[], &[]);
    let mut seeds = SEEDS.lock();
    seeds.of_thread = BTreeMap::new();
    ARE_ALL_WRITTEN.store(false, Ordering::Relaxed);
    CALLS_EPOCH.fetch_add(1, Ordering::Release);
}

/// True while every call becomes a range.
#[inline(always)]
pub fn are_all_written() -> bool {
    ARE_ALL_WRITTEN.load(Ordering::Relaxed)
}

/// What `threading.get_ident()` gives in the calling thread.
pub fn thread_id() -> u64 {
    // SAFETY: always succeeds.
    unsafe { libc::pthread_self() as u64 }
}

/// The calls that the calling thread was inside of when recording began, and when that was; they are given once.
pub(crate) fn take_seeds() -> (u64, Vec<OpenCall>) {
    let mut seeds = SEEDS.lock();
    (seeds.start_ticks, seeds.of_thread.remove(&thread_id()).unwrap_or_default())
}

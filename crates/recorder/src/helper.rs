//! The one thread of our own: it has segments ready before they are asked for, reads the clocks, and says that we live.

use crate::ring::Ring;
use crate::session::{STATE, Segment};
use crate::snapshot::{SnapshotRequests, Snapshotter};
use crate::{clock, counters, labels, own_descriptors};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;
use stepscope_capture::CaptureFile;
use stepscope_capture::layout::SEGMENT_HEADER_BYTES;

/// Segments kept ready.
const READY: usize = 2;
/// Time from one reading of the clocks to the next; the first ones come faster, so that a short capture has a rate.
const CLOCK_PERIOD: Duration = Duration::from_secs(1);
const FIRST_CLOCK_PERIOD: Duration = Duration::from_millis(1);
/// Time from one sample of the counters to the next.
const SAMPLE_PERIOD: Duration = Duration::from_millis(100);

/// The thread's name, by which the library that records calls on files knows it: its descriptors are not the program's.
pub const HELPER_THREAD: &str = "stepscope";

/// What the thread does beside its own work.
#[derive(Clone, Copy)]
pub struct HelperTask {
    /// A capture is being opened, in a forked child too: called by the thread that has it opened, and must not record.
    pub begin: fn(),
    /// What is due now, on the helper thread; the time until it is due again.
    pub run: fn() -> Duration,
}

static TASK: OnceLock<HelperTask> = OnceLock::new();

/// Sets what helper threads of captures that are opened from now on do beside their own work, once a process.
pub fn set_helper_task(task: HelperTask) {
    let _ = TASK.set(task);
}

/// The task is due now, whatever it has said; false where no capture is open. Not from a signal handler.
pub fn run_helper_task() -> bool {
    IS_DUE.store(true, Ordering::Release);
    let state = STATE.lock();
    let helper = state.session.as_ref().and_then(|session| session.helper.as_ref());
    helper.inspect(|helper| helper.thread().unpark()).is_some()
}

static IS_DUE: AtomicBool = AtomicBool::new(false);

pub(crate) struct Helper {
    join: JoinHandle<()>,
    is_stopping: Arc<AtomicBool>,
    /// Reasons to keep what is in the ring, not yet seen to.
    requests: Arc<SnapshotRequests>,
}

impl Helper {
    /// Starts the thread; `None` when the system has no more threads: then every thread maps its own segments.
    pub(crate) fn start(file: Arc<CaptureFile>, ring: Option<(Ring, Snapshotter)>) -> Option<Self> {
        TASK.get().into_iter().for_each(|task| (task.begin)());
        let (is_stopping, requests) = (Arc::new(AtomicBool::new(false)), Arc::new(SnapshotRequests::default()));
        let (seen_by_thread, requests_of_thread) = (Arc::clone(&is_stopping), Arc::clone(&requests));
        let spawn = || {
            let name = std::thread::Builder::new().name(HELPER_THREAD.into()).stack_size(256 << 10);
            name.spawn(move || run(&file, ring, &requests_of_thread, &seen_by_thread)).ok()
        };
        with_signals_blocked(spawn).map(|join| Self { join, is_stopping, requests })
    }

    /// The handle to wake it with.
    pub(crate) fn thread(&self) -> &Thread {
        self.join.thread()
    }

    /// Requests a snapshot of the ring; nothing is waited for.
    pub(crate) fn request_snapshot(&self, because: &str) {
        self.requests.add(because);
        self.join.thread().unpark();
    }

    /// Ends the thread.
    pub(crate) fn stop(self) {
        self.is_stopping.store(true, Ordering::Release);
        self.join.thread().unpark();
        let _ = self.join.join();
    }
}

/// Runs `f` so that a thread it starts never handles the job's signals.
pub fn with_signals_blocked<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: the sets are filled before they are read.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let result = f();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        result
    }
}

fn run(
    file: &Arc<CaptureFile>,
    ring: Option<(Ring, Snapshotter)>,
    requests: &SnapshotRequests,
    is_stopping: &AtomicBool,
) {
    own_descriptors::keep_only(file.descriptor());
    let (mut ring, mut snapshotter) = ring.unzip();
    let mut period = FIRST_CLOCK_PERIOD;
    let mut next_clock = std::time::Instant::now();
    let (mut next_sample, mut next_task) = (next_clock, next_clock);
    let mut sampler = counters::Sampler::new();
    while !is_stopping.load(Ordering::Acquire) {
        if let Some(ring) = &mut ring {
            ring.release_unless(|| requests.are_waiting());
        }
        tend_segments(file, ring.as_mut());
        if let (Some(ring), Some(snapshotter)) = (&mut ring, &mut snapshotter) {
            ring.hold();
            snapshotter.take_requested(file, requests, false, || tend_segments(file, Some(&mut *ring)));
        }
        let now = std::time::Instant::now();
        if now >= next_clock {
            labels::append_clock_unless_recent();
            file.header().heartbeat_unix_ns.store(clock::now().unix_ns as u64, Ordering::Relaxed);
            next_clock = now + period;
            period = (period * 10).min(CLOCK_PERIOD);
        }
        if counters::are_on() && now >= next_sample {
            sampler.sample();
            next_sample = now + SAMPLE_PERIOD;
        }
        if let Some(task) = TASK.get().filter(|_| IS_DUE.swap(false, Ordering::AcqRel) || now >= next_task) {
            next_task = now + (task.run)();
        }
        // A sample that is switched on meanwhile may be late by one clock period at most.
        let next = if counters::are_on() { next_clock.min(next_sample) } else { next_clock };
        let next = if TASK.get().is_some() { next.min(next_task) } else { next };
        std::thread::park_timeout(next.saturating_duration_since(std::time::Instant::now()));
    }
    // What was requested a moment ago is written, too.
    if let Some(snapshotter) = &mut snapshotter {
        snapshotter.take_requested(file, requests, true, || {});
    }
}

/// Maps what is missing and unmaps what is full, both outside the lock.
fn tend_segments(file: &Arc<CaptureFile>, mut ring: Option<&mut Ring>) {
    let (missing, retired) = {
        let mut state = STATE.lock();
        match &mut state.session {
            Some(session) if Arc::ptr_eq(&session.file, file) => {
                let mut retired = std::mem::take(&mut session.retired);
                if let Some(ring) = &ring {
                    retired.extend(ring.take_old(&mut session.partial));
                }
                (READY.saturating_sub(session.ready.len()), retired)
            }
            _ => return,
        }
    };
    match &mut ring {
        Some(ring) => {
            retired.into_iter().for_each(|segment| ring.retire(segment));
            ring.give_up_old(file);
        }
        None => retired.into_iter().for_each(Segment::unmap),
    }
    for _ in 0..missing {
        let base = match &mut ring {
            Some(ring) => ring.map_segment(file),
            None => file.map_segment(),
        };
        let Ok(base) = base else { return };
        let segment = fresh(base);
        match &mut STATE.lock().session {
            Some(session) if Arc::ptr_eq(&session.file, file) => session.ready.push(segment),
            _ => return segment.unmap(),
        }
    }
}

/// A segment of which only the header is written.
pub(crate) fn fresh(base: NonNull<u8>) -> Segment {
    // SAFETY: the header lies inside the segment, and records begin behind it, 8-byte aligned.
    Segment { base, cursor: unsafe { base.add(SEGMENT_HEADER_BYTES) }.cast(), left_ns: 0 }
}

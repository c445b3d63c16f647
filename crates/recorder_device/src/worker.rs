//! The thread `stepscope gpu`: everything that a vendor's library is asked to do, and every activity record that is
//! written.

use crate::wakeup::Wakeup;
use crate::{DeviceProfiler, DeviceProperties, Found, Refusal, Wanted};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use stepscope_recorder as recorder;
use stepscope_recorder::DeviceActivity;
use stepscope_recorder::device::{ActivityRecord, Dropped};

/// What the thread is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    /// Write what is complete.
    Flush,
    /// Write all there is, and end.
    Stop,
}

/// What the thread and its callers share.
pub(crate) struct Worker {
    started: OnceLock<Result<Found, Refusal>>,
    /// Flushes that were asked for, and those that are done.
    flushes_wanted: AtomicU32,
    flushes_done: AtomicU32,
    is_stopping: AtomicBool,
    is_over: AtomicBool,
    /// Nobody waits any more: what is still written would be of a recording that is over.
    is_abandoned: AtomicBool,
    answer: Wakeup,
}

impl Worker {
    /// Starts the thread; `None` when the system has no more.
    pub(crate) fn start(profiler: Box<dyn DeviceProfiler>, wanted: Wanted) -> Option<Arc<Self>> {
        let worker = Arc::new(Self {
            started: OnceLock::new(),
            flushes_wanted: AtomicU32::new(0),
            flushes_done: AtomicU32::new(0),
            is_stopping: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            is_abandoned: AtomicBool::new(false),
            answer: Wakeup::new(),
        });
        let of_thread = Arc::clone(&worker);
        let thread = std::thread::Builder::new().name("stepscope gpu".into()).stack_size(1 << 20);
        recorder::with_signals_blocked(|| thread.spawn(move || Loop::new(of_thread, profiler, wanted).run()).ok())?;
        Some(worker)
    }

    /// What became of the start; `None` when it takes longer than `limit`.
    pub(crate) fn started(&self, limit: Duration) -> Option<Result<Found, Refusal>> {
        self.wait(limit, || self.started.get().is_some());
        self.started.get().cloned()
    }

    /// Asks for something and waits until it is done; false when it takes longer than `limit`.
    pub(crate) fn request(&self, request: Request, limit: Duration) -> bool {
        match request {
            Request::Flush => {
                let flush = self.flushes_wanted.fetch_add(1, Ordering::AcqRel) + 1;
                Wakeup::worker().wake();
                let is_done = || self.flushes_done.load(Ordering::Acquire).wrapping_sub(flush) as i32 >= 0;
                self.wait(limit, || is_done() || self.is_over())
            }
            Request::Stop => {
                self.is_stopping.store(true, Ordering::Release);
                Wakeup::worker().wake();
                self.wait(limit, || self.is_over())
            }
        }
    }

    /// True when the thread has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Acquire)
    }

    /// Leaves the thread alone, which from now on writes nothing and ends when it can.
    pub(crate) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Release);
        self.is_stopping.store(true, Ordering::Release);
        Wakeup::worker().wake();
    }

    fn wait(&self, limit: Duration, is_done: impl Fn() -> bool) -> bool {
        let end = Instant::now() + limit;
        loop {
            let seen = self.answer.count();
            if is_done() {
                return true;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.answer.wait(seen, left);
        }
    }
}

/// The thread itself.
struct Loop {
    worker: Arc<Worker>,
    profiler: Box<dyn DeviceProfiler>,
    wanted: Wanted,
    devices: Vec<DeviceProperties>,
}

impl Loop {
    fn new(worker: Arc<Worker>, profiler: Box<dyn DeviceProfiler>, wanted: Wanted) -> Self {
        Self { worker, profiler, wanted, devices: Vec::new() }
    }

    fn run(mut self) {
        let started = self.profiler.start(&self.wanted);
        let is_started = started.is_ok();
        if let Ok(found) = &started {
            self.learn_devices(found.devices.clone());
            self.read_clock();
        }
        let _ = self.worker.started.set(started);
        self.worker.answer.wake();
        if is_started {
            self.listen();
            // The process may have begun to use a device since the last flush, or there was none.
            self.learn_devices(self.profiler.devices());
            // Before and after: the second may never come.
            self.read_clock();
            self.profiler.stop();
            self.write();
            self.read_clock();
        }
        let Self { worker, profiler, .. } = self;
        drop(profiler);
        worker.is_over.store(true, Ordering::Release);
        worker.answer.wake();
    }

    /// Writes what comes, until it is to stop.
    fn listen(&mut self) {
        let mut next_flush = Instant::now() + self.wanted.flush_period;
        let mut next_sample = self.wanted.sample_period.map(|_| Instant::now());
        loop {
            let seen = Wakeup::worker().count();
            if self.worker.is_stopping.load(Ordering::Acquire) {
                return;
            }
            self.write();
            let flushes = self.worker.flushes_wanted.load(Ordering::Acquire);
            let is_asked = flushes != self.worker.flushes_done.load(Ordering::Relaxed);
            if is_asked || Instant::now() >= next_flush {
                self.flush();
                next_flush = Instant::now() + self.wanted.flush_period;
                self.worker.flushes_done.store(flushes, Ordering::Release);
                self.worker.answer.wake();
            }
            if let (Some(next), Some(period)) = (&mut next_sample, self.wanted.sample_period)
                && Instant::now() >= *next
            {
                self.profiler.sample(&mut recorder::counter);
                *next = Instant::now() + period;
            }
            let next = next_sample.map_or(next_flush, |sample| sample.min(next_flush));
            Wakeup::worker().wait(seen, next.saturating_duration_since(Instant::now()));
        }
    }

    fn flush(&mut self) {
        self.read_clock();
        self.profiler.flush();
        self.write();
        // A process may begin to use a device at any time.
        let devices = self.profiler.devices();
        self.learn_devices(devices);
    }

    fn write(&mut self) {
        let (worker, device_type) = (&self.worker, self.profiler.device_type());
        let mut write = |record: ActivityRecord, name: Option<&str>| {
            if !worker.is_abandoned() {
                recorder::device_activity(&DeviceActivity { device_type, record }, name);
            }
        };
        self.profiler.write(&mut write);
        match self.profiler.take_dropped() {
            0 => {}
            count => write(ActivityRecord::Dropped(Dropped { count }), None),
        }
    }

    /// Ties the vendor's clock to the capture's.
    fn read_clock(&self) {
        if !self.worker.is_abandoned() {
            recorder::device_clock(|| self.profiler.clock_ns());
        }
    }

    fn learn_devices(&mut self, devices: Vec<DeviceProperties>) {
        if !devices.is_empty() && devices != self.devices && !self.worker.is_abandoned() {
            recorder::set_metadata("devices", &DeviceProperties::to_json(&devices));
            self.devices = devices;
        }
    }
}

#[cfg(test)]
mod tests;

//! Shows that a device's profiler tells what happened: work that is known runs while it listens, twice, and what it
//! reports must be that. In a process of its own, which may crash or hang instead: nothing here is for somebody's
//! training.

mod child;
mod process;
mod verify;

pub use child::run_child;
pub use process::{End, run_limited};

use crate::{DeviceProfiler, DeviceProperties, Found, Refusal, Wanted, Write, cuda, session};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stepscope_recorder::device::{ActivityRecord, Call, DeviceWork, Direction};

/// A profiler is started and stopped by a schedule, again and again.
const SESSIONS: usize = 2;
/// The clocks are compared so often; the quickest comparison counts.
const CLOCK_READINGS: usize = 16;

/// Work for a device, ready to run.
pub(crate) trait Workload {
    /// The device's number and name.
    fn device(&self) -> (u32, String);

    /// The name of its kernels.
    fn kernel_name(&self) -> &'static str;

    /// Runs it on one stream and waits for it.
    ///
    /// # Errors
    /// The device does not do it.
    fn run(&self) -> Result<Vec<Launched>, Refusal>;
}

/// A call that enqueued work, or waited for it, between two moments of the monotonic clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Launched {
    /// How its name begins.
    pub(crate) call: &'static str,
    pub(crate) before_ns: i64,
    pub(crate) after_ns: i64,
    /// In the order in which it runs.
    pub(crate) works: Vec<Expected>,
}

/// Something that has to run on the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    Kernel { grid: [u32; 3], block: [u32; 3], is_of_graph: bool },
    Memcpy { direction: Direction, bytes: u64 },
    Memset { bytes: u64 },
}

/// What a trial came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// What was reported is what was launched; with what was tried.
    Proven(Proof),
    /// It is not: why.
    Refused(String),
    /// Nothing could be tried: why.
    Untried(String),
}

/// What was tried.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Proof {
    /// The device's name.
    pub device: String,
    /// The profiler's library, and its version.
    pub library: PathBuf,
    /// See `library`.
    pub version: String,
    /// How many pieces of work ran and were reported.
    pub works: usize,
}

/// Tries the profiler of a `kind` of devices. `stage` hears what is about to be done, so that the parent process
/// knows where a library crashes.
pub fn prove(kind: &str, wanted: &Wanted, device: u32, stage: &mut dyn FnMut(&str)) -> Verdict {
    if kind != "cuda" {
        return Verdict::Untried(format!("nothing is known that would try out {kind}"));
    }
    stage("the GPU's driver was started");
    match cuda::workload(device) {
        Ok(workload) => try_out(&*workload, &mut || Box::<cuda::Cuda>::default(), wanted, stage),
        Err(Refusal(why)) => Verdict::Untried(why),
    }
}

fn try_out(
    workload: &dyn Workload,
    profiler: &mut dyn FnMut() -> Box<dyn DeviceProfiler>,
    wanted: &Wanted,
    stage: &mut dyn FnMut(&str),
) -> Verdict {
    let (number, device) = workload.device();
    let mut tried = Proof { device, ..Proof::default() };
    for _ in 0..SESSIONS {
        let reported = Arc::new(Mutex::new(Reported::default()));
        stage("it was told to listen");
        let found = match session::start_with(Box::new(ReportingProfiler::new(profiler(), &reported)), wanted) {
            Ok(found) => found,
            Err(Refusal(why)) => return Verdict::Untried(why),
        };
        // SAFETY: always succeeds. CUPTI tells threads by the lower half.
        let thread = unsafe { libc::pthread_self() } as u32;
        let mut launched = Vec::new();
        for _ in 0..2 {
            stage("it listened to work");
            match workload.run() {
                Ok(calls) => launched.extend(calls),
                Err(Refusal(why)) => return Verdict::Untried(why),
            }
            // What is complete is fetched while more is to come.
            stage("it handed over what it had");
            session::flush();
        }
        stage("it was told to stop");
        session::stop();
        let target = verify::Target { device: number, thread, kernel: workload.kernel_name() };
        if let Err(why) = verify::verify(&launched, &lock(&reported), &target) {
            return Verdict::Refused(why);
        }
        tried.works += launched.iter().map(|call| call.works.len()).sum::<usize>();
        (tried.library, tried.version) = (found.library, found.version);
    }
    Verdict::Proven(tried)
}

/// What a profiler reported.
#[derive(Default, Debug)]
struct Reported {
    works: Vec<(DeviceWork, String)>,
    calls: Vec<(Call, String)>,
    dropped: u64,
    moments: Vec<Moment>,
}

/// The profiler's clock at a moment of the monotonic one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Moment {
    host_ns: i64,
    device_ns: i64,
    /// How long the two may lie apart.
    took_ns: i64,
}

/// Wraps a profiler, and keeps a copy of its activity records.
struct ReportingProfiler {
    profiler: Box<dyn DeviceProfiler>,
    reported: Arc<Mutex<Reported>>,
}

impl ReportingProfiler {
    fn new(profiler: Box<dyn DeviceProfiler>, reported: &Arc<Mutex<Reported>>) -> Self {
        Self { profiler, reported: Arc::clone(reported) }
    }

    fn read_clock(&self) {
        let reading = |_| {
            let before_ns = monotonic_ns();
            let device_ns = self.profiler.clock_ns()?;
            let took_ns = monotonic_ns() - before_ns;
            Some(Moment { host_ns: before_ns + took_ns / 2, device_ns, took_ns })
        };
        let best = (0..CLOCK_READINGS).filter_map(reading).min_by_key(|moment| moment.took_ns);
        lock(&self.reported).moments.extend(best);
    }
}

impl DeviceProfiler for ReportingProfiler {
    fn device_type(&self) -> u8 {
        self.profiler.device_type()
    }

    fn find(&mut self, libraries: &[PathBuf], may_initialize: bool) -> Result<Found, Refusal> {
        self.profiler.find(libraries, may_initialize)
    }

    fn start(&mut self, wanted: &Wanted) -> Result<Found, Refusal> {
        let found = self.profiler.start(wanted)?;
        self.read_clock();
        Ok(found)
    }

    fn flush(&mut self) {
        self.profiler.flush();
    }

    fn write(&mut self, write: Write<'_>) {
        let reported = &self.reported;
        self.profiler.write(&mut |record, name| {
            let text = || name.unwrap_or_default().to_string();
            match record {
                ActivityRecord::Work(work) => lock(reported).works.push((work, text())),
                ActivityRecord::Call(call) => lock(reported).calls.push((call, text())),
                _ => {}
            }
            write(record, name);
        });
    }

    fn take_dropped(&mut self) -> u64 {
        let dropped = self.profiler.take_dropped();
        lock(&self.reported).dropped += dropped;
        dropped
    }

    fn clock_ns(&self) -> Option<i64> {
        self.profiler.clock_ns()
    }

    fn devices(&self) -> Vec<DeviceProperties> {
        self.profiler.devices()
    }

    fn stop(&mut self) {
        self.read_clock();
        self.profiler.stop();
    }

    fn sample(&mut self, counter: &mut dyn FnMut(&str, i64)) {
        self.profiler.sample(counter);
    }
}

fn lock(reported: &Mutex<Reported>) -> MutexGuard<'_, Reported> {
    reported.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The monotonic clock.
pub(crate) fn monotonic_ns() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct is writable, and this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

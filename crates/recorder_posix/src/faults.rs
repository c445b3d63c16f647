//! Page faults on mapped files, which the system tells of the process' own threads.
//!
//! ```text
//! a ring for each processor: faults, and what is mapped ─▶ in order of time ─▶ which file is it of? ─▶ a record
//! ```
//!
//! The helper thread reads the rings; a thread that faults does not notice. Where the system does not permit rings, the
//! thread looks now and then which pages are new in memory: [`sampled`].

mod mappings;
mod ring;
mod sampled;

use crate::files::File;
use crate::recorded::{capture_with, errno, set_errno};
use crate::start::Inside;
use mappings::{Mappings, mapped_file};
use ring::{Entry, Faults, Place, Ring, What};
use sampled::{ReadPage, Sampler, TABLE};
use std::ffi::c_int;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use stepscope_recorder::{ForkLock, IoFunction, IoRecord, MonotonicTicks, io_call, set_own_metadata};

/// Time from one reading of the rings to the next, while there are faults on files, or a ring fills fast, and while there
/// is neither.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_millis(40);
/// The next time it may fill some times as fast.
const MOST_FILLED: f64 = 1.0 / 16.0;
const NEVER: Duration = Duration::from_secs(24 * 3_600);
/// What another processor writes may be there a little later than what this one does, which came after it.
const SETTLED_NS: i64 = 2_000_000;
/// All that is mapped is asked for at most this often.
const ASKED_NS: i64 = 1_000_000_000;

/// Metadata: why none are recorded, why they are sampled, and how many are missing.
const REFUSED: &str = "page_faults_refused";
const SAMPLED: &str = "page_faults_sampled";
const LOST: &str = "page_faults_lost";

/// Whether they are sampled, as far as anybody has begun to.
static ARE_SAMPLED: AtomicBool = AtomicBool::new(false);
static WATCH: ForkLock<Option<Watch>> = ForkLock::new(None);

/// What is known of the faults of this process.
struct Watch {
    rings: Vec<Ring>,
    /// Where there are none.
    sampler: Option<Sampler>,
    /// What is to be said of those that are missing.
    refused: Option<(&'static str, String)>,
    pid: u32,
    clock: MonotonicTicks,
    mappings: Mappings,
    /// What is mapped is to be asked for, and when it was.
    is_to_ask: bool,
    asked_ns: i64,
    /// What has not settled yet.
    pending: Vec<Entry>,
    lost: u64,
    lost_said: u64,
    period: Duration,
}

/// A fault on a file that is watched.
struct Found {
    ticks: u64,
    tid: u32,
    function: IoFunction,
    file: &'static File,
    offset: u64,
}

/// Nobody may be reading the rings when the process is copied.
pub(crate) fn before_fork() {
    std::mem::forget(WATCH.lock());
}

pub(crate) fn after_fork() {
    WATCH.force_unlock();
}

pub(crate) fn in_child() {
    WATCH.force_unlock();
    // The rings are not mapped here.
    std::mem::forget(WATCH.lock().take());
    ARE_SAMPLED.store(false, Ordering::Relaxed);
}

/// A capture is being opened: the faults of this process are watched from now on.
pub(crate) fn begin() {
    let _inside = Inside::enter();
    let opened = Watch::open();
    *WATCH.lock() = Some(opened);
}

/// They are watched no longer.
pub(crate) fn end() {
    *WATCH.lock() = None;
    ARE_SAMPLED.store(false, Ordering::Relaxed);
}

/// A part of a file is about to be unmapped: where faults are sampled, its pages are looked up before.
#[inline]
pub(crate) fn unmapping(addresses: &Range<u64>, file: &'static File, offset: u64) {
    if ARE_SAMPLED.load(Ordering::Relaxed) {
        sample_before_unmapped(addresses, file, offset);
    }
}

#[cold]
fn sample_before_unmapped(addresses: &Range<u64>, file: &'static File, offset: u64) {
    let reason = errno();
    let Some(inside) = Inside::enter() else { return };
    let found = WATCH.try_lock().and_then(|mut watch| {
        let watch = watch.as_mut()?;
        let pages = watch.sampler.as_mut()?.look_at(addresses, file, offset);
        Some(Watch::sampled(pages))
    });
    drop(inside);
    found.iter().flatten().for_each(write);
    set_errno(reason);
}

/// Records what has happened and settled; the time until more is to be expected.
pub(crate) fn record_settled() -> Duration {
    record(false)
}

/// What is left is recorded: the process ends, or begins another program. False where it has no capture.
pub(crate) fn finish() -> bool {
    record(true);
    WATCH.lock().is_some()
}

/// Records what has happened; the time until more is to be expected.
fn record(is_last: bool) -> Duration {
    let (found, period, lost, refused) = {
        let mut watch = WATCH.lock();
        let Some(watch) = &mut *watch else { return NEVER };
        let found = watch.collect(is_last);
        let refused = watch.refused.take();
        let lost = (watch.lost != watch.lost_said).then_some(watch.lost);
        watch.lost_said = watch.lost;
        (found, watch.period, lost, refused)
    };
    // Outside of the lock: a thread that opens a capture holds that of the recorder, and waits for ours.
    found.iter().for_each(write);
    lost.into_iter().for_each(|lost| set_own_metadata(LOST, &lost.to_string()));
    refused.into_iter().for_each(|(key, reason)| set_own_metadata(key, &reason));
    period
}

fn reason_of(error: c_int) -> String {
    let error = std::io::Error::from_raw_os_error(error);
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    format!("perf_event_open: {error}; perf_event_paranoid is {}", paranoid.trim())
}

fn write(found: &Found) {
    let Some(capture) = capture_with(found.file) else { return };
    let record = IoRecord {
        function: found.function,
        errno: 0,
        duration_ticks: 0,
        file: found.file.number,
        other_file: 0,
        bytes: 0,
        asked: None,
        offset: Some(found.offset),
        thread: found.tid,
    };
    io_call(found.ticks, &record, capture);
}

impl Watch {
    fn open() -> Self {
        let mut rings = Vec::new();
        let refused = open_rings(&mut rings).err();
        let sampler = (refused.is_some() && rings.is_empty()).then(Sampler::begin);
        let key = if sampler.is_some() { SAMPLED } else { REFUSED };
        Self {
            rings,
            sampler,
            refused: refused.map(|error| (key, reason_of(error))),
            pid: std::process::id(),
            clock: MonotonicTicks::since_now(),
            mappings: Mappings::default(),
            is_to_ask: true,
            asked_ns: i64::MIN,
            pending: Vec::new(),
            lost: 0,
            lost_said: 0,
            period: SHORTEST,
        }
    }

    /// The faults on files since, as far as they have settled; all where it is the last time.
    fn collect(&mut self, is_last: bool) -> Vec<Found> {
        if self.sampler.is_some() {
            return self.sample();
        }
        let now_ns = monotonic_ns();
        let mut filled = 0.0_f64;
        for ring in &self.rings {
            filled = filled.max(ring.read(self.pid, &mut |entry| self.pending.push(entry)));
        }
        let ticks_at = self.clock.until_now();
        self.pending.sort_by_key(|entry| entry.time_ns);
        let until_ns = if is_last { i64::MAX } else { now_ns - SETTLED_NS };
        let settled = self.pending.partition_point(|entry| entry.time_ns <= until_ns);
        let settled: Vec<Entry> = self.pending.drain(..settled).collect();
        let mut found = Vec::new();
        for Entry { time_ns, what } in settled {
            match what {
                What::Lost(lost) => {
                    self.lost += lost;
                    // Something else may be mapped there by now.
                    self.mappings = Mappings::default();
                    self.is_to_ask = true;
                }
                What::Mapped { start, end, offset, path } => {
                    self.mappings.map((start, end), offset, mapped_file(&path));
                }
                What::Fault { faults, tid, address } => {
                    let place = self.mappings.find(address).or_else(|| self.ask(address, faults, now_ns));
                    let ticks = ticks_at(time_ns);
                    let function = match faults {
                        Faults::Major => IoFunction::MajorFault,
                        Faults::Minor => IoFunction::MinorFault,
                    };
                    found.extend(place.map(|(file, offset)| Found { ticks, tid, function, file, offset }));
                }
            }
        }
        let is_quiet = found.is_empty() && filled < MOST_FILLED;
        self.period = if is_quiet { (self.period * 2).min(LONGEST) } else { SHORTEST };
        found
    }

    /// What is new in memory. Where that cannot be found out, nobody looks again.
    fn sample(&mut self) -> Vec<Found> {
        let looked = self.sampler.as_mut().map_or(Ok((Vec::new(), NEVER)), Sampler::look);
        let (pages, period) = looked.unwrap_or_else(|error| {
            self.refused = self.refused.take().map(|(_, reason)| (REFUSED, format!("{reason}; {TABLE}: {error}")));
            self.sampler = None;
            (Vec::new(), NEVER)
        });
        self.period = period;
        ARE_SAMPLED.store(self.sampler.is_some(), Ordering::Relaxed);
        Self::sampled(pages)
    }

    fn sampled(pages: Vec<ReadPage>) -> Vec<Found> {
        let (ticks, function) = (stepscope_recorder::ticks(), IoFunction::SampledFault);
        pages.into_iter().map(|ReadPage { tid, file, offset }| Found { ticks, tid, function, file, offset }).collect()
    }

    /// Asks the system what is mapped, where that may tell more of an address.
    fn ask(&mut self, address: u64, faults: Faults, now_ns: i64) -> Option<(&'static File, u64)> {
        // Memory without a file has minor faults all the time.
        let is_due = faults == Faults::Major && now_ns.saturating_sub(self.asked_ns) >= ASKED_NS;
        if !self.is_to_ask && !is_due {
            return None;
        }
        (self.is_to_ask, self.asked_ns) = (false, now_ns);
        self.mappings.learn_all();
        self.mappings.find(address)
    }
}

/// Opens rings for the main thread and all that it starts from now on, and for those that there are already.
fn open_rings(rings: &mut Vec<Ring>) -> Result<(), c_int> {
    let pid = std::process::id() as c_int;
    let of_processors = processors().into_iter().map(|processor| Place { tid: pid, processor });
    let of_threads = other_threads(pid).into_iter().map(|tid| Place { tid, processor: -1 });
    let mut choice = 0;
    for place in of_processors.chain(of_threads) {
        for faults in [Faults::Major, Faults::Minor] {
            match Ring::open(faults, place, &mut choice) {
                Ok(ring) => rings.push(ring),
                // The processor is off, or the thread has ended.
                Err(libc::ENODEV | libc::ESRCH) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Those that the process may run on.
fn processors() -> Vec<c_int> {
    let mut bits = [0_u64; 128];
    // SAFETY: the system writes no more than there is room for.
    let bytes = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&bits), bits.as_mut_ptr()) };
    let known = usize::try_from(bytes).unwrap_or(0) * 8;
    (0..known).filter(|at| bits[at / 64] >> (at % 64) & 1 != 0).map(|at| at as c_int).collect()
}

fn other_threads(pid: c_int) -> Vec<c_int> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let tids = threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok());
    tids.filter(|tid| *tid != pid).collect()
}

fn monotonic_ns() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

//! Samples what the threads of Python run, some times a second, without stopping any and without the interpreter's lock.
//!
//! A thread that nobody follows costs nothing. The one that samples reads the frames of the others in the process's own
//! memory, through the kernel, which refuses what is not there any more.

mod doing;
mod file_names;
mod layout;
mod lines;
mod memory;
mod stack;

use doing::{System, Times, waits_at};
use file_names::FileNames;
use layout::{Known, NEXT_THREAD, Seen};
use memory::Memory;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use stack::Reader;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use stepscope_recorder::{self as recorder, Doing, HelperTask, StackSample, StackWriter};

/// From one sample to the next at least. It is a little more or less each time, so that nothing that repeats is always met
/// at the same place.
const SHORTEST: Duration = Duration::from_millis(25);
/// The same in times of what a sample takes of a processor, and what it is at most.
const SAMPLES: u32 = 400;
const LONGEST: Duration = Duration::from_millis(500);
/// What the last sample took is one part in eight of what a sample takes.
const INERTIA: u32 = 8;
/// While nothing is sampled.
const IDLE: Duration = Duration::from_millis(200);
/// Threads of one sample.
const MAX_THREADS: usize = 128;

static IS_ON: AtomicBool = AtomicBool::new(false);
static SEEN: Mutex<Option<Seen>> = Mutex::new(None);
static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// What samplers begin with.
struct Settings {
    known: Known,
    interpreter: usize,
    prefixes: Vec<String>,
    libraries: Vec<String>,
    own: String,
}

thread_local! {
    static SAMPLER: RefCell<Option<Sampler>> = const { RefCell::new(None) };
}

/// Looks at the frames of the calling functions, to find out how this Python keeps them. To be called from several
/// functions of Python that call each other.
#[pyfunction]
pub(crate) fn look_at_frames(py: Python<'_>) {
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    if SETTINGS.get().is_none() && seen.get_or_insert_default().look(py).is_none() {
        *seen = None;
    }
}

/// Samples from now on. `prefixes` are left out of paths, `libraries` those of files that are not the program's own; files
/// below `own` are not shown.
///
/// # Errors
/// One line that says why this Python cannot be sampled.
#[pyfunction]
pub(crate) fn start_stack_samples(
    py: Python<'_>,
    prefixes: Vec<String>,
    libraries: Vec<String>,
    own: String,
) -> PyResult<()> {
    if SETTINGS.get().is_none() {
        let found = SEEN.lock().unwrap_or_else(PoisonError::into_inner).take();
        let layout = found.ok_or_else(|| "frames are not as expected".to_string()).and_then(|seen| seen.layout());
        let layout = layout.map_err(PyRuntimeError::new_err)?;
        let known = Known { layout, lock: lock_of_interpreter(py) };
        // SAFETY: the lock is held.
        let interpreter = unsafe { ffi::PyInterpreterState_Get() } as usize;
        let _ = SETTINGS.set(Settings { known, interpreter, prefixes, libraries, own });
        recorder::set_helper_task(HelperTask { begin: || {}, run: run_task });
    }
    IS_ON.store(true, Ordering::Release);
    recorder::run_helper_task();
    Ok(())
}

/// Samples no longer.
#[pyfunction]
pub(crate) fn stop_stack_samples() {
    IS_ON.store(false, Ordering::Release);
}

/// Where threads wait for the interpreter's lock: one is made to, since the caller holds it.
fn lock_of_interpreter(py: Python<'_>) -> Option<std::ops::Range<usize>> {
    let (give, take) = std::sync::mpsc::channel();
    let wait = move || {
        // SAFETY: a plain question.
        let _ = give.send(unsafe { libc::syscall(libc::SYS_gettid) } as u32);
        Python::attach(|_| {});
    };
    let start = || std::thread::Builder::new().name("stepscope-probe".into()).spawn(wait).ok();
    let waiting = recorder::with_signals_blocked(start)?;
    let found = take.recv().ok().and_then(waits_at);
    py.detach(|| _ = waiting.join());
    found
}

fn run_task() -> Duration {
    if !IS_ON.load(Ordering::Acquire) {
        return IDLE;
    }
    SAMPLER.with_borrow_mut(|sampler| {
        if sampler.is_none() {
            *sampler = SETTINGS.get().and_then(Sampler::new);
        }
        match sampler {
            Some(sampler) => sampler.sample(),
            None => IDLE,
        }
    })
}

struct Sampler {
    settings: &'static Settings,
    memory: Memory,
    reader: Reader,
    system: System,
    writer: StackWriter,
    /// Of each thread what it was found in last.
    last: HashMap<u32, Found>,
    /// What a sample takes of a processor, mean of the last ones.
    cost: Duration,
    random: u64,
}

/// What a thread was found in.
struct Found {
    /// Where the interpreter keeps the thread: another one may have its number.
    thread: usize,
    turns: Option<i64>,
    doing: Doing,
    frames: Vec<Rc<str>>,
}

impl Found {
    /// True when the thread waited then and has not run since, so that nothing about it has changed.
    fn is_still(&self, thread: usize, turns: Option<i64>) -> bool {
        let has_waited = !matches!(self.doing, Doing::Running | Doing::Unknown);
        has_waited && self.thread == thread && self.turns.is_some() && self.turns == turns
    }
}

impl Sampler {
    fn new(settings: &'static Settings) -> Option<Self> {
        let Settings { known, prefixes, libraries, own, .. } = settings;
        let names = FileNames::new(prefixes.clone(), libraries.clone());
        Some(Self {
            settings,
            memory: Memory::new()?,
            reader: Reader::new(known.layout, names, own.clone()),
            system: System::default(),
            writer: StackWriter::default(),
            last: HashMap::new(),
            cost: Duration::ZERO,
            random: recorder::ticks() | 1,
        })
    }

    /// Samples every thread once; gives when to do so again.
    fn sample(&mut self) -> Duration {
        let begin = processor_time();
        self.sample_threads();
        if let Some(libraries) = self.reader.names.new_libraries() {
            recorder::set_own_metadata("library_files", &libraries);
        }
        let cost = processor_time().saturating_sub(begin);
        self.cost = (self.cost * (INERTIA - 1) + cost) / INERTIA;
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        // What is expensive now and then, such as functions that are new, is not waited for afterwards.
        pause(self.cost.min(cost), self.random)
    }

    fn sample_threads(&mut self) {
        let Settings { known, interpreter, .. } = self.settings;
        self.memory.forget();
        // Nothing says when the interpreter ends: it is memory like any other.
        let mut thread = self.memory.word(interpreter.wrapping_add(known.layout.first_thread)).unwrap_or(0);
        let mut sampled = Vec::new();
        // One that ends meanwhile may lead back to itself.
        for _ in 0..MAX_THREADS {
            if thread == 0 {
                break;
            }
            self.memory.forget();
            let Some(tid) = self.memory.word(thread.wrapping_add(known.layout.system_thread)) else { break };
            if let Ok(tid @ 1..) = u32::try_from(tid) {
                self.sample_thread(thread, tid);
                sampled.push(tid);
            }
            let Some(next) = self.memory.word(thread.wrapping_add(NEXT_THREAD)) else { break };
            thread = next;
        }
        self.system.keep(&sampled);
        if self.last.len() > sampled.len() {
            self.last.retain(|tid, _| sampled.contains(tid));
        }
    }

    fn sample_thread(&mut self, thread: usize, tid: u32) {
        let Times { cpu_ns, runnable_ns, turns } = self.system.times(tid);
        if !self.last.get(&tid).is_some_and(|last| last.is_still(thread, turns)) {
            let doing = self.system.doing(tid, &self.settings.known.lock);
            let frames = self.reader.read(thread, &mut self.memory).unwrap_or_default();
            self.last.insert(tid, Found { thread, turns, doing, frames });
        }
        let Some(Found { doing, frames, .. }) = self.last.get(&tid) else { return };
        let sample = StackSample { thread: 0, time_ns: 0, stack: None, doing: *doing, cpu_ns, runnable_ns };
        self.writer.write(tid, frames.iter().map(|frame| &**frame), sample);
    }
}

/// The time to the next sample, when one costs that much.
fn pause(cost: Duration, random: u64) -> Duration {
    let pause = (cost * SAMPLES).clamp(SHORTEST, LONGEST);
    // From four fifths to six fifths of it.
    pause * 4 / 5 + pause * (random % 400) as u32 / 1000
}

/// What the calling thread has taken of a processor.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is writable; without such a clock it stays zero.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_takes_the_same_share_of_a_processor_whatever_a_sample_costs() {
        let pauses = |cost| (0..400).map(move |random| pause(Duration::from_micros(cost), random));
        for (cost, shortest, longest) in [(0, 20, 30), (60, 20, 30), (1000, 320, 480), (10_000, 400, 600)] {
            assert!(pauses(cost).all(|pause| (shortest..=longest).contains(&pause.as_millis())), "{cost} µs");
            let sum: Duration = pauses(cost).sum();
            let mean = sum / 400;
            assert!(mean.as_millis().abs_diff((shortest + longest) / 2) <= 1, "{cost} µs: {mean:?}");
        }
        let before = processor_time();
        while processor_time() == before {}
    }
}

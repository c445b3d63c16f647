//! What the process and its control group take of the machine, and the machine's own counters, sampled by the helper thread.

use crate::buffer::{counter, with_buffer};
use crate::clock::ticks;
use crate::control_group::Group;
use crate::host_counters::{HostSampler, field};
use crate::names::Name;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use stepscope_capture::layout::Tag;

static ARE_ON: AtomicBool = AtomicBool::new(false);
/// The process that samples the machine; 0: none does.
static OF_HOST: AtomicU32 = AtomicU32::new(0);

/// Time from one sample of the machine, of the control group and of swap to the next.
const HOST_PERIOD: Duration = Duration::from_secs(1);

/// Samples from now on; also the machine where `are_of_host`, but not in processes that are forked.
pub fn start_counters(are_of_host: bool) {
    OF_HOST.store(if are_of_host { std::process::id() } else { 0 }, Ordering::Relaxed);
    ARE_ON.store(true, Ordering::Relaxed);
}

/// Samples no longer.
pub fn stop_counters() {
    ARE_ON.store(false, Ordering::Relaxed);
}

pub(crate) fn are_on() -> bool {
    ARE_ON.load(Ordering::Relaxed)
}

/// Reads the quantities.
pub(crate) struct Sampler {
    memory: Option<File>,
    page_bytes: i64,
    /// Made when it is needed first.
    host: Option<HostSampler>,
    group: Group,
    next_host: Instant,
}

impl Sampler {
    pub(crate) fn new() -> Self {
        // SAFETY: a plain question.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let memory = File::open("/proc/self/statm").ok();
        Self { memory, page_bytes, host: None, group: Group::default(), next_host: Instant::now() }
    }

    /// Writes what holds now; what cannot be read is left out.
    pub(crate) fn sample(&mut self) {
        let now = Instant::now();
        if now >= self.next_host {
            if OF_HOST.load(Ordering::Relaxed) == std::process::id() {
                self.host.get_or_insert_with(HostSampler::new).sample();
            }
            self.group.counters().iter().for_each(|(name, value)| counter(name, *value));
            swap_bytes().into_iter().for_each(|value| append("process swap (bytes)", value));
            self.next_host = now + HOST_PERIOD;
        }
        let [resident, shared] = self.resident_bytes().map_or([None; 2], |bytes| bytes.map(Some));
        let [user, system] = cpu_ns().map_or([None; 2], |times| times.map(Some));
        let quantities = [
            ("process memory (bytes)", resident),
            ("process shared memory (bytes)", shared),
            ("process CPU user (ns)", user),
            ("process CPU system (ns)", system),
        ];
        for (name, value) in quantities {
            value.into_iter().for_each(|value| append(name, value));
        }
    }

    /// The pages that the process has in memory, and those of them that are files or shared: the second and the third number
    /// of `statm`.
    fn resident_bytes(&self) -> Option<[i64; 2]> {
        let mut text = [0; 128];
        let len = self.memory.as_ref()?.read_at(&mut text, 0).ok()?;
        let mut pages = std::str::from_utf8(&text[..len]).ok()?.split(' ').skip(1);
        let mut bytes = || pages.next()?.parse::<i64>().ok()?.checked_mul(self.page_bytes);
        Some([bytes()?, bytes()?])
    }
}

/// What of the process' memory is in swap.
fn swap_bytes() -> Option<i64> {
    field(&std::fs::read_to_string("/proc/self/status").ok()?, "VmSwap:")?.checked_mul(1024)
}

/// CPU time of all threads so far, in the program and in the kernel on its behalf.
fn cpu_ns() -> Option<[i64; 2]> {
    // SAFETY: a plain structure that the call fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::getrusage(libc::RUSAGE_SELF, &mut usage) == 0).then_some(usage)?
    };
    Some([usage.ru_utime, usage.ru_stime].map(|time| time.tv_sec * 1_000_000_000 + time.tv_usec * 1000))
}

fn append(name: &'static str, value: i64) {
    with_buffer(|buffer| {
        // SAFETY: a text that lives for ever.
        let Some(id) = (unsafe { buffer.name_id(Name::text(name)) }) else { return };
        buffer.append(ticks(), Tag::Counter, &[u64::from(id), value as u64], &[]);
    });
}

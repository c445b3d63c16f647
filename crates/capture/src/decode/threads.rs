//! All threads of a process, replayed and put together.

use super::device;
use super::elsewhere::{end_elsewhere, end_steps_elsewhere};
use super::events::{Event, Mark, ProfilerState, Sample, StepRange, Window};
use super::parts::Part;
use super::process::ProcessRecords;
use super::replay::{ThreadRecords, replay};
use crate::Thread;
use crate::clock::{ClockPoint, TickClock};
use crate::device::DeviceActivity;
use crate::huge::prefer_large_pages;
use crate::layout::NO_THREAD;
use crate::memory::MemoryEvent;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// So many events take longer to replay than a thread to start.
const WORTH_A_THREAD: usize = 10_000;

/// What the threads of a process recorded, in the order that [`Capture`](crate::Capture) promises.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) threads: Vec<Thread>,
    pub(crate) names: Vec<String>,
    pub(crate) events: Vec<Event>,
    pub(crate) steps: Vec<StepRange>,
    pub(crate) optimizer_steps: Vec<Mark>,
    pub(crate) memory: Vec<MemoryEvent>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) profiler_states: Vec<ProfilerState>,
    pub(crate) device: Vec<DeviceActivity>,
    /// What of a device could not be placed, in words.
    pub(crate) device_damage: Option<String>,
    pub(crate) windows: Vec<Window>,
    /// The last moment at which the process is known to have lived.
    pub(crate) last_ns: i64,
    /// The ticks of the last record of any thread.
    pub(crate) last_ticks: u64,
    /// When ranges ended whose begin is not there, ns.
    pub(crate) lost_begins: Vec<i64>,
}

/// Replays every thread and puts together what they recorded.
pub(super) fn replay_all(parts: &[Part], process: &ProcessRecords, clock: &TickClock, opened: &ClockPoint) -> Decoded {
    // Definitions that a ring carried over belong to no thread.
    let of_threads = parts.chunk_by(|a, b| a.ordinal == b.ordinal).filter(|parts| parts[0].ordinal != NO_THREAD);
    let of_threads: Vec<&[Part]> = of_threads.collect();
    let count = of_threads.iter().map(|parts| events_of(parts)).sum();
    let mut events = Vec::with_capacity(count);
    prefer_large_pages(&mut events);
    events.resize(count, Event::default());
    let mut threads = replay_each(&of_threads, process, clock, &mut events);
    let names = share_texts(&mut threads, &process.names);
    end_elsewhere(&mut threads, &names);
    end_steps_elsewhere(&mut threads);
    let last_ns = last_moment(&threads, process, clock, opened.monotonic_ns);
    threads.iter_mut().for_each(|thread| finish(thread, last_ns));

    let mut steps: Vec<StepRange> = threads.iter().flat_map(|thread| &thread.steps).copied().collect();
    steps.sort_by_key(|step| (step.start_ns, step.number));
    let mut optimizer_steps: Vec<Mark> = threads.iter().flat_map(|thread| &thread.optimizer_steps).copied().collect();
    optimizer_steps.sort_by_key(|mark| mark.time_ns);
    let mut samples: Vec<Sample> = threads.iter().flat_map(|thread| &thread.samples).copied().collect();
    samples.sort_by_key(|sample| (sample.time_ns, sample.name));
    let window = |(ticks, is_on, cycle): &(u64, bool, u64)| Window {
        time_ns: clock.monotonic_ns(*ticks),
        is_on: *is_on,
        cycle: *cycle,
    };
    let mut windows: Vec<Window> = process.windows.iter().map(window).collect();
    windows.sort_by_key(|window| window.time_ns);
    let last_ticks = threads.iter().map(|thread| thread.last_ticks).max().unwrap_or(0);
    let lost_begins = threads.iter().flat_map(|thread| &thread.lost_begins).copied().collect();
    let mut memory: Vec<MemoryEvent> = threads.iter().flat_map(|thread| &thread.memory).copied().collect();
    memory.sort_by_key(|event| (event.thread, event.time_ns));
    let mut profiler_states: Vec<ProfilerState> =
        threads.iter().flat_map(|thread| &thread.profiler_states).copied().collect();
    profiler_states.sort_by_key(|state| (state.thread, state.since_ns));
    let mut activities = Vec::new();
    for thread in &mut threads {
        if activities.is_empty() {
            activities = std::mem::take(&mut thread.device);
        } else {
            activities.append(&mut thread.device);
        }
    }
    let mut threads: Vec<Thread> = threads.into_iter().map(|thread| thread.thread).collect();
    let (device, device_damage) = device::finish(activities, process, clock, &mut threads, last_ns);
    Decoded {
        threads,
        names,
        events,
        steps,
        optimizer_steps,
        memory,
        samples,
        profiler_states,
        device,
        device_damage,
        windows,
        last_ns,
        last_ticks,
        lost_begins,
    }
}

/// How many events replaying these parts makes.
fn events_of(parts: &[Part]) -> usize {
    parts.iter().map(|part| part.events).sum()
}

/// Replays threads side by side, each into its own stretch of `events`.
fn replay_each<'e>(
    of_threads: &[&[Part]],
    process: &'e ProcessRecords,
    clock: &TickClock,
    mut events: &'e mut [Event],
) -> Vec<ThreadRecords<'e>> {
    let mut jobs = Vec::new();
    for (ordinal, parts) in (0..).zip(of_threads.iter().copied()) {
        let own;
        (own, events) = events.split_at_mut(events_of(parts));
        jobs.push((ordinal, parts, own));
    }
    let replay_one = |(ordinal, parts, own)| replay(ordinal, parts, process, clock, own);
    let is_much = jobs.iter().filter(|(_, _, own)| own.len() >= WORTH_A_THREAD).count() > 1;
    if !is_much {
        return jobs.into_iter().map(replay_one).collect();
    }
    let helpers = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    let jobs = Mutex::new(jobs);
    let work = || {
        let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).pop();
        std::iter::from_fn(next).map(replay_one).collect::<Vec<_>>()
    };
    let mut threads: Vec<ThreadRecords> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..helpers).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        others.into_iter().for_each(|other| all.extend(other.join().expect("replaying does not panic")));
        all
    });
    threads.sort_by_key(|thread| thread.thread.ordinal);
    threads
}

/// Gives the texts of all threads numbers of the process, in order of first appearance.
fn share_texts(threads: &mut [ThreadRecords], names: &[String]) -> Vec<String> {
    let mut all = names.to_vec();
    let mut ids: HashMap<String, u32> = HashMap::new();
    for thread in threads.iter_mut().filter(|thread| !thread.texts.is_empty()) {
        let shared: Vec<u32> = std::mem::take(&mut thread.texts)
            .into_iter()
            .map(|text| {
                *ids.entry(text).or_insert_with_key(|text| {
                    all.push(text.clone());
                    all.len() as u32 - 1
                })
            })
            .collect();
        let share = |id: &mut u32| {
            if let Some(text) = (*id as usize).checked_sub(names.len()) {
                *id = shared[text];
            }
        };
        for event in thread.events.iter_mut() {
            let described = event.collective.as_mut().map(|collective| &mut collective.description);
            std::iter::once(&mut event.name).chain(described).for_each(share);
        }
        thread.samples.iter_mut().for_each(|sample| share(&mut sample.name));
        let named = thread.device.iter_mut().filter_map(|activity| activity.record.name_mut()?.as_mut());
        named.for_each(share);
    }
    all
}

fn last_moment(threads: &[ThreadRecords], process: &ProcessRecords, clock: &TickClock, opened_ns: i64) -> i64 {
    let of_clocks = process.clock_points.iter().map(|point| clock.monotonic_ns(point.ticks));
    let of_threads = threads.iter().filter_map(|thread| thread.last_ns);
    of_clocks.chain(of_threads).fold(opened_ns, i64::max)
}

/// Lets what is unfinished reach to the last moment, and orders events by start, longest first.
fn finish(thread: &mut ThreadRecords, last_ns: i64) {
    for event in thread.left_open.iter().map(|(_, at)| *at) {
        let event = &mut thread.events[event];
        if event.is_unfinished {
            event.end_ns = last_ns.max(event.start_ns);
        }
    }
    for step in thread.steps.iter_mut().filter(|step| step.is_unfinished) {
        step.end_ns = last_ns.max(step.start_ns);
    }
    // They nearly always are in order already, which the sort sees in one pass.
    thread.events.sort_by_key(|event| (event.start_ns, Reverse(event.end_ns)));
}

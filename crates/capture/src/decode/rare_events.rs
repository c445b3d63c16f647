//! What threads recorded rarely: labelled steps, optimizer steps, samples, profiler states.

use super::events::{Mark, ProfilerState, Sample, StepRange};
use super::scan::Scan;
use crate::clock::TickClock;
use crate::{StackSample, Thread};
use std::collections::{BTreeSet, HashMap};

/// A record of a thread that tells nothing of its ranges.
#[derive(Clone, Copy, Debug)]
pub(super) struct RareRecord {
    /// The thread's number in the file, and its part.
    pub(super) thread: u32,
    pub(super) part: u32,
    pub(super) ticks: u64,
    pub(super) says: Rarely,
}

/// What such a record says.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rarely {
    StepBegin(i64),
    StepEnd(i64),
    StepDropped,
    OptimizerStep(Option<i64>),
    /// The name, and the value.
    Sample(u32, i64),
    /// The system's number of the thread that was sampled, and what is said of it.
    StackSample(u32, StackSample),
    ProfilerState(u64),
}

/// All of it, in the order that [`Capture`](crate::Capture) promises.
#[derive(Default, Debug)]
pub(crate) struct RareEvents {
    pub(crate) steps: Vec<StepRange>,
    pub(crate) optimizer_steps: Vec<Mark>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) stack_samples: Vec<StackSample>,
    pub(crate) profiler_states: Vec<ProfilerState>,
}

/// The end of a step: its number, ticks and ns.
type End = (i64, u64, i64);

impl RareEvents {
    /// Those of a capture with these threads, whose process is known to have lived until `last_ns`.
    pub(crate) fn of(scan: &Scan, threads: &[Thread], clock: &TickClock, last_ns: i64) -> Self {
        let mut all = Self::default();
        let by_tid: HashMap<u64, u32> = threads.iter().map(|thread| (thread.tid, thread.ordinal)).collect();
        // In ticks, where each step begins; the one that is open on each thread; ends that close none of these.
        let (mut starts, mut open, mut ends) = (Vec::new(), HashMap::new(), Vec::new());
        let mut dropped = BTreeSet::new();
        for (thread, record) in scan.rare_records() {
            let time_ns = clock.monotonic_ns(record.ticks);
            match record.says {
                Rarely::StepBegin(number) => {
                    open.insert(thread, all.steps.len());
                    starts.push(record.ticks);
                    let (start_ns, end_ns, is_unfinished) = (time_ns, time_ns, true);
                    all.steps.push(StepRange { thread, number, start_ns, end_ns, is_unfinished });
                }
                Rarely::StepEnd(number) => {
                    let step = open.get(&thread).copied().filter(|step: &usize| all.steps[*step].number == number);
                    match step {
                        Some(step) => {
                            open.remove(&thread);
                            all.steps[step].end(time_ns);
                        }
                        None => ends.push((number, record.ticks, time_ns)),
                    }
                }
                Rarely::StepDropped => {
                    if let Some(step) = open.remove(&thread) {
                        all.steps[step].end(time_ns);
                        dropped.insert(step);
                    }
                }
                Rarely::OptimizerStep(number) => all.optimizer_steps.push(Mark { thread, time_ns, number }),
                Rarely::Sample(name, value) => all.samples.push(Sample { thread, name, time_ns, value }),
                Rarely::StackSample(tid, sample) => {
                    let sampled = by_tid.get(&u64::from(tid));
                    all.stack_samples.extend(sampled.map(|thread| StackSample { thread: *thread, time_ns, ..sample }));
                }
                Rarely::ProfilerState(number) => {
                    all.profiler_states.push(ProfilerState { thread, since_ns: time_ns, number });
                }
            }
        }
        end_elsewhere(&mut all.steps, &starts, ends);
        let mut places = 0..;
        all.steps.retain(|_| places.next().is_none_or(|at| !dropped.contains(&at)));
        for step in all.steps.iter_mut().filter(|step| step.is_unfinished) {
            step.end_ns = last_ns.max(step.start_ns);
        }
        all.steps.sort_by_key(|step| (step.start_ns, step.number));
        all.optimizer_steps.sort_by_key(|mark| mark.time_ns);
        all.samples.sort_by_key(|sample| (sample.time_ns, sample.name));
        all.stack_samples.sort_by_key(|sample| (sample.thread, sample.time_ns));
        all.profiler_states.sort_by_key(|state| (state.thread, state.since_ns));
        all
    }
}

/// Ends steps that another thread ended, since a loop may move from thread to thread: each the last one begun, of that
/// number, that is still open.
fn end_elsewhere(steps: &mut [StepRange], starts: &[u64], mut ends: Vec<End>) {
    ends.sort_unstable();
    for (number, ticks, ns) in ends {
        let is_it = |at: &usize| steps[*at].is_unfinished && steps[*at].number == number && starts[*at] <= ticks;
        if let Some(last) = (0..steps.len()).filter(is_it).max_by_key(|at| (starts[*at], *at)) {
            steps[last].end(ns);
        }
    }
}

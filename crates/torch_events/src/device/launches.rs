//! Which operator and which label called the device's runtime, and so launched what.

use rustc_hash::{FxBuildHasher, FxHashMap};
use std::ops::Range;
use stepscope_capture::device::{ActivityRecord, Call};
use stepscope_capture::layout::scope;
use stepscope_capture::{Capture, Event};

use crate::NO_ROW;
use crate::events::USER_SCOPE;

/// Where a call was made: items, [`NO_ROW`] where there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Launch {
    /// The innermost operator around it.
    pub(crate) operator: u32,
    /// The innermost label or step around it.
    pub(crate) label: u32,
    pub(crate) thread: u32,
}

/// Launches by the numbers that join calls with what they enqueued.
#[derive(Clone, Debug)]
pub(crate) enum Launches {
    /// Numbers that follow one another, as device profilers give them: from the first one on.
    Dense(u32, Vec<Launch>),
    /// Others.
    Sparse(FxHashMap<u32, Launch>),
}

/// In place of a launch where there is no call.
const NO_CALL: Launch = Launch { operator: NO_ROW, label: NO_ROW, thread: NO_ROW };
/// The most empty places, for each one in use, where numbers count as following one another.
const MOST_EMPTY: usize = 8;

impl Launches {
    fn of(numbers: impl Iterator<Item = u32> + Clone, count: usize) -> Self {
        let first = numbers.clone().min().unwrap_or(0);
        let len = (numbers.max().unwrap_or(0) - first) as usize + 1;
        match len / MOST_EMPTY <= count {
            true => Self::Dense(first, vec![NO_CALL; len]),
            false => Self::Sparse(FxHashMap::with_capacity_and_hasher(count, FxBuildHasher)),
        }
    }

    fn insert(&mut self, number: u32, launch: Launch) {
        match self {
            Self::Dense(first, launches) => launches[(number - *first) as usize] = launch,
            Self::Sparse(launches) => drop(launches.insert(number, launch)),
        }
    }

    /// The launch with this number.
    pub(crate) fn get(&self, number: u32) -> Option<&Launch> {
        match self {
            Self::Dense(first, launches) => {
                let launch = launches.get(number.checked_sub(*first)? as usize);
                launch.filter(|launch| launch.thread != NO_ROW)
            }
            Self::Sparse(launches) => launches.get(&number),
        }
    }
}

/// The launch of each number that joins a call with what it enqueued; `is_listed` says of an operator whether it is
/// shown.
pub(crate) fn launches(capture: &Capture, is_listed: impl Fn(&Event) -> bool) -> Launches {
    let mut calls: Vec<(u32, i64, u32)> =
        capture.device.iter().filter_map(|device_activity| call(&device_activity.record)).collect();
    // By thread and time. Activity records are in order of time already.
    calls.sort_by_key(|(thread, at_ns, _)| (*thread, *at_ns));
    let mut found = Launches::of(calls.iter().map(|call| call.2), calls.len());
    for calls in calls.chunk_by(|a, b| a.0 == b.0) {
        let thread = calls[0].0;
        let mut around = Around::of(capture, thread, &is_listed);
        for (_, at_ns, correlation) in calls {
            let (operator, label) = around.at(*at_ns);
            found.insert(*correlation, Launch { operator, label, thread });
        }
    }
    found
}

/// Thread, the middle of a call, and its number. The middle lies inside of the operator also when the clock of the
/// device's profiler is off by less than half a call.
fn call(record: &ActivityRecord) -> Option<(u32, i64, u32)> {
    let ActivityRecord::Call(Call { start_ns, end_ns, thread, correlation, .. }) = record else { return None };
    let middle_ns = start_ns.saturating_add(end_ns.saturating_sub(*start_ns) / 2);
    (*correlation != 0).then_some((*thread, middle_ns, *correlation))
}

/// What is open on a thread, as time goes on.
struct Around<'a, F> {
    capture: &'a Capture,
    /// The thread's events that have not begun yet.
    next: usize,
    end: usize,
    /// The thread's steps that have not begun yet.
    steps: std::iter::Peekable<std::vec::IntoIter<usize>>,
    is_listed: &'a F,
    /// Ends and items.
    operators: Vec<(i64, u32)>,
    labels: Vec<(i64, u32)>,
}

impl<'a, F: Fn(&Event) -> bool> Around<'a, F> {
    fn of(capture: &'a Capture, thread: u32, is_listed: &'a F) -> Self {
        let Range { start: next, end } = capture.events.of_thread(thread);
        let steps: Vec<usize> = (0..capture.steps.len()).filter(|at| capture.steps[*at].thread == thread).collect();
        let steps = steps.into_iter().peekable();
        Self { capture, next, end, steps, is_listed, operators: Vec::new(), labels: Vec::new() }
    }

    /// The innermost operator and the innermost label at a moment; moments must not go back.
    fn at(&mut self, at_ns: i64) -> (u32, u32) {
        let Self { capture, next, end, steps, is_listed, operators, labels } = self;
        while *next < *end {
            let event = capture.events.at(*next);
            if event.start_ns > at_ns {
                break;
            }
            let item = *next as u32;
            *next += 1;
            if event.is_async || scope::is_call(event.scope) || !is_listed(&event) {
                continue;
            }
            // A step is around the labels that begin with it or later.
            while let Some(at) = steps.next_if(|at| capture.steps[*at].start_ns <= event.start_ns) {
                push(labels, capture.steps[at].start_ns, capture.steps[at].end_ns, (capture.events.len() + at) as u32);
            }
            push(if event.scope == USER_SCOPE { labels } else { operators }, event.start_ns, event.end_ns, item);
        }
        while let Some(at) = steps.next_if(|at| capture.steps[*at].start_ns <= at_ns) {
            push(labels, capture.steps[at].start_ns, capture.steps[at].end_ns, (capture.events.len() + at) as u32);
        }
        (innermost(operators, at_ns), innermost(labels, at_ns))
    }
}

fn push(open: &mut Vec<(i64, u32)>, start_ns: i64, end_ns: i64, item: u32) {
    innermost(open, start_ns);
    open.push((end_ns, item));
}

/// What is open at a moment; what has ended is taken away.
fn innermost(open: &mut Vec<(i64, u32)>, at_ns: i64) -> u32 {
    while open.last().is_some_and(|(end_ns, _)| *end_ns <= at_ns) {
        open.pop();
    }
    open.last().map_or(NO_ROW, |(_, item)| *item)
}

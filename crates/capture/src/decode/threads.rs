//! The threads of a process, replayed and put together.

use super::elsewhere::end_elsewhere;
use super::event_list::{EventList, PackedEvent, Rare};
use super::parts::ReplayedParts;
use super::replay::{ThreadRecords, last_ticks, replay};
use super::scan::Scan;
use super::segments::Segments;
use crate::Thread;
use crate::clock::TickClock;
use crate::io::IoCall;
use crate::memory::MemoryEvent;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::Result;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The number of events that take longer to replay than a thread to start.
const WORTH_A_THREAD: usize = 10_000;

/// All times.
pub(crate) const EVER: Range<i64> = i64::MIN..i64::MAX;

/// What threads recorded, in the order that [`Capture`](crate::Capture) promises.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub(crate) events: EventList,
    pub(crate) memory: Vec<MemoryEvent>,
    pub(crate) io: Vec<IoCall>,
    /// When ranges ended whose begin is not there, ns.
    pub(crate) lost_begins: Vec<i64>,
}

/// The threads of a capture after the first pass.
#[derive(Clone, Copy)]
pub(crate) struct Threads<'a> {
    pub(crate) segments: &'a Segments,
    pub(crate) segment_bytes: usize,
    pub(crate) scan: &'a Scan,
    pub(crate) clock: &'a TickClock,
    /// Each with its ordinal, and behind them those that recorded nothing themselves.
    pub(crate) known: &'a [Thread],
    /// The last moment at which the process was known to have lived when the file was first read.
    pub(crate) last_ns: i64,
}

/// The last moment at which a process with these records is known to have lived, from `opened_ns` on.
///
/// # Errors
/// When a segment cannot be read.
pub(crate) fn last_moment(
    (segments, segment_bytes): (&Segments, usize),
    scan: &Scan,
    clock: &TickClock,
    opened_ns: i64,
) -> Result<i64> {
    let mut last_ns =
        scan.process.clock_points.iter().map(|point| clock.monotonic_ns(point.ticks)).fold(opened_ns, i64::max);
    for parts in scan.of_threads() {
        let ticks = last_ticks(parts, (segments, segment_bytes))?;
        last_ns = last_ns.max(ticks.map_or(opened_ns, |ticks| clock.monotonic_ns(ticks)));
    }
    Ok(last_ns)
}

impl Threads<'_> {
    /// Replays the threads, and puts together what each recorded within the times that `times` says of it, and some of
    /// what it recorded around them.
    ///
    /// # Errors
    /// When a segment cannot be read.
    pub(crate) fn replay(&self, times: &dyn Fn(u32) -> Range<i64>) -> Result<Replayed> {
        let of_threads: Vec<Range<i64>> = self.scan.of_threads().zip(0..).map(|(_, thread)| times(thread)).collect();
        let is_whole = self.has_ends_elsewhere(of_threads.iter());
        let mut threads = self.replay_each(&|thread| if is_whole { EVER } else { of_threads[thread].clone() })?;
        end_elsewhere(&mut threads, self.known, &self.scan.process.names);
        let last_ns = self.last_moment()?;
        let mut all =
            Replayed { events: EventList::default(), memory: Vec::new(), io: Vec::new(), lost_begins: Vec::new() };
        let by_tid: HashMap<u32, u32> = self.known.iter().map(|thread| (thread.tid as u32, thread.ordinal)).collect();
        for thread in &mut threads {
            finish(thread, last_ns);
            all.memory.append(&mut thread.memory);
            all.io.append(&mut thread.io);
            let of_others = thread.io_of_others.drain(..);
            all.io.extend(of_others.filter_map(|(tid, call)| Some(IoCall { thread: *by_tid.get(&tid)?, ..call })));
            all.lost_begins.append(&mut thread.lost_begins);
        }
        all.events = join(threads);
        all.memory.sort_by_key(|event| (event.thread, event.time_ns));
        all.io.sort_by_key(|call| (call.thread, call.start_ns, Reverse(call.end_ns)));
        Ok(all)
    }

    /// Hands over what one thread recorded within `times`, and some of what it recorded around them, in lists that
    /// follow one another in time. False when not all that was handed over does.
    ///
    /// # Errors
    /// When a segment cannot be read.
    pub(crate) fn replay_in_lists(
        &self,
        thread: u32,
        times: &Range<i64>,
        take: &mut dyn FnMut(&EventList),
    ) -> Result<bool> {
        if self.has_ends_elsewhere(std::iter::once(times)) {
            return Ok(false);
        }
        let Some(parts) = self.scan.of_threads().nth(thread as usize) else { return Ok(true) };
        let (mut is_in_order, mut last_end_ns, mut last) = (true, i64::MIN, None);
        let mut hand_over = |events: &mut Vec<PackedEvent>, rares: &mut Vec<Rare>| {
            events.sort_by_key(place);
            let follows = |first: &PackedEvent| first.start_ns >= last_end_ns && Some(place(first)) >= last;
            is_in_order &= events.first().is_none_or(follows);
            last_end_ns = events.iter().map(|event| event.end_ns).fold(last_end_ns, i64::max);
            last = events.last().map(place).or(last);
            let list = EventList::of_packed(std::mem::take(events), std::mem::take(rares));
            take(&list);
            (*events, *rares) = list.into_packed();
            events.clear();
            rares.clear();
        };
        let replayed = ReplayedParts::within(parts, times, self.clock);
        let source = (self.segments, self.segment_bytes);
        let mut rest = replay(thread, &replayed, source, self.scan, self.clock, Some(&mut hand_over))?;
        finish(&mut rest, self.last_moment()?);
        hand_over(&mut rest.events, &mut rest.rares);
        Ok(is_in_order)
    }

    /// The last moment at which the process is known to have lived, now that threads have been replayed. A process that
    /// runs writes ends into begins that are there already, also after the file was first read.
    fn last_moment(&self) -> Result<i64> {
        last_moment((self.segments, self.segment_bytes), self.scan, self.clock, self.last_ns)
    }

    /// Whether a range ended within or after such times that began on another thread: which one that was depends on all
    /// that had begun before.
    fn has_ends_elsewhere<'t>(&self, times: impl Iterator<Item = &'t Range<i64>>) -> bool {
        let first_ns = times.filter(|times| !times.is_empty()).map(|times| times.start).min();
        let last_ns = self.scan.ends_elsewhere.iter().map(|ticks| self.clock.monotonic_ns(*ticks)).max();
        last_ns.zip(first_ns).is_some_and(|(last_ns, first_ns)| last_ns >= first_ns)
    }

    /// Replays threads side by side.
    fn replay_each(&self, times: &dyn Fn(usize) -> Range<i64>) -> Result<Vec<ThreadRecords>> {
        let of_threads = self.scan.of_threads().enumerate();
        let jobs = of_threads.map(|(thread, parts)| (thread, ReplayedParts::within(parts, &times(thread), self.clock)));
        let jobs: Vec<(usize, ReplayedParts<'_>)> = jobs.collect();
        let source = (self.segments, self.segment_bytes);
        let replay_one = |(thread, parts): (usize, ReplayedParts<'_>)| {
            replay(thread as u32, &parts, source, self.scan, self.clock, None)
        };
        let is_much = jobs.iter().filter(|(_, parts)| parts.events() >= WORTH_A_THREAD).count() > 1;
        if !is_much {
            return jobs.into_iter().map(replay_one).collect();
        }
        let helpers = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
        let jobs = Mutex::new(jobs);
        let work = || {
            let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).pop();
            std::iter::from_fn(next).map(replay_one).collect::<Result<Vec<_>>>()
        };
        let mut threads = std::thread::scope(|scope| {
            let others: Vec<_> = (1..helpers).map(|_| scope.spawn(work)).collect();
            let mut all = work();
            for other in others {
                let other = other.join().expect("replaying does not panic");
                all = all.and_then(|all| Ok([all, other?].into_iter().flatten().collect()));
            }
            all
        })?;
        threads.sort_by_key(|thread| thread.thread);
        Ok(threads)
    }
}

/// Lets what is unfinished reach to the last moment, and orders events by start, longest first.
fn finish(thread: &mut ThreadRecords, last_ns: i64) {
    for event in thread.left_open.iter().map(|(_, at)| *at) {
        let event = &mut thread.events[event];
        if event.is_unfinished {
            event.end_ns = last_ns.max(event.start_ns);
        }
    }
    // They nearly always are in order already, which the sort sees in one pass.
    thread.events.sort_by_key(place);
}

/// Where an event stands among those of its thread.
fn place(event: &PackedEvent) -> (i64, Reverse<i64>) {
    (event.start_ns, Reverse(event.end_ns))
}

/// The events of all threads, by thread. Those of the thread that has most stay where they are: they may take half of
/// the memory that there is.
fn join(mut threads: Vec<ThreadRecords>) -> EventList {
    let Some(most) = (0..threads.len()).max_by_key(|at| threads[*at].events.len()) else { return EventList::default() };
    let (mut events, mut rares) = (std::mem::take(&mut threads[most].events), std::mem::take(&mut threads[most].rares));
    let mut shifted = |mut own: Vec<PackedEvent>, mut own_rares: Vec<Rare>| {
        if !own_rares.is_empty() {
            own.iter_mut().for_each(|event| event.shift_rare(rares.len() as u32));
            rares.append(&mut own_rares);
        }
        own
    };
    let after = threads.split_off(most);
    for thread in after {
        events.append(&mut shifted(thread.events, thread.rares));
    }
    for thread in threads.into_iter().rev().filter(|thread| !thread.events.is_empty()) {
        events.splice(0..0, shifted(thread.events, thread.rares));
    }
    EventList::of_packed(events, rares)
}

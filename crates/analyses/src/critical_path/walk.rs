//! From the end of a step back to its start, one wait after another.

use super::graph::{Graph, PathThread};
use rustc_hash::FxHashSet;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_align::Part;
use stepscope_base::Span;
use stepscope_trace::{DeviceEventId, SliceId, SliceKind, Step};

/// A part of a path that is spent on one thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum On {
    /// A thread runs, by its position in the graph.
    Host(usize),
    /// A device event runs.
    Device(DeviceEventId),
    /// A thread of a backend communicates, and for whom it waits is not known.
    Communication(SliceId),
    /// A device event, or a work of a backend, communicates once all have come that it waits for.
    Transfer(SliceId),
    /// One of them was launched and begins.
    LaunchLatency(SliceId),
    /// One of them follows another.
    QueueWait(SliceId),
    /// A call returns after the device is done.
    Return(SliceId),
}

#[derive(Clone, Copy)]
enum At {
    Thread(usize),
    Event(DeviceEventId),
    /// A work of a backend's thread.
    Work(SliceId),
}

struct Walk<'a> {
    graph: &'a Graph<'a>,
    /// The step on each rank that has it: the thread that runs it, and its start.
    begins: BTreeMap<u32, (usize, i64)>,
    /// Those of the rank where the walk is.
    step_thread: usize,
    start_ns: i64,
    at_ns: i64,
    found: Vec<(Span, On)>,
    /// Through which communications the walk came to another rank, each by its part of that rank. None leads anywhere
    /// twice: where clocks, or what was matched, contradict each other, the walk ends nevertheless.
    passed: FxHashSet<SliceId>,
}

/// The path of a step, which `steps` are on one rank each: by time without a hole, to the end of what ends last, from the
/// step's start on the rank that the path begins on. `None` when no thread can run the step.
pub(super) fn walk(graph: &Graph<'_>, steps: &[&Step]) -> Option<(Span, Vec<(Span, On)>)> {
    let begins: BTreeMap<u32, (usize, i64)> =
        steps.iter().filter_map(|step| Some((step.rank, (graph.thread_of_step(step)?, step.span.start_ns)))).collect();
    let end = |step: &&Step| {
        let (thread, _) = begins.get(&step.rank)?;
        let last = graph.last_of_step(step).filter(|(end_ns, _)| *end_ns > step.span.end_ns);
        let (end_ns, at) = last.map_or((step.span.end_ns, At::Thread(*thread)), |(end_ns, id)| (end_ns, At::Event(id)));
        Some((end_ns, step.rank, at))
    };
    let (end_ns, rank, mut at) =
        steps.iter().filter_map(end).max_by_key(|(end_ns, rank, _)| (*end_ns, Reverse(*rank)))?;
    let (step_thread, start_ns) = begins[&rank];
    let passed = FxHashSet::default();
    let mut walk = Walk { graph, begins, step_thread, start_ns, at_ns: end_ns, found: Vec::new(), passed };
    while walk.at_ns > walk.start_ns {
        at = match at {
            At::Event(id) => walk.leave_event(id),
            At::Thread(thread) => walk.leave_thread(thread),
            At::Work(work) => walk.leave_work_of_backend(work),
        };
    }
    walk.found.reverse();
    let begin_ns = walk.found.first().map_or(end_ns, |(span, _)| span.start_ns);
    Some((Span::new(begin_ns, end_ns), walk.found))
}

impl Walk<'_> {
    /// Spends the time from `from_ns` to where the walk is.
    fn spend(&mut self, from_ns: i64, on: On) {
        let span = Span::new(from_ns.max(self.start_ns), self.at_ns);
        if !span.is_empty() {
            self.found.push((span, on));
        }
        self.at_ns = self.at_ns.min(from_ns);
    }

    /// Through a device event to what it waited for last.
    fn leave_event(&mut self, id: DeviceEventId) -> At {
        let slice = self.graph.trace.device_events.get(id).slice;
        match self.leave_communication(slice, On::Device(id)) {
            Some(last) => self.come(&last),
            None => self.leave_beginning(id),
        }
    }

    /// From the beginning of a device event to what it waited for last.
    fn leave_beginning(&mut self, id: DeviceEventId) -> At {
        let event = self.graph.trace.device_events.get(id);
        let start_ns = self.graph.span(id).start_ns;
        let launch = event.launch.and_then(|launch| Some((launch, self.graph.thread_of_launch(launch)?)));
        let launched = launch.map(|(launch, thread)| {
            let end_ns = self.graph.trace.slices.span(launch).end_ns;
            (end_ns.min(start_ns), thread)
        });
        let ahead = self.graph.ahead_of(id, start_ns);
        let since_ns = launched.map(|row| row.0).max(ahead.map(|row| row.0));
        let ahead = self.graph.unreported_ahead_of(id, since_ns).or(ahead);
        self.leave_queue(event.slice, launched, ahead.map(|(end_ns, ahead)| (end_ns, At::Event(ahead))))
    }

    /// From where something begins to the last of what it waited for: its launch by a thread, and what is ahead.
    fn leave_queue(&mut self, slice: SliceId, launched: Option<(i64, usize)>, ahead: Option<(i64, At)>) -> At {
        match (launched, ahead) {
            (Some((launched_ns, thread)), ahead) if ahead.is_none_or(|(end_ns, _)| end_ns < launched_ns) => {
                self.spend(launched_ns, On::LaunchLatency(slice));
                At::Thread(thread)
            }
            (_, Some((end_ns, ahead))) => {
                self.spend(end_ns, On::QueueWait(slice));
                ahead
            }
            _ => At::Thread(self.step_thread),
        }
    }

    /// Through what carries out a communication to its start. Where it waited for another rank: to when that one came, as
    /// its clock shows it; the part of that rank is then returned. What is known of no other rank is spent on `alone`.
    fn leave_communication(&mut self, slice: SliceId, alone: On) -> Option<Part> {
        let start_ns = self.graph.trace.slices.start_ns[slice.index()];
        let on = match self.graph.meeting(slice) {
            Some((own, last, came_ns)) if own.rank == last.rank || came_ns <= start_ns => On::Transfer(slice),
            Some((_, last, _)) if self.begins.contains_key(&last.rank) && self.passed.insert(last.carried_by) => {
                self.spend(last.start_ns, On::Transfer(slice));
                return Some(*last);
            }
            _ => alone,
        };
        self.spend(start_ns, on);
        None
    }

    /// To another rank, where its part of a communication begins.
    fn come(&mut self, part: &Part) -> At {
        if self.at_ns > self.start_ns {
            (self.step_thread, self.start_ns) = self.begins[&part.rank];
        }
        match self.graph.kernel(part.carried_by) {
            Some(id) => self.leave_beginning(id),
            None => self.leave_asking(part),
        }
    }

    /// Through a work of a backend to what it waited for last.
    fn leave_work_of_backend(&mut self, work: SliceId) -> At {
        let own = self.graph.meeting(work).map(|(own, ..)| *own);
        match (self.leave_communication(work, On::Communication(work)), own) {
            (Some(last), _) => self.come(&last),
            (None, Some(own)) => self.leave_asking(&own),
            (None, None) => At::Thread(self.step_thread),
        }
    }

    /// From the beginning of a work to the thread that asked for it, or to the work before it.
    fn leave_asking(&mut self, part: &Part) -> At {
        if part.asked_by == part.carried_by {
            // The work says itself when it was asked for, and not by which thread.
            return At::Thread(self.step_thread);
        }
        let end_of = |slice: SliceId| self.graph.trace.slices.span(slice).end_ns;
        let thread = self.graph.thread_of_launch(part.asked_by).unwrap_or(self.step_thread);
        let asked = Some((end_of(part.asked_by).min(part.start_ns), thread));
        let ahead = self.graph.previous_work(part.carried_by).map(|work| (end_of(work), At::Work(work)));
        self.leave_queue(part.carried_by, asked, ahead)
    }

    /// Along a thread to the last thing that it, or another for it, did.
    fn leave_thread(&mut self, thread: usize) -> At {
        let row = &self.graph.threads[thread];
        let work = row.work.spans();
        let before = work.partition_point(|span| span.start_ns < self.at_ns).checked_sub(1).map(|at| work[at]);
        match before {
            Some(work) if work.end_ns >= self.at_ns => self.leave_work(thread, work),
            _ => self.leave_pause(thread, before.map_or(i64::MIN, |work| work.end_ns)),
        }
    }

    /// Back through work that reaches to where the walk is, up to the last call in which it waited.
    fn leave_work(&mut self, thread: usize, work: Span) -> At {
        let PathThread { syncs, process, .. } = &self.graph.threads[thread];
        let before = syncs.partition_point(|(span, _)| span.start_ns < self.at_ns).checked_sub(1);
        let sync = before.map(|at| syncs[at]).filter(|(span, _)| span.start_ns >= work.start_ns);
        let Some((span, call)) = sync.filter(|(span, _)| span.end_ns >= self.at_ns) else {
            self.spend(sync.map_or(work.start_ns, |(span, _)| span.end_ns), On::Host(thread));
            return At::Thread(thread);
        };
        if self.graph.trace.slices.kind(call) == SliceKind::HostSync {
            if let Some((end_ns, id)) = self.graph.waited_for(call, self.at_ns) {
                self.spend(end_ns, On::Return(call));
                return At::Event(id);
            }
        } else if let Some((end_ns, work)) = self.graph.work_since(*process, span.start_ns, self.at_ns) {
            self.spend(end_ns, On::Host(thread));
            return At::Work(work);
        }
        self.spend(span.start_ns, On::Host(thread));
        At::Thread(thread)
    }

    /// Back through a time in which the thread did nothing of its own since `since_ns`: to the thread that worked last,
    /// or to the last work of a backend that ended.
    fn leave_pause(&mut self, thread: usize, since_ns: i64) -> At {
        let process = self.graph.threads[thread].process;
        let others = self.graph.threads_of(process).filter(|(at, _)| *at != thread);
        let last_work = others.filter_map(|(at, row)| {
            let work = row.work.spans();
            let last = work[work.partition_point(|span| span.start_ns < self.at_ns).checked_sub(1)?];
            Some((last.end_ns.min(self.at_ns), Reverse(at)))
        });
        let since_ns = since_ns.max(self.start_ns);
        let last_work = last_work.max().filter(|(end_ns, _)| *end_ns > since_ns);
        let communicated = self.graph.work_since(process, since_ns, self.at_ns);
        match (last_work, communicated) {
            (last_work, Some((end_ns, work))) if last_work.is_none_or(|(other_ns, _)| other_ns <= end_ns) => {
                self.spend(end_ns, On::Host(thread));
                At::Work(work)
            }
            (Some((end_ns, Reverse(other))), _) => {
                self.spend(end_ns, On::Host(thread));
                At::Thread(other)
            }
            _ => {
                self.spend(since_ns, On::Host(thread));
                At::Thread(thread)
            }
        }
    }
}

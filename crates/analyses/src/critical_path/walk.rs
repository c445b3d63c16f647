//! From the end of a step back to its start, one wait after another.

use super::graph::Graph;
use stepscope_base::Span;
use stepscope_trace::{DeviceEventId, SliceId, Step};

/// A part of a path that is spent on one thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum On {
    /// A thread runs, by its position in the graph.
    Host(usize),
    /// A device event runs.
    Device(DeviceEventId),
    /// A device event was launched and begins.
    LaunchLatency(DeviceEventId),
    /// A device event follows another.
    QueueWait(DeviceEventId),
    /// A call returns after the device is done.
    Return(SliceId),
}

#[derive(Clone, Copy)]
enum At {
    Thread(usize),
    Event(DeviceEventId),
}

struct Walk<'a> {
    graph: &'a Graph<'a>,
    step_thread: usize,
    start_ns: i64,
    at_ns: i64,
    found: Vec<(Span, On)>,
}

/// The path of a step by time: from the step's start on without a hole. `None` when no thread can run the step.
pub(super) fn walk(graph: &Graph<'_>, step: &Step) -> Option<(Span, Vec<(Span, On)>)> {
    let step_thread = graph.thread_of_step(step)?;
    let last = graph.last_of_step(step).filter(|(end_ns, _)| *end_ns > step.span.end_ns);
    let (end_ns, mut at) = match last {
        Some((end_ns, id)) => (end_ns, At::Event(id)),
        None => (step.span.end_ns, At::Thread(step_thread)),
    };
    let mut walk = Walk { graph, step_thread, start_ns: step.span.start_ns, at_ns: end_ns, found: Vec::new() };
    while walk.at_ns > walk.start_ns {
        at = match at {
            At::Event(id) => walk.leave_event(id),
            At::Thread(thread) => walk.leave_thread(thread),
        };
    }
    walk.found.reverse();
    Some((Span::new(walk.start_ns, end_ns), walk.found))
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
        let event = self.graph.trace.device_events.get(id);
        let start_ns = self.graph.span(id).start_ns;
        self.spend(start_ns, On::Device(id));
        let launch = event.launch.and_then(|launch| Some((launch, self.graph.thread_of_launch(launch)?)));
        let launched = launch.map(|(launch, thread)| {
            let end_ns = self.graph.trace.slices.span(launch).end_ns;
            (end_ns.min(start_ns), thread)
        });
        let ahead = self.graph.ahead_of(id, start_ns);
        match (launched, ahead) {
            (Some((launched_ns, thread)), ahead) if ahead.is_none_or(|(end_ns, _)| end_ns < launched_ns) => {
                self.spend(launched_ns, On::LaunchLatency(id));
                At::Thread(thread)
            }
            (_, Some((end_ns, ahead))) => {
                self.spend(end_ns, On::QueueWait(id));
                At::Event(ahead)
            }
            _ => At::Thread(self.step_thread),
        }
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

    /// Back through work that reaches to where the walk is, up to the last call in which it waited for the device.
    fn leave_work(&mut self, thread: usize, work: Span) -> At {
        let syncs = &self.graph.threads[thread].syncs;
        let before = syncs.partition_point(|(span, _)| span.start_ns < self.at_ns).checked_sub(1);
        let sync = before.map(|at| syncs[at]).filter(|(span, _)| span.start_ns >= work.start_ns);
        match sync {
            Some((span, call)) if span.end_ns >= self.at_ns => match self.graph.waited_for(call, self.at_ns) {
                Some((end_ns, id)) => {
                    self.spend(end_ns, On::Return(call));
                    At::Event(id)
                }
                None => {
                    self.spend(span.start_ns, On::Host(thread));
                    At::Thread(thread)
                }
            },
            sync => {
                self.spend(sync.map_or(work.start_ns, |(span, _)| span.end_ns), On::Host(thread));
                At::Thread(thread)
            }
        }
    }

    /// Back through a time in which the thread did nothing of its own since `since_ns`: to the thread that worked last.
    fn leave_pause(&mut self, thread: usize, since_ns: i64) -> At {
        let process = self.graph.threads[thread].process;
        let others = self.graph.threads.iter().enumerate().filter(|(at, row)| *at != thread && row.process == process);
        let last_work = others.filter_map(|(at, row)| {
            let work = row.work.spans();
            let last = work[work.partition_point(|span| span.start_ns < self.at_ns).checked_sub(1)?];
            Some((last.end_ns.min(self.at_ns), std::cmp::Reverse(at)))
        });
        match last_work.max().filter(|(end_ns, _)| *end_ns > since_ns && *end_ns > self.start_ns) {
            Some((end_ns, std::cmp::Reverse(other))) => {
                self.spend(end_ns, On::Host(thread));
                At::Thread(other)
            }
            None => {
                self.spend(since_ns, On::Host(thread));
                At::Thread(thread)
            }
        }
    }
}

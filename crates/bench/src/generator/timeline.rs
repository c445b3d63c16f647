//! When everything in a [`Script`] happens in one step: the host's clock goes from act to act, each stream works off
//! what is put into it, in order.

use super::random::Random;
use super::script::{Act, Script};

/// Relative to the base time of the trace.
pub(super) const START_NS: i64 = 1_428_625_731_896_179;

/// What passes between two acts of a thread, and at the end of a slice.
const BETWEEN_NS: u32 = 90;
/// From a launch to its start on an idle stream, from one kernel to the next on a busy one.
const LAUNCH_NS: u32 = 3_200;
const NEXT_NS: u32 = 750;
/// From the end of device work to the thread that waits for it.
const WAKE_NS: u32 = 2_400;

/// The times of one step, and the clocks that go on into the next.
#[derive(Debug)]
pub(super) struct Timeline {
    /// Begin and end of each slice of the host.
    pub(super) slices: Vec<(i64, i64)>,
    /// Of each row of memory.
    pub(super) memory: Vec<i64>,
    /// Start and end of each piece of device work.
    pub(super) works: Vec<(i64, i64)>,
    /// First start and last end under each projected label.
    pub(super) projections: Vec<(i64, i64)>,
    host_ns: i64,
    streams_ns: [i64; 3],
    seed: u64,
}

impl Timeline {
    /// Clocks at `start_ns`.
    pub(super) fn new(seed: u64, start_ns: i64) -> Self {
        let (slices, memory, works, projections) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { slices, memory, works, projections, host_ns: start_ns, streams_ns: [start_ns; 3], seed }
    }

    /// The host's clock.
    pub(super) fn now_ns(&self) -> i64 {
        self.host_ns
    }

    /// Goes through one step.
    pub(super) fn run(&mut self, script: &Script, step: u64) {
        let mut random = Random::of(self.seed, step);
        self.slices.resize(script.costs_ns.len(), (0, 0));
        self.memory.resize(script.memory.len(), 0);
        self.works.resize(script.works.len(), (0, 0));
        self.projections.clear();
        self.projections.resize(script.projections.len(), (i64::MAX, i64::MIN));
        for act in &script.acts {
            self.host_ns += random.host_ns(BETWEEN_NS);
            match *act {
                Act::Begin(slice) => {
                    self.slices[slice as usize].0 = self.host_ns;
                    self.host_ns += random.host_ns(script.costs_ns[slice as usize]);
                }
                Act::End(slice) => self.slices[slice as usize].1 = self.host_ns,
                Act::Memory(row) => self.memory[row as usize] = self.host_ns,
                Act::Enqueue(work) => self.enqueue(script, work as usize, &mut random),
                Act::StreamWaits(stream, other) => {
                    let other_ns = self.streams_ns[other as usize];
                    let stream_ns = &mut self.streams_ns[stream as usize];
                    *stream_ns = other_ns.max(*stream_ns);
                }
                Act::HostWaits(stream) => {
                    self.host_ns = self.host_ns.max(self.streams_ns[stream as usize]) + random.host_ns(WAKE_NS);
                }
            }
        }
    }

    fn enqueue(&mut self, script: &Script, place: usize, random: &mut Random) {
        let work = &script.works[place];
        let stream_ns = &mut self.streams_ns[work.stream as usize];
        let arrives_ns = self.host_ns + random.host_ns(LAUNCH_NS);
        let start_ns = arrives_ns.max(*stream_ns + random.device_ns(NEXT_NS));
        let end_ns = start_ns + random.device_ns(work.ns);
        *stream_ns = end_ns;
        self.works[place] = (start_ns, end_ns);
        if let Some(projection) = work.projection {
            let (first_ns, last_ns) = &mut self.projections[projection as usize];
            *first_ns = start_ns.min(*first_ns);
            *last_ns = end_ns.max(*last_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernels::Stream;
    use super::super::workload;
    use super::*;

    #[test]
    fn work_starts_after_its_launch_and_in_the_order_of_its_stream() {
        let script = workload::step(2);
        let mut timeline = Timeline::new(1, START_NS);
        let mut free_ns = [0; 3];
        for step in 0..3 {
            timeline.run(&script, step);
            for call in &script.calls {
                let Some(work) = call.work else { continue };
                let (start_ns, end_ns) = timeline.works[work as usize];
                let stream = script.works[work as usize].stream;
                assert!(start_ns > timeline.slices[call.slice as usize].0, "{call:?}");
                assert!(start_ns >= free_ns[stream as usize] && end_ns > start_ns, "{call:?}");
                free_ns[stream as usize] = end_ns;
            }
        }
        assert!(Stream::ALL.iter().all(|stream| free_ns[*stream as usize] > 0));
    }

    #[test]
    fn slices_lie_inside_those_that_are_open() {
        let script = workload::step(2);
        let mut timeline = Timeline::new(1, START_NS);
        timeline.run(&script, 0);
        let mut open: Vec<u32> = Vec::new();
        for act in &script.acts {
            match *act {
                Act::Begin(slice) => {
                    let (begin_ns, end_ns) = timeline.slices[slice as usize];
                    let around = open.last().map(|outer| timeline.slices[*outer as usize]);
                    assert!(around.is_none_or(|(outer, outer_end)| outer < begin_ns && end_ns < outer_end));
                    open.push(slice);
                }
                Act::End(slice) => assert_eq!(open.pop(), Some(slice)),
                _ => {}
            }
        }
        assert!(open.is_empty());
    }
}

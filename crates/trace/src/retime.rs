//! A trace whose clocks are corrected.

use crate::{ClockCorrection, ProcessId, Trace};
use stepscope_base::Span;

impl Trace {
    /// The trace with the times of its processes corrected, one correction for each process, in their order. Slices of a
    /// process stay in their order and inside each other; the earliest time of the result is at least 0.
    pub fn with_corrected_clocks(self, corrections: Vec<ClockCorrection>) -> Trace {
        let time = |process: ProcessId, time_ns: i64| corrections[process.index()].corrected(time_ns);
        let process_of = self.tracks.iter().map(|track| track.process).collect::<Vec<_>>();
        // Where a correction would lead to before the start, the start moves.
        let earliest = |track: &crate::Track| Some(self.slices.start_ns[track.slice_ids().next()?.index()]);
        let starts = self.tracks.iter().filter_map(|track| Some(time(track.process, earliest(track)?)));
        let instants = self.instants.time_ns.iter().zip(&self.instants.track);
        let instants = instants.map(|(time_ns, track)| time(process_of[track.index()], *time_ns));
        let memory = self.memory.iter().chain(&self.out_of_memory);
        let memory = memory.map(|event| time(process_of[event.track.index()], event.time_ns));
        let before_ns = starts.chain(instants).chain(memory).min().unwrap_or(0).min(0);
        self.retimed(Retiming { shift_ns: 0, corrections, before_ns })
    }

    /// The trace with its times as `retiming` says.
    pub fn retimed(mut self, retiming: Retiming) -> Trace {
        let process_of = self.tracks.iter().map(|track| track.process).collect::<Vec<_>>();
        let time = |process: ProcessId, time_ns: i64| retiming.time(process, time_ns);
        for (at, track) in self.slices.track.iter().enumerate() {
            let process = process_of[track.index()];
            let (start_ns, dur_ns) = (self.slices.start_ns[at], self.slices.dur_ns[at]);
            let new_start_ns = time(process, start_ns);
            self.slices.dur_ns[at] = time(process, start_ns + dur_ns) - new_start_ns;
            self.slices.start_ns[at] = new_start_ns;
        }
        let mut instants: Vec<_> = (0..self.instants.len())
            .map(|at| {
                let track = self.instants.track[at];
                (time(process_of[track.index()], self.instants.time_ns[at]), track, self.instants.name[at])
            })
            .collect();
        instants.sort_unstable();
        self.instants.time_ns = instants.iter().map(|row| row.0).collect();
        self.instants.track = instants.iter().map(|row| row.1).collect();
        self.instants.name = instants.iter().map(|row| row.2).collect();
        for events in [&mut self.memory, &mut self.out_of_memory] {
            events.iter_mut().for_each(|event| event.time_ns = time(process_of[event.track.index()], event.time_ns));
            events.sort_by_key(|event| event.time_ns);
        }
        for sample in &mut self.stack_samples {
            sample.time_ns = time(process_of[sample.track.index()], sample.time_ns);
        }
        for counter in &mut self.counters {
            let process = counter.process;
            counter.time_ns.iter_mut().for_each(|time_ns| *time_ns = time(process, *time_ns));
        }
        for step in &mut self.steps {
            step.span = Span::new(time(step.process, step.span.start_ns), time(step.process, step.span.end_ns));
        }
        self.steps.sort_by_key(|step| (step.rank, step.span.start_ns));
        let slices = &self.slices;
        self.device_events.order_by_start(|slice| slices.start_ns[slice.index()]);
        let Retiming { shift_ns, corrections, before_ns } = retiming;
        let before_ns = before_ns - shift_ns;
        self.start_unix_ns = self.start_unix_ns.map(|start_ns| start_ns + before_ns);
        self.start_source_ns += before_ns;
        self.clocks = match self.clocks.is_empty() {
            true => corrections,
            false => self.clocks.iter().zip(&corrections).map(|(before, next)| before.then(next)).collect(),
        };
        self
    }
}

/// How the times of a trace become others: those of a trace that it is part of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Retiming {
    /// What is added first.
    pub shift_ns: i64,
    /// How clocks are corrected then, one for each process, in their order.
    pub corrections: Vec<ClockCorrection>,
    /// What is taken away in the end.
    pub before_ns: i64,
}

impl Retiming {
    /// What a time of a process becomes.
    pub fn time(&self, process: ProcessId, time_ns: i64) -> i64 {
        self.corrections[process.index()].corrected(time_ns + self.shift_ns) - self.before_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Drift;
    use crate::drawn::drawn;
    use proptest::prelude::*;

    fn corrections(trace: &Trace, of_rank: impl Fn(u32) -> (i64, Drift)) -> Vec<ClockCorrection> {
        let of_process = |(at, process): (usize, &crate::Process)| {
            let (offset_ns, drift) = of_rank(process.rank);
            ClockCorrection { process: ProcessId::from_index(at), offset_ns, drift, collectives: 0 }
        };
        trace.processes.iter().enumerate().map(of_process).collect()
    }

    const TWO: &str = "rank 0 cpu 1    aa..bb..
                       rank 0 launch 1 .K......
                       rank 0 stream 7 ..KKK...
                       rank 1 step     00001111
                       rank 1 cpu 1    aa..bb..
                       rank 1 launch 1 .K......
                       rank 1 stream 7 ..KKK...";

    #[test]
    fn each_process_is_shifted_by_its_own_offset() {
        let before = drawn(TWO);
        let shifted =
            before.clone().with_corrected_clocks(corrections(&before, |rank| (i64::from(rank) * 500, Drift(0))));
        for slice in before.slices.ids() {
            let rank = before.rank_of_track(before.slices.track[slice.index()]);
            let (old, new) = (before.slices.span(slice), shifted.slices.span(slice));
            let shift_ns = i64::from(rank) * 500;
            assert_eq!(new, Span::new(old.start_ns + shift_ns, old.end_ns + shift_ns));
        }
        let first_step = |trace: &Trace| trace.steps.iter().find(|step| step.rank == 1).map(|step| step.span.start_ns);
        assert_eq!(first_step(&shifted), first_step(&before).map(|start_ns| start_ns + 500));
        let order = shifted.device_events.iter().map(|event| shifted.slices.start_ns[event.slice.index()]);
        assert_eq!(order.collect::<Vec<_>>(), [2_000, 2_500]);
        assert_eq!(shifted.clocks.len(), before.processes.len());
    }

    #[test]
    fn what_would_lie_before_the_start_moves_the_start() {
        let mut before = drawn(TWO);
        before.start_unix_ns = Some(1_000_000);
        let shifted =
            before.clone().with_corrected_clocks(corrections(&before, |rank| (-700 * i64::from(rank), Drift(0))));
        let first = shifted.slices.start_ns.iter().min();
        assert_eq!((first, shifted.start_unix_ns), (Some(&0), Some(999_300)));
    }

    proptest! {
        #[test]
        fn slices_stay_inside_each_other_and_in_order(
            host in "[.axsi|]{30}", inner in "[.bc|]{30}", offset_ns in -9_000_i64..9_000,
            drift in -400_000_000_000_i64..400_000_000_000,
        ) {
            let trace = drawn(&format!("rank 0 cpu 1 {host}\nrank 0 cpu 1 {inner}\n"));
            let corrected = trace.clone().with_corrected_clocks(corrections(&trace, |_| (offset_ns, Drift(drift))));
            for track in &corrected.tracks {
                let spans: Vec<Span> = track.slice_ids().map(|id| corrected.slices.span(id)).collect();
                prop_assert!(spans.is_sorted_by_key(|span| span.start_ns));
            }
            for id in corrected.slices.ids() {
                if let Some(parent) = corrected.slices.parent(id) {
                    let (parent, own) = (corrected.slices.span(parent), corrected.slices.span(id));
                    prop_assert!(parent.start_ns <= own.start_ns && own.end_ns <= parent.end_ns);
                }
            }
            prop_assert!(corrected.span().is_none_or(|span| span.start_ns >= 0));
        }
    }
}

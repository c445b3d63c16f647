//! A slow version of the walk, for tests: simulated jobs, in which everything begins when what it waited for is over.

use super::{PathClass, critical_path_ranks};
use crate::Selection;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_trace::simulated::{Job, Schedule, Straggler};
use stepscope_trace::{SliceId, SliceKind, Trace};

/// What runs on a stream, on the main thread, or on a thread of a backend.
#[derive(Clone, Copy)]
struct Item {
    rank: u32,
    /// The number of the stream or thread; those from 20 on communicate.
    lane: i64,
    start: i64,
    end: i64,
    /// Of what launched or asked for it.
    launch: Option<(i64, i64)>,
}

impl Item {
    fn is_communication(&self) -> bool {
        self.lane >= 20
    }
}

#[derive(Clone, Copy)]
enum At {
    Main,
    Item(usize),
}

const COMPUTE: usize = 0;
const TRANSFER: usize = 1;
const LATENCY: usize = 2;
const QUEUE: usize = 3;
const HOST: usize = 4;

struct Slow<'a> {
    trace: &'a Trace,
    has_devices: bool,
    items: Vec<Item>,
    syncs: Vec<(u32, i64, i64)>,
    rank: u32,
    at: i64,
    start: i64,
    /// What was spent, backwards: rank, on what, how long.
    spent: Vec<(u32, usize, i64)>,
}

impl<'a> Slow<'a> {
    fn of(trace: &'a Trace, has_devices: bool) -> Self {
        let (mut items, mut syncs) = (Vec::new(), Vec::new());
        let bounds = |slice: SliceId| (trace.slices.start_ns[slice.index()], trace.slices.span(slice).end_ns);
        let number = |slice: SliceId| {
            let said = trace.collectives.iter().find(|said| said.slice == slice)?;
            Some((said.group, said.sequence_number))
        };
        for slice in trace.slices.ids() {
            let track = &trace.tracks[trace.slices.track[slice.index()].index()];
            let (rank, (start, end)) = (trace.rank_of_track(trace.slices.track[slice.index()]), bounds(slice));
            let launch = match trace.slices.kind(slice) {
                SliceKind::HostSync => {
                    syncs.push((rank, start, end));
                    continue;
                }
                SliceKind::Kernel => {
                    let event = trace.device_events.iter().find(|event| event.slice == slice).unwrap();
                    event.launch.map(bounds)
                }
                SliceKind::Annotation => {
                    let asks = |of: &SliceId| {
                        let of_rank = trace.rank_of_track(trace.slices.track[of.index()]);
                        trace.slices.kind(*of) == SliceKind::Op && of_rank == rank && number(*of) == number(slice)
                    };
                    trace.slices.ids().find(asks).map(bounds)
                }
                SliceKind::Op if !has_devices => None,
                _ => continue,
            };
            items.push(Item { rank, lane: track.stream.or(track.tid).unwrap_or(0), start, end, launch });
        }
        Self { trace, has_devices, items, syncs, rank: 0, at: 0, start: 0, spent: Vec::new() }
    }

    fn spend(&mut self, to: i64, on: usize) {
        self.spent.push((self.rank, on, (self.at - to.max(self.start)).max(0)));
        self.at = self.at.min(to);
    }

    fn enter(&mut self, rank: u32, step: i64) {
        let is_it = |of: &&stepscope_trace::Step| of.rank == rank && of.number == step;
        (self.rank, self.start) = (rank, self.trace.steps.iter().find(is_it).unwrap().span.start_ns);
    }

    /// The same communication on all ranks: the nth of its lane.
    fn same(&self, at: usize) -> Vec<usize> {
        let nth = |of: usize| {
            let own = |other: &&Item| other.lane == self.items[of].lane && other.rank == self.items[of].rank;
            self.items.iter().filter(own).filter(|other| other.start < self.items[of].start).count()
        };
        let lane = self.items[at].lane;
        (0..self.items.len()).filter(|other| self.items[*other].lane == lane && nth(*other) == nth(at)).collect()
    }

    /// From the beginning of an item to what it waited for last.
    fn leave_beginning(&mut self, at: usize) -> At {
        let own = self.items[at];
        let ahead = (0..self.items.len()).filter(|other| {
            let other = &self.items[*other];
            let is_launched_before =
                self.has_devices && other.launch <= own.launch && (own.is_communication() || other.is_communication());
            other.rank == own.rank && other.end <= own.start && (other.lane == own.lane || is_launched_before)
        });
        let ahead = ahead.map(|other| {
            let preference = if self.items[other].lane == own.lane { 2 } else { 0 };
            (self.items[other].end, preference, Some(other))
        });
        match ahead.chain(own.launch.map(|launch| (launch.1, 1, None))).max() {
            Some((end, _, Some(other))) => {
                self.spend(end, QUEUE);
                At::Item(other)
            }
            Some((end, _, None)) => {
                self.spend(end, LATENCY);
                At::Main
            }
            None => At::Main,
        }
    }

    fn leave_item(&mut self, at: usize, step: i64) -> At {
        let own = self.items[at];
        if !own.is_communication() {
            self.spend(own.start, if self.has_devices { COMPUTE } else { HOST });
            return self.leave_beginning(at);
        }
        let key = |other: &usize| {
            let Item { rank, start, .. } = self.items[*other];
            (start, rank == own.rank, Reverse(rank))
        };
        let last = self.same(at).into_iter().max_by_key(key).unwrap();
        self.spend(self.items[last].start, TRANSFER);
        if self.at > self.start {
            self.enter(self.items[last].rank, step);
        }
        self.leave_beginning(last)
    }

    fn leave_main(&mut self) -> At {
        let (rank, at) = (self.rank, self.at);
        let own = |of: &usize| self.items[*of].rank == rank && self.items[*of].end <= at;
        let sync = self.syncs.iter().find(|(of, from, to)| *of == rank && *from < at && at <= *to).copied();
        let awaited = if self.has_devices {
            let is_awaited = |of: &usize| {
                sync.is_some_and(|(_, from, _)| self.items[*of].end > from && self.items[*of].launch.is_some())
            };
            (0..self.items.len()).filter(own).filter(is_awaited).max_by_key(|of| (self.items[*of].end, *of))
        } else {
            let is_of_main = |of: &&Item| of.rank == rank && !of.is_communication();
            let is_busy = self.items.iter().filter(is_of_main).any(|of| of.start < at && at <= of.end);
            let before = self.items.iter().filter(is_of_main).filter(|of| of.end < at).map(|of| of.end).max();
            let is_awaited = |of: &usize| self.items[*of].is_communication() && Some(self.items[*of].end) > before;
            let ended = (0..self.items.len()).filter(own).filter(is_awaited);
            ended.max_by_key(|of| (self.items[*of].end, self.items[*of].lane)).filter(|_| !is_busy)
        };
        match awaited {
            Some(of) => {
                self.spend(self.items[of].end, HOST);
                At::Item(of)
            }
            None => {
                self.spend(at - 1, HOST);
                At::Main
            }
        }
    }

    /// By rank, what the path of a step is spent on; and how often it comes to the rank.
    fn path(mut self, step: i64) -> BTreeMap<u32, ([i64; 5], i64)> {
        let steps = self.trace.steps.iter().filter(|of| of.number == step);
        let last = steps.max_by_key(|of| (of.span.end_ns, Reverse(of.rank))).unwrap();
        self.enter(last.rank, step);
        self.at = last.span.end_ns;
        let mut at = At::Main;
        while self.at > self.start {
            at = match at {
                At::Main => self.leave_main(),
                At::Item(item) => self.leave_item(item, step),
            };
        }
        let mut on: BTreeMap<u32, ([i64; 5], i64)> = BTreeMap::new();
        let mut before = None;
        for (rank, what, ns) in self.spent.into_iter().rev().filter(|(_, _, ns)| *ns > 0) {
            let row = on.entry(rank).or_default();
            row.0[what] += ns;
            row.1 += i64::from(before.is_some_and(|before| before != rank));
            before = Some(rank);
        }
        on
    }
}

fn schedules() -> impl Strategy<Value = Schedule> {
    prop_oneof![
        (1_u32..4, any::<bool>()).prop_map(|(buckets, overlaps)| Schedule::Ddp { buckets, overlaps }),
        (1_u32..4, any::<bool>()).prop_map(|(layers, prefetches)| Schedule::Fsdp { layers, prefetches }),
        (1_u32..5).prop_map(|micro_batches| Schedule::Pipeline { stages: 2, micro_batches }),
        (1_u32..3).prop_map(|layers| Schedule::Moe { layers, experts: 2 }),
        Just(Schedule::Groups(vec![vec![0, 1], vec![0, 1]])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn the_path_is_that_of_looking_at_everything_each_time(
        schedule in schedules(), pairs in 1_u32..3, steps in 1_i64..3, has_devices in any::<bool>(), seed in any::<u64>(),
        jitter_ns in prop_oneof![Just(0_i64), Just(70)], slow in prop_oneof![Just(None), (0_u32..2, 1_i64..200).prop_map(Some)],
    ) {
        let stragglers = slow.map(|(rank, percent)| Straggler { rank, op: None, percent }).into_iter().collect();
        let job = Job {
            ranks: 2 * pairs, steps, schedule, has_devices, seed, jitter_ns, stragglers,
            compute_ns: 150, transfer_ns: 90, ..Job::default()
        };
        let trace = job.run().trace();
        let rows = critical_path_ranks(&trace, &Selection::default());
        for step in 0..steps {
            let slow = Slow::of(&trace, has_devices).path(step);
            let of_row = |row: &super::CriticalPathRanks| {
                let classes = [PathClass::LaunchLatency, PathClass::QueueWait];
                let [latency, queue] = classes.map(|class| row.time.parts.of(class));
                let (compute, transfer) = (row.time.parts.of(PathClass::Compute), row.time.transfer_ns);
                let host = row.path_ns - latency - queue - compute - transfer;
                (row.rank, ([compute, transfer, latency, queue, host], row.hops))
            };
            let fast: BTreeMap<u32, ([i64; 5], i64)> =
                rows.iter().filter(|row| row.step == Some(step)).map(of_row).collect();
            prop_assert_eq!(fast, slow, "step {} of {:?}", step, job);
        }
    }
}

//! What each rank does, one thing after the other.

use super::{Job, Numbers, Schedule};
use crate::CollectiveKind;
use std::collections::BTreeMap;

/// A queue of communication: what is in it is carried out in order. It has a stream, or a thread, of its own on each of
/// its ranks.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Channel {
    /// What it carries: `allreduce`, `send`.
    pub(super) name: &'static str,
    /// What the group is for.
    pub(super) group: &'static str,
    /// The ranks of the group.
    pub(super) group_ranks: Vec<u32>,
    /// The ranks that take part: all of the group, or from which one to which.
    pub(super) ranks: Vec<u32>,
}

impl Channel {
    /// What it is to one of its ranks.
    pub(super) fn kind(&self, rank: u32) -> CollectiveKind {
        match self.name {
            "allreduce" => CollectiveKind::AllReduce,
            "allgather" => CollectiveKind::AllGather,
            "reduce_scatter" => CollectiveKind::ReduceScatter,
            "all_to_all" => CollectiveKind::AllToAll,
            "send" if self.ranks[0] == rank => CollectiveKind::Send,
            "send" => CollectiveKind::Receive,
            other => panic!("{other} is not simulated"),
        }
    }
}

/// One communication: its channel, by its place among all, and how many were in it before.
pub(super) type Message = (usize, usize);

/// One thing that a rank does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Compute {
        op: &'static str,
        ns: i64,
    },
    /// Begins to communicate, and goes on.
    Begin {
        message: Message,
        /// Its number in the rank's own count for the group.
        number: i64,
        /// How much later than the first the rank leaves.
        leave_ns: i64,
    },
    Wait(Message),
    EndStep,
}

/// What all ranks do.
#[derive(Default)]
pub(super) struct Programs {
    pub(super) of_rank: Vec<Vec<Act>>,
    pub(super) channels: Vec<Channel>,
    known: BTreeMap<Channel, usize>,
}

impl Programs {
    pub(super) fn of(job: &Job) -> Self {
        let mut programs = Self::default();
        for rank in 0..job.ranks {
            let numbers = Numbers(job.seed ^ u64::from(rank).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let (acts, begun, counts) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
            let programs = &mut programs;
            let mut writer = Writer { job, rank, step: 0, programs, acts, begun, counts, numbers };
            for step in 0..job.steps {
                writer.step = step;
                writer.write_step();
            }
            let acts = writer.acts;
            programs.of_rank.push(acts);
        }
        programs
    }

    fn channel(&mut self, channel: Channel) -> usize {
        *self.known.entry(channel).or_insert_with_key(|channel| {
            self.channels.push(channel.clone());
            self.channels.len() - 1
        })
    }
}

/// The program of one rank as it is written.
struct Writer<'a> {
    job: &'a Job,
    rank: u32,
    step: i64,
    programs: &'a mut Programs,
    acts: Vec<Act>,
    /// Communications begun, by channel.
    begun: BTreeMap<usize, usize>,
    /// Numbers of each group.
    counts: BTreeMap<(&'static str, Vec<u32>), i64>,
    numbers: Numbers,
}

impl Writer<'_> {
    fn write_step(&mut self) {
        match self.job.schedule.clone() {
            Schedule::Ddp { buckets, overlaps } => self.ddp(buckets, overlaps),
            Schedule::Fsdp { layers, prefetches } => self.fsdp(layers, prefetches),
            Schedule::Pipeline { stages, micro_batches } => self.pipeline(stages, micro_batches),
            Schedule::Moe { layers, experts } => self.moe(layers, experts),
            Schedule::Groups(groups) => {
                let rank = self.rank;
                for group in groups.into_iter().filter(|group| group.contains(&rank)) {
                    self.compute("forward");
                    let message = self.begin("allreduce", "group", group);
                    self.acts.push(Act::Wait(message));
                }
            }
        }
        self.acts.push(Act::EndStep);
    }

    fn ddp(&mut self, buckets: u32, overlaps: bool) {
        self.compute("forward");
        let mut begun = Vec::new();
        for _ in 0..buckets {
            self.compute("backward");
            let message = self.begin("allreduce", "dp", self.all());
            if overlaps {
                begun.push(message);
            } else {
                self.acts.push(Act::Wait(message));
            }
        }
        self.wait(begun);
        self.compute("optimizer");
    }

    fn fsdp(&mut self, layers: u32, prefetches: bool) {
        let mut scattered = Vec::new();
        for op in ["forward", "backward"] {
            let mut gathered = prefetches.then(|| self.begin("allgather", "fsdp", self.all()));
            for layer in 0..layers {
                let own = gathered.take().unwrap_or_else(|| self.begin("allgather", "fsdp", self.all()));
                if prefetches && layer + 1 < layers {
                    gathered = Some(self.begin("allgather", "fsdp", self.all()));
                }
                self.acts.push(Act::Wait(own));
                self.compute(op);
                if op == "backward" {
                    scattered.push(self.begin("reduce_scatter", "fsdp", self.all()));
                }
            }
        }
        self.wait(scattered);
        self.compute("optimizer");
    }

    fn pipeline(&mut self, stages: u32, micro_batches: u32) {
        let copies = self.job.ranks / stages;
        assert_eq!(copies * stages, self.job.ranks, "ranks fill the stages");
        let (stage, copy) = (self.rank / copies, self.rank % copies);
        let line: Vec<u32> = (0..stages).map(|stage| stage * copies + copy).collect();
        let before = stage.checked_sub(1).map(|stage| line[stage as usize]);
        let after = line.get(stage as usize + 1).copied();
        let warmup = micro_batches.min(stages - 1 - stage);
        let mut sent = Vec::new();
        // Forward of the first ones, then forward and backward in turn, then backward of the rest.
        let passes = (0..warmup).map(|_| true);
        let passes = passes.chain((warmup..micro_batches).flat_map(|_| [true, false]));
        for is_forward in passes.chain((0..warmup).map(|_| false)) {
            let (op, from, to) = if is_forward { ("forward", before, after) } else { ("backward", after, before) };
            if let Some(from) = from {
                let message = self.message(&line, from, self.rank);
                self.acts.push(Act::Wait(message));
            }
            self.compute(op);
            sent.extend(to.map(|to| self.message(&line, self.rank, to)));
        }
        self.wait(sent);
        if copies > 1 {
            let group = (stage * copies..(stage + 1) * copies).collect();
            let message = self.begin("allreduce", "dp", group);
            self.acts.push(Act::Wait(message));
        }
        self.compute("optimizer");
    }

    fn moe(&mut self, layers: u32, experts: u32) {
        let first = self.rank / experts * experts;
        let group: Vec<u32> = (first..first + experts).collect();
        assert!(group.last().is_some_and(|last| *last < self.job.ranks), "ranks fill the groups");
        for op in ["forward", "backward"] {
            for _ in 0..layers {
                self.compute(op);
                for _ in ["dispatch", "combine"] {
                    let message = self.begin("all_to_all", "ep", group.clone());
                    self.acts.push(Act::Wait(message));
                    self.compute(op);
                }
            }
        }
        let message = self.begin("allreduce", "dp", self.all());
        self.acts.push(Act::Wait(message));
        self.compute("optimizer");
    }

    fn all(&self) -> Vec<u32> {
        (0..self.job.ranks).collect()
    }

    fn compute(&mut self, op: &'static str) {
        let usual_ns = if op == "backward" { 2 * self.job.compute_ns } else { self.job.compute_ns };
        let is_slow = |of: &&super::Straggler| of.rank == self.rank && of.op.is_none_or(|slow| slow == op);
        let of_steps = self.job.stragglers_of_steps.iter().filter(|(step, _)| *step == self.step).map(|(_, of)| of);
        let all = self.job.stragglers.iter().chain(of_steps);
        let percent: i64 = all.filter(is_slow).map(|of| of.percent).sum();
        let ns = usual_ns + usual_ns * percent / 100 + self.numbers.below(self.job.jitter_ns);
        self.acts.push(Act::Compute { op, ns });
    }

    fn begin(&mut self, name: &'static str, group: &'static str, ranks: Vec<u32>) -> Message {
        self.begin_on(Channel { name, group, group_ranks: ranks.clone(), ranks })
    }

    fn message(&mut self, line: &[u32], from: u32, to: u32) -> Message {
        self.begin_on(Channel { name: "send", group: "pp", group_ranks: line.to_vec(), ranks: vec![from, to] })
    }

    fn begin_on(&mut self, channel: Channel) -> Message {
        let count = self.counts.entry((channel.group, channel.group_ranks.clone())).or_insert(0);
        let number = *count;
        *count += 1;
        let channel = self.programs.channel(channel);
        let begun = self.begun.entry(channel).or_insert(0);
        let message = (channel, *begun);
        *begun += 1;
        let leave_ns = self.numbers.below(self.job.leave_jitter_ns);
        self.acts.push(Act::Begin { message, number, leave_ns });
        message
    }

    fn wait(&mut self, messages: Vec<Message>) {
        self.acts.extend(messages.into_iter().map(Act::Wait));
    }
}

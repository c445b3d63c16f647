//! Jobs of many ranks, simulated, for tests: the trace that profilers would write, and what is true of the job.
//!
//! ```text
//! Job ─▶ a program for each rank ─▶ when each thing happens, on a true clock ─▶ Run ─▶ Trace, on the clocks of its hosts
//!        compute, begin, wait        (a collective ends once all have come)        └─▶ step time, waiting, who was late
//! ```
//!
//! The same [`Job`] gives the same [`Run`] on every machine. A job that differs in one thing, such as a straggler, draws
//! the same random numbers: run again with a change, it is what an answer to "what if" is checked against.

mod programs;
mod run;
mod written;

use crate::Drift;

pub use run::{Run, Waiting};

/// What is simulated: all ranks do this in every step.
#[derive(Clone, Debug)]
pub struct Job {
    /// Number of ranks.
    pub ranks: u32,
    /// Number of steps.
    pub steps: i64,
    /// What a step is.
    pub schedule: Schedule,
    /// How long a rank computes at a time; a backward pass takes twice as long.
    pub compute_ns: i64,
    /// How long a collective takes once all ranks have come.
    pub transfer_ns: i64,
    /// Each time that a rank computes takes up to this much longer.
    pub jitter_ns: i64,
    /// Each rank leaves a collective up to this much later than it is done.
    pub leave_jitter_ns: i64,
    /// What the random numbers come from.
    pub seed: u64,
    /// Who is slower than the others.
    pub stragglers: Vec<Straggler>,
    /// Who is slower in one step alone, by its number.
    pub stragglers_of_steps: Vec<(i64, Straggler)>,
    /// Which groups communicate slower than the others.
    pub slow_groups: Vec<SlowGroup>,
    /// Hosts, each with as many ranks as the others, in the order of ranks: what their clocks show at the true time 0, and
    /// how fast they run. Without any, hosts are not known and clocks are right.
    pub hosts: Vec<(i64, Drift)>,
    /// Whether kernels on streams compute and communicate, launched at the beginning of each step; else operators and
    /// threads of a backend do.
    pub has_devices: bool,
    /// Whether collectives say which group they are of and their number in it.
    pub states_groups: bool,
}

impl Default for Job {
    fn default() -> Self {
        Self {
            ranks: 4,
            steps: 2,
            schedule: Schedule::Ddp { buckets: 3, overlaps: true },
            compute_ns: 100_000,
            transfer_ns: 60_000,
            jitter_ns: 0,
            leave_jitter_ns: 0,
            seed: 0,
            stragglers: Vec::new(),
            stragglers_of_steps: Vec::new(),
            slow_groups: Vec::new(),
            hosts: Vec::new(),
            has_devices: true,
            states_groups: true,
        }
    }
}

/// A rank that takes longer than the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Straggler {
    /// The rank.
    pub rank: u32,
    /// What it is slow at: `forward`, `backward` or `optimizer`; `None` for all of them.
    pub op: Option<&'static str>,
    /// By how much of 100 it takes longer.
    pub percent: i64,
}

/// A process group whose communication takes longer once all have come, as over a slow link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlowGroup {
    /// The ranks of the group.
    pub ranks: Vec<u32>,
    /// By how much of 100 it takes longer.
    pub percent: i64,
}

/// How ranks share the work of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Schedule {
    /// A copy of the model on each rank: after each part of the backward pass its gradients are reduced.
    Ddp {
        /// Parts of the model whose gradients are reduced together.
        buckets: u32,
        /// Whether the backward pass goes on meanwhile.
        overlaps: bool,
    },
    /// Each rank keeps a part of each layer, gathered before the layer runs.
    Fsdp {
        /// Layers of the model.
        layers: u32,
        /// Whether the next layer is gathered while one computes.
        prefetches: bool,
    },
    /// Ranks of a stage have neighbours in the next one; forward and backward of micro-batches alternate (1F1B). Copies of
    /// a stage reduce their gradients at the end.
    Pipeline {
        /// Parts of the model; the number of ranks is a multiple.
        stages: u32,
        /// Parts of a batch.
        micro_batches: u32,
    },
    /// Layers with experts: groups of as many ranks exchange tokens before and after the experts compute.
    Moe {
        /// Layers of the model.
        layers: u32,
        /// Ranks of a group; the number of ranks is a multiple.
        experts: u32,
    },
    /// One all-reduce in each of these groups, in order, after its ranks have computed.
    Groups(Vec<Vec<u32>>),
}

impl Job {
    /// Runs it.
    ///
    /// # Panics
    /// When ranks wait for each other forever, or are not a multiple of what the schedule needs: a mistake in the test.
    pub fn run(&self) -> Run {
        Run::of(self)
    }

    /// The same job without its stragglers.
    pub fn without_stragglers(&self) -> Self {
        Self { stragglers: Vec::new(), stragglers_of_steps: Vec::new(), ..self.clone() }
    }

    /// The host of a rank.
    fn host(&self, rank: u32) -> Option<usize> {
        let ranks_per_host = (self.ranks as usize).div_ceil(self.hosts.len().max(1));
        (!self.hosts.is_empty()).then(|| rank as usize / ranks_per_host)
    }

    /// What the clock of a rank's host shows.
    fn shown_ns(&self, rank: u32, true_ns: i64) -> i64 {
        let (offset_ns, drift) = self.host(rank).map_or((0, Drift(0)), |host| self.hosts[host]);
        true_ns + offset_ns + drift.over(true_ns)
    }
}

/// Random numbers that are the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as i64 % limit.max(1)
    }
}

#[cfg(test)]
mod tests;

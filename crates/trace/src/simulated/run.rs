//! When each thing happens, and what is true of it.

use super::programs::{Act, Channel, Message, Programs};
use super::{Job, written};
use crate::Trace;
use std::collections::HashMap;
use stepscope_base::Span;

/// How long a launch takes; those of a step come before its device work.
pub(super) const LAUNCH_NS: i64 = 10;
/// How long a rank without a device is in the operator that asks for a collective.
pub(super) const ASK_NS: i64 = 1_000;

/// A piece of computing, on the true clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Computed {
    pub(super) op: &'static str,
    pub(super) span: Span,
}

/// A communication on one rank, on the true clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub(super) message: Message,
    pub(super) number: i64,
    /// From when the rank is ready, were the queue empty.
    pub(super) ready_ns: i64,
    pub(super) leave_ns: i64,
    /// From when it is carried out until the rank leaves; known at the end of the run.
    pub(super) span: Span,
}

/// What a rank did, in the order of its program.
#[derive(Clone, Copy, Debug)]
pub(super) enum Done {
    Computed(Computed),
    Carried(Carried),
    /// A step, with all that came before it and since the step before.
    Step(Span),
}

/// A job that ran.
#[derive(Debug)]
pub struct Run {
    pub(super) job: Job,
    pub(super) channels: Vec<Channel>,
    /// By rank.
    pub(super) done: Vec<Vec<Done>>,
}

/// How long ranks waited for each other, by the true times at which they came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waiting {
    /// For how long the rank waited for the last of each collective.
    pub waited_ns: i64,
    /// By how much it came after the last but one, where it was the last.
    pub held_up_ns: i64,
}

/// Where a rank is in its program.
#[derive(Default)]
struct Place {
    next: usize,
    now_ns: i64,
    step_start_ns: i64,
    /// Whether the launches of the step are over.
    has_begun: bool,
}

struct Engine<'a> {
    job: &'a Job,
    programs: Programs,
    places: Vec<Place>,
    done: Vec<Vec<Done>>,
    /// Where each communication is among what a rank has done.
    begun: HashMap<(Message, u32), usize>,
    /// When a communication is done, before ranks leave.
    ended: HashMap<Message, i64>,
}

impl Run {
    pub(super) fn of(job: &Job) -> Self {
        let programs = Programs::of(job);
        let ranks = programs.of_rank.len();
        let mut engine = Engine {
            job,
            programs,
            places: (0..ranks).map(|_| Place::default()).collect(),
            done: vec![Vec::new(); ranks],
            begun: HashMap::new(),
            ended: HashMap::new(),
        };
        while (0..ranks).any(|rank| engine.places[rank].next < engine.programs.of_rank[rank].len()) {
            let moved = (0..ranks).filter(|rank| engine.advance(*rank as u32)).count();
            assert!(moved > 0, "ranks wait for each other forever: {job:?}");
        }
        engine.fill_in();
        Self { job: job.clone(), channels: engine.programs.channels, done: engine.done }
    }

    /// The trace of all ranks, on the clocks of their hosts.
    pub fn trace(&self) -> Trace {
        written::trace(self, &(0..self.job.ranks).collect::<Vec<_>>())
    }

    /// The trace of one rank, whose times count from its own first event.
    pub fn trace_of(&self, rank: u32) -> Trace {
        written::trace(self, &[rank])
    }

    /// How long each step takes: from when the last rank is done with the step before to when the last is done with it.
    pub fn step_ns(&self) -> Vec<i64> {
        let end_ns = |step: usize| self.done.iter().map(|done| steps(done).nth(step).expect("all do it").end_ns).max();
        let ends: Vec<i64> = (0..self.job.steps as usize).filter_map(end_ns).collect();
        ends.iter().scan(0, |before_ns, end_ns| Some(end_ns - std::mem::replace(before_ns, *end_ns))).collect()
    }

    /// The sum of [`Run::step_ns`].
    pub fn total_ns(&self) -> i64 {
        self.step_ns().iter().sum()
    }

    /// What each rank waited in collectives, and by how much it held up others; from one rank to another counts for
    /// neither.
    pub fn waiting(&self) -> Vec<Waiting> {
        let mut starts: HashMap<Message, Vec<i64>> = HashMap::new();
        for carried in self.done.iter().flatten().filter_map(collective(&self.channels)) {
            starts.entry(carried.message).or_default().push(carried.span.start_ns);
        }
        starts.values_mut().for_each(|starts| starts.sort_unstable());
        let of_rank = |done: &Vec<Done>| {
            let mut waiting = Waiting::default();
            for carried in done.iter().filter_map(collective(&self.channels)) {
                let starts = &starts[&carried.message];
                waiting.waited_ns += starts[starts.len() - 1] - carried.span.start_ns;
                // Only the last is later than the last but one.
                let second_ns = starts[starts.len().saturating_sub(2)];
                waiting.held_up_ns += (carried.span.start_ns - second_ns).max(0);
            }
            waiting
        };
        self.done.iter().map(of_rank).collect()
    }
}

fn steps(done: &[Done]) -> impl Iterator<Item = Span> + '_ {
    done.iter().filter_map(|done| if let Done::Step(span) = done { Some(*span) } else { None })
}

fn collective(channels: &[Channel]) -> impl Fn(&Done) -> Option<Carried> + '_ {
    |done| match done {
        Done::Carried(carried) if channels[carried.message.0].name != "send" => Some(*carried),
        _ => None,
    }
}

impl Engine<'_> {
    /// Goes on with a rank until it waits. True when it did anything.
    fn advance(&mut self, rank: u32) -> bool {
        let at = rank as usize;
        let first = self.places[at].next;
        while let Some(act) = self.programs.of_rank[at].get(self.places[at].next).copied() {
            if !self.places[at].has_begun {
                self.begin_step(at);
            }
            let now_ns = self.places[at].now_ns;
            match act {
                Act::Compute { op, ns } => {
                    self.done[at].push(Done::Computed(Computed { op, span: Span::new(now_ns, now_ns + ns) }));
                    self.places[at].now_ns += ns;
                }
                Act::Begin { message, number, leave_ns } => {
                    self.places[at].now_ns += if self.job.has_devices { 0 } else { ASK_NS };
                    let (ready_ns, span) = (self.places[at].now_ns, Span::new(0, 0));
                    self.begun.insert((message, rank), self.done[at].len());
                    self.done[at].push(Done::Carried(Carried { message, number, ready_ns, leave_ns, span }));
                }
                Act::Wait(message) => {
                    let Some(left_ns) = self.left_ns(message, rank) else { break };
                    self.places[at].now_ns = now_ns.max(left_ns);
                }
                Act::EndStep => {
                    let place = &mut self.places[at];
                    self.done[at].push(Done::Step(Span::new(place.step_start_ns, now_ns)));
                    (place.step_start_ns, place.has_begun) = (now_ns, false);
                }
            }
            self.places[at].next += 1;
        }
        self.places[at].next > first
    }

    fn begin_step(&mut self, at: usize) {
        let place = &mut self.places[at];
        place.has_begun = true;
        if self.job.has_devices {
            let acts = self.programs.of_rank[at][place.next..].iter();
            let launches = acts.take_while(|act| !matches!(act, Act::EndStep));
            let launches = launches.filter(|act| !matches!(act, Act::Wait(_))).count();
            place.now_ns += LAUNCH_NS * launches as i64;
        }
    }

    /// When a rank comes to a communication, once that is known.
    fn came_ns(&mut self, message: Message, rank: u32) -> Option<i64> {
        let at = *self.begun.get(&(message, rank))?;
        let Done::Carried(carried) = self.done[rank as usize][at] else { unreachable!("only those are noted") };
        let (channel, nth) = message;
        let queue_ns = match nth.checked_sub(1) {
            Some(before) => self.left_ns((channel, before), rank)?,
            None => i64::MIN,
        };
        Some(carried.ready_ns.max(queue_ns))
    }

    /// When a rank leaves a communication, once that is known.
    fn left_ns(&mut self, message: Message, rank: u32) -> Option<i64> {
        let at = *self.begun.get(&(message, rank))?;
        let Done::Carried(carried) = self.done[rank as usize][at] else { unreachable!("only those are noted") };
        if let Some(ended_ns) = self.ended.get(&message) {
            return Some(ended_ns + carried.leave_ns);
        }
        let ranks = self.programs.channels[message.0].ranks.clone();
        let came: Option<Vec<i64>> = ranks.into_iter().map(|rank| self.came_ns(message, rank)).collect();
        let ended_ns = came?.into_iter().max()? + self.transfer_ns(message);
        self.ended.insert(message, ended_ns);
        Some(ended_ns + carried.leave_ns)
    }

    /// How long a communication takes once all have come.
    fn transfer_ns(&self, message: Message) -> i64 {
        let group = &self.programs.channels[message.0].group_ranks;
        let slow = self.job.slow_groups.iter().filter(|slow| slow.ranks == *group);
        self.job.transfer_ns + self.job.transfer_ns * slow.map(|slow| slow.percent).sum::<i64>() / 100
    }

    /// Notes when communications were carried out, now that all is known; also those that nobody waited for.
    fn fill_in(&mut self) {
        for rank in 0..self.done.len() {
            for at in 0..self.done[rank].len() {
                let Done::Carried(carried) = self.done[rank][at] else { continue };
                let rank_number = rank as u32;
                let start_ns = self.came_ns(carried.message, rank_number).expect("all have come");
                let end_ns = self.left_ns(carried.message, rank_number).expect("all have come");
                self.done[rank][at] = Done::Carried(Carried { span: Span::new(start_ns, end_ns), ..carried });
            }
        }
    }
}

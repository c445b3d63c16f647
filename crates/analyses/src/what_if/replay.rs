//! A step of several ranks, played again from what each did: who waits for whom is kept, how long things take is not.

use super::of_rank::{Act, RankStep};
use crate::communication::{leave_together, waits_for};
use stepscope_align::{Part, together};

/// A communication of a rank: its place among ranks, and among those of the rank.
type Place = (usize, usize);

/// A communication with all ranks that take part.
struct Joint {
    places: Vec<Place>,
    left: Leaving,
}

/// When ranks leave a communication.
enum Leaving {
    /// Together, as long after the last has come.
    Together(i64),
    /// Each as long after the last of these has come.
    Apart(Vec<(Vec<Place>, i64)>),
}

/// One step of several ranks.
pub(super) struct JobStep {
    pub(super) number: i64,
    pub(super) ranks: Vec<RankStep>,
    joints: Vec<Joint>,
    /// For each communication of each rank where it takes part.
    joint_of: Vec<Vec<usize>>,
    /// For each the one behind it in its queue.
    behind: Vec<Vec<Option<usize>>>,
}

impl JobStep {
    pub(super) fn of(number: i64, ranks: Vec<RankStep>) -> Self {
        let places: Vec<Place> =
            ranks.iter().enumerate().flat_map(|(rank, step)| (0..step.comms.len()).map(move |at| (rank, at))).collect();
        let parts: Vec<Part> = places.iter().map(|(rank, at)| ranks[*rank].comms[*at].part).collect();
        let mut joint_of: Vec<Vec<usize>> = ranks.iter().map(|step| vec![0; step.comms.len()]).collect();
        let mut joints = Vec::new();
        for same in together(&parts).places() {
            let own: Vec<(Place, &Part)> = same.iter().map(|at| (places[*at as usize], &parts[*at as usize])).collect();
            own.iter().for_each(|((rank, at), _)| joint_of[*rank][*at] = joints.len());
            joints.push(Joint { places: own.iter().map(|(place, _)| *place).collect(), left: leaving(&own) });
        }
        let behind = |step: &RankStep| {
            let mut behind = vec![None; step.comms.len()];
            let after = step.comms.iter().enumerate().filter_map(|(at, comm)| Some((comm.after?, at)));
            after.for_each(|(before, at)| behind[before] = Some(at));
            behind
        };
        let behind = ranks.iter().map(behind).collect();
        Self { number, ranks, joints, joint_of, behind }
    }

    /// True when a communication joins two ranks.
    pub(super) fn is_joined(&self) -> bool {
        self.joints.iter().any(|joint| joint.places.len() > 1)
    }

    /// From when the last rank has begun to when the last is done.
    pub(super) fn measured_ns(&self) -> i64 {
        self.length_ns(self.ranks.iter().map(|step| step.span.end_ns))
    }

    fn length_ns(&self, ends_ns: impl Iterator<Item = i64>) -> i64 {
        let begun_ns = self.ranks.iter().map(|step| step.span.start_ns).max().unwrap_or(0);
        ends_ns.max().unwrap_or(begun_ns) - begun_ns
    }

    /// The same when each rank does its `acts` instead, and communication takes `percent` of its time once ranks have
    /// come. `None` when ranks would wait for each other forever: what was matched cannot be the same.
    pub(super) fn replayed_ns(&self, acts: &[&[Act]], percent: i64) -> Option<i64> {
        Some(self.length_ns(Replay::of(self, acts, percent).run()?.into_iter()))
    }

    /// The ranks of the last stage of a pipeline and those of the others, by their places, as in `stage_of_ranks`.
    pub(super) fn stages(&self) -> Option<(Vec<usize>, Vec<usize>)> {
        let stages = self.stage_of_ranks()?;
        let last = stages.iter().flatten().max()?;
        let has = |is_last: bool| {
            let with_stage = stages.iter().enumerate().filter_map(|(at, stage)| Some((at, (*stage)?)));
            with_stage.filter(|(_, stage)| (stage == last) == is_last).map(|(at, _)| at).collect()
        };
        Some((has(true), has(false)))
    }

    /// The stage of a pipeline that each rank is, by their places, as the first message between two ranks goes. `None`
    /// when stages go round in a circle; no rank has one without a pipeline.
    pub(super) fn stage_of_ranks(&self) -> Option<Vec<Option<usize>>> {
        let mut first: Vec<((usize, usize), i64, bool)> = Vec::new();
        for joint in self.joints.iter().filter(|joint| joint.places.len() == 2) {
            let part = |place: &Place| &self.ranks[place.0].comms[place.1].part;
            let Some((from, _)) = part(&joint.places[0]).key.from_to() else { continue };
            let (a, b) = (joint.places[0].0, joint.places[1].0);
            let is_upward = i64::from(self.ranks[a].rank) == from;
            let start_ns = joint.places.iter().map(|place| part(place).start_ns).max().unwrap_or(0);
            first.push(((a.min(b), a.max(b)), start_ns, is_upward == (a < b)));
        }
        first.sort_unstable();
        first.dedup_by_key(|(pair, ..)| *pair);
        let mut stage: Vec<Option<usize>> = vec![None; self.ranks.len()];
        first.iter().for_each(|((a, b), ..)| (stage[*a], stage[*b]) = (Some(0), Some(0)));
        for _ in 0..=self.ranks.len() {
            let mut is_done = true;
            for ((a, b), _, is_upward) in &first {
                let (from, to) = if *is_upward { (*a, *b) } else { (*b, *a) };
                let next = stage[from].map(|stage| stage + 1);
                if stage[to] < next {
                    (stage[to], is_done) = (next, false);
                }
            }
            if is_done {
                return Some(stage);
            }
        }
        None
    }
}

/// When the ranks of a communication leave, as they did.
fn leaving(own: &[(Place, &Part)]) -> Leaving {
    let needs = |part: &Part| -> Vec<(Place, &Part)> {
        own.iter().filter(|(_, other)| waits_for(part, other)).copied().collect()
    };
    if leave_together(own.iter().map(|(_, part)| *part)) {
        let shortest_ns = own.iter().map(|(_, part)| part.end_ns - part.start_ns).min();
        return Leaving::Together(shortest_ns.unwrap_or(0));
    }
    let apart = own.iter().map(|(_, part)| {
        let needed = needs(part);
        let last_ns = needed.iter().map(|(_, other)| other.start_ns).max().unwrap_or(part.start_ns);
        (needed.into_iter().map(|(place, _)| place).collect(), (part.end_ns - last_ns).max(0))
    });
    Leaving::Apart(apart.collect())
}

/// What is known of one communication of a rank.
#[derive(Clone, Copy, Default)]
struct Known {
    ready_ns: Option<i64>,
    came_ns: Option<i64>,
    left_ns: Option<i64>,
}

struct Replay<'a> {
    step: &'a JobStep,
    acts: &'a [&'a [Act]],
    percent: i64,
    /// By rank: the next act, and the time.
    next: Vec<usize>,
    now_ns: Vec<i64>,
    known: Vec<Vec<Known>>,
    /// How many ranks have come.
    came: Vec<usize>,
    /// Ranks that may go on.
    open: Vec<usize>,
}

impl<'a> Replay<'a> {
    fn of(step: &'a JobStep, acts: &'a [&'a [Act]], percent: i64) -> Self {
        Self {
            step,
            acts,
            percent,
            next: vec![0; step.ranks.len()],
            now_ns: step.ranks.iter().map(|rank| rank.span.start_ns).collect(),
            known: step.ranks.iter().map(|rank| vec![Known::default(); rank.comms.len()]).collect(),
            came: vec![0; step.joints.len()],
            open: (0..step.ranks.len()).rev().collect(),
        }
    }

    /// When each rank is done.
    fn run(mut self) -> Option<Vec<i64>> {
        while let Some(rank) = self.open.pop() {
            while let Some(act) = self.acts[rank].get(self.next[rank]) {
                match *act {
                    Act::Work(ns) | Act::Idle(ns) => self.now_ns[rank] += ns,
                    Act::Begin(at) => {
                        self.known[rank][at].ready_ns = Some(self.now_ns[rank]);
                        self.come((rank, at));
                    }
                    Act::Wait(at) => {
                        let Some(left_ns) = self.known[rank][at].left_ns else { break };
                        self.now_ns[rank] = self.now_ns[rank].max(left_ns);
                    }
                }
                self.next[rank] += 1;
            }
        }
        let is_done = self.acts.iter().zip(&self.next).all(|(acts, next)| acts.len() == *next);
        is_done.then_some(self.now_ns)
    }

    /// Notes that a rank comes to a communication, if it is ready and the queue is free, and all that follows from it.
    fn come(&mut self, place: Place) {
        let mut coming = vec![place];
        while let Some((rank, at)) = coming.pop() {
            let comm = &self.step.ranks[rank].comms[at];
            let known = self.known[rank][at];
            let free_ns = match comm.after {
                Some(before) => self.known[rank][before].left_ns,
                None => Some(i64::MIN),
            };
            let (Some(ready_ns), Some(free_ns), None) = (known.ready_ns, free_ns, known.came_ns) else { continue };
            self.known[rank][at].came_ns = Some(ready_ns.max(free_ns) + comm.lag_ns);
            let joint = self.step.joint_of[rank][at];
            self.came[joint] += 1;
            self.leave(joint, &mut coming);
        }
    }

    /// Notes who leaves a communication, now that another rank has come; their queues go on.
    fn leave(&mut self, joint: usize, coming: &mut Vec<Place>) {
        let Joint { places, left } = &self.step.joints[joint];
        let came_ns = |place: &Place| self.known[place.0][place.1].came_ns;
        let after = |needed: &[Place], ns: i64| -> Option<i64> {
            let last_ns =
                needed.iter().map(came_ns).try_fold(i64::MIN, |last_ns, came_ns| Some(last_ns.max(came_ns?)))?;
            Some(last_ns + (i128::from(ns) * i128::from(self.percent) / 100) as i64)
        };
        let left: Vec<(Place, i64)> = match left {
            Leaving::Together(_) if self.came[joint] < places.len() => Vec::new(),
            Leaving::Together(ns) => {
                let left_ns = after(places, *ns);
                places.iter().filter_map(|place| Some((*place, left_ns?))).collect()
            }
            Leaving::Apart(needs) => {
                let of_place =
                    |(place, (needed, ns)): (&Place, &(Vec<Place>, i64))| Some((*place, after(needed, *ns)?));
                places.iter().zip(needs).filter_map(of_place).collect()
            }
        };
        for ((rank, at), left_ns) in left {
            if self.known[rank][at].left_ns.is_none() {
                self.known[rank][at].left_ns = Some(left_ns);
                self.open.push(rank);
                coming.extend(self.step.behind[rank][at].map(|behind| (rank, behind)));
            }
        }
    }
}

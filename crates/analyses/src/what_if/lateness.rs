//! How long each rank would take for its own work if it were as fast as the others.

use super::alone::Category;
use super::of_rank::{Act, RankStep};
use super::replay::JobStep;
use std::collections::BTreeMap;
use stepscope_base::StringId;
use stepscope_base::percentiles::nearest_rank_of_unsorted;
use stepscope_trace::CollectiveKind;

/// What ranks have in common that do the same: what they communicate, in order; of messages how much higher the ranks are
/// from which and to which they go.
type Role = Vec<(Option<CollectiveKind>, StringId, Option<(i64, i64)>)>;

/// A part of a rank's own time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Own {
    /// All of it.
    All,
    /// Its work.
    Work,
    /// When it neither works nor waits for communication.
    Idle,
}

impl Own {
    fn ns(self, act: &Act) -> Option<i64> {
        match act {
            Act::Work(ns) => (self != Self::Idle).then_some(*ns),
            Act::Idle(ns) => (self != Self::Work).then_some(*ns),
            Act::Begin(_) | Act::Wait(_) => None,
        }
    }
}

/// By how much longer each rank takes for `own` of its time than the middle one of the others that do the same, in the same stage;
/// nothing of a rank without such others.
pub(super) fn excesses_ns(step: &JobStep, own: Own) -> Vec<Option<i64>> {
    let mut excesses = vec![None; step.ranks.len()];
    for ranks in alike(step).filter(|ranks| ranks.len() > 1) {
        let of = |at: &usize| step.ranks[*at].acts.iter().filter_map(|act| own.ns(act)).sum::<i64>();
        let of_each: Vec<i64> = ranks.iter().map(of).collect();
        let mut sorted = of_each.clone();
        sorted.sort_unstable();
        for (at, own_ns) in ranks.into_iter().zip(of_each) {
            // The two in the middle of the others, or one twice: the lower one of two would make most ranks late.
            let own_place = sorted.partition_point(|ns| *ns < own_ns);
            let other = |at: usize| sorted[at + usize::from(at >= own_place)];
            let others = sorted.len() - 1;
            excesses[at] = Some(own_ns - (other((others - 1) / 2) + other(others / 2)) / 2);
        }
    }
    excesses
}

/// The ranks of a step, by their places, that do the same in the same stage.
pub(super) fn alike(step: &JobStep) -> impl Iterator<Item = Vec<usize>> {
    let stages = step.stage_of_ranks().unwrap_or_else(|| vec![None; step.ranks.len()]);
    let mut alike: BTreeMap<(Role, Option<usize>), Vec<usize>> = BTreeMap::new();
    step.ranks.iter().enumerate().for_each(|(at, rank)| alike.entry((role(rank), stages[at])).or_default().push(at));
    alike.into_values()
}

/// What each rank of a step would do if those that do the same worked as long as each other before each communication: as
/// long as their mean.
pub(super) fn with_equal_work(step: &JobStep) -> Vec<Vec<Act>> {
    let mut acts = vec![Vec::new(); step.ranks.len()];
    let mean = |ns: Vec<i64>| ns.iter().sum::<i64>() / ns.len() as i64;
    alike(step).for_each(|ranks| set_segments(step, &ranks, Own::Work, mean, &mut acts));
    acts
}

/// Makes each segment of these ranks, which do the same, as long as `common` says of those of all.
fn set_segments(step: &JobStep, ranks: &[usize], own: Own, common: impl Fn(Vec<i64>) -> i64, acts: &mut [Vec<Act>]) {
    let segments: Vec<Vec<i64>> = ranks.iter().map(|at| segments(&step.ranks[*at].acts, own)).collect();
    let of_all = |at: usize| common(segments.iter().map(|of_rank| of_rank[at]).collect());
    let new_ns: Vec<i64> = (0..segments[0].len()).map(of_all).collect();
    ranks.iter().for_each(|at| acts[*at] = with_segments(&step.ranks[*at].acts, own, &new_ns));
}

/// What each rank of a step would do if `own` of its time were as long as that of the middle one of those that do the same.
/// A rank that has no other like it takes as long for its work, in all, as the middle one of all.
pub(super) fn on_time(step: &JobStep, own: Own) -> Vec<Vec<Act>> {
    let mut alike: BTreeMap<Role, Vec<usize>> = BTreeMap::new();
    step.ranks.iter().enumerate().for_each(|(at, rank)| alike.entry(role(rank)).or_default().push(at));
    let middle_ns = middle(step.ranks.iter().map(|rank| work_ns(&rank.acts)));
    let mut acts = vec![Vec::new(); step.ranks.len()];
    for ranks in alike.values() {
        if let [alone] = ranks[..] {
            let as_it_was = &step.ranks[alone].acts;
            acts[alone] = if own == Own::Idle { as_it_was.clone() } else { with_work(as_it_was, middle_ns) };
            continue;
        }
        set_segments(step, ranks, own, |ns| middle(ns.into_iter()), &mut acts);
    }
    acts
}

/// The same acts with as much work in all, each piece as much shorter or longer. Without any work they stay.
pub(super) fn with_work(acts: &[Act], new_ns: i64) -> Vec<Act> {
    let mut scale = Scale::new(work_ns(acts), new_ns);
    acts.iter().map(|act| Own::Work.ns(act).map_or(*act, |ns| lasting(act, scale.next(ns)))).collect()
}

/// The sum of a rank's work.
pub(super) fn work_ns(acts: &[Act]) -> i64 {
    acts.iter().filter_map(|act| Own::Work.ns(act)).sum()
}

/// The sum of a rank's own time.
pub(super) fn own_ns(acts: &[Act]) -> i64 {
    acts.iter().filter_map(|act| Own::All.ns(act)).sum()
}

/// What a rank does if it waits for no communication before all else is done.
pub(super) fn without_waits(step: &RankStep) -> Vec<Act> {
    let rest = step.acts.iter().filter(|act| !matches!(act, Act::Wait(_))).copied();
    rest.chain((0..step.comms.len()).map(Act::Wait)).collect()
}

/// What a rank does if work of one category takes no time where none of another runs beside it.
pub(super) fn without_category(step: &RankStep, category: Category) -> Vec<Act> {
    let mut saved_ns: BTreeMap<u32, i64> = BTreeMap::new();
    let of_category = step.alone.iter().filter(|alone| alone.category == category);
    of_category.for_each(|alone| *saved_ns.entry(alone.work).or_default() += alone.ns);
    let mut works = 0_u32..;
    let without = |act: &Act| match act {
        Act::Work(ns) => Act::Work(ns - works.next().and_then(|work| saved_ns.get(&work)).unwrap_or(&0)),
        other => *other,
    };
    step.acts.iter().map(without).collect()
}

/// The same act, for as long.
fn lasting(act: &Act, ns: i64) -> Act {
    match act {
        Act::Work(_) => Act::Work(ns),
        Act::Idle(_) => Act::Idle(ns),
        other => *other,
    }
}

pub(super) fn middle(values: impl Iterator<Item = i64>) -> i64 {
    nearest_rank_of_unsorted(&mut values.collect::<Vec<_>>(), 50).unwrap_or(0)
}

fn role(step: &RankStep) -> Role {
    let of_part = |part: &stepscope_align::Part| {
        let higher = |rank: i64| rank - i64::from(part.rank);
        let from_to = part.key.from_to().map(|(from, to)| (higher(from), higher(to)));
        (part.kind, part.group_description, from_to)
    };
    step.comms.iter().map(|comm| of_part(&comm.part)).collect()
}

/// `own` time of a rank before each communication that it begins, and after the last.
fn segments(acts: &[Act], own: Own) -> Vec<i64> {
    let mut segments = vec![0];
    for act in acts {
        *segments.last_mut().expect("there is one") += own.ns(act).unwrap_or(0);
        if matches!(act, Act::Begin(_)) {
            segments.push(0);
        }
    }
    segments
}

fn with_segments(acts: &[Act], own: Own, new_ns: &[i64]) -> Vec<Act> {
    let mut scales = segments(acts, own).into_iter().zip(new_ns).map(|(own_ns, new_ns)| (own_ns, *new_ns));
    let mut scaled = Vec::with_capacity(acts.len());
    // Where nothing can be scaled, all of the new time comes first.
    let mut enter = |scaled: &mut Vec<Act>| {
        let (own_ns, new_ns) = scales.next().expect("one for each");
        scaled.extend((own_ns == 0 && new_ns > 0).then_some(Act::Idle(new_ns)));
        Scale::new(own_ns, new_ns)
    };
    let mut scale = enter(&mut scaled);
    for act in acts {
        scaled.push(own.ns(act).map_or(*act, |ns| lasting(act, scale.next(ns))));
        if matches!(act, Act::Begin(_)) {
            scale = enter(&mut scaled);
        }
    }
    scaled
}

/// Scales pieces so that their sum is exact.
struct Scale {
    old_ns: i64,
    new_ns: i64,
    before_ns: i64,
}

impl Scale {
    fn new(old_ns: i64, new_ns: i64) -> Self {
        Self { old_ns, new_ns, before_ns: 0 }
    }

    fn next(&mut self, ns: i64) -> i64 {
        let scaled = |ns: i64| match self.old_ns {
            0 => ns,
            old_ns => (i128::from(ns) * i128::from(self.new_ns) / i128::from(old_ns)) as i64,
        };
        let piece_ns = scaled(self.before_ns + ns) - scaled(self.before_ns);
        self.before_ns += ns;
        piece_ns
    }
}

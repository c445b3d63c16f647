//! Of which group a work is, and its number: worked out of how many were issued and how many have begun.

/// How many works of each group have begun, of those that were counted.
pub(super) struct Counts {
    begun: Vec<i64>,
    /// Set while those of a group that have begun cannot be told apart.
    is_mixed: Vec<bool>,
    /// Works that have begun, of a group that is not known.
    of_unknown: i64,
    /// Set once more have begun than were counted.
    is_lost: bool,
}

impl Counts {
    pub(super) fn new(now: Vec<i64>) -> Self {
        Self { is_mixed: vec![false; now.len()], begun: now, of_unknown: 0, is_lost: false }
    }

    /// Goes on with what was counted of the groups that stay.
    pub(super) fn take_over(&mut self, objects: &[usize], before: &Self, objects_before: &[usize]) {
        (self.of_unknown, self.is_lost) = (before.of_unknown, before.is_lost);
        // A work of unknown group may have been of one that is gone.
        self.is_lost |= before.of_unknown > 0 && objects_before.iter().any(|object| !objects.contains(object));
        for (at, object) in objects.iter().enumerate() {
            if let Some(then) = objects_before.iter().position(|known| known == object) {
                (self.begun[at], self.is_mixed[at]) = (before.begun[then], before.is_mixed[then]);
            }
        }
    }

    fn waiting(&self, now: &[i64], at: usize) -> i64 {
        now[at] - self.begun[at]
    }

    /// Takes in works that began while another thread was counting: of which group they were is not known.
    pub(super) fn add_uncounted(&mut self, works: i64) {
        self.of_unknown += works;
    }

    /// A work begins on a thread that serves this group, or one that is not known; gives group and number.
    pub(super) fn begin(&mut self, now: &[i64], served: Option<usize>) -> Option<(usize, Option<i64>)> {
        let mut with_works = (0..now.len()).filter(|at| self.waiting(now, *at) > 0);
        let only = with_works.next().filter(|_| with_works.next().is_none() && self.of_unknown == 0);
        let at = served.or(only).filter(|_| !self.is_lost);
        let is_alone = at.is_some_and(|at| {
            let is_alone = self.waiting(now, at) == 1 && self.of_unknown == 0 && !self.is_mixed[at];
            self.is_mixed[at] |= !is_alone;
            is_alone
        });
        self.note(now, at);
        at.filter(|_| !self.is_lost).map(|at| (at, is_alone.then(|| now[at])))
    }

    /// A work begins on the thread that issues it.
    pub(super) fn begin_within(&mut self, now: &[i64], at: Option<usize>) {
        self.note(now, at);
        // It has overtaken what waits: the last number is not theirs.
        if let Some(at) = at.filter(|at| self.waiting(now, *at) > 0) {
            self.is_mixed[at] = true;
        }
    }

    /// Counts it. Where all have begun that were issued, nothing can be mixed up.
    fn note(&mut self, now: &[i64], at: Option<usize>) {
        match at {
            Some(at) => self.begun[at] += 1,
            None => self.of_unknown += 1,
        }
        let (begun, issued) = (self.begun.iter().sum::<i64>() + self.of_unknown, now.iter().sum::<i64>());
        self.is_lost |= begun > issued || (0..now.len()).any(|at| self.waiting(now, at) < 0);
        if begun == issued && !self.is_lost {
            (self.begun, self.of_unknown) = (now.to_vec(), 0);
            self.is_mixed.fill(false);
        }
        if let Some(at) = at.filter(|at| self.of_unknown == 0 && self.waiting(now, *at) == 0) {
            self.is_mixed[at] = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays `0` and `1` (a collective of this group is issued), `a` and `b` (a work begins on a thread of unknown
    /// group), `A` and `B` (on one that serves group 0, or 1), `s` (sent within its op, of group 0); gives what is told
    /// of the works, as `group:number`; `u` is a work that nobody could count.
    fn play(events: &str) -> String {
        let mut now = vec![10, 20];
        let mut counts = Counts::new(now.clone());
        let mut summary = Vec::new();
        for event in events.chars() {
            let served = match event {
                '0' | '1' => {
                    now[usize::from(event == '1')] += 1;
                    continue;
                }
                's' => {
                    now[0] += 1;
                    counts.begin_within(&now, Some(0));
                    continue;
                }
                'u' => {
                    counts.add_uncounted(1);
                    continue;
                }
                'a' | 'b' => None,
                _ => Some(usize::from(event == 'B')),
            };
            summary.push(match counts.begin(&now, served) {
                Some((group, Some(number))) => format!("{group}:{number}"),
                Some((group, None)) => format!("{group}:-"),
                None => "-".to_string(),
            });
        }
        summary.join(" ")
    }

    #[test]
    fn one_after_another_have_their_groups_and_numbers() {
        assert_eq!(play("0a1b0a"), "0:11 1:21 0:12");
    }

    #[test]
    fn a_thread_whose_group_is_known_is_told_among_many() {
        assert_eq!(play("01AB"), "0:11 1:21");
        assert_eq!(play("01ab"), "- -");
        assert_eq!(play("01ab0a"), "- - 0:11".replace("11", "12"));
    }

    #[test]
    fn those_of_one_group_that_may_overtake_each_other_have_no_number_until_all_have_begun() {
        assert_eq!(play("00AA0A"), "0:- 0:- 0:13");
        assert_eq!(play("00A0AA1B0A"), "0:- 0:- 0:- 1:21 0:14");
        assert_eq!(play("00A1BA0A"), "0:- 1:21 0:- 0:13");
    }

    #[test]
    fn while_a_work_of_unknown_group_is_counted_no_number_is_certain() {
        assert_eq!(play("001aAA0A"), "- 0:- 0:- 0:13");
    }

    #[test]
    fn a_work_that_nobody_could_count_is_made_up_for() {
        assert_eq!(play("0u0A0A"), "0:- 0:13");
        assert_eq!(play("01uA0A"), "0:- 0:12");
    }

    #[test]
    fn what_is_sent_has_begun_at_once() {
        assert_eq!(play("s0a"), "0:12");
        assert_eq!(play("0sA"), "0:-");
    }

    #[test]
    fn nothing_is_told_once_more_begin_than_were_issued() {
        assert_eq!(play("aB0A"), "- - -");
    }

    #[test]
    fn groups_that_stay_keep_their_counts() {
        let mut before = Counts::new(vec![1, 5]);
        // A work of the second group waits while a third is made.
        assert_eq!(before.begin(&[2, 6], Some(0)), Some((0, Some(2))));
        let mut counts = Counts::new(vec![6, 0, 2]);
        counts.take_over(&[22, 33, 11], &before, &[11, 22]);
        assert_eq!(counts.begin(&[6, 0, 2], None), Some((0, Some(6))));
    }

    #[test]
    fn groups_that_stay_keep_their_counts_when_another_goes() {
        let mut before = Counts::new(vec![1, 5]);
        assert_eq!(before.begin(&[3, 5], Some(0)), Some((0, None)));
        // One of its works waits: a fresh count would take it for begun.
        let mut counts = Counts::new(vec![3]);
        counts.take_over(&[11], &before, &[11, 22]);
        assert_eq!(counts.begin(&[3], Some(0)), Some((0, None)));
        assert_eq!(counts.begin(&[4], Some(0)), Some((0, Some(4))));
        // Nobody knows which group this one was of.
        assert_eq!(before.begin(&[4, 6], None), None);
        let mut counts = Counts::new(vec![4]);
        counts.take_over(&[11], &before, &[11, 22]);
        assert_eq!(counts.begin(&[4], Some(0)), None);
    }

    /// Works that queues hand to threads in any order, beside what each really is: what is told is right.
    #[test]
    fn what_is_told_is_right_whatever_the_order() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (mut groups_told, mut numbers_told) = (0, 0);
        for _ in 0..300 {
            let mut now = vec![0_i64; 3];
            let mut counts = Counts::new(now.clone());
            // Two threads a group: which group the recorder knows them to serve, and the work each has taken.
            let mut served = [None; 6];
            let mut taken: [Option<i64>; 6] = [None; 6];
            let mut queues: [Vec<i64>; 3] = Default::default();
            for _ in 0..200 {
                let thread = random(6) as usize;
                let group = thread / 2;
                match random(6) {
                    0 => {
                        now[group] += 1;
                        queues[group].insert(0, now[group]);
                    }
                    1..=3 if taken[thread].is_none() => taken[thread] = queues[group].pop(),
                    _ => {
                        let Some(work) = taken[thread].take() else { continue };
                        if let Some((at, number)) = counts.begin(&now, served[thread]) {
                            assert_eq!(at, group);
                            assert!(number.is_none_or(|number| number == work));
                            served[thread] = Some(at);
                            groups_told += 1;
                            numbers_told += usize::from(number.is_some());
                        }
                    }
                }
            }
        }
        assert!(groups_told > 1_000 && numbers_told > 100, "{groups_told} {numbers_told}");
    }
}

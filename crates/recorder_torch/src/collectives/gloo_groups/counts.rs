//! The number of a work in its group: worked out of how many were issued and how many have begun.

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

    /// A work begins on a thread of this group; gives its number, where that is certain.
    pub(super) fn begin(&mut self, now: &[i64], at: usize) -> Option<i64> {
        let is_alone = self.waiting(now, at) == 1 && self.of_unknown == 0 && !self.is_mixed[at];
        self.is_mixed[at] |= !is_alone;
        self.note(now, Some(at));
        (is_alone && !self.is_lost).then(|| now[at])
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

    /// Plays `0` and `1` (a collective of this group is issued), `a` and `b` (a work begins on a thread of group 0, or 1),
    /// `s` (sent within its op, of group 0); gives the numbers that are told of the works; `u` is a work that nobody could
    /// count.
    fn play(events: &str) -> String {
        let mut now = vec![10, 20];
        let mut counts = Counts::new(now.clone());
        let mut told = Vec::new();
        for event in events.chars() {
            match event {
                '0' | '1' => now[usize::from(event == '1')] += 1,
                's' => {
                    now[0] += 1;
                    counts.begin_within(&now, Some(0));
                }
                'u' => counts.add_uncounted(1),
                _ => {
                    let number = counts.begin(&now, usize::from(event == 'b'));
                    told.push(number.map_or("-".to_string(), |number| number.to_string()));
                }
            }
        }
        told.join(" ")
    }

    #[test]
    fn one_after_another_have_their_numbers() {
        assert_eq!(play("0a1b0a"), "11 21 12");
        assert_eq!(play("01ab"), "11 21");
    }

    #[test]
    fn those_of_one_group_that_may_overtake_each_other_have_no_number_until_all_have_begun() {
        assert_eq!(play("00aa0a"), "- - 13");
        assert_eq!(play("00a0aa1b0a"), "- - - 21 14");
        assert_eq!(play("00a1ba0a"), "- 21 - 13");
    }

    #[test]
    fn a_work_that_nobody_could_count_is_made_up_for() {
        assert_eq!(play("0u0a0a"), "- 13");
        assert_eq!(play("01ua0a"), "- 12");
    }

    #[test]
    fn what_is_sent_has_begun_at_once() {
        assert_eq!(play("s0a"), "12");
        assert_eq!(play("0sa"), "-");
    }

    #[test]
    fn nothing_is_told_once_more_begin_than_were_issued() {
        assert_eq!(play("ab0a"), "- - -");
    }

    #[test]
    fn groups_that_stay_keep_their_counts() {
        let mut before = Counts::new(vec![1, 5]);
        // A work of the second group waits while a third is made.
        assert_eq!(before.begin(&[2, 6], 0), Some(2));
        let mut counts = Counts::new(vec![6, 0, 2]);
        counts.take_over(&[22, 33, 11], &before, &[11, 22]);
        assert_eq!(counts.begin(&[6, 0, 2], 0), Some(6));
    }

    #[test]
    fn groups_that_stay_keep_their_counts_when_another_goes() {
        let mut before = Counts::new(vec![1, 5]);
        assert_eq!(before.begin(&[3, 5], 0), None);
        // One of its works waits: a fresh count would take it for begun.
        let mut counts = Counts::new(vec![3]);
        counts.take_over(&[11], &before, &[11, 22]);
        assert_eq!(counts.begin(&[3], 0), None);
        assert_eq!(counts.begin(&[4], 0), Some(4));
        // Nobody knows which group this one was of.
        before.begin_within(&[4, 6], None);
        let mut counts = Counts::new(vec![4]);
        counts.take_over(&[11], &before, &[11, 22]);
        assert_eq!(counts.begin(&[4], 0), None);
    }

    /// Works that queues hand to threads in any order, beside what each really is: what is told is right.
    #[test]
    fn what_is_told_is_right_whatever_the_order() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut numbers_told = 0;
        for _ in 0..300 {
            let mut now = vec![0_i64; 3];
            let mut counts = Counts::new(now.clone());
            // Two threads a group, and the work each has taken.
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
                        let number = counts.begin(&now, group);
                        assert!(number.is_none_or(|number| number == work));
                        numbers_told += usize::from(number.is_some());
                    }
                }
            }
        }
        assert!(numbers_told > 100, "{numbers_told}");
    }
}

//! The process group that ranges without a record belong to, and the numbers of its collectives.
//!
//! Where a process has one group, each op such as `c10d::allreduce_` is its next collective. The range `gloo:all_reduce`
//! of the work itself begins later, on one of several threads of the backend, which may overtake each other: it gets the
//! number only where no other one can be meant.

use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The only group of a backend that labels its ranges.
struct Group {
    description: String,
    progress: Progress,
}

static GROUP: RwLock<Option<Group>> = RwLock::new(None);

/// Says which group ranges like `gloo:all_reduce` belong to, described as a capture stores it, and how many collectives
/// it has had, where ops can be counted; `None` when there are none or several, which cannot be told apart.
pub fn set_labelled_group(group: Option<(String, Option<i64>)>) {
    let new = group.map(|(description, number)| Group { description, progress: Progress::after(number) });
    if let Ok(mut group) = GROUP.write() {
        *group = new;
    }
}

/// Describes the group of an op that issues a collective. `is_one`: it is known to issue just one.
///
/// Never waits: where the group changes just now, it is not known.
pub(super) fn issue(is_one: bool) -> Option<(String, Option<i64>)> {
    let group = GROUP.try_read().ok()?;
    let group = group.as_ref()?;
    Some((group.description.clone(), group.progress.issue(is_one)))
}

/// Describes the group of a collective whose work begins.
pub(super) fn begin() -> Option<(String, Option<i64>)> {
    let group = GROUP.try_read().ok()?;
    let group = group.as_ref()?;
    Some((group.description.clone(), group.progress.begin()))
}

/// How many collectives were issued and how many of them have begun: two numbers of 30 bits, and two flags, in one word.
struct Progress {
    first: i64,
    state: AtomicU64,
}

/// Set once the count is not certain any more.
const IS_LOST: u64 = 1 << 63;
/// Set while some that have begun cannot be told apart.
const IS_MIXED: u64 = 1 << 62;
const MOST: u64 = (1 << 30) - 1;

impl Progress {
    fn after(number: Option<i64>) -> Self {
        Self { first: number.unwrap_or(0), state: AtomicU64::new(if number.is_some() { 0 } else { IS_LOST }) }
    }

    /// The number of a collective that is issued now.
    fn issue(&self, is_one: bool) -> Option<i64> {
        let next = |state: u64| match issued(state) {
            _ if !is_one || state & IS_LOST != 0 => IS_LOST,
            MOST => IS_LOST,
            _ => state + (1 << 30),
        };
        let state = next(self.update(next));
        (state & IS_LOST == 0).then(|| self.first + issued(state) as i64)
    }

    /// The number of a collective that begins now; `None` where several may be meant.
    fn begin(&self) -> Option<i64> {
        let next = |state: u64| {
            let (issued, begun) = (issued(state), (state & MOST) + 1);
            let is_mixed = state & IS_MIXED != 0 || issued > begun;
            match () {
                () if state & IS_LOST != 0 || begun > issued => IS_LOST,
                () if begun == issued => issued << 30 | begun,
                () => issued << 30 | begun | if is_mixed { IS_MIXED } else { 0 },
            }
        };
        let before = self.update(next);
        let is_alone = before & (IS_LOST | IS_MIXED) == 0 && issued(before) == (before & MOST) + 1;
        is_alone.then(|| self.first + issued(before) as i64)
    }

    /// Changes the state; gives the one before.
    fn update(&self, next: impl Fn(u64) -> u64) -> u64 {
        let changed = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| Some(next(state)));
        changed.unwrap_or(IS_LOST)
    }
}

fn issued(state: u64) -> u64 {
    state >> 30 & MOST
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays `i` (issue), `b` (begin) and `?` (an op of an unknown number); gives the numbers.
    fn play(events: &str) -> String {
        let progress = Progress::after(Some(7));
        let number = |event| match event {
            'i' => progress.issue(true),
            'b' => progress.begin(),
            _ => progress.issue(false),
        };
        let texts = events.chars().map(|event| number(event).map_or("-".into(), |number: i64| number.to_string()));
        texts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn one_after_another_have_their_numbers() {
        assert_eq!(play("ibibib"), "8 8 9 9 10 10");
    }

    #[test]
    fn those_that_may_overtake_each_other_have_none_until_all_have_begun() {
        assert_eq!(play("iibbib"), "8 9 - - 10 10");
        assert_eq!(play("iibibbib"), "8 9 - 10 - - 11 11");
    }

    #[test]
    fn nothing_is_numbered_once_the_count_is_lost() {
        assert_eq!(play("ib?ib"), "8 8 - - -");
        assert_eq!(play("bib"), "- - -");
        let uncounted = Progress::after(None);
        assert_eq!((uncounted.issue(true), uncounted.begin()), (None, None));
    }
}

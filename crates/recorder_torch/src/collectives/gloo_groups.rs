//! Which group a work of Gloo belongs to, and its number there, where a process has several groups.
//!
//! An op such as `c10d::allreduce_` does not say its group where nobody asks for inputs. But Gloo counts the collectives
//! of each group before it queues one, and the op ends after that: when no other thread issues at the same time, the one
//! group whose count grew is the op's. The work begins on a thread that serves one group for life:
//!
//! ```text
//! main thread    c10d::allreduce_ [count of group 1: 4 → 5]
//! Gloo's thread                                      gloo:all_reduce   of group 1, number 5
//! ```
//!
//! Which group a thread serves is learnt from the first work that it begins while just one group has works waiting. A
//! work has its group's last number when it is the only one waiting there. Whatever else may be meant is not known.

use crate::api::{library, symbol};
use crate::peek::Peek;
use crate::solve::Refusal;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// `c10d::ProcessGroupGloo::getSequenceNumberForGroup()`.
const COUNT: &str = "_ZN4c10d16ProcessGroupGloo25getSequenceNumberForGroupEv";
/// The table whose address, behind its two head words, is the first word of each such object.
const VTABLE: &str = "_ZTVN4c10d16ProcessGroupGlooE";
/// Where an object of Python's, made by pybind11, has the address of the object that it stands for.
const OBJECT_OF_PYTHON: usize = 16;
/// With more groups than this none is counted: each issue looks at all of them.
const MOST_GROUPS: usize = 64;
/// How often a lock is tried: it is held for a few dozen instructions. Nobody waits for it.
const MOST_TRIES: u32 = 2_000;

type CountFn = unsafe extern "C" fn(*const c_void) -> u64;

/// The groups, which do not change while anybody looks at them.
struct Groups {
    count: CountFn,
    /// The backends' objects.
    objects: Vec<usize>,
    descriptions: Vec<String>,
}

/// Null while there are none.
static GROUPS: AtomicPtr<Groups> = AtomicPtr::new(std::ptr::null_mut());
/// How many threads look at them now.
static READERS: AtomicU32 = AtomicU32::new(0);
/// What is counted of them, and the address of those that it is counted of.
static COUNTS: Mutex<Option<(usize, Counts)>> = Mutex::new(None);
/// Works that have begun while another thread was counting.
static UNCOUNTED: AtomicI64 = AtomicI64::new(0);
/// Ops that issue: how many are under way in the lower half, how many ever began in the upper one.
static ISSUES: AtomicU64 = AtomicU64::new(0);
const ONE_UNDER_WAY: u64 = 1;
const ONE_BEGUN: u64 = 1 << 32;

/// An op that issues.
struct Issue {
    /// Its object.
    function: usize,
    /// It has been described.
    is_described: bool,
    /// No other op issued when it began.
    was_alone: bool,
    /// Which one of all it is.
    issue: u64,
    /// The groups, and their counts when it began.
    objects: Vec<usize>,
    before: Vec<i64>,
}

thread_local! {
    static ISSUE: RefCell<Option<Issue>> = const { RefCell::new(None) };
    /// The group that this thread of Gloo's serves; 0 when that is not known.
    static SERVED: Cell<usize> = const { Cell::new(0) };
}

/// Counts the collectives of these groups from now on: the Python objects of their backends, and how a capture describes
/// each. The caller keeps them alive until it gives others, or none; when it is told false, where some are still looked
/// at, these and those from before.
///
/// # Errors
/// When one of them is no group of Gloo's, or there are too many: none is counted then.
pub fn set_gloo_groups(folder: &Path, groups: Vec<(usize, String)>) -> Result<bool, Refusal> {
    let found = if groups.is_empty() { Ok(None) } else { Groups::find(folder, groups).map(Some) };
    let (new, refusal) = found.map_or_else(|refusal| (None, Some(refusal)), |new| (new, None));
    match (replace(new), refusal) {
        (true, Some(refusal)) => Err(refusal),
        (is_free, _) => Ok(is_free),
    }
}

/// Puts other groups in the place of those that are counted. True when no thread looks at these any more; one that goes
/// on, or one that a fork has left behind, keeps that from being true for ever.
fn replace(new: Option<Groups>) -> bool {
    let mut counts = new.as_ref().map(|groups| Counts::new(groups.now()));
    let new: *mut Groups = new.map_or(std::ptr::null_mut(), |groups| Box::into_raw(Box::new(groups)));
    let Some(mut held) = try_lock() else {
        // Nothing is counted from here on.
        GROUPS.store(std::ptr::null_mut(), Ordering::SeqCst);
        return false;
    };
    let old = GROUPS.swap(new, Ordering::SeqCst);
    // SAFETY: both live until below; nobody changes them.
    if let (Some(counts), Some(new), Some(old)) = unsafe { (&mut counts, new.as_ref(), old.as_ref()) }
        && let Some((_, mut before)) = held.take()
    {
        before.add_uncounted(UNCOUNTED.swap(0, Ordering::SeqCst));
        counts.take_over(&new.objects, &before, &old.objects);
    } else {
        UNCOUNTED.store(0, Ordering::SeqCst);
    }
    *held = counts.map(|counts| (new.expose_provenance(), counts));
    drop(held);
    let mut tries = 0..MOST_TRIES;
    while READERS.load(Ordering::SeqCst) != 0 {
        if tries.next().is_none() {
            // What it looks at stays for ever. Nothing is counted from here on.
            GROUPS.store(std::ptr::null_mut(), Ordering::SeqCst);
            return false;
        }
        std::hint::spin_loop();
    }
    if !old.is_null() {
        // SAFETY: made by `Box::into_raw`, taken out by this thread alone, and nobody else has it any more.
        drop(unsafe { Box::from_raw(old) });
    }
    true
}

/// Looks at the groups; `None` when there are none.
fn with_groups<R>(look: impl FnOnce(&Groups) -> R) -> Option<R> {
    READERS.fetch_add(1, Ordering::SeqCst);
    // SAFETY: whoever takes the groups away frees them only when nobody looks, and after this no one can see them newly.
    let seen = unsafe { GROUPS.load(Ordering::SeqCst).as_ref() }.map(look);
    READERS.fetch_sub(1, Ordering::SeqCst);
    seen
}

/// # Safety
/// `object` is a live group of Gloo's.
unsafe fn count_of(count: CountFn, object: usize) -> i64 {
    // SAFETY: the caller's promise; it only reads a field.
    unsafe { count(std::ptr::with_exposed_provenance(object)) as i64 }
}

impl Groups {
    /// The groups that these objects of Python's stand for.
    fn find(folder: &Path, groups: Vec<(usize, String)>) -> Result<Self, Refusal> {
        let refusal = || Refusal::Ambiguous { field: "group of Gloo's", candidates: vec![] };
        let library = library(folder, "libtorch_cpu.so")?;
        // SAFETY: the mangled names fix the types.
        let (count, vtable): (CountFn, usize) = unsafe { (symbol(library, COUNT)?, symbol(library, VTABLE)?) };
        let peek = Peek::new().map_err(|error| Refusal::CannotLook { reason: error.to_string() })?;
        let word = |address: usize| {
            let mut bytes = [0; 8];
            let copied = peek.copy(std::ptr::with_exposed_provenance(address), &mut bytes);
            (copied == 8).then(|| usize::from_le_bytes(bytes))
        };
        let object = |python: usize| word(python + OBJECT_OF_PYTHON).filter(|at| word(*at) == Some(vtable + 16));
        let objects: Option<Vec<usize>> = groups.iter().map(|(python, _)| object(*python)).collect();
        let objects = objects.filter(|objects| objects.len() <= MOST_GROUPS).ok_or_else(refusal)?;
        let descriptions = groups.into_iter().map(|(_, description)| description).collect();
        Ok(Self { count, objects, descriptions })
    }

    fn now(&self) -> Vec<i64> {
        // SAFETY: objects live for as long as anybody looks at their groups.
        self.objects.iter().map(|object| unsafe { count_of(self.count, *object) }).collect()
    }

    fn at(&self, object: usize) -> Option<usize> {
        self.objects.iter().position(|known| *known == object)
    }
}

fn try_lock() -> Option<MutexGuard<'static, Option<(usize, Counts)>>> {
    for _ in 0..MOST_TRIES {
        match COUNTS.try_lock() {
            Ok(held) => return Some(held),
            Err(TryLockError::Poisoned(held)) => return Some(held.into_inner()),
            Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
        }
    }
    None
}

/// True while groups are counted.
pub(super) fn is_on() -> bool {
    !GROUPS.load(Ordering::Acquire).is_null()
}

/// True while an op is under way that issues collectives: [`issue_ends`] wants to know of the ends of ops.
#[inline(always)]
pub(crate) fn is_issuing() -> bool {
    ISSUES.load(Ordering::Relaxed) as u32 != 0
}

/// An op that issues collectives has begun on this thread.
pub(super) fn issue_begins(function: usize) {
    let _ = ISSUE.try_with(|issue| {
        // One inside another is a part of it.
        if issue.borrow().is_some() {
            return;
        }
        *issue.borrow_mut() = with_groups(|groups| {
            let before_it = ISSUES.fetch_add(ONE_BEGUN + ONE_UNDER_WAY, Ordering::SeqCst);
            let was_alone = before_it as u32 == 0;
            let number = before_it.wrapping_add(ONE_BEGUN) >> 32;
            let (objects, before) = (groups.objects.clone(), groups.now());
            Issue { function, is_described: false, was_alone, issue: number, objects, before }
        });
    });
}

/// An op ends; describes the group, and the collective's number, of one that issued.
#[cold]
pub(super) fn issue_ends(function: usize) -> Option<(String, Option<i64>)> {
    let taken = ISSUE.try_with(|issue| {
        let mut issue = issue.borrow_mut();
        if issue.as_ref().is_some_and(|issue| issue.function == function) { issue.take() } else { None }
    });
    let issue = taken.ok()??;
    let described = with_groups(|groups| {
        let (at, number) = issued(groups, &issue).filter(|_| !issue.is_described)?;
        Some((groups.descriptions[at].clone(), number))
    });
    ISSUES.fetch_sub(ONE_UNDER_WAY, Ordering::SeqCst);
    described.flatten()
}

/// A work is about to begin on this thread; describes the op that issues it and is open around it, and gives its object.
#[cold]
pub(super) fn issue_continues() -> Option<(usize, String, Option<i64>)> {
    let described = ISSUE.try_with(|issue| {
        let mut issue = issue.borrow_mut();
        let issue = issue.as_mut().filter(|issue| !issue.is_described)?;
        let (description, number) = with_groups(|groups| {
            let (at, number) = issued(groups, issue)?;
            Some((groups.descriptions[at].clone(), number))
        })??;
        issue.is_described = true;
        Some((issue.function, description, number))
    });
    described.ok().flatten()
}

/// The one group whose count has grown since the op began, and its number when it grew by one.
fn issued(groups: &Groups, issue: &Issue) -> Option<(usize, Option<i64>)> {
    let is_alone =
        issue.was_alone && issue.issue == ISSUES.load(Ordering::SeqCst) >> 32 && issue.objects == groups.objects;
    let now = groups.now();
    let mut grown = (0..now.len()).filter(|at| is_alone && issue.before.get(*at) != now.get(*at));
    let at = grown.next().filter(|_| grown.next().is_none())?;
    Some((at, (now[at] - issue.before[at] == 1).then_some(now[at])))
}

/// A work begins on this thread; describes its group, and its number.
pub(super) fn work_begins() -> Option<(String, Option<i64>)> {
    with_groups(|groups| {
        let now = groups.now();
        // What is sent and received begins within its op.
        let within = ISSUE.try_with(|issue| issue.borrow().as_ref().map(|issue| issued(groups, issue))).ok().flatten();
        let served = SERVED.try_with(Cell::get).ok().and_then(|object| groups.at(object));
        let mut held = try_lock();
        let counts = held.as_mut().and_then(|held| held.as_mut());
        let counts = counts.filter(|(of, _)| *of == std::ptr::from_ref(groups).addr());
        let Some((_, counts)) = counts else {
            // Another thread was interrupted while it counted, or changed the groups. Who counts next learns of this work.
            UNCOUNTED.fetch_add(1, Ordering::SeqCst);
            let known = within.unwrap_or_else(|| served.map(|at| (at, None)));
            return known.map(|(at, number)| (groups.descriptions[at].clone(), number));
        };
        counts.add_uncounted(UNCOUNTED.swap(0, Ordering::SeqCst));
        let (at, number) = match within {
            Some(issued) => {
                counts.begin_within(&now, issued.map(|(at, _)| at));
                issued?
            }
            None => {
                let (at, number) = counts.begin(&now, served)?;
                let _ = SERVED.try_with(|served| served.set(groups.objects[at]));
                (at, number)
            }
        };
        Some((groups.descriptions[at].clone(), number))
    })
    .flatten()
}

/// How many works of each group have begun, of those that were counted.
struct Counts {
    begun: Vec<i64>,
    /// Set while those of a group that have begun cannot be told apart.
    is_mixed: Vec<bool>,
    /// Works that have begun, of a group that is not known.
    of_unknown: i64,
    /// Set once more have begun than were counted.
    is_lost: bool,
}

impl Counts {
    fn new(now: Vec<i64>) -> Self {
        Self { is_mixed: vec![false; now.len()], begun: now, of_unknown: 0, is_lost: false }
    }

    /// Goes on with what was counted of the groups that stay.
    fn take_over(&mut self, objects: &[usize], before: &Self, objects_before: &[usize]) {
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
    fn add_uncounted(&mut self, works: i64) {
        self.of_unknown += works;
    }

    /// A work begins on a thread that serves this group, or one that is not known; gives group and number.
    fn begin(&mut self, now: &[i64], served: Option<usize>) -> Option<(usize, Option<i64>)> {
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
    fn begin_within(&mut self, now: &[i64], at: Option<usize>) {
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
        let mut told = Vec::new();
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
            told.push(match counts.begin(&now, served) {
                Some((group, Some(number))) => format!("{group}:{number}"),
                Some((group, None)) => format!("{group}:-"),
                None => "-".to_string(),
            });
        }
        told.join(" ")
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

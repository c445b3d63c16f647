//! Which group a work of Gloo belongs to, and its number there, where a process has several groups.
//!
//! An op such as `c10d::allreduce_` does not say its group where nobody asks for inputs. But Gloo counts the collectives
//! of each group before it queues one, and the op ends after that: when no other thread issues at the same time, the one
//! group whose count grew is the op's. The work begins on a thread of its group, which lists them:
//!
//! ```text
//! main thread    c10d::allreduce_ [count of group 1: 4 → 5]
//! Gloo's thread                                      gloo:all_reduce   of group 1, number 5
//! ```
//!
//! A work has its group's last number when it is the only one waiting there. Whatever else may be meant is not known.

mod counts;

use crate::api::{library, symbol};
use crate::peek::Peek;
use crate::solve::Refusal;
use counts::Counts;
use std::cell::RefCell;
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
/// A group lists its threads this early in its object: a `std::vector<std::thread>`, each of them one word.
const LISTED_WITHIN: usize = 2_048;
/// More threads than this no group has.
const MOST_THREADS: usize = 256;
/// Where a thread's own words, to which its `pthread_t` points, name their own address.
const NAMES_ITSELF: [usize; 2] = [0, 16];
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
    /// The `pthread_t` of each one's threads.
    threads: Vec<Vec<usize>>,
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
    // SAFETY: `replace` frees groups only once they are not in `GROUPS` any more and no thread looks at them.
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
        let object =
            |python: usize| word(&peek, python + OBJECT_OF_PYTHON).filter(|at| word(&peek, *at) == Some(vtable + 16));
        let objects: Option<Vec<usize>> = groups.iter().map(|(python, _)| object(*python)).collect();
        let objects = objects.filter(|objects| objects.len() <= MOST_GROUPS).ok_or_else(refusal)?;
        let threads: Option<Vec<Vec<usize>>> = objects.iter().map(|object| threads_of(&peek, *object)).collect();
        let threads = threads.ok_or_else(refusal)?;
        let descriptions = groups.into_iter().map(|(_, description)| description).collect();
        Ok(Self { count, objects, threads, descriptions })
    }

    fn now(&self) -> Vec<i64> {
        // SAFETY: objects live for as long as anybody looks at their groups.
        self.objects.iter().map(|object| unsafe { count_of(self.count, *object) }).collect()
    }

    /// The group that this thread serves.
    fn served(&self) -> Option<usize> {
        // SAFETY: takes nothing and cannot fail.
        let this = unsafe { libc::pthread_self() } as usize;
        self.threads.iter().position(|threads| threads.contains(&this))
    }
}

/// The words at `address`, as many as can be read.
fn words(peek: &Peek, address: usize, most: usize) -> Vec<usize> {
    let mut bytes = vec![0; most * size_of::<usize>()];
    let copied = peek.copy(std::ptr::with_exposed_provenance(address), &mut bytes);
    bytes[..copied].as_chunks().0.iter().map(|word| usize::from_le_bytes(*word)).collect()
}

fn word(peek: &Peek, address: usize) -> Option<usize> {
    words(peek, address, 1).pop()
}

/// The threads of the group at `object`: its first list that has threads, and nothing else.
fn threads_of(peek: &Peek, object: usize) -> Option<Vec<usize>> {
    let is_thread =
        |address: usize| NAMES_ITSELF.iter().all(|at| word(peek, address.wrapping_add(*at)) == Some(address));
    words(peek, object, LISTED_WITHIN / size_of::<usize>()).windows(3).find_map(|list| {
        // Where it begins, where it ends, and how far there is room.
        let bytes = list[1].checked_sub(list[0]).filter(|bytes| *bytes > 0 && list[1] <= list[2])?;
        let len = bytes / size_of::<usize>();
        if bytes % size_of::<usize>() != 0 || len > MOST_THREADS {
            return None;
        }
        let listed = words(peek, list[0], len);
        (listed.len() == len && listed.iter().all(|address| is_thread(*address))).then_some(listed)
    })
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
        let served = groups.served();
        if within.is_none() && served.is_none() {
            // Of a group that is not among these.
            return None;
        }
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
                let at = served?;
                (at, counts.begin(&now, at))
            }
        };
        Some((groups.descriptions[at].clone(), number))
    })
    .flatten()
}

//! Rings that something was asked by: their requests which are not over, and their registered files.
//!
//! ```text
//! submit ─▶ [ over ][ read 7 ][ over ][ write 9 ] ◀─ of a completion: the first one with its number
//!            first ──▶                            next
//! ```
//!
//! The thread that submits adds at the end, the one that looks at completions takes away: neither waits for the other.
//! The system names a request by a number of the program's, which several may share: they are taken for over in the order
//! in which they were submitted.

use super::ring::{Completion, Ring};
use crate::files::File;
use crate::mapped::{Mapped, map};
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use stepscope_recorder::IoFunction;

/// Rings at once, and the places where one may stand.
const RINGS: usize = 1 << 10;
const PROBES: usize = 16;
/// Requests of a ring at once; what exceeds it makes the oldest give way.
const LEAST_PLACES: u32 = 1 << 8;
const MOST_PLACES: u32 = 1 << 16;

static TABLE: Mapped<{ RINGS * size_of::<Known>() }> = Mapped::new();
/// What was known at an earlier time is known no longer.
static TIME: AtomicU32 = AtomicU32::new(1);

/// No ring has this address.
const CLAIMED: usize = 1;
/// Set in what a place says where the offset is the descriptor's own.
const AT_POSITION: u64 = 1 << 63;

/// What is asked of a file.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    /// What it is once it is over.
    pub(crate) function: IoFunction,
    pub(crate) file: &'static File,
    /// As many are to be moved; `None`: not known, or none.
    pub(crate) bytes: Option<u64>,
    pub(crate) place: Place,
}

/// Where in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    At(u64),
    /// Where this descriptor stands, which is moved.
    Of(c_int),
    Nowhere,
}

/// A request that is not over. Values of one that is meanwhile are of no use, and do no harm.
struct Asked {
    /// Null: it is over.
    file: AtomicPtr<File>,
    bytes: AtomicU64,
    offset: AtomicU64,
    /// The number of the function, and of the descriptor where that counts.
    what: AtomicU64,
}

/// A ring. All zero is none.
pub(crate) struct Known {
    /// The address; 0: it is free.
    of: AtomicUsize,
    identity: AtomicUsize,
    time: AtomicU32,
    /// Up to where requests were recorded as handed over, and up to where they are remembered.
    recorded: AtomicU32,
    remembered: AtomicU32,
    /// Up to where completions were looked at, and whether a thread does so.
    looked_at: AtomicU32,
    is_looking: AtomicBool,
    first: AtomicU32,
    next: AtomicU32,
    /// How many there is room for, a power of two: their numbers, and behind these what was asked.
    places: AtomicU32,
    memory: AtomicPtr<u8>,
    files: AtomicPtr<AtomicPtr<File>>,
    file_count: AtomicU32,
    file_room: AtomicU32,
}

/// Where a ring may stand.
fn candidates(ring: &Ring) -> impl Iterator<Item = &'static Known> {
    let base = TABLE.base().cast::<Known>().cast_const();
    let first = (std::ptr::from_ref(ring) as usize).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as usize) >> 24;
    let count = if base.is_null() { 0 } else { PROBES };
    // SAFETY: within the table, which is zero where nothing was stored.
    (0..count).map(move |probe| unsafe { &*base.add(first.wrapping_add(probe) % RINGS) })
}

/// What is known of a ring.
pub(crate) fn known(ring: &Ring) -> Option<&'static Known> {
    let of = std::ptr::from_ref(ring) as usize;
    let known = candidates(ring).find(|known| known.of.load(Ordering::Acquire) == of)?;
    let is_same = known.time.load(Ordering::Relaxed) == TIME.load(Ordering::Relaxed)
        && known.identity.load(Ordering::Relaxed) == ring.identity();
    is_same.then_some(known)
}

/// As [`known`], of one that is known from now on; `None` where there is no room.
pub(crate) fn known_from_now(ring: &Ring) -> Option<&'static Known> {
    if let Some(known) = known(ring) {
        return Some(known);
    }
    let (of, now) = (std::ptr::from_ref(ring) as usize, TIME.load(Ordering::Relaxed));
    let claims = |known: &&Known, before: usize| {
        known.of.compare_exchange(before, CLAIMED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    };
    let is_old = |known: &&Known| known.time.load(Ordering::Relaxed) != now;
    let found = candidates(ring)
        .find(|known| claims(known, of))
        .or_else(|| candidates(ring).find(|known| claims(known, 0)))
        .or_else(|| {
            candidates(ring).filter(is_old).find(|known| claims(known, known.of.load(Ordering::Acquire).max(2)))
        });
    let known = found?;
    known.begin(ring, now);
    known.of.store(of, Ordering::Release);
    Some(known)
}

/// A ring is no longer.
pub(crate) fn forget(ring: &Ring) {
    if let Some(known) = known(ring) {
        known.of.store(0, Ordering::Release);
    }
}

/// Recording begins, or goes on in a forked child: what is known of rings is of another time.
pub(crate) fn forget_all() {
    TIME.fetch_add(1, Ordering::Relaxed);
}

impl Known {
    fn begin(&self, ring: &Ring, now: u32) {
        self.identity.store(ring.identity(), Ordering::Relaxed);
        self.time.store(now, Ordering::Relaxed);
        self.recorded.store(ring.handed_over(), Ordering::Relaxed);
        self.remembered.store(ring.handed_over(), Ordering::Relaxed);
        self.looked_at.store(ring.over(), Ordering::Relaxed);
        self.is_looking.store(false, Ordering::Relaxed);
        self.first.store(0, Ordering::Relaxed);
        self.next.store(0, Ordering::Relaxed);
        self.file_count.store(0, Ordering::Relaxed);
        let wanted = ring.most_over().saturating_mul(4).clamp(LEAST_PLACES, MOST_PLACES).next_power_of_two();
        if self.places.load(Ordering::Relaxed) < wanted {
            // The one before stays: a thread may be looking.
            let memory = map(wanted as usize * (size_of::<AtomicU64>() + size_of::<Asked>()));
            self.memory.store(memory, Ordering::Relaxed);
            self.places.store(if memory.is_null() { 0 } else { wanted }, Ordering::Relaxed);
        }
    }

    /// From where requests were not recorded yet; `made`: up to where there are some.
    pub(crate) fn recorded(&self, ring: &Ring, made: u32) -> u32 {
        let recorded = self.recorded.load(Ordering::Relaxed);
        let is_of_another = made.wrapping_sub(recorded) > ring.most_made();
        if is_of_another { ring.handed_over() } else { recorded }
    }

    pub(crate) fn set_recorded(&self, recorded: u32) {
        self.recorded.store(recorded, Ordering::Relaxed);
    }

    /// Whether the request at a place is not remembered yet.
    pub(crate) fn is_new(&self, at: u32) -> bool {
        at.wrapping_sub(self.remembered.load(Ordering::Relaxed)) as i32 >= 0
    }

    /// Up to there requests are remembered.
    pub(crate) fn set_remembered(&self, until: u32) {
        self.remembered.store(until, Ordering::Relaxed);
    }

    fn place(&self, at: u32) -> Option<(&AtomicU64, &Asked)> {
        let (memory, places) = (self.memory.load(Ordering::Relaxed), self.places.load(Ordering::Relaxed) as usize);
        if memory.is_null() || places == 0 {
            return None;
        }
        let at = at as usize % places;
        // SAFETY: within the mapping, which is never unmapped; all zero is a request that is over.
        unsafe {
            let numbers = memory.cast::<AtomicU64>();
            Some((&*numbers.add(at), &*numbers.add(places).cast::<Asked>().add(at)))
        }
    }

    /// The request is about to be handed to the system.
    pub(crate) fn remember(&self, number: u64, request: &Request) {
        let next = self.next.load(Ordering::Relaxed);
        let Some((of, asked)) = self.place(next) else { return };
        let first = self.first.load(Ordering::Acquire);
        if next.wrapping_sub(first) >= self.places.load(Ordering::Relaxed) {
            let _ = self.first.compare_exchange(first, first.wrapping_add(1), Ordering::AcqRel, Ordering::Relaxed);
        }
        let (offset, mut what) = match request.place {
            Place::At(offset) => (offset, 0),
            Place::Of(descriptor) => (u64::MAX, AT_POSITION | u64::from(descriptor as u32) << 8),
            Place::Nowhere => (u64::MAX, 0),
        };
        what |= request.function as u64;
        of.store(number, Ordering::Relaxed);
        asked.bytes.store(request.bytes.unwrap_or(u64::MAX), Ordering::Relaxed);
        asked.offset.store(offset, Ordering::Relaxed);
        asked.what.store(what, Ordering::Relaxed);
        asked.file.store(std::ptr::from_ref(request.file).cast_mut(), Ordering::Relaxed);
        self.next.store(next.wrapping_add(1), Ordering::Release);
    }

    /// The first request with this number, which is over now.
    fn take(&self, number: u64) -> Option<Request> {
        let next = self.next.load(Ordering::Acquire);
        let mut at = self.first.load(Ordering::Relaxed);
        while at != next {
            let (of, asked) = self.place(at)?;
            if of.load(Ordering::Relaxed) == number {
                // SAFETY: null, or a file, which is never freed.
                let file = unsafe { asked.file.swap(null_mut(), Ordering::Relaxed).as_ref() };
                if let Some(request) = file.and_then(|file| asked.request(file)) {
                    self.advance(next);
                    return Some(request);
                }
            }
            at = at.wrapping_add(1);
        }
        None
    }

    /// Requests at the beginning that are over are known no longer.
    fn advance(&self, next: u32) {
        let mut first = self.first.load(Ordering::Relaxed);
        while first != next && self.place(first).is_some_and(|(_, asked)| asked.file.load(Ordering::Relaxed).is_null())
        {
            let after = first.wrapping_add(1);
            let exchanged = self.first.compare_exchange(first, after, Ordering::AcqRel, Ordering::Relaxed);
            first = if exchanged.is_ok() { after } else { self.first.load(Ordering::Relaxed) };
        }
    }

    /// How many completions there are up to `over` that were not looked at.
    pub(crate) fn waiting(&self, over: u32) -> usize {
        (over.wrapping_sub(self.looked_at.load(Ordering::Relaxed)) as i32).max(0) as usize
    }

    /// Passes what became of requests to `each`, with what was asked where that is of a file which is watched: up to
    /// `until`, from where another call has looked. `each` is also told which one of how many it is. Nothing where another
    /// thread is looking.
    pub(crate) fn look(
        &self,
        ring: &Ring,
        until: u32,
        mut each: impl FnMut((usize, usize), Option<Request>, &Completion),
    ) {
        if self.is_looking.swap(true, Ordering::Acquire) {
            return;
        }
        let (over, from) = (ring.over(), self.looked_at.load(Ordering::Relaxed));
        let is_lost = over.wrapping_sub(from) > ring.most_over();
        let count = if is_lost { 0 } else { (until.wrapping_sub(from) as i32).max(0) as usize };
        let mut is_lost_since = false;
        for (at, place) in (0..count).zip(0_u32..) {
            match ring.completion(from.wrapping_add(place)) {
                Some(completion) => each((at, count), self.take(completion.data), &completion),
                None => is_lost_since = true,
            }
        }
        if is_lost || is_lost_since {
            // Of which requests is not known: all of them are forgotten, rather than taken for others.
            self.first.store(self.next.load(Ordering::Acquire), Ordering::Release);
        }
        self.looked_at.store(if is_lost { over } else { from.wrapping_add(count as u32) }, Ordering::Relaxed);
        self.is_looking.store(false, Ordering::Release);
    }

    /// The file that is registered at a place, if it is watched.
    pub(crate) fn file(&self, place: u32) -> Option<&'static File> {
        let slot = self.file_slot(place)?;
        // SAFETY: null, or a file, which is never freed.
        unsafe { slot.load(Ordering::Acquire).as_ref() }
    }

    fn file_slot(&self, place: u32) -> Option<&AtomicPtr<File>> {
        let files = if place < self.file_count.load(Ordering::Acquire) {
            self.files.load(Ordering::Acquire)
        } else {
            null_mut()
        };
        // SAFETY: as many are there, and never unmapped.
        (!files.is_null()).then(|| unsafe { &*files.add(place as usize) })
    }

    /// There are places for files, which are empty.
    pub(crate) fn register(&self, count: u32) {
        self.file_count.store(0, Ordering::Release);
        if self.file_room.load(Ordering::Relaxed) < count {
            let files = map(count as usize * size_of::<AtomicPtr<File>>());
            self.file_room.store(if files.is_null() { 0 } else { count }, Ordering::Relaxed);
            self.files.store(files.cast(), Ordering::Release);
        }
        self.file_count.store(count.min(self.file_room.load(Ordering::Relaxed)), Ordering::Release);
        (0..count).for_each(|place| self.set_file(place, None));
    }

    /// A file stands at a place from now on; none, or one that is not watched.
    pub(crate) fn set_file(&self, place: u32, file: Option<&'static File>) {
        if let Some(slot) = self.file_slot(place) {
            slot.store(file.map_or(null_mut(), |file| std::ptr::from_ref(file).cast_mut()), Ordering::Release);
        }
    }
}

impl Asked {
    fn request(&self, file: &'static File) -> Option<Request> {
        let what = self.what.load(Ordering::Relaxed);
        let offset = self.offset.load(Ordering::Relaxed);
        let place = match (what & AT_POSITION != 0, offset) {
            (true, _) => Place::Of((what >> 8) as u32 as c_int),
            (_, u64::MAX) => Place::Nowhere,
            (_, offset) => Place::At(offset),
        };
        let bytes = Some(self.bytes.load(Ordering::Relaxed)).filter(|bytes| *bytes != u64::MAX);
        Some(Request { function: IoFunction::from_number(what as u8)?, file, bytes, place })
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::tests::Made;
    use super::*;
    use crate::files::file;

    fn request(bytes: u64) -> Request {
        let file = file(b"/data/by-uring").unwrap();
        Request { function: IoFunction::IoUringRead, file, bytes: Some(bytes), place: Place::At(7) }
    }

    /// What is found up to where the system has come.
    fn found(known: &Known, made: &Made) -> Vec<(Option<u64>, i32)> {
        let mut found = Vec::new();
        known.look(&made.ring, made.ring.over(), |(at, all), request, completion| {
            assert!(at < all);
            found.push((request.and_then(|request| request.bytes), completion.result));
        });
        found
    }

    #[test]
    fn each_request_is_told_once_in_whatever_order_they_end() {
        let mut made = Made::new(8);
        let known = known_from_now(&made.ring).unwrap();
        for round in 0..1_000_u64 {
            (0..8).for_each(|number| known.remember(number, &request(round * 8 + number)));
            let order: Vec<u64> = (0..8).map(|at| (at * 3 + round) % 8).collect();
            order.iter().for_each(|number| made.completes(*number, *number as i32));
            let expected: Vec<_> = order.iter().map(|number| (Some(round * 8 + number), *number as i32)).collect();
            assert_eq!(found(known, &made), expected);
            assert_eq!(found(known, &made), []);
        }
        // What nobody asked for.
        made.completes(5, -1);
        assert_eq!(found(known, &made), [(None, -1)]);
        forget(&made.ring);
        assert!(super::known(&made.ring).is_none());
    }

    #[test]
    fn requests_that_share_a_number_are_over_in_their_order() {
        let mut made = Made::new(4);
        let known = known_from_now(&made.ring).unwrap();
        [1, 2, 3].into_iter().for_each(|bytes| known.remember(0, &request(bytes)));
        made.completes(0, 0);
        made.completes(0, 0);
        assert_eq!(found(known, &made), [(Some(1), 0), (Some(2), 0)]);
        made.completes(0, 0);
        assert_eq!(found(known, &made), [(Some(3), 0)]);
        forget(&made.ring);
    }

    #[test]
    fn where_completions_were_missed_nothing_is_taken_for_another() {
        let mut made = Made::new(2);
        let known = known_from_now(&made.ring).unwrap();
        (0..6).for_each(|number| known.remember(0, &request(number)));
        (0..5).for_each(|_| made.completes(0, 0));
        assert_eq!(found(known, &made), []);
        made.completes(0, 0);
        assert_eq!(found(known, &made), [(None, 0)]);
        known.remember(0, &request(9));
        made.completes(0, 0);
        assert_eq!(found(known, &made), [(Some(9), 0)]);
        forget(&made.ring);
    }

    #[test]
    fn the_oldest_requests_give_way() {
        let mut made = Made::new(2);
        let known = known_from_now(&made.ring).unwrap();
        (0..300).for_each(|number| known.remember(number, &request(number)));
        for number in [299, 0, 44] {
            made.completes(number, 0);
        }
        assert_eq!(found(known, &made), [(Some(299), 0), (None, 0), (Some(44), 0)]);
        forget(&made.ring);
    }

    #[test]
    fn one_thread_submits_while_another_looks() {
        let mut made = Made::new(64);
        let known = known_from_now(&made.ring).unwrap();
        let (sender, receiver) = std::sync::mpsc::sync_channel::<u64>(100);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for number in 0..100_000 {
                    known.remember(number, &request(number));
                    sender.send(number).unwrap();
                }
            });
            let mut next = 0;
            for number in receiver {
                made.completes(number, 0);
                for (bytes, _) in found(known, &made) {
                    assert_eq!(bytes, Some(next));
                    next += 1;
                }
            }
            assert_eq!(next, 100_000);
        });
        forget(&made.ring);
    }

    #[test]
    fn registered_files_have_places() {
        let made = Made::new(2);
        let known = known_from_now(&made.ring).unwrap();
        let file = file(b"/data/registered").unwrap();
        known.register(3);
        known.set_file(2, Some(file));
        known.set_file(3, Some(file));
        let has = |place| known.file(place).is_some();
        assert!(!has(0) && has(2) && !has(3));
        known.register(3);
        assert!(!has(2));
        forget(&made.ring);
    }
}

//! A ring of io_uring, as liburing has had it in the program's memory since its version 2.0. It is only read.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

/// What is about to be handed to the system.
#[repr(C)]
struct Submissions {
    head: *const AtomicU32,
    tail: *const AtomicU32,
    mask: *const AtomicU32,
    entries: *const AtomicU32,
    flags: *const AtomicU32,
    dropped: *const AtomicU32,
    array: *const AtomicU32,
    first: *const u8,
    /// Up to where liburing has handed entries over, and up to where the program has made some.
    own_head: AtomicU32,
    own_tail: AtomicU32,
    others: [u64; 4],
}

/// What the system tells of requests that are over.
#[repr(C)]
struct Completions {
    head: *const AtomicU32,
    tail: *const AtomicU32,
    mask: *const AtomicU32,
    entries: *const AtomicU32,
    flags: *const AtomicU32,
    overflow: *const AtomicU32,
    first: *const u8,
    others: [u64; 4],
}

/// A ring.
#[repr(C)]
pub(crate) struct Ring {
    submissions: Submissions,
    completions: Completions,
    flags: u32,
}

/// A thread of the system takes what is handed over whenever it comes to it.
const HAS_THREAD: u32 = 1 << 1;
/// Entries are twice as long.
const LONG_SUBMISSIONS: u32 = 1 << 10;
const LONG_COMPLETIONS: u32 = 1 << 11;
/// From here on flags change where entries stand: some are longer than others, or positions begin again.
const OTHER_ORDER: u32 = 18;

/// A request, as the program has made it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) operation: u8,
    pub(crate) flags: u8,
    priority: u16,
    pub(crate) descriptor: c_int,
    pub(crate) offset: u64,
    pub(crate) address: *const c_void,
    pub(crate) bytes: u32,
    options: u32,
    pub(crate) data: u64,
    buffer: u32,
    /// The place of a registered file that is opened or closed, and one; 0: it is an ordinary descriptor's.
    pub(crate) file_place: u32,
    others: [u64; 2],
}

/// What became of a request.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Completion {
    pub(crate) data: u64,
    /// The bytes that were moved, or the error.
    pub(crate) result: i32,
    pub(crate) flags: u32,
}

impl Ring {
    /// The ring that a program passes to liburing; `None` where its entries are of another order.
    pub(crate) fn at(ring: *const Self) -> Option<&'static Self> {
        // SAFETY: null, or a ring of the program's that stays during the call.
        let ring = unsafe { ring.as_ref() }?;
        let (submissions, completions) = (&ring.submissions, &ring.completions);
        let is_made = !submissions.first.is_null() && !completions.first.is_null() && !submissions.mask.is_null();
        (is_made && ring.flags >> OTHER_ORDER == 0).then_some(ring)
    }

    /// Where its entries lie: another ring may stand where one was.
    pub(crate) fn identity(&self) -> usize {
        self.submissions.first as usize ^ (self.completions.first as usize).rotate_left(17)
    }

    /// Up to where the program has made requests.
    pub(crate) fn made(&self) -> u32 {
        self.submissions.own_tail.load(Ordering::Relaxed)
    }

    /// Up to where the system has them.
    pub(crate) fn handed_over(&self) -> u32 {
        let queue = &self.submissions;
        load(if self.flags & HAS_THREAD == 0 { queue.head } else { queue.tail })
    }

    /// How many there may be at once.
    pub(crate) fn most_made(&self) -> u32 {
        load(self.submissions.entries)
    }

    /// The request that stands at a place.
    pub(crate) fn entry(&self, at: u32) -> Entry {
        let size = size_of::<Entry>() << u32::from(self.flags & LONG_SUBMISSIONS != 0);
        let queue = &self.submissions;
        // SAFETY: within the ring, which the program has made.
        unsafe { queue.first.add((at & load(queue.mask)) as usize * size).cast::<Entry>().read_volatile() }
    }

    /// Up to where the system says what became of requests.
    pub(crate) fn over(&self) -> u32 {
        load(self.completions.tail)
    }

    /// Up to where the program has seen it.
    pub(crate) fn seen(&self) -> u32 {
        load(self.completions.head)
    }

    /// How many there may be at once.
    pub(crate) fn most_over(&self) -> u32 {
        load(self.completions.entries)
    }

    /// What became of a request; `None` where the system has written over it since.
    pub(crate) fn completion(&self, at: u32) -> Option<Completion> {
        let size = size_of::<Completion>() << u32::from(self.flags & LONG_COMPLETIONS != 0);
        let queue = &self.completions;
        // SAFETY: within the ring, which the program has made.
        let completion = unsafe { queue.first.add((at & load(queue.mask)) as usize * size).cast::<Completion>() };
        // SAFETY: as above. Before the next reading of the tail.
        let completion = unsafe { completion.read_volatile() };
        std::sync::atomic::fence(Ordering::Acquire);
        (self.over().wrapping_sub(at) <= self.most_over()).then_some(completion)
    }
}

fn load(counter: *const AtomicU32) -> u32 {
    // SAFETY: shared with the system; never null in a ring that is made.
    unsafe { counter.as_ref() }.map_or(0, |counter| counter.load(Ordering::Acquire))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::ptr::null;

    /// A ring without a system behind it.
    pub(crate) struct Made {
        pub(crate) ring: Ring,
        pub(crate) counters: Box<[AtomicU32; 6]>,
        pub(crate) entries: Vec<Entry>,
        pub(crate) completions: Vec<Completion>,
    }

    impl Made {
        /// With room for `entries` requests, and for what becomes of twice as many.
        pub(crate) fn new(entries: u32) -> Self {
            let number = AtomicU32::new;
            let counters = Box::new([number(0), number(0), number(entries), number(0), number(0), number(2 * entries)]);
            let masks: &'static [AtomicU32; 2] = Box::leak(Box::new([number(entries - 1), number(2 * entries - 1)]));
            // SAFETY: plain data.
            let entry: Entry = unsafe { std::mem::zeroed() };
            let made = vec![entry; entries as usize];
            let over = vec![Completion { data: 0, result: 0, flags: 0 }; 2 * entries as usize];
            let submissions = Submissions {
                head: &raw const counters[0],
                tail: &raw const counters[1],
                mask: &raw const masks[0],
                entries: &raw const counters[2],
                flags: null(),
                dropped: null(),
                array: null(),
                first: made.as_ptr().cast(),
                own_head: number(0),
                own_tail: number(0),
                others: [0; 4],
            };
            let completions = Completions {
                head: &raw const counters[3],
                tail: &raw const counters[4],
                mask: &raw const masks[1],
                entries: &raw const counters[5],
                flags: null(),
                overflow: null(),
                first: over.as_ptr().cast(),
                others: [0; 4],
            };
            Self { ring: Ring { submissions, completions, flags: 0 }, counters, entries: made, completions: over }
        }

        /// The system tells that a request is over.
        pub(crate) fn completes(&mut self, data: u64, result: i32) {
            let at = self.counters[4].load(Ordering::Relaxed);
            let count = self.completions.len();
            self.completions[at as usize % count] = Completion { data, result, flags: 0 };
            self.counters[4].store(at.wrapping_add(1), Ordering::Release);
        }
    }

    #[test]
    fn entries_are_as_long_as_the_system_has_them() {
        assert_eq!((size_of::<Entry>(), size_of::<Completion>()), (64, 16));
        assert_eq!(std::mem::offset_of!(Ring, completions), 104);
        assert_eq!(std::mem::offset_of!(Ring, flags), 192);
        assert_eq!(std::mem::offset_of!(Entry, data), 32);
        assert_eq!(std::mem::offset_of!(Entry, file_place), 44);
    }

    #[test]
    fn what_was_written_over_is_not_told() {
        let mut made = Made::new(2);
        for at in 0..6 {
            made.completes(at, 10);
        }
        let told = |at| made.ring.completion(at).map(|completion| completion.data);
        assert_eq!((told(0), told(1), told(2), told(5)), (None, None, Some(2), Some(5)));
    }

    #[test]
    fn a_place_that_comes_round_again_has_the_newer_request() {
        let mut made = Made::new(2);
        for (at, entry) in made.entries.iter_mut().zip(7..) {
            at.data = entry;
        }
        assert_eq!([0, 1, 2, u32::MAX].map(|at| made.ring.entry(at).data), [7, 8, 7, 8]);
    }

    #[test]
    fn rings_of_another_order_are_left_alone() {
        let mut made = Made::new(2);
        assert!(Ring::at(&raw const made.ring).is_some());
        made.ring.flags = 1 << OTHER_ORDER;
        assert!(Ring::at(&raw const made.ring).is_none() && Ring::at(null()).is_none());
    }
}

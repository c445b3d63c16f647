//! Where the program has mapped files that are watched: what calls on addresses are about.
//!
//! What is mapped past the C library is not known, and what it unmaps stays until something else is mapped there.

use crate::files::File;
use crate::mapped::Mapped;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// As many at once; more are not known.
const MOST: usize = 1 << 14;

static TABLE: Mapped<{ MOST * size_of::<Slot>() }> = Mapped::new();
/// Slots that were ever in use, and the addresses that ever were.
static USED: AtomicUsize = AtomicUsize::new(0);
static LOWEST: AtomicU64 = AtomicU64::new(u64::MAX);
static HIGHEST: AtomicU64 = AtomicU64::new(0);

/// A mapping. All zero is none.
struct Slot {
    start: AtomicU64,
    end: AtomicU64,
    offset: AtomicU64,
    file: AtomicPtr<File>,
}

/// What [`Slot::start`] is while the rest is written.
const IN_WORK: u64 = 1;

fn slots() -> impl Iterator<Item = &'static Slot> {
    let used = USED.load(Ordering::Acquire).min(MOST);
    let base = if used == 0 { null_mut() } else { TABLE.base().cast::<Slot>() };
    let used = if base.is_null() { 0 } else { used };
    // SAFETY: within the table, which is zero where nothing was stored.
    (0..used).map(move |at| unsafe { &*base.add(at) })
}

/// Those that lie in a range of addresses, in part at least.
fn overlapping(addresses: &Range<u64>) -> impl Iterator<Item = &'static Slot> {
    let Range { start, end } = *addresses;
    let may_be = start < HIGHEST.load(Ordering::Acquire) && end > LOWEST.load(Ordering::Acquire);
    let overlaps = move |slot: &&Slot| {
        let from = slot.start.load(Ordering::Acquire);
        from > IN_WORK && from < end && slot.end.load(Ordering::Relaxed) > start
    };
    may_be.then(slots).into_iter().flatten().filter(overlaps)
}

/// The file that is mapped at the first of these addresses that has one, and where in the file that is.
pub(crate) fn mapped_at(addresses: &Range<u64>) -> Option<(&'static File, u64)> {
    first_of(addresses).map(|(_, file, offset)| (file, offset))
}

/// As [`mapped_at`], with those of these addresses that it is mapped at.
pub(crate) fn first_of(addresses: &Range<u64>) -> Option<(Range<u64>, &'static File, u64)> {
    let slot = overlapping(addresses).min_by_key(|slot| slot.start.load(Ordering::Relaxed))?;
    let (start, end) = (slot.start.load(Ordering::Relaxed), slot.end.load(Ordering::Relaxed));
    let within = addresses.start.saturating_sub(start);
    // SAFETY: null, or a file, which is never freed.
    let file = unsafe { slot.file.load(Ordering::Acquire).as_ref() }?;
    let offset = slot.offset.load(Ordering::Relaxed) + within;
    Some((start.max(addresses.start)..end.min(addresses.end), file, offset))
}

/// Something else is mapped at these addresses, or nothing.
pub(crate) fn unmapped(addresses: &Range<u64>) {
    for slot in overlapping(addresses) {
        let (start, end) = (slot.start.load(Ordering::Acquire), slot.end.load(Ordering::Relaxed));
        // SAFETY: null, or a file, which is never freed.
        let Some(file) = (unsafe { slot.file.load(Ordering::Acquire).as_ref() }) else { continue };
        let offset = slot.offset.load(Ordering::Relaxed);
        let behind = || (addresses.end..end, offset + (addresses.end - start));
        match (start < addresses.start, addresses.end < end) {
            (false, false) => slot.start.store(0, Ordering::Release),
            (true, is_split) => {
                slot.end.store(addresses.start, Ordering::Release);
                if is_split {
                    let (rest, offset) = behind();
                    mapped(&rest, file, offset);
                }
            }
            (false, true) => {
                let (rest, offset) = behind();
                slot.offset.store(offset, Ordering::Relaxed);
                slot.start.store(rest.start, Ordering::Release);
            }
        }
    }
}

/// The file is mapped at these addresses, from `offset` on, where nothing is that is known.
pub(crate) fn mapped(addresses: &Range<u64>, file: &'static File, offset: u64) {
    let base = TABLE.base().cast::<Slot>();
    if base.is_null() || addresses.start <= IN_WORK {
        return;
    }
    for at in 0..MOST {
        // SAFETY: as above.
        let slot = unsafe { &*base.add(at) };
        if slot.start.compare_exchange(0, IN_WORK, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            slot.end.store(addresses.end, Ordering::Relaxed);
            slot.offset.store(offset, Ordering::Relaxed);
            slot.file.store(std::ptr::from_ref(file).cast_mut(), Ordering::Relaxed);
            LOWEST.fetch_min(addresses.start, Ordering::AcqRel);
            HIGHEST.fetch_max(addresses.end, Ordering::AcqRel);
            slot.start.store(addresses.start, Ordering::Release);
            USED.fetch_max(at + 1, Ordering::AcqRel);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::file;
    use proptest::prelude::*;

    const PAGE: u64 = 4096;
    /// No address of the other tests.
    const BASE: u64 = 1 << 40;

    proptest! {
        #[test]
        fn the_last_one_that_was_mapped_holds(
            changes in prop::collection::vec((0u64..40, 1u64..15, 0u64..9, prop::option::of(0usize..3)), 0..30),
        ) {
            let files = [b"/data/a", b"/data/b", b"/data/c"].map(|path| file(path).unwrap());
            let range = |page: u64, len: u64| BASE + page * PAGE..BASE + (page + len) * PAGE;
            unmapped(&range(0, 64));
            let mut pages: Vec<Option<(u32, u64)>> = vec![None; 64];
            for (start, len, offset, of) in changes {
                unmapped(&range(start, len));
                let of = of.map(|of| files[of]);
                of.into_iter().for_each(|file| mapped(&range(start, len), file, offset * PAGE));
                for page in 0..len {
                    pages[(start + page) as usize] = of.map(|file| (file.number, (offset + page) * PAGE));
                }
            }
            for (page, expected) in (0..).zip(pages) {
                let found = mapped_at(&range(page, 1)).map(|(file, offset)| (file.number, offset));
                prop_assert_eq!(found, expected);
            }
        }
    }
}

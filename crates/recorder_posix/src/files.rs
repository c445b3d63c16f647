//! Paths that the process has used: each has a number, which stays the same while the process lives.

use crate::mapped::{Arena, Mapped};
use crate::refused::{Lack, count};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Room for paths, and for as many of them; those beyond have no number.
const ARENA_BYTES: usize = 128 << 20;
const SLOTS: usize = 1 << 21;
const MAX_FILES: u32 = 1 << 20;
const PROBES: usize = 64;

static ARENA: Arena<ARENA_BYTES> = Arena::new();
static TABLE: Mapped<{ SLOTS * size_of::<AtomicPtr<File>>() }> = Mapped::new();
static NEXT: AtomicU32 = AtomicU32::new(1);

/// A path, and where it was written down.
pub(crate) struct File {
    hash: u64,
    /// The number of the capture that has it; see [`stepscope_recorder::capture_number`].
    pub(crate) capture: AtomicU64,
    pub(crate) number: u32,
    len: u32,
}

impl File {
    pub(crate) fn path(&self) -> &'static [u8] {
        // SAFETY: the text follows it in memory, which is never moved or freed.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).add(1).cast(), self.len as usize) }
    }
}

/// The file with this path; `None` where there is no room for another one, which is counted.
#[inline]
pub(crate) fn file(path: &[u8]) -> Option<&'static File> {
    let file = find(path);
    if file.is_none() {
        count(Lack::Paths);
    }
    file
}

fn find(path: &[u8]) -> Option<&'static File> {
    let table = TABLE.base().cast::<AtomicPtr<File>>();
    if table.is_null() {
        return None;
    }
    let hash = hash_of(path);
    let mut made: *mut File = null_mut();
    for probe in 0..PROBES {
        let slot = (hash as usize).wrapping_add(probe) % SLOTS;
        // SAFETY: within the table, which is zero where nothing was stored.
        let slot = unsafe { &*table.add(slot) };
        let mut found = slot.load(Ordering::Acquire);
        if found.is_null() {
            if made.is_null() {
                made = new_file(path, hash);
            }
            if made.is_null() {
                return None;
            }
            match slot.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: it is whole, and never freed.
                Ok(_) => return Some(unsafe { &*made }),
                Err(other) => found = other,
            }
        }
        // SAFETY: as above.
        let found = unsafe { &*found };
        if found.hash == hash && is_same(found.path(), path) {
            return Some(found);
        }
    }
    None
}

/// By eight bytes, as the hash is made: the C library compares 32 at once, which takes long where the last page of memory
/// ends before, as behind the arguments of a program.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let ((words, rest), (other_words, other_rest)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    let is_same_word = |(one, other): (&[u8; 8], &[u8; 8])| u64::from_ne_bytes(*one) == u64::from_ne_bytes(*other);
    one.len() == other.len()
        && words.iter().zip(other_words).all(is_same_word)
        && rest.iter().zip(other_rest).all(|(one, other)| one == other)
}

fn new_file(path: &[u8], hash: u64) -> *mut File {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    if number >= MAX_FILES {
        // So that it never comes round.
        NEXT.store(MAX_FILES, Ordering::Relaxed);
        return null_mut();
    }
    let file = ARENA.take(size_of::<File>() + path.len()).cast::<File>();
    if !file.is_null() {
        // SAFETY: there is room for both.
        unsafe {
            file.write(File { hash, capture: AtomicU64::new(0), number, len: path.len() as u32 });
            std::ptr::copy_nonoverlapping(path.as_ptr(), file.add(1).cast(), path.len());
        }
    }
    file
}

fn hash_of(path: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |word: u64| hash = (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    let (words, rest) = path.as_chunks::<8>();
    words.iter().for_each(|word| mix(u64::from_le_bytes(*word)));
    rest.iter().for_each(|byte| mix(u64::from(*byte)));
    mix(path.len() as u64);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_file_for_all_threads() {
        let numbers = || -> Vec<u32> {
            let paths = (0..5_000).map(|at| format!("/data/train/{at:05}.jpg"));
            paths.map(|path| file(path.as_bytes()).unwrap().number).collect()
        };
        let of_threads: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(numbers)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(of_threads.iter().all(|numbers| *numbers == of_threads[0]));
        let distinct: std::collections::BTreeSet<u32> = of_threads[0].iter().copied().collect();
        assert_eq!(distinct.len(), 5_000);
        assert_eq!(file(b"/data/train/00007.jpg").unwrap().path(), b"/data/train/00007.jpg");
    }
}

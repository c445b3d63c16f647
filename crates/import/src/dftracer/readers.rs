//! Several threads read stretches of a text; one of them adds what was read, in the order of the text.
//!
//! ```text
//! reads and adds   read 1  add 0 1  read 3   add 2 3 …
//! only reads       read 0  read 2   read 4 …
//! ```

use super::typed::TypedStretch;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Threads that only read. One that adds keeps no more busy.
const MAX_READERS: usize = 3;

/// A part of the text that ends with a line, and its rows.
#[derive(Default)]
pub(super) struct Stretch {
    pub(super) text: Vec<u8>,
    pub(super) typed: TypedStretch,
}

impl Stretch {
    fn read(&mut self) {
        // Places are numbers of 32 bits; nothing is that long but a text that is broken.
        let len = self.text.len().min(1 << 30);
        self.typed.read(&self.text[..len]);
    }
}

#[derive(Default)]
struct State {
    /// Not read yet, in order.
    unread: VecDeque<(u64, Stretch)>,
    /// Read before their turn.
    read: BTreeMap<u64, Stretch>,
    is_over: bool,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

/// Takes stretches of text from `next`, which gets memory to put them into, until there are none, and gives them to `add`.
pub(super) fn read_in_order(mut next: impl FnMut(Vec<u8>) -> Option<Vec<u8>>, mut add: impl FnMut(&Stretch)) {
    let max_readers = crate::processors::count().saturating_sub(1).min(MAX_READERS);
    let queue = Queue::default();
    std::thread::scope(|scope| {
        let _end = EndForAll(&queue);
        let (mut taken, mut added, mut is_at_end, mut readers) = (0, 0, false, 0);
        let mut spare: Vec<Stretch> = Vec::new();
        loop {
            let is_full = taken - added > 2 * max_readers as u64;
            if let Some(stretch) = queue.take_read(added) {
                add(&stretch);
                spare.push(stretch);
                added += 1;
            } else if !is_at_end && !is_full {
                let mut stretch = spare.pop().unwrap_or_default();
                let Some(text) = next(std::mem::take(&mut stretch.text)) else {
                    is_at_end = true;
                    continue;
                };
                // A short text is read before a thread has begun.
                if taken > 0 && readers < max_readers {
                    scope.spawn(|| queue.work());
                    readers += 1;
                }
                stretch.text = text;
                queue.push(taken, stretch);
                taken += 1;
            } else if added == taken {
                break;
            } else {
                queue.read_one_or_wait(added);
            }
        }
    });
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, index: u64, stretch: Stretch) {
        self.lock().unread.push_back((index, stretch));
        self.changed.notify_all();
    }

    fn take_read(&self, index: u64) -> Option<Stretch> {
        self.lock().read.remove(&index)
    }

    /// Reads stretches until all are.
    fn work(&self) {
        let _end = EndForAll(self);
        let mut state = self.lock();
        while !state.is_over {
            state = match state.unread.pop_front() {
                Some(unread) => self.read(state, unread),
                None => self.wait(state),
            };
        }
    }

    /// Reads the next stretch, if there is one, or else waits for one that another thread reads.
    fn read_one_or_wait(&self, awaited: u64) {
        let mut state = self.lock();
        if let Some(unread) = state.unread.pop_front() {
            drop(self.read(state, unread));
            return;
        }
        while !state.read.contains_key(&awaited) {
            assert!(!state.is_over, "a reader ended too early");
            state = self.wait(state);
        }
    }

    fn read<'a>(&'a self, state: MutexGuard<'a, State>, unread: (u64, Stretch)) -> MutexGuard<'a, State> {
        drop(state);
        let (index, mut stretch) = unread;
        stretch.read();
        let mut state = self.lock();
        state.read.insert(index, stretch);
        self.changed.notify_all();
        state
    }
}

/// Nobody waits for a thread that ends, not even by a panic.
struct EndForAll<'a>(&'a Queue);

impl Drop for EndForAll<'_> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

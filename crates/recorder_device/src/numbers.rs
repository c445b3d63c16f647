//! Small numbers for what a vendor names by addresses and ids of its own.

use std::collections::HashMap;
use std::hash::Hash;

/// The most things that have numbers of their own; those that come later share one number. A program that makes queues
/// without end cannot fill memory.
const LIMIT: usize = 65_536;

/// Numbers from 0, in the order in which things are seen first.
#[derive(Debug)]
pub(crate) struct Numbers<T>(HashMap<T, u32>);

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Hash + Eq> Numbers<T> {
    /// The number of `thing`.
    pub(crate) fn of(&mut self, thing: T) -> u32 {
        let next = self.0.len();
        if next >= LIMIT {
            return self.0.get(&thing).copied().unwrap_or(LIMIT as u32);
        }
        *self.0.entry(thing).or_insert(next as u32)
    }

    /// The number of `thing`, if it has one.
    pub(crate) fn known(&self, thing: &T) -> Option<u32> {
        self.0.get(thing).copied()
    }

    /// Gives `thing` a number that something else has.
    pub(crate) fn share(&mut self, thing: T, number: u32) {
        if self.0.len() < LIMIT || self.0.contains_key(&thing) {
            self.0.insert(thing, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_numbered_as_they_come_and_memory_is_bounded() {
        let mut numbers = Numbers::default();
        assert_eq!([numbers.of(70), numbers.of(50), numbers.of(70)], [0, 1, 0]);
        assert_eq!((numbers.known(&50), numbers.known(&51)), (Some(1), None));
        (0..LIMIT as u64 * 2).for_each(|thing| {
            numbers.of(thing);
        });
        assert_eq!((numbers.of(1 << 40), numbers.of(1 << 41), numbers.of(50)), (LIMIT as u32, LIMIT as u32, 1));
        numbers.share(1 << 40, 3);
        numbers.share(50, 3);
        assert_eq!((numbers.known(&(1 << 40)), numbers.known(&50), numbers.0.len()), (None, Some(3), LIMIT));
    }
}

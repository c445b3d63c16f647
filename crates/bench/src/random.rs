//! Numbers that look random and are the same every time.

/// A row of them (splitmix64).
pub(crate) struct Random(u64);

impl From<u64> for Random {
    fn from(seed: u64) -> Self {
        Self(seed)
    }
}

impl Random {
    /// Those of one thing.
    pub(crate) fn of(what: [u64; 4]) -> Self {
        Self(what.into_iter().fold(0, |seed, number| Self(seed ^ number).next()))
    }

    /// One that is less than `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// The next one.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

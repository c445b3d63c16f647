//! Which of some neighbours lasts longest, whatever their number: a tree in which each node knows the longest below it.

/// Children of a node.
const CHILDREN: usize = 32;

/// The longest item of every 32 items, of every 32 of these, and so on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Longest {
    /// Indices of items; the lowest level first.
    levels: Vec<Box<[u32]>>,
}

impl Longest {
    /// The tree over `len` items, of which `dur_ns` tells the durations.
    pub(crate) fn of(len: usize, dur_ns: impl Fn(usize) -> i64) -> Self {
        let first_longest = |a: u32, b: u32| if dur_ns(b as usize) > dur_ns(a as usize) { b } else { a };
        let mut levels: Vec<Box<[u32]>> = Vec::new();
        let mut below = len;
        while below > CHILDREN {
            let nodes = 0..below.div_ceil(CHILDREN);
            let level: Box<[u32]> = nodes
                .map(|node| {
                    let children = node * CHILDREN..below.min((node + 1) * CHILDREN);
                    let of_child = |child: usize| levels.last().map_or(child as u32, |level| level[child]);
                    children.map(of_child).reduce(first_longest).expect("a node has children")
                })
                .collect();
            below = level.len();
            levels.push(level);
        }
        Self { levels }
    }

    /// The longest of the items `from..to`, which are at least one; the first of several.
    pub(crate) fn find(&self, from: usize, to: usize, dur_ns: impl Fn(usize) -> i64) -> usize {
        let mut best: Option<(i64, usize)> = None;
        let mut consider = |index: usize| {
            let dur = dur_ns(index);
            // Ends are looked at from outside inwards: of equal ones the first is asked for.
            if best.is_none_or(|(longest, at)| dur > longest || (dur == longest && index < at)) {
                best = Some((dur, index));
            }
        };
        let (mut low, mut high, mut level) = (from, to, 0);
        loop {
            let node = |at: usize| if level == 0 { at } else { self.levels[level - 1][at] as usize };
            let is_top = level == self.levels.len();
            // What does not fill a node of the next level is looked at one by one.
            while low < high && (is_top || low % CHILDREN != 0) {
                consider(node(low));
                low += 1;
            }
            while low < high && high % CHILDREN != 0 {
                high -= 1;
                consider(node(high));
            }
            if low >= high {
                return best.map_or(from, |(_, index)| index);
            }
            (low, high, level) = (low / CHILDREN, high / CHILDREN, level + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_longest_is_the_one_that_a_walk_finds(
            durations in prop::collection::vec(0_i64..50, 1..5_000), a in 0_usize..5_000, b in 0_usize..5_000,
        ) {
            let (from, to) = (a.min(b).min(durations.len() - 1), a.max(b).min(durations.len()));
            let to = to.max(from + 1);
            let tree = Longest::of(durations.len(), |index| durations[index]);
            let found = tree.find(from, to, |index| durations[index]);
            let longest = durations[from..to].iter().max();
            prop_assert_eq!(durations[from..to].iter().position(|dur_ns| Some(dur_ns) == longest), Some(found - from));
        }
    }
}

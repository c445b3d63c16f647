//! What lies in one row: items that never overlap, in order, found and summed up without walking through them.
//!
//! ```text
//! items    ▪▪ ▪▪▪▪ ▪  │ ▪▪▪ ▪▪ ▪▪ │ ▪▪▪▪       in blocks of 32
//! blocks   start, time of all items before     a binary search over few, adjacent numbers, then within a block
//! ```

use crate::class::Classes;
use crate::longest::Longest;
use crate::overview::Overview;
use stepscope_base::StringId;
use stepscope_trace::{SliceId, Trace};

/// Items of a block.
pub(crate) const BLOCK: usize = 32;
/// So few items are walked through faster than anything is looked up.
const NEAR: usize = 24;

/// One item of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Item {
    pub(crate) start_ns: i64,
    pub(crate) dur_ns: i64,
    pub(crate) name: StringId,
    /// The slice that it is or stands for.
    pub(crate) slice: Option<SliceId>,
}

impl Item {
    pub(crate) fn end_ns(self) -> i64 {
        self.start_ns + self.dur_ns
    }

    /// Whether it is a slice that did not end while it was recorded.
    pub(crate) fn is_unfinished(self, trace: &Trace) -> bool {
        self.slice.and_then(|slice| trace.slices.is_unfinished.get(slice.index())) == Some(&true)
    }
}

/// Where items are.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Slices that follow each other in the trace.
    Adjacent { first: u32, len: u32 },
    /// Slices of the trace.
    Picked(Box<[SliceId]>),
    /// Items of their own.
    Own(Box<[Item]>),
}

/// The items of a row, and what finds them.
#[derive(Clone, Debug)]
pub(crate) struct Items {
    source: Source,
    /// Start of the first item of each block.
    block_start_ns: Box<[i64]>,
    /// Durations of all items before each block, and of all.
    before_block_ns: Box<[i64]>,
    longest: Longest,
    pub(crate) overview: Overview,
}

impl Items {
    /// The items of `source`, which are in order of their start and do not overlap.
    pub(crate) fn of(trace: &Trace, source: Source, classes: &Classes) -> Self {
        let len = len_of(&source);
        let blocks = len.div_ceil(BLOCK);
        let mut block_start_ns = Vec::with_capacity(blocks);
        let mut before_block_ns = Vec::with_capacity(blocks + 1);
        let mut total_ns = 0_i64;
        for index in 0..len {
            let item = item_of(trace, &source, index);
            if index % BLOCK == 0 {
                block_start_ns.push(item.start_ns);
                before_block_ns.push(total_ns);
            }
            total_ns = total_ns.saturating_add(item.dur_ns);
        }
        before_block_ns.push(total_ns);
        let longest = Longest::of(len, |index| item_of(trace, &source, index).dur_ns);
        let overview = Overview::of(
            len,
            |index| item_of(trace, &source, index),
            |item| (classes.of(item), item.is_unfinished(trace)),
        );
        let (block_start_ns, before_block_ns) = (block_start_ns.into(), before_block_ns.into());
        Self { source, block_start_ns, before_block_ns, longest, overview }
    }

    pub(crate) fn len(&self) -> usize {
        len_of(&self.source)
    }

    pub(crate) fn get(&self, trace: &Trace, index: usize) -> Item {
        item_of(trace, &self.source, index)
    }

    fn start_ns(&self, trace: &Trace, index: usize) -> i64 {
        match &self.source {
            Source::Adjacent { first, .. } => trace.slices.start_ns[*first as usize + index],
            Source::Picked(ids) => trace.slices.start_ns[ids[index].index()],
            Source::Own(items) => items[index].start_ns,
        }
    }

    fn dur_ns(&self, trace: &Trace, index: usize) -> i64 {
        match &self.source {
            Source::Adjacent { first, .. } => trace.slices.dur_ns[*first as usize + index],
            Source::Picked(ids) => trace.slices.dur_ns[ids[index].index()],
            Source::Own(items) => items[index].dur_ns,
        }
    }

    /// The first item, from `from` on, that begins at `at_ns` or later.
    pub(crate) fn first_from(&self, trace: &Trace, from: usize, at_ns: i64) -> usize {
        let len = self.len();
        if from >= len || self.start_ns(trace, from) >= at_ns {
            return from.min(len);
        }
        // Callers go from left to right: what is looked for is near as a rule.
        let blocks = &self.block_start_ns[from / BLOCK..];
        let mut reach = 1;
        while reach < blocks.len() && blocks[reach] < at_ns {
            reach *= 2;
        }
        let near = &blocks[reach / 2..blocks.len().min(reach + 1)];
        let block = from / BLOCK + reach / 2 + near.partition_point(|start_ns| *start_ns < at_ns);
        // It lies in the block before the first one that begins late enough, or begins that block.
        let (mut low, mut high) = (from.max(block.saturating_sub(1) * BLOCK), len.min(block * BLOCK));
        while low < high {
            let middle = (low + high) / 2;
            match self.start_ns(trace, middle) < at_ns {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// As [`first_from`](Self::first_from), where it is likely among the next few.
    pub(crate) fn first_near(&self, trace: &Trace, from: usize, at_ns: i64) -> usize {
        let near = from..self.len().min(from + NEAR);
        let found = near.clone().find(|index| self.start_ns(trace, *index) >= at_ns);
        found.unwrap_or_else(|| self.first_from(trace, near.end, at_ns))
    }

    /// The time that the items `from..to` take, and the longest of them, the first of several.
    pub(crate) fn sum_and_longest(&self, trace: &Trace, from: usize, to: usize) -> (i64, usize) {
        if to - from > NEAR {
            return (self.total_ns(trace, from, to), self.longest(trace, from, to));
        }
        let (mut total_ns, mut longest_ns, mut longest) = (0_i64, -1, from);
        for index in from..to {
            let dur_ns = self.dur_ns(trace, index);
            total_ns = total_ns.saturating_add(dur_ns);
            if dur_ns > longest_ns {
                (longest_ns, longest) = (dur_ns, index);
            }
        }
        (total_ns, longest)
    }

    /// The time that the items `from..to` take.
    pub(crate) fn total_ns(&self, trace: &Trace, from: usize, to: usize) -> i64 {
        self.before_ns(trace, to).saturating_sub(self.before_ns(trace, from))
    }

    /// The longest of the items `from..to`, the first of several.
    pub(crate) fn longest(&self, trace: &Trace, from: usize, to: usize) -> usize {
        self.longest.find(from, to, |index| self.dur_ns(trace, index))
    }

    /// The time before `at_ns` that items take, and the first item that begins there or later. The items before `from`
    /// begin earlier.
    pub(crate) fn taken_until(&self, trace: &Trace, from: usize, at_ns: i64) -> (i64, usize) {
        let next = self.first_from(trace, from, at_ns);
        let over_ns = next.checked_sub(1).map_or(0, |last| (self.get(trace, last).end_ns() - at_ns).max(0));
        (self.before_ns(trace, next) - over_ns, next)
    }

    fn before_ns(&self, trace: &Trace, index: usize) -> i64 {
        let block = index / BLOCK;
        let inside = (block * BLOCK..index).map(|index| self.dur_ns(trace, index));
        self.before_block_ns[block.min(self.before_block_ns.len() - 1)].saturating_add(inside.sum())
    }
}

fn len_of(source: &Source) -> usize {
    match source {
        Source::Adjacent { len, .. } => *len as usize,
        Source::Picked(ids) => ids.len(),
        Source::Own(items) => items.len(),
    }
}

fn item_of(trace: &Trace, source: &Source, index: usize) -> Item {
    let of_slice = |id: SliceId| Item {
        start_ns: trace.slices.start_ns[id.index()],
        dur_ns: trace.slices.dur_ns[id.index()],
        name: trace.slices.name[id.index()],
        slice: Some(id),
    };
    match source {
        Source::Adjacent { first, .. } => of_slice(SliceId(first + index as u32)),
        Source::Picked(ids) => of_slice(ids[index]),
        Source::Own(items) => items[index],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        /// Items that do not overlap, some of no length.
        fn rows()(gaps in prop::collection::vec((0_i64..30, 0_i64..30), 0..400)) -> Vec<Item> {
            let mut at_ns = 0;
            gaps.into_iter().map(|(gap, dur_ns)| {
                let start_ns = at_ns + gap;
                at_ns = start_ns + dur_ns;
                Item { start_ns, dur_ns, name: stepscope_base::StringTable::EMPTY, slice: None }
            }).collect()
        }
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_a_walk_finds(rows in rows(), from in 0_usize..400, a in -10_i64..12_000, b in -10_i64..12_000) {
            let trace = Trace::default();
            let items = Items::of(&trace, Source::Own(rows.clone().into()), &Classes::default());
            let from = from.min(rows.len());
            let walked = (from..rows.len()).find(|index| rows[*index].start_ns >= a).unwrap_or(rows.len());
            prop_assert_eq!(items.first_from(&trace, from, a), walked);
            prop_assert_eq!(items.first_near(&trace, from, a), walked);
            let (a, b) = (a.min(b), a.max(b));
            let inside = |item: &Item| (item.end_ns().min(b) - item.start_ns.max(a)).max(0);
            let (before_ns, next) = items.taken_until(&trace, 0, a);
            prop_assert_eq!(items.taken_until(&trace, next, b).0 - before_ns, rows.iter().map(inside).sum::<i64>());
            if from < walked {
                prop_assert_eq!(
                    items.sum_and_longest(&trace, from, walked),
                    (items.total_ns(&trace, from, walked), items.longest(&trace, from, walked))
                );
                let durations = rows[from..walked].iter().map(|item| item.dur_ns);
                prop_assert_eq!(items.total_ns(&trace, from, walked), durations.clone().sum::<i64>());
                let longest = durations.clone().position(|dur_ns| Some(dur_ns) == durations.clone().max());
                prop_assert_eq!(Some(items.longest(&trace, from, walked) - from), longest);
            }
        }
    }
}

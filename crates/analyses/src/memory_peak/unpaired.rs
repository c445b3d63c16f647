//! What is certainly held where no free says which allocation it ends.

use crate::allocations::{Allocation, process_of};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use stepscope_trace::{MemoryEvent, Trace};

/// What one holder certainly holds of allocations of one size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Certain<H> {
    pub(super) holder: H,
    /// Bytes of each.
    pub(super) bytes: i64,
    pub(super) count: i64,
}

/// The allocations of one size in a process.
struct OfSize<H> {
    frees: i64,
    /// For each holder the number of frees that leaves it none, if all of them are its own.
    gone_after: FxHashMap<H, i64>,
}

/// What is certainly held after `rows`, in their order: each free may be of any holder that has allocated its size.
pub(super) fn certainly_held<H: Clone + Eq + Hash>(
    trace: &Trace,
    rows: &[Allocation],
    holder: impl Fn(&Allocation, &MemoryEvent) -> H,
) -> Vec<Certain<H>> {
    let mut sizes: FxHashMap<_, OfSize<H>> = FxHashMap::default();
    for row in rows {
        let Some(event) = row.allocated.or(row.freed).map(|at| &trace.memory[at]) else { continue };
        let size = sizes
            .entry((process_of(trace, event), row.bytes))
            .or_insert_with(|| OfSize { frees: 0, gone_after: FxHashMap::default() });
        if row.allocated.is_some() {
            let gone_after = size.gone_after.entry(holder(row, event)).or_default();
            *gone_after = (*gone_after).max(size.frees) + 1;
        } else {
            size.frees += 1;
        }
    }
    let certain = |((_, bytes), size): ((_, i64), OfSize<H>)| {
        let left = size.gone_after.into_iter().map(move |(holder, gone_after)| (holder, gone_after - size.frees));
        left.filter(|(_, count)| *count > 0).map(move |(holder, count)| Certain { holder, bytes, count })
    };
    sizes.into_iter().flat_map(certain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
    use crate::allocations::pools;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};
    use stepscope_trace::drawn::drawn;

    proptest! {
        #[test]
        fn it_is_the_least_that_any_choice_of_frees_leaves(moments in prop::collection::vec(0_usize..4, 1..9)) {
            // Two holders allocate one size, 0 and 1; 2 frees one, which may be of either; 3 is nothing.
            let row: String = moments.iter().map(|moment| [".a", ".a", ".A", ".."][*moment]).collect();
            let mut trace = drawn(&format!("rank 0 memory 1 {row}|"));
            trace.memory.iter_mut().for_each(|event| event.address = 0);
            let said: Vec<usize> = moments.iter().copied().filter(|moment| *moment < 3).collect();
            let Some(pool) = pools(&trace, &Selection::default()).pop() else { return Ok(()) };
            let rows = pool.allocations(&trace);
            let holder = |row: &Allocation, _: &MemoryEvent| said[row.allocated.expect("it allocates")];
            let found: BTreeMap<usize, i64> =
                certainly_held(&trace, rows, holder).into_iter().map(|certain| (certain.holder, certain.count)).collect();
            let mut states = BTreeSet::from([[0_i64, 0]]);
            for moment in said.iter().copied() {
                let freed = |state: [i64; 2]| {
                    // What nobody has was there before.
                    let of = |at: usize| { let mut next = state; next[at] -= 1; next };
                    let some: Vec<_> = (0..2).filter(|at| state[*at] > 0).map(of).collect();
                    if some.is_empty() { vec![state] } else { some }
                };
                let allocated = |mut state: [i64; 2]| { state[moment] += 1; vec![state] };
                states = states.into_iter().flat_map(|state| if moment == 2 { freed(state) } else { allocated(state) }).collect();
            }
            for at in 0..2 {
                let least = states.iter().map(|state| state[at]).min().unwrap_or(0);
                prop_assert!(found.get(&at).copied().unwrap_or(0) <= least);
                let other = states.iter().all(|state| state[1 - at] == 0);
                prop_assert!(!other || found.get(&at).copied().unwrap_or(0) == least);
            }
        }
    }
}

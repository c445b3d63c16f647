//! Who called whom, by time alone.

use crate::NO_ROW;

/// A row as the tree sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Placed {
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) thread: u32,
    /// Rows with the same number have the same name.
    pub(crate) name: u32,
    /// False for what began on one thread and ended on another: it is nobody's parent or child.
    pub(crate) is_nested: bool,
}

/// The parent of each row, [`NO_ROW`] without one; and whether the row stays: the only child of a parent of the same
/// name does not, its children are its parent's. Rows are ordered by start, the longest first.
///
/// ```text
/// rows      ----A1----   ---A2---  B overlaps   -> A1 and B on top, A2 in A1
///             --A2--  --B--
/// ```
pub(crate) fn build(len: usize, threads: usize, row: impl Fn(usize) -> Placed) -> (Vec<u32>, Vec<bool>) {
    let mut parents = vec![NO_ROW; len];
    // Rows that are open, each with its end.
    let mut open: Vec<Vec<(u32, i64)>> = vec![Vec::new(); threads];
    for (at, row) in (0..len).map(|at| (at, row(at))).filter(|(_, row)| row.is_nested) {
        let open = &mut open[row.thread as usize];
        while let Some(&(top, top_ends_ns)) = open.last() {
            if row.start_ns < top_ends_ns && row.end_ns <= top_ends_ns {
                parents[at] = top;
                break;
            }
            open.pop();
        }
        open.push((at as u32, row.end_ns));
    }
    let kept = collapse(&mut parents, |at| row(at).name);
    (parents, kept)
}

/// Lifts the children of rows that are the only child of a parent of their name.
fn collapse(parents: &mut [u32], name: impl Fn(usize) -> u32) -> Vec<bool> {
    let mut children = vec![0_u32; parents.len()];
    for parent in parents.iter().filter(|parent| **parent != NO_ROW) {
        children[*parent as usize] += 1;
    }
    let mut kept = vec![true; parents.len()];
    // A parent stands before its children: when a row is looked at, its own parent is final.
    for at in 0..parents.len() {
        let mut parent = parents[at];
        if parent == NO_ROW {
            continue;
        }
        if !kept[parent as usize] {
            parent = parents[parent as usize];
            parents[at] = parent;
        }
        if parent != NO_ROW && children[parent as usize] == 1 && name(parent as usize) == name(at) {
            kept[at] = false;
            children[parent as usize] = children[at];
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn placed(rows: &[(i64, i64, u32, u32)]) -> Vec<Placed> {
        let placed = |&(start_ns, end_ns, thread, name)| Placed { start_ns, end_ns, thread, name, is_nested: true };
        rows.iter().map(placed).collect()
    }

    #[test]
    fn a_chain_of_one_name_is_one_row() {
        let rows = placed(&[(0, 9, 0, 1), (1, 8, 0, 1), (2, 7, 0, 1), (3, 4, 0, 2), (5, 6, 0, 1)]);
        let (parents, kept) = build(rows.len(), 1, |at| rows[at]);
        assert_eq!(kept, [true, false, false, true, true]);
        assert_eq!((parents[3], parents[4]), (0, 0));
    }

    #[test]
    fn what_overlaps_is_no_child_and_threads_do_not_meet() {
        let rows = placed(&[(0, 10, 0, 1), (1, 4, 1, 2), (2, 12, 0, 3), (3, 4, 0, 4)]);
        assert_eq!(build(rows.len(), 2, |at| rows[at]).0, [NO_ROW, NO_ROW, NO_ROW, 2]);
    }

    /// The same, as slowly as `torch.profiler` says it: remove rows one sweep after another, until none goes.
    fn slowly(rows: &[Placed]) -> Vec<(usize, Option<usize>)> {
        let contains = |outer: usize, inner: usize| {
            let (a, b) = (&rows[outer], &rows[inner]);
            a.thread == b.thread && b.start_ns < a.end_ns && b.end_ns <= a.end_ns
        };
        let mut parents: Vec<Option<usize>> = Vec::new();
        for at in 0..rows.len() {
            // A row that an overlapping one has pushed aside is nobody's parent any more.
            let mut open: Vec<usize> = Vec::new();
            for earlier in (0..=at).filter(|row| rows[*row].thread == rows[at].thread) {
                while open.last().is_some_and(|top| !contains(*top, earlier)) {
                    open.pop();
                }
                open.push(earlier);
            }
            parents.push(open.len().checked_sub(2).map(|last| open[last]));
        }
        let mut alive: Vec<usize> = (0..rows.len()).collect();
        loop {
            let children = |parents: &[Option<usize>], alive: &[usize], of: usize| {
                alive.iter().filter(|row| parents[**row] == Some(of)).count()
            };
            let goes = alive.iter().copied().find(|row| {
                parents[*row].is_some_and(|up| rows[up].name == rows[*row].name && children(&parents, &alive, up) == 1)
            });
            let Some(goes) = goes else { break };
            let up = parents[goes];
            parents.iter_mut().filter(|parent| **parent == Some(goes)).for_each(|parent| *parent = up);
            alive.retain(|row| *row != goes);
        }
        alive.into_iter().map(|row| (row, parents[row])).collect()
    }

    proptest! {
        #[test]
        fn it_is_the_tree_that_slow_removal_gives(
            mut found in prop::collection::vec((0_i64..40, 0_i64..20, 0_u32..2, 0_u32..2), 0..30)
        ) {
            found.iter_mut().for_each(|row| row.1 += row.0);
            found.sort_by_key(|row| (row.0, std::cmp::Reverse(row.1)));
            let rows = placed(&found);
            let (parents, kept) = build(rows.len(), 2, |at| rows[at]);
            let quickly: Vec<(usize, Option<usize>)> = (0..rows.len())
                .filter(|row| kept[*row])
                .map(|row| (row, (parents[row] != NO_ROW).then_some(parents[row] as usize)))
                .collect();
            prop_assert_eq!(quickly, slowly(&rows));
        }
    }
}

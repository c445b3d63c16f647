//! Time belongs to one piece of advice: to the one whose cause is named most exactly.
//!
//! ```text
//! step               ████████████████████
//! host.gc            ····███·····███·····   6, all of it its own
//! host.long_pauses   ····████····████····   8, of which 2 are its own: host.gc says it better
//! ```
//!
//! Of some rows it is known how much of their time is their own and not when that is, such as the communication that could
//! run beside computing. They have no more than what those before leave of all their time, and leave it to those behind.

use super::{Advice, Priority};
use std::collections::BTreeMap;
use stepscope_base::IntervalSet;

/// With less than half of its time left a row says what others say better,
const LEAST_SHARE: i64 = 2;
/// unless that is still this share of the window.
const LEAST_RATIO: f64 = 0.04;

/// Rows without those that have little time of their own, each with what it would gain if the time of those before were
/// gone. What is named more exactly comes first in `rows`. Rows that do not say which time they are about compete with
/// none. A row about a device competes with those of that device and those of the whole rank.
pub(super) fn with_one_owner(rows: Vec<Advice>) -> Vec<Advice> {
    let mut owned: BTreeMap<(Option<u32>, Option<i64>), IntervalSet> = BTreeMap::new();
    let mut owned_somewhere_ns: BTreeMap<(Option<u32>, Option<i64>), i64> = BTreeMap::new();
    let mut kept = Vec::with_capacity(rows.len());
    for mut row in rows {
        let time = std::mem::take(&mut row.time);
        let Some((gain_ns, _)) = row.gain else {
            kept.push(row);
            continue;
        };
        let competes = |(rank, device): &(Option<u32>, Option<i64>)| {
            *rank == row.rank && (device.is_none() || row.device.is_none() || *device == row.device)
        };
        let rivals = owned.iter().filter(|(of, _)| competes(of));
        let left = rivals.fold(time.clone(), |left, (_, owned)| left.subtract(owned));
        if time.is_empty() && row.own_gain_ns.is_none() {
            kept.push(row);
            continue;
        }
        let of = (row.rank, row.device);
        // What is known beforehand is a part of it without a place.
        let part_ns = row.own_gain_ns;
        let own_ns = match part_ns {
            Some(part_ns) if time.is_empty() => part_ns,
            Some(part_ns) => {
                let left_ns = left.total_ns() - owned_somewhere_ns.get(&of).copied().unwrap_or(0);
                part_ns.min(left_ns).max(0)
            }
            None => gain_ns.min(left.total_ns()),
        };
        let Some(row) = with_own(row, own_ns) else { continue };
        match part_ns {
            Some(_) => *owned_somewhere_ns.entry(of).or_default() += own_ns,
            None => {
                let mine = owned.entry(of).or_default();
                *mine = mine.union(&time);
            }
        }
        kept.push(row);
    }
    kept
}

/// A row of whose gain only `own_ns` is its own; nothing when that is too little.
pub(super) fn with_own(row: Advice, own_ns: i64) -> Option<Advice> {
    let (gain_ns, _) = row.gain?;
    let own_ratio = own_ns as f64 / row.window_ns.unwrap_or(gain_ns).max(1) as f64;
    let is_enough = own_ns >= gain_ns / LEAST_SHARE || own_ratio >= LEAST_RATIO;
    is_enough.then(|| Advice { own_gain_ns: Some(own_ns), priority: Priority::of_gain(own_ratio), ..row })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::{GainEstimate, RuleCode};
    use proptest::prelude::*;
    use stepscope_base::Span;

    fn row(rank: u32, device: Option<i64>, cells: &str) -> Advice {
        let spans = cells.bytes().enumerate().filter(|(_, cell)| *cell != b'.');
        let time: IntervalSet = spans.map(|(at, _)| Span::new(at as i64, at as i64 + 1)).collect();
        let gain = Some((time.total_ns(), GainEstimate::Removal));
        let window_ns = Some(100);
        Advice { rule: RuleCode("x"), rank: Some(rank), device, gain, time, window_ns, ..Advice::default() }
    }

    /// A row that knows how much is its own.
    fn part(own_ns: i64, cells: &str) -> Advice {
        Advice { own_gain_ns: Some(own_ns), ..row(0, Some(0), cells) }
    }

    #[test]
    fn a_part_without_a_place_is_of_what_is_left() {
        assert_eq!(own(vec![part(3, "xxxxxx"), part(3, "xxxxxx")]), [Some(3), Some(3)]);
        let before = || row(0, None, "xxx......");
        assert_eq!(own(vec![before(), part(5, "xxxxxxxxx"), part(4, "xxxxxxxxx")]), [Some(3), Some(5)], "6 are left");
        assert_eq!(own(vec![before(), part(3, "xxxx.....")]), [Some(3)], "one is left");
        // Nobody is kept from time of which it is not known whether it is theirs.
        assert_eq!(own(vec![part(3, "xxxxxx"), row(0, Some(0), "xxxxxx")]), [Some(3), Some(6)]);
    }

    fn own(rows: Vec<Advice>) -> Vec<Option<i64>> {
        with_one_owner(rows).into_iter().map(|row| row.own_gain_ns).collect()
    }

    #[test]
    fn the_first_row_owns_time_and_what_is_left_of_it_is_the_next_ones() {
        assert_eq!(own(vec![row(0, None, "xxx...."), row(0, None, ".xxxxxx")]), [Some(3), Some(4)]);
        assert_eq!(own(vec![row(0, None, "xxxxxx."), row(0, None, "xxxxxxx")]), [Some(6)], "told better");
        assert_eq!(
            own(vec![row(0, None, "xxxxxx....."), row(0, None, "xxxxxxxxxx")]),
            [Some(6), Some(4)],
            "enough left"
        );
        assert_eq!(own(vec![row(0, None, "xxx"), row(1, None, "xxx")]), [Some(3), Some(3)], "ranks");
        assert_eq!(own(vec![row(0, Some(0), "xxx"), row(0, Some(1), "xxx")]), [Some(3), Some(3)], "devices");
        assert_eq!(own(vec![row(0, None, "xxx"), row(0, Some(1), "xxx")]), [Some(3)], "a device waits for its rank");
        assert_eq!(own(vec![row(0, Some(1), "xxx"), row(0, None, "xxx")]), [Some(3)]);
        assert_eq!(own(vec![row(0, None, "xxx"), row(0, None, "...")]), [Some(3), None], "of no known time");
    }

    proptest! {
        #[test]
        fn what_rows_gain_together_is_no_more_than_there_is(
            rows in prop::collection::vec(("[x.]{20}", prop::option::of(0_i64..1)), 0..6),
            parts in prop::collection::vec(0_i64..20, 0..3),
        ) {
            let mut rows: Vec<Advice> = rows.iter().map(|(cells, device)| row(0, *device, cells)).collect();
            // Those that know how much is theirs come last, and are all about the same time.
            rows.extend(parts.iter().map(|ns| part(*ns, "xxxxxxxxxxxxxxxxxxxx")));
            let all = rows.iter().fold(IntervalSet::default(), |all, row| all.union(&row.time)).total_ns();
            prop_assert!(own(rows).into_iter().flatten().sum::<i64>() <= all);
        }
    }
}

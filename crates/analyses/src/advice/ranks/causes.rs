//! Why a rank is late belongs to the rule that names it: what `rank.slow` says is then said there, with what the job gains.
//! That is less than what the rank gains by itself, where it would wait for others then.
//!
//! ```text
//! step of rank 2    ████████████░░░░░░░░   the others wait for 8
//! input of rank 2   ············░░░░░░░·   7 of them, that no other rank has: `input.main_process` of rank 2
//! ```

use super::super::{Advice, Priority, owners};
use super::{is_of_communication, slow};
use std::collections::BTreeMap;
use stepscope_base::percentiles::nearest_rank_of_unsorted;

/// A row about a rank that the others wait for, without what rules name of that rank, and do not of the others. Nothing
/// where that is most of it: the row that has the most of it then says that the others wait, and gains what the job does.
/// `of_ranks` are the rows of each of `ranks`.
pub(super) fn without_causes(row: Advice, of_ranks: &mut [Advice], ranks: &[u32]) -> Option<Advice> {
    let is_slow = row.rule.as_str() == slow::RULE.code;
    let Some((rank, (gain_ns, _))) = row.rank.zip(row.gain).filter(|_| is_slow) else { return Some(row) };
    let causes = causes(rank, of_ranks, ranks);
    let Some((most, most_parts)) = causes.iter().copied().max_by_key(|(_, parts)| *parts) else { return Some(row) };
    let of_window =
        |parts: i64| (i128::from(parts) * i128::from(row.window_ns.unwrap_or(0)) / i128::from(WHOLE)) as i64;
    let named_ns = of_window(causes.iter().map(|(_, parts)| parts).sum());
    let left = owners::with_own(row.clone(), (gain_ns - named_ns).max(0));
    if left.is_none() {
        let (cause, own_ns) = (&mut of_ranks[most], gain_ns.min(of_window(most_parts)));
        let with_row = Advice {
            says: format!("{} {}", cause.says, row.says),
            gain: row.gain.map(|(_, estimate)| (own_ns, estimate)),
            own_gain_ns: Some(own_ns),
            error_ns: row.error_ns,
            window_ns: row.window_ns,
            ..std::mem::take(cause)
        };
        let priority = with_row.gain_ratio().map_or(with_row.priority, Priority::of_gain);
        *cause = Advice { priority, ..with_row };
    }
    left
}

/// Shares are counted in parts of this many.
const WHOLE: i64 = 1_000_000;

/// The rows of a rank whose rule says more of it than of the middle one of the other ranks: where each is, and how much more.
/// Ranks of which a rule says nothing may have as much as it takes to speak.
fn causes(rank: u32, of_ranks: &[Advice], ranks: &[u32]) -> Vec<(usize, i64)> {
    let mut by_rule: BTreeMap<&str, BTreeMap<u32, i64>> = BTreeMap::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, row) in of_ranks.iter().enumerate() {
        let own_ns = row.own_gain_ns.filter(|_| !is_of_communication(row));
        let (Some(of), Some(own_ns), Some(window_ns @ 1..)) = (row.rank, own_ns, row.window_ns) else { continue };
        let parts = i128::from(own_ns) * i128::from(WHOLE) / i128::from(window_ns);
        *by_rule.entry(row.rule.as_str()).or_default().entry(of).or_default() += parts as i64;
        if of == rank {
            places.entry(row.rule.as_str()).or_insert(at);
        }
    }
    let excess = |(rule, at): (&str, usize)| {
        let silent = (of_ranks[at].threshold_ratio.unwrap_or(0.0) * WHOLE as f64) as i64;
        let of = |rank: &u32| by_rule[rule].get(rank).copied().unwrap_or(silent);
        let mut others: Vec<i64> = ranks.iter().filter(|other| **other != rank).map(of).collect();
        let more = of(&rank) - nearest_rank_of_unsorted(&mut others, 50).unwrap_or(0);
        (more > 0).then_some((at, more))
    };
    places.into_iter().filter_map(excess).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::{GainEstimate, RuleCode};

    fn row(rule: &'static str, rank: u32, percent: i64) -> Advice {
        Advice {
            rule: RuleCode(rule),
            rank: Some(rank),
            says: format!("{rule} {percent}."),
            gain: Some((percent, GainEstimate::Removal)),
            own_gain_ns: (rule != "rank.slow").then_some(percent),
            window_ns: Some(100),
            ..Advice::default()
        }
    }

    /// What a row says, and gains.
    type Saying = (String, Option<i64>);

    /// What is said of rank 2, for which the others wait for 40 % of the steps, beside rows of ranks: what is its own where
    /// it stays, and the other rows.
    fn said(mut rows: Vec<Advice>) -> (Option<Option<i64>>, Vec<Saying>) {
        let slow = without_causes(row("rank.slow", 2, 40), &mut rows, &[0, 1, 2, 3]);
        let others = rows.into_iter().map(|row| (row.says.clone(), row.gain_ns()));
        (slow.map(|row| row.own_gain_ns), others.collect())
    }

    #[test]
    fn a_cause_that_only_the_late_rank_has_owns_its_lateness() {
        let said_of = |input: i64, gain_ns: i64| {
            let says = format!("input.main_process {input}. rank.slow 40.");
            (None, vec![("host.gc 5.".to_string(), Some(5)), (says, Some(gain_ns))])
        };
        let rows = |input| vec![row("host.gc", 2, 5), row("input.main_process", 2, input)];
        assert_eq!(said(rows(33)), said_of(33, 33));
        assert_eq!(said(rows(60)), said_of(60, 40), "without it the rank waits for the others");
        // Of the other ranks the rule may say nothing with up to 8 % of their steps.
        let most = Advice { threshold_ratio: Some(0.08), ..row("input.main_process", 2, 38) };
        assert_eq!(said(vec![most]), (Some(Some(10)), vec![("input.main_process 38.".to_string(), Some(38))]));
    }

    #[test]
    fn a_part_of_it_leaves_the_rest() {
        assert_eq!(said(vec![row("input.main_process", 2, 15)]).0, Some(Some(25)));
    }

    #[test]
    fn what_all_ranks_do_makes_none_of_them_late() {
        let rows = (0..4).map(|rank| row("host.python", rank, 35)).collect();
        assert_eq!(said(rows).0, Some(None));
        let other = vec![row("input.main_process", 1, 35), row("comm.exposed", 2, 35)];
        assert_eq!(said(other).0, Some(None), "of another rank, and of communication");
    }
}

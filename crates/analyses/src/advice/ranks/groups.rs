//! A process group takes longer for its transfers than its siblings, as over a slow link.

use super::super::words::quoted;
use super::super::{Advice, GainEstimate, Lacks, Rule};
use super::facts::{JobFacts, middle};
use super::{JobRule, Said, THRESHOLD};
use crate::slow_groups::{self, SlowGroup};
use std::collections::{BTreeMap, BTreeSet};
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_trace::{Trace, listed};

pub(super) const RULE: JobRule = Rule {
    code: "group.slow",
    fault: "One group communicates more slowly",
    disproof: "On other hosts the same ranks are as slow.",
    evidence: "slow_groups",
    to_do: "Test the links between these ranks, as with nccl-tests: a port with errors or at a lower rate, a switch that \
            others use, a network interface or a topology that was not found. Put the job on other hosts, or ranks that \
            communicate much on one host.",
    judge,
};

/// Transfers take at least this many times as long as those of the siblings.
const RATIO: f64 = 1.25;
/// Fewer collectives do not tell a slow link from chance.
const LEAST_CALLS: i64 = 3;

fn judge(facts: &JobFacts) -> Result<Said, Lacks> {
    let job_ns = facts.all_steps_ns()?;
    facts.all_are_there()?;
    let trace = facts.context.trace;
    let rows = slow_groups::rows(facts.context);
    if rows.iter().all(|row| row.sibling_transfer_ns.is_none()) {
        return Err(Lacks("no three process groups that do the same"));
    }
    let mut of_group: BTreeMap<(Option<&str>, &str), Vec<&SlowGroup>> = BTreeMap::new();
    for row in rows.iter().filter(|row| is_slow(row) && has_like_hosts(trace, row, &rows)) {
        of_group.entry((row.group.as_deref(), &row.ranks)).or_default().push(row);
    }
    let mut said = Said::default();
    for ((group, ranks), slow) in of_group {
        // What the middle one takes longer, and not what single ones do.
        let over_ns: i64 = slow.iter().filter_map(|row| excess_ns(row)).sum();
        let gain_ns = over_ns.min(job_ns);
        let ratio = gain_ns as f64 / job_ns as f64;
        if ratio < THRESHOLD {
            continue;
        }
        let Some(worst) = slow.iter().max_by_key(|row| excess_ns(row)) else { continue };
        let (own, usual) = (worst.median_transfer_ns, worst.sibling_transfer_ns.unwrap_or(0));
        let name = group.map_or_else(String::new, |group| format!(" {}", quoted(group)));
        for rank in listed::<u32>(ranks).into_iter().flatten() {
            said.waits_ns.insert(rank, gain_ns);
        }
        said.rows.push(Advice {
            says: format!(
                "Group{name} of ranks {ranks} takes {} for the transfer of its middle {}, {} groups that do the same {}: {} \
                 ({}) of the steps.",
                format_ns(own),
                worst.kind,
                worst.siblings - 1,
                format_ns(usual),
                format_ns(gain_ns),
                format_ratio(ratio),
            ),
            gain: Some((gain_ns, GainEstimate::Bound)),
            window_ns: Some(job_ns),
            measured_ratio: worst.transfer_ratio,
            threshold_ratio: Some(RATIO),
            measured_ns: Some(over_ns),
            count: Some(slow.iter().map(|row| row.calls).sum()),
            ..Advice::default()
        });
    }
    Ok(said)
}

fn is_slow(row: &SlowGroup) -> bool {
    row.transfer_ratio.is_some_and(|ratio| ratio >= RATIO) && row.calls >= LEAST_CALLS
}

fn excess_ns(row: &SlowGroup) -> Option<i64> {
    Some((row.median_transfer_ns - row.sibling_transfer_ns?).saturating_mul(row.calls))
}

/// Whether a group is on no more hosts than its siblings are: links between hosts are slower than those within one.
fn has_like_hosts(trace: &Trace, row: &SlowGroup, rows: &[SlowGroup]) -> bool {
    let hosts = |row: &SlowGroup| {
        let ranks = listed::<u32>(&row.ranks).unwrap_or_default();
        let of_ranks = trace.processes.iter().filter(|process| ranks.contains(&process.rank));
        of_ranks.filter_map(|process| process.host.as_deref()).collect::<BTreeSet<&str>>().len() as i64
    };
    let family = |row: &SlowGroup| (row.group_description.clone(), row.group_size, row.kind, row.size_bytes);
    let siblings = rows.iter().filter(|other| family(other) == family(row));
    middle(siblings.map(hosts)).is_some_and(|usual| hosts(row) <= usual)
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::check;
    use stepscope_trace::simulated::{Job, Schedule, SlowGroup};
    use stepscope_trace::{Drift, Trace};

    /// Steps of 1 ms of computing and 0.5 ms of transfer.
    fn job(groups: &[[u32; 2]], slow: &[u32], percent: i64, hosts: usize) -> Trace {
        let schedule = Schedule::Groups(groups.iter().map(|group| group.to_vec()).collect());
        let slow_groups = vec![SlowGroup { ranks: slow.to_vec(), percent }];
        let job =
            Job { ranks: 6, steps: 6, schedule, slow_groups, hosts: vec![(0, Drift(0)); hosts], ..Job::default() };
        Job { compute_ns: 1_000_000, transfer_ns: 500_000, ..job }.run().trace()
    }

    const PAIRS: [[u32; 2]; 3] = [[0, 1], [2, 3], [4, 5]];

    #[test]
    fn a_group_with_slower_transfers_than_its_siblings_is_named() {
        check(
            &job(&PAIRS, &[2, 3], 60, 0),
            "group.slow",
            &[
                "1800 of 10800 bound high: Group `group 2` of ranks [2, 3] takes 800 µs for the transfer of its middle all_reduce, 2 groups that do the same 500 µs: 1.80 ms (16.7 %) of the steps.",
            ],
        );
        check(&job(&PAIRS, &[2, 3], 20, 0), "group.slow", &[]);
        check(&job(&PAIRS, &[2, 3], 0, 0), "group.slow", &[]);
        check(&job(&PAIRS[..2], &[2, 3], 60, 0), "group.slow", &[]);
    }

    #[test]
    fn a_group_on_more_hosts_than_its_siblings_is_as_slow_as_it_must_be() {
        // Ranks 0 to 2 are on one host.
        check(&job(&PAIRS, &[2, 3], 60, 2), "group.slow", &[]);
        check(
            &job(&PAIRS, &[0, 1], 60, 2),
            "group.slow",
            &[
                "1800 of 10800 bound high: Group `group 0` of ranks [0, 1] takes 800 µs for the transfer of its middle all_reduce, 2 groups that do the same 500 µs: 1.80 ms (16.7 %) of the steps.",
            ],
        );
    }
}

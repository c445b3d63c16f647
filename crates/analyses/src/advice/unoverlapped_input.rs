//! Most of what is read is not hidden by computing.

use super::facts::{Facts, share};
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use crate::io_calls::ratio;
use crate::io_summary::{self, IoOfRanks, StepIo};
use stepscope_base::IntervalSet;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_trace::SliceKind;

const THRESHOLD: f64 = 0.05;
/// The share of the time with input, as DFAnalyzer has it.
const LEAST_SHARE: f64 = 0.5;

pub(super) const RULE: Rule = Rule {
    code: "io.unoverlapped_input",
    fault: "Reading is not hidden by computing",
    disproof: "Steps are as long with one batch that is used again and again.",
    evidence: "io_summary",
    to_do: "Read while the device computes: `DataLoader` with workers, `prefetch_factor` and `pin_memory=True`, copies with \
            `non_blocking=True`; with workers already, more of them or less work for each sample.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let rows = io_summary::rows(facts.context);
    if rows.is_empty() {
        return Err(Lacks("no calls on files and no waits for data: `stepscope record --io` records both"));
    }
    if rows.iter().all(|row| row.compute_ns.is_none()) {
        return Err(Lacks("nothing says when a rank computes"));
    }
    Ok(rows.chunk_by(|a, b| a.rank == b.rank).filter_map(|rows| of_rank(facts, rows)).collect())
}

fn of_rank(facts: &Facts, rows: &[StepIo]) -> Option<Advice> {
    let steps = || rows.iter().filter(|row| row.step.is_some() && row.compute_ns.is_some());
    let exposed_ns: i64 = steps().map(|row| row.exposed_input_ns).sum();
    let hidden_ns: i64 = steps().filter_map(|row| row.hidden_input_ns).sum();
    let window_ns: i64 = steps().map(|row| row.total_ns).sum();
    let of_input = ratio(exposed_ns, exposed_ns + hidden_ns).filter(|ratio| *ratio > LEAST_SHARE)?;
    let row = share(exposed_ns, window_ns, THRESHOLD)?;
    let rank = rows[0].rank;
    // Where batches are ready, nothing is waited for: they are taken from the worker.
    let waits = facts.batch_waits().ok().and_then(|waits| waits.iter().find(|waits| waits.rank == rank));
    let unmade_ratio = waits.map_or(1.0, |waits| waits.unmade_ratio);
    share((exposed_ns as f64 * unmade_ratio) as i64, window_ns, THRESHOLD)?;
    let exposed = facts.context.get::<IoOfRanks>().get(rank).map(|of| &of.exposed_input);
    let slice = facts.longest(rank, SliceKind::DataLoader).or_else(|| facts.longest(rank, SliceKind::Io));
    Some(Advice {
        rank: Some(rank),
        says: format!(
            "{} of the time in which data are read or waited for nothing computes: {} ({}) of {}.",
            format_ratio(of_input),
            format_ns(exposed_ns),
            format_ratio(row.measured_ratio?),
            format_ns(window_ns)
        ),
        count: Some(steps().count() as i64),
        gain: Some((exposed_ns, GainEstimate::Bound)),
        place: slice.map(|slice| Place::of(facts.trace, slice)),
        time: exposed.map_or_else(IntervalSet::default, |exposed| exposed.intersect(&facts.steps_of(rank))),
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_ms, with_io};

    #[test]
    fn input_that_computing_does_not_hide_is_said() {
        let trace = |drawing: &str| with_io(drawn_ms(drawing), "r", 1);
        check(
            &trace("rank 0 step 0000000000\nrank 0 python 1 .rrr..\nrank 0 input 1 .....i\nrank 0 stream 7 CC"),
            "io.unoverlapped_input",
            &[
                "3000 of 10000 bound high: 75.0 % of the time in which data are read or waited for nothing computes: 3.00 ms \
               (30.0 %) of 10.0 ms.",
            ],
        );
        check(&trace("rank 0 step 0000000000\nrank 0 python 1 .rr\nrank 0 stream 7 CC"), "io.unoverlapped_input", &[]);
        // Where the loop waits for its batches, that is said.
        let waits = "rank 0 step 0000000000\nrank 0 python 1 .r....\nrank 0 input 1 ...iii\nrank 0 stream 7 CC";
        check(&trace(waits), "io.unoverlapped_input", &[]);
        check(&trace("rank 0 step 0000000000\nrank 0 python 1 .rr"), "io.unoverlapped_input", &[]);
    }
}

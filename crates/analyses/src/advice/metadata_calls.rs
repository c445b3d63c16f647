//! Most time in calls on files goes into calls that move no bytes.

use super::facts::{Facts, share};
use super::file_calls::{FileCalls, LEAST_COUNT, longest};
use super::{Advice, GainEstimate, Judged, Rule};
use crate::io_calls::{IoCall, IoSums};
use stepscope_base::units::{format_count, format_ns, format_ratio};

const THRESHOLD: f64 = 0.05;
/// The share of the time in calls on files, as DFAnalyzer has it.
const LEAST_SHARE: f64 = 0.5;

pub(super) const RULE: Rule = Rule {
    code: "io.metadata",
    fault: "Calls that neither read nor write take the time",
    disproof: "Steps are as long with lists that are kept and files that stay open.",
    evidence: "io_summary",
    to_do: "Call the file system less: fewer, larger files; lists of files that are kept instead of folders that are \
            listed; files that stay open instead of `open`, `stat` and `close` for each sample; no `seek` before each \
            read.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    Ok(FileCalls::of(facts)?.iter().filter_map(|rank| of_rank(facts, rank)).collect())
}

fn of_rank(facts: &Facts, of: &FileCalls) -> Option<Advice> {
    let sums = IoSums::of(&of.calls);
    let calls: Vec<&IoCall> =
        of.calls.iter().filter(|call| !call.event.action.moves_bytes() && !call.is_page_fault()).collect();
    let time = of.busy(&calls);
    let (count, ns) = (sums.metadata(), time.total_ns());
    let share_of_calls = sums.metadata_ns_ratio().filter(|ratio| *ratio >= LEAST_SHARE && count >= LEAST_COUNT)?;
    let row = share(ns, of.window_ns(), THRESHOLD)?;
    Some(Advice {
        rank: Some(of.rank),
        says: format!(
            "{} calls that neither read nor write take {} ({}) of {}, and {} of the time in calls on files.",
            format_count(count),
            format_ns(ns),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns()),
            format_ratio(share_of_calls)
        ),
        count: Some(count),
        gain: Some((ns, GainEstimate::Bound)),
        place: longest(facts, &calls),
        time,
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::check;
    use crate::io_calls::tests::with_calls;

    #[test]
    fn calls_that_move_nothing_and_take_most_of_the_time_are_said() {
        let trace = |calls: &str| with_calls(&format!("rank 0 step {}\nrank 0 io 1 {calls}", "0".repeat(1_000)));
        check(
            &trace(&"c|r".repeat(100)),
            "io.metadata",
            &[
                "100 of 1000 bound high: 100 calls that neither read nor write take 100 µs (10.0 %) of 1.00 ms, and 50.0 % \
               of the time in calls on files.",
            ],
        );
        check(&trace(&"c|rr".repeat(100)), "io.metadata", &[]);
        check(&trace(&"c|".repeat(99)), "io.metadata", &[]);
    }
}

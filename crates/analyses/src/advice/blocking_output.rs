//! The thread that runs the steps writes files, such as checkpoints, while nothing computes.

use super::facts::{Facts, share};
use super::file_calls::longest;
use super::words::counted;
use super::{Advice, GainEstimate, Judged, Lacks, Rule};
use crate::host_threads::first_lane;
use crate::io_calls::{IoCall, IoSums};
use crate::io_summary::{IoOfRanks, Runners, is_output, written_files};
use std::collections::{BTreeMap, BTreeSet};
use stepscope_base::units::{format_bytes, format_ns, format_ratio};
use stepscope_base::{IntervalSet, StringId};
use stepscope_trace::IoAction;

const THRESHOLD: f64 = 0.05;
/// Less is a log and no checkpoint.
const LEAST_BYTES: i64 = 1 << 20;

pub(super) const RULE: Rule = Rule {
    code: "io.blocking_checkpoint",
    fault: "The loop writes files while nothing computes",
    disproof: "Steps are as long without writing.",
    evidence: "io_summary",
    to_do: "Write checkpoints beside the computing: `torch.distributed.checkpoint.async_save`, or a copy in host memory that \
            a thread of its own writes. Write less often, in larger pieces, or to a local disk first.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let mut by_rank: BTreeMap<u32, Vec<IoCall>> = BTreeMap::new();
    facts.context.get::<Vec<IoCall>>().iter().for_each(|call| by_rank.entry(call.rank).or_default().push(*call));
    if !by_rank.values().flatten().any(|call| call.event.action == IoAction::Write) {
        return Err(Lacks("no writes to files: `stepscope record --io` records them"));
    }
    Ok(by_rank.iter().filter_map(|(rank, calls)| of_rank(facts, *rank, calls)).collect())
}

/// From the first step to the last: checkpoints are written between steps.
fn of_rank(facts: &Facts, rank: u32, calls: &[IoCall]) -> Option<Advice> {
    let window = facts.steps_of(rank).hull()?;
    let (threads, written) = (Runners::of(facts.context, rank).threads, written_files(calls));
    let is_own = |call: &&IoCall| threads.contains(&first_lane(facts.trace, call.track)) && is_output(call, &written);
    let own: Vec<&IoCall> = calls.iter().filter(is_own).filter(|call| window.contains(call.span.start_ns)).collect();
    let sums = IoSums::of(own.iter().copied());
    let bytes = sums.writes.bytes().filter(|bytes| *bytes >= LEAST_BYTES)?;
    let spans: IntervalSet = own.iter().map(|call| call.span.intersect(window)).collect();
    let compute = facts.context.get::<IoOfRanks>().get(rank).and_then(|of| of.compute.as_ref());
    let blocking = compute.map_or_else(|| spans.clone(), |compute| spans.subtract(compute));
    let blocking_ns = blocking.total_ns();
    let row = share(blocking_ns, window.duration_ns(), THRESHOLD)?;
    let files: BTreeSet<StringId> = own.iter().map(|call| call.event.file).collect();
    Some(Advice {
        rank: Some(rank),
        says: format!(
            "The thread that runs the steps writes {} to {}, and is in these calls for {} ({}) of {} while nothing \
             computes.",
            format_bytes(bytes),
            counted(files.len() as i64, "file"),
            format_ns(blocking_ns),
            format_ratio(row.measured_ratio?),
            format_ns(window.duration_ns())
        ),
        count: Some(own.len() as i64),
        measured_bytes: Some(bytes),
        gain: Some((blocking_ns, GainEstimate::Bound)),
        place: longest(facts, &own),
        time: blocking,
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::check;
    use crate::io_calls::tests::with_calls;

    #[test]
    fn a_checkpoint_that_the_steps_wait_for_is_said() {
        let trace = |thread: i64, written: &str, kernels: &str, bytes: i64| {
            let rows = |row: &str| row.chars().map(|cell| cell.to_string().repeat(100)).collect::<String>();
            let drawing = format!(
                "rank 0 step {}\nrank 0 io {thread} {}\nrank 0 stream 7 {}",
                rows("000..11111"),
                rows(written),
                rows(kernels)
            );
            let mut trace = with_calls(&drawing);
            trace.io.iter_mut().for_each(|call| call.bytes = Some(bytes));
            trace
        };
        check(
            &trace(1, "...ww", "CCC......C", 2 << 20),
            "io.blocking_checkpoint",
            &[
                "200 of 1000 bound high: The thread that runs the steps writes 2.00 MiB to 1 file, and is in these calls for \
               200 µs (20.0 %) of 1.00 ms while nothing computes.",
            ],
        );
        check(&trace(1, "...ww", "CCCCC....C", 2 << 20), "io.blocking_checkpoint", &[]);
        check(&trace(2, "...ww", "CCC......C", 2 << 20), "io.blocking_checkpoint", &[]);
        check(&trace(1, "...ww", "CCC......C", 2 << 10), "io.blocking_checkpoint", &[]);
    }
}

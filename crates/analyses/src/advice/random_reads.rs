//! A file is read here and there, each read where the one before did not end.

use super::facts::{Facts, share};
use super::file_calls::{FileCalls, LEAST_COUNT, longest};
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Lacks, Rule};
use crate::io_calls::IoCall;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_base::StringId;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_trace::IoAction;

const THRESHOLD: f64 = 0.05;
/// A file of which a larger share of reads jumps is read at random.
const LARGEST_SHARE: f64 = 0.5;

pub(super) const RULE: Rule = Rule {
    code: "io.random_reads",
    fault: "Files are read at random",
    disproof: "Reading the same files in order takes as long.",
    evidence: "io_files",
    to_do: "Read in the order in which the file is written: shuffle shards and a buffer of samples instead of single \
            samples (WebDataset, `IterableDataset`), sort the indices of a batch, or copy the file to a local disk or \
            into memory before.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let ranks = FileCalls::of(facts)?;
    if !ranks.iter().flat_map(|rank| &rank.calls).any(|call| call.is_sequential.is_some()) {
        return Err(Lacks("no offsets of reads: `stepscope record --io` records them"));
    }
    Ok(ranks.iter().filter_map(|rank| of_rank(facts, rank)).collect())
}

fn of_rank(facts: &Facts, of: &FileCalls) -> Option<Advice> {
    let mut files: BTreeMap<StringId, Vec<&IoCall>> = BTreeMap::new();
    let is_judged = |call: &&IoCall| call.event.action == IoAction::Read && call.is_sequential.is_some();
    of.calls.iter().filter(is_judged).for_each(|call| files.entry(call.event.file).or_default().push(call));
    files.retain(|_, reads| reads.len() as i64 >= LEAST_COUNT && share_of_jumps(reads) > LARGEST_SHARE);
    let jumps = |reads: &[&IoCall]| reads.iter().filter(|call| is_jump(call)).count() as i64;
    let (worst, reads) =
        files.iter().max_by_key(|(file, reads)| (jumps(reads), Reverse(facts.trace.strings.get(**file))))?;
    let all: Vec<&IoCall> = files.values().flatten().copied().filter(|call| is_jump(call)).collect();
    let time = of.busy(&all);
    let row = share(time.total_ns(), of.window_ns(), THRESHOLD)?;
    let (ns, count) = (row.measured_ns?, all.len() as i64);
    Some(Advice {
        rank: Some(of.rank),
        says: format!(
            "{} of {} do not begin where the one before ended, {} of those of {}; they take {} ({}) of {}.",
            counted(count, "read"),
            counted(files.len() as i64, "file"),
            format_ratio(share_of_jumps(reads)),
            quoted(facts.trace.strings.get(*worst)),
            format_ns(ns),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(count),
        gain: Some((ns, GainEstimate::Bound)),
        place: longest(facts, &all),
        time,
        ..row
    })
}

fn is_jump(call: &IoCall) -> bool {
    call.is_sequential == Some(false)
}

fn share_of_jumps(reads: &[&IoCall]) -> f64 {
    reads.iter().filter(|call| is_jump(call)).count() as f64 / reads.len() as f64
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::check;
    use crate::io_calls::tests::with_calls;

    #[test]
    fn a_hundred_reads_that_jump_are_said() {
        let trace = |reads: usize, distance: i64| {
            let drawing = format!("rank 0 step {}\nrank 0 io 1 {}", "0".repeat(1_000), "r|".repeat(reads));
            let mut trace = with_calls(&drawing);
            (0..reads).for_each(|at| trace.io[at].offset = Some(at as i64 * distance));
            trace
        };
        check(
            &trace(101, 4_096),
            "io.random_reads",
            &[
                "100 of 1000 bound high: 100 reads of 1 file do not begin where the one before ended, 100.0 % of those of \
               `file`; they take 100 µs (10.0 %) of 1.00 ms.",
            ],
        );
        check(&trace(100, 4_096), "io.random_reads", &[]);
        check(&trace(500, 100), "io.random_reads", &[]);
    }
}

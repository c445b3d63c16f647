//! Some files are read much more slowly than the others.

use super::facts::{Facts, share};
use super::file_calls::{FileCalls, longest};
use super::words::quoted;
use super::{Advice, GainEstimate, Judged, Lacks, Rule};
use crate::io_calls::{IoCall, IoSums};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_base::percentiles::nearest_rank_of_unsorted;
use stepscope_base::units::{format_bytes, format_count, format_ns, format_ratio};
use stepscope_base::{StringId, StringTable};
use stepscope_trace::IoAction;

const THRESHOLD: f64 = 0.05;
/// Files of which less is read are not compared.
const LEAST_BYTES: i64 = 1 << 20;
const LEAST_FILES: usize = 4;
/// A file is slow when it is read at less than this part of the median.
const TIMES_SLOWER: i64 = 4;

pub(super) const RULE: Rule = Rule {
    code: "io.slow_file",
    fault: "Some files are read much more slowly than others",
    disproof: "Copied to where the others are, they are read as slowly.",
    evidence: "io_files",
    to_do: "Look where the slow files are: another mount, a full or remote disk, too few stripes (`lfs getstripe`). Move or \
            copy them to where the others are, or stripe them over more targets.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let ranks = FileCalls::of(facts)?;
    let is_sized = |call: &IoCall| call.event.action == IoAction::Read && call.event.bytes.is_some();
    if !ranks.iter().flat_map(|rank| &rank.calls).any(is_sized) {
        return Err(Lacks("no reads with their sizes: `stepscope record --io` records them"));
    }
    Ok(ranks.iter().filter_map(|rank| of_rank(facts, rank)).collect())
}

/// How one file is read.
struct Reads<'a> {
    calls: Vec<&'a IoCall>,
    bytes: i64,
    ns: i64,
    bytes_per_s: i64,
}

impl<'a> Reads<'a> {
    /// `None` where too little is read.
    fn of(calls: Vec<&'a IoCall>) -> Option<Self> {
        let sums = IoSums::of(calls.iter().copied());
        let (bytes, bytes_per_s) = (sums.reads.bytes()?, sums.reads.bytes_per_s()?);
        (bytes >= LEAST_BYTES).then_some(Self { calls, bytes, ns: sums.reads.ns, bytes_per_s })
    }
}

fn of_rank(facts: &Facts, of: &FileCalls) -> Option<Advice> {
    let mut calls: BTreeMap<StringId, Vec<&IoCall>> = BTreeMap::new();
    let is_read =
        |call: &&IoCall| call.event.action == IoAction::Read && call.event.bytes.is_some_and(|bytes| bytes > 0);
    let is_named = |call: &&IoCall| call.event.file != StringTable::EMPTY;
    let reads = of.calls.iter().filter(is_read).filter(is_named);
    reads.for_each(|call| calls.entry(call.event.file).or_default().push(call));
    let files: Vec<(StringId, Reads<'_>)> =
        calls.into_iter().filter_map(|(file, calls)| Some((file, Reads::of(calls)?))).collect();
    let mut rates: Vec<i64> = files.iter().map(|(_, reads)| reads.bytes_per_s).collect();
    let median = nearest_rank_of_unsorted(&mut rates, 50).filter(|_| files.len() >= LEAST_FILES)?;
    let is_slow = |reads: &Reads<'_>| reads.bytes_per_s.saturating_mul(TIMES_SLOWER) < median;
    let slow: Vec<&(StringId, Reads<'_>)> = files.iter().filter(|(_, reads)| is_slow(reads)).collect();
    let name = |file: StringId| facts.trace.strings.get(file);
    let (worst, of_worst) = slow.iter().max_by_key(|(file, reads)| (reads.ns, Reverse(name(*file))))?;
    let calls: Vec<&IoCall> = slow.iter().flat_map(|(_, reads)| reads.calls.iter().copied()).collect();
    // What is left when each is read at the median's rate, as a share of the time that they take.
    let (bytes, ns) = slow
        .iter()
        .fold((0_i128, 0_i128), |(bytes, ns), (_, reads)| (bytes + i128::from(reads.bytes), ns + i128::from(reads.ns)));
    let needed_ns = (bytes * 1_000_000_000 / i128::from(median)).min(ns);
    let time = of.busy(&calls);
    let saved_ns = (i128::from(time.total_ns()) * (ns - needed_ns) / ns.max(1)) as i64;
    let row = share(saved_ns, of.window_ns(), THRESHOLD)?;
    let per_s = |bytes_per_s: i64| format!("{}/s", format_bytes(bytes_per_s));
    Some(Advice {
        rank: Some(of.rank),
        says: format!(
            "Read at less than a quarter of the median of {}: {} of {} files, {} at {}. At the median, {} ({}) of {} would be \
             saved.",
            per_s(median),
            format_count(slow.len() as i64),
            format_count(files.len() as i64),
            quoted(name(*worst)),
            per_s(of_worst.bytes_per_s),
            format_ns(saved_ns),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(slow.len() as i64),
        measured_bytes: i64::try_from(bytes).ok(),
        gain: Some((saved_ns, GainEstimate::Bound)),
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
    fn a_file_that_is_read_at_a_quarter_of_the_others_rate_is_said() {
        // Four files of 1 MiB: three in 100 us each, the fourth in `last` us.
        let trace = |last: usize| {
            let reads = format!("{}{}|", format!("{}|", "r".repeat(100)).repeat(3), "r".repeat(last));
            let mut trace = with_calls(&format!("rank 0 step {}\nrank 0 io 1 {reads}", "0".repeat(1_000)));
            let names = ["a", "b", "c", "d"].map(|name| trace.strings.intern(name));
            trace.io.iter_mut().zip(names).for_each(|(call, name)| call.file = name);
            trace.io.iter_mut().for_each(|call| call.bytes = Some(1 << 20));
            trace
        };
        check(
            &trace(500),
            "io.slow_file",
            &[
                "400 of 1000 bound high: Read at less than a quarter of the median of 9.77 GiB/s: 1 of 4 files, `d` at 1.95 \
               GiB/s. At the median, 400 µs (40.0 %) of 1.00 ms would be saved.",
            ],
        );
        check(&trace(400), "io.slow_file", &[]);
    }
}

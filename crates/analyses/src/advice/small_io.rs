//! Much time goes into reads and writes of few bytes each.

use super::facts::{Facts, share};
use super::file_calls::rounds;
use super::words::quoted;
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use rustc_hash::FxHashMap;
use stepscope_base::units::{format_bytes, format_count, format_ns, format_ratio};
use stepscope_base::{StringId, StringTable};
use stepscope_trace::IoEvent;

const THRESHOLD: f64 = 0.05;
/// Requests below this take about as long as this.
pub(super) const SMALL_BYTES: i64 = 64 << 10;
/// Fewer are nobody's habit.
const LEAST_COUNT: i64 = 100;
/// Of requests that are smaller on average, next to no time is for their bytes: larger ones save all of it, with what the
/// program does for each.
const TINY_BYTES: i64 = 4 << 10;

pub(super) const RULE: Rule = Rule {
    code: "io.small_requests",
    fault: "Many small reads or writes",
    disproof: "Reading the same files in large pieces takes as long.",
    evidence: "step_breakdown",
    to_do: "Read more at once: samples packed into larger files (WebDataset, Parquet, HDF5 with larger chunks), larger \
            buffers (`open(…, buffering=1 << 20)`), memory-mapped files, data copied to a local disk before.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let is_sized = |event: &IoEvent| event.action.moves_bytes() && event.bytes.is_some();
    if !facts.trace.io.iter().any(is_sized) {
        return Err(Lacks("no reads or writes with their sizes: `stepscope record --io` records them"));
    }
    Ok(facts.ranks().iter().filter_map(|rank| of_rank(facts, *rank)).collect())
}

/// Over the steps of a rank; requests of several threads at the same time count once.
fn of_rank(facts: &Facts, rank: u32) -> Option<Advice> {
    let trace = facts.trace;
    let windows = facts.steps_of(rank);
    let is_small = |event: &&IoEvent| {
        let bytes = event.bytes.filter(|_| event.action.moves_bytes());
        bytes.is_some_and(|bytes| bytes < SMALL_BYTES)
    };
    let is_own = |event: &&IoEvent| trace.rank_of_track(trace.slices.track[event.slice.index()]) == rank;
    let is_inside = |event: &&IoEvent| {
        let start_ns = trace.slices.start_ns[event.slice.index()];
        let at = windows.spans().partition_point(|span| span.end_ns <= start_ns);
        windows.spans().get(at).is_some_and(|span| span.contains(start_ns))
    };
    let small: Vec<&IoEvent> = trace.io.iter().filter(is_own).filter(is_small).filter(is_inside).collect();
    let placed = |event: &&IoEvent| (trace.slices.track[event.slice.index()], trace.slices.span(event.slice));
    let spans = rounds(&mut small.iter().map(placed).collect::<Vec<_>>()).intersect(&windows);
    let small_ns = spans.total_ns();
    let row = share(small_ns, windows.total_ns(), THRESHOLD)?;
    let count = small.len() as i64;
    let bytes = small.iter().filter_map(|event| event.bytes).fold(0_i64, i64::saturating_add);
    let longest =
        small.iter().max_by_key(|event| (trace.slices.dur_ns[event.slice.index()], std::cmp::Reverse(event.slice)))?;
    // The end of a file is one that moves nothing.
    let moving = small.iter().filter(|event| event.bytes != Some(0)).count() as i64;
    let estimate = if bytes < TINY_BYTES * moving { GainEstimate::Floor } else { GainEstimate::Bound };
    let (time, ratio) = (format_ns(small_ns), format_ratio(row.measured_ratio?));
    let mut of_files: FxHashMap<StringId, i64> = FxHashMap::default();
    small.iter().for_each(|event| *of_files.entry(event.file).or_default() += 1);
    let most = of_files.into_iter().find(|(file, of_file)| *file != StringTable::EMPTY && 2 * of_file > count);
    let file = most.map_or_else(String::new, |(file, _)| format!(" Most are of {}.", quoted(trace.strings.get(file))));
    (count >= LEAST_COUNT).then(|| Advice {
        rank: Some(rank),
        says: format!(
            "{} reads and writes of less than 64 KiB, {} each on average, take {time} ({ratio}) of {}, with what lies closely \
             between them.{file}",
            format_count(count),
            format_bytes(bytes / count),
            format_ns(windows.total_ns())
        ),
        measured_bytes: Some(bytes),
        count: Some(count),
        gain: Some((small_ns, estimate)),
        place: Some(Place::of(trace, longest.slice)),
        time: spans,
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_us, with_io};

    #[test]
    fn a_hundred_small_reads_that_take_time_are_said() {
        let drawing =
            |reads: usize| format!("rank 0 step {}\nrank 0 python 1 {}", "0".repeat(1_000), "r|".repeat(reads));
        let trace = |reads: usize, bytes: i64| with_io(drawn_us(&drawing(reads), 10), "r", bytes);
        check(
            &trace(100, 4_096),
            "io.small_requests",
            &[
                "1000 of 10000 bound high: 100 reads and writes of less than 64 KiB, 4.00 KiB each on average, take 1.00 ms (10.0 %) of 10.0 ms, with what lies closely between them.",
            ],
        );
        let mut of_a_file = trace(100, 4_096);
        let name = of_a_file.strings.intern("samples.bin");
        of_a_file.io.iter_mut().skip(40).for_each(|event| event.file = name);
        check(
            &of_a_file,
            "io.small_requests",
            &[
                "1000 of 10000 bound high: 100 reads and writes of less than 64 KiB, 4.00 KiB each on average, take 1.00 ms (10.0 %) of 10.0 ms, with what lies closely between them. Most are of `samples.bin`.",
            ],
        );
        check(&trace(99, 4_096), "io.small_requests", &[]);
        check(&trace(100, 65_536), "io.small_requests", &[]);
    }
}

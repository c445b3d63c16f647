//! Mapped files are read page by page, when the program touches them.

use super::facts::Facts;
use super::file_calls::{FileCalls, LEAST_COUNT, longest};
use super::words::{counted, quoted};
use super::{Advice, Judged, Lacks, Priority, Rule};
use crate::io_calls::IoCall;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use stepscope_base::StringId;
use stepscope_base::units::{format_count, format_ns};

/// Pages in a second; each of them is waited for, on a local disk for about 100 us.
const LEAST_PER_S: i128 = 1_000;

pub(super) const RULE: Rule = Rule {
    code: "io.page_faults",
    fault: "Mapped files are read page by page",
    disproof: "A second run, with the files in memory, has steps as long.",
    evidence: "io_files",
    to_do: "Let the system read ahead: `mmap.madvise(mmap.MADV_WILLNEED)` or `MADV_SEQUENTIAL` before a part is used, \
            `posix_fadvise`. Or read larger pieces with `pread`, or copy the file to a local disk or into memory \
            (`/dev/shm`) before.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let ranks = FileCalls::of(facts)?;
    if !ranks.iter().flat_map(|rank| &rank.calls).any(IoCall::is_page_fault) {
        return Err(Lacks("no page faults: `stepscope record --io` records those of mapped files"));
    }
    Ok(ranks.iter().filter_map(|rank| of_rank(facts, rank)).collect())
}

/// How long a page takes is not known, so that there is no gain.
fn of_rank(facts: &Facts, of: &FileCalls) -> Option<Advice> {
    let faults: Vec<&IoCall> = of.calls.iter().filter(|call| call.is_major_page_fault()).collect();
    let (count, window_ns) = (faults.len() as i64, of.window_ns());
    let is_often = i128::from(count) * 1_000_000_000 >= LEAST_PER_S * i128::from(window_ns);
    (is_often && count >= LEAST_COUNT).then_some(())?;
    let mut files: FxHashMap<StringId, i64> = FxHashMap::default();
    faults.iter().for_each(|call| *files.entry(call.event.file).or_default() += 1);
    let name = |file: StringId| facts.trace.strings.get(file);
    let (worst, of_worst) = files.iter().max_by_key(|(file, count)| (**count, Reverse(name(**file))))?;
    Some(Advice {
        rank: Some(of.rank),
        priority: Priority::Medium,
        says: format!(
            "{} of {} had to be read when they were touched, in {} of steps; {} of {}.",
            counted(count, "page"),
            counted(files.len() as i64, "mapped file"),
            format_ns(window_ns),
            format_count(*of_worst),
            quoted(name(*worst))
        ),
        count: Some(count),
        window_ns: Some(window_ns),
        place: longest(facts, &faults),
        ..Advice::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::check;
    use crate::io_calls::tests::with_calls;
    use stepscope_trace::IoLayer;

    #[test]
    fn a_hundred_pages_that_are_read_one_by_one_are_said() {
        let trace = |faults: usize, layer: IoLayer| {
            let drawing = format!("rank 0 step {}\nrank 0 io 1 {}", "0".repeat(1_000), "R|".repeat(faults));
            let mut trace = with_calls(&drawing);
            trace.io.iter_mut().for_each(|call| call.layer = layer);
            trace
        };
        check(
            &trace(100, IoLayer::PageFault),
            "io.page_faults",
            &[
                "- of 1000 - medium: 100 pages of 1 mapped file had to be read when they were touched, in 1.00 ms of steps; \
               100 of `file`.",
            ],
        );
        check(&trace(99, IoLayer::PageFault), "io.page_faults", &[]);
        check(&trace(500, IoLayer::Posix), "io.page_faults", &[]);
    }
}

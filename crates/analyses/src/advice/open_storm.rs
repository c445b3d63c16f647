//! Files are opened again and again.

use super::facts::{Facts, share};
use super::file_calls::{FileCalls, LEAST_COUNT, longest};
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Rule};
use crate::io_calls::IoCall;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use stepscope_base::units::{format_count, format_ns, format_ratio};
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{IoAction, ProcessId};

const THRESHOLD: f64 = 0.02;
/// A process that opens a file more often does so again and again.
const FEW_OPENS: usize = 10;

pub(super) const RULE: Rule = Rule {
    code: "io.open_storm",
    fault: "The same files are opened again and again",
    disproof: "Steps are as long when files stay open.",
    evidence: "io_files",
    to_do: "Keep files open between samples: open a data set once in each worker (`worker_init_fn`, or at the first \
            `__getitem__`), and pack small files into larger ones (WebDataset, LMDB, HDF5).",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    Ok(FileCalls::of(facts)?.iter().filter_map(|rank| of_rank(facts, rank)).collect())
}

fn of_rank(facts: &Facts, of: &FileCalls) -> Option<Advice> {
    let mut opens: BTreeMap<(StringId, ProcessId), Vec<&IoCall>> = BTreeMap::new();
    let is_open = |call: &&IoCall| call.event.action == IoAction::Open && call.event.file != StringTable::EMPTY;
    for call in of.calls.iter().filter(is_open) {
        opens.entry((call.event.file, call.process)).or_default().push(call);
    }
    opens.retain(|_, opens| opens.len() > FEW_OPENS);
    opens.values_mut().for_each(|opens| opens.sort_by_key(|call| call.span.start_ns));
    let name = |file: StringId| facts.trace.strings.get(file);
    let ((worst, _), of_worst) = opens.iter().max_by_key(|((file, _), opens)| (opens.len(), Reverse(name(*file))))?;
    // The first time has to be.
    let again: Vec<&IoCall> = opens.values().flat_map(|opens| &opens[1..]).copied().collect();
    let files: BTreeSet<StringId> = opens.keys().map(|(file, _)| *file).collect();
    let time = of.rounds(&again);
    let (count, ns) = (again.len() as i64, time.total_ns());
    let row = share(ns, of.window_ns(), THRESHOLD).filter(|_| count >= LEAST_COUNT)?;
    Some(Advice {
        rank: Some(of.rank),
        says: format!(
            "{} of {} that the process had opened before, with what lies closely between them, take {} ({}) of {}; one process \
             opens {} {} times.",
            counted(count, "open"),
            counted(files.len() as i64, "file"),
            format_ns(ns),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns()),
            quoted(name(*worst)),
            format_count(of_worst.len() as i64)
        ),
        count: Some(count),
        gain: Some((ns, GainEstimate::Floor)),
        place: longest(facts, &again),
        time,
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::check;
    use crate::io_calls::tests::with_calls;

    #[test]
    fn a_file_that_is_opened_again_and_again_is_said() {
        let trace = |opens: &str| with_calls(&format!("rank 0 step {}\nrank 0 io 1 {opens}", "0".repeat(1_000)));
        check(
            &trace(&"o|".repeat(101)),
            "io.open_storm",
            &[
                "100 of 1000 floor high: 100 opens of 1 file that the process had opened before, with what lies closely between them, take 100 µs (10.0 %) of \
               1.00 ms; one process opens `file` 101 times.",
            ],
        );
        check(&trace(&"o|".repeat(100)), "io.open_storm", &[]);
        check(&trace(&"r|".repeat(500)), "io.open_storm", &[]);
    }
}

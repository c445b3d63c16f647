//! The workers of a loader are too few, or many more than the loop needs.

use super::batch_waits::{BatchWaits, Cause};
use super::facts::Facts;
use super::words::counted;
use super::{Advice, Judged, Lacks, Priority, Rule};
use crate::io_calls::ratio;
use stepscope_base::units::format_ratio;

/// More than this many times what is enough is too many.
const TIMES_ENOUGH: i64 = 2;
/// A worker that waits for less of its time is of use.
const LEAST_WAITING: f64 = 0.5;
/// Beside one that is enough, a few bridge slow batches.
const LEAST_SPARE: i64 = 3;

pub(super) const FEW: Rule = Rule {
    code: "input.few_workers",
    fault: "The loader has too few workers",
    disproof: "Steps are as long with twice as many workers, each on a processor of its own.",
    evidence: "io_workers",
    to_do: "Set `DataLoader(num_workers=…)` to the number that would be enough, as far as the rank has CPU cores; beyond \
            them decode less for each sample, or in the data set beforehand.",
    judge: judge_few,
};

pub(super) const MANY: Rule = Rule {
    code: "input.many_workers",
    fault: "The loader has more workers than it needs",
    disproof: "With fewer workers the loop waits for batches.",
    evidence: "io_workers",
    to_do: "Lower `DataLoader(num_workers=…)`: each worker holds a copy of the data set, `prefetch_factor` batches, and a \
            share of the CPU cores that other ranks want.",
    judge: judge_many,
};

/// Waits of ranks whose loaders have workers.
fn with_workers<'a>(facts: &'a Facts) -> Result<impl Iterator<Item = &'a BatchWaits>, Lacks> {
    let has_workers = |waits: &&BatchWaits| waits.makers.iter().any(|row| row.worker.is_some());
    let mut waits = facts.batch_waits()?.iter().filter(has_workers).peekable();
    match waits.peek() {
        None => Err(Lacks("no workers of a loader: `stepscope record` records them")),
        Some(_) => Ok(waits),
    }
}

fn judge_few(facts: &Facts) -> Judged {
    let of_rank = |waits: &BatchWaits| {
        let Some(Cause::FewWorkers { workers, enough }) = waits.cause() else { return None };
        let row = waits.advice(facts, &format!("batches of {}", counted(workers, "worker")))?;
        Some(Advice { says: row.says.clone() + &waits.enough_says(facts, &enough.to_string()), ..row })
    };
    Ok(with_workers(facts)?.filter_map(of_rank).collect())
}

fn judge_many(facts: &Facts) -> Judged {
    Ok(with_workers(facts)?.filter_map(too_many).collect())
}

fn too_many(waits: &BatchWaits) -> Option<Advice> {
    let workers = || waits.makers.iter().filter(|row| row.worker.is_some());
    let (first, enough) = (workers().next()?, waits.enough_workers()?);
    let waiting = ratio(workers().map(|row| row.waiting_ns).sum(), workers().map(|row| row.total_ns).sum())?;
    let is_many = first.workers > TIMES_ENOUGH * enough && first.workers >= enough + LEAST_SPARE;
    (is_many && waiting > LEAST_WAITING).then(|| Advice {
        rank: Some(first.rank),
        says: format!(
            "The {} of the loader wait for {} of their time until more batches are wanted; {enough} would be enough.",
            counted(first.workers, "worker"),
            format_ratio(waiting)
        ),
        measured_ratio: Some(waiting),
        threshold_ratio: Some(LEAST_WAITING),
        count: Some(first.workers),
        priority: Priority::Low,
        ..Advice::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::check;
    use crate::batches::tests::with_batches;
    use stepscope_trace::Trace;

    /// A job of which each cell is 100 us.
    fn job(rows: &[(&str, &str)]) -> Trace {
        let cells = |row: &str| row.chars().map(|cell| cell.to_string().repeat(100)).collect::<String>();
        let line = |(head, row): &(&str, &str)| format!("{head} {}\n", cells(row));
        with_batches(&rows.iter().map(line).collect::<String>())
    }

    #[test]
    fn workers_that_are_too_few_are_told_how_many_would_be_enough() {
        let trace =
            job(&[("rank 0 step", "000111222"), ("rank 0 input 1", "aa.bb.cc."), ("rank 1 label 1", "aaabbbccc")]);
        // The first batch is not judged.
        let says = "400 of 600 bound high: 200 µs (66.7 %) of a step of 300 µs (mean of 2) is waiting for batches of 1 worker \
                    while nothing else runs. 3 would be enough.";
        check(&trace, "input.few_workers", &[says]);
        check(&trace, "input.dataloader", &[]);
        check(&trace, "input.many_workers", &[]);
    }

    #[test]
    fn many_workers_that_wait_are_told_how_many_would_be_enough() {
        let workers = |last: &str| {
            job(&[
                ("rank 0 step", "0000111122223333"),
                ("rank 0 input 1", "a...b...c...d..."),
                ("rank 1 label 1", "a..............e"),
                ("rank 2 label 1", ".b............f."),
                ("rank 3 label 1", "..c..........g.."),
                ("rank 4 label 1", last),
            ])
        };
        let says = "- of - - low: The 4 workers of the loader wait for 84.6 % of their time until more batches are wanted; 1 \
                    would be enough.";
        check(&workers("...d........h..."), "input.many_workers", &[says]);
        check(&workers("................"), "input.many_workers", &[]);
        check(&workers("...d........h..."), "input.few_workers", &[]);
    }
}

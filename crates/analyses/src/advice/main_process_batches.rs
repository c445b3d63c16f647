//! The training process makes its batches itself, and the loop waits for them.

use super::batch_waits::{BatchWaits, Cause};
use super::facts::Facts;
use super::words::counted;
use super::{Advice, Judged, Lacks, Rule};
use crate::io_calls::ratio;
use stepscope_base::units::format_ratio;

pub(super) const RULE: Rule = Rule {
    code: "input.main_process",
    fault: "The training process makes its batches itself",
    disproof: "Steps are as long with one batch that is used again and again.",
    evidence: "io_workers",
    to_do: "Read and decode in worker processes while the loop computes: `DataLoader(num_workers=…)` with \
            `persistent_workers=True`; decode once and store what comes out where workers are no choice.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let waits = facts.batch_waits()?;
    if waits.iter().all(|waits| waits.makers.is_empty()) {
        return Err(Lacks("nothing says who makes the batches: `stepscope record` has them"));
    }
    let of_rank = |waits: &BatchWaits| (waits.cause() == Some(Cause::NoWorkers)).then(|| advice(facts, waits))?;
    Ok(waits.iter().filter_map(of_rank).collect())
}

fn advice(facts: &Facts, waits: &BatchWaits) -> Option<Advice> {
    let row = waits.advice(facts, "batches that the training process makes itself")?;
    let (reading_ns, decoding_ns) = waits.makers.iter().map(|row| (row.reading_ns, row.decoding_ns)).next()?;
    let decoding = ratio(decoding_ns, reading_ns + decoding_ns)?;
    let enough = waits.enough_workers();
    let enough = enough.map_or_else(String::new, |enough| waits.enough_says(facts, &counted(enough, "worker")));
    let parts = match reading_ns {
        // Without a record of calls on files nobody knows.
        0 => String::new(),
        _ => format!(" Decoding is {} of making them, reading the rest.", format_ratio(decoding)),
    };
    Some(Advice { says: format!("{}{parts}{enough}", row.says), ..row })
}

#[cfg(test)]
mod tests {
    use crate::Selection;
    use crate::advice::advice;
    use crate::advice::tests::check;
    use crate::batches::tests::with_batches;

    #[test]
    fn more_workers_than_cores_are_said_with_the_cores() {
        let cells = |unit: &str| unit.chars().map(|cell| cell.to_string().repeat(100)).collect::<String>();
        let [step, input, label] = ["00001111", "aaa.bbb.", "aa..bb.."].map(cells);
        let mut trace = with_batches(&format!("rank 0 step {step}\nrank 0 input 1 {input}\nrank 0 label 1 {label}"));
        let mut ends = |cores: i64| {
            trace.processes[0].settings.cores_allowed = Some(cores);
            let rows = advice(&trace, &Selection::default());
            let row = rows.iter().find(|row| row.rule.as_str() == "input.main_process");
            row.map(|row| row.says.rsplit_once(". ").unwrap().1.to_string())
        };
        assert_eq!(ends(1).as_deref(), Some("2 workers would be enough; the process may use 1 core."));
        assert_eq!(ends(2).as_deref(), Some("2 workers would be enough."));
    }

    #[test]
    fn a_process_that_makes_its_batches_itself_is_told_how_many_workers_would_do() {
        let cells = |unit: &str| unit.chars().map(|cell| cell.to_string().repeat(100)).collect::<String>();
        let drawing = |io: &str| {
            let [step, input, label, io] = ["00001111", "aaa.bbb.", "aa..bb..", io].map(cells);
            format!("rank 0 step {step}\nrank 0 input 1 {input}\nrank 0 label 1 {label}\nrank 0 io 1 {io}")
        };
        let says = "300 µs (75.0 %) of a step of 400 µs (mean of 2) is waiting for batches that the training process makes \
                    itself while nothing else runs.";
        check(
            &with_batches(&drawing("r...r...")),
            "input.main_process",
            &[&format!(
                "600 of 800 bound high: {says} Decoding is 50.0 % of making them, reading the rest. 2 workers would be \
                 enough."
            )],
        );
        check(
            &with_batches(&drawing("........")),
            "input.main_process",
            &[&format!("600 of 800 bound high: {says} 2 workers would be enough.")],
        );
        check(&with_batches(&drawing("r...r...")), "input.dataloader", &[]);
    }
}

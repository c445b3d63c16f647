//! The training loop waits for its next batch while nothing else happens.

use super::facts::{Facts, share};
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use crate::step_breakdown::{self, StepBreakdown};
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_trace::SliceKind;

/// As the TensorBoard plugin of PyTorch's profiler.
const THRESHOLD: f64 = 0.05;

pub(super) const RULE: Rule = Rule {
    code: "input.dataloader",
    evidence: "step_breakdown",
    to_do: "Load ahead: `DataLoader(num_workers=…)` above 0 or higher, up to the CPU cores of the rank, with \
            `persistent_workers=True`, `prefetch_factor` of 2 or more and `pin_memory=True`; move decoding and \
            augmentation out of the training process.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    if !facts.trace.slices.kind.contains(&SliceKind::DataLoader) {
        return Err(Lacks("no waits for data are marked"));
    }
    let rows = step_breakdown::rows(facts.context);
    let ranks = rows.chunk_by(|a, b| a.rank == b.rank);
    Ok(ranks.filter_map(|rows| of_rank(facts, rows)).collect())
}

/// Over the complete steps of a rank, or over all when none is complete.
fn of_rank(facts: &Facts, rows: &[StepBreakdown]) -> Option<Advice> {
    let steps = || rows.iter().filter(|row| row.step.is_some());
    let has_complete = steps().any(|row| row.is_complete == Some(true));
    let counted = || steps().filter(|row| !has_complete || row.is_complete == Some(true));
    let wait_ns: i64 = counted().map(|row| row.dataloader_ns).sum();
    let window_ns: i64 = counted().map(|row| row.total_ns).sum();
    let row = share(wait_ns, window_ns, THRESHOLD)?;
    let (rank, count) = (rows[0].rank, counted().count() as i64);
    let (wait, ratio) = (format_ns(wait_ns / count), format_ratio(row.measured_ratio?));
    let step = format_ns(window_ns / count);
    let of = if count > 1 { format!("a step of {step} (mean of {count})") } else { format!("the {step} of the step") };
    Some(Advice {
        rank: Some(rank),
        says: format!("{wait} ({ratio}) of {of} is waiting for the next batch while nothing else runs."),
        count: Some(count),
        gain: Some((wait_ns, GainEstimate::Removal)),
        place: facts.longest(rank, SliceKind::DataLoader).map(|slice| Place::of(facts.trace, slice)),
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_ms};

    #[test]
    fn waiting_for_more_than_a_twentieth_of_the_steps_is_said() {
        let drawing =
            "rank 0 step 0000000000|1111111111\nrank 0 input 1 i.........ii\nrank 0 cpu 1 .aaaaaaaa...aaaaaaa";
        check(
            &drawn_ms(drawing),
            "input.dataloader",
            &[
                "3000 of 20000 removal high: 1.50 ms (15.0 %) of a step of 10.0 ms (mean of 2) is waiting for the next batch while nothing else runs.",
            ],
        );
    }

    #[test]
    fn what_the_device_hides_is_not_waited_for_and_a_twentieth_is_not_said() {
        let drawing = "rank 0 step 00000000000000000000\nrank 0 input 1 ii\nrank 0 stream 7 .C";
        check(&drawn_ms(drawing), "input.dataloader", &[]);
    }
}

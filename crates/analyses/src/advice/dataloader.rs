//! The training loop waits for its next batch while nothing else happens, and nothing says why.

use super::facts::Facts;
use super::{Judged, Rule};

pub(super) const RULE: Rule = Rule {
    code: "input.dataloader",
    fault: "The loop waits for its data",
    disproof: "Steps are as long with one batch that is used again and again.",
    evidence: "step_breakdown",
    to_do: "Load ahead: `DataLoader(num_workers=…)` above 0 or higher, up to the CPU cores of the rank, with \
            `persistent_workers=True`, `prefetch_factor` of 2 or more and `pin_memory=True`; move decoding and \
            augmentation out of the training process.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let unexplained = facts.batch_waits()?.iter().filter(|waits| waits.cause().is_none());
    Ok(unexplained.filter_map(|waits| waits.advice(facts, "the next batch")).collect())
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
                "3000 of 20000 bound high: 1.50 ms (15.0 %) of a step of 10.0 ms (mean of 2) is waiting for the next batch while nothing else runs.",
            ],
        );
    }

    #[test]
    fn what_the_device_hides_is_not_waited_for_and_a_twentieth_is_not_said() {
        let drawing = "rank 0 step 00000000000000000000\nrank 0 input 1 ii\nrank 0 stream 7 .C";
        check(&drawn_ms(drawing), "input.dataloader", &[]);
    }
}

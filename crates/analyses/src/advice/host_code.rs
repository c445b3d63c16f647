//! A device waits while the host runs code outside of operators.

use super::facts::Facts;
use super::pauses::Pauses;
use super::{Advice, Judged, Rule};
use crate::idle::IdleCause;
use crate::temporal_breakdown::TemporalBreakdown;

const THRESHOLD: f64 = 0.10;

pub(super) const RULE: Rule = Rule {
    code: "host.code",
    fault: "Code outside of operators keeps the device waiting",
    disproof: "Steps are as long without that code.",
    evidence: "idle_causes",
    to_do: "Take Python out of the way of the device: `torch.compile`, logging and metrics every so many steps only, \
            no work on single elements of tensors, garbage collection (`gc.disable()`, `gc.collect()` between steps) by \
            hand. Recording with `with_stack=True` names the code.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    Ok(facts.pauses()?.filter_map(|(device, pauses)| of_device(facts, device, pauses)).collect())
}

fn of_device(facts: &Facts, device: &TemporalBreakdown, pauses: &Pauses) -> Option<Advice> {
    facts.pause_row(device, pauses.of(IdleCause::HostOther), THRESHOLD, || {
        let longest_in = pauses.longest_in(facts.trace, IdleCause::HostOther);
        format!("while the host is in no operator and no call of the device{longest_in}")
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_us};

    fn drawing(kernel: usize) -> String {
        let (kernel, idle) = ("C".repeat(kernel), ".".repeat(kernel));
        let python = format!("pp.{idle}").repeat(20);
        let launch = format!("..C{idle}").repeat(20);
        let stream = format!("...{kernel}").repeat(20);
        format!("rank 0 python 1 {python}\nrank 0 launch 1 {launch}\nrank 0 stream 7 {stream}")
    }

    #[test]
    fn python_between_launches_is_said_beyond_a_tenth() {
        // 19 gaps have two columns of Python and one of the launch: 19 × 100 us of 20 × 450 − 150 us.
        check(
            &drawn_us(&drawing(6), 50),
            "host.code",
            &[
                "1900 of 8850 bound high: GPU 0 waits 1.90 ms (21.5 %) of 8.85 ms while the host is in no operator and no call of the device, the longest in `p`.",
            ],
        );
        check(&drawn_us(&drawing(17), 50), "host.code", &[]);
    }
}

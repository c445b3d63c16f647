//! A device waits for the host to launch, and what is launched is no shorter than its launch.

use super::facts::{Facts, LAUNCH_WAIT_THRESHOLD};
use super::memory_near_full::spare_memory;
use super::pauses::Pauses;
use super::{Advice, Judged, Rule};
use crate::idle::IdleCause;
use crate::temporal_breakdown::TemporalBreakdown;

pub(super) const RULE: Rule = Rule {
    code: "host.launch_bound",
    fault: "The host launches too slowly",
    disproof: "Steps of twice the batch take twice as long.",
    evidence: "idle_causes",
    to_do: "Give the host less to do between launches: `torch.compile`, optimizers with `fused=True` or \
            `foreach=True`, fewer and larger tensors, larger batches where memory is left; keep allocations out of the loop. Operators by host time are in \
            `operators`.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let is_short = |device: &TemporalBreakdown| facts.short_events_ratio(device.rank).is_some();
    let row = |(device, pauses): (&TemporalBreakdown, &Pauses)| {
        of_device(facts, device, pauses).filter(|_| !is_short(device))
    };
    Ok(facts.pauses()?.filter_map(row).collect())
}

fn of_device(facts: &Facts, device: &TemporalBreakdown, pauses: &Pauses) -> Option<Advice> {
    let mut row = facts.pause_row(device, pauses.of(IdleCause::LaunchBound), LAUNCH_WAIT_THRESHOLD, || {
        format!("for the host to get to its next launch{}", pauses.longest_in(facts.trace, IdleCause::LaunchBound))
    })?;
    // There may be room for a larger batch.
    row.says += &spare_memory(facts, device.rank, Some(device.device));
    Some(row)
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_us};

    /// Kernels of 300 us, each after 100 us in an operator and a launch of 50 us; 20 of them take 9 ms.
    fn launched_late(kernel: usize) -> String {
        let period = |cells: &str| cells.repeat(20);
        let (kernel, idle) = ("C".repeat(kernel), ".".repeat(kernel));
        let op = period(&format!("aaa{idle}"));
        let launch = period(&format!("..C{idle}"));
        format!("rank 0 cpu 1 {op}\nrank 0 launch 1 {launch}\nrank 0 stream 7 {}", period(&format!("...{kernel}")))
    }

    #[test]
    fn waiting_for_launches_is_said_beyond_a_tenth() {
        // Of 20 periods of 3 and 6 columns, 50 us each, all but the first wait count: 19 × 150 us of 8,850 us.
        let says = "2850 of 8850 bound high: GPU 0 waits 2.85 ms (32.2 %) of 8.85 ms for the host to get to its next launch, the longest in `a`.";
        check(&drawn_us(&launched_late(6), 50), "host.launch_bound", &[says]);
        let with_memory = |memory_bytes| {
            let mut trace = drawn_us(&format!("{}\nrank 0 memory 1 abA", launched_late(6)), 50);
            trace.devices[0].memory_bytes = Some(memory_bytes);
            trace
        };
        let spare = format!("{says} At the peak 60.0 % of the memory of GPU 0 are allocated.");
        check(&with_memory(500), "host.launch_bound", &[&spare]);
        check(&with_memory(400), "host.launch_bound", &[says]);
        // 19 × 150 us of 20 × 1,350 + 19 × 150 us are 9.5 %.
        check(&drawn_us(&launched_late(27), 50), "host.launch_bound", &[]);
    }
}

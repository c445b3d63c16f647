//! Computing that could run while a device communicates runs before or after it.

use super::facts::{Facts, gpu, share_of_device};
use super::{Advice, GainEstimate, Judged, Rule, late_gathers};
use crate::temporal_breakdown::{TemporalBreakdown, exposed_comm};
use stepscope_base::units::{format_ns, format_ratio};

const THRESHOLD: f64 = 0.05;

pub(super) const RULE: Rule = Rule {
    code: "comm.overlap",
    fault: "Communication could hide under computing",
    disproof: "Kernels get longer beside communication, by as much as is hidden.",
    evidence: "overlap",
    to_do: "Let collectives run beside the backward pass: smaller buckets (`DistributedDataParallel(bucket_cap_mb=…)`, \
            `gradient_as_bucket_view=True`, `static_graph=True`), FSDP with `forward_prefetch=True` and \
            `BackwardPrefetch.BACKWARD_PRE`, own collectives with `async_op=True` and a late `wait()`.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    Ok(facts.devices()?.iter().filter_map(|device| of_device(facts, device)).collect())
}

/// Computing under which nothing is hidden yet.
fn free_ns(device: &TemporalBreakdown) -> i64 {
    device.compute_ns - (device.comm_ns - device.exposed_comm_ns)
}

/// What this rule says could be hidden: it is exposed, and no more than the computing that is free for it. 0 where it says
/// nothing.
pub(super) fn hideable_ns(facts: &Facts, device: &TemporalBreakdown) -> i64 {
    let hideable_ns = device.exposed_comm_ns.min(free_ns(device));
    let is_habit = |row: &Advice| facts.communication_kernels(device).are_habit(row);
    share_of_device(device, hideable_ns, THRESHOLD).filter(is_habit).map_or(0, |_| hideable_ns)
}

fn of_device(facts: &Facts, device: &TemporalBreakdown) -> Option<Advice> {
    let (free_ns, hideable_ns) = (free_ns(device), hideable_ns(facts, device));
    let row = share_of_device(device, hideable_ns, THRESHOLD)?;
    let (gpu, comm) = (gpu(device.device), format_ns(device.comm_ns));
    let (hidden, free) = (format_ratio(device.overlap_ratio?), format_ns(free_ns));
    Some(Advice {
        says: format!(
            "{gpu} hides {hidden} of its {comm} of communication under computing. Another {free} of computing ran with no \
             communication beside it."
        ),
        gain: Some((hideable_ns, GainEstimate::Overlap)),
        // Of gathers it is said what they could run beside.
        own_gain_ns: Some((hideable_ns - late_gathers::hideable_ns(facts, device)).max(0)),
        place: facts.longest_communication(device),
        time: exposed_comm(facts.of_devices, device),
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_ms};

    #[test]
    fn communication_can_hide_under_as_much_computing_as_there_is() {
        check(
            &drawn_ms("rank 0 stream 7 CC........\nrank 0 stream 9 .N|N|N|N|N|N|N|N|N"),
            "comm.overlap",
            &[
                "1000 of 10000 overlap high: GPU 0 hides 11.1 % of its 9.00 ms of communication under computing. Another 1.00 ms of computing ran with no communication beside it.",
            ],
        );
        check(
            &drawn_ms("rank 0 stream 7 CCCCCCC...\nrank 0 stream 9 .......N|N|N"),
            "comm.overlap",
            &[
                "3000 of 10000 overlap high: GPU 0 hides 0.0 % of its 3.00 ms of communication under computing. Another 7.00 ms of computing ran with no communication beside it.",
            ],
        );
    }

    #[test]
    fn one_collective_is_no_habit() {
        check(&drawn_ms("rank 0 stream 7 CCCCCCC...\nrank 0 stream 9 .......NNN"), "comm.overlap", &[]);
        check(&drawn_ms("rank 0 stream 7 CCCCCCC...\nrank 0 stream 9 .......NNN"), "comm.exposed", &[]);
    }

    #[test]
    fn a_device_that_only_communicates_can_hide_nothing() {
        check(&drawn_ms("rank 0 stream 9 NNNNNNNNNN"), "comm.overlap", &[]);
        check(&drawn_ms(&format!("rank 0 stream 7 {}N", "C".repeat(19))), "comm.overlap", &[]);
    }
}

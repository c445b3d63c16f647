//! A device communicates and does not compute meanwhile.

use super::facts::{Facts, gpu, share_of_device};
use super::{Advice, GainEstimate, Judged, Rule, comm_overlap, late_gathers};
use crate::temporal_breakdown::{TemporalBreakdown, exposed_comm};
use stepscope_base::units::{format_ns, format_ratio};

/// As the TensorBoard plugin of PyTorch's profiler.
const THRESHOLD: f64 = 0.10;

pub(super) const RULE: Rule = Rule {
    code: "comm.exposed",
    fault: "Communication is not hidden by computing",
    disproof: "Steps are as long without communication (`no_sync()`).",
    evidence: "overlap",
    to_do: "Communicate less: accumulate gradients over several batches (`no_sync()`), take larger batches, reduce in \
            16 bits (`bf16_compress_hook`), shard within a host. First see on other ranks whether this one waits for a \
            late one.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let row = |device: &TemporalBreakdown| {
        let is_habit = |row: &Advice| facts.communication_kernels(device).are_habit(row);
        let row = share_of_device(device, device.exposed_comm_ns, THRESHOLD).filter(is_habit)?;
        let (gpu, window) = (gpu(device.device), format_ns(device.span_ns));
        let (ratio, exposed) = (format_ratio(row.measured_ratio?), format_ns(device.exposed_comm_ns));
        Some(Advice {
            says: format!(
                "{gpu} communicates without computing for {exposed} ({ratio}) of {window}; waiting for other ranks \
                 may be part of it."
            ),
            gain: Some((device.exposed_comm_ns, GainEstimate::Bound)),
            // To hide it costs no less communication.
            own_gain_ns: Some((device.exposed_comm_ns - hideable_ns(facts, device)).max(0)),
            place: facts.longest_communication(device),
            time: exposed_comm(facts.of_devices, device),
            ..row
        })
    };
    Ok(facts.devices()?.iter().filter_map(row).collect())
}

/// What other rules say could be hidden.
fn hideable_ns(facts: &Facts, device: &TemporalBreakdown) -> i64 {
    comm_overlap::hideable_ns(facts, device).max(late_gathers::hideable_ns(facts, device))
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_ms};

    #[test]
    fn exposed_communication_beyond_a_tenth_is_said() {
        check(
            &drawn_ms("rank 0 stream 7 CC........\nrank 0 stream 9 ..N|N|N|N|N|N|N|N"),
            "comm.exposed",
            &[
                "8000 of 10000 bound high: GPU 0 communicates without computing for 8.00 ms (80.0 %) of 10.0 ms; waiting for other ranks may be part of it.",
            ],
        );
        // All of it could be hidden: that is said.
        check(&drawn_ms("rank 0 stream 7 CCCCCCCC..\nrank 0 stream 9 ......N|N|N|N"), "comm.exposed", &[]);
        check(&drawn_ms("rank 0 stream 7 CCCCCCCCC.\nrank 0 stream 9 ......NNNN"), "comm.exposed", &[]);
    }
}

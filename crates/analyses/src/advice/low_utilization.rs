//! A device runs kernels for less than half of the time.

use super::facts::{Facts, gpu};
use super::pauses::Pauses;
use super::{Advice, Judged, Priority, Rule};
use crate::temporal_breakdown::TemporalBreakdown;
use stepscope_base::units::{format_ns, format_ratio};

/// As the TensorBoard plugin of PyTorch's profiler.
const THRESHOLD: f64 = 0.50;
/// Below this most of the device is wasted.
const VERY_LOW: f64 = 0.25;

pub(super) const RULE: Rule = Rule {
    code: "device.low_utilization",
    fault: "The device idles most of the time",
    disproof: "Over more steps the device is busy.",
    evidence: "idle_causes",
    to_do: "Remove what the device idles for, the longest cause first. When it is the host's pace, larger batches or \
            several jobs on one device use what is left.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    Ok(facts.pauses()?.filter_map(|(device, pauses)| of_device(device, pauses)).collect())
}

fn of_device(device: &TemporalBreakdown, pauses: &Pauses) -> Option<Advice> {
    let busy_ns = device.compute_ns + device.exposed_comm_ns;
    let ratio = busy_ns as f64 / device.span_ns as f64;
    let (gpu, window) = (gpu(device.device), format_ns(device.span_ns));
    let (cause, cause_ns) = pauses.main_cause()?;
    let (cause, of_idle) = (cause.as_str(), format_ratio(cause_ns as f64 / device.idle_ns as f64));
    (ratio < THRESHOLD).then(|| Advice {
        rank: Some(device.rank),
        device: Some(device.device),
        priority: if ratio < VERY_LOW { Priority::High } else { Priority::Medium },
        says: format!(
            "{gpu} runs kernels for {} of {window}; it idles {}, {of_idle} of that for the cause `{cause}`.",
            format_ratio(ratio),
            format_ns(device.idle_ns)
        ),
        measured_ratio: Some(ratio),
        threshold_ratio: Some(THRESHOLD),
        measured_ns: Some(busy_ns),
        window_ns: Some(device.span_ns),
        ..Advice::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_ms};

    #[test]
    fn less_than_half_is_said_with_its_main_cause() {
        check(
            &drawn_ms("rank 0 cpu 1 .aaaaaaa..\nrank 0 launch 1 C.......E.\nrank 0 stream 7 .CC....C.E"),
            "device.low_utilization",
            &[
                "- of 9000 - medium: GPU 0 runs kernels for 44.4 % of 9.00 ms; it idles 5.00 ms, 80.0 % of that for the cause `unknown`.",
            ],
        );
        check(&drawn_ms("rank 0 stream 7 .CC..CC"), "device.low_utilization", &[]);
    }

    #[test]
    fn copies_are_no_kernels() {
        let drawing = "rank 0 stream 7 CHHHC.HHHH";
        check(
            &drawn_ms(drawing),
            "device.low_utilization",
            &[
                "- of 10000 - high: GPU 0 runs kernels for 20.0 % of 10.0 ms; it idles 1.00 ms, 100.0 % of that for the cause `unknown`.",
            ],
        );
    }
}

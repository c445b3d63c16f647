//! Work that was launched in time is held back on the device.

use super::facts::{Facts, gpu, share_of_device};
use super::pauses::Pauses;
use super::words::counted;
use super::{Advice, GainEstimate, Judged, Rule};
use crate::temporal_breakdown::TemporalBreakdown;
use stepscope_base::units::{format_ns, format_ratio};

const THRESHOLD: f64 = 0.10;

pub(super) const RULE: Rule = Rule {
    code: "device.queue_wait",
    fault: "Launched work waits on the device",
    disproof: "Without what it waits for the gaps are as long.",
    evidence: "idle_gaps",
    to_do: "Look at the longest gaps: what the next kernel's stream waits for (`wait_stream`, `wait_event`, a \
            collective on the host) may not be needed, or can be waited for later. Many gaps of a few microseconds \
            are the device's way from kernel to kernel: fuse kernels (`torch.compile`) or use CUDA graphs.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    Ok(facts.pauses()?.filter_map(|(device, pauses)| of_device(facts, device, pauses)).collect())
}

fn of_device(facts: &Facts, device: &TemporalBreakdown, pauses: &Pauses) -> Option<Advice> {
    let held = &pauses.held;
    let row = share_of_device(device, held.total_ns, THRESHOLD).filter(|row| held.is_habit(row))?;
    let (gpu, window) = (gpu(device.device), format_ns(device.span_ns));
    let (idle, ratio) = (format_ns(held.total_ns), format_ratio(row.measured_ratio?));
    let (gaps, longest) = (counted(held.count, "gap"), format_ns(held.longest_ns));
    let behind = match pauses.behind_peers_ns() {
        0 => String::new(),
        ns => format!(", {} of it behind communication", format_ns(ns)),
    };
    Some(Advice {
        says: format!(
            "{gpu} idles {idle} ({ratio}) of {window} in {gaps} before work that was launched already{behind}; the \
             longest takes {longest}."
        ),
        count: Some(held.count),
        gain: Some((held.total_ns, GainEstimate::Bound)),
        place: held.place(facts.trace),
        time: held.spans.clone(),
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_ms};

    #[test]
    fn launched_work_that_waits_is_said_beyond_a_tenth() {
        check(
            &drawn_ms("rank 0 launch 1 CDEF......\nrank 0 stream 7 .C..DD.E.FF"),
            "device.queue_wait",
            &[
                "4000 of 10000 bound high: GPU 0 idles 4.00 ms (40.0 %) of 10.0 ms in 3 gaps before work that was launched already; the longest takes 2.00 ms.",
            ],
        );
        // One gap is no habit.
        check(&drawn_ms("rank 0 launch 1 CD........\nrank 0 stream 7 .C....DDDDD"), "device.queue_wait", &[]);
        check(&drawn_ms("rank 0 launch 1 CD........\nrank 0 stream 7 ..CCCC.DDDDD"), "device.queue_wait", &[]);
    }
}

//! The device waits for the profiler: what was recorded is slower than the job.

use super::facts::{Facts, gpu, share_of_device};
use super::pauses::Pauses;
use super::{Advice, Judged, Priority, Rule};
use crate::idle::IdleCause;
use crate::temporal_breakdown::TemporalBreakdown;
use stepscope_base::units::{format_ns, format_ratio};

const THRESHOLD: f64 = 0.05;

pub(super) const RULE: Rule = Rule {
    code: "profiler.overhead",
    fault: "The recording itself takes time",
    disproof: "Steps are as long without recording.",
    evidence: "idle_causes",
    to_do: "Do not trust idle times of this recording. Record less: without `with_stack`, `profile_memory` and \
            `record_shapes`, few active steps after some of warm-up (`schedule(wait=…, warmup=…, active=…)`).",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    Ok(facts.pauses()?.filter_map(|(device, pauses)| of_device(facts, device, pauses)).collect())
}

/// Without a gain: the job itself does not have this time.
fn of_device(facts: &Facts, device: &TemporalBreakdown, pauses: &Pauses) -> Option<Advice> {
    let pause = pauses.of(IdleCause::ProfilerOverhead);
    let row = share_of_device(device, pause.total_ns, THRESHOLD)?;
    let (gpu, window) = (gpu(device.device), format_ns(device.span_ns));
    let (idle, ratio) = (format_ns(pause.total_ns), format_ratio(row.measured_ratio?));
    Some(Advice {
        priority: Priority::Medium,
        says: format!("{gpu} idles {idle} ({ratio}) of {window} because of the profiler: the job itself is faster."),
        count: Some(pause.count),
        place: pause.place(facts.trace),
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_ms};

    #[test]
    fn time_of_the_profiler_is_said_without_a_gain() {
        let drawing = |kernel: usize| {
            let kernel = "D".repeat(kernel);
            format!("rank 0 overhead 0 ..o\nrank 0 launch 1 C..D\nrank 0 stream 7 .C..{kernel}")
        };
        check(
            &drawn_ms(&drawing(6)),
            "profiler.overhead",
            &[
                "- of 9000 - medium: GPU 0 idles 1.00 ms (11.1 %) of 9.00 ms because of the profiler: the job itself is faster.",
            ],
        );
        check(&drawn_ms(&drawing(17)), "profiler.overhead", &[]);
    }
}

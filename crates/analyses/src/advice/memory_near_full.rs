//! A device's memory is nearly full at the peak.

use super::facts::{Facts, gpu};
use super::{Advice, Judged, Lacks, Place, Priority, Rule};
use crate::memory_summary::MemorySummary;
use stepscope_base::units::{format_bytes, format_ratio};

/// As the TensorBoard plugin of PyTorch's profiler.
const THRESHOLD: f64 = 0.90;

pub(super) const RULE: Rule = Rule {
    code: "memory.near_full",
    fault: "The memory of the device is nearly full",
    disproof: "The longest input leaves room.",
    evidence: "memory_peak",
    to_do: "Make room before a longer input ends the job: smaller batches with accumulated gradients, \
            `torch.utils.checkpoint`, 16-bit types, `zero_grad(set_to_none=True)`, optimizer state sharded (FSDP, \
            `ZeroRedundancyOptimizer`). `memory_peak` says who holds it.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let rows: Vec<&MemorySummary> = facts.device_memory()?.collect();
    if rows.iter().all(|row| row.memory_bytes.is_none()) {
        return Err(Lacks("the size of devices' memory is not known"));
    }
    Ok(rows.into_iter().filter_map(of_device).collect())
}

fn of_device(row: &MemorySummary) -> Option<Advice> {
    let memory_bytes = row.memory_bytes.filter(|bytes| *bytes > 0)?;
    let ratio = row.peak_bytes as f64 / memory_bytes as f64;
    let gpu = gpu(row.device?);
    (ratio > THRESHOLD).then(|| Advice {
        rank: Some(row.rank),
        device: row.device,
        priority: Priority::High,
        says: format!(
            "At the peak {} of the {} of {gpu} are allocated: {}.",
            format_bytes(row.peak_bytes),
            format_bytes(memory_bytes),
            format_ratio(ratio)
        ),
        measured_ratio: Some(ratio),
        threshold_ratio: Some(THRESHOLD),
        measured_bytes: Some(row.peak_bytes),
        place: Some(Place { start_ns: row.peak_ns, slice: None }),
        ..Advice::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_ms};

    #[test]
    fn a_peak_above_nine_tenths_of_the_device_is_said() {
        let mut trace = drawn_ms("rank 0 memory 1 abA");
        trace.devices[0].memory_bytes = Some(330);
        let says = "- of - - high: At the peak 300 B of the 330 B of GPU 0 are allocated: 90.9 %.";
        check(&trace, "memory.near_full", &[says]);
        trace.devices[0].memory_bytes = Some(334);
        check(&trace, "memory.near_full", &[]);
        trace.devices[0].memory_bytes = None;
        check(&trace, "memory.near_full", &[]);
    }
}

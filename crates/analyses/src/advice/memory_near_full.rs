//! A device's memory is nearly full at the peak.

use super::facts::{Facts, gpu};
use super::{Advice, Judged, Lacks, Place, Priority, Rule};
use crate::memory_summary::MemorySummary;
use stepscope_base::units::{format_bytes, format_ratio};

/// As the TensorBoard plugin of PyTorch's profiler.
const THRESHOLD: f64 = 0.90;
/// Below it there is room for larger batches, or for what would be computed twice.
const SPARE: f64 = 0.70;

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
        return Err(Lacks("the size of devices' memory is not known: `stepscope record` says it"));
    }
    Ok(rows.into_iter().filter_map(of_device).collect())
}

fn of_device(row: &MemorySummary) -> Option<Advice> {
    let (memory_bytes, ratio) = (row.memory_bytes?, row.ratio(Some(row.peak_bytes))?);
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

/// That a device of a rank has memory left at its peak, as a sentence with a space before it; else empty.
pub(super) fn spare_memory(facts: &Facts, rank: u32, device: Option<i64>) -> String {
    let rows = facts.device_memory().into_iter().flatten();
    let mut rows = rows.filter(|row| row.rank == rank && (device.is_none() || row.device == device));
    let says = |row: &MemorySummary| {
        let gpu = gpu(row.device?);
        let ratio = row.ratio(Some(row.peak_bytes)).filter(|ratio| *ratio < SPARE)?;
        Some(format!(" At the peak {} of the memory of {gpu} are allocated.", format_ratio(ratio)))
    };
    rows.next().and_then(says).unwrap_or_default()
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

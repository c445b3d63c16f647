//! The allocator holds much more of a device's memory than tensors use.

use super::facts::{Facts, gpu};
use super::{Advice, Judged, Lacks, Place, Priority, Rule};
use crate::memory_summary::MemorySummary;
use stepscope_base::units::{format_bytes, format_ratio};

/// Share of the reserve that nobody uses at the peak.
const THRESHOLD: f64 = 0.25;
/// Less is not worth a word.
const LEAST_BYTES: i64 = 1 << 30;
/// From this share of the device's memory on the reserve is a danger.
const DANGER: f64 = 0.80;

pub(super) const RULE: Rule = Rule {
    code: "memory.fragmentation",
    fault: "Much of the reserved memory is not used",
    disproof: "With `expandable_segments:True` the reserve is as large.",
    evidence: "memory_summary",
    to_do: "Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` (or `max_split_size_mb:…`), keep the sizes of \
            batches the same from step to step, and free large tensors before allocating larger ones.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let rows: Vec<&MemorySummary> = facts.device_memory()?.collect();
    if rows.iter().all(|row| row.reserved_bytes.is_none()) {
        return Err(Lacks("nothing is reported of reserved memory: `--memory` or `profile_memory=True` records it"));
    }
    Ok(rows.into_iter().filter_map(of_device).collect())
}

fn of_device(row: &MemorySummary) -> Option<Advice> {
    let unused_bytes = row.fragmentation_bytes()?;
    let reserved_bytes = row.reserved_bytes.filter(|bytes| *bytes > 0)?;
    let ratio = unused_bytes as f64 / reserved_bytes as f64;
    let of_device = row.memory_bytes.map(|bytes| reserved_bytes as f64 / bytes as f64);
    let gpu = gpu(row.device?);
    (unused_bytes >= LEAST_BYTES && ratio > THRESHOLD).then(|| Advice {
        rank: Some(row.rank),
        device: row.device,
        priority: if of_device.is_some_and(|ratio| ratio >= DANGER) { Priority::High } else { Priority::Low },
        says: format!(
            "When most is allocated on {gpu}, {}, the allocator holds {} and {} of that is unused: {}.",
            format_bytes(row.peak_bytes),
            format_bytes(reserved_bytes),
            format_ratio(ratio),
            format_bytes(unused_bytes)
        ),
        measured_ratio: Some(ratio),
        threshold_ratio: Some(THRESHOLD),
        measured_bytes: Some(unused_bytes),
        place: Some(Place { start_ns: row.peak_ns, slice: None }),
        ..Advice::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_ms};
    use stepscope_trace::Trace;

    fn held(gib: [i64; 2]) -> Trace {
        let mut trace = drawn_ms("rank 0 memory 1 a");
        let [allocated, reserved] = gib.map(|gib| Some(gib << 30));
        (trace.memory[0].allocated_bytes, trace.memory[0].reserved_bytes) = (allocated, reserved);
        trace.devices[0].memory_bytes = Some(16 << 30);
        trace
    }

    #[test]
    fn a_reserve_of_which_a_quarter_is_unused_is_said() {
        let says = |held| format!("When most is allocated on GPU 0, {held}");
        let low = "the allocator holds 4.00 GiB and 50.0 % of that is unused: 2.00 GiB.";
        check(&held([2, 4]), "memory.fragmentation", &[&format!("- of - - low: {}, {low}", says("2.00 GiB"))]);
        let high = "the allocator holds 15.0 GiB and 33.3 % of that is unused: 5.00 GiB.";
        check(&held([10, 15]), "memory.fragmentation", &[&format!("- of - - high: {}, {high}", says("10.0 GiB"))]);
        check(&held([3, 4]), "memory.fragmentation", &[]);
        check(&held([0, 0]), "memory.fragmentation", &[]);
    }
}

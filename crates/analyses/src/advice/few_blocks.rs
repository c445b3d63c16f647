//! Kernels have fewer blocks than the device has multiprocessors.

use super::facts::{Facts, gpu, share_of_device};
use super::kernel_work::KernelWork;
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Lacks, Rule};
use crate::gpu_utilization::{self, GpuUtilization};
use crate::temporal_breakdown::TemporalBreakdown;
use stepscope_base::units::{format_ns, format_ratio};

const THRESHOLD: f64 = 0.10;

pub(super) const RULE: Rule = Rule {
    code: "compute.few_blocks",
    fault: "Kernels fill only a part of the device",
    disproof: "Steps of twice the batch take twice as long.",
    evidence: "kernels",
    to_do: "Give each kernel more to do: larger batches, several small operations in one (`torch.bmm`, `torch.vmap`, \
            `foreach`), channels or heads together. Or run independent ones beside each other on streams of their own.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let rows: Vec<_> = facts.kernels()?.collect();
    if !rows.iter().any(|(_, work)| work.knows_blocks) {
        return Err(Lacks(
            "blocks of kernels or multiprocessors of devices are not known: `stepscope record` says them",
        ));
    }
    let is_suspect = |(device, work): &(&TemporalBreakdown, &KernelWork)| {
        share_of_device(device, work.unfilled_ns, THRESHOLD).is_some()
    };
    if !rows.iter().any(is_suspect) {
        return Ok(Vec::new());
    }
    let use_of_devices = gpu_utilization::rows(facts.of_devices);
    Ok(rows.into_iter().filter_map(|(device, work)| of_device(facts, device, work, &use_of_devices)).collect())
}

/// What a device could do more while it runs kernels: multiprocessors without a block, times the time.
fn empty_ns(device: &TemporalBreakdown, use_of_devices: &[GpuUtilization]) -> Option<i64> {
    let own = use_of_devices.iter().find(|row| (row.rank, row.device) == (device.rank, device.device))?;
    let filled_ns = (own.sm_efficiency_ratio? * own.span_ns as f64).round() as i64;
    Some((own.busy_ns - filled_ns).max(0))
}

fn of_device(
    facts: &Facts,
    device: &TemporalBreakdown,
    work: &KernelWork,
    use_of_devices: &[GpuUtilization],
) -> Option<Advice> {
    // What runs beside a small kernel fills the device too.
    let unfilled_ns = work.unfilled_ns.min(empty_ns(device, use_of_devices)?);
    let row = share_of_device(device, unfilled_ns, THRESHOLD).filter(|row| work.thin.is_habit(row))?;
    let (gpu, window) = (gpu(device.device), format_ns(device.span_ns));
    let (count, total) = (counted(work.thin.count, "kernel"), format_ns(work.thin.total_ns));
    let (unfilled, ratio) = (format_ns(unfilled_ns), format_ratio(row.measured_ratio?));
    let (kernel, kernel_ns) = work.thin.most(facts.trace)?;
    let kernel_time = format_ns(kernel_ns);
    Some(Advice {
        says: format!(
            "{gpu} spends {total} in {count} with fewer blocks than it has multiprocessors: spread over all of them, \
             the same work could take {unfilled} less, {ratio} of {window}. {kernel_time} are in {}.",
            quoted(kernel)
        ),
        count: Some(work.thin.count),
        gain: Some((unfilled_ns, GainEstimate::FullDevice)),
        place: work.thin.place(facts.trace),
        time: work.thin.saved(unfilled_ns),
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_ms, with_events};
    use stepscope_trace::Trace;

    /// On 10 multiprocessors: C has 4 blocks, E has 40.
    fn with_blocks(drawing: &str) -> Trace {
        with_events(drawn_ms(drawing), |name, event| {
            event.grid = Some(if name == "C" { [4, 1, 1] } else { [10, 4, 1] });
        })
    }

    #[test]
    fn multiprocessors_without_a_block_are_said_beyond_a_tenth_of_the_window() {
        check(
            &with_blocks("rank 0 stream 7 C|C|C|EEEEEEE"),
            "compute.few_blocks",
            &[
                "1800 of 10000 full_device high: GPU 0 spends 3.00 ms in 3 kernels with fewer blocks than it has multiprocessors: spread over all of them, the same work could take 1.80 ms less, 18.0 % of 10.0 ms. 3.00 ms are in `C`.",
            ],
        );
        check(&with_blocks("rank 0 stream 7 C|EEEEEEEEE"), "compute.few_blocks", &[]);
        // One kernel is no habit.
        check(&with_blocks("rank 0 stream 7 CCC|EEEEEEE"), "compute.few_blocks", &[]);
    }

    #[test]
    fn what_runs_beside_a_small_kernel_fills_the_device() {
        check(&with_blocks("rank 0 stream 7 C|C|C.......\nrank 0 stream 8 EEEEEEEEEE"), "compute.few_blocks", &[]);
    }
}

//! One process copies its model to several devices in every step.

use super::facts::Facts;
use super::{Advice, Judged, Priority, Rule};
use std::collections::BTreeSet;
use stepscope_trace::DataParallelism;

pub(super) const RULE: Rule = Rule {
    code: "parallel.data_parallel",
    fault: "DataParallel copies the model in every step",
    disproof: "Steps are as long with `DistributedDataParallel`.",
    evidence: "temporal_breakdown",
    to_do: "Use `torch.nn.parallel.DistributedDataParallel` with one process a device (`torchrun \
            --nproc-per-node=…`): it copies the model once, and reduces gradients while the backward pass runs.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let devices = facts.devices()?;
    let processes = facts.trace.processes.iter();
    let in_one = processes.filter(|process| process.data_parallelism == Some(DataParallelism::OneProcess));
    let in_one: BTreeSet<u32> = in_one.map(|process| process.rank).collect();
    let row = |rank: u32| {
        let count = devices.iter().filter(|device| device.rank == rank).count();
        (count > 1).then(|| Advice {
            rank: Some(rank),
            priority: Priority::High,
            says: format!(
                "`DataParallel` runs on {count} devices from one process: every step copies the model to all of them, \
                 and one Python interpreter launches the work of all."
            ),
            count: Some(count as i64),
            ..Advice::default()
        })
    };
    Ok(facts.ranks().iter().copied().filter(|rank| in_one.contains(rank)).filter_map(row).collect())
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_ms};
    use stepscope_trace::{DataParallelism, Trace};

    /// Of rank 0, with one device or two.
    fn data_parallel(has_two: bool) -> Trace {
        let mut trace = drawn_ms("rank 0 stream 7 AAA\nrank 1 stream 7 BBB");
        trace.devices[1].rank = if has_two { 0 } else { 1 };
        trace.devices[1].ordinal = 1;
        trace.processes[0].data_parallelism = Some(DataParallelism::OneProcess);
        trace
    }

    #[test]
    fn several_devices_of_one_process_are_said() {
        let says = "- of - - high: `DataParallel` runs on 2 devices from one process: every step copies the model to \
                    all of them, and one Python interpreter launches the work of all.";
        check(&data_parallel(true), "parallel.data_parallel", &[says]);
        check(&data_parallel(false), "parallel.data_parallel", &[]);
        let mut distributed = data_parallel(true);
        distributed.processes[0].data_parallelism = Some(DataParallelism::Distributed);
        check(&distributed, "parallel.data_parallel", &[]);
    }
}

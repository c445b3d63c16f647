//! Gradients are reduced through the host though the devices could do it among themselves.

use super::facts::Facts;
use super::{Advice, Judged, Lacks, Priority, Rule};
use stepscope_trace::{CommBackend, DataParallelism, Process};

/// What NCCL runs on.
const LEAST_CAPABILITY: (u32, u32) = (3, 5);

pub(super) const RULE: Rule = Rule {
    code: "comm.backend",
    fault: "Tensors of devices are communicated through the host",
    disproof: "Steps are as long with `nccl`.",
    evidence: "step_breakdown",
    to_do: "Use `torch.distributed.init_process_group(backend=\"nccl\")` for tensors on devices: their data then goes \
            from device to device.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let devices = facts.devices()?;
    let is_asked = |process: &&Process| facts.selection.has_rank(process.rank);
    let distributed = facts.trace.processes.iter().filter(is_asked);
    let known: Vec<(u32, CommBackend, Option<DataParallelism>)> = distributed
        .filter_map(|process| Some((process.rank, process.comm_backend?, process.data_parallelism)))
        .collect();
    if known.is_empty() {
        return Err(Lacks("no backend of communication is named"));
    }
    let could_use_nccl = |rank: u32| {
        let of_rank = devices.iter().filter(|device| device.rank == rank).filter_map(|device| facts.device(device));
        of_rank.filter_map(|device| device.compute_capability).any(|capability| capability >= LEAST_CAPABILITY)
    };
    let row = |(rank, backend, parallelism): (u32, CommBackend, Option<DataParallelism>)| {
        let name = match backend {
            CommBackend::Nccl => return None,
            CommBackend::Gloo => "Gloo",
            CommBackend::Mpi => "MPI",
        };
        (parallelism == Some(DataParallelism::Distributed) && could_use_nccl(rank)).then(|| Advice {
            rank: Some(rank),
            priority: Priority::High,
            says: format!(
                "`DistributedDataParallel` reduces gradients with {name}, though NCCL runs on these devices."
            ),
            ..Advice::default()
        })
    };
    Ok(known.into_iter().filter_map(row).collect())
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_ms};
    use stepscope_trace::{CommBackend, DataParallelism};

    #[test]
    fn gradients_through_the_host_are_said_where_nccl_runs() {
        let mut trace = drawn_ms("rank 0 stream 7 AA");
        (trace.processes[0].data_parallelism, trace.processes[0].comm_backend) =
            (Some(DataParallelism::Distributed), Some(CommBackend::Gloo));
        check(&trace, "comm.backend", &[]);
        trace.devices[0].compute_capability = Some((8, 0));
        let says = "- of - - high: `DistributedDataParallel` reduces gradients with Gloo, though NCCL runs on these \
                    devices.";
        check(&trace, "comm.backend", &[says]);
        trace.processes[0].comm_backend = Some(CommBackend::Nccl);
        check(&trace, "comm.backend", &[]);
    }
}

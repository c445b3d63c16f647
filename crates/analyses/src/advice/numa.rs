//! A process computes on one NUMA node and takes its memory from another.

use super::facts::Facts;
use super::loops::Loop;
use super::settings::settings;
use super::{Advice, Judged, Lacks, Priority, Rule};
use stepscope_trace::NumaNodes;

pub(super) const RULE: Rule = Rule {
    code: "host.remote_memory",
    fault: "All memory is that of another NUMA node",
    disproof: "Steps are as long with the memory of the node that computes.",
    evidence: "operators",
    to_do: "Bind the cores and the memory of a rank to the same node: `numactl --cpunodebind=0 --membind=0`, `--numa-binding` of \
            torchrun, `--mem-bind=local` of Slurm, or `cpuset.cpus` and `cpuset.mems` of the control group.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let loops = facts.loops()?;
    if loops.iter().all(|of| settings(facts, of).cores.is_none()) {
        return Err(Lacks("which NUMA nodes there are: `stepscope record` says it"));
    }
    Ok(loops.iter().filter_map(|of| of_loop(facts, of)).collect())
}

/// Without a gain: how much longer an access takes depends on the machine.
fn of_loop(facts: &Facts, of: &Loop) -> Option<Advice> {
    let NumaNodes { with_cores, of_cpus, of_memory } = settings(facts, of).numa_nodes?;
    // Nodes without cores have memory of another kind, which is chosen on purpose. Those with cores come first.
    let is_of_cores = of_memory.checked_shr(with_cores).unwrap_or(0) == 0;
    (is_of_cores && of_cpus & of_memory == 0).then(|| Advice {
        rank: Some(of.rank),
        priority: Priority::High,
        says: format!(
            "The thread that runs the {} steps may use the cores of {}, and memory is taken from {} only.",
            of.steps.len(),
            named(of_cpus),
            named(of_memory)
        ),
        ..Advice::default()
    })
}

fn named(nodes: u64) -> String {
    let numbers: Vec<String> = (0..64).filter(|node| nodes >> node & 1 == 1).map(|node| node.to_string()).collect();
    format!("NUMA node{} {}", if numbers.len() == 1 { "" } else { "s" }, numbers.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::{check, drawn_us};
    use stepscope_trace::Settings;

    #[test]
    fn memory_of_no_node_that_computes_is_said() {
        let says = |of_cpus, of_memory, expected: &[&str]| {
            let mut trace = drawn_us(&repeated(5, &[("cpu 1", "aaaaaaaaaab.c.d.e...")]), 100);
            let numa_nodes = Some(NumaNodes { with_cores: 4, of_cpus, of_memory });
            trace.processes[0].settings = Settings { cores: Some(8), numa_nodes, ..Settings::default() };
            check(&trace, "host.remote_memory", expected);
        };
        let remote = "- of - - high: The thread that runs the 5 steps may use the cores of NUMA node 0, and memory is taken from \
                      NUMA nodes 2, 3 only.";
        says(0b0001, 0b1100, &[remote]);
        says(0b0101, 0b1100, &[]);
        says(0b0001, 0b1111, &[]);
        // A node beyond those with cores.
        says(0b0001, 0b1_0000, &[]);
    }
}

//! Which processes have one clock.

use std::collections::BTreeMap;
use stepscope_trace::{ProcessId, Trace};

/// Processes that read the same clock: those of a host, or of a rank whose host is not known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Domain {
    /// The host; `None` when it is not known.
    pub host: Option<String>,
    /// The ranks of its processes, ascending, each once.
    pub ranks: Vec<u32>,
    /// Its processes.
    pub processes: Vec<ProcessId>,
}

impl Domain {
    /// What a person calls it.
    pub fn name(&self) -> String {
        match (&self.host, self.ranks.as_slice()) {
            (Some(host), _) => host.clone(),
            (None, [rank, ..]) => format!("rank {rank}"),
            (None, []) => String::new(),
        }
    }
}

/// The clocks of a trace, by their lowest rank and then by name.
pub fn domains(trace: &Trace) -> Vec<Domain> {
    let mut found: BTreeMap<(Option<&String>, Option<u32>), Domain> = BTreeMap::new();
    for (at, process) in trace.processes.iter().enumerate() {
        let rank = process.host.is_none().then_some(process.rank);
        let domain = found.entry((process.host.as_ref(), rank)).or_insert_with(|| Domain {
            host: process.host.clone(),
            ranks: Vec::new(),
            processes: Vec::new(),
        });
        domain.processes.push(ProcessId::from_index(at));
        domain.ranks.push(process.rank);
    }
    let mut domains: Vec<Domain> = found.into_values().collect();
    for domain in &mut domains {
        domain.ranks.sort_unstable();
        domain.ranks.dedup();
    }
    domains.sort_by(|a, b| (&a.ranks, &a.host).cmp(&(&b.ranks, &b.host)));
    domains
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn processes_of_a_host_have_one_clock_and_ranks_without_a_host_their_own() {
        let mut trace = drawn("rank 0 cpu 1 a\nrank 1 cpu 1 a\nrank 2 cpu 1 a\nrank 3 cpu 1 a");
        for process in &mut trace.processes {
            process.host = (process.rank % 2 == 1).then(|| "b".to_string());
        }
        let names = domains(&trace).into_iter().map(|domain| (domain.name(), domain.ranks)).collect::<Vec<_>>();
        let expected = [("rank 0", vec![0]), ("b", vec![1, 3]), ("rank 2", vec![2])];
        assert_eq!(names, expected.map(|(name, ranks)| (name.to_string(), ranks)));
    }
}

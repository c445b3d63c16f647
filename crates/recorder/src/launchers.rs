//! Which rank a process has, by the environment variables of what started it.

/// The variables of one launcher, or of launchers that agree. Of several for one value, the first that is a number
/// counts. All values of a process come from one family: under `srun torchrun …`, Slurm numbers the nodes' agents.
struct Family {
    /// None: the rank follows from the node, the size of a node, and the rank on it.
    rank: Option<&'static str>,
    world_size: &'static [&'static str],
    local_rank: &'static [&'static str],
    local_world_size: &'static [&'static str],
    node_rank: &'static [&'static str],
    restart_count: &'static [&'static str],
}

const NONE: Family =
    Family { rank: None, world_size: &[], local_rank: &[], local_world_size: &[], node_rank: &[], restart_count: &[] };

/// Lightning's own launcher, and scripts that set less.
const WITHOUT_RANK: Family = Family {
    world_size: &["WORLD_SIZE"],
    local_rank: &["LOCAL_RANK"],
    local_world_size: &["LOCAL_WORLD_SIZE", "LOCAL_SIZE"],
    node_rank: &["NODE_RANK", "JOB_COMPLETION_INDEX"],
    ..NONE
};

/// The first one that applies counts: the one that is closest to the program comes first.
const FAMILIES: [Family; 10] = [
    // torchrun, and what is like it. The node: torchrun; Ray and Composer; DeepSpeed, whose local size has a short name;
    // Kubernetes, of which an indexed job is a node each.
    Family {
        rank: Some("RANK"),
        node_rank: &["GROUP_RANK", "NODE_RANK", "CROSS_RANK", "JOB_COMPLETION_INDEX"],
        restart_count: &["TORCHELASTIC_RESTART_COUNT"],
        ..WITHOUT_RANK
    },
    WITHOUT_RANK,
    // Open MPI. Its NODE_RANK is no number of a node.
    Family {
        rank: Some("OMPI_COMM_WORLD_RANK"),
        world_size: &["OMPI_COMM_WORLD_SIZE"],
        local_rank: &["OMPI_COMM_WORLD_LOCAL_RANK"],
        local_world_size: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
        ..NONE
    },
    // What speaks PMIx to its processes.
    Family { rank: Some("PMIX_RANK"), ..NONE },
    // MPICH and Intel MPI; PALS names the local ones in its own way.
    Family {
        rank: Some("PMI_RANK"),
        world_size: &["PMI_SIZE"],
        local_rank: &["MPI_LOCALRANKID", "PMI_LOCAL_RANK"],
        local_world_size: &["MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"],
        ..NONE
    },
    // PALS has no variable for the world's size.
    Family {
        rank: Some("PALS_RANKID"),
        local_rank: &["PALS_LOCAL_RANKID"],
        local_world_size: &["PALS_LOCAL_SIZE"],
        node_rank: &["PALS_NODEID"],
        ..NONE
    },
    // MVAPICH2.
    Family {
        rank: Some("MV2_COMM_WORLD_RANK"),
        world_size: &["MV2_COMM_WORLD_SIZE"],
        local_rank: &["MV2_COMM_WORLD_LOCAL_RANK"],
        local_world_size: &["MV2_COMM_WORLD_LOCAL_SIZE"],
        ..NONE
    },
    // jsrun.
    Family {
        rank: Some("JSM_NAMESPACE_RANK"),
        world_size: &["JSM_NAMESPACE_SIZE"],
        local_rank: &["JSM_NAMESPACE_LOCAL_RANK"],
        ..NONE
    },
    // Flux.
    Family {
        rank: Some("FLUX_TASK_RANK"),
        world_size: &["FLUX_JOB_SIZE"],
        local_rank: &["FLUX_TASK_LOCAL_ID"],
        ..NONE
    },
    // Last: a shell in an allocation has the variables of rank 0, whatever it starts the ranks with.
    Family {
        rank: Some("SLURM_PROCID"),
        world_size: &["SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS"],
        local_rank: &["SLURM_LOCALID"],
        local_world_size: &["SLURM_NTASKS_PER_NODE"],
        node_rank: &["SLURM_NODEID"],
        ..NONE
    },
];

/// What a family says of a process.
#[derive(Clone, Copy, Default)]
struct Place {
    rank: Option<u32>,
    world_size: Option<u32>,
    local_rank: Option<u32>,
    local_world_size: Option<u32>,
    node_rank: Option<u32>,
    restart_count: Option<u32>,
}

/// What the launcher's variables say of a process, by the keys of its metadata: `rank`, `world_size`, `local_rank`,
/// `local_world_size`, `node_rank`, `restart_count`. What is not known is not listed, and so is a size that its rank
/// contradicts. `value_of` gives the value of an environment variable.
pub fn launcher_facts(value_of: impl Fn(&str) -> Option<String>) -> Vec<(&'static str, u32)> {
    let mut places = FAMILIES.iter().filter_map(|family| {
        let place = place_in(family, &value_of);
        let has_node = family.rank.is_none() && place.local_rank.is_some() && place.node_rank.is_some();
        (place.rank.is_some() || has_node).then_some(place)
    });
    let place = match places.next() {
        // A protocol, and not the launcher that speaks it.
        Some(first) if first.facts().count() == 1 => places.find(|next| next.rank == first.rank).unwrap_or(first),
        Some(first) => first,
        None => place_in(&WITHOUT_RANK, &value_of),
    };
    place.without_contradictions().facts().collect()
}

fn place_in(family: &Family, value_of: impl Fn(&str) -> Option<String>) -> Place {
    let number = |variable: &&str| {
        let value = value_of(variable)?;
        value.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.parse().ok()).flatten()
    };
    let first = |variables: &[&str]| variables.iter().find_map(number);
    let mut place = Place {
        rank: family.rank.as_ref().and_then(number),
        world_size: first(family.world_size),
        local_rank: first(family.local_rank),
        local_world_size: first(family.local_world_size),
        node_rank: first(family.node_rank),
        restart_count: first(family.restart_count),
    };
    if family.rank.is_none() {
        place.rank = place.rank_by_node();
    }
    place
}

impl Place {
    /// Nodes of one size are filled one after the other; on the first one the size does not matter.
    fn rank_by_node(&self) -> Option<u32> {
        let before = match self.node_rank? {
            0 => 0,
            node => node.checked_mul(self.local_world_size?)?,
        };
        before.checked_add(self.local_rank?)
    }

    fn without_contradictions(mut self) -> Self {
        let fits = |size: &u32, rank: Option<u32>| rank.is_none_or(|rank| rank < *size);
        self.world_size = self.world_size.filter(|size| *size > 0 && fits(size, self.rank));
        let most = self.world_size.unwrap_or(u32::MAX);
        self.local_world_size =
            self.local_world_size.filter(|size| (1..=most).contains(size) && fits(size, self.local_rank));
        self
    }

    fn facts(self) -> impl Iterator<Item = (&'static str, u32)> {
        let facts = [
            ("rank", self.rank),
            ("world_size", self.world_size),
            ("local_rank", self.local_rank),
            ("local_world_size", self.local_world_size),
            ("node_rank", self.node_rank),
            ("restart_count", self.restart_count),
        ];
        facts.into_iter().filter_map(|(key, value)| Some((key, value?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn environments_of_launchers_say_what_the_table_expects() {
        // Tests of Python read the same table.
        let table = include_str!("../tests/launchers.txt");
        let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut seen = 0;
        for line in lines {
            let (environment, expected) = line.split_once(" ->").expect(line);
            let environment: BTreeMap<&str, &str> = pairs(environment).collect();
            let facts = launcher_facts(|variable| environment.get(variable).map(|value| (*value).to_string()));
            let facts: Vec<String> = facts.iter().map(|(key, value)| format!("{key}={value}")).collect();
            assert_eq!(facts.join(" "), expected.trim(), "{line}");
            seen += 1;
        }
        assert!(seen > 20);
    }

    fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
        text.split_whitespace().filter_map(|word| word.split_once('='))
    }

    #[test]
    fn every_variable_is_in_the_table_of_environments() {
        let table = include_str!("../tests/launchers.txt");
        for family in &FAMILIES {
            let sizes = family.world_size.iter().chain(family.local_rank).chain(family.local_world_size);
            let variables = sizes.chain(family.node_rank).chain(family.restart_count).chain(&family.rank);
            for variable in variables {
                assert!(table.split([' ', '\n']).any(|word| word.starts_with(&format!("{variable}="))), "{variable}");
            }
        }
    }
}

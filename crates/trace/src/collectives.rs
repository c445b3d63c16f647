//! What a source says of collective communication: on the op that asks for it, or on the kernel that carries it out.

use crate::SliceId;
use serde::{Deserialize, Serialize};
use stepscope_base::{StringId, StringTable};

/// What a collective does with the data of its ranks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum CollectiveKind {
    /// All ranks get the reduction of all data.
    AllReduce,
    /// All ranks get all data.
    AllGather,
    /// Each rank gets its part of the reduction.
    ReduceScatter,
    /// Each rank gets its part of the data of each.
    AllToAll,
    /// Ranks wait for each other.
    Barrier,
    /// All ranks get the data of one.
    Broadcast,
    /// One rank gets the reduction of all data.
    Reduce,
    /// One rank gets all data.
    Gather,
    /// Each rank gets its part of the data of one.
    Scatter,
    /// To another rank.
    Send,
    /// From another rank.
    Receive,
    /// To or from another rank, or several of these at once: the source does not say which.
    PointToPoint,
}

impl CollectiveKind {
    /// Its name in tables, whatever the source calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::AllToAll => "all_to_all",
            Self::Barrier => "barrier",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::Send => "send",
            Self::Receive => "receive",
            Self::PointToPoint => "point_to_point",
        }
    }

    /// True for what goes from one rank to another.
    pub fn is_between_two(self) -> bool {
        matches!(self, Self::Send | Self::Receive | Self::PointToPoint)
    }

    /// True when as much goes in, and comes out, on every rank.
    pub fn has_equal_sizes(self) -> bool {
        matches!(self, Self::AllReduce | Self::AllGather | Self::ReduceScatter | Self::Broadcast | Self::Reduce)
    }

    /// True when no rank can be done before every rank has come: they all end at about the same moment.
    pub fn ends_together(self) -> bool {
        matches!(self, Self::AllReduce | Self::AllGather | Self::ReduceScatter | Self::AllToAll | Self::Barrier)
    }
}

/// One statement about a collective, by one slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Collective {
    /// The op or kernel that says it.
    pub slice: SliceId,
    /// `allreduce`, `all_gather` …; empty when not told.
    pub name: StringId,
    /// What it does, decided by the reader; `None` when its name is not told or not known.
    pub kind: Option<CollectiveKind>,
    /// Element type as the source writes it: `Float`, `BFloat16`; empty when not told.
    pub dtype: StringId,
    /// Elements that go in.
    pub input_elements: Option<i64>,
    /// Elements that come out.
    pub output_elements: Option<i64>,
    /// How the input is split among the ranks, as text: `[1, 2]`; `[]` when it is not; empty when not told.
    pub input_split_sizes: StringId,
    /// How the output is split.
    pub output_split_sizes: StringId,
    /// The group's name.
    pub group: StringId,
    /// What the group is for: `default_pg`, `mesh_dp`.
    pub group_description: StringId,
    /// Ranks in the group.
    pub group_size: Option<i64>,
    /// The group's ranks as text: `[0, 1]`.
    pub group_ranks: StringId,
    /// The rank within the group; from one rank to another that of the other side.
    pub group_rank: Option<i64>,
    /// Where it comes from, as a rank of the job.
    pub source_rank: Option<i64>,
    /// Where it goes to, as a rank of the job.
    pub destination_rank: Option<i64>,
    /// Whether the caller goes on before it is done.
    pub is_async: Option<bool>,
    /// Number of the collective within its group.
    pub sequence_number: Option<i64>,
}

impl Collective {
    /// True for what goes from one rank to another.
    pub fn is_between_two(&self) -> bool {
        self.kind.is_some_and(CollectiveKind::is_between_two)
    }

    /// True when it says which group it is of, by name or by ranks.
    pub fn states_group(&self) -> bool {
        self.group != StringTable::EMPTY || self.group_ranks != StringTable::EMPTY
    }
}

/// A list of numbers as sources write it: `[0, 1]`. `None` when there are none, or not all of them are there.
pub fn listed<T: std::str::FromStr>(text: &str) -> Option<Vec<T>> {
    let numbers = text.strip_prefix('[')?.strip_suffix(']')?.split(',');
    numbers.map(|number| number.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_known_when_all_of_it_is() {
        assert_eq!(listed("[0, 1,12]"), Some(vec![0_u32, 1, 12]));
        for text in ["", "[]", "[0, 1, ..., 127]", "[0, 1", "0, 1"] {
            assert_eq!(listed::<u32>(text), None, "{text}");
        }
    }
}

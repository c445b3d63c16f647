//! What a source says of collective communication: on the op that asks for it, or on the kernel that carries it out.

use crate::SliceId;
use stepscope_base::StringId;

/// One statement about a collective, by one slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Collective {
    /// The op or kernel that says it.
    pub slice: SliceId,
    /// `allreduce`, `all_gather` …; empty when not told.
    pub name: StringId,
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

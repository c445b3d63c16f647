//! What slices of some names do beyond their kind.

use crate::{SliceId, SliceKind, Trace};
use serde::{Deserialize, Serialize};
use stepscope_base::StringId;

/// What a slice does beyond its kind. Decided once, by the reader; analyses ask [`Trace::role`], never names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum SliceRole {
    /// An op in which the host waits for a collective that it has asked for.
    CollectiveWait,
    /// Python collects its garbage.
    GarbageCollection,
    /// A call of a device's API that takes memory from the device or gives it back, and may wait for all its work.
    DeviceAllocation,
    /// A label within which the program computes, of a source that records no operators.
    Compute,
    /// A label within which the program reads or prepares samples.
    Reader,
    /// A function of Python that writes a checkpoint.
    CheckpointWrite,
    /// The forward pass of a model whose gradients `DistributedDataParallel` reduces.
    DistributedForward,
    /// `DistributedDataParallel` searches a graph for parameters that it does not use.
    ParameterSearch,
    /// Parameters that are sharded over ranks are gathered, as FSDP and ZeRO 3 label it.
    ParameterGather,
    /// `torch.compile` compiles.
    Compilation,
    /// Code that `torch.compile` has made of a function or of a part of it runs, with what it calls.
    CompiledRegion,
}

impl SliceRole {
    /// Whether slices of a kind can have it.
    fn is_of(self, kind: SliceKind) -> bool {
        match self {
            Self::CollectiveWait => kind == SliceKind::Op,
            Self::GarbageCollection => !kind.is_device_event(),
            Self::DeviceAllocation => kind.is_api_call(),
            Self::Compute | Self::Reader => kind == SliceKind::Annotation,
            Self::CheckpointWrite => kind == SliceKind::PythonFunction,
            Self::DistributedForward
            | Self::ParameterSearch
            | Self::ParameterGather
            | Self::Compilation
            | Self::CompiledRegion => {
                matches!(kind, SliceKind::Op | SliceKind::Annotation)
            }
        }
    }
}

impl Trace {
    /// What a slice does beyond its kind; `None` for most.
    pub fn role(&self, slice: SliceId) -> Option<SliceRole> {
        let name: StringId = self.slices.name[slice.index()];
        let at = self.roles.binary_search_by_key(&name, |(name, _)| *name).ok()?;
        Some(self.roles[at].1).filter(|role| role.is_of(self.slices.kind(slice)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::drawn;
    use crate::merge;

    /// A drawing whose names `w`, `g` and `m` have a role.
    fn with_roles(drawing: &str) -> Trace {
        let mut trace = drawn(drawing);
        let roles = [SliceRole::CollectiveWait, SliceRole::GarbageCollection, SliceRole::DeviceAllocation];
        trace.roles = ["w", "g", "m"].map(|name| trace.strings.intern(name)).into_iter().zip(roles).collect();
        trace.roles.sort_unstable();
        trace
    }

    fn found(trace: &Trace) -> Vec<(u32, &str, SliceRole)> {
        let row = |id: SliceId| {
            Some((trace.rank_of_track(trace.slices.track[id.index()]), trace.slice_name(id), trace.role(id)?))
        };
        trace.slices.ids().filter_map(row).collect()
    }

    #[test]
    fn a_name_has_a_role_where_the_kind_fits_also_when_traces_are_merged() {
        let trace = with_roles("rank 0 cpu 1 a.w.m\nrank 0 launch 2 m.w\nrank 0 python 3 g");
        let of_rank_0 = [
            (0, "w", SliceRole::CollectiveWait),
            (0, "m", SliceRole::DeviceAllocation),
            (0, "g", SliceRole::GarbageCollection),
        ];
        assert_eq!(found(&trace), of_rank_0);
        let other = with_roles("rank 1 cpu 1 b.g");
        let merged = merge("both".into(), vec![(trace, 0), (other, 0)], None);
        let of_rank_1 = (1, "g", SliceRole::GarbageCollection);
        assert_eq!(found(&merged), [&of_rank_0[..], &[of_rank_1]].concat());
        assert!(merged.roles.is_sorted() && merged.roles.len() == 3);
    }
}

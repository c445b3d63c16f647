//! What our own recorder says of collectives.

use stepscope_base::StringTable;
use stepscope_capture::collectives::value;
use stepscope_capture::{Capture, CollectiveOf};
use stepscope_trace::{Collective, CollectiveKind, SliceId, TraceBuilder};

/// Adds what an event says of the collective that it is.
pub(crate) fn add(recorded: CollectiveOf, capture: &Capture, slice: SliceId, builder: &mut TraceBuilder) {
    let description = capture.names.get(recorded.description as usize).map_or("", String::as_str);
    let described = describe(description, &mut builder.strings);
    builder.add_collective(Collective { slice, sequence_number: recorded.sequence_number, ..described });
}

/// The collective that is described so, on no slice yet.
pub(crate) fn describe(description: &str, strings: &mut StringTable) -> Collective {
    let number = |key: &str| value(description, key).and_then(|text| text.parse().ok());
    let kind = value(description, "name").and_then(kind_of);
    let mut text = |key: &str| strings.intern(value(description, key).unwrap_or_default());
    Collective {
        slice: SliceId(0),
        name: text("name"),
        kind,
        dtype: text("dtype"),
        input_elements: number("input_elements"),
        output_elements: number("output_elements"),
        input_split_sizes: text("input_split_sizes"),
        output_split_sizes: text("output_split_sizes"),
        group: text("group"),
        group_description: text("group_description"),
        group_size: number("group_size"),
        group_ranks: text("group_ranks"),
        group_rank: number("rank"),
        source_rank: number("source_rank"),
        destination_rank: number("destination_rank"),
        is_async: value(description, "is_async").and_then(|text| text.parse().ok()),
        sequence_number: None,
    }
}

/// Words of names, without underscores, in the order in which they are looked for: `gather` is part of `allgather`.
const KINDS: [(&str, CollectiveKind); 11] = [
    ("allreduce", CollectiveKind::AllReduce),
    ("allgather", CollectiveKind::AllGather),
    ("reducescatter", CollectiveKind::ReduceScatter),
    ("alltoall", CollectiveKind::AllToAll),
    ("barrier", CollectiveKind::Barrier),
    ("broadcast", CollectiveKind::Broadcast),
    ("gather", CollectiveKind::Gather),
    ("scatter", CollectiveKind::Scatter),
    ("reduce", CollectiveKind::Reduce),
    ("send", CollectiveKind::Send),
    ("recv", CollectiveKind::Receive),
];

/// What a collective of this name does: `_allgather_base`, `all_reduce_coalesced`, `ReduceScatter`.
pub(crate) fn kind_of(name: &str) -> Option<CollectiveKind> {
    let name: String = name.to_lowercase().split('_').collect();
    KINDS.iter().find(|(word, _)| name.contains(word)).map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_backends_and_operators_say_what_a_collective_does() {
        let names = [
            ("allreduce", Some(CollectiveKind::AllReduce)),
            ("all_reduce_coalesced", Some(CollectiveKind::AllReduce)),
            ("_allgather_base", Some(CollectiveKind::AllGather)),
            ("all_gather_into_tensor", Some(CollectiveKind::AllGather)),
            ("_reduce_scatter_base", Some(CollectiveKind::ReduceScatter)),
            ("all_to_allv", Some(CollectiveKind::AllToAll)),
            ("alltoall_base", Some(CollectiveKind::AllToAll)),
            ("barrier", Some(CollectiveKind::Barrier)),
            ("broadcast", Some(CollectiveKind::Broadcast)),
            ("_reduce_oop", Some(CollectiveKind::Reduce)),
            ("gather", Some(CollectiveKind::Gather)),
            ("scatter", Some(CollectiveKind::Scatter)),
            ("recv_any_source", Some(CollectiveKind::Receive)),
            ("wait", None),
            ("", None),
        ];
        names.iter().for_each(|(name, kind)| assert_eq!(kind_of(name), *kind, "{name}"));
    }
}

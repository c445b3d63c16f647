//! What our own recorder says of collectives.

use stepscope_base::StringTable;
use stepscope_capture::collectives::value;
use stepscope_capture::{Capture, CollectiveOf};
use stepscope_trace::{Collective, CollectiveKind, SliceId, TraceBuilder, listed};

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

/// What stands before a collective's name in the operators of backends, longest first, with a real name each.
const BACKENDS: [(&str, &str); 6] = [
    ("oneccl_bindings_for_pytorch::xpu::", "oneccl_bindings_for_pytorch::xpu::allreduce"),
    ("oneccl_bindings_for_pytorch::cpu::", "oneccl_bindings_for_pytorch::cpu::_allgather_base"),
    ("oneccl_bindings_for_pytorch::", "oneccl_bindings_for_pytorch::allreduce"),
    ("nccl:", "nccl:all_reduce"),
    ("gloo:", "gloo:all_reduce"),
    ("xccl:", "xccl:all_reduce"),
];

/// The collective that an operator of this name is, as the backend calls it, and what it does. `None` for other names, also
/// for parts of a collective that another operator is: `oneccl_bindings_for_pytorch::wait::cpu::allreduce`.
pub(crate) fn of_backend(operator: &str) -> Option<(&str, CollectiveKind)> {
    let name = BACKENDS.iter().find_map(|(before, _)| operator.strip_prefix(before))?;
    // From one rank to another, NCCL's names have both: `send 0->1`.
    let name = name.split(' ').next().filter(|name| !name.contains(':'))?;
    Some((name, kind_of(name)?))
}

/// Type and number of elements of an operator's only input, from shapes and types as written: `[[64, 3]]`, `["float"]`.
/// `None` where there are several, or the type is not known.
pub(crate) fn only_input(dims: &str, types: &str) -> Option<(&'static str, i64)> {
    let dims: Vec<i64> = listed(inside(dims)?)?;
    let name = inside(types)?.strip_prefix('"')?.strip_suffix('"')?;
    let (_, dtype) = DTYPES.iter().find(|(written, _)| *written == name)?;
    let elements = dims.into_iter().try_fold(1_i64, |all, size| all.checked_mul(size).filter(|all| *all >= 0))?;
    Some((dtype, elements))
}

/// What a list holds.
fn inside(list: &str) -> Option<&str> {
    Some(list.trim().strip_prefix('[')?.strip_suffix(']')?.trim())
}

/// Types of inputs, as compilers name them, and how collectives name them.
const DTYPES: [(&str, &str); 12] = [
    ("float", "Float"),
    ("double", "Double"),
    ("c10::Half", "Half"),
    ("c10::BFloat16", "BFloat16"),
    ("long int", "Long"),
    ("long", "Long"),
    ("int", "Int"),
    ("short int", "Short"),
    ("short", "Short"),
    ("signed char", "Char"),
    ("unsigned char", "Byte"),
    ("bool", "Bool"),
];

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
    #[test]
    fn an_operator_of_a_backend_is_a_collective_by_its_name() {
        for (before, operator) in BACKENDS {
            assert_eq!(of_backend(operator).map(|(name, _)| name), operator.strip_prefix(before), "{operator}");
        }
        assert_eq!(of_backend("nccl:send 0->1"), Some(("send", CollectiveKind::Send)));
        let others = [
            "oneccl_bindings_for_pytorch::wait::cpu::allreduce",
            "oneccl_bindings_for_pytorch::cpu_work::allreduce",
            "oneccl_bindings_for_pytorch::xpu::get_ccl_comms",
            "oneccl_bindings_for_pytorch::xpu::coalescing",
            "c10d::allreduce_",
            "nccl:",
            "aten::gather",
        ];
        others.iter().for_each(|operator| assert_eq!(of_backend(operator), None, "{operator}"));
    }

    #[test]
    fn the_only_input_is_what_goes_in() {
        assert_eq!(only_input("[[64, 3]]", r#"["float"]"#), Some(("Float", 192)));
        assert_eq!(only_input("[ [5] ]", r#"[ "c10::BFloat16" ]"#), Some(("BFloat16", 5)));
        let unknown = [
            ("[[1], [2]]", r#"["float", "float"]"#),
            ("[[[1], [2]]]", r#"["TensorList"]"#),
            ("[[64, 3]]", r#"["Tensor"]"#),
            ("[[64, -3]]", r#"["float"]"#),
            ("[[9223372036854775807, 2]]", r#"["float"]"#),
            ("[]", "[]"),
            ("", ""),
        ];
        unknown.iter().for_each(|(dims, types)| assert_eq!(only_input(dims, types), None, "{dims}"));
    }
}

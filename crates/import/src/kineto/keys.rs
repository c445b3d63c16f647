//! The keys that mean something here, of rows and of their arguments.

/// What a key's value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Key {
    Phase,
    Category,
    Name,
    Pid,
    Tid,
    Time,
    Duration,
    Id,
    Args,
    /// For rows of phase `M`: the name given.
    GivenName,
    Stream,
    Device,
    Correlation,
    SequenceNumber,
    ForwardThread,
    Grid,
    Block,
    Registers,
    SharedMemory,
    BlocksPerSm,
    Occupancy,
    Bytes,
    CopyKind,
    Graph,
    GraphNode,
    InputDims,
    InputType,
    InputStrides,
    ConcreteInputs,
    CallStack,
    Address,
    DeviceType,
    DeviceId,
    TotalAllocated,
    TotalReserved,
    SyncKind,
    WaitOnStream,
    WaitOnRecord,
    CollectiveName,
    Dtype,
    InElements,
    OutElements,
    Group,
    GroupDescription,
    GroupRanks,
    GroupSize,
    Seq,
    /// What our own export says in words.
    Words,
    /// Nothing known.
    Other,
}

impl Key {
    /// True for what an operator was called with.
    #[inline(always)]
    pub(super) fn is_input(self) -> bool {
        matches!(self, Self::InputDims | Self::InputType | Self::InputStrides | Self::ConcreteInputs)
    }
}

/// Which key of a row this is; as written, since no profiler writes them otherwise.
pub(super) fn of_row(key: &[u8]) -> Key {
    match key {
        b"ph" => Key::Phase,
        b"cat" => Key::Category,
        b"name" => Key::Name,
        b"pid" => Key::Pid,
        b"tid" => Key::Tid,
        b"ts" => Key::Time,
        b"dur" => Key::Duration,
        b"id" => Key::Id,
        b"args" => Key::Args,
        _ => Key::Other,
    }
}

/// The arguments, in lower case.
const ARGS: &[(&str, Key)] = &[
    ("name", Key::GivenName),
    ("stream", Key::Stream),
    ("device", Key::Device),
    ("correlation", Key::Correlation),
    ("sequence number", Key::SequenceNumber),
    ("fwd thread id", Key::ForwardThread),
    ("grid", Key::Grid),
    ("block", Key::Block),
    ("registers per thread", Key::Registers),
    ("shared memory", Key::SharedMemory),
    ("blocks per sm", Key::BlocksPerSm),
    ("est. achieved occupancy %", Key::Occupancy),
    ("bytes", Key::Bytes),
    ("copy kind", Key::CopyKind),
    ("kind", Key::CopyKind),
    ("graph id", Key::Graph),
    ("graph node id", Key::GraphNode),
    ("input dims", Key::InputDims),
    ("input type", Key::InputType),
    ("input strides", Key::InputStrides),
    ("concrete inputs", Key::ConcreteInputs),
    ("call stack", Key::CallStack),
    ("addr", Key::Address),
    ("device type", Key::DeviceType),
    ("device id", Key::DeviceId),
    ("total allocated", Key::TotalAllocated),
    ("total reserved", Key::TotalReserved),
    ("cuda_sync_kind", Key::SyncKind),
    ("wait_on_stream", Key::WaitOnStream),
    ("wait_on_cuda_event_record_corr_id", Key::WaitOnRecord),
    ("collective name", Key::CollectiveName),
    ("dtype", Key::Dtype),
    ("in msg nelems", Key::InElements),
    ("out msg nelems", Key::OutElements),
    ("process group name", Key::Group),
    ("process group description", Key::GroupDescription),
    ("process group ranks", Key::GroupRanks),
    ("group size", Key::GroupSize),
    ("seq", Key::Seq),
    ("stepscope", Key::Words),
];

/// Which argument `key` is; upper and lower case are the same.
pub(super) fn of_args(key: &[u8]) -> Key {
    let known = ARGS.iter().find(|(name, _)| name.len() == key.len() && key.eq_ignore_ascii_case(name.as_bytes()));
    known.map_or(Key::Other, |(_, key)| *key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_known_in_any_case_and_listed_once() {
        assert_eq!((of_args(b"External id"), of_args(b"Input Dims")), (Key::Other, Key::InputDims));
        for (at, (name, key)) in ARGS.iter().enumerate() {
            assert_eq!(of_args(name.to_ascii_uppercase().as_bytes()), *key);
            assert!(ARGS[..at].iter().all(|(other, _)| other != name), "{name}");
        }
    }
}

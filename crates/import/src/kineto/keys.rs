//! The keys that mean something here, of rows and of their arguments.

/// What a key's value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Key {
    Phase,
    Category,
    Pid,
    Tid,
    Time,
    Duration,
    Args,
    Integer(Integer),
    Text(Text),
    Input(Input),
    Size(Size),
    Fraction(Fraction),
    /// Nothing known.
    Other,
}

/// What is an integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Integer {
    /// The row's own id: it joins the two ends of an arrow.
    Id,
    /// The row's own frame: it names one of `stackFrames`.
    StackFrame,
    Stream,
    Device,
    Context,
    Correlation,
    SequenceNumber,
    ForwardThread,
    Registers,
    SharedMemory,
    Bytes,
    Graph,
    GraphNode,
    Address,
    DeviceType,
    DeviceId,
    TotalAllocated,
    TotalReserved,
    WaitOnStream,
    WaitOnRecord,
    InElements,
    OutElements,
    GroupSize,
    GroupRank,
    SourceRank,
    DestinationRank,
    IsAsync,
    Seq,
    /// What our own export says of a sample: how long its thread ran since the one before …
    RanNs,
    /// … and could have run and did not.
    RunnableNs,
}

impl Integer {
    pub(super) const COUNT: usize = Self::RunnableNs as usize + 1;
}

/// What is a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Text {
    /// The row's own name.
    Name,
    /// For rows of phase `M`: the name given.
    GivenName,
    CopyKind,
    CallStack,
    SyncKind,
    CollectiveName,
    Dtype,
    Group,
    GroupDescription,
    GroupRanks,
    InSplits,
    OutSplits,
    /// What our own export says in words.
    Words,
    /// Where a module is in the one that calls it, as our own export says.
    ModulePlace,
}

impl Text {
    pub(super) const COUNT: usize = Self::ModulePlace as usize + 1;
}

/// What an operator was called with: lists of JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Input {
    Dims,
    Types,
    Strides,
    Concrete,
}

/// A launch's size in three dimensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Size {
    Grid,
    Block,
}

/// What may have a fraction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fraction {
    BlocksPerSm,
    /// In percent.
    Occupancy,
}

/// Which key of a row this is; as written, since no profiler writes them otherwise.
pub(super) fn of_row(key: &[u8]) -> Key {
    match key {
        b"ph" => Key::Phase,
        b"cat" => Key::Category,
        b"name" => Key::Text(Text::Name),
        b"pid" => Key::Pid,
        b"tid" => Key::Tid,
        b"ts" => Key::Time,
        b"dur" => Key::Duration,
        b"id" => Key::Integer(Integer::Id),
        b"sf" => Key::Integer(Integer::StackFrame),
        b"args" => Key::Args,
        _ => Key::Other,
    }
}

/// The arguments, in lower case.
const ARGS: &[(&str, Key)] = &[
    ("name", Key::Text(Text::GivenName)),
    ("stream", Key::Integer(Integer::Stream)),
    ("device", Key::Integer(Integer::Device)),
    ("context", Key::Integer(Integer::Context)),
    ("correlation", Key::Integer(Integer::Correlation)),
    ("sequence number", Key::Integer(Integer::SequenceNumber)),
    ("fwd thread id", Key::Integer(Integer::ForwardThread)),
    ("grid", Key::Size(Size::Grid)),
    ("block", Key::Size(Size::Block)),
    ("registers per thread", Key::Integer(Integer::Registers)),
    ("shared memory", Key::Integer(Integer::SharedMemory)),
    ("blocks per sm", Key::Fraction(Fraction::BlocksPerSm)),
    ("est. achieved occupancy %", Key::Fraction(Fraction::Occupancy)),
    ("bytes", Key::Integer(Integer::Bytes)),
    ("copy kind", Key::Text(Text::CopyKind)),
    ("kind", Key::Text(Text::CopyKind)),
    ("graph id", Key::Integer(Integer::Graph)),
    ("graph node id", Key::Integer(Integer::GraphNode)),
    ("input dims", Key::Input(Input::Dims)),
    ("input type", Key::Input(Input::Types)),
    ("input strides", Key::Input(Input::Strides)),
    ("concrete inputs", Key::Input(Input::Concrete)),
    ("call stack", Key::Text(Text::CallStack)),
    ("addr", Key::Integer(Integer::Address)),
    ("device type", Key::Integer(Integer::DeviceType)),
    ("device id", Key::Integer(Integer::DeviceId)),
    ("total allocated", Key::Integer(Integer::TotalAllocated)),
    ("total reserved", Key::Integer(Integer::TotalReserved)),
    ("cuda_sync_kind", Key::Text(Text::SyncKind)),
    ("wait_on_stream", Key::Integer(Integer::WaitOnStream)),
    ("wait_on_cuda_event_record_corr_id", Key::Integer(Integer::WaitOnRecord)),
    ("collective name", Key::Text(Text::CollectiveName)),
    ("dtype", Key::Text(Text::Dtype)),
    ("in msg nelems", Key::Integer(Integer::InElements)),
    ("out msg nelems", Key::Integer(Integer::OutElements)),
    ("process group name", Key::Text(Text::Group)),
    ("process group description", Key::Text(Text::GroupDescription)),
    ("process group ranks", Key::Text(Text::GroupRanks)),
    ("group size", Key::Integer(Integer::GroupSize)),
    ("in split size", Key::Text(Text::InSplits)),
    ("out split size", Key::Text(Text::OutSplits)),
    ("rank", Key::Integer(Integer::GroupRank)),
    ("src rank", Key::Integer(Integer::SourceRank)),
    ("dst rank", Key::Integer(Integer::DestinationRank)),
    ("is asynchronized op", Key::Integer(Integer::IsAsync)),
    ("seq", Key::Integer(Integer::Seq)),
    ("ran ns", Key::Integer(Integer::RanNs)),
    ("runnable ns", Key::Integer(Integer::RunnableNs)),
    ("stepscope", Key::Text(Text::Words)),
    ("stepscope module", Key::Text(Text::ModulePlace)),
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
        assert_eq!((of_args(b"External id"), of_args(b"Input Dims")), (Key::Other, Key::Input(Input::Dims)));
        for (at, (name, key)) in ARGS.iter().enumerate() {
            assert_eq!(of_args(name.to_ascii_uppercase().as_bytes()), *key);
            assert!(ARGS[..at].iter().all(|(other, _)| other != name), "{name}");
        }
    }
}

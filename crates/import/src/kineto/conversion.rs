//! Conversion of what an event says to what the trace keeps of it.

use super::categories::Category;
use super::entries::ChunkCollective;
use super::names::NameInfo;
use crate::collectives::{describe, kind_of, only_input};
use crate::labels::Label;
use std::borrow::Cow;
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{Collective, CollectiveKind, CopyDirection, DeviceEventClass, SliceId, SliceKind, SyncKind};

/// The kind that one of our own export's `words` says a host row is, where only a name would tell.
pub(super) fn kind_in_words(words: &[u8]) -> Option<SliceKind> {
    let kinds = [SliceKind::DataLoader, SliceKind::Optimizer, SliceKind::HostSync, SliceKind::Io];
    kinds.into_iter().find(|kind| has_word(words, kind.as_str()))
}

/// What a row on the host is. Old files have no category for labels: of their operators, those with a label's name are.
#[inline]
pub(super) fn host_kind(category: Category, info: &mut NameInfo, strings: &StringTable) -> SliceKind {
    match (category, info.label) {
        (Category::Op | Category::Annotation, Label::Step(_)) => SliceKind::Step,
        (Category::Op | Category::Annotation, Label::DataLoader) => SliceKind::DataLoader,
        (Category::Op | Category::Annotation, Label::Optimizer) => SliceKind::Optimizer,
        (Category::Op, _) => SliceKind::Op,
        (Category::Annotation, _) => SliceKind::Annotation,
        (Category::PythonFunction, _) if info.module.is_some() => SliceKind::Module,
        (Category::PythonFunction, _) => SliceKind::PythonFunction,
        (Category::Runtime | Category::Driver, _) if info.is_host_sync_call(strings) => SliceKind::HostSync,
        (Category::Runtime, _) => SliceKind::Runtime,
        (Category::Driver, _) => SliceKind::Driver,
        (Category::Overhead, _) => SliceKind::Overhead,
        _ => SliceKind::Other,
    }
}

/// True when `word` is one of our own export's `words`.
pub(super) fn has_word(words: &[u8], word: &str) -> bool {
    words.split(|byte| *byte == b' ').any(|found| found == word.as_bytes())
}

/// A JSON text without the white space between its values.
pub(super) fn compact(written: &[u8], strings: &mut StringTable) -> StringId {
    let (mut in_string, mut is_escaped) = (false, false);
    let has_space = written.iter().any(u8::is_ascii_whitespace);
    let kept: Cow<'_, [u8]> = if has_space {
        let keep = |byte: &&u8| {
            let is_kept = in_string || !byte.is_ascii_whitespace();
            in_string ^= **byte == b'"' && !is_escaped;
            is_escaped = in_string && **byte == b'\\' && !is_escaped;
            is_kept
        };
        Cow::Owned(written.iter().filter(keep).copied().collect())
    } else {
        Cow::Borrowed(written)
    };
    strings.intern(&String::from_utf8_lossy(&kept))
}

/// What the name of a kernel does not say, the builder adds: what the source itself calls a part of a collective, or
/// was launched within one. Of copies, `copy_kind` counts before the name.
pub(super) fn device_class(
    kind: SliceKind,
    name: &mut NameInfo,
    strings: &StringTable,
    copy_kind: &[u8],
) -> DeviceEventClass {
    match kind {
        SliceKind::Memcpy => {
            let direction = copy_direction(copy_kind);
            let is_known = direction != CopyDirection::Unknown;
            DeviceEventClass::Memcpy(if is_known { direction } else { name.copy(strings).direction })
        }
        SliceKind::Memset => DeviceEventClass::Memset,
        _ if name.kernel(strings).communicates => DeviceEventClass::Communication,
        _ => DeviceEventClass::Compute,
    }
}

/// Where a copy goes, from its kind or its name.
pub(super) fn copy_direction(text: &[u8]) -> CopyDirection {
    match () {
        () if has(text, "HtoD") || has(text, "HostToDevice") => CopyDirection::HostToDevice,
        () if has(text, "DtoH") || has(text, "DeviceToHost") => CopyDirection::DeviceToHost,
        () if has(text, "DtoD") || has(text, "DeviceToDevice") => CopyDirection::DeviceToDevice,
        () if has(text, "PtoP") || has(text, "PeerToPeer") => CopyDirection::PeerToPeer,
        () => CopyDirection::Unknown,
    }
}

/// Whether the host's side of a copy is pageable: `Memcpy HtoD (Pageable -> Device)`.
pub(super) fn is_pageable(name: &[u8]) -> Option<bool> {
    match () {
        () if has(name, "pageable") => Some(true),
        () if has(name, "pinned") => Some(false),
        () => None,
    }
}

fn has(text: &[u8], word: &str) -> bool {
    text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

/// The kind of a wait on a device's track; `text` is what the source calls it.
pub(super) fn synchronization_kind(text: &[u8]) -> SyncKind {
    match () {
        () if has(text, "wait event") => SyncKind::StreamWaitEvent,
        () if has(text, "context sync") || has(text, "device sync") => SyncKind::Device,
        () if has(text, "stream sync") => SyncKind::Stream,
        () if has(text, "event sync") => SyncKind::Event,
        () => SyncKind::Unknown,
    }
}

/// What a row says of a collective.
pub(super) fn collective(
    recorded: &ChunkCollective,
    texts: [StringId; 7],
    slice: SliceId,
    strings: &StringTable,
) -> Collective {
    let [name, dtype, group, group_description, group_ranks, input_split_sizes, output_split_sizes] = texts;
    Collective {
        slice,
        name,
        kind: kind_of(strings.get(name)),
        dtype,
        input_elements: recorded.input_elements,
        output_elements: recorded.output_elements,
        input_split_sizes,
        output_split_sizes,
        group,
        group_description,
        group_size: recorded.group_size,
        group_ranks,
        group_rank: recorded.group_rank,
        source_rank: recorded.source_rank,
        destination_rank: recorded.destination_rank,
        is_async: recorded.is_async,
        sequence_number: recorded.sequence_number,
    }
}

/// What an operator says of the collective that it is by its name, and by shapes and types of its inputs.
pub(super) fn collective_by_name(
    name: StringId,
    kind: CollectiveKind,
    inputs: Option<[&[u8]; 4]>,
    slice: SliceId,
    strings: &mut StringTable,
) -> Collective {
    let text = |written: &'_ [u8]| String::from_utf8_lossy(written).into_owned();
    let input = inputs.and_then(|[dims, types, ..]| only_input(&text(dims), &text(types)));
    let said = describe("", strings);
    let dtype = input.map_or(StringTable::EMPTY, |(dtype, _)| strings.intern(dtype));
    let input_elements = input.map(|(_, elements)| elements);
    Collective { slice, name, kind: Some(kind), dtype, input_elements, ..said }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_lose_their_white_space_but_not_in_strings() {
        let mut strings = StringTable::default();
        let mut check = |written: &str, expected: &str| {
            let id = compact(written.as_bytes(), &mut strings);
            assert_eq!(strings.get(id), expected);
        };
        check("[[64, 3],\n [], [[1, 2]]]", "[[64,3],[],[[1,2]]]");
        check(r#"["long int", "a \" b", ""]"#, r#"["long int","a \" b",""]"#);
        check("[]", "[]");
    }

    #[test]
    fn copies_say_where_they_go_and_from_what() {
        assert_eq!(copy_direction(b"Memcpy HtoD (Pageable -> Device)"), CopyDirection::HostToDevice);
        assert_eq!(is_pageable(b"Memcpy HtoD (Pageable -> Device)"), Some(true));
        assert_eq!(is_pageable(b"Memcpy DtoH (Device -> Pinned)"), Some(false));
        assert_eq!(is_pageable(b"Memcpy DtoD (Device -> Device)"), None);
    }
}

//! What our own recorder says of collectives.

use stepscope_base::StringTable;
use stepscope_capture::collectives::value;
use stepscope_capture::{Capture, CollectiveOf};
use stepscope_trace::{Collective, SliceId, TraceBuilder};

/// Adds what an event says of the collective that it is.
pub(crate) fn add(recorded: CollectiveOf, capture: &Capture, slice: SliceId, builder: &mut TraceBuilder) {
    let description = capture.names.get(recorded.description as usize).map_or("", String::as_str);
    let described = describe(description, &mut builder.strings);
    builder.add_collective(Collective { slice, sequence_number: recorded.sequence_number, ..described });
}

/// The collective that is described so, on no slice yet.
pub(crate) fn describe(description: &str, strings: &mut StringTable) -> Collective {
    let number = |key: &str| value(description, key).and_then(|text| text.parse().ok());
    let mut text = |key: &str| strings.intern(value(description, key).unwrap_or_default());
    Collective {
        slice: SliceId(0),
        name: text("name"),
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

//! Labels of the program, each told by its start and its end.

use super::entries::{MAX_TIME_US, Reader};
use crate::labels::{Label, label_kind};
use crate::pickle::Value;
use rustc_hash::FxHashMap;
use stepscope_base::StringId;
use stepscope_trace::{FindingCode, SliceId, SliceKind, TraceBuilder, TrackId};

/// The device that was current, and the name.
type Whose = (Option<i64>, StringId);

/// Adds them as slices on `track`; gives the time of the first.
pub(super) fn add(
    reader: &mut Reader<'_>,
    annotations: Option<Value>,
    track: TrackId,
    builder: &mut TraceBuilder,
) -> Option<i64> {
    // What is open, and since when.
    let mut open: FxHashMap<Whose, Vec<(SliceId, i64)>> = FxHashMap::default();
    let (mut first_ns, mut last_ns) = (None, 0);
    for (at, value) in reader.list_of(annotations, "external_annotations", builder).iter().enumerate() {
        let place = || format!("annotation {at}");
        let Some((key, is_start, time_ns)) = read(reader, *value) else {
            builder.findings.add(FindingCode::UnreadableEvent, place);
            continue;
        };
        last_ns = time_ns.max(last_ns);
        first_ns = Some(first_ns.unwrap_or(time_ns).min(time_ns));
        if is_start {
            let slice = begin(track, reader.plain.texts.get(key.1), time_ns, builder);
            open.entry(key).or_default().push((slice, time_ns));
        } else if let Some((slice, start_ns)) = open.get_mut(&key).and_then(Vec::pop) {
            builder.set_duration(slice, (time_ns - start_ns).max(0));
        } else {
            builder.findings.add(FindingCode::UnmatchedBegin, place);
        }
    }
    let mut unfinished: Vec<(SliceId, i64)> = open.into_values().flatten().collect();
    unfinished.sort_unstable();
    for (slice, start_ns) in unfinished {
        builder.set_duration(slice, last_ns - start_ns);
        builder.set_unfinished(slice);
        builder.findings.add(FindingCode::UnfinishedSlices, || format!("from {start_ns} ns"));
    }
    first_ns
}

/// Whose label it is, whether it begins, and when.
fn read(reader: &mut Reader<'_>, value: Value) -> Option<(Whose, bool, i64)> {
    let (dict, keys) = (reader.dict(value)?, reader.keys);
    let Some(Value::Text(name)) = reader.plain.get(dict, keys.name) else { return None };
    let Some(Value::Text(stage)) = reader.plain.get(dict, keys.stage) else { return None };
    let is_start = match reader.plain.texts.get(stage) {
        "START" => true,
        "END" => false,
        _ => return None,
    };
    let time_us = reader.integer(dict, keys.time_us).filter(|time_us| (0..=MAX_TIME_US).contains(time_us))?;
    Some(((reader.integer(dict, keys.device), name), is_start, time_us * 1_000))
}

fn begin(track: TrackId, name: &str, time_ns: i64, builder: &mut TraceBuilder) -> SliceId {
    let label = label_kind(name);
    let kind = match label {
        Label::Step(_) => SliceKind::Step,
        Label::DataLoader => SliceKind::DataLoader,
        Label::Optimizer => SliceKind::Optimizer,
        Label::Annotation | Label::Iteration(_) => SliceKind::Annotation,
    };
    let name = builder.strings.intern(name);
    let slice = builder.add_slice(track, kind, name, time_ns, 0);
    if let Label::Step(number) = label {
        builder.add_step_label(slice, number);
    }
    slice
}

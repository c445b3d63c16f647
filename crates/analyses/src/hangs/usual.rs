//! What most ranks call, and how one rank differs from it.

use super::entries::Entry;
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{Collective, CollectiveKind, Trace};

/// What must be the same on all ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Alike {
    name: StringId,
    kind: Option<CollectiveKind>,
    dtype: StringId,
    /// `None` where they may differ, or are not known.
    elements: [Option<i64>; 2],
}

impl Alike {
    fn of(said: &Collective) -> Self {
        let is_alike = said.kind.is_some_and(CollectiveKind::has_equal_sizes);
        let elements = if is_alike { [said.input_elements, said.output_elements] } else { [None; 2] };
        Self { name: said.name, kind: said.kind, dtype: said.dtype, elements }
    }
}

/// What most ranks call, of equally many the lowest.
pub(super) fn usual(entered: &[(u32, &Entry)]) -> Option<Alike> {
    let calls: Vec<Alike> = entered.iter().map(|(_, entry)| Alike::of(&entry.said)).collect();
    // By order of first calls, of which there are few.
    let mut counts: Vec<(Alike, usize)> = Vec::new();
    for call in calls {
        match counts.iter_mut().find(|(known, _)| *known == call) {
            Some((_, count)) => *count += 1,
            None => counts.push((call, 1)),
        }
    }
    counts.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(call, _)| call)
}

/// How what a rank calls differs from the usual, in words.
pub(super) fn difference(trace: &Trace, entry: &Entry, usual: &Alike) -> Option<String> {
    let own = Alike::of(&entry.said);
    let text = |id: StringId| trace.strings.get(id);
    let is_other = match (own.kind, usual.kind) {
        (Some(own), Some(usual)) => own != usual,
        _ => own.name != usual.name,
    };
    if is_other {
        return Some(format!("calls {}, not {}", text(own.name), text(usual.name)));
    }
    let is_known = own.dtype != StringTable::EMPTY && usual.dtype != StringTable::EMPTY;
    if is_known && own.dtype != usual.dtype {
        return Some(format!("carries {}, not {}", text(own.dtype), text(usual.dtype)));
    }
    let of_side = |side: usize, what: &str| {
        let (own, usual) = own.elements[side].zip(usual.elements[side])?;
        (own != usual).then(|| format!("has {own} elements {what}, not {usual}"))
    };
    of_side(0, "in").or_else(|| of_side(1, "out"))
}

//! What host ranges look like on a device: from the begin of the first to the end of the last event that was launched
//! inside them.
//!
//! ```text
//! host     ████ step 1 ████        modules, steps and outermost ops
//!           │   └───────────┐
//! device    └────▪▪▪▪ ▪▪▪ ▪▪▪      its launches run here …
//! drawn          └── step 1 ─┘     … and so does it
//! ```

use crate::items::Item;
use rustc_hash::FxHashMap;
use stepscope_trace::{DeviceId, SliceId, SliceKind, Trace};

/// What is drawn on devices.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Projection {
    /// Steps that are labelled.
    Steps,
    /// Calls of modules.
    Modules,
    /// Ops that no op contains.
    Ops,
}

impl Projection {
    pub(crate) const ALL: [Self; 3] = [Self::Steps, Self::Modules, Self::Ops];

    /// What a person calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Steps => "Steps",
            Self::Modules => "Modules",
            Self::Ops => "Operators",
        }
    }

    fn of(trace: &Trace, slice: SliceId) -> Option<Self> {
        match trace.slices.kind(slice) {
            SliceKind::Step => Some(Self::Steps),
            SliceKind::Module => Some(Self::Modules),
            SliceKind::Op => {
                let mut around = trace.slices.with_ancestors(slice).skip(1);
                around.all(|id| trace.slices.kind(id) != SliceKind::Op).then_some(Self::Ops)
            }
            _ => None,
        }
    }
}

/// What is drawn of each kind on each device: rows of items that do not overlap, what contains others above them.
pub(crate) fn projections(trace: &Trace) -> FxHashMap<(DeviceId, Projection), Vec<Vec<Item>>> {
    let mut hulls: FxHashMap<(DeviceId, SliceId), (i64, i64)> = FxHashMap::default();
    for event in trace.device_events.iter() {
        let Some(launch) = event.launch else { continue };
        let span = trace.slices.span(event.slice);
        for range in trace.slices.with_ancestors(launch).skip(1) {
            if matches!(trace.slices.kind(range), SliceKind::Step | SliceKind::Module | SliceKind::Op) {
                let hull = hulls.entry((event.device, range)).or_insert((span.start_ns, span.end_ns));
                *hull = (hull.0.min(span.start_ns), hull.1.max(span.end_ns));
            }
        }
    }
    let mut items: FxHashMap<(DeviceId, Projection), Vec<Item>> = FxHashMap::default();
    for ((device, slice), (start_ns, end_ns)) in hulls {
        let Some(projection) = Projection::of(trace, slice) else { continue };
        let name = trace.slices.name[slice.index()];
        let item = Item { start_ns, dur_ns: end_ns - start_ns, name, slice: Some(slice) };
        items.entry((device, projection)).or_default().push(item);
    }
    items.into_iter().map(|(of, items)| (of, without_overlaps(items))).collect()
}

/// Items in as many rows as it takes for none to overlap another; each in the first that has room.
pub(crate) fn without_overlaps(mut items: Vec<Item>) -> Vec<Vec<Item>> {
    items.sort_unstable_by_key(|item| (item.start_ns, std::cmp::Reverse(item.dur_ns), item.slice));
    let mut rows: Vec<Vec<Item>> = Vec::new();
    for item in items {
        let has_room = |row: &&mut Vec<Item>| row.last().is_some_and(|last| last.end_ns() <= item.start_ns);
        match rows.iter_mut().find(has_room) {
            Some(row) => row.push(item),
            None => rows.push(vec![item]),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;

    fn names(trace: &Trace, rows: &[Vec<Item>]) -> Vec<Vec<(String, i64, i64)>> {
        let summary = |item: &Item| (trace.strings.get(item.name).to_string(), item.start_ns, item.end_ns());
        rows.iter().map(|row| row.iter().map(summary).collect()).collect()
    }

    #[test]
    fn a_range_reaches_over_all_that_it_launched() {
        let trace = drawn(
            "rank 0 step     000000011111..
             rank 0 module 1 mmmmmm........
             rank 0 cpu 1    aaabbb..cc....
             rank 0 cpu 1    .x............
             rank 0 launch 1 .C.C|C...N.....
             rank 0 stream 7 ....CC|CC|CNN.",
        );
        let drawn = projections(&trace);
        let of = |projection| names(&trace, &drawn[&(DeviceId(0), projection)]);
        let row = |items: &[(&str, i64, i64)]| {
            vec![
                items
                    .iter()
                    .map(|(name, start, end)| (name.to_string(), start * 1_000, end * 1_000))
                    .collect::<Vec<_>>(),
            ]
        };
        // The launch of `a` lies inside of `x`, which is no outermost op.
        assert_eq!(of(Projection::Ops), row(&[("a", 4, 6), ("b", 6, 9), ("c", 9, 11)]));
        assert_eq!(of(Projection::Modules), row(&[("m", 4, 9)]));
        assert_eq!(of(Projection::Steps), row(&[("ProfilerStep#0", 4, 9), ("ProfilerStep#1", 9, 11)]));
    }

    #[test]
    fn what_overlaps_stands_below() {
        let item = |start_ns, dur_ns| Item { start_ns, dur_ns, name: stepscope_base::StringTable::EMPTY, slice: None };
        let rows = without_overlaps(vec![item(5, 2), item(0, 4), item(0, 8), item(4, 1), item(8, 1)]);
        assert_eq!(rows, [vec![item(0, 8), item(8, 1)], vec![item(0, 4), item(4, 1), item(5, 2)]]);
    }
}

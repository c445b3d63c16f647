//! Sums of events of one name.

use super::tree::Row;
use crate::event_source::ANY_STEP;
use crate::events::USER_SCOPE;
use crate::inputs::InputTexts;
use crate::{Average, Grouping, NO_ROW, NamedAverage};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use stepscope_capture::Capture;

/// Where a row comes from; of those that begin and end together, the order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Source {
    Event,
    Step,
    DeviceActivity,
    Annotation,
}

/// Where a row stands among all: start, end, source, and its number: on its thread, or among all activity records.
pub(super) type Place = (i64, Reverse<i64>, Source, u32);

/// What is added to a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    /// Index into the names that rows have.
    pub(super) name: u32,
    pub(super) scope: u8,
    /// True for what may end on another thread: it has no place in the tree, and no time of its own.
    pub(super) is_async: bool,
    /// Row of the capture's inputs, or [`NO_ROW`].
    pub(super) inputs: u32,
    pub(super) place: Place,
    pub(super) children_ns: i64,
    /// Time on devices of what was launched in it and in no child, and in its children.
    pub(super) own_device_ns: i64,
    pub(super) children_device_ns: i64,
}

impl Done {
    /// A row that has no place in the tree.
    pub(super) fn detached(row: &Row) -> Self {
        Self {
            name: row.name,
            scope: row.scope,
            is_async: true,
            inputs: row.inputs,
            place: (row.start_ns, Reverse(row.end_ns.max(row.start_ns)), row.source, row.number),
            children_ns: row.end_ns.max(row.start_ns) - row.start_ns,
            own_device_ns: 0,
            children_device_ns: 0,
        }
    }

    pub(super) fn dur_ns(&self) -> i64 {
        self.place.1.0 - self.place.0
    }
}

/// All rows of one name, and of one row of inputs where that matters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// The first one of them.
    pub(super) first: Done,
    pub(super) is_label: bool,
    pub(super) is_on_device: bool,
    pub(super) sums: Sums,
}

#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Sums {
    pub(super) count: i64,
    pub(super) total_ns: i64,
    pub(super) self_ns: i64,
    pub(super) device_ns: i64,
    pub(super) self_device_ns: i64,
}

/// The groups of a thread.
#[derive(Default, Debug)]
pub(super) struct Groups {
    groups: Vec<Group>,
    /// By name: that of operators, and that of labels.
    by_name: Vec<[u32; 2]>,
    by_inputs: FxHashMap<(u32, bool, u32), u32>,
    are_inputs_told_apart: bool,
}

impl Groups {
    pub(super) fn new(names: usize, are_inputs_told_apart: bool) -> Self {
        Self { by_name: vec![[NO_ROW; 2]; names], are_inputs_told_apart, ..Self::default() }
    }

    /// Adds a row. Parents come after their children.
    #[inline]
    pub(super) fn add(&mut self, done: &Done) {
        let is_label = done.scope == USER_SCOPE;
        let group = if self.are_inputs_told_apart {
            self.by_inputs.entry((done.name, is_label, done.inputs)).or_insert(NO_ROW)
        } else {
            &mut self.by_name[done.name as usize][usize::from(is_label)]
        };
        if *group == NO_ROW {
            *group = self.groups.len() as u32;
            self.groups.push(Group { first: *done, is_label, is_on_device: false, sums: Sums::default() });
        }
        let Group { first, sums, .. } = &mut self.groups[*group as usize];
        if done.place < first.place {
            *first = *done;
        }
        sums.count += 1;
        sums.total_ns += done.dur_ns();
        sums.self_ns += done.dur_ns() - done.children_ns;
        sums.device_ns += done.own_device_ns + done.children_device_ns;
        sums.self_device_ns += done.own_device_ns;
    }

    pub(super) fn into_groups(self) -> Vec<Group> {
        self.groups
    }
}

/// The groups of all threads and of devices, those of one text together, in order of the first row of each. Names of
/// rows are those of the capture, then that of all steps, then `texts`.
pub(super) fn in_order(
    lists: impl Iterator<Item = Vec<Group>>,
    capture: &Capture,
    texts: &[String],
    grouping: Grouping,
) -> Vec<NamedAverage> {
    let of_list = |(list, groups): (usize, Vec<Group>)| groups.into_iter().map(move |group| (list, group));
    let mut groups: Vec<(usize, Group)> = lists.enumerate().flat_map(of_list).collect();
    // Events and steps that begin and end together stand in the order of threads; activity records have numbers of
    // their own.
    groups.sort_by_key(|(thread, group)| {
        let (start_ns, end_ns, source, number) = group.first.place;
        let thread = if source <= Source::Step { *thread } else { 0 };
        (start_ns, end_ns, source, thread, number)
    });
    let names = &capture.names;
    let text_of = |name: u32| match (name as usize).checked_sub(names.len()) {
        None => names[name as usize].as_str(),
        Some(0) => ANY_STEP,
        Some(text) => texts[text - 1].as_str(),
    };
    let mut shapes: FxHashMap<u32, String> = FxHashMap::default();
    let mut found: Vec<NamedAverage> = Vec::new();
    let mut by_key: FxHashMap<(&str, bool, bool, String), usize> = FxHashMap::default();
    for (_, Group { first, is_label, is_on_device, sums }) in groups {
        let of_inputs = || capture.inputs.get(first.inputs as usize).map(|inputs| InputTexts::of(inputs).shapes);
        let shapes = shapes.entry(first.inputs).or_insert_with(|| of_inputs().unwrap_or_default());
        let key = if grouping.by_shapes { shapes.clone() } else { String::new() };
        let row = *by_key.entry((text_of(first.name), is_label, is_on_device, key)).or_insert_with(|| {
            found.push(NamedAverage {
                name: text_of(first.name).to_string(),
                shapes: shapes.clone(),
                scope: first.scope,
                is_async: first.is_async,
                is_label,
                sums: Average { is_on_device, ..Average::default() },
            });
            found.len() - 1
        });
        let average = &mut found[row].sums;
        average.count += sums.count;
        average.total_ns += sums.total_ns;
        average.self_ns += sums.self_ns;
        average.device_ns += sums.device_ns;
        average.self_device_ns += sums.self_device_ns;
    }
    found
}

//! Sums of events of one name.

use crate::events::USER_SCOPE;
use crate::inputs::InputTexts;
use crate::recorded::ANY_STEP;
use crate::{Average, Grouping, NO_ROW, NamedAverage};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use stepscope_capture::StreamedCapture;

/// Where an event stands among all: start, end, whether it is a step, and its number on its thread.
pub(super) type Place = (i64, Reverse<i64>, bool, u32);

/// What is added to a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    /// Index into the capture's names, or their number for steps.
    pub(super) name: u32,
    pub(super) scope: u8,
    /// Row of the capture's inputs, or [`NO_ROW`].
    pub(super) inputs: u32,
    pub(super) place: Place,
    pub(super) children_ns: i64,
}

impl Done {
    pub(super) fn dur_ns(&self) -> i64 {
        self.place.1.0 - self.place.0
    }
}

/// All events of one name on a thread, and of one row of inputs where that matters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// The first one of them.
    first: Done,
    sums: Sums,
}

#[derive(Clone, Copy, Default, Debug)]
struct Sums {
    count: i64,
    total_ns: i64,
    self_ns: i64,
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
        Self { by_name: vec![[NO_ROW; 2]; names + 1], are_inputs_told_apart, ..Self::default() }
    }

    /// Adds an event. Parents come after their children.
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
            self.groups.push(Group { first: *done, sums: Sums::default() });
        }
        let Group { first, sums } = &mut self.groups[*group as usize];
        if done.place < first.place {
            *first = *done;
        }
        sums.count += 1;
        sums.total_ns += done.dur_ns();
        sums.self_ns += done.dur_ns() - done.children_ns;
    }
}

/// The groups of all threads, those of one text together, in order of the first event of each.
pub(super) fn in_order(
    threads: impl Iterator<Item = Groups>,
    capture: &StreamedCapture,
    grouping: Grouping,
) -> Vec<NamedAverage> {
    let of_thread =
        |(thread, of_thread): (usize, Groups)| of_thread.groups.into_iter().map(move |group| (thread, group));
    let mut groups: Vec<(usize, Group)> = threads.enumerate().flat_map(of_thread).collect();
    // What begins and ends together stands in the order of threads.
    groups.sort_by_key(|(thread, group)| {
        let (start_ns, end_ns, is_step, number) = group.first.place;
        (start_ns, end_ns, is_step, *thread, number)
    });
    let mut shapes: FxHashMap<u32, String> = FxHashMap::default();
    let mut found: Vec<NamedAverage> = Vec::new();
    let mut by_key: FxHashMap<(u32, bool, String), usize> = FxHashMap::default();
    for (_, Group { first, sums }) in groups {
        let of_inputs = || capture.inputs().get(first.inputs as usize).map(|inputs| InputTexts::of(inputs).shapes);
        let shapes = shapes.entry(first.inputs).or_insert_with(|| of_inputs().unwrap_or_default());
        let is_label = first.scope == USER_SCOPE;
        let key = if grouping.by_shapes { shapes.clone() } else { String::new() };
        let row = *by_key.entry((first.name, is_label, key)).or_insert_with(|| {
            let name = capture.names().get(first.name as usize).map_or(ANY_STEP, String::as_str).to_string();
            found.push(NamedAverage {
                name,
                shapes: shapes.clone(),
                scope: first.scope,
                is_async: false,
                is_label,
                sums: Average::default(),
            });
            found.len() - 1
        });
        let average = &mut found[row].sums;
        average.count += sums.count;
        average.total_ns += sums.total_ns;
        average.self_ns += sums.self_ns;
    }
    found
}

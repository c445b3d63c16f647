//! Averages by themselves, without the events that they are of.

use crate::{Average, Grouping, Wanted, averages, sums};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use stepscope_run::{RecordFilter, RunError};

/// All events of a group, and what they have in common.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedAverage {
    /// Their name.
    pub name: String,
    /// The shapes of their inputs as JSON; of the first event where the shapes do not tell groups apart.
    pub shapes: String,
    /// The scope of the first one.
    pub scope: u8,
    /// Whether the first one ended on another thread.
    pub is_async: bool,
    /// Whether they are labels or steps.
    pub is_label: bool,
    /// Their sums. The first event is nowhere in a list.
    pub sums: Average,
}

/// The averages of what a process records, or has recorded, into the capture at `raw` and `filter` selects, in order
/// of first events. It is what [`averages`] says of [`read`](crate::read) when nothing else is wanted, and quicker.
/// Overloads and stacks do not tell groups apart.
///
/// # Errors
/// When neither the capture nor the part that it has become can be read.
pub fn read_averages(raw: &Path, filter: &RecordFilter, grouping: Grouping) -> Result<Vec<NamedAverage>, RunError> {
    // Calls are listed by more than their times.
    if filter.exclude.calls {
        return sums::averages(raw, filter, grouping.by_shapes);
    }
    let wanted = Wanted { exclude_device: filter.exclude.device, ..Wanted::default() };
    let events = crate::read(raw, filter, wanted)?;
    let named = |average: Average| {
        let row = average.first as usize;
        let inputs = events.inputs.get(row).and_then(|inputs| events.input_texts.get(*inputs as usize));
        NamedAverage {
            name: events.names[events.name[row] as usize].clone(),
            shapes: inputs.map_or(String::new(), |texts| texts.shapes.clone()),
            scope: events.scope[row],
            is_async: events.is_async[row],
            is_label: events.is_label(row),
            sums: Average { list: 0, first: 0, ..average },
        }
    };
    Ok(averages(&[&events], grouping).into_iter().map(named).collect())
}

/// The averages of several recordings, one after another, as those of one.
pub fn join(lists: Vec<Vec<NamedAverage>>, grouping: Grouping) -> Vec<NamedAverage> {
    let mut found: Vec<NamedAverage> = Vec::new();
    let mut by_key: FxHashMap<(String, bool, bool, String), usize> = FxHashMap::default();
    for average in lists.into_iter().flatten() {
        let shapes = if grouping.by_shapes { average.shapes.clone() } else { String::new() };
        match by_key.entry((average.name.clone(), average.is_label, average.sums.is_on_device, shapes)) {
            Entry::Occupied(known) => found[*known.get()].sums.add(&average.sums),
            Entry::Vacant(new) => {
                new.insert(found.len());
                found.push(average);
            }
        }
    }
    found
}

impl Average {
    fn add(&mut self, more: &Self) {
        self.count += more.count;
        self.total_ns += more.total_ns;
        self.self_ns += more.self_ns;
        self.device_ns += more.device_ns;
        self.self_device_ns += more.self_device_ns;
    }
}

//! All events of one name together, as `key_averages` has them.

use crate::stacks::Innermost;
use crate::{Events, NO_ROW};
use rustc_hash::FxHashMap;

/// What else, beside the name, tells two groups apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Grouping {
    /// The shapes of an operator's inputs.
    pub by_shapes: bool,
    /// The overload of an operator.
    pub by_overloads: bool,
    /// How many of the innermost functions around it.
    pub stack_frames: usize,
}

/// All events of a group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Average {
    /// Which list its first event is in.
    pub list: usize,
    /// The row of its first event there: what the group has in common is said there.
    pub first: u32,
    /// Events.
    pub count: i64,
    /// Sum of durations.
    pub total_ns: i64,
    /// Sum of durations less those of children.
    pub self_ns: i64,
    /// Sum of bytes; 0 when memory was not recorded.
    pub cpu_bytes: i64,
    /// Sum of bytes less those of children.
    pub self_cpu_bytes: i64,
    /// Sum of bytes of devices.
    pub device_bytes: i64,
    /// Sum of bytes of devices less those of children.
    pub self_device_bytes: i64,
    /// True for what ran on a device: its time is the device's.
    pub is_on_device: bool,
    /// Sum of time on devices.
    pub device_ns: i64,
    /// Sum of time on devices, less that of children.
    pub self_device_ns: i64,
    /// Sum of operations; 0 when they were not wanted.
    pub flops: i64,
}

/// Name, kind, inputs, overload, stack: what tells groups apart within a list.
type Numbers = (u32, usize, Option<u32>, Option<u32>, u32);
/// Label or not, on a device or not.
const KINDS: usize = 4;

/// The averages of lists of events, one after another, in order of the first event of each.
pub fn averages(lists: &[&Events], grouping: Grouping) -> Vec<Average> {
    let mut found: Vec<Average> = Vec::new();
    // Name, kind, shapes, overload, stack.
    let mut by_key: FxHashMap<(&str, usize, &str, &str, u32), usize> = FxHashMap::default();
    // Stacks have one number in all lists.
    let mut innermost = Innermost::new(grouping.stack_frames);
    for (list, events) in lists.iter().enumerate() {
        // By numbers within a list; texts are looked at once.
        let mut by_name: Vec<[Option<usize>; KINDS]> = vec![[None; KINDS]; events.names.len()];
        let mut by_numbers: FxHashMap<Numbers, usize> = FxHashMap::default();
        let numbers = innermost.of(events);
        for row in 0..events.len() {
            let (name, is_on_device) = (events.name[row], events.device.is_on_device(row));
            let kind = usize::from(events.is_label(row)) + 2 * usize::from(is_on_device);
            let inputs = events.inputs.get(row).copied().filter(|_| grouping.by_shapes);
            let overload = events.overload.get(row).copied().filter(|_| grouping.by_overloads);
            let stack = events.stack.get(row).and_then(|stack| numbers.get(*stack as usize)).copied().unwrap_or(NO_ROW);
            let mut group_of_texts = || {
                let shapes = inputs.and_then(|inputs| events.input_texts.get(inputs as usize));
                let shapes = shapes.map_or("", |texts| &texts.shapes);
                let overload = overload.map_or("", |overload| &events.overloads[overload as usize]);
                *by_key.entry((&events.names[name as usize], kind, shapes, overload, stack)).or_insert_with(|| {
                    found.push(Average { list, first: row as u32, is_on_device, ..Average::default() });
                    found.len() - 1
                })
            };
            let group = match (inputs, overload, stack) {
                (None, None, NO_ROW) => *by_name[name as usize][kind].get_or_insert_with(group_of_texts),
                _ => *by_numbers.entry((name, kind, inputs, overload, stack)).or_insert_with(&mut group_of_texts),
            };
            let of_row = |column: &[i64]| column.get(row).copied().unwrap_or(0);
            let average = &mut found[group];
            average.count += 1;
            average.total_ns += if is_on_device { 0 } else { events.dur_ns[row] };
            average.self_ns += events.self_ns[row];
            average.cpu_bytes += of_row(&events.cpu_bytes);
            average.self_cpu_bytes += of_row(&events.self_cpu_bytes);
            average.device_bytes += of_row(&events.device_bytes);
            average.self_device_bytes += of_row(&events.self_device_bytes);
            average.device_ns += of_row(&events.device.total_ns);
            average.self_device_ns += of_row(&events.device.self_ns);
            average.flops = average.flops.saturating_add(of_row(&events.flops));
        }
    }
    found
}

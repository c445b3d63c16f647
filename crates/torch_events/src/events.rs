//! The list of events, in columns.

use crate::device::{DeviceColumns, activity};
use crate::event_source::{EventSource, Item};
use crate::inputs::InputTexts;
use crate::memory::{Bytes, Covered, Usage};
use crate::stacks::Stacks;
use crate::{Wanted, backward, flops, flows, tree};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use stepscope_capture::layout::scope;
use stepscope_capture::{Capture, Event, Thread};

/// No row: what has no parent.
pub const NO_ROW: u32 = u32::MAX;
/// The scope of a label.
pub(crate) const USER_SCOPE: u8 = 7;
/// What was recorded, ordered by start, the longest first. A row is an event; times count from the start of the window.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// Names that rows refer to. Those of steps have no number.
    pub names: Vec<String>,
    /// Index into `names`.
    pub name: Vec<u32>,
    /// Names as they were recorded, with the numbers of steps, by row, where they differ.
    pub traced_names: Vec<(u32, String)>,
    /// Start, ns.
    pub start_ns: Vec<i64>,
    /// Duration, ns.
    pub dur_ns: Vec<i64>,
    /// Self time, ns: the duration without that of its children.
    pub self_ns: Vec<i64>,
    /// Threads: the framework's id, or the system's without one; and the system's.
    pub threads: Vec<(u64, u64)>,
    /// Index into `threads`.
    pub thread: Vec<u32>,
    /// The row that directly contains it, or [`NO_ROW`].
    pub parent: Vec<u32>,
    /// The number of an operator, a label or a step, from 0 on: the same that it has in a Chrome trace. Rows of memory
    /// have numbers of their own, from 0 on; all else has [`NO_ROW`].
    pub number: Vec<u32>,
    /// How many operators, labels and steps have numbers; some of them may not be listed.
    pub numbers: u32,
    /// Autograd's sequence number, -1 without one.
    pub sequence_number: Vec<i64>,
    /// The thread of a backward node's forward operator, 0 when not known or without a sequence number.
    pub forward_thread: Vec<u64>,
    /// The number of the arrow that joins a forward operator with its backward node, 0 without one.
    pub flow: Vec<u32>,
    /// Whether it is the forward one of the two.
    pub is_flow_start: Vec<bool>,
    /// What operators were called with.
    pub input_texts: Vec<InputTexts>,
    /// Index into `input_texts`, [`NO_ROW`] for what was called with nothing known; empty when there are none.
    pub inputs: Vec<u32>,
    /// PyTorch's `RecordScope`.
    pub scope: Vec<u8>,
    /// True for what began on one thread and ended on another: it has neither parent nor children.
    pub is_async: Vec<bool>,
    /// True for memory that was allocated or freed outside of all events, and for memory that could not be allocated.
    pub is_memory: Vec<bool>,
    /// Bytes of the host that were allocated, less those freed, while it ran; empty when memory was not recorded.
    pub cpu_bytes: Vec<i64>,
    /// Bytes of the host, less those of its children.
    pub self_cpu_bytes: Vec<i64>,
    /// Bytes of devices that were allocated, less those freed, while it ran; empty when none of them allocated.
    pub device_bytes: Vec<i64>,
    /// Bytes of devices, less those of its children.
    pub self_device_bytes: Vec<i64>,
    /// Operations, as `torch.profiler` counts them; empty when they are not wanted.
    pub flops: Vec<i64>,
    /// Overloads of operators; the first is that of what has none.
    pub overloads: Vec<String>,
    /// Index into `overloads`; empty when they are not wanted.
    pub overload: Vec<u32>,
    /// Distinct stacks.
    pub stacks: Stacks,
    /// The functions around it, the innermost of them its caller: one of `stacks`, or [`NO_ROW`]; empty when no calls
    /// were recorded.
    pub stack: Vec<u32>,
    /// The number of a call of Python or of a module, 0 for others; empty when none were recorded.
    pub call: Vec<u32>,
    /// The number of the call around it, 0 without one.
    pub caller: Vec<u32>,
    /// What devices' profilers say.
    pub device: DeviceColumns,
}

impl Events {
    /// What `capture` holds; times count from `zero_ns`.
    pub fn of(capture: &Capture, zero_ns: i64, wanted: Wanted) -> Self {
        let event_source = EventSource::of(capture, zero_ns, wanted.exclude_device);
        let order = order_of(capture, &event_source, wanted);
        let (parents, kept) = tree::build(order.len(), capture.threads.len(), |at| event_source.placed(order[at]));
        let mut events = Self { names: event_source.names(), threads: threads_of(capture), ..Self::default() };
        events.input_texts = capture.inputs.iter().map(InputTexts::of).collect();
        events.numbers = event_source.numbers.count();
        events.fill(&order, &parents, &kept, &event_source);
        if wanted.memory && !capture.memory.is_empty() {
            let rows: Vec<u32> = (0..order.len()).filter(|at| kept[*at]).map(|at| order[at]).collect();
            events.add_memory(capture, zero_ns, |row| event_source.item(rows[row]));
        }
        if wanted.overloads {
            let rows = (0..order.len()).filter(|at| kept[*at]);
            events.add_overloads(rows.map(|at| match event_source.item(order[at]) {
                Item::Event(event) => overload_of(capture, &event),
                _ => "",
            }));
        }
        if wanted.flops {
            events.flops = flops::count(&events);
        }
        events.fill_stacks(capture, &order, &kept, &event_source);
        (events.flow, events.is_flow_start) = flows::join(&events);
        backward::give_numbers_of_nodes(&mut events);
        events
    }

    fn fill(&mut self, order: &[u32], parents: &[u32], kept: &[bool], event_source: &EventSource<'_>) {
        self.reserve(order.len());
        let mut new_row = vec![NO_ROW; order.len()];
        let has_device = !event_source.activities.is_empty();
        let mut of_memory = 0..;
        let mut rows_of_items = vec![NO_ROW; if has_device { event_source.host_ranges() } else { 0 }];
        for at in (0..order.len()).filter(|at| kept[*at]) {
            let placed = event_source.placed(order[at]);
            let dur_ns = placed.end_ns - placed.start_ns;
            let row = self.name.len() as u32;
            new_row[at] = row;
            let parent = if parents[at] == NO_ROW { NO_ROW } else { new_row[parents[at] as usize] };
            if parent != NO_ROW {
                self.self_ns[parent as usize] -= dur_ns;
            }
            self.name.push(placed.name);
            self.start_ns.push(placed.start_ns);
            self.dur_ns.push(dur_ns);
            self.self_ns.push(if placed.is_nested { dur_ns } else { 0 });
            self.thread.push(placed.thread);
            self.parent.push(parent);
            let item = event_source.item(order[at]);
            self.is_async.push(matches!(item, Item::Event(event) if event.is_async));
            if has_device {
                self.push_device(&item, &event_source.activities);
            }
            let (event, scope, forward_thread) = match item {
                Item::Event(event) => {
                    let forward_thread = event.sequence_number.and(event.forward_thread);
                    (Some(event), event.scope, forward_thread.unwrap_or(0))
                }
                Item::Step(_) => (None, USER_SCOPE, 0),
                Item::DeviceActivity(_) | Item::Annotation(_) => (None, 0, 0),
                // As if it were its own forward operator: so it is there.
                Item::Memory(_) => (None, 0, self.threads[placed.thread as usize].0),
            };
            let is_memory = matches!(item, Item::Memory(_));
            self.is_memory.push(is_memory);
            let number = if is_memory { of_memory.next() } else { Some(event_source.numbers.of_item(order[at])) };
            self.number.push(number.unwrap_or(NO_ROW));
            self.sequence_number.push(event.and_then(|event| event.sequence_number).unwrap_or(-1));
            self.forward_thread.push(forward_thread);
            self.scope.push(scope);
            if !self.input_texts.is_empty() {
                self.inputs.push(event.and_then(|event| event.inputs).unwrap_or(NO_ROW));
            }
            self.traced_names.extend(event_source.traced_name(order[at]).map(|name| (row, name)));
        }
        if has_device {
            // A parent stands for its child of the same name.
            for at in 0..order.len() {
                let stands = if kept[at] { at } else { parents[at] as usize };
                rows_of_items.get_mut(order[at] as usize).into_iter().for_each(|row| *row = new_row[stands]);
            }
            let items: Vec<u32> = (0..order.len()).filter(|at| kept[*at]).map(|at| order[at]).collect();
            self.link_device(&items, &rows_of_items, event_source);
        }
    }

    fn add_memory<'a>(&mut self, capture: &Capture, zero_ns: i64, item: impl Fn(usize) -> Item<'a>) {
        let changes = capture.memory.iter().filter(|event| !event.is_out_of_memory());
        let changes = changes.map(|event| (event.time_ns.saturating_sub(zero_ns), Bytes::of(event)));
        let usage = Usage::new(changes.collect());
        let of_row = |row: usize| match item(row) {
            Item::Memory(event) if event.is_out_of_memory() => Bytes::default(),
            Item::Memory(event) => Bytes::of(event),
            item if item.is_on_device() => Bytes::default(),
            _ => usage.between(self.start_ns[row], self.start_ns[row].saturating_add(self.dur_ns[row])),
        };
        let bytes: Vec<Bytes> = (0..self.len()).map(of_row).collect();
        self.cpu_bytes = bytes.iter().map(|bytes| bytes.host).collect();
        self.self_cpu_bytes = self.less_children(&self.cpu_bytes);
        if bytes.iter().any(|bytes| bytes.device != 0) {
            self.device_bytes = bytes.iter().map(|bytes| bytes.device).collect();
            self.self_device_bytes = self.less_children(&self.device_bytes);
        }
    }

    /// What each row has less what its children have; nothing for what has no place in the tree.
    fn less_children(&self, of_rows: &[i64]) -> Vec<i64> {
        let mut own = of_rows.to_vec();
        for (row, parent) in self.parent.iter().enumerate().filter(|(_, parent)| **parent != NO_ROW) {
            own[*parent as usize] = own[*parent as usize].saturating_sub(of_rows[row]);
        }
        own.iter_mut().zip(&self.is_async).filter(|(_, is_async)| **is_async).for_each(|(own, _)| *own = 0);
        own
    }

    fn add_overloads<'a>(&mut self, of_rows: impl Iterator<Item = &'a str>) {
        let mut ids: FxHashMap<&str, u32> = FxHashMap::default();
        self.overloads = vec![String::new()];
        ids.insert("", 0);
        for text in of_rows {
            let id = *ids.entry(text).or_insert_with(|| {
                self.overloads.push(text.into());
                self.overloads.len() as u32 - 1
            });
            self.overload.push(id);
        }
    }

    fn reserve(&mut self, len: usize) {
        self.name.reserve(len);
        self.start_ns.reserve(len);
        self.dur_ns.reserve(len);
        self.self_ns.reserve(len);
        self.thread.reserve(len);
        self.parent.reserve(len);
        self.number.reserve(len);
        self.sequence_number.reserve(len);
        self.forward_thread.reserve(len);
        self.scope.reserve(len);
        self.is_async.reserve(len);
        self.is_memory.reserve(len);
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.name.len()
    }

    /// True without any event.
    pub fn is_empty(&self) -> bool {
        self.name.is_empty()
    }

    /// True for a label or a step, also on a device.
    pub fn is_label(&self, row: usize) -> bool {
        self.scope[row] == USER_SCOPE || self.device.activity(row) == activity::ANNOTATION
    }
}

/// The items that are listed, ordered by start, the longest first; what begins and ends together stays as it was
/// recorded, memory behind the rest. Of memory there is what no event covers, whatever its thread, and what failed.
/// The overload of an operator; empty for none, and for calls.
fn overload_of<'a>(capture: &'a Capture, event: &Event) -> &'a str {
    let overload = capture.overloads.get(event.name as usize).filter(|_| !scope::is_call(event.scope));
    overload.map_or("", String::as_str)
}

fn order_of(capture: &Capture, event_source: &EventSource<'_>, wanted: Wanted) -> Vec<u32> {
    let mut order: Vec<u32> = event_source.ranges().filter(|item| event_source.is_listed(*item)).collect();
    let place = |item: &u32| {
        let placed = event_source.placed(*item);
        (placed.start_ns, Reverse(placed.end_ns))
    };
    // Threads follow one another in a capture, each in order.
    order.sort_by_key(place);
    if wanted.memory && !capture.memory.is_empty() {
        let of_host = order.iter().filter(|item| !event_source.item(**item).is_on_device());
        let covered = Covered::by(of_host.map(|item| {
            let placed = event_source.placed(*item);
            (placed.start_ns, placed.end_ns)
        }));
        let is_lone = |item: &u32| match event_source.item(*item) {
            Item::Memory(event) => event.is_out_of_memory() || !covered.contains(event_source.placed(*item).start_ns),
            _ => false,
        };
        let listed = order.len();
        order.extend(event_source.memory_events().filter(is_lone));
        if order.len() > listed {
            order.sort_by_key(place);
        }
    }
    order
}

/// The framework's id of each thread, or the system's, and the system's.
fn threads_of(capture: &Capture) -> Vec<(u64, u64)> {
    let id = |own: u64, other: u64| if own == 0 { other } else { own };
    let ids = |thread: &Thread| {
        // Of a thread that only a device's profiler tells of, nothing else is known.
        let tid = id(thread.tid, u64::from(thread.handle));
        (id(thread.framework_thread, tid), tid)
    };
    capture.threads.iter().map(ids).collect()
}

#[cfg(test)]
pub(crate) mod tests;

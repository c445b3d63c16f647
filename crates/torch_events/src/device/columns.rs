//! What is said of rows that devices' profilers reported, and of what launched them.

use super::{DeviceActivities, correlation};
use crate::event_source::{EventSource, Item};
use crate::{Events, NO_ROW};
use stepscope_capture::device::{ActivityRecord, Api, WorkKind};

/// What a row is.
pub mod activity {
    /// What the host did by itself: an operator, a label, a call of Python, memory.
    pub const HOST: u8 = 0;
    /// A kernel.
    pub const KERNEL: u8 = 1;
    /// A memcpy.
    pub const MEMCPY: u8 = 2;
    /// A memset.
    pub const MEMSET: u8 = 3;
    /// A label: from the first to the last of what it launched on a stream.
    pub const ANNOTATION: u8 = 4;
    /// A wait, seen from the device.
    pub const SYNCHRONIZATION: u8 = 5;
    /// From here on rows are the host's: a call of the runtime.
    pub const RUNTIME_CALL: u8 = 6;
    /// A call of the driver.
    pub const DRIVER_CALL: u8 = 7;
    /// What the device's profiler itself takes.
    pub const OVERHEAD: u8 = 8;
}

/// PyTorch's numbers of kinds of devices: ROCm's are called CUDA's.
const CUDA: u8 = 1;
const HIP: u8 = 6;

/// By row; all empty when a device's profiler reported nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeviceColumns {
    /// One of [`activity`].
    pub activity: Vec<u8>,
    /// PyTorch's number of the kind of device that it ran on, or whose runtime was called; 0 for what is the host's
    /// own.
    pub device_type: Vec<u8>,
    /// The device; -1 for what is on none.
    pub device: Vec<i32>,
    /// The stream; -1 for all of them, or where it is not known.
    pub stream: Vec<i64>,
    /// What joins a call with what it enqueued; 0 without one.
    pub correlation: Vec<u32>,
    /// The row of the operator that launched it, of an annotation that of its label; [`NO_ROW`] without one.
    pub linked: Vec<u32>,
    /// The [number](Events::number) of that operator or label itself, where another row stands for it.
    pub linked_number: Vec<u32>,
    /// Time on devices of what was launched in it, ns; of what runs on a device its duration.
    pub total_ns: Vec<i64>,
    /// Time on devices, ns, less that of its children.
    pub self_ns: Vec<i64>,
}

impl DeviceColumns {
    /// What a row is.
    pub fn activity(&self, row: usize) -> u8 {
        self.activity.get(row).copied().unwrap_or(activity::HOST)
    }

    /// True for what ran on a device.
    pub fn is_on_device(&self, row: usize) -> bool {
        (activity::KERNEL..=activity::SYNCHRONIZATION).contains(&self.activity(row))
    }

    fn push_host(&mut self) {
        self.push((activity::HOST, 0, -1, -1, 0));
    }

    fn push(&mut self, (activity, device_type, device, stream, correlation): (u8, u8, i32, i64, u32)) {
        self.activity.push(activity);
        self.device_type.push(if device_type == HIP { CUDA } else { device_type });
        self.device.push(device);
        self.stream.push(stream);
        self.correlation.push(correlation);
        self.linked.push(NO_ROW);
        self.linked_number.push(NO_ROW);
    }
}

/// How a list names a stream.
fn stream_number(stream: Option<u32>) -> i64 {
    stream.map_or(-1, i64::from)
}

impl Events {
    /// Adds what is said of an item, which has become a row.
    pub(crate) fn push_device(&mut self, item: &Item<'_>, activities: &DeviceActivities) {
        let columns = &mut self.device;
        match item {
            Item::DeviceActivity(device_activity) => {
                let kind = match &device_activity.record {
                    ActivityRecord::Work(work) => {
                        let activity = match work.kind {
                            WorkKind::Kernel(_) | WorkKind::Graph => activity::KERNEL,
                            WorkKind::Memcpy(_) => activity::MEMCPY,
                            WorkKind::Memset(_) => activity::MEMSET,
                        };
                        (activity, work.device as i32, stream_number(work.stream))
                    }
                    ActivityRecord::Synchronization(wait) => {
                        (activity::SYNCHRONIZATION, activities.device_of(wait) as i32, stream_number(wait.stream))
                    }
                    ActivityRecord::Call(call) if call.api == Api::Driver => (activity::DRIVER_CALL, -1, -1),
                    ActivityRecord::Call(_) => (activity::RUNTIME_CALL, -1, -1),
                    _ => (activity::OVERHEAD, -1, -1),
                };
                let (activity, device, stream) = kind;
                columns.push((
                    activity,
                    device_activity.device_type,
                    device,
                    stream,
                    correlation(&device_activity.record),
                ));
            }
            Item::Annotation(of) => {
                columns.push((activity::ANNOTATION, of.device_type, of.device as i32, stream_number(of.stream), 0));
            }
            Item::Event(_) | Item::Step(_) | Item::Memory(_) => columns.push_host(),
        }
    }

    /// Joins rows with what launched them, and adds up. `rows` has for each item of the host the row that it has
    /// become, or the one that stands for it.
    pub(crate) fn link_device(&mut self, items: &[u32], rows: &[u32], event_source: &EventSource<'_>) {
        let row_of = |item: u32| rows.get(item as usize).copied().unwrap_or(NO_ROW);
        for (row, item) in items.iter().enumerate() {
            let linked = match event_source.item(*item) {
                Item::DeviceActivity(_) => event_source.operator(*item),
                Item::Annotation(annotation) => annotation.label,
                Item::Event(_) | Item::Step(_) | Item::Memory(_) => NO_ROW,
            };
            self.device.linked[row] = row_of(linked);
            self.device.linked_number[row] = event_source.numbers.of_item(linked);
        }
        let mut own = vec![0_i64; self.len()];
        for row in (0..self.len()).filter(|row| self.device.is_on_device(*row)) {
            own[row] = self.dur_ns[row];
            let linked = self.device.linked[row];
            if linked != NO_ROW && self.device.activity(row) != activity::ANNOTATION {
                own[linked as usize] += self.dur_ns[row];
            }
        }
        let mut total = own.clone();
        // Parents stand before their children.
        for row in (0..self.len()).rev().filter(|row| self.parent[*row] != NO_ROW) {
            total[self.parent[row] as usize] += total[row];
        }
        (self.device.self_ns, self.device.total_ns) = (own, total);
    }
}

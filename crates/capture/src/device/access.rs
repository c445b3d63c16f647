//! What activity records have in common, whatever their kind.

use super::fields::{FieldValue, Record};
use super::{ActivityRecord, Call, DeviceWork, EventRecorded, Kernel, Overhead, Range, Synchronization, WorkKind};

impl ActivityRecord {
    /// Calls `visit` with the name and the value of each field that says something and has no column of its own in a
    /// process file.
    pub fn for_each_member(mut self, mut visit: impl FnMut(&'static str, FieldValue<'static>)) {
        self.for_each_record(|record| record.members(&mut visit));
    }

    /// The value of the field with that name; `None` where there is none, or it is not known.
    pub fn field(mut self, name: &str) -> Option<FieldValue<'static>> {
        let mut found = None;
        self.for_each_record(|record| found = found.or_else(|| record.value(name)));
        found
    }

    /// Sets the field with that name, if there is one that can have this value.
    pub fn set_field(&mut self, name: &str, value: FieldValue<'_>) {
        self.for_each_record(|record| record.set(name, value));
    }

    /// What it says, and first what is said of one kind of work.
    pub(super) fn for_each_record(&mut self, mut act: impl FnMut(&mut dyn Record)) {
        match self {
            Self::Work(work) => {
                match &mut work.kind {
                    WorkKind::Kernel(kernel) => act(kernel),
                    WorkKind::Memcpy(copy) => act(copy),
                    WorkKind::Memset(fill) => act(fill),
                    WorkKind::Graph => {}
                }
                act(work);
            }
            Self::Call(call) => act(call),
            Self::Synchronization(wait) => act(wait),
            Self::EventRecorded(event) => act(event),
            Self::Overhead(overhead) => act(overhead),
            Self::Range(range) => act(range),
            Self::Dropped(dropped) => act(dropped),
        }
    }

    /// Start and end, ns; `None` for what has no time of its own.
    pub fn span(&self) -> Option<(i64, i64)> {
        match self {
            Self::Work(work) => Some((work.start_ns, work.end_ns)),
            Self::Call(call) => Some((call.start_ns, call.end_ns)),
            Self::Synchronization(wait) => Some((wait.start_ns, wait.end_ns)),
            Self::Overhead(overhead) => Some((overhead.start_ns, overhead.end_ns)),
            Self::Range(range) => Some((range.start_ns, range.end_ns)),
            Self::EventRecorded(_) | Self::Dropped(_) => None,
        }
    }

    /// Start and end, to be changed.
    pub fn span_mut(&mut self) -> Option<(&mut i64, &mut i64)> {
        match self {
            Self::Work(work) => Some((&mut work.start_ns, &mut work.end_ns)),
            Self::Call(call) => Some((&mut call.start_ns, &mut call.end_ns)),
            Self::Synchronization(wait) => Some((&mut wait.start_ns, &mut wait.end_ns)),
            Self::Overhead(overhead) => Some((&mut overhead.start_ns, &mut overhead.end_ns)),
            Self::Range(range) => Some((&mut range.start_ns, &mut range.end_ns)),
            Self::EventRecorded(_) | Self::Dropped(_) => None,
        }
    }

    /// The thread of the host that it lies on; `None` for what lies on none.
    pub fn thread(&self) -> Option<u32> {
        match self {
            Self::Call(Call { thread, .. })
            | Self::Overhead(Overhead { thread, .. })
            | Self::Range(Range { thread, .. }) => Some(*thread),
            _ => None,
        }
    }

    /// The thread of the host that it lies on, to be changed.
    pub fn thread_mut(&mut self) -> Option<&mut u32> {
        match self {
            Self::Call(Call { thread, .. })
            | Self::Overhead(Overhead { thread, .. })
            | Self::Range(Range { thread, .. }) => Some(thread),
            _ => None,
        }
    }

    /// What joins it with the call that enqueued it, or that it is, to be changed; `None` for what has no such number.
    pub fn correlation_mut(&mut self) -> Option<&mut u32> {
        match self {
            Self::Work(DeviceWork { correlation, .. })
            | Self::Call(Call { correlation, .. })
            | Self::Synchronization(Synchronization { correlation, .. })
            | Self::EventRecorded(EventRecorded { correlation, .. }) => Some(correlation),
            _ => None,
        }
    }

    /// The id of the name in it, to be changed; `None` for what has none.
    pub fn name_mut(&mut self) -> Option<&mut Option<u32>> {
        match self {
            Self::Work(DeviceWork { kind: WorkKind::Kernel(Kernel { name, .. }), .. })
            | Self::Call(Call { name, .. })
            | Self::Overhead(Overhead { name, .. })
            | Self::Range(Range { name, .. }) => Some(name),
            _ => None,
        }
    }
}

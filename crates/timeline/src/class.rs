//! What a slice is about, in the few classes that have a colour of their own.

use crate::items::Item;
use serde::Serialize;
use stepscope_base::StringId;
use stepscope_trace::{DeviceEventClass, SliceKind, Trace};

/// What a slice is about: its colour, the same in every view. The numbers stand in tiles.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Class {
    /// None of the others.
    Other = 0,
    /// A kernel that computes.
    Compute = 1,
    /// A kernel that communicates.
    Communication = 2,
    /// A device copy or fill.
    Copy = 3,
    /// Somebody waits: for the device, a stream, an event.
    Synchronization = 4,
    /// An operator on a host thread.
    HostOp = 5,
    /// A label, a step, an optimizer's step.
    Label = 6,
    /// A call of Python or of a module.
    Python = 7,
    /// A call of the device's API.
    Runtime = 8,
    /// Data loading and files.
    Input = 9,
    /// Time of the profiler itself.
    Overhead = 10,
}

impl Class {
    /// The class of what is no device event.
    fn of_kind(kind: SliceKind) -> Self {
        match kind {
            SliceKind::Op => Self::HostOp,
            SliceKind::Annotation | SliceKind::DeviceAnnotation | SliceKind::Step | SliceKind::Optimizer => Self::Label,
            SliceKind::DataLoader | SliceKind::Io => Self::Input,
            SliceKind::PythonFunction | SliceKind::Module => Self::Python,
            SliceKind::Runtime | SliceKind::Driver => Self::Runtime,
            SliceKind::HostSync | SliceKind::Synchronization => Self::Synchronization,
            SliceKind::Kernel => Self::Compute,
            SliceKind::Memcpy | SliceKind::Memset => Self::Copy,
            SliceKind::Overhead => Self::Overhead,
            SliceKind::Other => Self::Other,
        }
    }

    fn of_device_event(class: DeviceEventClass) -> Self {
        match class {
            DeviceEventClass::Compute => Self::Compute,
            DeviceEventClass::Communication => Self::Communication,
            DeviceEventClass::Memcpy(_) | DeviceEventClass::Memset => Self::Copy,
        }
    }

    /// The class of every slice of a trace.
    pub(crate) fn of_all(trace: &Trace) -> Vec<Self> {
        let mut classes: Vec<Self> = trace.slices.kind.iter().map(|kind| Self::of_kind(*kind)).collect();
        for event in trace.device_events.iter() {
            classes[event.slice.index()] = Self::of_device_event(event.class);
        }
        classes
    }

    /// The class's name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Compute => "compute",
            Self::Communication => "communication",
            Self::Copy => "copy",
            Self::Synchronization => "synchronization",
            Self::HostOp => "host_op",
            Self::Label => "label",
            Self::Python => "python",
            Self::Runtime => "runtime",
            Self::Input => "input",
            Self::Overhead => "overhead",
        }
    }
}

/// The classes of what rows show.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes {
    /// Of every slice.
    pub(crate) of_slices: Vec<Class>,
    /// What work of devices that is no slice is called.
    pub(crate) work: Option<StringId>,
}

impl Classes {
    /// The class of an item.
    pub(crate) fn of(&self, item: Item) -> Class {
        match item.slice {
            // What is no slice is a sample.
            Some(slice) => self.of_slices.get(slice.index()).copied().unwrap_or(Class::Python),
            None if self.work == Some(item.name) => Class::Compute,
            None => Class::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn a_kernel_has_the_class_of_its_device_event() {
        let trace = drawn("rank 0 cpu 1 aaaaaa\nrank 0 launch 1 .C....\nrank 0 stream 7 ..CNHZ");
        let classes = Class::of_all(&trace);
        let of = |name: &str, kind: SliceKind| {
            let found = trace.slices.ids().find(|id| trace.slice_name(*id) == name && trace.slices.kind(*id) == kind);
            classes[found.unwrap_or_else(|| panic!("{name} of kind {kind:?}")).index()]
        };
        assert_eq!(of("a", SliceKind::Op), Class::HostOp);
        assert_eq!(of("C", SliceKind::Runtime), Class::Runtime);
        assert_eq!(of("C", SliceKind::Kernel), Class::Compute);
        assert_eq!(of("N", SliceKind::Kernel), Class::Communication);
        assert_eq!(of("H", SliceKind::Memcpy), Class::Copy);
    }

    #[test]
    fn names_in_json_are_those_of_the_code() {
        let classes = [Class::Other, Class::HostOp, Class::Synchronization, Class::Overhead];
        for class in classes {
            assert_eq!(format!("{class:?}").to_lowercase(), class.as_str().replace('_', ""));
        }
    }
}

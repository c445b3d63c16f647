//! What a row's category says it is: every spelling met in the wild, in one table.

/// What a row of a category is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Category {
    /// An operator; in old files also labels.
    Op,
    /// A Python call; by its name also of a module.
    PythonFunction,
    /// A label on a host thread.
    Annotation,
    /// A label projected onto a device.
    DeviceAnnotation,
    /// A runtime API call.
    Runtime,
    /// A driver API call.
    Driver,
    /// A device function.
    Kernel,
    /// A device copy.
    Memcpy,
    /// A device fill.
    Memset,
    /// A synchronisation as the device's profiler reports it.
    Synchronization,
    /// Work of a device, of which no number of devices knows what it is.
    UnknownDeviceWork,
    /// The profiler's own time.
    Overhead,
    /// An arrow from an API call to device work.
    LaunchFlow,
    /// An arrow from a forward op to its backward node.
    ForwardBackwardFlow,
    /// A moment on a host thread.
    ThreadInstant,
    /// Anything else.
    #[default]
    Other,
}

const CATEGORIES: &[(&str, Category)] = &[
    ("cpu_op", Category::Op),
    ("operator", Category::Op),
    ("python_function", Category::PythonFunction),
    ("user_annotation", Category::Annotation),
    // Our own export's; that it is a file's call stands beside it.
    ("io", Category::Annotation),
    ("gpu_user_annotation", Category::DeviceAnnotation),
    ("cuda_runtime", Category::Runtime),
    ("runtime", Category::Runtime),
    ("xpu_runtime", Category::Runtime),
    ("privateuse1_runtime", Category::Runtime),
    ("mtia_runtime", Category::Runtime),
    ("glow_runtime", Category::Runtime),
    ("hpu_op", Category::Runtime),
    ("cuda_driver", Category::Driver),
    ("driver", Category::Driver),
    ("xpu_driver", Category::Driver),
    ("privateuse1_driver", Category::Driver),
    ("kernel", Category::Kernel),
    ("mtia_ccp_events", Category::Kernel),
    // Counters over a range, whose times are made up; MTIA's own analysis.
    ("cuda_profiler_range", Category::UnknownDeviceWork),
    ("mtia_insight", Category::UnknownDeviceWork),
    ("mtia_workloadd", Category::UnknownDeviceWork),
    ("gpu_memcpy", Category::Memcpy),
    ("memcpy", Category::Memcpy),
    ("gpu_memset", Category::Memset),
    ("memset", Category::Memset),
    ("cuda_sync", Category::Synchronization),
    ("overhead", Category::Overhead),
    ("ac2g", Category::LaunchFlow),
    ("async", Category::LaunchFlow),
    ("async_cpu_to_gpu", Category::LaunchFlow),
    ("async_gpu", Category::LaunchFlow),
    ("fwdbwd", Category::ForwardBackwardFlow),
    ("forward_backward", Category::ForwardBackwardFlow),
    ("cpu_instant_event", Category::ThreadInstant),
];

/// What rows of the category `written` are; upper and lower case are the same.
pub(super) fn category(written: &[u8]) -> Category {
    let known = CATEGORIES.iter().find(|(name, _)| written.eq_ignore_ascii_case(name.as_bytes()));
    known.map_or(Category::Other, |(_, category)| *category)
}

impl Category {
    /// True for rows of a device's own timeline.
    pub(super) fn is_on_device(self) -> bool {
        matches!(self, Self::Kernel | Self::Memcpy | Self::Memset | Self::Synchronization | Self::DeviceAnnotation)
    }

    /// True for what happens on a host thread.
    pub(super) fn is_on_thread(self) -> bool {
        matches!(self, Self::Op | Self::PythonFunction | Self::Annotation | Self::Runtime | Self::Driver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_spellings_are_one_category() {
        for (old, new) in
            [("Operator", "cpu_op"), ("Kernel", "kernel"), ("Memcpy", "gpu_memcpy"), ("Runtime", "cuda_runtime")]
        {
            assert_eq!(category(old.as_bytes()), category(new.as_bytes()));
        }
        assert_eq!(category(b"Memset"), Category::Memset);
        assert_eq!(category(b"cuda_profiler_range"), Category::UnknownDeviceWork);
        assert_eq!(category(b"cuda_something"), Category::Other);
        assert_eq!(category(b""), Category::Other);
    }

    #[test]
    fn names_are_listed_once() {
        let mut names: Vec<_> = CATEGORIES.iter().map(|row| row.0).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CATEGORIES.len());
    }
}

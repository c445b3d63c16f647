//! What devices did, as rows of the list: work on streams, calls on threads, and labels as the span of what they
//! launched.

mod annotations;
mod columns;
mod launches;
mod names;

pub(crate) use annotations::Annotation;
pub use columns::{DeviceColumns, activity};
pub(crate) use names::Names;

use crate::NO_ROW;
use crate::tree::Placed;
use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_capture::device::{ActivityRecord, DeviceWork, Synchronization, SynchronizationKind};
use stepscope_capture::{Capture, DeviceActivity, Event};
use stepscope_run::ExcludeDevice;

/// The activity records of a capture, and what they say of each other.
#[derive(Debug, Default)]
pub(crate) struct DeviceActivities {
    /// By activity record: the name that it is listed by, [`NO_ROW`] for what is not listed. Names that the capture
    /// does not have count from the end of its own and the one for all steps.
    names: Vec<u32>,
    /// Those names.
    pub(crate) texts: Vec<String>,
    /// By activity record: the item of the operator that launched it, or called what it is about; [`NO_ROW`] without
    /// one.
    operators: Vec<u32>,
    /// By activity record: the thread that it lies on, or that launched it.
    threads: Vec<u32>,
    pub(crate) annotations: Vec<Annotation>,
    /// The device of each context.
    contexts: FxHashMap<u32, u32>,
}

impl DeviceActivities {
    /// Those of `capture`; `listed` has for each of its names the first that is listed alike.
    pub(crate) fn of(capture: &Capture, exclude: ExcludeDevice, listed: &[Option<u32>]) -> Self {
        if capture.device.is_empty() {
            return Self::default();
        }
        let launches = launches::launches(capture, |event: &Event| listed[event.name as usize].is_some());
        let work = || {
            capture.device.iter().filter_map(|device_activity| match device_activity.record {
                ActivityRecord::Work(work) => Some(work),
                _ => None,
            })
        };
        let mut activities = Self {
            annotations: if exclude.annotations {
                vec![]
            } else {
                annotations::annotations(&capture.device, &launches)
            },
            contexts: work().filter_map(|work| Some((work.context?, work.device))).collect(),
            ..Self::default()
        };
        let streams: FxHashSet<(u32, Option<u32>)> = work().map(|work| (work.device, work.stream)).collect();
        let mut names = Names::of(&capture.names, listed);
        let mut name = |device_activity: &DeviceActivity| {
            let is_shown = match &device_activity.record {
                record if exclude.excludes(record) => false,
                // There are many on streams where nothing runs.
                ActivityRecord::Synchronization(
                    wait @ Synchronization { kind: SynchronizationKind::StreamWaitEvent, stream, .. },
                ) => stream.is_some() && streams.contains(&(activities.device_of(wait), *stream)),
                _ => true,
            };
            is_shown.then(|| names.name(device_activity)).flatten().unwrap_or(NO_ROW)
        };
        let of_about: Vec<u32> = capture.device.about().iter().map(&mut name).collect();
        let of_activities = (0..capture.device.len()).map(|at| of_about[capture.device.about_of(at)]).collect();
        (activities.names, activities.texts) = (of_activities, names.texts());
        for DeviceActivity { record, .. } in capture.device.iter() {
            let launch = launches.get(correlation(&record));
            activities.operators.push(launch.map_or(NO_ROW, |launch| launch.operator));
            activities.threads.push(record.thread().or(launch.map(|launch| launch.thread)).unwrap_or(0));
        }
        activities
    }

    /// Whether there are any, listed or not.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(crate) fn is_listed(&self, device_activity: usize) -> bool {
        self.names[device_activity] != NO_ROW
    }

    /// Where a listed activity record lies. What runs on a device lies in no tree; its thread is the one that launched
    /// it.
    pub(crate) fn placed(&self, at: usize, device_activity: &DeviceActivity) -> Placed {
        let (start_ns, end_ns) = device_activity.record.span().unwrap_or_default();
        let is_nested = device_activity.record.thread().is_some();
        Placed { start_ns, end_ns, thread: self.threads[at], name: self.names[at], is_nested }
    }

    /// The item of the operator that launched an activity record, or called what it is about; [`NO_ROW`] without one.
    pub(crate) fn operator(&self, at: usize) -> u32 {
        self.operators[at]
    }

    /// The device that a wait is on: that of its context.
    pub(crate) fn device_of(&self, wait: &Synchronization) -> u32 {
        wait.context.and_then(|context| self.contexts.get(&context).copied()).unwrap_or(0)
    }
}

/// What joins a call with what it enqueued; 0 for what has no such number.
pub(crate) fn correlation(record: &ActivityRecord) -> u32 {
    match record {
        ActivityRecord::Work(DeviceWork { correlation, .. })
        | ActivityRecord::Synchronization(Synchronization { correlation, .. }) => *correlation,
        ActivityRecord::Call(call) => call.correlation,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;

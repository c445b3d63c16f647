//! What devices did, as rows of the list: work on streams, calls on threads, and labels as the span of what they launched.

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
use stepscope_capture::device::{DeviceRecord, Wait, WaitKind, Work};
use stepscope_capture::{Capture, DeviceReport, Event};
use stepscope_run::HiddenDevice;

/// The reports of a capture, and what they say of each other.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// By report: the name that it is listed by, [`NO_ROW`] for what is not listed. Names that the capture does not have
    /// count from the end of its own and the one for all steps.
    names: Vec<u32>,
    /// Those names.
    pub(crate) texts: Vec<String>,
    /// By report: the item of the operator that launched it, or called what it is about; [`NO_ROW`] without one.
    operators: Vec<u32>,
    /// By report: the thread that it lies on, or that launched it.
    threads: Vec<u32>,
    pub(crate) annotations: Vec<Annotation>,
    /// The device of each context.
    contexts: FxHashMap<u32, u32>,
}

impl Reports {
    /// Those of `capture`; `listed` has for each of its names the first that is listed alike.
    pub(crate) fn of(capture: &Capture, hides: HiddenDevice, listed: &[Option<u32>]) -> Self {
        if capture.device.is_empty() {
            return Self::default();
        }
        let launches = launches::launches(capture, |event: &Event| listed[event.name as usize].is_some());
        let work = || {
            capture.device.iter().filter_map(|report| match &report.record {
                DeviceRecord::Work(work) => Some(work),
                _ => None,
            })
        };
        let mut reports = Self {
            annotations: if hides.annotations { vec![] } else { annotations::annotations(&capture.device, &launches) },
            contexts: work().map(|work| (work.context, work.device)).collect(),
            ..Self::default()
        };
        let streams: FxHashSet<(u32, u32)> = work().map(|work| (work.device, work.stream)).collect();
        let mut names = Names::of(&capture.names, listed);
        let mut name = |report: &DeviceReport| {
            let is_shown = match &report.record {
                record if hides.hides(record) => false,
                // There are many on streams where nothing runs.
                DeviceRecord::Wait(wait @ Wait { kind: WaitKind::StreamWaitEvent, stream, .. }) => {
                    stream.is_some_and(|stream| streams.contains(&(reports.device_of(wait), stream)))
                }
                _ => true,
            };
            is_shown.then(|| names.name(report)).flatten().unwrap_or(NO_ROW)
        };
        let of_reports = capture.device.iter().map(&mut name).collect();
        (reports.names, reports.texts) = (of_reports, names.texts());
        for DeviceReport { record, .. } in &capture.device {
            let launch = launches.get(correlation(record));
            reports.operators.push(launch.map_or(NO_ROW, |launch| launch.operator));
            reports.threads.push(record.thread().or(launch.map(|launch| launch.thread)).unwrap_or(0));
        }
        reports
    }

    /// Whether there are any, listed or not.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(crate) fn is_listed(&self, report: usize) -> bool {
        self.names[report] != NO_ROW
    }

    /// Where a listed report lies. What runs on a device lies in no tree; its thread is the one that launched it.
    pub(crate) fn placed(&self, at: usize, report: &DeviceReport) -> Placed {
        let (start_ns, end_ns) = report.record.span().unwrap_or_default();
        let is_nested = report.record.thread().is_some();
        Placed { start_ns, end_ns, thread: self.threads[at], name: self.names[at], is_nested }
    }

    /// The item of the operator that launched a report, or called what it is about; [`NO_ROW`] without one.
    pub(crate) fn operator(&self, at: usize) -> u32 {
        self.operators[at]
    }

    /// The device that a wait is on: that of its context.
    pub(crate) fn device_of(&self, wait: &Wait) -> u32 {
        self.contexts.get(&wait.context).copied().unwrap_or(0)
    }
}

/// What joins a call with what it enqueued; 0 for what has no such number.
pub(crate) fn correlation(record: &DeviceRecord) -> u32 {
    match record {
        DeviceRecord::Work(Work { correlation, .. }) | DeviceRecord::Wait(Wait { correlation, .. }) => *correlation,
        DeviceRecord::Call(call) => call.correlation,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;

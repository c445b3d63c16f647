//! Labels on the device: on each stream from the first to the last of what was launched in them.

use super::launches::{Launch, Launches};
use crate::NO_ROW;
use rustc_hash::FxHashMap;
use stepscope_capture::DeviceActivity;
use stepscope_capture::device::{ActivityList, ActivityRecord, DeviceWork};

/// The span on one stream of what one label launched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Annotation {
    /// The item of the label.
    pub(crate) label: u32,
    pub(crate) thread: u32,
    pub(crate) device_type: u8,
    pub(crate) device: u32,
    pub(crate) stream: Option<u32>,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
}

/// In order of their first activity records. What a label inside launched is that one's alone.
pub(crate) fn annotations(activities: &ActivityList, launches: &Launches) -> Vec<Annotation> {
    let mut found: Vec<Annotation> = Vec::new();
    let mut known: FxHashMap<(u32, u32, Option<u32>), usize> = FxHashMap::default();
    for DeviceActivity { device_type, record } in activities.iter() {
        let ActivityRecord::Work(DeviceWork { start_ns, end_ns, device, stream, correlation, .. }) = record else {
            continue;
        };
        let Some(Launch { label, thread, .. }) = launches.get(correlation).filter(|launch| launch.label != NO_ROW)
        else {
            continue;
        };
        let at = *known.entry((*label, device, stream)).or_insert_with(|| {
            let (label, thread, device_type) = (*label, *thread, device_type);
            found.push(Annotation { label, thread, device_type, device, stream, start_ns, end_ns });
            found.len() - 1
        });
        found[at].start_ns = found[at].start_ns.min(start_ns);
        found[at].end_ns = found[at].end_ns.max(end_ns);
    }
    found
}

//! What an analysis of devices looks at: for each device a window.

use crate::AnalysisContext;
use crate::context::Shared;
use stepscope_base::Span;
use stepscope_trace::{DeviceId, Trace};

/// The part of a device's time that was asked for: from the first start to the last end of a device event asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DeviceWindow {
    pub(crate) device: DeviceId,
    pub(crate) span: Span,
    /// Device events that define the window.
    pub(crate) device_events: i64,
}

/// The window of every device that has device events asked for, ordered by rank and device.
impl Shared for Vec<DeviceWindow> {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let trace = context.trace;
        let mut windows: Vec<Option<DeviceWindow>> = vec![None; trace.devices.len()];
        for event in context.selection.device_events(trace) {
            let (device, span) = (event.device, trace.slices.span(event.slice));
            let window = windows[device.index()].get_or_insert(DeviceWindow { device, span, device_events: 0 });
            window.span = Span::new(window.span.start_ns.min(span.start_ns), window.span.end_ns.max(span.end_ns));
            window.device_events += 1;
        }
        windows.into_iter().flatten().collect()
    }
}

/// For each device the place of its window in `windows`, when it has one.
pub(crate) fn slots_of_devices(trace: &Trace, windows: &[DeviceWindow]) -> Vec<Option<usize>> {
    let mut slots = vec![None; trace.devices.len()];
    windows.iter().enumerate().for_each(|(slot, window)| slots[window.device.index()] = Some(slot));
    slots
}

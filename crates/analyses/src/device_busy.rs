//! When each device runs what: one pass over device events, shared by the analyses of device time.

use crate::AnalysisContext;
use crate::context::Shared;
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{DeviceEventClass, Trace};

/// When one device runs events of each class, over the whole trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DeviceBusy {
    /// Computing kernels.
    pub(crate) compute: IntervalSet,
    /// Communication kernels.
    pub(crate) comm: IntervalSet,
    /// Copies.
    pub(crate) memcpy: IntervalSet,
    /// Fills.
    pub(crate) memset: IntervalSet,
    /// Anything.
    pub(crate) any: IntervalSet,
    /// False for a device without events; events of no duration are in no set.
    pub(crate) has_events: bool,
}

impl DeviceBusy {
    /// The part inside `window`.
    pub(crate) fn clip(&self, window: Span) -> Self {
        Self {
            compute: self.compute.clip(window),
            comm: self.comm.clip(window),
            memcpy: self.memcpy.clip(window),
            memset: self.memset.clip(window),
            any: self.any.clip(window),
            has_events: self.has_events,
        }
    }
}

/// When each device is busy, by its id.
impl Shared for Vec<DeviceBusy> {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        device_busy(context.trace)
    }
}

fn device_busy(trace: &Trace) -> Vec<DeviceBusy> {
    let mut busy = vec![DeviceBusy::default(); trace.devices.len()];
    for event in trace.device_events.iter() {
        let busy = &mut busy[event.device.index()];
        busy.has_events = true;
        let set = match event.class {
            DeviceEventClass::Compute => &mut busy.compute,
            DeviceEventClass::Communication => &mut busy.comm,
            DeviceEventClass::Memcpy(_) => &mut busy.memcpy,
            DeviceEventClass::Memset => &mut busy.memset,
        };
        let span = trace.slices.span(event.slice);
        set.push(span);
        busy.any.push(span);
    }
    busy
}

/// When any device of a rank works.
pub(crate) fn busy_of(context: &AnalysisContext<'_>, rank: u32) -> IntervalSet {
    let devices = context.trace.devices.iter().zip(context.get::<Vec<DeviceBusy>>());
    let of_rank = devices.filter(|(device, _)| device.rank == rank);
    of_rank.fold(IntervalSet::default(), |sum, (_, busy)| sum.union(&busy.any))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;

    proptest! {
        #[test]
        fn a_device_is_busy_while_an_event_of_the_class_runs(streams in prop::collection::vec("[.CNHZ|]{30}", 1..4)) {
            let rows = streams.iter().enumerate().map(|(at, row)| format!("rank 0 stream {at} {row}\n"));
            let trace = drawn(&rows.collect::<String>());
            let spans = |is_of: fn(DeviceEventClass) -> bool| -> IntervalSet {
                let events = trace.device_events.iter().filter(|event| is_of(event.class));
                events.map(|event| trace.slices.span(event.slice)).collect()
            };
            let busy = device_busy(&trace).pop().unwrap_or_default();
            let expected = DeviceBusy {
                compute: spans(|class| class == DeviceEventClass::Compute),
                comm: spans(|class| class == DeviceEventClass::Communication),
                memcpy: spans(|class| matches!(class, DeviceEventClass::Memcpy(_))),
                memset: spans(|class| class == DeviceEventClass::Memset),
                any: spans(|_| true),
                has_events: !trace.device_events.is_empty(),
            };
            let clipped = busy.clip(Span::new(5_000, 9_000));
            let parts = clipped.compute.union(&clipped.comm).union(&clipped.memcpy).union(&clipped.memset);
            prop_assert_eq!((&clipped.any, &parts), (&parts, &expected.any.clip(Span::new(5_000, 9_000))));
            prop_assert_eq!(busy, expected);
        }
    }
}

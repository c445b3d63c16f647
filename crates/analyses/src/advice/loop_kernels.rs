//! When devices run what the operators of a loop launch.

use super::facts::Facts;
use super::loops::Loop;
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{DeviceEventClass, SliceId};

impl Facts<'_> {
    /// When computing kernels run that operators of a loop launch: those in which a slice is that `is_wanted`, on any device
    /// of its rank, as far as they lie in its steps.
    pub(super) fn kernels_in(&self, of: &Loop, is_wanted: impl Fn(SliceId) -> bool) -> IntervalSet {
        self.device_events_in(of, |class| class == DeviceEventClass::Compute, is_wanted)
    }

    /// The same, of kernels, copies and fills.
    pub(super) fn device_work_in(&self, of: &Loop, is_wanted: impl Fn(SliceId) -> bool) -> IntervalSet {
        self.device_events_in(of, |class| class != DeviceEventClass::Communication, is_wanted)
    }

    fn device_events_in(
        &self,
        of: &Loop,
        is_class: impl Fn(DeviceEventClass) -> bool,
        is_wanted: impl Fn(SliceId) -> bool,
    ) -> IntervalSet {
        let trace = self.trace;
        let events = self.selection.device_events(trace);
        let events =
            events.filter(|event| is_class(event.class) && trace.devices[event.device.index()].rank == of.rank);
        let of_wanted = events
            .filter(|event| event.op.is_some_and(|op| trace.slices.with_ancestors(op).any(&is_wanted)))
            .map(|event| trace.slices.span(event.slice));
        IntervalSet::from_unsorted(of_wanted.collect::<Vec<Span>>()).intersect(&of.windows)
    }
}

//! What a result rests on.

use crate::AnalysisContext;
use crate::context::Shared;
use serde::{Deserialize, Serialize};
use std::iter::Sum;
use stepscope_trace::{DeviceEvent, Trace};

/// What a result rests on.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Coverage {
    /// Share of device time, in the selection, whose launch is known; `None` without device time.
    pub device_ns_linked_ratio: Option<f64>,
}

/// That of a result over all device events asked for.
impl Shared for Coverage {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        Launched::asked_for(context).coverage()
    }
}

/// Device time, and how much of it by a launch that is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Launched {
    total_ns: i64,
    linked_ns: i64,
}

impl Launched {
    /// That of all device events asked for.
    pub fn asked_for(context: &AnalysisContext<'_>) -> Self {
        let trace = context.trace;
        context.selection.device_events(trace).map(|event| Self::of_event(trace, &event)).sum()
    }

    pub(crate) fn of_event(trace: &Trace, event: &DeviceEvent) -> Self {
        let total_ns = trace.slices.dur_ns[event.slice.index()];
        Self { total_ns, linked_ns: if event.launch.is_some() { total_ns } else { 0 } }
    }

    /// What a result over it rests on.
    pub fn coverage(self) -> Coverage {
        let Self { total_ns, linked_ns } = self;
        Coverage { device_ns_linked_ratio: (total_ns > 0).then(|| linked_ns as f64 / total_ns as f64) }
    }
}

impl Sum for Launched {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, next| Self {
            total_ns: sum.total_ns.saturating_add(next.total_ns),
            linked_ns: sum.linked_ns.saturating_add(next.linked_ns),
        })
    }
}

//! One row of the timeline, and what it draws.

use crate::items::Items;
use crate::sampled_frames::SampledFrames;
use crate::{RowId, RowInfo};
use stepscope_trace::Trace;

/// What a row draws.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// Slices of a track at one depth, ranges drawn on a device, or samples of a thread.
    Items(Items),
    /// Frames of a thread's samples at one depth.
    SampledFrames(SampledFrames),
    /// How busy some rows are on average.
    Density(Vec<RowId>),
    /// Values over time.
    Counter(Values),
}

impl Content {
    /// The items that it draws, where it has any.
    pub(crate) fn items<'a>(&'a self, trace: &Trace) -> Option<&'a Items> {
        match self {
            Self::Items(items) => Some(items),
            Self::SampledFrames(frames) => Some(frames.items(trace)),
            Self::Density(_) | Self::Counter(_) => None,
        }
    }
}

/// Where a counter's values are.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Values {
    /// In this counter of the trace.
    Counter(usize),
    /// Here: times, ascending, and values.
    Own { time_ns: Box<[i64]>, value: Box<[f64]> },
}

/// A row.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) info: RowInfo,
    pub(crate) content: Content,
}

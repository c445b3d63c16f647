//! A summary of a slice, as lists and links show it.

use crate::samples::sample_of;
use crate::{Class, RowId, Timeline};
use serde::Serialize;
use stepscope_base::cut_text;
use stepscope_trace::{SliceId, Trace};

/// Bytes of a name that are shown.
const LONGEST_NAME: usize = 16 << 10;

/// A name as answers have it: one of a megabyte is not sent for each of its slices.
pub(crate) fn shown_name(name: &str) -> String {
    cut_text(name, LONGEST_NAME).into_owned()
}

/// A summary of a slice.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SliceSummary {
    /// Its number, which holds as long as its trace is not read again.
    pub id: u32,
    /// Its name, of a long one the begin.
    pub name: String,
    /// What it is, as analyses call it; `sample` for a sample.
    pub kind: &'static str,
    /// What it is about.
    pub class: Class,
    /// The row that it is drawn in.
    pub row: Option<RowId>,
    /// Its rank.
    pub rank: u32,
    /// What its track is called.
    pub track: String,
    /// When it begins.
    pub start_ns: i64,
    /// How long it lasts.
    pub dur_ns: i64,
    /// True when its end was not recorded.
    pub is_unfinished: bool,
}

impl Timeline {
    /// A summary of a slice, or of a sample that stands in a row.
    pub fn summary(&self, trace: &Trace, slice: SliceId) -> SliceSummary {
        if let Some(sample) = sample_of(trace, slice) {
            return self.sample_summary(trace, slice, sample);
        }
        let (track, at) = (trace.slices.track[slice.index()], slice.index());
        let row = self.row_of(trace, slice);
        SliceSummary {
            id: slice.0,
            name: shown_name(trace.slice_name(slice)),
            kind: trace.slices.kind(slice).as_str(),
            class: self.classes.of_slices[at],
            row,
            rank: trace.rank_of_track(track),
            track: row.map(|row| self.rows[row as usize].info.name.clone()).unwrap_or_default(),
            start_ns: trace.slices.start_ns[at],
            dur_ns: trace.slices.dur_ns[at],
            is_unfinished: trace.slices.is_unfinished[at],
        }
    }
}

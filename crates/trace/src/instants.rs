//! Events without duration.

use crate::TrackId;
use stepscope_base::StringId;

/// Events without duration, ordered by time. 16 bytes a row.
#[derive(Clone, Debug, Default)]
pub struct Instants {
    /// The track it lies on.
    pub track: Vec<TrackId>,
    /// When, ns since the start of the trace.
    pub time_ns: Vec<i64>,
    /// Its name.
    pub name: Vec<StringId>,
}

impl Instants {
    /// Number of instants.
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    /// True without any instant.
    pub fn is_empty(&self) -> bool {
        self.time_ns.is_empty()
    }
}

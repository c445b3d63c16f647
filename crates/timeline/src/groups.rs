//! The rows of a timeline in groups by meaning: ranks, their devices, their threads.

use crate::RowId;
use serde::Serialize;

/// What a group stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupKind {
    /// A rank, with all of its processes and devices.
    Rank,
    /// A device of a rank.
    Device,
    /// The threads of a process.
    Threads,
    /// One track.
    Track,
    /// Values over time.
    Counters,
}

/// What a row shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    /// Slices of a track at one depth.
    Slices,
    /// Samples of a thread's stack, each of which is a moment.
    Samples,
    /// Frames of these stacks at one depth: neighbouring samples that share one are one block.
    SampledFrames,
    /// Slices that are drawn once more: host ranges as they appear on a device, waits for data by themselves.
    Projected,
    /// How busy the tracks of a group are.
    Density,
    /// Values over time.
    Counter,
}

/// What is to be known of a row before it is drawn.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RowInfo {
    /// Its number.
    pub id: RowId,
    /// What a person calls it.
    pub name: String,
    /// What it shows.
    pub kind: RowKind,
    /// How many slices of its track contain those of this row.
    pub depth: u16,
    /// How many slices it has.
    pub slices: u64,
    /// What a counter counts: `bytes`, `ratio`, `count`; none for others.
    pub unit: Option<&'static str>,
    /// Its rank.
    pub rank: u32,
    /// Which of the trace's tracks it belongs to, by its first lane; none for rows of several.
    pub track: Option<u32>,
}

/// Rows that belong together.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Group {
    /// What a person calls it.
    pub name: String,
    /// Its rank.
    pub rank: u32,
    /// What it stands for.
    pub kind: GroupKind,
    /// Whether it is shown open at first.
    pub is_open: bool,
    /// The row that is shown for it while it is closed.
    pub summary: Option<RowId>,
    /// Groups in it.
    pub groups: Vec<Group>,
    /// Its own rows, from top to bottom.
    pub rows: Vec<RowInfo>,
}

impl Group {
    pub(crate) fn new(name: impl Into<String>, rank: u32, kind: GroupKind) -> Self {
        Self { name: name.into(), rank, kind, is_open: true, summary: None, groups: Vec::new(), rows: Vec::new() }
    }
}

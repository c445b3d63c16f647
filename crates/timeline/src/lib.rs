//! What a timeline shows of a trace, at any zoom and without walking through it: [rows](Timeline::groups), what lies in
//! them as [tiles](Timeline::tiles), values over time, [search](SearchIndex), [sums](sums) of a range, and
//! [everything known](details) of a slice.
//!
//! A [`Timeline`] is an index beside a trace: it keeps no event twice. Time is integer nanoseconds since the start of
//! the trace. No I/O, no clock, no thread.

mod class;
mod counters;
mod data_waits;
mod density;
mod details;
mod groups;
mod items;
mod listing;
mod longest;
mod lookup;
mod overview;
mod projections;
mod row;
mod sampled_frames;
mod samples;
mod search;
mod slice_summary;
mod strips;
mod sum_blocks;
mod sums;
mod tiles;
mod timeline;

pub use class::Class;
pub use counters::{CounterPart, MAX_POINTS};
pub use details::{Details, Frame, LinkedSlice, details};
pub use groups::{Group, GroupKind, RowInfo, RowKind};
pub use lookup::named_slice;
pub use search::{Found, FoundName, NextHit, SearchIndex, SearchPlace};
pub use slice_summary::SliceSummary;
pub use strips::OtherWork;
pub use sums::{SumBy, SumRow, Sums};
pub use tiles::{BINS, MAX_BLOCKS, MAX_LEVEL, TileError, Tiles};
pub use timeline::{RowId, Timeline};

//! One file an analysis: its definition, its code, its tests. An analysis is a pure function from a trace to a small
//! result; it prints nothing, draws nothing, and never looks at a name.
//!
//! [`catalogue`] lists them all; command line, JSON, Python and documentation are driven from it.

mod catalogue;
pub mod copies;
mod device_windows;
pub mod findings;
mod gpu_activity;
pub mod gpu_utilization;
pub mod gpu_utilization_curve;
pub mod graphs;
pub mod kernels;
pub mod launch_statistics;
pub mod occupancy;
pub mod operators;
mod options;
pub mod overlap;
pub mod queue_length;
mod selection;
pub mod step_breakdown;
pub mod synchronizations;
mod table;
pub mod temporal_breakdown;

pub use catalogue::{Accepts, Analysis, Coverage, Outcome, catalogue, find};
pub use options::{Compat, GroupBy};
pub use selection::Selection;
pub use table::{Column, Table, Unit, Values};

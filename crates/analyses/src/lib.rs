//! One file an analysis: its definition, its code, its tests. An analysis is a pure function from a trace to a small
//! result; it prints nothing, draws nothing, and never looks at a name.
//!
//! [`catalogue`] lists them all; command line, JSON, Python and documentation are driven from it.

mod catalogue;
pub mod findings;
pub mod kernels;
pub mod operators;
mod options;
mod selection;
pub mod step_breakdown;
mod table;
pub mod temporal_breakdown;

pub use catalogue::{Accepts, Analysis, Coverage, Outcome, catalogue, find};
pub use options::{Compat, GroupBy};
pub use selection::Selection;
pub use table::{Column, Table, Unit, Values};

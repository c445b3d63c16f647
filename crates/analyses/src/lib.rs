//! One file an analysis: its definition, its code, its tests. An analysis is a pure function from a trace to a small
//! result; it prints nothing, draws nothing, and never looks at a name.
//!
//! [`catalogue`] lists them all; command line, JSON, Python and documentation are driven from it.

#[macro_use]
mod columns;

pub mod advice;
mod allocations;
pub mod bubbles;
mod catalogue;
pub mod clock_residuals;
pub mod collectives;
mod communication;
pub mod compare;
mod context;
pub mod copies;
pub mod critical_path;
pub mod critical_path_slack;
pub mod critical_path_slices;
mod device_busy;
mod device_windows;
pub mod findings;
mod flops;
mod gpu_activity;
pub mod gpu_utilization;
pub mod gpu_utilization_curve;
pub mod graphs;
mod groups;
pub mod hangs;
mod host_threads;
mod idle;
pub mod idle_causes;
pub mod idle_gaps;
pub mod imbalance;
mod io_calls;
pub mod io_curve;
pub mod io_files;
pub mod kernel_durations;
pub mod kernels;
pub mod lateness;
pub mod launch_statistics;
pub mod layout;
mod mean_parts;
pub mod memory_curve;
pub mod memory_events;
pub mod memory_peak;
pub mod memory_statistics;
pub mod memory_summary;
pub mod memory_timeline;
mod module_contexts;
pub mod modules;
pub mod occupancy;
mod op_classes;
mod op_tree;
pub mod operators;
mod options;
pub mod overlap;
pub mod queue_length;
mod rank_results;
mod ranks;
pub mod ranks_overview;
pub mod roofline;
mod selection;
pub mod source_lines;
pub mod step_breakdown;
pub mod stragglers;
mod stream_waits;
mod stretches;
pub mod synchronizations;
mod table;
pub mod temporal_breakdown;
pub mod what_if;
mod windows;

pub use allocations::AllocationState;
pub use catalogue::{Analysis, Coverage, Needs, Outcome, catalogue, find};
pub use columns::{Cell, CellValue, Fixed, Row, TableBuilder, Texts};
pub use context::{AnalysisContext, SharedResults};
pub use flops::{is_counted_by_torch_profiler, torch_profiler_flops};
pub use groups::GroupLabel;
pub use idle::IdleCause;
pub use options::{Compat, GroupBy, Options};
pub use rank_results::{FirstIds, RankResults, condensed, given};
pub use ranks::{Ranks, RanksError};
pub use selection::Selection;
pub use stretches::LateCause;
pub use table::{Column, Table, Unit, Values};

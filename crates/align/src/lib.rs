//! Several ranks, one clock: which collectives of ranks are the same one, and what their ends say of the clocks of the
//! processes that took part.
//!
//! It reads no file and computes no result for people: it puts a trace on one clock, and offers what it matched to
//! analyses.

mod calls;
mod clocks;
mod domains;
mod joined;
mod line;
mod matched;
mod residuals;
mod whole_run;

pub use calls::{Call, Calls};
pub use clocks::{Align, aligned, with_offsets};
pub use domains::{Domain, domains};
pub use joined::{Joined, last_to_come};
pub use matched::{Key, Matched, Part, parts, together};
pub use residuals::{Residual, residuals};
pub use whole_run::WholeRun;

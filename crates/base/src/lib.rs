//! Arithmetic and small structures that every other crate borrows: spans, interval sets, ids, interned strings,
//! percentiles, units, the time of day in UTC, long texts. No I/O, no clock, no thread.

pub mod cut_text;
pub mod ids;
pub mod interval_set;
pub mod percentiles;
pub mod span;
pub mod strings;
pub mod units;
pub mod utc;

#[doc(hidden)]
pub use serde;

pub use cut_text::cut_text;
pub use interval_set::IntervalSet;
pub use span::Span;
pub use strings::{StringId, StringTable};

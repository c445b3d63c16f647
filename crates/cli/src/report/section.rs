//! The first line of a section.

use crate::color::{DIM, HEADING};
use stepscope_engine::{fit_width, width_of};

/// A title and a remark beside it, in at most `width` columns.
pub(crate) fn heading(title: &str, remark: &str, width: usize) -> String {
    let remark = fit_width(remark, width.saturating_sub(width_of(title) + 2));
    let gap = if remark.is_empty() { "" } else { "  " };
    format!("{HEADING}{title}{HEADING:#}{gap}{DIM}{remark}{DIM:#}\n")
}

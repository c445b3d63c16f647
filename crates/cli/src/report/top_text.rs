//! The operators or kernels that take the most time, as text.

use super::section::heading;
use crate::color::DIM;
use std::fmt::Write;
use stepscope_base::units::{format_count, format_ns};
use stepscope_engine::report::Top;
use stepscope_engine::text_table;

/// A section with a table; empty without rows.
pub(super) fn top_text(title: &str, what: &str, top: &Top, width: usize) -> String {
    if top.table.is_empty() {
        return String::new();
    }
    let shown = top.table.len();
    let count = format_count(top.count as i64);
    let all = format_ns(top.total_ns);
    let share = match top.by {
        "device_self_ns" => format!("share of {all} device time"),
        "host_self_ns" => format!("share of {all} self time on the host"),
        _ => format!("share of {all}"),
    };
    let of = if shown < top.count { format!("{shown} of {count} {what}s, ") } else { String::new() };
    let mut text = heading(title, &format!("{of}{share}"), width);
    let table = text_table(&top.table, width - 2);
    table.heading.iter().for_each(|line| text.push_str(&format!("  {DIM}{line}{DIM:#}\n")));
    for line in &table.rows {
        let _ = writeln!(text, "  {line}");
    }
    text
}

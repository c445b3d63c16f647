//! A result as a table of a page.

use super::escape::Escaped;
use std::fmt::Write;
use stepscope_base::units::format_count;
use stepscope_engine::{Column, Table, column_headings, format_cell, has_answers, is_right_aligned};

/// Rows of one table; what is left out is said below it.
const MAX_ROWS: usize = 500;

/// `table`, numbers at the right; columns without any answer are left out.
pub(super) fn table_html(table: &Table) -> String {
    let shown: Vec<&Column> = table.columns.iter().filter(|column| has_answers(column)).collect();
    let class = |column: &Column| if is_right_aligned(column) { " class=\"number\"" } else { "" };
    let mut text = String::from("<div class=\"scroll\"><table>\n<thead><tr>");
    for (column, heading) in shown.iter().zip(column_headings(&shown)) {
        let _ = write!(text, "<th{}>{}</th>", class(column), Escaped(&heading));
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in 0..table.len().min(MAX_ROWS) {
        text.push_str("<tr>");
        for column in &shown {
            let _ = write!(text, "<td{}>{}</td>", class(column), Escaped(&format_cell(column, row)));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody>\n</table></div>\n");
    if table.len() > MAX_ROWS {
        let count = format_count(table.len() as i64);
        let _ = writeln!(text, "<p class=\"note\">The first {MAX_ROWS} of {count} rows.</p>");
    }
    text
}

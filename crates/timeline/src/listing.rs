//! What rows show, as a list: for those who cannot see the timeline.

use crate::timeline::within_reach;
use crate::{RowId, SliceSummary, Timeline};
use stepscope_base::Span;
use stepscope_trace::{SliceId, Trace};

impl Timeline {
    /// The slices of `rows` that lie in `window` at least in part, by start; at most `limit`.
    pub fn list(&self, trace: &Trace, rows: &[RowId], window: Span, limit: usize) -> Vec<SliceSummary> {
        let window = within_reach(window);
        let mut found: Vec<(i64, SliceId)> = Vec::new();
        for row in rows {
            let Some(items) = self.rows.get(*row as usize).and_then(|row| row.content.items(trace)) else { continue };
            let from = items.first_from(trace, 0, window.start_ns);
            let is_inside = |at: &usize| items.get(trace, *at).end_ns() > window.start_ns;
            let before = from.checked_sub(1).filter(is_inside);
            let inside = (from..items.len()).take_while(|at| items.get(trace, *at).start_ns < window.end_ns);
            let items = before.into_iter().chain(inside).take(limit).map(|at| items.get(trace, at));
            found.extend(items.filter_map(|item| Some((item.start_ns, item.slice?))));
        }
        found.sort_unstable();
        found.truncate(limit);
        found.into_iter().map(|(_, slice)| self.summary(trace, slice)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn a_list_has_what_lies_in_the_window() {
        let trace = drawn("rank 0 cpu 1 aaabbb.c\nrank 0 cpu 1 .x......\nrank 0 cpu 2 dd..ee..");
        let timeline = Timeline::of(&trace);
        let rows: Vec<RowId> = (0..timeline.row_count() as RowId).collect();
        let names = |from: i64, to: i64, limit| {
            let list = timeline.list(&trace, &rows, Span::new(from, to), limit);
            list.into_iter().map(|summary| summary.name).collect::<String>()
        };
        assert_eq!(names(0, 8_000, 99), "adxbec");
        assert_eq!(names(2_000, 4_000, 99), "ab");
        assert_eq!(names(0, 8_000, 2), "ad");
        assert_eq!(names(6_000, 7_000, 99), "");
    }
}

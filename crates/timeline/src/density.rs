//! How busy some rows are on average: what stands for a group that is closed.

use crate::items::Item;
use crate::row::Content;
use crate::{RowId, Timeline};
use stepscope_base::StringTable;
use stepscope_trace::Trace;

impl Timeline {
    /// For each of `bins` bins of `bin_ns` from `start_ns` on in which any of `rows` is busy: the bin, and in `dur_ns`
    /// the time that they are busy on average.
    pub(crate) fn density(&self, trace: &Trace, rows: &[RowId], start_ns: i64, bin_ns: i64, bins: usize) -> Vec<Item> {
        let mut busy_ns = vec![0_i64; bins];
        let edge = |bin: usize| start_ns.saturating_add(bin_ns.saturating_mul(bin as i64));
        for row in rows {
            let Content::Items(items) = &self.rows[*row as usize].content else { continue };
            let (mut before_ns, mut next) = items.taken_until(trace, 0, start_ns);
            for (bin, busy_ns) in busy_ns.iter_mut().enumerate() {
                let (until_ns, first) = items.taken_until(trace, next, edge(bin + 1));
                *busy_ns += until_ns - before_ns;
                (before_ns, next) = (until_ns, first);
            }
        }
        let count = rows.len().max(1) as i64;
        let busy = busy_ns.into_iter().enumerate().filter(|(_, busy_ns)| *busy_ns > 0);
        let item = |(bin, busy_ns): (usize, i64)| Item {
            start_ns: edge(bin),
            // Something that is busy for less than a nanosecond on average is still there.
            dur_ns: (busy_ns / count).max(1),
            name: StringTable::EMPTY,
            slice: None,
        };
        busy.map(item).collect()
    }
}

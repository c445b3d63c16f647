//! Rows that belong to slices, met in the order of slices.

use stepscope_trace::{SliceId, Trace};

/// Rows of a table that is ordered by slice, for readers that ask for slices in ascending order.
pub(crate) struct BySlice<'a, T> {
    rows: std::iter::Peekable<std::slice::Iter<'a, T>>,
    slice_of: fn(&T) -> SliceId,
}

impl<'a, T> BySlice<'a, T> {
    /// Nothing asked for yet.
    pub(crate) fn new(rows: &'a [T], slice_of: fn(&T) -> SliceId) -> Self {
        Self { rows: rows.iter().peekable(), slice_of }
    }

    /// The first row of `slice`; slices are asked for in ascending order.
    pub(crate) fn of(&mut self, slice: SliceId) -> Option<&'a T> {
        while self.rows.next_if(|row| (self.slice_of)(row) < slice).is_some() {}
        self.rows.next_if(|row| (self.slice_of)(row) == slice)
    }
}

/// The device events as (slice, position), ordered by slice.
pub(crate) fn device_events_by_slice(trace: &Trace) -> Vec<(SliceId, u32)> {
    let mut rows: Vec<(SliceId, u32)> =
        trace.device_events.iter().zip(0..).map(|(event, at)| (event.slice, at)).collect();
    rows.sort_unstable();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slice_gets_its_own_row() {
        let rows = [(SliceId(1), 'a'), (SliceId(4), 'b'), (SliceId(4), 'c'), (SliceId(5), 'd')];
        let mut by_slice = BySlice::new(&rows, |row| row.0);
        let found: String = (0..7).map(|id| by_slice.of(SliceId(id)).map_or('.', |row| row.1)).collect();
        assert_eq!(found, ".a..bd.");
    }
}

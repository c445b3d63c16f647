//! Ranges of NVTX: put together from their ends.

use super::decode::Marker;
use std::collections::HashMap;
use stepscope_recorder::device::Range;

/// Ranges that may be open at one time.
const MOST_OPEN: usize = 65_536;

/// Bits of `flags`.
const MOMENT: u32 = 1 << 0;
const START: u32 = 1 << 1;
const END: u32 = 1 << 2;

/// The ranges that are open.
#[derive(Default)]
pub(super) struct Markers {
    open: HashMap<u32, (Range, String)>,
}

/// What a marker amounts to.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Marked {
    /// A whole range, and its name.
    Range(Range, String),
    /// An open one, of which the end is to come.
    Open,
    /// An end without a beginning, or a beginning too many.
    Lost,
}

impl Markers {
    /// Takes a marker, of which `name` is the name.
    pub(super) fn take(&mut self, marker: &Marker, name: &str) -> Marked {
        let range = Range { name: None, start_ns: marker.at_ns, end_ns: marker.at_ns, thread: marker.thread };
        if marker.flags & START != 0 {
            if self.open.len() >= MOST_OPEN {
                return Marked::Lost;
            }
            self.open.insert(marker.id, (range, name.into()));
            return Marked::Open;
        }
        if marker.flags & END != 0 {
            return match self.open.remove(&marker.id) {
                Some((range, name)) => Marked::Range(Range { end_ns: marker.at_ns, ..range }, name),
                None => Marked::Lost,
            };
        }
        if marker.flags & MOMENT != 0 { Marked::Range(range, name.into()) } else { Marked::Lost }
    }

    /// Those that are still open as recording ends, by their beginning.
    pub(super) fn take_open(&mut self) -> Vec<(Range, String)> {
        let ranges = self.open.drain().map(|(_, (range, name))| (Range { end_ns: 0, ..range }, name));
        let mut ranges: Vec<_> = ranges.collect();
        ranges.sort_by(|(a, a_name), (b, b_name)| (a.start_ns, a_name).cmp(&(b.start_ns, b_name)));
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(flags: u32, at_ns: i64, id: u32) -> Marker {
        Marker { flags, at_ns, id, thread: 7, name: 0 }
    }

    fn range(start_ns: i64, end_ns: i64) -> Range {
        Range { name: None, start_ns, end_ns, thread: 7 }
    }

    #[test]
    fn both_ends_make_a_range_and_what_has_one_is_open_or_lost() {
        let mut markers = Markers::default();
        assert_eq!(markers.take(&marker(START, 10, 1), "a"), Marked::Open);
        assert_eq!(markers.take(&marker(START, 20, 2), "b"), Marked::Open);
        assert_eq!(markers.take(&marker(END, 30, 1), ""), Marked::Range(range(10, 30), "a".into()));
        assert_eq!(markers.take(&marker(END, 40, 1), ""), Marked::Lost);
        assert_eq!(markers.take(&marker(MOMENT, 50, 3), "now"), Marked::Range(range(50, 50), "now".into()));
        assert_eq!(markers.take_open(), [(range(20, 0), "b".into())]);
        assert!(markers.take_open().is_empty());
    }
}

//! Ranges of NVTX: put together from their ends.

use super::records::Marker;
use std::collections::{HashMap, HashSet};
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
    /// The numbers of those that nobody was told of yet.
    begun: HashSet<u32>,
}

/// What a marker amounts to.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Marked {
    /// A whole range, and its name.
    Range(Range, String),
    /// An open one, of which the end is to come.
    Open,
    /// The end of one that began before recording did.
    Unbegun,
    /// A beginning too many, or what is not known.
    Dropped,
}

impl Markers {
    /// Takes a marker, of which `name` is the name.
    pub(super) fn take(&mut self, marker: &Marker, name: &str) -> Marked {
        let Marker { at_ns, id, thread, .. } = *marker;
        let range = Range { start_ns: at_ns, end_ns: at_ns, thread, id, ..Range::default() };
        if marker.flags & START != 0 {
            if self.open.len() >= MOST_OPEN {
                return Marked::Dropped;
            }
            self.open.insert(id, (range, name.into()));
            self.begun.insert(id);
            return Marked::Open;
        }
        if marker.flags & END != 0 {
            self.begun.remove(&id);
            return match self.open.remove(&id) {
                Some((range, name)) => Marked::Range(Range { end_ns: at_ns, ..range }, name),
                None => Marked::Unbegun,
            };
        }
        if marker.flags & MOMENT != 0 { Marked::Range(range, name.into()) } else { Marked::Dropped }
    }

    /// Those that began since the last time and are still open, each once and by its beginning: they are written before
    /// they end, since the process may be killed.
    pub(super) fn take_begun(&mut self) -> Vec<(Range, &str)> {
        let ranges = self.begun.drain().filter_map(|id| self.open.get(&id));
        let ranges = ranges.map(|(range, name)| (Range { end_ns: 0, is_unfinished: true, ..*range }, name.as_str()));
        in_order(ranges.collect())
    }

    /// Those that are still open as recording ends, at `now_ns`.
    pub(super) fn take_open(&mut self, now_ns: i64) -> Vec<(Range, String)> {
        self.begun.clear();
        let ranges = self.open.drain().map(|(_, (range, name))| {
            let end_ns = now_ns.max(range.start_ns);
            (Range { end_ns, is_unfinished: true, ..range }, name)
        });
        in_order(ranges.collect())
    }
}

fn in_order<T: Ord>(mut ranges: Vec<(Range, T)>) -> Vec<(Range, T)> {
    ranges.sort_by(|(a, a_name), (b, b_name)| (a.start_ns, a_name).cmp(&(b.start_ns, b_name)));
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(flags: u32, at_ns: i64, id: u32) -> Marker {
        Marker { flags, at_ns, id, thread: 7, name: 0 }
    }

    fn range(id: u32, start_ns: i64, end_ns: i64) -> Range {
        Range { start_ns, end_ns, thread: 7, id, ..Range::default() }
    }

    fn unfinished(id: u32, start_ns: i64, end_ns: i64) -> Range {
        Range { is_unfinished: true, ..range(id, start_ns, end_ns) }
    }

    #[test]
    fn both_ends_make_a_range_and_what_has_one_is_open_or_began_before() {
        let mut markers = Markers::default();
        assert_eq!(markers.take(&marker(START, 10, 1), "a"), Marked::Open);
        assert_eq!(markers.take(&marker(START, 20, 2), "b"), Marked::Open);
        assert_eq!(markers.take(&marker(END, 30, 1), ""), Marked::Range(range(1, 10, 30), "a".into()));
        assert_eq!(markers.take(&marker(END, 40, 1), ""), Marked::Unbegun);
        assert_eq!(markers.take(&marker(MOMENT, 50, 3), "now"), Marked::Range(range(3, 50, 50), "now".into()));
        assert_eq!(markers.take(&marker(0, 60, 4), "nothing"), Marked::Dropped);
        assert_eq!(markers.take_open(70), [(unfinished(2, 20, 70), "b".into())]);
        assert!(markers.take_open(80).is_empty());
    }

    #[test]
    fn what_is_open_is_told_once_before_it_ends() {
        let mut markers = Markers::default();
        markers.take(&marker(START, 20, 2), "b");
        markers.take(&marker(START, 10, 1), "a");
        markers.take(&marker(START, 30, 3), "short");
        markers.take(&marker(END, 35, 3), "");
        assert_eq!(markers.take_begun(), [(unfinished(1, 10, 0), "a"), (unfinished(2, 20, 0), "b")]);
        assert!(markers.take_begun().is_empty());
        assert_eq!(markers.take(&marker(END, 40, 2), ""), Marked::Range(range(2, 20, 40), "b".into()));
        assert_eq!(markers.take_open(5), [(unfinished(1, 10, 10), "a".into())], "not before it begins");
    }

    #[test]
    fn ranges_without_end_do_not_fill_memory() {
        let mut markers = Markers::default();
        for id in 0..MOST_OPEN as u32 - 1 {
            assert_eq!(markers.take(&marker(START, 1, id), "open"), Marked::Open);
        }
        for id in MOST_OPEN as u32..3 * MOST_OPEN as u32 {
            markers.take(&marker(START, 2, id), "short");
            markers.take(&marker(END, 3, id), "");
        }
        assert_eq!(markers.begun.len(), MOST_OPEN - 1);
        assert_eq!(markers.take(&marker(START, 4, MOST_OPEN as u32), "open"), Marked::Open);
        assert_eq!(markers.take(&marker(START, 4, u32::MAX), "too many"), Marked::Dropped);
        assert_eq!((markers.take_begun().len(), markers.open.len()), (MOST_OPEN, MOST_OPEN));
    }
}

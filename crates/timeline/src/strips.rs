//! A rank as one row: when its devices communicate, when they do anything else, and when they are idle.
//!
//! ```text
//! stream 7    ▪▪▪▪▪ ▪▪
//! stream 9      ▒▒▒    ▒▒
//! strip       ▪▪▒▒▒ ▪▪ ▒▒        communication comes before everything else: all of a collective is seen
//! ```
//!
//! Of a trace that has only the communication of its ranks, the rest is told as [work](OtherWork).

use crate::Class;
use crate::items::Item;
use rustc_hash::FxHashMap;
use stepscope_base::{Span, StringId};
use stepscope_trace::Trace;

/// What devices do beside what is in a trace.
#[derive(Clone, Debug)]
pub struct OtherWork {
    /// What it is called, in the trace.
    pub name: StringId,
    /// When devices of a rank do it, in order and without overlaps. A rank may come several times.
    pub of_ranks: Vec<(u32, Vec<Span>)>,
}

/// The strip of each rank that has device events: items that do not overlap, in order. Where several events run at once,
/// communication is drawn, and of several of a kind the one that began first; each item is an event or a part of one.
pub(crate) fn strips(trace: &Trace, classes: &[Class], work: Option<&OtherWork>) -> FxHashMap<u32, Vec<Item>> {
    let mut of_rank: FxHashMap<u32, [Vec<Item>; 2]> = FxHashMap::default();
    for event in trace.device_events.iter() {
        let span = trace.slices.span(event.slice);
        let name = trace.slices.name[event.slice.index()];
        let item = Item { start_ns: span.start_ns, dur_ns: span.duration_ns(), name, slice: Some(event.slice) };
        let is_communication = classes[event.slice.index()] == Class::Communication;
        let kinds = of_rank.entry(trace.devices[event.device.index()].rank).or_default();
        kinds[usize::from(!is_communication)].push(item);
    }
    if let Some(OtherWork { name, of_ranks }) = work {
        for (rank, spans) in of_ranks {
            let item =
                |span: &Span| Item { start_ns: span.start_ns, dur_ns: span.duration_ns(), name: *name, slice: None };
            of_rank.entry(*rank).or_default()[1].extend(spans.iter().map(item));
        }
    }
    let strip = |[communication, others]: [Vec<Item>; 2]| {
        let communication = without_overlaps(communication);
        let mut items = outside(&without_overlaps(others), &communication);
        items.extend(communication);
        items.sort_unstable_by_key(|item| (item.start_ns, item.end_ns()));
        items
    };
    of_rank.into_iter().map(|(rank, kinds)| (rank, strip(kinds))).collect()
}

/// Each item as far as none that began before it covers it.
fn without_overlaps(mut items: Vec<Item>) -> Vec<Item> {
    items.sort_unstable_by_key(|item| (item.start_ns, std::cmp::Reverse(item.dur_ns), item.slice));
    let mut end_ns = i64::MIN;
    items.retain_mut(|item| {
        let own_end_ns = item.end_ns();
        item.start_ns = item.start_ns.max(end_ns);
        item.dur_ns = own_end_ns - item.start_ns;
        let is_seen = item.dur_ns > 0;
        end_ns = end_ns.max(own_end_ns);
        is_seen
    });
    items
}

/// The parts of `items` that lie outside of `covers`. Neither has items that overlap.
fn outside(items: &[Item], covers: &[Item]) -> Vec<Item> {
    let (mut parts, mut first) = (Vec::with_capacity(items.len()), 0);
    for item in items {
        while covers.get(first).is_some_and(|cover| cover.end_ns() <= item.start_ns) {
            first += 1;
        }
        let mut start_ns = item.start_ns;
        for cover in covers[first..].iter().take_while(|cover| cover.start_ns < item.end_ns()) {
            if cover.start_ns > start_ns {
                parts.push(Item { start_ns, dur_ns: cover.start_ns - start_ns, ..*item });
            }
            start_ns = cover.end_ns();
        }
        if start_ns < item.end_ns() {
            parts.push(Item { start_ns, dur_ns: item.end_ns() - start_ns, ..*item });
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;
    use stepscope_trace::{DeviceEvent, DeviceEventClass};

    /// What a strip has in each microsecond: `N` for communication, `C` for anything else, `.` for nothing.
    fn painted(items: &[Item], classes: &[Class], len: usize) -> String {
        let mut cells = vec!['.'; len];
        let mut end_ns = 0;
        for item in items {
            assert!(item.start_ns >= end_ns && item.dur_ns > 0, "items overlap: {items:?}");
            end_ns = item.end_ns();
            let is_communication = item.slice.is_some_and(|slice| classes[slice.index()] == Class::Communication);
            let letter = if is_communication { 'N' } else { 'C' };
            cells[(item.start_ns / 1_000) as usize..(end_ns / 1_000) as usize].fill(letter);
        }
        cells.into_iter().collect()
    }

    #[test]
    fn all_of_a_collective_is_seen() {
        let trace = drawn("rank 0 stream 7 CCCCC.HH..\nrank 0 stream 9 ..NNN...NN\nrank 1 cpu 1 aa........");
        let classes = Class::of_all(&trace);
        let strips = strips(&trace, &classes, None);
        assert_eq!(painted(&strips[&0], &classes, 10), "CCNNN.CCNN");
        assert_eq!(strips.get(&1), None);
    }

    proptest! {
        #[test]
        fn each_microsecond_is_communication_or_other_work_or_idle(
            streams in prop::collection::vec("[.CDNH]{24}", 1..4),
        ) {
            let draw = |(at, row): (usize, &String)| format!("rank 0 stream {at} {row}\n");
            let trace = drawn(&(streams.iter().enumerate().map(draw).collect::<String>() + "rank 0 cpu 1 a"));
            let classes = Class::of_all(&trace);
            let begin_ns = trace.span().expect("it was drawn").start_ns;
            prop_assert_eq!(begin_ns, 0);
            let has = |at: usize, letters: &str| streams.iter().any(|row| letters.contains(&row[at..=at]));
            let cell = |at| if has(at, "N") { 'N' } else if has(at, "CDH") { 'C' } else { '.' };
            let expected: String = (0..24).map(cell).collect();
            let strips = strips(&trace, &classes, None);
            let painted = |strips: &FxHashMap<u32, Vec<Item>>| {
                strips.get(&0).map_or(".".repeat(24), |items| painted(items, &classes, 24))
            };
            prop_assert_eq!(&painted(&strips), &expected);

            // The same where the trace has nothing but the communication.
            let mut condensed = trace.clone();
            let is_communication = |event: &DeviceEvent| event.class == DeviceEventClass::Communication;
            condensed.device_events = trace.device_events.iter().filter(is_communication).collect();
            let works = |at: &usize| has(*at, "CDH");
            let spans = (0..24).filter(works).map(|at| Span::new(at as i64 * 1_000, (at as i64 + 1) * 1_000));
            let name = condensed.strings.intern("device work");
            let work = OtherWork { name, of_ranks: vec![(0, spans.collect())] };
            prop_assert_eq!(&painted(&super::strips(&condensed, &classes, Some(&work))), &expected);
        }
    }
}

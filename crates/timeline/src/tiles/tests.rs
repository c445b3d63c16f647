use super::*;
use crate::Class;
use crate::RowKind;
use proptest::prelude::*;
use stepscope_trace::drawn::drawn;
use stepscope_trace::{Process, SliceKind, TraceBuilder, Track, TrackKind};

const SEVERAL: u8 = 2;

/// The columns of tiles, read from their bytes as `docs/http-api.md` says.
#[derive(PartialEq, Debug)]
pub(crate) struct Columns {
    pub(crate) items_of_block: Vec<u32>,
    pub(crate) start_ns: Vec<f64>,
    pub(crate) dur_ns: Vec<f64>,
    pub(crate) busy_ns: Vec<f64>,
    pub(crate) slice: Vec<u32>,
    pub(crate) count: Vec<u32>,
    pub(crate) name: Vec<u32>,
    pub(crate) class: Vec<u8>,
    pub(crate) flags: Vec<u8>,
    pub(crate) names: Vec<String>,
}

/// What `rows` show in the tiles `first..first + count` of `level`.
pub(crate) fn columns(
    timeline: &Timeline,
    trace: &Trace,
    rows: &[RowId],
    level: u8,
    first: i64,
    count: usize,
) -> Columns {
    let bytes = timeline.tiles(trace, rows, level, first, count).expect("tiles").to_bytes();
    let mut rest = &bytes[..];
    let mut next = |len: usize| {
        let (column, behind) = rest.split_at(len.next_multiple_of(8));
        rest = behind;
        &column[..len]
    };
    let words = |column: &[u8]| -> Vec<u32> {
        column.chunks(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))).collect()
    };
    let floats = |column: &[u8]| -> Vec<f64> {
        column.chunks(8).map(|float| f64::from_le_bytes(float.try_into().expect("eight bytes"))).collect()
    };
    let [magic, blocks, items, names] = words(next(16))[..] else { panic!("four words") };
    assert_eq!(magic, 0x314C_5453);
    let [blocks, items, names] = [blocks, items, names].map(|len| len as usize);
    let items_of_block = words(next(blocks * 4));
    let [start_ns, dur_ns, busy_ns] = std::array::from_fn(|_| floats(next(items * 8)));
    let [slice, count, name] = std::array::from_fn(|_| words(next(items * 4)));
    let [class, flags] = std::array::from_fn(|_| next(items).to_vec());
    let ends = words(next((names + 1) * 4));
    let text = |ends: &[u32]| String::from_utf8(rest[ends[0] as usize..ends[1] as usize].to_vec()).expect("UTF-8");
    let names = ends.windows(2).map(text).collect();
    Columns { items_of_block, start_ns, dur_ns, busy_ns, slice, count, name, class, flags, names }
}

fn row(timeline: &Timeline, kind: RowKind) -> RowId {
    timeline.rows.iter().find(|row| row.info.kind == kind).expect("such a row").info.id
}

/// Items of one tile of a row: start, duration, time taken, count, name.
fn summary(trace: &Trace, level: u8, number: i64) -> Vec<(i64, i64, i64, u32, String)> {
    let timeline = Timeline::of(trace);
    let tiles = columns(&timeline, trace, &[row(&timeline, RowKind::Slices)], level, number, 1);
    let item = |at: usize| {
        let name = tiles.names[tiles.name[at] as usize].clone();
        (tiles.start_ns[at] as i64, tiles.dur_ns[at] as i64, tiles.busy_ns[at] as i64, tiles.count[at], name)
    };
    (0..tiles.start_ns.len()).map(item).collect()
}

#[test]
fn what_is_shorter_than_a_bin_stands_together() {
    // Bins of 4,096 ns; slices of 1,000 and 9,000.
    let trace = drawn("rank 0 cpu 1 a|b|c.dddddddddee");
    assert_eq!(
        summary(&trace, 12, 0),
        [
            (0, 3_000, 3_000, 3, "a".to_string()),
            (4_000, 9_000, 9_000, 1, "d".to_string()),
            (13_000, 2_000, 2_000, 1, "e".to_string()),
        ]
    );
}

#[test]
fn a_long_slice_is_in_every_tile_that_it_touches_and_counts_once() {
    // Tiles of 512 ns.
    let trace = drawn("rank 0 cpu 1 aab");
    assert_eq!(summary(&trace, 0, 0), [(0, 2_000, 2_000, 1, "a".to_string())]);
    assert_eq!(summary(&trace, 0, 1), [(0, 2_000, 2_000, 0, "a".to_string())]);
    let counts: Vec<u32> = (0..6).map(|number| summary(&trace, 0, number).iter().map(|item| item.3).sum()).collect();
    assert_eq!(counts, [1, 0, 0, 1, 0, 0]);
    assert_eq!(summary(&trace, 0, -1), []);
}

#[test]
fn a_closed_group_shows_how_busy_its_streams_are() {
    let trace = drawn("rank 0 stream 7 CC..\nrank 0 stream 9 .CC.");
    let timeline = Timeline::of(&trace);
    // Bins of 1,024 ns.
    let tiles = columns(&timeline, &trace, &[row(&timeline, RowKind::Density)], 10, 0, 1);
    // The first stream is busy until 2,000, the second from 1,000 to 3,000.
    assert_eq!(tiles.busy_ns, [(1_024 + 24) / 2, (976 + 1_024) / 2, 952 / 2].map(f64::from));
    assert_eq!(tiles.count, [0, 0, 0]);
}

#[test]
fn what_cannot_be_is_refused() {
    let trace = drawn("rank 0 cpu 1 aab");
    let timeline = Timeline::of(&trace);
    let ask = |rows: &[RowId], level, first, count| timeline.tiles(&trace, rows, level, first, count).err();
    assert_eq!(ask(&[99], 0, 0, 1), Some(TileError::NoRow(99)));
    assert_eq!(ask(&[0], 44, 0, 1), Some(TileError::NoLevel(44)));
    assert_eq!(ask(&[0], 0, 0, 257), Some(TileError::Count(257)));
    assert_eq!(ask(&[], 0, 0, 1), Some(TileError::Count(0)));
    assert_eq!(ask(&[0], 43, i64::MAX, 1), Some(TileError::NoTile(i64::MAX)));
    assert_eq!(ask(&[0], 43, i64::MIN, 2), Some(TileError::NoTile(i64::MIN)));
    assert_eq!(ask(&[0], 43, -1, 2), None);
}

#[test]
fn bytes_are_as_the_document_says() {
    let trace = drawn("rank 0 cpu 1 a|b|c.dddddddddee");
    let timeline = Timeline::of(&trace);
    let tiles = timeline.tiles(&trace, &[0], 12, 0, 2).expect("tiles");
    let bytes = tiles.to_bytes();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let float = |at: usize| f64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    assert_eq!([word(0), word(4), word(8), word(12)], [0x314C_5453, 2, 3, 3]);
    assert_eq!([word(16), word(20)], [3, 0], "items of the blocks");
    assert_eq!([float(24), float(32), float(40)], [0.0, 4_000.0, 13_000.0], "starts");
    assert_eq!([float(48), float(56), float(64)], [3_000.0, 9_000.0, 2_000.0], "durations");
    let slices = 24 + 3 * 24;
    assert_eq!([word(slices), word(slices + 4), word(slices + 8)], [0, 3, 4]);
    let counts = slices + 16;
    assert_eq!([word(counts), word(counts + 4), word(counts + 8)], [3, 1, 1]);
    let classes = counts + 32;
    assert_eq!(bytes[classes..classes + 3], [Class::HostOp as u8; 3]);
    assert_eq!(bytes[classes + 8..classes + 11], [SEVERAL, 0, 0]);
    let ends = classes + 16;
    assert_eq!([word(ends), word(ends + 4), word(ends + 8), word(ends + 12)], [0, 1, 2, 3]);
    assert_eq!(&bytes[ends + 16..], b"ade");
}

#[test]
fn tiles_of_rows_are_those_of_each_after_the_other() {
    let threads = (1..=40).map(|thread| format!("rank 0 cpu {thread} a|b|c.dd|{}\n", "e".repeat(thread % 3)));
    let trace = drawn(&threads.collect::<String>());
    let timeline = Timeline::of(&trace);
    let of = |rows: &[RowId]| {
        let tiles = columns(&timeline, &trace, rows, 2, 0, 3);
        let item = |at: usize| (tiles.start_ns[at], tiles.slice[at], tiles.names[tiles.name[at] as usize].clone());
        ((0..tiles.start_ns.len()).map(item).collect::<Vec<_>>(), tiles.items_of_block)
    };
    let rows: Vec<RowId> = timeline.rows.iter().map(|row| row.info.id).collect();
    let (items, blocks): (Vec<_>, Vec<_>) = rows.iter().map(|row| of(&[*row])).unzip();
    assert_eq!(of(&rows), (items.concat(), blocks.concat()));
}

prop_compose! {
    /// A thread's slices at one depth, without overlaps.
    fn disjoint()(gaps in prop::collection::vec((0_i64..3_000, 0_i64..3_000), 1..200)) -> Vec<(i64, i64)> {
        let mut at_ns = 0;
        gaps.into_iter().map(|(gap, dur_ns)| {
            let start_ns = at_ns + gap + 1;
            at_ns = start_ns + dur_ns;
            (start_ns, dur_ns)
        }).collect()
    }
}

fn trace_of(slices: &[(i64, i64)]) -> Trace {
    let mut builder = TraceBuilder::new("tiles");
    let process = builder.add_process(Process::default());
    let track = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
    for (at, (start_ns, dur_ns)) in slices.iter().enumerate() {
        let name = builder.strings.intern(&format!("op{}", at % 7));
        builder.add_slice(track, SliceKind::Op, name, *start_ns, *dur_ns);
    }
    builder.finish()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// What was made before is what would be made now.
    #[test]
    fn an_overview_shows_what_the_items_show(
        gaps in prop::collection::vec((0_i64..300, 0_i64..300), 50), rare in 0_i64..1_000_000, len in 4_096_usize..6_000,
    ) {
        let mut at_ns = 0;
        let slices: Vec<(i64, i64)> = (0..len).map(|at| {
            let (gap, dur_ns) = gaps[at * at % gaps.len()];
            let dur_ns = if at % 701 == 0 { rare } else { dur_ns };
            let start_ns = at_ns + gap + if at % 977 == 0 { rare * 2 } else { 1 };
            at_ns = start_ns + dur_ns;
            (start_ns, dur_ns)
        }).collect();
        let trace = trace_of(&slices);
        let timeline = Timeline::of(&trace);
        let mut without = timeline.clone();
        for row in &mut without.rows {
            if let Content::Items(items) = &mut row.content {
                items.overview = Default::default();
            }
        }
        let Content::Items(items) = &timeline.rows[0].content else { panic!("no row of slices") };
        let kept: Vec<u8> = (0..=MAX_LEVEL).filter(|level| items.overview.cells(*level).is_some()).collect();
        prop_assert!(kept.len() > 2, "{kept:?}");
        for level in kept {
            prop_assert!(items.overview.cells(level).is_some_and(|cells| cells.len() <= 2 * (len / 4)));
            let tiles = 1 + timeline.span().end_ns / ((BINS as i64) << level);
            for first in (-1..tiles).step_by(20) {
                let tiles = columns(&timeline, &trace, &[0], level, first, 20);
                prop_assert_eq!(tiles, columns(&without, &trace, &[0], level, first, 20));
            }
        }
    }
}

proptest! {
    /// Whatever the zoom: all slices are counted once, and all of their time is there.
    #[test]
    fn tiles_of_a_level_add_up_to_the_row(slices in disjoint(), level in 0_u8..24) {
        let trace = trace_of(&slices);
        let timeline = Timeline::of(&trace);
        let span = timeline.span();
        let tile_ns = (BINS as i64) << level;
        let numbers = span.start_ns.div_euclid(tile_ns)..=span.end_ns.div_euclid(tile_ns);
        // The builder moves time 0 to the first event.
        let starts: Vec<i64> = trace.slices.start_ns.clone();
        let (mut count, mut busy_ns) = (0, 0);
        for number in numbers {
            let tiles = columns(&timeline, &trace, &[0], level, number, 1);
            prop_assert!(tiles.start_ns.len() <= 2 * BINS + 1);
            prop_assert!(tiles.start_ns.is_sorted());
            for at in 0..tiles.start_ns.len() {
                count += tiles.count[at];
                if tiles.count[at] > 0 {
                    busy_ns += tiles.busy_ns[at] as i64;
                    prop_assert!((number * tile_ns..(number + 1) * tile_ns).contains(&(tiles.start_ns[at] as i64)));
                }
                let behind = tiles.slice[at] as usize;
                let is_several = tiles.flags[at] & SEVERAL != 0;
                prop_assert_eq!(is_several, tiles.count[at] > 1);
                if is_several {
                    // No slice of the group lasts longer than the one it is named by.
                    let (from, to) = (tiles.start_ns[at] as i64, (tiles.start_ns[at] + tiles.dur_ns[at]) as i64);
                    let inside = (0..starts.len()).filter(|index| (from..=to).contains(&starts[*index]));
                    let inside: Vec<usize> = inside.take(tiles.count[at] as usize).collect();
                    let longest = inside.iter().map(|index| trace.slices.dur_ns[*index]).max();
                    prop_assert_eq!(longest, Some(trace.slices.dur_ns[behind]));
                } else {
                    prop_assert_eq!(tiles.start_ns[at] as i64, starts[behind]);
                    prop_assert_eq!(tiles.dur_ns[at] as i64, trace.slices.dur_ns[behind]);
                }
            }
        }
        prop_assert_eq!(count as usize, slices.len());
        prop_assert_eq!(busy_ns, slices.iter().map(|(_, dur_ns)| dur_ns).sum::<i64>());
    }
}

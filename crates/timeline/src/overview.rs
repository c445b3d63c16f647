//! What a row of many items shows from afar: the items of its tiles at coarse levels, made once, since making them asks
//! for many items each.
//!
//! ```text
//! level K       ▒ ▒ █ ▒    a cell: what begins in one bin and is shorter than it, or one item that is longer
//! level K + 1   ▒ █ ▒      made of the cells of level K
//! ```

use crate::class::Class;
use crate::items::Item;
use crate::tiles::NO_SLICE;
use stepscope_base::StringId;

/// Items from which on a row has an overview.
const MIN_ITEMS: usize = 1 << 12;
/// Items of a cell on average, at least, at the finest level that is kept: all levels together then take some 24 bytes
/// an item, since each has about half the cells of the one before.
const ITEMS_PER_CELL: usize = 4;
/// Coarser levels are made when they are asked for.
const MIN_CELLS: usize = 64;

/// What a tile shows of a bin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cell {
    pub(crate) start_ns: i64,
    /// To the end of the last item.
    pub(crate) drawn_ns: i64,
    /// The time that its items take.
    pub(crate) busy_ns: i64,
    /// The item, or the longest, the first of several.
    pub(crate) item: u32,
    /// Its name, slice and class: looked up elsewhere in memory, they would take most of a tile's time.
    pub(crate) name: StringId,
    pub(crate) slice: u32,
    pub(crate) class: Class,
    /// Whether it is unfinished.
    pub(crate) is_unfinished: bool,
    /// Items.
    pub(crate) count: u32,
}

impl Cell {
    /// One item, which has a place in its row, a class, and is unfinished or not.
    pub(crate) fn of(of: Item, item: u32, (class, is_unfinished): (Class, bool)) -> Self {
        let Item { start_ns, dur_ns, name, slice } = of;
        let slice = slice.map_or(NO_SLICE, |slice| slice.0);
        Self { start_ns, drawn_ns: dur_ns, busy_ns: dur_ns, item, name, slice, class, is_unfinished, count: 1 }
    }

    /// One item that is at least as long as a bin: it is drawn by itself.
    pub(crate) fn is_long(&self, bin_ns: i64) -> bool {
        self.count == 1 && self.drawn_ns >= bin_ns
    }
}

/// The cells of a row at coarse levels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overview {
    finest: u8,
    levels: Vec<Box<[Cell]>>,
}

impl Overview {
    /// The overview of `len` items in order that do not overlap, each with its class and whether it is unfinished; there is
    /// none of few.
    pub(crate) fn of(len: usize, item: impl Fn(usize) -> Item, looks: impl Fn(Item) -> (Class, bool)) -> Self {
        if len < MIN_ITEMS || u32::try_from(len).is_err() {
            return Self::default();
        }
        let Some(finest) = finest_level(len, |index| item(index).start_ns) else { return Self::default() };
        let single = |index: usize| {
            let item = item(index);
            Cell::of(item, index as u32, looks(item))
        };
        let dur_ns = |index: u32| item(index as usize).dur_ns;
        let mut levels = vec![merged((0..len).map(single), finest, dur_ns)];
        for level in finest + 1..=crate::MAX_LEVEL {
            let below = levels.last().expect("there is one");
            if below.len() < MIN_CELLS {
                break;
            }
            levels.push(merged(below.iter().copied(), level, dur_ns));
        }
        Self { finest, levels }
    }

    /// The cells of a level by start, if they are kept.
    pub(crate) fn cells(&self, level: u8) -> Option<&[Cell]> {
        let at = level.checked_sub(self.finest)?;
        self.levels.get(usize::from(at)).map(|cells| &**cells)
    }
}

/// The finest level that has few enough bins in which anything begins.
fn finest_level(len: usize, start_ns: impl Fn(usize) -> i64) -> Option<u8> {
    let bins_at =
        |level: u8| 1 + (1..len).filter(|index| start_ns(*index) >> level != start_ns(index - 1) >> level).count();
    let is_fine = |level: u8| bins_at(level) <= len / ITEMS_PER_CELL;
    let (mut low, mut high) = (0, crate::MAX_LEVEL);
    if !is_fine(high) {
        return None;
    }
    while low < high {
        let middle = u8::midpoint(low, high);
        match is_fine(middle) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Some(low)
}

/// The cells of a level, from those of a finer one.
fn merged(cells: impl Iterator<Item = Cell>, level: u8, dur_ns: impl Fn(u32) -> i64) -> Box<[Cell]> {
    let bin_ns = 1_i64 << level;
    let mut found: Vec<Cell> = Vec::new();
    for cell in cells {
        match found.last_mut() {
            Some(last)
                if last.start_ns >> level == cell.start_ns >> level
                    && !last.is_long(bin_ns)
                    && !cell.is_long(bin_ns) =>
            {
                last.drawn_ns = cell.start_ns + cell.drawn_ns - last.start_ns;
                last.busy_ns = last.busy_ns.saturating_add(cell.busy_ns);
                last.count += cell.count;
                if dur_ns(cell.item) > dur_ns(last.item) {
                    (last.item, last.name) = (cell.item, cell.name);
                    (last.slice, last.class) = (cell.slice, cell.class);
                }
            }
            _ => found.push(cell),
        }
    }
    found.into()
}

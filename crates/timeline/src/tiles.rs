//! What rows show in a stretch of time at some zoom, in the form that goes to the browser: `docs/http-api.md`, "Tiles".
//!
//! ```text
//! level K   a tile is 512 bins of 2^K ns
//! slices    ▪▪▪ ▪  ██████████ ▪▪▪▪ ▪
//! bins      │    │    │    │    │    │      shorter than a bin: one item for all that begin in it
//! items     ▒▒▒    ██████████ ▒▒▒▒ ▪        at least a bin long: an item of its own
//! ```

mod bytes;

use crate::items::{Item, Items};
use crate::overview::Cell;
use crate::row::Content;
use crate::{RowId, Timeline};
use std::borrow::Cow;
use stepscope_trace::Trace;

/// Bins of a tile.
pub const BINS: usize = 512;
/// The coarsest level: a tile of it takes 53 days.
pub const MAX_LEVEL: u8 = 43;
/// Rows × tiles that may be asked for at once.
pub const MAX_BLOCKS: usize = 256;

pub(crate) const NO_SLICE: u32 = u32::MAX;

/// Why there are no tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TileError {
    /// There is no such row.
    NoRow(RowId),
    /// There is no such level.
    NoLevel(u8),
    /// More tiles than [`MAX_BLOCKS`], or none.
    Count(usize),
    /// A tile far from any moment that a trace can have.
    NoTile(i64),
}

impl std::fmt::Display for TileError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoRow(row) => write!(out, "there is no row {row}"),
            Self::NoLevel(level) => write!(out, "there is no level {level}: levels are 0 to {MAX_LEVEL}"),
            Self::Count(count) => write!(out, "{count} tiles: 1 to {MAX_BLOCKS} can be had at once"),
            Self::NoTile(tile) => write!(out, "there is no tile {tile} of that level"),
        }
    }
}

impl std::error::Error for TileError {}

/// What some rows show in some tiles.
#[derive(Clone, Debug)]
pub struct Tiles<'a> {
    trace: &'a Trace,
    /// All tiles of the first row, then of the second.
    blocks: Vec<Block<'a>>,
}

/// What a row shows in a tile.
#[derive(Clone, Debug, Default)]
struct Block<'a> {
    /// What began before the tile and is drawn by itself; its count is 0.
    before: Option<Cell>,
    cells: Cow<'a, [Cell]>,
}

impl Block<'_> {
    fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.before.iter().chain(self.cells.iter())
    }

    fn len(&self) -> usize {
        usize::from(self.before.is_some()) + self.cells.len()
    }
}

impl Timeline {
    /// What `rows` show in the tiles `first..first + count` of `level`.
    ///
    /// # Errors
    /// See [`TileError`].
    pub fn tiles<'a>(
        &'a self,
        trace: &'a Trace,
        rows: &[RowId],
        level: u8,
        first: i64,
        count: usize,
    ) -> Result<Tiles<'a>, TileError> {
        let blocks = rows.len().saturating_mul(count);
        if level > MAX_LEVEL {
            return Err(TileError::NoLevel(level));
        }
        if blocks == 0 || blocks > MAX_BLOCKS {
            return Err(TileError::Count(blocks));
        }
        if let Some(row) = rows.iter().find(|row| **row as usize >= self.rows.len()) {
            return Err(TileError::NoRow(*row));
        }
        let tile_ns = (BINS as i64) << level;
        let begin =
            |number: i64| number.checked_mul(tile_ns).filter(|begin_ns| begin_ns.checked_add(tile_ns).is_some());
        let of = |offset: i64| {
            let number = first.checked_add(offset).ok_or(TileError::NoTile(first))?;
            begin(number).ok_or(TileError::NoTile(number))
        };
        let begins_ns: Vec<i64> = (0..count as i64).map(of).collect::<Result<_, _>>()?;
        let tiles = rows.iter().flat_map(|row| begins_ns.iter().map(|begin_ns| (*row, *begin_ns)));
        let blocks = tiles.map(|(row, begin_ns)| self.block(trace, row, begin_ns, 1 << level, level)).collect();
        Ok(Tiles { trace, blocks })
    }

    fn block<'a>(&'a self, trace: &'a Trace, row: RowId, begin_ns: i64, bin_ns: i64, level: u8) -> Block<'a> {
        let content = &self.rows[row as usize].content;
        if let Content::Density(rows) = content {
            let items = self.density(trace, rows, begin_ns, bin_ns, BINS).into_iter();
            let cell = |item: Item| Cell { drawn_ns: bin_ns, count: 0, ..self.cell(trace, item) };
            return Block { before: None, cells: items.map(cell).collect() };
        }
        let Some(items) = content.items(trace) else { return Block::default() };
        match items.overview.cells(level) {
            Some(cells) => kept(cells, begin_ns, bin_ns),
            None => self.made(trace, items, begin_ns, bin_ns),
        }
    }

    fn made(&self, trace: &Trace, items: &Items, begin_ns: i64, bin_ns: i64) -> Block<'static> {
        let end_ns = begin_ns + bin_ns * BINS as i64;
        let mut at = items.first_from(trace, 0, begin_ns);
        // What is part of no item of the tile before.
        let before = at.checked_sub(1).map(|before| items.get(trace, before));
        let before = before.filter(|item| item.end_ns() > begin_ns && item.dur_ns >= bin_ns);
        let before = before.map(|item| Cell { count: 0, ..self.cell(trace, item) });
        let mut cells = Vec::new();
        while at < items.len() {
            let start_ns = items.get(trace, at).start_ns;
            if start_ns >= end_ns {
                break;
            }
            let bin_end_ns = begin_ns + ((start_ns - begin_ns) / bin_ns + 1) * bin_ns;
            let next = items.first_near(trace, at, bin_end_ns);
            // Items do not overlap: only the last of a bin can reach beyond it.
            let last = items.get(trace, next - 1);
            let short_until = if last.dur_ns >= bin_ns { next - 1 } else { next };
            match short_until - at {
                0 => {}
                1 => cells.push(self.cell(trace, items.get(trace, at))),
                count => {
                    let (busy_ns, longest) = items.sum_and_longest(trace, at, short_until);
                    let drawn_ns = items.get(trace, short_until - 1).end_ns() - start_ns;
                    let longest = self.cell(trace, items.get(trace, longest));
                    cells.push(Cell { start_ns, drawn_ns, busy_ns, count: count as u32, ..longest });
                }
            }
            if short_until < next {
                cells.push(self.cell(trace, last));
            }
            at = next;
        }
        Block { before, cells: cells.into() }
    }

    /// An item by itself.
    fn cell(&self, trace: &Trace, item: Item) -> Cell {
        Cell::of(item, 0, (self.classes.of(item), item.is_unfinished(trace)))
    }
}

/// What [`Timeline::made`] makes, where it was made before.
fn kept(cells: &[Cell], begin_ns: i64, bin_ns: i64) -> Block<'_> {
    let end_ns = begin_ns + bin_ns * BINS as i64;
    let first = cells.partition_point(|cell| cell.start_ns < begin_ns);
    let last = first + cells[first..].partition_point(|cell| cell.start_ns < end_ns);
    let before = first.checked_sub(1).map(|before| cells[before]);
    let reaches = |cell: &Cell| cell.is_long(bin_ns) && cell.start_ns + cell.drawn_ns > begin_ns;
    let before = before.filter(reaches).map(|cell| Cell { count: 0, ..cell });
    Block { before, cells: Cow::Borrowed(&cells[first..last]) }
}

#[cfg(test)]
pub(crate) mod tests;

//! What rows show in a stretch of time at some zoom, in the form that goes to the browser: `docs/http-api.md`, "Tiles".
//!
//! ```text
//! level K   a tile is 512 bins of 2^K ns
//! slices    ▪▪▪ ▪  ██████████ ▪▪▪▪ ▪
//! bins      │    │    │    │    │    │      shorter than a bin: one item for all that begin in it
//! items     ▒▒▒    ██████████ ▒▒▒▒ ▪        at least a bin long: an item of its own
//! ```

use crate::items::{Item, Items};
use crate::overview::Cell;
use crate::row::Content;
use crate::{RowId, Timeline};
use stepscope_base::StringId;
use stepscope_trace::{SliceId, Trace};

/// Bins of a tile.
pub const BINS: usize = 512;
/// The coarsest level: a tile of it takes 53 days.
pub const MAX_LEVEL: u8 = 43;
/// Rows × tiles that may be asked for at once.
pub const MAX_BLOCKS: usize = 256;

const MAGIC: u32 = 0x314C_5453;
pub(crate) const NO_SLICE: u32 = u32::MAX;
const UNFINISHED: u8 = 1;
const SEVERAL: u8 = 2;
/// The longest name shown, in characters.
const NAME_CHARS: usize = 200;

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

/// Items of some rows in some tiles, in columns.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Tiles {
    /// Items of each block: all tiles of the first row, then of the second.
    pub items_of_block: Vec<u32>,
    /// When each item begins.
    pub start_ns: Vec<f64>,
    /// How long it is drawn.
    pub dur_ns: Vec<f64>,
    /// How much of that is taken.
    pub busy_ns: Vec<f64>,
    /// The slice or the sample behind it, of several the longest; `u32::MAX` without one.
    pub slice: Vec<u32>,
    /// Slices that begin in the tile.
    pub count: Vec<u32>,
    /// Index of its name.
    pub name: Vec<u32>,
    /// Its class.
    pub class: Vec<u8>,
    /// 1 unfinished, 2 several.
    pub flags: Vec<u8>,
    /// The names.
    pub names: Vec<String>,
}

impl Timeline {
    /// What `rows` show in the tiles `first..first + count` of `level`.
    ///
    /// # Errors
    /// See [`TileError`].
    pub fn tiles(
        &self,
        trace: &Trace,
        rows: &[RowId],
        level: u8,
        first: i64,
        count: usize,
    ) -> Result<Tiles, TileError> {
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
        // A system gives zeros without writing them: of many names, few are touched.
        let numbers = vec![0; trace.strings.len()];
        let mut writer = Writer { timeline: self, trace, tiles: Tiles::default(), numbers };
        // Memory that is not written to costs nothing, and columns that grow are copied.
        writer.tiles.reserve(blocks * BINS);
        for row in rows {
            for offset in 0..count as i64 {
                let number = first.checked_add(offset).ok_or(TileError::NoTile(first))?;
                let begin_ns = begin(number).ok_or(TileError::NoTile(number))?;
                writer.block(*row, begin_ns, level);
            }
        }
        Ok(writer.tiles)
    }
}

struct Writer<'a> {
    timeline: &'a Timeline,
    trace: &'a Trace,
    tiles: Tiles,
    /// Of each name of the trace: its number among the names of the tiles, from 1 on.
    numbers: Vec<u32>,
}

impl Writer<'_> {
    fn block(&mut self, row: RowId, begin_ns: i64, level: u8) {
        let before = self.tiles.start_ns.len();
        let (timeline, bin_ns) = (self.timeline, 1_i64 << level);
        let content = &timeline.rows[row as usize].content;
        if let Some(items) = content.items(self.trace) {
            match items.overview.cells(level) {
                Some(cells) => self.cells(items, cells, begin_ns, bin_ns),
                None => self.items(items, begin_ns, bin_ns),
            }
        }
        if let Content::Density(rows) = content {
            for item in timeline.density(self.trace, rows, begin_ns, bin_ns, BINS) {
                let (busy_ns, drawn) = (item.dur_ns, Item { dur_ns: bin_ns, ..item });
                self.put(drawn, busy_ns, 0, 0);
            }
        }
        self.tiles.items_of_block.push((self.tiles.start_ns.len() - before) as u32);
    }

    /// What [`Writer::items`] does, where it was done before.
    fn cells(&mut self, items: &Items, cells: &[Cell], begin_ns: i64, bin_ns: i64) {
        let (trace, end_ns) = (self.trace, begin_ns + bin_ns * BINS as i64);
        let first = cells.partition_point(|cell| cell.start_ns < begin_ns);
        let before = first.checked_sub(1).map(|before| cells[before]);
        if let Some(cell) = before.filter(|cell| cell.count == 1)
            && cell.start_ns + cell.drawn_ns > begin_ns
            && cell.drawn_ns >= bin_ns
        {
            self.put(items.get(trace, cell.item as usize), cell.busy_ns, 0, 0);
        }
        let last = first + cells[first..].partition_point(|cell| cell.start_ns < end_ns);
        self.tiles.reserve(last - first);
        for cell in &cells[first..last] {
            let slice = (cell.slice != NO_SLICE).then_some(SliceId(cell.slice));
            let drawn = Item { start_ns: cell.start_ns, dur_ns: cell.drawn_ns, name: cell.name, slice };
            self.put(drawn, cell.busy_ns, cell.count, if cell.count > 1 { SEVERAL } else { 0 });
        }
    }

    fn items(&mut self, items: &Items, begin_ns: i64, bin_ns: i64) {
        let (trace, end_ns) = (self.trace, begin_ns + bin_ns * BINS as i64);
        let mut at = items.first_from(trace, 0, begin_ns);
        // What began before the tile and is not part of an item there.
        if let Some(item) = at.checked_sub(1).map(|before| items.get(trace, before))
            && item.end_ns() > begin_ns
            && item.dur_ns >= bin_ns
        {
            self.put(item, item.dur_ns, 0, 0);
        }
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
                1 => {
                    let item = items.get(trace, at);
                    self.put(item, item.dur_ns, 1, 0);
                }
                count => {
                    let (busy_ns, longest) = items.sum_and_longest(trace, at, short_until);
                    let drawn_ns = items.get(trace, short_until - 1).end_ns() - start_ns;
                    let group = Item { start_ns, dur_ns: drawn_ns, ..items.get(trace, longest) };
                    self.put(group, busy_ns, count as u32, SEVERAL);
                }
            }
            if short_until < next {
                self.put(last, last.dur_ns, 1, 0);
            }
            at = next;
        }
    }

    fn put(&mut self, item: Item, busy_ns: i64, count: u32, flags: u8) {
        let slice = item.slice.map(|slice| slice.index());
        let is_unfinished =
            flags & SEVERAL == 0 && slice.and_then(|slice| self.trace.slices.is_unfinished.get(slice)) == Some(&true);
        let class = self.timeline.class_of(item);
        let name = self.number(item.name);
        self.tiles.start_ns.push(item.start_ns as f64);
        self.tiles.dur_ns.push(item.dur_ns as f64);
        self.tiles.busy_ns.push(busy_ns as f64);
        self.tiles.slice.push(item.slice.map_or(NO_SLICE, |slice| slice.0));
        self.tiles.count.push(count);
        self.tiles.name.push(name);
        self.tiles.class.push(class as u8);
        self.tiles.flags.push(flags | if is_unfinished { UNFINISHED } else { 0 });
    }

    /// The number of a name among those of the tiles.
    fn number(&mut self, name: StringId) -> u32 {
        let number = &mut self.numbers[name.index()];
        if *number == 0 {
            self.tiles.names.push(shortened(self.trace.strings.get(name)));
            *number = self.tiles.names.len() as u32;
        }
        *number - 1
    }
}

fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_string(),
    }
}

impl Tiles {
    fn reserve(&mut self, items: usize) {
        for column in [&mut self.start_ns, &mut self.dur_ns, &mut self.busy_ns] {
            column.reserve(items);
        }
        for column in [&mut self.slice, &mut self.count, &mut self.name] {
            column.reserve(items);
        }
        for column in [&mut self.class, &mut self.flags] {
            column.reserve(items);
        }
    }

    /// The tiles as bytes, in the form that docs/http-api.md describes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let items = self.start_ns.len();
        let text: usize = self.names.iter().map(String::len).sum();
        let mut bytes =
            Vec::with_capacity(64 + items * 40 + self.items_of_block.len() * 4 + self.names.len() * 4 + text);
        let head = [MAGIC, self.items_of_block.len() as u32, items as u32, self.names.len() as u32];
        put_words(&mut bytes, &head);
        put_words(&mut bytes, &self.items_of_block);
        for column in [&self.start_ns, &self.dur_ns, &self.busy_ns] {
            put_column(&mut bytes, column, |value| value.to_le_bytes());
        }
        for column in [&self.slice, &self.count, &self.name] {
            put_words(&mut bytes, column);
        }
        for column in [&self.class, &self.flags] {
            bytes.extend_from_slice(column);
            pad(&mut bytes);
        }
        let ends = self.names.iter().scan(0_u32, |end, name| {
            *end += name.len() as u32;
            Some(*end)
        });
        put_words(&mut bytes, &std::iter::once(0).chain(ends).collect::<Vec<_>>());
        self.names.iter().for_each(|name| bytes.extend_from_slice(name.as_bytes()));
        bytes
    }
}

fn put_words(bytes: &mut Vec<u8>, words: &[u32]) {
    put_column(bytes, words, |word| word.to_le_bytes());
    pad(bytes);
}

/// Puts many values at once: their room is made first.
fn put_column<const N: usize, T: Copy>(bytes: &mut Vec<u8>, column: &[T], le_bytes: impl Fn(T) -> [u8; N]) {
    let begin = bytes.len();
    bytes.resize(begin + column.len() * N, 0);
    let places = bytes[begin..].chunks_exact_mut(N);
    places.zip(column).for_each(|(place, value)| place.copy_from_slice(&le_bytes(*value)));
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}

#[cfg(test)]
mod tests;

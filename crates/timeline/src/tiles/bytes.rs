//! Tiles as they go to the browser: in columns, as `docs/http-api.md` says.

use super::{Block, Tiles};
use crate::overview::Cell;
use stepscope_base::{StringId, StringTable};
use stepscope_trace::Trace;

const MAGIC: u32 = 0x314C_5453;
const UNFINISHED: u8 = 1;
const SEVERAL: u8 = 2;
/// The longest name shown, in characters.
const NAME_CHARS: usize = 200;

impl Tiles<'_> {
    /// The tiles as bytes, in the form that docs/http-api.md describes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (blocks, items) = (self.blocks.len(), self.blocks.iter().map(Block::len).sum::<usize>());
        let lens = [16, blocks * 4, items * 8, items * 8, items * 8, items * 4, items * 4, items * 4, items, items];
        // A system gives zeros without writing them.
        let mut bytes = vec![0; lens.iter().map(|len| len.next_multiple_of(8)).sum()];
        let mut rest = &mut bytes[..];
        let [
            head,
            of_blocks,
            mut starts,
            mut drawn,
            mut busy,
            mut slices,
            mut counts,
            mut numbers,
            mut classes,
            mut flags,
        ] = lens.map(|len| {
            let (column, behind) = std::mem::take(&mut rest).split_at_mut(len.next_multiple_of(8));
            rest = behind;
            &mut column[..len]
        });
        let mut names = Names::of(self.trace);
        for block in &self.blocks {
            starts = put(starts, block.cells().map(|cell| (cell.start_ns as f64).to_le_bytes()));
            drawn = put(drawn, block.cells().map(|cell| (cell.drawn_ns as f64).to_le_bytes()));
            busy = put(busy, block.cells().map(|cell| (cell.busy_ns as f64).to_le_bytes()));
            slices = put(slices, block.cells().map(|cell| cell.slice.to_le_bytes()));
            counts = put(counts, block.cells().map(|cell| cell.count.to_le_bytes()));
            numbers = put(numbers, block.cells().map(|cell| names.number(cell.name).to_le_bytes()));
            classes = put(classes, block.cells().map(|cell| [cell.class as u8]));
            flags = put(flags, block.cells().map(|cell| [flags_of(cell)]));
        }
        put(of_blocks, self.blocks.iter().map(|block| (block.len() as u32).to_le_bytes()));
        put(head, [MAGIC, blocks as u32, items as u32, names.ends.len() as u32 - 1].map(u32::to_le_bytes));
        bytes.extend(names.ends.iter().flat_map(|end| end.to_le_bytes()));
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend_from_slice(names.text.as_bytes());
        bytes
    }
}

/// The names of tiles, by number.
struct Names<'a> {
    strings: &'a StringTable,
    /// Of each name of the trace its number, from 1 on; of many names, few are touched.
    numbers: Vec<u32>,
    text: String,
    /// Where each begins in the text, and where the last ends.
    ends: Vec<u32>,
}

impl<'a> Names<'a> {
    fn of(trace: &'a Trace) -> Self {
        let numbers = vec![0; trace.strings.len()];
        Self { strings: &trace.strings, numbers, text: String::new(), ends: vec![0] }
    }

    fn number(&mut self, name: StringId) -> u32 {
        let number = &mut self.numbers[name.index()];
        if *number == 0 {
            *number = self.ends.len() as u32;
            put_shortened(&mut self.text, self.strings.get(name));
            self.ends.push(self.text.len() as u32);
        }
        *number - 1
    }
}

/// Puts values at the begin of a column; returns the rest of it.
fn put<const N: usize>(column: &mut [u8], values: impl IntoIterator<Item = [u8; N]>) -> &mut [u8] {
    let mut filled = 0;
    for (place, value) in column.chunks_exact_mut(N).zip(values) {
        place.copy_from_slice(&value);
        filled += N;
    }
    &mut column[filled..]
}

fn flags_of(cell: &Cell) -> u8 {
    match (cell.count, cell.is_unfinished) {
        (2.., _) => SEVERAL,
        (_, true) => UNFINISHED,
        (_, false) => 0,
    }
}

fn put_shortened(text: &mut String, name: &str) {
    match name.char_indices().nth(NAME_CHARS) {
        Some((at, _)) => text.extend([&name[..at], "…"]),
        None => text.push_str(name),
    }
}

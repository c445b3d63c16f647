//! Rows that were written more than once.
//!
//! Before 2.0 a forked worker inherits what its parent had not yet written to the file, and writes it once more when it
//! ends. Such a copy has the thread, number, time and name of the first.
//!
//! ```text
//! parent   row 198, row 199 ──┬── row 200 …            file  198 199 200 … 198 199 (1st worker) 198 199 (2nd worker)
//! workers                     └── fork, fork
//! ```

use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use stepscope_base::StringId;
use stepscope_trace::TrackId;

/// Numbers that are remembered together.
const CHUNK: u64 = 16;

/// What was seen: for each thread and row number a mark made of the row's content. 4 bytes a row.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    marks: Vec<[u32; CHUNK as usize]>,
    /// The index in `marks` of a thread's numbers.
    indexes: FxHashMap<(TrackId, u64), u32>,
    /// The numbers and the index that each thread used last, since its next number is often one of them.
    last: Vec<(u64, u32)>,
}

impl Repeats {
    /// True when this row was there before; remembers it otherwise.
    pub(super) fn is_repeated(&mut self, track: TrackId, id: u64, start_ns: i64, dur_ns: i64, name: StringId) -> bool {
        let mut hasher = FxHasher::default();
        (start_ns, dur_ns, name).hash(&mut hasher);
        // 0 means that there was no row.
        let mark = (hasher.finish() >> 32) as u32 | 1;
        let index = self.index(track, id / CHUNK);
        let known = &mut self.marks[index as usize][(id % CHUNK) as usize];
        let is_repeated = *known == mark;
        *known = mark;
        is_repeated
    }

    fn index(&mut self, track: TrackId, chunk: u64) -> u32 {
        if self.last.len() <= track.index() {
            self.last.resize(track.index() + 1, (u64::MAX, 0));
        }
        let last = &mut self.last[track.index()];
        if last.0 != chunk {
            let index = *self.indexes.entry((track, chunk)).or_insert_with(|| {
                self.marks.push([0; CHUNK as usize]);
                self.marks.len() as u32 - 1
            });
            *last = (chunk, index);
        }
        last.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_the_same_throughout_is_a_repetition() {
        let mut repeats = Repeats::default();
        let mut is_repeated =
            |track, id, start_ns, name| repeats.is_repeated(TrackId(track), id, start_ns, 3, StringId(name));
        assert!(!is_repeated(0, 199, 10, 1));
        assert!(!is_repeated(0, 200, 10, 1));
        assert!(!is_repeated(1, 199, 10, 1));
        assert!(is_repeated(0, 199, 10, 1));
        assert!(!is_repeated(0, 199, 11, 1));
        assert!(!is_repeated(0, 200, 10, 2));
    }
}

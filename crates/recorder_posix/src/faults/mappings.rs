//! Which part of which file is mapped where.

use crate::files::{File, file};
use crate::memory_maps;
use crate::paths::is_watched;
use std::collections::BTreeMap;

/// Paths of mappings that are of no file on a disk.
const NO_FILES: [&[u8]; 4] = [b"/memfd:", b"/SYSV", b"/anon_hugepage", b"/[aio]"];
const DELETED: &[u8] = b" (deleted)";
const PAGE: u64 = 4096;

/// Mapped files that are watched, by where they begin. What was unmapped stays until something else is mapped there.
#[derive(Default)]
pub(super) struct Mappings {
    by_start: BTreeMap<u64, Mapping>,
}

#[derive(Clone, Copy)]
struct Mapping {
    end: u64,
    offset: u64,
    file: &'static File,
}

/// The file of a mapping, when it is watched.
pub(super) fn mapped_file(path: &[u8]) -> Option<&'static File> {
    let is_file = path.starts_with(b"/") && !NO_FILES.iter().any(|prefix| path.starts_with(prefix));
    let path = path.strip_suffix(DELETED).unwrap_or(path);
    if is_file && is_watched(path) { file(path) } else { None }
}

impl Mappings {
    /// What was mapped from `start` to `end` no longer is; the file is, from `offset` on.
    pub(super) fn map(&mut self, (start, end): (u64, u64), offset: u64, file: Option<&'static File>) {
        let overlapping: Vec<(u64, Mapping)> = self
            .by_start
            .range(..end)
            .rev()
            .take_while(|(_, mapping)| mapping.end > start)
            .map(|(at, mapping)| (*at, *mapping))
            .collect();
        for (at, mapping) in overlapping {
            self.by_start.remove(&at);
            if at < start {
                self.by_start.insert(at, Mapping { end: start, ..mapping });
            }
            if mapping.end > end {
                self.by_start.insert(end, Mapping { offset: mapping.offset + (end - at), ..mapping });
            }
        }
        if let Some(file) = file.filter(|_| start < end) {
            self.by_start.insert(start, Mapping { end, offset, file });
        }
    }

    /// The file at an address, and where the page begins in it.
    pub(super) fn find(&self, address: u64) -> Option<(&'static File, u64)> {
        let (start, mapping) = self.by_start.range(..=address).next_back()?;
        let within = (address < mapping.end).then(|| address - start)?;
        Some((mapping.file, (mapping.offset + within) & !(PAGE - 1)))
    }

    /// Takes in what is mapped now.
    pub(super) fn learn_all(&mut self) {
        for range in memory_maps::all().into_iter().flatten().filter(|range| !range.path.is_empty()) {
            self.map((range.start, range.end), range.offset, mapped_file(&range.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_last_one_that_was_mapped_holds(
            mapped in prop::collection::vec((0u64..40, 1u64..15, 0u64..9, prop::option::of(0usize..3)), 0..20),
        ) {
            let files = [b"/data/a", b"/data/b", b"/data/c"].map(|path| file(path).unwrap());
            let mut mappings = Mappings::default();
            let mut pages: Vec<Option<(u32, u64)>> = vec![None; 64];
            for (start, len, offset, of) in mapped {
                let file = of.map(|of| files[of]);
                mappings.map((start * PAGE, (start + len) * PAGE), offset * PAGE, file);
                for page in 0..len {
                    pages[(start + page) as usize] = file.map(|file| (file.number, (offset + page) * PAGE));
                }
            }
            for (page, expected) in (0..).zip(pages) {
                let found = mappings.find(page * PAGE + 77).map(|(file, offset)| (file.number, offset));
                prop_assert_eq!(found, expected);
            }
        }
    }
}

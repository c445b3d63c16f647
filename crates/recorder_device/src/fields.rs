//! The bytes of a vendor's record, read at offsets.

/// A record, as long as its kind is.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    /// Four bytes; 0 where the record ends before.
    pub(crate) fn u32(self, at: usize) -> u32 {
        self.0.get(at..at + 4).map_or(0, |bytes| u32::from_ne_bytes(bytes.try_into().expect("four bytes")))
    }

    /// Eight bytes; 0 where the record ends before.
    pub(crate) fn u64(self, at: usize) -> u64 {
        self.0.get(at..at + 8).map_or(0, |bytes| u64::from_ne_bytes(bytes.try_into().expect("eight bytes")))
    }

    /// Sixteen bytes; zeros where the record ends before.
    pub(crate) fn bytes16(self, at: usize) -> [u8; 16] {
        self.0.get(at..at + 16).map_or([0; 16], |bytes| bytes.try_into().expect("sixteen bytes"))
    }

    /// Start and end of what has both, in order: else the record says nothing that could be shown.
    pub(crate) fn span(self, start: usize, end: usize) -> Option<(i64, i64)> {
        let [start, end] = [start, end].map(|at| i64::try_from(self.u64(at)).ok());
        start.zip(end).filter(|(start, end)| *start > 0 && end >= start)
    }
}

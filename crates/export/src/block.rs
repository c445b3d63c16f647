//! Memory that a large file is written from, so much at once. It begins where a page does: from there the system can
//! write it without a copy.

/// Bytes of a block: a disk takes as many in one go.
pub(crate) const BLOCK_BYTES: usize = 1 << 21;
/// Memory and places in the file are multiples of this.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Text of one block at most. Memory is taken when the first text comes.
#[derive(Default)]
pub(crate) struct Block {
    memory: Vec<u8>,
    /// Where the first whole page of the memory begins.
    begin: usize,
    len: usize,
}

impl Block {
    /// Takes in what there is room for; how much that is.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> usize {
        if self.memory.is_empty() {
            self.memory = vec![0; BLOCK_BYTES + PAGE_BYTES];
            let whole_page = self.memory.as_ptr().align_offset(PAGE_BYTES);
            self.begin = if whole_page <= PAGE_BYTES { whole_page } else { 0 };
        }
        let taken = bytes.len().min(BLOCK_BYTES - self.len);
        let at = self.begin + self.len;
        self.memory[at..at + taken].copy_from_slice(&bytes[..taken]);
        self.len += taken;
        taken
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[self.begin..self.begin + self.len]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len == BLOCK_BYTES
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }
}

/// True when a file can be written past the system's cache with these bytes.
pub(crate) fn is_whole(bytes: &[u8]) -> bool {
    bytes.len() == BLOCK_BYTES && bytes.as_ptr().addr().is_multiple_of(PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_piece_can_be_written_as_it_is() {
        let mut block = Block::default();
        assert!(block.is_empty() && block.bytes().is_empty());
        let text = vec![7; BLOCK_BYTES - 5];
        assert_eq!(block.add(&text), text.len());
        assert!(!block.is_full() && !is_whole(block.bytes()));
        assert_eq!(block.add(&[1, 2, 3, 4, 5, 6, 7]), 5);
        assert!(block.is_full() && is_whole(block.bytes()));
        assert!(block.bytes().ends_with(&[7, 1, 2, 3, 4, 5]));
        block.clear();
        assert!(block.is_empty());
    }
}

//! A part of a text in memory, which moves on through it: any size of input takes bounded memory.

use std::io;

/// Bytes read at once.
pub(crate) const BLOCK_BYTES: usize = 1 << 17;
/// One item of a text (an event, a member beside the events) may be this long; what is longer is taken for broken.
pub(crate) const MAX_ITEM_BYTES: usize = 64 << 20;

/// Where a text comes from, in order.
pub(crate) trait Blocks {
    /// Appends about `wanted` bytes; 0 bytes more means the end.
    ///
    /// # Errors
    /// What stopped it; what was appended before is good.
    fn append(&mut self, bytes: &mut Vec<u8>, wanted: usize) -> io::Result<usize>;
}

impl Blocks for Box<dyn Blocks + '_> {
    fn append(&mut self, bytes: &mut Vec<u8>, wanted: usize) -> io::Result<usize> {
        self.as_mut().append(bytes, wanted)
    }
}

impl Blocks for &[u8] {
    fn append(&mut self, bytes: &mut Vec<u8>, wanted: usize) -> io::Result<usize> {
        let (now, later) = self.split_at(wanted.min(self.len()));
        bytes.extend_from_slice(now);
        *self = later;
        Ok(now.len())
    }
}

/// A text whose first bytes were looked at.
pub(crate) struct Begun<'a> {
    head: Vec<u8>,
    /// What stopped it behind them.
    source_error: Option<io::Error>,
    rest: Box<dyn Blocks + 'a>,
}

impl<'a> Begun<'a> {
    /// Looks at the first block of `rest`.
    pub(crate) fn of(mut rest: Box<dyn Blocks + 'a>) -> Self {
        let mut head = Vec::new();
        let source_error = rest.append(&mut head, BLOCK_BYTES).err();
        Self { head, source_error, rest }
    }

    /// The first bytes, until they are read.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }
}

impl Blocks for Begun<'_> {
    fn append(&mut self, bytes: &mut Vec<u8>, wanted: usize) -> io::Result<usize> {
        let head = std::mem::take(&mut self.head);
        if !head.is_empty() {
            bytes.extend_from_slice(&head);
            return Ok(head.len());
        }
        self.source_error.take().map_or_else(|| self.rest.append(bytes, wanted), Err)
    }
}

/// The bytes at hand.
pub(crate) struct Window<B> {
    source: B,
    bytes: Vec<u8>,
    /// Place of the first byte at hand within the text.
    base: u64,
    is_at_end: bool,
    source_error: Option<String>,
}

impl<B: Blocks> Window<B> {
    /// Nothing at hand yet; the text begins at `base`.
    pub(crate) fn new(source: B, base: u64) -> Self {
        Self { source, bytes: Vec::new(), base, is_at_end: false, source_error: None }
    }

    /// Nothing at hand yet, in memory that another window used. What a long item needed is given back: files are read
    /// into all the memory that there is.
    pub(crate) fn in_memory_of(source: B, base: u64, mut memory: Vec<u8>) -> Self {
        memory.clear();
        memory.shrink_to(2 * BLOCK_BYTES);
        Self { source, bytes: memory, base, is_at_end: false, source_error: None }
    }

    /// The memory, for another window.
    pub(crate) fn into_memory(self) -> Vec<u8> {
        self.bytes
    }

    /// The bytes at hand.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Place of the first byte at hand within the text.
    #[inline(always)]
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// True when nothing comes behind what is at hand.
    pub(crate) fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// What stopped the source before its end.
    pub(crate) fn source_error(&self) -> Option<&str> {
        self.source_error.as_deref()
    }

    /// Forgets the bytes before `keep_from` and brings at least one more; as many again as are kept when they are many,
    /// so that a long item takes linear time. False when there are no more. Places move down by `keep_from`.
    pub(crate) fn slide(&mut self, keep_from: usize) -> bool {
        self.bytes.drain(..keep_from);
        self.base += keep_from as u64;
        self.grow()
    }

    /// Brings more bytes and keeps all; false when there are no more. What came before trouble is brought too.
    pub(crate) fn grow(&mut self) -> bool {
        if self.is_at_end {
            return false;
        }
        let before = self.bytes.len();
        let wanted = BLOCK_BYTES.max(before);
        match self.source.append(&mut self.bytes, wanted) {
            Ok(0) => self.is_at_end = true,
            Ok(_) => {}
            Err(error) => {
                self.is_at_end = true;
                self.source_error = Some(error.to_string());
            }
        }
        self.bytes.len() > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_moves_through_the_text() {
        let text: Vec<u8> = (0..3 * BLOCK_BYTES + 5).map(|at| at as u8).collect();
        let mut window = Window::new(text.as_slice(), 0);
        let mut seen = 0;
        while window.slide(window.bytes().len()) {
            assert_eq!(window.base(), seen);
            assert_eq!(window.bytes()[0], text[seen as usize]);
            seen += window.bytes().len() as u64;
        }
        assert_eq!((seen as usize, window.is_at_end()), (text.len(), true));
    }

    #[test]
    fn the_memory_of_a_long_item_is_not_kept() {
        let window = Window::in_memory_of(b"text".as_slice(), 0, Vec::with_capacity(40 * BLOCK_BYTES));
        assert!(window.into_memory().capacity() < 3 * BLOCK_BYTES);
    }

    #[test]
    fn trouble_ends_the_text_and_is_told() {
        struct Cut(bool);
        impl Blocks for Cut {
            fn append(&mut self, bytes: &mut Vec<u8>, _: usize) -> io::Result<usize> {
                bytes.push(b'x');
                if std::mem::replace(&mut self.0, true) { Err(io::Error::other("cut")) } else { Ok(1) }
            }
        }
        let mut window = Window::new(Cut(false), 0);
        assert!(window.grow() && window.grow() && !window.grow());
        assert_eq!((window.bytes(), window.source_error()), (b"xx".as_slice(), Some("cut")));
    }
}

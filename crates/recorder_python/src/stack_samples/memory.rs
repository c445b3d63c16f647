//! The process's own memory, read while others write it: what is not there any more is unreadable and no fault.

use stepscope_recorder_torch::Peek;

const PAGE_BYTES: usize = 4096;
const PAGES: usize = 32;
const WORD_BYTES: usize = size_of::<usize>();

/// Pages as they were when they were first asked for, until they are forgotten.
pub(super) struct Memory {
    peek: Peek,
    pages: Box<[(usize, usize, [u8; PAGE_BYTES]); PAGES]>,
    /// How many pages were read; the place of the next one.
    count: usize,
}

impl Memory {
    /// `None` where the process has no more descriptors.
    pub(super) fn new() -> Option<Self> {
        Some(Self { peek: Peek::new().ok()?, pages: Box::new([(0, 0, [0; PAGE_BYTES]); PAGES]), count: 0 })
    }

    /// From here on memory is read anew.
    pub(super) fn forget(&mut self) {
        self.count = 0;
    }

    /// The word at an address; `None` where it cannot be read.
    pub(super) fn word(&mut self, address: usize) -> Option<usize> {
        let mut word = [0; WORD_BYTES];
        self.copy(address, &mut word)?;
        Some(usize::from_ne_bytes(word))
    }

    /// The 32-bit number at an address.
    pub(super) fn number(&mut self, address: usize) -> Option<i32> {
        let mut number = [0; 4];
        self.copy(address, &mut number)?;
        Some(i32::from_ne_bytes(number))
    }

    /// `len` bytes from an address.
    pub(super) fn bytes(&mut self, address: usize, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.copy(address, &mut bytes)?;
        Some(bytes)
    }

    fn copy(&mut self, mut address: usize, mut into: &mut [u8]) -> Option<()> {
        while !into.is_empty() {
            let (page, at) = (address & !(PAGE_BYTES - 1), address & (PAGE_BYTES - 1));
            let len = into.len().min(PAGE_BYTES - at);
            let (here, rest) = into.split_at_mut(len);
            here.copy_from_slice(self.page(page)?.get(at..at + len)?);
            (address, into) = (address.checked_add(len)?, rest);
        }
        Some(())
    }

    fn page(&mut self, address: usize) -> Option<&[u8]> {
        let known = self.count.min(PAGES);
        let at = match self.pages[..known].iter().position(|(of, ..)| *of == address) {
            Some(at) => at,
            None => {
                let at = self.count % PAGES;
                let (of, len, bytes) = &mut self.pages[at];
                *of = address;
                *len = self.peek.copy(std::ptr::with_exposed_provenance(address), bytes);
                self.count += 1;
                at
            }
        };
        let (_, len, bytes) = &self.pages[at];
        (*len > 0).then(|| &bytes[..*len])
    }
}

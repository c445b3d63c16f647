//! The bytes of a pickle, in order.

use super::PickleError;
use crate::window::{Blocks, MAX_ITEM_BYTES, Window};

/// A line of a pickle, as the name of a class, may be this long.
const MAX_LINE_BYTES: usize = 1 << 12;

/// Bytes that are read one after the other.
pub(super) struct Bytes<B> {
    window: Window<B>,
    at: usize,
    /// Place of the instruction that is carried out.
    instruction: u64,
}

impl<B: Blocks> Bytes<B> {
    pub(super) fn of(source: B) -> Self {
        Self { window: Window::new(source, 0), at: 0, instruction: 0 }
    }

    /// The next instruction.
    #[inline]
    pub(super) fn instruction(&mut self) -> Result<u8, PickleError> {
        self.instruction = self.window.base() + self.at as u64;
        self.byte()
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, PickleError> {
        if self.at == self.window.bytes().len() {
            self.bring(1)?;
        }
        let byte = self.window.bytes()[self.at];
        self.at += 1;
        Ok(byte)
    }

    /// The next bytes, as many as asked for.
    #[inline]
    pub(super) fn take(&mut self, count: u64) -> Result<&[u8], PickleError> {
        let Some(count) = usize::try_from(count).ok().filter(|count| *count <= MAX_ITEM_BYTES) else {
            return Err(self.damaged(format!("a text of {count} bytes")));
        };
        if self.window.bytes().len() - self.at < count {
            self.bring(count)?;
        }
        self.at += count;
        Ok(&self.window.bytes()[self.at - count..self.at])
    }

    /// The next bytes as a number, the least first.
    #[inline]
    pub(super) fn number<const COUNT: usize>(&mut self) -> Result<u64, PickleError> {
        let mut word = [0; 8];
        word[..COUNT].copy_from_slice(self.take(COUNT as u64)?);
        Ok(u64::from_le_bytes(word))
    }

    /// The text up to the next line's end.
    pub(super) fn line(&mut self) -> Result<String, PickleError> {
        let mut line = Vec::new();
        loop {
            match self.byte()? {
                b'\n' => return Ok(String::from_utf8_lossy(&line).into_owned()),
                _ if line.len() == MAX_LINE_BYTES => return Err(self.damaged("a line without an end".into())),
                byte => line.push(byte),
            }
        }
    }

    /// Says that the instruction cannot be carried out.
    pub(super) fn damaged(&self, found: String) -> PickleError {
        PickleError::Damaged { at_byte: self.instruction, found }
    }

    /// Brings bytes until `count` are at hand.
    fn bring(&mut self, count: usize) -> Result<(), PickleError> {
        let mut grows = self.window.slide(std::mem::take(&mut self.at));
        while grows && self.window.bytes().len() < count {
            grows = self.window.grow();
        }
        if self.window.bytes().len() >= count {
            return Ok(());
        }
        let at_byte = self.window.base() + self.window.bytes().len() as u64;
        Err(PickleError::Cut { at_byte, reason: self.window.source_error().map(str::to_string) })
    }
}

//! How far reading an input has come, as another thread sees it.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes read and bytes there are, as they lie on disk: packed ones count as packed.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    done: Arc<AtomicU64>,
    total: Arc<AtomicU64>,
}

impl Progress {
    /// Bytes read so far; never more than there are.
    pub fn done_bytes(&self) -> u64 {
        self.done.load(Ordering::Relaxed).min(self.total_bytes())
    }

    /// Bytes there are; 0 when not known, as for a stream.
    pub fn total_bytes(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    pub(crate) fn add_total(&self, bytes: u64) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn set_total(&self, bytes: u64) {
        self.total.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_done(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// A stream whose bytes are counted.
pub(crate) struct Counted<R> {
    pub(crate) source: R,
    pub(crate) progress: Progress,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.source.read(buffer)?;
        self.progress.add_done(len as u64);
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_as_they_are_read() {
        let progress = Progress::default();
        progress.add_total(10);
        let mut stream = Counted { source: [0u8; 10].as_slice(), progress: progress.clone() };
        let _ = stream.read(&mut [0; 4]).expect("memory");
        assert_eq!((progress.done_bytes(), progress.total_bytes()), (4, 10));
        progress.add_done(100);
        assert_eq!(progress.done_bytes(), 10);
    }
}

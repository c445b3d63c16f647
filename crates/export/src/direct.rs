//! A large file past the system's cache of pages: nobody reads it soon, and filling those pages takes longer than
//! writing it. Where that is not possible it is written as any other.

use std::fs::File;
use std::io::{self, Write};

/// What is written at once.
const PIECE_BYTES: usize = 1 << 20;
/// Memory and places in the file are multiples of this.
const PAGE_BYTES: usize = 4096;

/// A file under way. [`flush`](Write::flush) writes its end; nothing may follow.
pub(crate) struct DirectFile {
    file: File,
    memory: Vec<u8>,
    /// Where the first whole page of the memory begins.
    begin: usize,
    len: usize,
    is_direct: bool,
}

impl DirectFile {
    pub(crate) fn new(file: File) -> Self {
        Self { file, memory: Vec::new(), begin: 0, len: 0, is_direct: false }
    }

    /// Writes what has gathered.
    fn write_piece(&mut self) -> io::Result<()> {
        let mut rest = self.begin..self.begin + self.len;
        while !rest.is_empty() {
            match self.file.write(&self.memory[rest.clone()]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => rest.start += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // This file system, or this place in the file, has other wishes.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput && self.is_direct => self.use_cache()?,
                Err(error) => return Err(error),
            }
        }
        self.len = 0;
        Ok(())
    }

    fn use_cache(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_direct) { set_direct(&self.file, false) } else { Ok(()) }
    }
}

impl Write for DirectFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.memory.is_empty() {
            self.memory = vec![0; PIECE_BYTES + PAGE_BYTES];
            let whole_page = self.memory.as_ptr().align_offset(PAGE_BYTES);
            self.begin = if whole_page <= PAGE_BYTES { whole_page } else { 0 };
        }
        if self.len == PIECE_BYTES {
            if !self.is_direct {
                self.is_direct = set_direct(&self.file, true).is_ok();
            }
            self.write_piece()?;
        }
        let taken = bytes.len().min(PIECE_BYTES - self.len);
        let at = self.begin + self.len;
        self.memory[at..at + taken].copy_from_slice(&bytes[..taken]);
        self.len += taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.use_cache()?;
        self.write_piece()
    }
}

#[cfg(target_os = "linux")]
fn set_direct(file: &File, is_on: bool) -> io::Result<()> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let mut flags = fcntl_getfl(file)?;
    flags.set(OFlags::DIRECT, is_on);
    Ok(fcntl_setfl(file, flags)?)
}

#[cfg(not(target_os = "linux"))]
fn set_direct(_: &File, is_on: bool) -> io::Result<()> {
    if is_on { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(folder: &std::path::Path) {
        for len in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES, 3 * PIECE_BYTES + 4097] {
            let text: Vec<u8> = (0..len).map(|at| ((at / 3) ^ (at / 1_000)) as u8).collect();
            let path = folder.join("text");
            let mut file = DirectFile::new(File::create(&path).unwrap());
            text.chunks(70_001).for_each(|piece| file.write_all(piece).unwrap());
            file.flush().unwrap();
            assert!(std::fs::read(&path).unwrap() == text, "{len} bytes");
        }
    }

    #[test]
    fn everything_is_there_on_any_file_system() {
        check(tempfile::tempdir().unwrap().path());
        // Not every kernel writes past the cache here.
        if let Ok(memory) = tempfile::tempdir_in("/dev/shm") {
            check(memory.path());
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "").unwrap();
        let mut file = DirectFile::new(File::open(&path).unwrap());
        let text = vec![7; 2 * PIECE_BYTES];
        assert!(file.write_all(&text).and_then(|()| file.flush()).is_err());
    }
}

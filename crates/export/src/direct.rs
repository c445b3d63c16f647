//! A large file past the system's cache of pages: nobody reads it soon, and filling those pages takes longer than
//! writing it. Where that is not possible it is written as any other.

use crate::block::{Block, is_whole};
use std::fs::File;
use std::io::{self, Write};

/// A file under way. [`flush`](Write::flush) writes its end; nothing may follow.
pub(crate) struct DirectFile {
    file: File,
    gathered: Block,
    is_direct: bool,
}

impl DirectFile {
    pub(crate) fn new(file: File) -> Self {
        Self { file, gathered: Block::default(), is_direct: false }
    }

    /// Writes `bytes`, which are whole where that is to go past the cache.
    fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // This file system, or this place in the file, has other wishes.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput && self.is_direct => self.use_cache()?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn put_whole(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.is_direct {
            self.is_direct = set_direct(&self.file, true).is_ok();
        }
        self.put(bytes)
    }

    fn put_gathered(&mut self) -> io::Result<()> {
        let mut gathered = std::mem::take(&mut self.gathered);
        let put = if gathered.is_full() { self.put_whole(gathered.bytes()) } else { self.put(gathered.bytes()) };
        gathered.clear();
        self.gathered = gathered;
        put
    }

    fn use_cache(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_direct) { set_direct(&self.file, false) } else { Ok(()) }
    }
}

impl Write for DirectFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.gathered.is_full() {
            self.put_gathered()?;
        }
        if self.gathered.is_empty() && is_whole(bytes) {
            self.put_whole(bytes)?;
            return Ok(bytes.len());
        }
        Ok(self.gathered.add(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.use_cache()?;
        self.put_gathered()
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
    use crate::background_writer::write_in_background;
    use crate::block::BLOCK_BYTES;

    fn check(folder: &std::path::Path) {
        for len in [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES, 3 * BLOCK_BYTES + 4097] {
            let text: Vec<u8> = (0..len).map(|at| ((at / 3) ^ (at / 1_000)) as u8).collect();
            let path = folder.join("text");
            let mut file = DirectFile::new(File::create(&path).unwrap());
            text.chunks(70_001).for_each(|piece| file.write_all(piece).unwrap());
            file.flush().unwrap();
            assert!(std::fs::read(&path).unwrap() == text, "{len} bytes");
            let mut file = DirectFile::new(File::create(&path).unwrap());
            write_in_background(&mut file, |out| out.write_all(&text)).unwrap();
            file.flush().unwrap();
            assert!(std::fs::read(&path).unwrap() == text, "{len} bytes in whole pieces");
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
        let text = vec![7; 2 * BLOCK_BYTES];
        assert!(file.write_all(&text).and_then(|()| file.flush()).is_err());
    }
}

//! Gzip on all processors: one member, whose blocks are packed side by side.
//!
//! ```text
//! text      │ block 0       │ block 1       │ block 2  │
//!             ▼ worker        ▼ worker        ▼ worker
//! file  header│ deflate, full │ deflate, full │ deflate  │ end │ CRC, length
//! ```
//!
//! A block ends with a full flush, so that the next one needs nothing of it and all of them together are one stream,
//! which any program that unpacks gzip reads. Where blocks end does not depend on the number of processors, so neither
//! does the file.

use flate2::{Compress, Compression, Crc, FlushCompress};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

/// Text of a block: 1.5 % larger files than without blocks, while a window of 32 KiB fills up anew.
const BLOCK_BYTES: usize = 1 << 20;
/// Magic, deflate, no flags, no time, no system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// An empty block that says that it is the last.
const LAST_BLOCK: [u8; 2] = [3, 0];

/// Writes gzip into `out`: what `write` writes, packed.
///
/// # Errors
/// When `out` cannot be written to, or `write` says so.
pub(crate) fn write_packed(
    out: &mut (dyn Write + Send),
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let (jobs, waiting) = sync_channel::<Job>(workers);
    let waiting = Mutex::new(waiting);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| work(&waiting));
        }
        // It moves into the writer: when that is dropped, the workers learn that nothing more comes.
        let mut packer =
            Packer { out, jobs, most: 2 * workers, text: Vec::new(), under_way: VecDeque::new(), crc: Crc::new() };
        packer.out.write_all(&HEADER)?;
        write(&mut packer)?;
        packer.finish()
    })
}

/// A block of text, and where to send it when it is packed.
struct Job {
    text: Vec<u8>,
    done: SyncSender<Packed>,
}

struct Packed {
    bytes: Vec<u8>,
    crc: Crc,
}

fn work(waiting: &Mutex<Receiver<Job>>) {
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
    while let Some(Job { text, done }) = next() {
        let mut crc = Crc::new();
        crc.update(&text);
        // Nobody waits for it when writing has failed.
        let _ = done.send(Packed { bytes: deflated(&text), crc });
    }
}

/// A block as a piece of a deflate stream.
fn deflated(text: &[u8]) -> Vec<u8> {
    let mut deflate = Compress::new(Compression::default(), false);
    let mut bytes = Vec::with_capacity(text.len() / 4 + 1024);
    loop {
        let consumed = deflate.total_in() as usize;
        deflate.compress_vec(&text[consumed..], &mut bytes, FlushCompress::Full).expect("deflate takes any text");
        // Room that is left says that all of it was flushed.
        if deflate.total_in() as usize == text.len() && bytes.len() < bytes.capacity() {
            return bytes;
        }
        bytes.reserve(text.len() / 4 + 1024);
    }
}

/// Cuts text into blocks and writes what becomes of them, in order.
struct Packer<'a> {
    out: &'a mut (dyn Write + Send),
    jobs: SyncSender<Job>,
    /// The most blocks that are under way at once.
    most: usize,
    text: Vec<u8>,
    under_way: VecDeque<Receiver<Packed>>,
    crc: Crc,
}

impl Packer<'_> {
    fn hand_on(&mut self) -> io::Result<()> {
        if self.under_way.len() >= self.most {
            self.write_first()?;
        }
        let (done, packed) = sync_channel(1);
        let text = std::mem::take(&mut self.text);
        self.jobs.send(Job { text, done }).expect("workers wait as long as there is a packer");
        self.under_way.push_back(packed);
        Ok(())
    }

    /// Waits for the first block that is under way, and writes it.
    fn write_first(&mut self) -> io::Result<()> {
        let Some(packed) = self.under_way.pop_front() else { return Ok(()) };
        let packed = packed.recv().expect("a worker packs what it takes");
        self.crc.combine(&packed.crc);
        self.out.write_all(&packed.bytes)
    }

    fn finish(mut self) -> io::Result<()> {
        if !self.text.is_empty() {
            self.hand_on()?;
        }
        while !self.under_way.is_empty() {
            self.write_first()?;
        }
        self.out.write_all(&LAST_BLOCK)?;
        self.out.write_all(&self.crc.sum().to_le_bytes())?;
        self.out.write_all(&self.crc.amount().to_le_bytes())
    }
}

impl Write for Packer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = BLOCK_BYTES - self.text.len();
        let taken = bytes.len().min(room);
        if self.text.is_empty() {
            self.text.reserve_exact(BLOCK_BYTES);
        }
        self.text.extend_from_slice(&bytes[..taken]);
        if self.text.len() == BLOCK_BYTES {
            self.hand_on()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read;

    /// Text that packs well, or hardly at all.
    fn text(len: usize, is_random: bool) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..len).map(|at| if is_random { next() } else { (at / 7) as u8 }).collect()
    }

    fn packed(text: &[u8], piece: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_packed(&mut bytes, |out| text.chunks(piece).try_for_each(|piece| out.write_all(piece))).unwrap();
        bytes
    }

    #[test]
    fn one_member_holds_all_text() {
        for len in [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 20 * BLOCK_BYTES + 77] {
            for is_random in [false, true] {
                let text = text(len, is_random);
                let bytes = packed(&text, 100_003);
                // Reads the first member alone, and checks its CRC and length.
                let (mut unpacked, mut decoder) = (Vec::new(), GzDecoder::new(bytes.as_slice()));
                decoder.read_to_end(&mut unpacked).unwrap();
                assert!(unpacked == text, "{len} bytes, random: {is_random}");
                assert!(decoder.into_inner().is_empty(), "nothing follows");
            }
        }
    }

    #[test]
    fn the_file_does_not_depend_on_how_it_is_written() {
        let text = text(3 * BLOCK_BYTES, false);
        assert!(packed(&text, 1_000) == packed(&text, text.len()));
    }

    #[test]
    fn what_cannot_be_written_is_told_and_ends_the_workers() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                if bytes.len() == HEADER.len() { Ok(bytes.len()) } else { Err(io::ErrorKind::StorageFull.into()) }
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let text = text(20 * BLOCK_BYTES, false);
        let error = write_packed(&mut Full, |out| out.write_all(&text)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}

//! What a ring does to its file. Only one thread of the writer calls any of this.

#![allow(unsafe_code)]

use super::{SNAPSHOT_REASON, end_of_records};
use crate::CaptureFile;
use crate::layout::{
    HEADER_BYTES, Header, NO_THREAD, SEGMENT_BYTES, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC, Tag, first_word, padded,
};
use std::fs::File;
use std::io::{ErrorKind, Result};
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// A copy of a ring that stays as it is.
pub struct Snapshot<'a> {
    /// Where it is written; it must not exist.
    pub path: &'a Path,
    /// Why it is kept.
    pub because: &'a str,
    /// When it was requested, in ticks: what lies within the window before that is in it.
    pub at_ticks: u64,
}

impl CaptureFile {
    /// The place of a mapped segment in the file.
    ///
    /// # Safety
    /// `segment` comes from this file and is mapped.
    pub unsafe fn index_of(segment: NonNull<u8>) -> u64 {
        // SAFETY: the caller's promise; the word was written when the segment was mapped, and never changes.
        u64::from(unsafe { segment.cast::<u64>().read() } as u32)
    }

    /// Copies the segment at `index` into `bytes`, as many of its [`SEGMENT_BYTES`] as those are.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read_segment(&self, index: u64, bytes: &mut [u8]) -> Result<()> {
        self.file()?.read_exact_at(bytes, place_of(index))
    }

    /// Evicts what was recorded until `at_ticks`, of which the segment at `index` is the last. Nobody uses it any
    /// more, and what later records need of it stands elsewhere.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn give_up_segment(&self, index: u64, at_ticks: u64) -> Result<()> {
        // First: a process that is killed between the two has evicted less than it says.
        self.header().given_up_ticks.store(at_ticks.max(1), Ordering::Release);
        self.file()?.write_all_at(&[0; 8], place_of(index))
    }

    /// Gives the disk space of a segment back that was evicted. Where the file system cannot do so, it stays.
    pub fn release_segment(&self, index: u64) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let len = SEGMENT_BYTES as libc::off_t;
        let Ok(file) = self.file() else { return };
        // SAFETY: a plain system call.
        unsafe { libc::fallocate(file.as_raw_fd(), mode, place_of(index) as libc::off_t, len) };
    }

    /// Takes a segment into use again that was evicted; `generation` is larger than ever before.
    ///
    /// # Errors
    /// As [`CaptureFile::map_segment`].
    pub fn reuse_segment(&self, index: u64, generation: u64) -> Result<NonNull<u8>> {
        self.map_segment_at(index, generation)
    }

    /// Writes a copy of all segments in use, which reads as a closed capture; `between` is called now and then.
    ///
    /// # Errors
    /// When it cannot be written; nothing is left then.
    pub fn write_snapshot(&self, copy: &Snapshot, mut between: impl FnMut()) -> Result<()> {
        let file = File::options().write(true).create_new(true).open(copy.path)?;
        let written = self.copy_segments(&file, copy, &mut between);
        if written.is_err() {
            let _ = std::fs::remove_file(copy.path);
        }
        written
    }

    fn copy_segments(&self, file: &File, copy: &Snapshot, between: &mut impl FnMut()) -> Result<()> {
        let mut segment = vec![0; SEGMENT_BYTES];
        let mut kept = 0;
        for index in 0..self.header().segments.load(Ordering::Relaxed) {
            between();
            match self.read_segment(index, &mut segment) {
                Ok(()) => {}
                // A segment that could not be had, at the end of the file.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error),
            }
            if segment[4..8] != SEGMENT_MAGIC.to_le_bytes() {
                continue;
            }
            // What is behind the records needs no place on the disk.
            let len = end_of_records(&segment);
            // Its thread may write it meanwhile, and an op's end goes into its begin: a copy with a record that was
            // written behind a begin must have its end as well.
            self.read_segment(index, &mut segment[..len])?;
            segment[..8].copy_from_slice(&first_word_of_segment(kept));
            segment[8..16].fill(0);
            file.write_all_at(&segment[..len], place_of(kept))?;
            kept += 1;
        }
        file.write_all_at(&reason_segment(kept, copy), place_of(kept))?;
        file.set_len(place_of(kept + 1))?;
        let mut header = [0; HEADER_BYTES];
        self.file()?.read_exact_at(&mut header, 0)?;
        header[offset_of!(Header, closed)] = 1;
        header[offset_of!(Header, segments)..][..8].copy_from_slice(&(kept + 1).to_le_bytes());
        // Last: without a header it is no capture.
        file.write_all_at(&header, 0)
    }
}

fn place_of(index: u64) -> u64 {
    HEADER_BYTES as u64 + index * SEGMENT_BYTES as u64
}

fn first_word_of_segment(index: u64) -> [u8; 8] {
    (u64::from(SEGMENT_MAGIC) << 32 | index).to_le_bytes()
}

/// A segment that says why the copy was made.
fn reason_segment(index: u64, copy: &Snapshot) -> Vec<u8> {
    let because: String = copy.because.chars().take(1_000).collect();
    let (key, value) = (SNAPSHOT_REASON, because.as_str());
    let mut bytes = first_word_of_segment(index).to_vec();
    bytes.resize(SEGMENT_HEADER_BYTES, 0);
    let lens = key.len() as u64 | (value.len() as u64) << 32;
    let words = [first_word(copy.at_ticks, Tag::Thread), u64::from(NO_THREAD), 0, 0];
    bytes.extend(words.into_iter().chain([first_word(copy.at_ticks, Tag::Fact), lens]).flat_map(u64::to_le_bytes));
    bytes.extend([key.as_bytes(), value.as_bytes()].concat());
    bytes.resize(bytes.len() + padded(key.len() + value.len()) - key.len() - value.len(), 0);
    bytes
}

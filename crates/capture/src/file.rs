//! The writing half: a file that grows by mapped segments.

#![allow(unsafe_code)]

use crate::descriptor::{CaptureDescriptor, CaptureHandle};
use crate::layout::{
    ClockKind, HEADER_BYTES, Header, MAGIC, SEGMENT_BYTES, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC, STOPPED_DISK_FULL,
    VERSION,
};
use crate::{CaptureError, ClockPoint, ProcessIdentity};
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What a new capture begins with.
#[derive(Clone, Copy, Debug)]
pub struct NewCapture {
    /// Who writes it.
    pub process: ProcessIdentity,
    /// Who started the writer.
    pub parent_pid: u64,
    /// What its ticks count.
    pub clock_kind: ClockKind,
    /// Now, on all clocks.
    pub opened: ClockPoint,
    /// How many ns of the past a ring keeps; 0: everything is kept.
    pub ring_ns: u64,
}

/// An open capture. Segments that were handed out stay mapped until [`CaptureFile::unmap_segment`], also after the
/// `CaptureFile` is dropped; the header page stays mapped for as long as the process lives, so that a late writer can
/// still count what it drops.
pub struct CaptureFile {
    descriptor: CaptureDescriptor,
    header: NonNull<Header>,
}

// SAFETY: the header is only read or changed through atomics once the file is open, and the descriptor is only used
// with positioned calls.
unsafe impl Send for CaptureFile {}
// SAFETY: as above.
unsafe impl Sync for CaptureFile {}

impl CaptureFile {
    /// Creates the file, which must not exist, with its header and no segment.
    pub fn create(path: &Path, new: &NewCapture) -> Result<Self, CaptureError> {
        let io = |action, source| CaptureError::Io { action, source, path: path.into() };
        let file = File::options().read(true).write(true).create_new(true).mode(0o644).open(path);
        let file = file.map_err(|error| io("create", error))?;
        let opened = allocate(&file, 0, HEADER_BYTES).and_then(|()| map(&file, 0, HEADER_BYTES));
        let opened = opened.and_then(|header| Ok((header, CaptureDescriptor::new(file, path.into())?)));
        let (header, descriptor) = opened.map_err(|error| {
            let _ = std::fs::remove_file(path);
            io("create", error)
        })?;
        let header = header.cast::<Header>();
        // SAFETY: the page is mapped for reading and writing, zeroed, aligned, and nobody else knows it yet.
        unsafe { header.write(first_header(new)) };
        Ok(Self { descriptor, header })
    }

    /// The header page.
    pub fn header(&self) -> &'static Header {
        // SAFETY: never unmapped; fields that change are atomics.
        unsafe { self.header.as_ref() }
    }

    /// The number of its descriptor, which the program may have closed.
    pub fn descriptor(&self) -> RawFd {
        self.descriptor.number()
    }

    pub(crate) fn file(&self) -> std::io::Result<CaptureHandle> {
        self.descriptor.file()
    }

    /// Adds a segment: disk space is reserved, the pages are mapped and touched, its header is written. Gives the
    /// address of its [`SEGMENT_BYTES`] bytes, which the caller alone may write.
    ///
    /// # Errors
    /// When there is no room: the capture is then marked as stopped for a full disk. When the program has closed the
    /// file, and its path leads nowhere.
    pub fn map_segment(&self) -> std::io::Result<NonNull<u8>> {
        if self.header().stopped.load(Ordering::Relaxed) & STOPPED_DISK_FULL != 0 {
            return Err(std::io::Error::from_raw_os_error(libc::ENOSPC));
        }
        self.map_segment_at(self.header().segments.fetch_add(1, Ordering::Relaxed), 0)
    }

    /// Takes the segment at `index` into use, which nobody uses: `generation` is its second word.
    pub(crate) fn map_segment_at(&self, index: u64, generation: u64) -> std::io::Result<NonNull<u8>> {
        let offset = HEADER_BYTES + index as usize * SEGMENT_BYTES;
        let file = self.file()?;
        let segment = allocate(&file, offset, SEGMENT_BYTES).and_then(|()| map(&file, offset, SEGMENT_BYTES));
        let segment = segment.inspect_err(|_| {
            self.header().stopped.fetch_or(STOPPED_DISK_FULL, Ordering::Relaxed);
        })?;
        touch(segment).inspect_err(|_| {
            self.header().stopped.fetch_or(STOPPED_DISK_FULL, Ordering::Relaxed);
            // SAFETY: mapped just now; nobody else knows it.
            unsafe { Self::unmap_segment(segment) };
        })?;
        // SAFETY: the mapping is page-aligned and at least 16 bytes long.
        unsafe {
            segment.cast::<u64>().add(1).write(generation);
            segment.cast::<u64>().write(u64::from(SEGMENT_MAGIC) << 32 | index);
        }
        const { assert!(SEGMENT_HEADER_BYTES == 16) };
        Ok(segment)
    }

    /// Gives back the mapping of a segment; its bytes stay in the file.
    ///
    /// # Safety
    /// `segment` comes from [`CaptureFile::map_segment`] and nobody uses it any more.
    pub unsafe fn unmap_segment(segment: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { libc::munmap(segment.as_ptr().cast(), SEGMENT_BYTES) };
    }
}

fn first_header(new: &NewCapture) -> Header {
    Header {
        magic: MAGIC,
        version: VERSION,
        header_bytes: HEADER_BYTES as u32,
        segment_bytes: SEGMENT_BYTES as u32,
        clock_kind: new.clock_kind as u32,
        pid: new.process.pid,
        parent_pid: new.parent_pid,
        process_start_ticks: new.process.start_ticks,
        pid_namespace: new.process.pid_namespace,
        boot_id: new.process.boot_id,
        opened_ticks: new.opened.ticks,
        opened_monotonic_ns: new.opened.monotonic_ns as u64,
        opened_unix_ns: new.opened.unix_ns as u64,
        closed: AtomicU32::new(0),
        stopped: AtomicU32::new(0),
        heartbeat_unix_ns: AtomicU64::new(new.opened.unix_ns as u64),
        dropped: AtomicU64::new(0),
        segments: AtomicU64::new(0),
        ring_ns: new.ring_ns,
        given_up_ticks: AtomicU64::new(0),
    }
}

/// Written at once: the largest piece of memory that the kernel takes from what was in use before. For larger ones it
/// breaks up blocks that a virtual machine may have given back to its host, which costs 10 us a page to have again, not
/// 2.
const PIECE_BYTES: usize = 32 << 10;

/// Writes zeros, so that the range has disk space and writing to its mapping can never fail for want of it. The pages
/// are then in memory already: mapping them costs half of what it would after reserving blocks alone.
fn allocate(file: &File, offset: usize, len: usize) -> std::io::Result<()> {
    static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];
    // SAFETY: `limit` is filled by the call.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) == 0 { limit.rlim_cur } else { libc::RLIM_INFINITY }
    };
    // Writing beyond the limit would send a signal to the job.
    if (offset + len) as u64 > limit {
        return Err(std::io::Error::from_raw_os_error(libc::EFBIG));
    }
    let mut done = 0;
    while done < len {
        let rest = &ZEROS[..(len - done).min(PIECE_BYTES)];
        match file.write_at(rest, (offset + done) as u64) {
            Ok(0) => return Err(std::io::Error::from_raw_os_error(libc::ENOSPC)),
            Ok(written) => done += written,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Takes the page faults of a new segment here, and not where records are written.
fn touch(segment: NonNull<u8>) -> std::io::Result<()> {
    // SAFETY: a mapping of our own.
    if unsafe { libc::madvise(segment.as_ptr().cast(), SEGMENT_BYTES, libc::MADV_POPULATE_WRITE) } == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    // Kernels before 5.14 do not know the advice. Any other failure would be a fatal fault when written by hand.
    if error.raw_os_error() != Some(libc::EINVAL) {
        return Err(error);
    }
    for page in (0..SEGMENT_BYTES).step_by(4096) {
        // SAFETY: inside the mapping, which nobody else writes yet.
        unsafe { segment.add(page).write_volatile(0) };
    }
    Ok(())
}

fn map(file: &File, offset: usize, len: usize) -> std::io::Result<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a fresh shared mapping of a range that `allocate` made part of the file.
    let address =
        unsafe { libc::mmap(std::ptr::null_mut(), len, protection, libc::MAP_SHARED, file.as_raw_fd(), offset as i64) };
    if address == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    NonNull::new(address.cast()).ok_or_else(|| std::io::Error::from_raw_os_error(libc::ENOMEM))
}

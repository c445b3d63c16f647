//! Full buffers, read record by record.

use super::api::{Cupti, Domain};
use super::calls::Names;
use super::markers::{Marked, Markers};
use super::records::{Decoded, Marker, decode};
use crate::demangle::Demangler;
use crate::{Full, Pool, Write};
use std::ffi::{CStr, c_char};
use std::ptr::null_mut;
use stepscope_recorder::device::{ActivityRecord, Api};

/// CUPTI's own work, by its number, as `torch.profiler` calls it.
const OVERHEADS: [(u32, &str); 9] = [
    (1, "Driver Compiler"),
    (1 << 16, "Buffer Flush"),
    (2 << 16, "Instrumentation"),
    (3 << 16, "Resource"),
    (4 << 16, "Runtime Triggered Module Loading"),
    (5 << 16, "Lazy Function Loading"),
    (6 << 16, "Command Buffer Full"),
    (7 << 16, "Activity Buffer Request"),
    (8 << 16, "UVM Activity Init"),
];

/// What reading needs to remember.
#[derive(Default)]
pub(super) struct Reader {
    kernels: Demangler,
    calls: Names,
    markers: Markers,
    dropped: u64,
    ended_ns: Option<i64>,
}

impl Reader {
    /// Writes what is in the full buffers of the pool.
    pub(super) fn write(&mut self, cupti: &Cupti, pool: &Pool, write: Write<'_>) {
        while let Some(full) = pool.next_full() {
            self.read(cupti, &full, write);
        }
        if let Some(ended_ns) = self.ended_ns {
            for (range, name) in self.markers.take_open(ended_ns) {
                write(ActivityRecord::Range(range), Some(&name));
            }
        }
        for (range, name) in self.markers.take_begun() {
            write(ActivityRecord::Range(range), Some(name));
        }
    }

    /// Nothing more is to come than what is in the pool now, at this moment of CUPTI's clock.
    pub(super) fn end(&mut self, now_ns: Option<i64>) {
        self.ended_ns = now_ns;
    }

    /// How many records could not be written since the last time.
    pub(super) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    fn read(&mut self, cupti: &Cupti, full: &Full<'_>, write: Write<'_>) {
        let bytes = full.bytes();
        // SAFETY: CUPTI filled the buffer, which is ours until `full` is dropped; each record came from the call
        // before.
        let next = |record| unsafe { cupti.next_record(full.base(), full.len(), record) };
        let place =
            |record: *mut u8| (record as usize).checked_sub(full.base() as usize).filter(|at| *at < bytes.len());
        let mut record = next(null_mut());
        while let Some(at) = place(record) {
            let following = next(record);
            // How long it is says the beginning of the one after it.
            let end = if following.is_null() { Some(bytes.len()) } else { place(following) };
            let Some(end) = end.filter(|end| *end > at) else {
                self.dropped += 1;
                return;
            };
            match decode(&bytes[at..end]).filter(|_| full.is_current) {
                Some(decoded) => self.write_one(cupti, decoded, write),
                // Of a kind that was not asked for, or asked for by a recording that is over.
                None => self.dropped += 1,
            }
            record = following;
        }
    }

    fn write_one(&mut self, cupti: &Cupti, decoded: Decoded, write: Write<'_>) {
        match decoded {
            Decoded::Plain(record) => write(record, None),
            Decoded::Untimed => self.dropped += 1,
            // SAFETY: CUPTI keeps the names of kernels for as long as the process lives.
            Decoded::Named(record, name) => match unsafe { text_at(name) } {
                Some(name) => write(record, Some(self.kernels.demangle(name))),
                None => write(record, None),
            },
            Decoded::Call(call, number) => {
                let domain = if call.api == Api::Runtime { Domain::Runtime } else { Domain::Driver };
                if let Some(name) = self.calls.of(cupti, domain, number) {
                    write(ActivityRecord::Call(call), Some(name));
                }
            }
            Decoded::Overhead(overhead, number) => {
                let name = OVERHEADS.iter().find(|(known, _)| *known == number).map_or("Unknown", |(_, name)| name);
                write(ActivityRecord::Overhead(overhead), Some(name));
            }
            Decoded::Marker(marker) => self.write_marker(&marker, write),
        }
    }

    fn write_marker(&mut self, marker: &Marker, write: Write<'_>) {
        // SAFETY: as for kernels: CUPTI copies the texts of NVTX and keeps them.
        let name = unsafe { text_at(marker.name) }.map(CStr::to_string_lossy).unwrap_or_default();
        match self.markers.take(marker, &name) {
            Marked::Range(range, name) => write(ActivityRecord::Range(range), Some(&name)),
            Marked::Open | Marked::Unbegun => {}
            Marked::Dropped => self.dropped += 1,
        }
    }
}

/// The text at an address of the process; `None` for null.
///
/// # Safety
/// The address is null, or that of a text that ends with a zero and lives for `'a`.
unsafe fn text_at<'a>(address: u64) -> Option<&'a CStr> {
    let text = address as usize as *const c_char;
    // SAFETY: as the caller vouches for.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

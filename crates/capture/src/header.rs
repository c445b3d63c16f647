//! The header page, as a reader sees it.

use crate::clock::ClockPoint;
use crate::decode::EventList;
use crate::device::ActivityList;
use crate::layout::{ClockKind, HEADER_BYTES, MAGIC, SEGMENT_HEADER_BYTES, STOPPED_DISK_FULL, VERSION};
use crate::{Capture, CaptureError, ProcessIdentity, State};
use std::path::Path;

/// The header page as plain values.
#[derive(Debug)]
pub(crate) struct HeaderFields {
    process: ProcessIdentity,
    parent_pid: u64,
    pub(crate) segment_bytes: usize,
    clock_kind: ClockKind,
    pub(crate) opened: ClockPoint,
    is_closed: bool,
    stopped: u32,
    heartbeat_unix_ns: u64,
    dropped: u64,
    pub(crate) ring_ns: u64,
    pub(crate) given_up_ticks: u64,
}

impl HeaderFields {
    /// Whether ticks need clock points to become nanoseconds.
    pub(crate) fn has_rate(&self) -> bool {
        self.clock_kind == ClockKind::TimeStampCounter
    }

    fn state(&self) -> State {
        let is_running = !self.is_closed && self.process.is_running(self.heartbeat_unix_ns);
        match (self.is_closed, is_running) {
            (true, _) => State::Closed,
            (false, true) => State::Running,
            (false, false) => State::Killed,
        }
    }

    /// A capture of which nothing is known yet but what the header says.
    pub(crate) fn empty_capture(&self) -> Capture {
        Capture {
            process: self.process,
            parent_pid: self.parent_pid,
            state: self.state(),
            opened_ns: self.opened.monotonic_ns,
            unix_offset_ns: self.opened.unix_ns.saturating_sub(self.opened.monotonic_ns),
            clocks: Vec::new(),
            last_ns: self.opened.monotonic_ns,
            metadata: Vec::new(),
            threads: Vec::new(),
            names: Vec::new(),
            overloads: Vec::new(),
            inputs: Vec::new(),
            events: EventList::default(),
            steps: Vec::new(),
            optimizer_steps: Vec::new(),
            memory: Vec::new(),
            files: Vec::new(),
            io: Vec::new(),
            samples: Vec::new(),
            stacks: Vec::new(),
            stack_samples: Vec::new(),
            device: ActivityList::default(),
            profiler_states: Vec::new(),
            windows: Vec::new(),
            dropped: self.dropped,
            is_disk_full: self.stopped & STOPPED_DISK_FULL != 0,
            damaged: Vec::new(),
            ring: None,
        }
    }

    pub(crate) fn read(bytes: &[u8], path: &Path) -> Result<Self, CaptureError> {
        let not_a_capture = || CaptureError::NotACapture { path: path.into() };
        let u64_at =
            |at: usize| bytes.get(at..at + 8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
        let u32_at = |at: usize| u64_at(at & !7).map(|word| (word >> ((at & 4) * 8)) as u32);
        if bytes.len() < HEADER_BYTES || bytes[..8] != MAGIC {
            return Err(not_a_capture());
        }
        let read = || -> Option<Self> {
            Some(Self {
                segment_bytes: u32_at(16)? as usize,
                clock_kind: if u32_at(20)? == 1 { ClockKind::TimeStampCounter } else { ClockKind::Monotonic },
                process: ProcessIdentity {
                    pid: u64_at(24)?,
                    start_ticks: u64_at(40)?,
                    pid_namespace: u64_at(48)?,
                    boot_id: bytes.get(56..72)?.try_into().ok()?,
                },
                parent_pid: u64_at(32)?,
                opened: ClockPoint {
                    ticks: u64_at(72)?,
                    monotonic_ns: i64::try_from(u64_at(80)?).ok()?,
                    unix_ns: i64::try_from(u64_at(88)?).ok()?,
                },
                is_closed: u32_at(96)? != 0,
                stopped: u32_at(100)?,
                heartbeat_unix_ns: u64_at(104)?,
                dropped: u64_at(112)?,
                ring_ns: u64_at(128)?,
                given_up_ticks: u64_at(136)?,
            })
        };
        let version = u32_at(8).unwrap_or(0);
        if version > VERSION {
            return Err(CaptureError::NewerVersion { found: version, supported: VERSION, path: path.into() });
        }
        let is_sane =
            |header: &Self| header.segment_bytes > SEGMENT_HEADER_BYTES && header.segment_bytes.is_multiple_of(4096);
        read().filter(is_sane).ok_or_else(not_a_capture)
    }
}

#[cfg(test)]
mod tests {
    use crate::layout::Header;
    use std::mem::offset_of;

    #[test]
    fn the_reader_looks_where_the_writer_writes() {
        let offsets = [
            offset_of!(Header, version),
            offset_of!(Header, segment_bytes),
            offset_of!(Header, clock_kind),
            offset_of!(Header, pid),
            offset_of!(Header, parent_pid),
            offset_of!(Header, process_start_ticks),
            offset_of!(Header, pid_namespace),
            offset_of!(Header, boot_id),
            offset_of!(Header, opened_ticks),
            offset_of!(Header, opened_monotonic_ns),
            offset_of!(Header, opened_unix_ns),
            offset_of!(Header, closed),
            offset_of!(Header, stopped),
            offset_of!(Header, heartbeat_unix_ns),
            offset_of!(Header, dropped),
            offset_of!(Header, ring_ns),
            offset_of!(Header, given_up_ticks),
        ];
        assert_eq!(offsets, [8, 16, 20, 24, 32, 40, 48, 56, 72, 80, 88, 96, 100, 104, 112, 128, 136]);
    }
}

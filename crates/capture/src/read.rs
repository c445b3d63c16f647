//! The reading half: any bytes give a [`Capture`] with counts of what could not be read, or an error.

use crate::clock::{ClockPoint, TickClock};
use crate::decode::Scanned;
use crate::layout::{ClockKind, HEADER_BYTES, MAGIC, SEGMENT_HEADER_BYTES, STOPPED_DISK_FULL, VERSION};
use crate::ring::{RingWindow, read_bytes};
use crate::{
    CaptureError, DeviceActivity, Event, Inputs, Mark, MemoryEvent, ProcessIdentity, ProfilerState, Sample, State,
    StepRange, Window,
};
use std::path::Path;

/// A recorded thread.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Thread {
    /// Its number within the process, in order of first appearance.
    pub ordinal: u32,
    /// The system's thread id.
    pub tid: u64,
    /// The framework's own id of the thread; 0 when it has none.
    pub framework_thread: u64,
    /// Its name; empty when unknown.
    pub name: String,
    /// How device profilers name it; 0 when unknown.
    pub handle: u32,
}

/// What one process recorded, with all times in ns of its host's monotonic clock.
#[derive(Clone, Debug)]
pub struct Capture {
    /// Who wrote it.
    pub process: ProcessIdentity,
    /// Who started the writer.
    pub parent_pid: u64,
    /// What the process is doing now.
    pub state: State,
    /// Monotonic clock when the capture was opened.
    pub opened_ns: i64,
    /// Unix time minus monotonic clock, read when the capture was opened.
    pub unix_offset_ns: i64,
    /// The last moment the process is known to have lived.
    pub last_ns: i64,
    /// Metadata about the process, sorted by key.
    pub metadata: Vec<(String, String)>,
    /// Threads, by ordinal.
    pub threads: Vec<Thread>,
    /// Names that events refer to.
    pub names: Vec<String>,
    /// The overload of each name; names beyond its end have none.
    pub overloads: Vec<String>,
    /// What ops were called with, which events refer to.
    pub inputs: Vec<Inputs>,
    /// Ops, labels and calls, by (thread, start, longest first).
    pub events: Vec<Event>,
    /// Steps that the job labelled, by start.
    pub steps: Vec<StepRange>,
    /// Moments at which an optimizer had stepped, by time.
    pub optimizer_steps: Vec<Mark>,
    /// Allocations, frees and allocations that failed, by (thread, time).
    pub memory: Vec<MemoryEvent>,
    /// Sampled quantities, by time.
    pub samples: Vec<Sample>,
    /// What devices' profilers reported, by start; what has no time of its own comes first.
    pub device: Vec<DeviceActivity>,
    /// Under which profiler state each thread ran what it did, by (thread, time).
    pub profiler_states: Vec<ProfilerState>,
    /// When recording was switched, by time.
    pub windows: Vec<Window>,
    /// Records that the writer could not write.
    pub dropped: u64,
    /// True when the disk was full.
    pub is_disk_full: bool,
    /// Places where segments could not be decoded.
    pub damaged: Vec<String>,
    /// What a ring kept; `None` when everything was kept.
    pub ring: Option<RingWindow>,
}

/// Reads the capture at `path`.
///
/// # Errors
/// When the file cannot be read, is no capture, or is of a newer version. Damage inside becomes [`Capture::damaged`].
pub fn read(path: &Path) -> Result<Capture, CaptureError> {
    let read_bytes =
        || read_bytes(path).map_err(|source| CaptureError::Io { action: "read", source, path: path.into() });
    let (capture, until_ticks) = parse(&read_bytes()?, path, None)?;
    if capture.state != State::Running {
        return Ok(capture);
    }
    // It was written while it was read: of one thread a later segment may be there and an earlier one not whole. The
    // second time everything is there that the first time was, and what came later is left out.
    drop(capture);
    parse(&read_bytes()?, path, Some(until_ticks)).map(|(capture, _)| capture)
}

/// The capture and the ticks of its last record; what was recorded after `until_ticks` is left out.
fn parse(bytes: &[u8], path: &Path, until_ticks: Option<u64>) -> Result<(Capture, u64), CaptureError> {
    let header = HeaderFields::read(bytes, path)?;
    let mut scanned = Scanned::until(&bytes[HEADER_BYTES..], header.segment_bytes, until_ticks);
    // Ticks that are nanoseconds need no moments to become so.
    let moments = if header.has_rate() { scanned.process.clock_points.as_slice() } else { &[] };
    let clock = TickClock::new(header.opened, moments.iter().copied());
    let decoded = scanned.replay(&clock, &header.opened);
    let last_ticks = decoded.last_ticks.max(scanned.process.last_ticks());
    scanned.damaged.extend(scanned.process.inputs.damage());
    scanned.damaged.extend(decoded.device_damage);
    let mut capture = Capture {
        last_ns: decoded.last_ns,
        metadata: scanned.process.metadata(),
        threads: decoded.threads,
        names: decoded.names,
        overloads: scanned.process.overloads,
        inputs: scanned.process.inputs.into_list(),
        events: decoded.events,
        steps: decoded.steps,
        optimizer_steps: decoded.optimizer_steps,
        memory: decoded.memory,
        samples: decoded.samples,
        device: decoded.device,
        profiler_states: decoded.profiler_states,
        windows: decoded.windows,
        damaged: scanned.damaged,
        ..header.empty_capture()
    };
    if header.ring_ns != 0 {
        let since_ns = (header.given_up_ticks != 0).then(|| clock.monotonic_ns(header.given_up_ticks));
        capture.keep_window(header.ring_ns, since_ns, decoded.lost_begins.into_iter());
    }
    Ok((capture, last_ticks))
}

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
    ring_ns: u64,
    given_up_ticks: u64,
}

impl HeaderFields {
    /// Whether ticks need clock points to become nanoseconds.
    pub(crate) fn has_rate(&self) -> bool {
        self.clock_kind == ClockKind::TimeStampCounter
    }

    pub(crate) fn is_ring(&self) -> bool {
        self.ring_ns != 0
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
            last_ns: self.opened.monotonic_ns,
            metadata: Vec::new(),
            threads: Vec::new(),
            names: Vec::new(),
            overloads: Vec::new(),
            inputs: Vec::new(),
            events: Vec::new(),
            steps: Vec::new(),
            optimizer_steps: Vec::new(),
            memory: Vec::new(),
            samples: Vec::new(),
            device: Vec::new(),
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
    use super::*;
    use crate::layout::{BeginWord, Header, SEGMENT_MAGIC, Tag, first_word};
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

    #[test]
    fn captures_of_version_1_are_read() {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8] = 1;
        bytes[16..20].copy_from_slice(&4096_u32.to_le_bytes());
        bytes[96] = 1;
        let begin = |name, number| BeginWord::pack(name, 0, number);
        let words = [
            u64::from(SEGMENT_MAGIC) << 32,
            0,
            first_word(10, Tag::Thread),
            0,
            77,
            0,
            first_word(11, Tag::Name),
            2 << 32,
            u64::from_le_bytes(*b"mm\0\0\0\0\0\0"),
            first_word(12, Tag::Begin),
            begin(0, 6),
            first_word(13, Tag::BeginBackward),
            begin(0, 0),
            9,
            first_word(20, Tag::End),
            first_word(30, Tag::End),
        ];
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.resize(HEADER_BYTES + 4096, 0);
        let (capture, _) = parse(&bytes, Path::new("old.capture"), None).expect("a capture");
        let events: Vec<_> = capture
            .events
            .iter()
            .map(|event| (event.start_ns, event.end_ns, event.sequence_number, event.forward_thread))
            .collect();
        assert_eq!(events, [(12, 30, Some(5), None), (13, 20, None, Some(9))]);
        assert_eq!((capture.names, capture.threads[0].tid, capture.damaged.len()), (vec!["mm".into()], 77, 0));
    }

    #[test]
    fn strangers_and_newer_versions_are_refused() {
        let path = Path::new("x.capture");
        assert!(matches!(parse(b"hello", path, None), Err(CaptureError::NotACapture { .. })));
        assert!(matches!(parse(&[0; HEADER_BYTES], path, None), Err(CaptureError::NotACapture { .. })));
        let mut newer = vec![0; HEADER_BYTES];
        newer[..8].copy_from_slice(&MAGIC);
        newer[8] = VERSION as u8 + 1;
        assert!(
            matches!(parse(&newer, path, None), Err(CaptureError::NewerVersion { found, .. }) if found == VERSION + 1)
        );
    }
}

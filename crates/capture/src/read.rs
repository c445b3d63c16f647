//! The reading half: any bytes give a [`Capture`] with counts of what could not be read, or an error.

use crate::clock::{ClockSnapshot, TickClock};
use crate::decode::{EVER, RareEvents, Scan, Segments, Threads, finish_devices, last_moment};
use crate::device::ActivityList;
use crate::header::HeaderFields;
use crate::layout::HEADER_BYTES;
use crate::ring::{RingState, RingWindow, is_ring, read_bytes};
use crate::stack_samples::resolve;
use crate::{
    Called, CaptureError, EventList, Inputs, IoCall, Mark, MemoryEvent, ProcessIdentity, ProfilerState, Sample,
    StackSample, State, StepRange, Window,
};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

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
    /// What the time of day was when the capture was opened, then once a minute, and at its last reading.
    pub clocks: Vec<ClockSnapshot>,
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
    pub events: EventList,
    /// Steps that the job labelled, by start.
    pub steps: Vec<StepRange>,
    /// Moments at which an optimizer had stepped, by time.
    pub optimizer_steps: Vec<Mark>,
    /// Allocations, frees and allocations that failed, by (thread, time).
    pub memory: Vec<MemoryEvent>,
    /// Paths of files, which calls refer to; empty where one is not known.
    pub files: Vec<String>,
    /// Calls on files, by (thread, start, longest first).
    pub io: Vec<IoCall>,
    /// Sampled quantities, by time.
    pub samples: Vec<Sample>,
    /// Stacks of Python, which samples refer to; a caller's stands before those that it is in.
    pub stacks: Vec<Called>,
    /// Samples of what threads of Python run, by (thread, time).
    pub stack_samples: Vec<StackSample>,
    /// What devices' profilers reported, by start; what has no time of its own comes first.
    pub device: ActivityList,
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
    CaptureReader::open(path)?.read(|_| EVER)
}

/// Reads the header of the capture at `path` alone: who wrote it, and its clocks.
///
/// # Errors
/// As [`read`].
pub fn read_head(path: &Path) -> Result<Capture, CaptureError> {
    let io = |source| CaptureError::Io { action: "read", source, path: path.into() };
    let mut header = Vec::new();
    File::open(path).and_then(|file| file.take(HEADER_BYTES as u64).read_to_end(&mut header)).map_err(io)?;
    Ok(HeaderFields::read(&header, path)?.empty_capture())
}

/// A capture of which everything is known but what its threads recorded.
#[derive(Debug)]
pub struct CaptureReader {
    path: PathBuf,
    segments: Segments,
    segment_bytes: usize,
    scan: Scan,
    clock: TickClock,
    ring: Option<RingState>,
    capture: Capture,
}

impl CaptureReader {
    /// Reads all of the capture at `path` but for ranges of threads, and memory.
    ///
    /// # Errors
    /// As [`read`].
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let io = |source| CaptureError::Io { action: "read", source, path: path.into() };
        let (header, segments) = open(path).map_err(io)?;
        let header = HeaderFields::read(&header, path)?;
        Self::scan(&header, segments, path).map_err(io)
    }

    fn scan(header: &HeaderFields, segments: Segments, path: &Path) -> std::io::Result<Self> {
        let segment_bytes = header.segment_bytes;
        let mut scan = Scan::of(&segments, segment_bytes)?;
        // Ticks that are nanoseconds need no moments to become so.
        let moments = if header.has_rate() { scan.process.clock_points.as_slice() } else { &[] };
        let clock = TickClock::new(header.opened, moments.iter().copied());
        let last_ns = last_moment((&segments, segment_bytes), &scan, &clock, header.opened.monotonic_ns)?;
        let mut threads = scan.threads();
        let activities = scan.take_activities();
        let (device, device_damage) = finish_devices(activities, &scan.process, &clock, &mut threads, last_ns);
        let mut rare = RareEvents::of(&scan, &threads, &clock, last_ns);
        let process = &scan.process;
        let stacks = resolve(&process.stacks, process.names.len() as u32, &mut rare.stack_samples);
        let mut damaged = std::mem::take(&mut scan.damaged);
        damaged.extend(scan.process.inputs.damage());
        damaged.extend(device_damage);
        let capture = Capture {
            clocks: ClockSnapshot::kept(header.opened, &scan.process.clock_points),
            last_ns,
            metadata: scan.process.metadata(),
            threads,
            names: scan.process.names.clone(),
            files: std::mem::take(&mut scan.process.files),
            overloads: std::mem::take(&mut scan.process.overloads),
            inputs: scan.process.inputs.take_list(),
            steps: rare.steps,
            optimizer_steps: rare.optimizer_steps,
            samples: rare.samples,
            stacks,
            stack_samples: rare.stack_samples,
            profiler_states: rare.profiler_states,
            windows: scan.windows(&clock),
            device,
            damaged,
            ..header.empty_capture()
        };
        let since_ns = (header.given_up_ticks != 0).then(|| clock.monotonic_ns(header.given_up_ticks));
        let ring = (header.ring_ns != 0).then(|| RingState {
            asked_ns: i64::try_from(header.ring_ns).unwrap_or(i64::MAX),
            since_ns,
            requested_ns: scan.process.snapshot_ticks().map(|ticks| clock.monotonic_ns(ticks)),
        });
        Ok(Self { path: path.into(), segments, segment_bytes, scan, clock, ring, capture })
    }

    /// Reads the capture that these bytes are.
    #[cfg(test)]
    pub(crate) fn of_bytes(bytes: Vec<u8>) -> Result<Self, CaptureError> {
        let path = Path::new("in memory");
        let header = HeaderFields::read(&bytes, path)?;
        Ok(Self::scan(&header, Segments::InMemory(bytes), path).expect("it is in memory"))
    }

    /// The capture without events and memory, its activity records in the order in which they were written. A ring has
    /// more here than lies within its window.
    pub fn capture(&self) -> &Capture {
        &self.capture
    }

    /// Whether it is the capture of a ring, or a copy of one.
    pub fn is_ring(&self) -> bool {
        self.ring.is_some()
    }

    /// The capture, of which only what each thread began within the times matters that `times` gives for it: of what
    /// it began at other times some may be missing.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(mut self, times: impl Fn(&Thread) -> Range<i64>) -> Result<Capture, CaptureError> {
        // What a ring lost is counted among all that it kept.
        let is_ring = self.is_ring();
        let times = |thread: u32| if is_ring { EVER } else { times(&self.capture.threads[thread as usize]) };
        let replayed = self.threads().replay(&times).map_err(|source| self.error(source))?;
        (self.capture.events, self.capture.memory, self.capture.io) = (replayed.events, replayed.memory, replayed.io);
        self.capture.forget_unknown_files();
        self.capture.device.sort();
        // The last name is that of lost ones.
        let lost = self.capture.names.len() as u32 - 1;
        let is_lost = self.capture.events.has_name(lost) || self.capture.samples.iter().any(|of| of.name == lost);
        self.capture.names.truncate(lost as usize + usize::from(is_lost));
        if let Some(ring) = self.ring {
            self.capture.keep_window(ring, replayed.lost_begins.into_iter());
        }
        Ok(self.capture)
    }

    /// Hands over the events that a thread began within `times`, and some around them, in lists that follow one another
    /// in time, so that not all have to be in memory. False when that is not possible, also of what was handed over
    /// already.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read_in_lists(
        &self,
        thread: u32,
        times: &Range<i64>,
        take: &mut dyn FnMut(&EventList),
    ) -> Result<bool, CaptureError> {
        if self.is_ring() {
            return Ok(false);
        }
        self.threads().replay_in_lists(thread, times, take).map_err(|source| self.error(source))
    }

    fn threads(&self) -> Threads<'_> {
        let Self { segments, segment_bytes, scan, clock, capture, .. } = self;
        let (known, last_ns) = (capture.threads.as_slice(), capture.last_ns);
        Threads { segments, segment_bytes: *segment_bytes, scan, clock, known, last_ns }
    }

    fn error(&self, source: std::io::Error) -> CaptureError {
        CaptureError::Io { action: "read", source, path: self.path.clone() }
    }
}

impl Capture {
    /// Leaves out of calls what is no file: number 0, and those whose path was not written.
    fn forget_unknown_files(&mut self) {
        let files = &self.files;
        let is_known = |file: &u32| files.get(*file as usize).is_some_and(|path| !path.is_empty());
        for call in &mut self.io {
            call.file = call.file.filter(is_known);
            call.other_file = call.other_file.filter(is_known);
        }
    }
}

/// The first bytes of a capture, and its segments. Those of a ring, which may be written over while they are read, are
/// in memory.
fn open(path: &Path) -> std::io::Result<(Vec<u8>, Segments)> {
    let mut file = File::open(path)?;
    let mut header = Vec::new();
    file.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut header)?;
    #[cfg(unix)]
    if !is_ring(&header) {
        return Ok((header, Segments::OnDisk(file)));
    }
    let bytes = read_bytes(path)?;
    Ok((bytes[..HEADER_BYTES.min(bytes.len())].to_vec(), Segments::InMemory(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{BeginWord, MAGIC, SEGMENT_MAGIC, Tag, VERSION, first_word};

    fn parsed(bytes: &[u8]) -> Result<Capture, CaptureError> {
        CaptureReader::of_bytes(bytes.to_vec())?.read(|_| EVER)
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
        let capture = parsed(&bytes).expect("a capture");
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
        assert!(matches!(parsed(b"hello"), Err(CaptureError::NotACapture { .. })));
        assert!(matches!(parsed(&[0; HEADER_BYTES]), Err(CaptureError::NotACapture { .. })));
        let mut newer = vec![0; HEADER_BYTES];
        newer[..8].copy_from_slice(&MAGIC);
        newer[8] = VERSION as u8 + 1;
        assert!(matches!(parsed(&newer), Err(CaptureError::NewerVersion { found, .. }) if found == VERSION + 1));
    }
}

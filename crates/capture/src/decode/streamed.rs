//! A capture that is streamed: each thread's ranges as they begin and end, without a list of them.
//!
//! The file is read twice, a segment at a time into the same memory. The first pass steps over records by their lengths
//! and takes in only what holds for the process; the second replays the parts that are requested.

mod event_sink;
mod scan;
mod visitor;

pub use event_sink::{EndIndex, EventSink};
pub use visitor::RecordVisitor;

use super::parts::Records;
use super::process::ProcessRecords;
use crate::clock::TickClock;
use crate::device::CompactActivities;
use crate::layout::HEADER_BYTES;
use crate::read::HeaderFields;
use crate::{Capture, CaptureError, Inputs, ProfilerState, Sample, Thread, Window};
use scan::{profiler_states_of, samples_of, scan, threads_of};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use visitor::Replay;

/// A capture on disk, and all of it that holds for the whole process.
#[derive(Debug)]
pub struct StreamedCapture {
    file: File,
    path: PathBuf,
    header: HeaderFields,
    process: ProcessRecords,
    /// How many names there are.
    names: u32,
    clock: TickClock,
    threads: Vec<StreamedThread>,
    samples: Vec<Sample>,
    /// Whether devices' profilers reported something, and what of it can be placed.
    has_device_activities: bool,
    activities: CompactActivities,
    /// When ranges ended that began on another thread.
    ends_elsewhere: Vec<i64>,
    profiler_states: Vec<ProfilerState>,
}

/// A thread, and where its records are, in their order.
#[derive(Debug)]
struct StreamedThread {
    thread: Thread,
    parts: Vec<PartOnDisk>,
}

/// One thread's records within one segment.
#[derive(Clone, Copy, Debug)]
struct PartOnDisk {
    ordinal: u32,
    part: u32,
    segment: usize,
    at: usize,
    end: usize,
    first_ticks: u64,
    /// Whether a visitor visits any of its records.
    is_visited: bool,
    /// Its activity records: from, to.
    activities: (usize, usize),
}

impl StreamedCapture {
    /// The capture at `path`, of which only what was written up to now counts.
    ///
    /// `None` for what has to be read as a whole: rings, files with damage, and names that were lost.
    ///
    /// # Errors
    /// When the file cannot be read, is no capture, or is of a newer version.
    pub fn open(path: &Path) -> Result<Option<Self>, CaptureError> {
        let io = |source| CaptureError::Io { action: "read", source, path: path.into() };
        let mut file = File::open(path).map_err(io)?;
        let mut header = Vec::new();
        file.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut header).map_err(io)?;
        let header = HeaderFields::read(&header, path)?;
        if header.is_ring() {
            return Ok(None);
        }
        let Some(mut scan) = scan(&mut file, header.segment_bytes).map_err(io)? else { return Ok(None) };
        scan.process.call_stops.sort_unstable();
        let is_lost = |name: u32| name as usize >= scan.process.names.len();
        if scan.samples.iter().any(|(_, name, ..)| is_lost(*name)) {
            return Ok(None);
        }
        let moments = if header.has_rate() { scan.process.clock_points.as_slice() } else { &[] };
        let clock = TickClock::new(header.opened, moments.iter().copied());
        let ends_elsewhere = scan.ends_elsewhere.iter().map(|ticks| clock.monotonic_ns(*ticks)).collect();
        let mut activities = scan.activities;
        let has_device_activities = !activities.rows.is_empty();
        let mut threads = threads_of(scan.parts, &scan.threads, &mut activities);
        let ordinals: Vec<u32> = threads.iter().map(|thread| thread.parts[0].ordinal).collect();
        let mut known: Vec<Thread> = threads.iter().map(|thread| thread.thread.clone()).collect();
        let activities = super::device::finish_compact(activities, &scan.process, &clock, &mut known);
        let added = known.drain(threads.len()..).map(|thread| StreamedThread { thread, parts: Vec::new() });
        threads.extend(added);
        Ok(Some(Self {
            file,
            path: path.into(),
            header,
            names: scan.process.names.len() as u32,
            samples: samples_of(&scan.samples, &clock),
            profiler_states: profiler_states_of(&scan.profiler_states, &ordinals, &clock),
            clock,
            threads,
            has_device_activities,
            activities,
            process: scan.process,
            ends_elsewhere,
        }))
    }

    /// Monotonic clock when the capture was opened.
    pub fn opened_ns(&self) -> i64 {
        self.header.opened.monotonic_ns
    }

    /// A moment at which the process is known to have lived, and not necessarily the last one.
    pub fn lived_until_ns(&self) -> i64 {
        let moments = self.process.clock_points.iter().map(|point| self.clock.monotonic_ns(point.ticks));
        moments.fold(self.opened_ns(), i64::max)
    }

    /// The keys of metadata of the process, sorted.
    pub fn metadata_keys(&self) -> impl Iterator<Item = &str> {
        self.process.metadata_keys()
    }

    /// Names that begins refer to.
    pub fn names(&self) -> &[String] {
        &self.process.names
    }

    /// What ops were called with, which [`RecordVisitor::set_inputs`] refers to.
    pub fn inputs(&self) -> &[Inputs] {
        self.process.inputs.list()
    }

    /// When recording was switched, by time.
    pub fn windows(&self) -> Vec<Window> {
        let window = |(ticks, is_on, cycle): &(u64, bool, u64)| Window {
            time_ns: self.clock.monotonic_ns(*ticks),
            is_on: *is_on,
            cycle: *cycle,
        };
        let mut windows: Vec<Window> = self.process.windows.iter().map(window).collect();
        windows.sort_by_key(|window| window.time_ns);
        windows
    }

    /// Under which profiler state each thread ran what it did, by (thread, time).
    pub fn profiler_states(&self) -> &[ProfilerState] {
        &self.profiler_states
    }

    /// Threads, by ordinal.
    pub fn threads(&self) -> impl ExactSizeIterator<Item = &Thread> {
        self.threads.iter().map(|thread| &thread.thread)
    }

    /// Whether devices' profilers reported something, also where it cannot be placed.
    pub fn has_device_activities(&self) -> bool {
        self.has_device_activities
    }

    /// What devices' profilers reported, in the order in which it was written, by the clock and the threads of the
    /// capture.
    pub fn activities(&self) -> &CompactActivities {
        &self.activities
    }

    /// True when within `times` a range ended that began on another thread.
    pub fn has_ends_elsewhere(&self, times: &Range<i64>) -> bool {
        self.ends_elsewhere.iter().any(|at_ns| times.contains(at_ns))
    }

    /// Has `visitor` visit what the thread with this ordinal recorded within `times`, and some of what it recorded
    /// around them.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn visit_thread(
        &self,
        thread: u32,
        times: &Range<i64>,
        visitor: &mut impl RecordVisitor,
    ) -> Result<(), CaptureError> {
        self.visit_parts(thread, times, visitor).map(|_| ())
    }

    /// As [`visit_thread`](Self::visit_thread); gives the parts that were visited.
    fn visit_parts(
        &self,
        thread: u32,
        times: &Range<i64>,
        visitor: &mut impl RecordVisitor,
    ) -> Result<Range<usize>, CaptureError> {
        let Some(StreamedThread { parts, .. }) = self.threads.get(thread as usize) else { return Ok(0..0) };
        let begins_at = |part: &PartOnDisk| self.clock.monotonic_ns(part.first_ticks);
        // What ends a part begins the next one, and the first record behind a part's begin may be a little older.
        let is_over = |at: usize| parts.get(at + 1).is_some_and(|next| begins_at(next) < times.start);
        let is_behind = |at: usize| begins_at(&parts[at]) >= times.end;
        let first = (0..parts.len()).find(|at| !is_over(*at)).unwrap_or(parts.len());
        let mut last = first;
        let mut replay = self.replay_to(thread, visitor);
        let mut bytes = vec![0; self.header.segment_bytes];
        while last < parts.len() && (last == 0 || !is_behind(last - 1) || replay.visitor.needs_more()) {
            if parts[last].is_visited {
                self.replay_part(&parts[last], &mut bytes, &mut replay)?;
            }
            last += 1;
        }
        Ok(first..last)
    }

    fn replay_to<'a, L: RecordVisitor>(&'a self, thread: u32, visitor: &'a mut L) -> Replay<'a, L> {
        Replay { thread, names: self.names, process: &self.process, clock: self.clock.cursor(), visitor }
    }

    /// Reads a part into `bytes` and replays it.
    fn replay_part(
        &self,
        part: &PartOnDisk,
        bytes: &mut [u8],
        replay: &mut Replay<'_, impl RecordVisitor>,
    ) -> Result<(), CaptureError> {
        let io = |source| CaptureError::Io { action: "read", source, path: self.path.clone() };
        let mut file = &self.file;
        let segment = HEADER_BYTES + part.segment * self.header.segment_bytes;
        file.seek(SeekFrom::Start((segment + part.at) as u64)).map_err(io)?;
        file.read_exact(&mut bytes[part.at..part.end]).map_err(io)?;
        Records::between(&bytes[..part.end], part.at, part.end).for_each(|record| replay.take(&record));
        Ok(())
    }

    /// The capture but for what its threads recorded. It takes names and inputs along: [`names`](Self::names) and
    /// [`inputs`](Self::inputs) are empty from then on.
    pub fn take_capture(&mut self) -> Capture {
        let damaged = self.process.inputs.damage().into_iter().collect();
        Capture {
            last_ns: self.lived_until_ns(),
            metadata: self.process.metadata(),
            threads: self.threads().cloned().collect(),
            names: std::mem::take(&mut self.process.names),
            overloads: std::mem::take(&mut self.process.overloads),
            inputs: self.process.inputs.take_list(),
            samples: std::mem::take(&mut self.samples),
            profiler_states: self.profiler_states.clone(),
            windows: self.windows(),
            damaged,
            ..self.header.empty_capture()
        }
    }
}

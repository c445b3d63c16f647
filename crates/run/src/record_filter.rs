//! Which records of one process's recording are selected: by time, thread and kind.

mod device;
mod threads;

pub use device::ExcludeDevice;
pub use threads::{ThreadFilter, ThreadInclusion, note_forward};

use crate::files::{parts_of, stem};
use crate::{ListedCalls, RunError, read_part};
use std::ops::Range;
use std::path::Path;
use stepscope_capture::device::ActivityRecord;
use stepscope_capture::layout::scope;
use stepscope_capture::{Capture, CaptureError, CaptureReader, DeviceActivity, Event, State, StepRange, Window};

/// How far a window's record may lie from the moment that was noted for it, ns.
const NEAR_NS: u64 = 1_000_000_000;
/// How far the times of records and noted times may differ for the same moment, ns.
const CLOCK_NS: i64 = 5_000;
/// The scope of a backward node.
pub const BACKWARD_SCOPE: u8 = 1;
/// The scope of a label.
const USER_SCOPE: u8 = 7;

/// Selects records of a recording.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecordFilter {
    /// Monotonic times, ascending. What starts within one of them is selected; calls also when they were open then.
    pub spans: Vec<Range<i64>>,
    /// The system's id of a thread: only it, and what other threads did for it. All threads without one.
    pub thread: Option<u64>,
    /// Numbers of [profiler states](stepscope_capture::ProfilerState): what was begun under one of them was begun by
    /// that thread. Without any, other threads are asked for that ran the backward pass of its operators, and of
    /// theirs.
    pub states: Vec<u64>,
    /// Kinds that are not selected.
    pub exclude: Exclude,
}

/// Kinds of events that a filter excludes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Exclude {
    /// Operators and autograd nodes.
    pub operators: bool,
    /// Labels, but not those of steps.
    pub labels: bool,
    /// Labelled steps.
    pub steps: bool,
    /// Calls of Python and of modules, garbage collections.
    pub calls: bool,
    /// Garbage collections alone.
    pub collections: bool,
    /// Activity records of devices.
    pub device: ExcludeDevice,
}

impl RecordFilter {
    /// Removes everything else from `capture`, which then is complete: what was open at the end ends there. Of calls
    /// those [listed](ListedCalls) stay.
    pub fn apply(&self, capture: &mut Capture) {
        let resolved = self.resolve(&capture.windows);
        let contains = |time_ns: i64| resolved.contains(time_ns);
        let thread_filter = self.thread_filter(capture);
        let end_ns = resolved.end_ns();
        // The order stays, since nothing that is kept began before a call that was open when a span began.
        let mut calls = ListedCalls::of(&capture.names);
        capture.events.retain_mut(|event| {
            let span = resolved.clip_event(event).filter(|_| thread_filter.has_event(event) && calls.lists(event));
            (event.start_ns, event.end_ns) = span.unwrap_or((event.start_ns, event.end_ns));
            span.is_some()
        });
        capture.steps.retain_mut(|step| {
            let span = resolved.clip_step(step).filter(|_| thread_filter.has_thread(step.thread));
            (step.start_ns, step.end_ns) = span.unwrap_or((step.start_ns, step.end_ns));
            span.is_some()
        });
        capture.optimizer_steps.retain(|mark| thread_filter.has_thread(mark.thread) && contains(mark.time_ns));
        capture.io.retain(|call| thread_filter.has(call.thread, call.start_ns) && contains(call.start_ns));
        capture.memory.retain(|event| thread_filter.has(event.thread, event.time_ns) && contains(event.time_ns));
        // Calls stay: they say who launched what is shown.
        let is_hidden = |record: &ActivityRecord| self.exclude.device.excludes(record);
        capture.device.retain(|DeviceActivity { record, .. }| {
            let is_call = matches!(record, ActivityRecord::Call(_));
            (is_call || !is_hidden(record)) && record.span().is_none_or(|(start_ns, _)| contains(start_ns))
        });
        capture.samples.retain(|sample| contains(sample.time_ns));
        capture.stack_samples.retain(|of| thread_filter.has_thread(of.thread) && contains(of.time_ns));
        capture.windows.retain(|window| contains(window.time_ns));
        capture.last_ns = capture.last_ns.min(end_ns);
        capture.state = State::Closed;
    }

    /// Removes the calls of a device's runtime and driver that are excluded. [`apply`](Self::apply) leaves them in.
    pub fn exclude_device_calls(&self, capture: &mut Capture) {
        capture.device.retain(|activity| {
            !matches!(activity.record, ActivityRecord::Call(_)) || !self.exclude.device.excludes(&activity.record)
        });
    }

    /// From when to when what each thread of `capture` recorded may be selected, or decides what of others is.
    pub fn times_of_threads(&self, capture: &Capture) -> Vec<Range<i64>> {
        let selected = self.resolve(&capture.windows).times().unwrap_or_default();
        // Calls that were open when a span began are around what is in it.
        let start = if self.exclude.calls || selected.is_empty() { selected.start } else { i64::MIN };
        let times = |inclusion| match inclusion {
            ThreadInclusion::Yes => start..selected.end,
            // Whether it ever ran a backward pass for a thread that is selected.
            ThreadInclusion::IfBackward => i64::MIN..i64::MAX,
            ThreadInclusion::No => 0..0,
        };
        self.thread_inclusions(&capture.threads, &capture.profiler_states).into_iter().map(times).collect()
    }

    /// The filter with the spans of a capture, whose windows these are.
    pub fn resolve(&self, windows: &[Window]) -> ResolvedFilter {
        ResolvedFilter { spans: self.resolved_spans_in(windows), exclude: self.exclude }
    }

    /// The spans, from and to the records that the same thread wrote about them: what follows one of those in the
    /// recording lies behind it by its own clock. A begin is noted behind its record and an end before it, however long
    /// the thread had to wait in between.
    pub fn resolved_spans(&self, capture: &Capture) -> Vec<Range<i64>> {
        self.resolved_spans_in(&capture.windows)
    }

    /// The [spans](Self::resolved_spans) by the windows of a capture.
    pub fn resolved_spans_in(&self, windows: &[Window]) -> Vec<Range<i64>> {
        let records = |is_on: bool| {
            let windows = windows.iter().filter(move |window| window.is_on == is_on);
            windows.map(|window| window.time_ns)
        };
        let begin = |time_ns: i64| records(true).filter(|at_ns| *at_ns <= time_ns.saturating_add(CLOCK_NS)).max();
        let end = |time_ns: i64| records(false).filter(|at_ns| *at_ns >= time_ns.saturating_sub(CLOCK_NS)).min();
        // Another window's, when its own was not written.
        let near = |found: Option<i64>, time_ns: i64| found.filter(|at_ns| at_ns.abs_diff(time_ns) < NEAR_NS);
        let resolved = |noted: i64, found: Option<i64>| near(found, noted).unwrap_or(noted);
        let spans = self.spans.iter();
        spans.map(|span| resolved(span.start, begin(span.start))..resolved(span.end, end(span.end))).collect()
    }
}

/// A filter whose spans are those of a capture's records.
#[derive(Clone, Debug)]
pub struct ResolvedFilter {
    spans: Vec<Range<i64>>,
    exclude: Exclude,
}

impl ResolvedFilter {
    /// From the first moment to the last; `None` when nothing is selected.
    pub fn times(&self) -> Option<Range<i64>> {
        Some(self.spans.first()?.start..self.end_ns())
    }

    /// Where what is open at the end ends.
    pub fn end_ns(&self) -> i64 {
        self.spans.last().map_or(i64::MIN, |span| span.end)
    }

    /// Whether a moment is selected.
    #[inline]
    pub fn contains(&self, time_ns: i64) -> bool {
        self.spans.iter().any(|span| span.contains(&time_ns))
    }

    /// The number of the span that a moment lies in.
    pub fn span_of(&self, time_ns: i64) -> Option<usize> {
        self.spans.iter().position(|span| span.contains(&time_ns))
    }

    /// Start and end of the part of an event that is selected, if its thread is; `None` when no part is. A call that
    /// was open when a span began is one from then on: it is around what was recorded.
    #[inline]
    pub fn clip_event(&self, event: &Event) -> Option<(i64, i64)> {
        let is_call = scope::is_call(event.scope);
        let is_hidden = match event.scope {
            USER_SCOPE => self.exclude.labels,
            scope::GARBAGE_COLLECTION => self.exclude.calls || self.exclude.collections,
            _ if is_call => self.exclude.calls,
            _ => self.exclude.operators,
        };
        let span = self.spans.iter().find(|span| event.start_ns < span.end).filter(|_| !is_hidden)?;
        let start_ns = match span.contains(&event.start_ns) {
            true => event.start_ns,
            false if is_call && event.end_ns > span.start => span.start,
            false => return None,
        };
        Some((start_ns, event.end_ns.min(self.end_ns())))
    }

    /// Start and end of the part of a step that is selected; `None` when it is another one's: less than half of it lies in
    /// a span, and it does not take half of the span. A framework's step may begin just before the call that begins the
    /// span, and the next just before the call that ends it.
    pub fn clip_step(&self, step: &StepRange) -> Option<(i64, i64)> {
        let is_in = |span: &&Range<i64>| {
            let (start_ns, end_ns) = (step.start_ns.max(span.start), step.end_ns.min(span.end));
            // How long one will be that has not ended is not known.
            let step_ns = if step.is_unfinished { i64::MAX } else { step.end_ns - step.start_ns };
            let shorter_ns = step_ns.min(span.end - span.start);
            start_ns < span.end && end_ns >= span.start && end_ns - start_ns >= shorter_ns / 2
        };
        let span = self.spans.iter().find(is_in).filter(|_| !self.exclude.steps)?;
        Some((step.start_ns.max(span.start), step.end_ns.min(self.end_ns())))
    }
}

/// Reads the capture that was written at `raw`, or the part that it has become since. Of what `filter` does not select
/// some may be missing.
///
/// # Errors
/// When neither can be read.
pub fn read_capture(raw: &Path, filter: &RecordFilter) -> Result<Capture, RunError> {
    let read = |reader: CaptureReader| {
        let times = filter.times_of_threads(reader.capture());
        reader.read(|thread| times[thread.ordinal as usize].clone())
    };
    let error = match CaptureReader::open(raw).and_then(read) {
        Ok(capture) => return Ok(capture),
        Err(error) => error,
    };
    let run = raw.parent().and_then(Path::parent);
    let part = run.and_then(|run| parts_of(run).ok()?.into_iter().find(|part| stem(part) == stem(raw)));
    match (part, &error) {
        (Some(part), CaptureError::Io { .. }) => read_part(&part),
        _ => Err(error.into()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use stepscope_capture::device::ActivityList;
    use stepscope_capture::{Mark, ProcessIdentity, Thread};

    /// Threads 0 "main", 1 a thread of the framework, 2 "backward", a thread of the program.
    pub(crate) fn capture() -> Capture {
        let thread = |ordinal: u32, name: &str| Thread {
            ordinal,
            tid: 100 + u64::from(ordinal),
            framework_thread: 1 + u64::from(ordinal),
            name: name.into(),
            handle: 0,
        };
        let event = |thread, start_ns, end_ns| Event {
            thread,
            name: 0,
            scope: if thread == 0 { 0 } else { BACKWARD_SCOPE },
            start_ns,
            end_ns,
            is_unfinished: false,
            is_async: false,
            sequence_number: None,
            forward_thread: (thread > 0).then_some(1),
            inputs: None,
            collective: None,
        };
        Capture {
            process: ProcessIdentity { pid: 7, start_ticks: 0, pid_namespace: 0, boot_id: [0; 16] },
            parent_pid: 1,
            state: State::Running,
            opened_ns: 0,
            unix_offset_ns: 0,
            clocks: vec![],
            last_ns: 900,
            metadata: vec![],
            threads: vec![thread(0, "main"), thread(1, ""), thread(2, "backward")],
            names: vec!["op".into()],
            events: [event(0, 50, 60), event(0, 101, 150), event(0, 180, 500), event(1, 120, 130), event(2, 140, 145)]
                .into(),
            steps: vec![StepRange { thread: 0, number: 3, start_ns: 102, end_ns: 900, is_unfinished: true }],
            optimizer_steps: [160, 400].map(|time_ns| Mark { thread: 0, time_ns, number: None }).to_vec(),
            memory: vec![],
            files: vec![],
            io: vec![],
            samples: vec![],
            stacks: vec![],
            stack_samples: vec![],
            device: ActivityList::default(),
            overloads: vec![],
            inputs: vec![],
            ring: None,
            profiler_states: vec![],
            windows: vec![
                Window { time_ns: 100, is_on: true, cycle: 0 },
                Window { time_ns: 200, is_on: false, cycle: 0 },
            ],
            dropped: 0,
            is_disk_full: false,
            damaged: vec![],
        }
    }

    fn starts(filter: &RecordFilter) -> Vec<(u32, i64, i64)> {
        let mut capture = capture();
        filter.apply(&mut capture);
        capture.events.iter().map(|event| (event.thread, event.start_ns, event.end_ns)).collect()
    }

    #[test]
    fn what_starts_in_the_window_is_kept_and_ends_with_it() {
        // The noted moments are not those of the records: the records hold.
        let exclude = Exclude { steps: true, ..Exclude::default() };
        let mut filter =
            RecordFilter { spans: vec![Range { start: 103, end: 190 }], exclude, ..RecordFilter::default() };
        assert_eq!(starts(&filter), [(0, 101, 150), (0, 180, 200), (1, 120, 130), (2, 140, 145)]);
        filter.thread = Some(100);
        assert_eq!(starts(&filter), [(0, 101, 150), (0, 180, 200), (1, 120, 130)], "not the program's other thread");
        let mut capture = capture();
        filter.apply(&mut capture);
        assert_eq!((capture.steps.len(), capture.optimizer_steps.len(), capture.state), (0, 1, State::Closed));
        assert_eq!(capture.last_ns, 200);
        filter.exclude.operators = true;
        assert_eq!(starts(&filter), []);
    }

    #[test]
    fn calls_that_were_open_when_the_window_began_count_from_there() {
        let mut capture = capture();
        let call = |start_ns, end_ns| Event { scope: scope::PYTHON_CALL, start_ns, end_ns, ..capture.events.at(0) };
        let calls = [call(10, 800), call(20, 90), call(30, 100), call(40, 101), call(105, 190)];
        capture.events = calls.into_iter().chain(capture.events.iter()).collect();
        let filter = RecordFilter { spans: vec![100..200, 600..700], thread: Some(100), ..RecordFilter::default() };
        capture.windows.clear();
        filter.apply(&mut capture);
        let calls = capture.events.iter().filter(|event| scope::is_call(event.scope));
        let found: Vec<_> = calls.map(|event| (event.start_ns, event.end_ns)).collect();
        assert_eq!(found, [(100, 700), (100, 101), (105, 190)]);
    }

    #[test]
    fn steps_are_cut_with_the_window_and_are_those_that_lie_in_it_for_the_most_part() {
        let found = |steps: &[(i64, i64)], spans: &[Range<i64>]| {
            let mut capture = Capture { windows: vec![], ..capture() };
            let step = |(number, span): (usize, &(i64, i64))| StepRange {
                number: number as i64,
                start_ns: span.0,
                end_ns: span.1,
                is_unfinished: span.1 == 900,
                ..capture.steps[0]
            };
            capture.steps = steps.iter().enumerate().map(step).collect();
            RecordFilter { spans: spans.to_vec(), thread: Some(100), ..RecordFilter::default() }.apply(&mut capture);
            capture.steps.iter().map(|step| (step.number, step.start_ns, step.end_ns)).collect::<Vec<_>>()
        };
        let window = [Range { start: 100, end: 200 }];
        assert_eq!(found(&[(102, 900)], &window), [(0, 102, 200)], "around most of the window");
        assert_eq!(
            found(&[(90, 130), (130, 160), (160, 198), (198, 230)], &window),
            [(0, 100, 130), (1, 130, 160), (2, 160, 198)]
        );
        assert_eq!(found(&[(60, 110), (110, 110), (190, 900)], &window), [(1, 110, 110)], "the last goes on");
        assert_eq!(found(&[(110, 330)], &[100..200, 300..400]), [(0, 110, 330)], "with a pause in it");
    }

    #[test]
    fn a_thread_that_waits_before_it_writes_an_end_does_not_meet_that_of_another_window() {
        let mut capture = capture();
        let window = |time_ns, is_on, cycle| Window { time_ns, is_on, cycle };
        let (on, off) = (1_000_000, 9_000_000);
        capture.windows = vec![
            window(100_000, true, 0),
            window(900_000, false, 0),
            window(on, true, 1),
            window(off, false, 1),
            window(9_100_000, true, 2),
        ];
        let filter =
            RecordFilter { spans: vec![Range { start: on + 700_000, end: on + 900_000 }], ..RecordFilter::default() };
        assert_eq!(filter.resolved_spans(&capture), vec![on..off]);
    }

    #[test]
    fn nothing_is_left_of_no_span() {
        assert_eq!(starts(&RecordFilter::default()), []);
    }
}

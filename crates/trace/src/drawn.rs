//! Traces drawn as text, for tests: a row a track, a column a microsecond.
//!
//! ```text
//! rank 0 step      00001111
//! rank 0 cpu 1     aaaabbbb      two ops, a and b; a further row of the same thread nests inside
//! rank 0 cpu 1     .xx.....
//! rank 0 launch 1  .C......      an API call on thread 1; links to the first C of a stream
//! rank 0 input 1   ........      waits for the next batch on thread 1
//! rank 0 stream 7  ..CC.NN.
//! rank 0 memory 1  .a...A..      thread 1 allocates device memory a, and frees it
//! ```
//!
//! A run of equal letters is one slice named by its letter; `.` is nothing, `|` ends a slice so that the next may have
//! the same letter and takes no time. On streams `N` is a communication kernel, `H` a host-to-device copy, `D` a
//! device-to-host copy, `Z` a memset, every other letter a computing kernel. The k-th launch named by a letter launches
//! the k-th stream slice of that letter; a letter without launches stays unlinked.
//!
//! Further rows of a thread: `label`, `sync` (an API call that waits for the device), `optimizer`, `python`, `module`, `io`,
//! and `overhead` (the profiler's own time, on a track of its own).
//!
//! On `samples` rows a letter is a sample of thread 1 in `f.py(7): f`, called by `main.py(1): main`: it runs, or sleeps when
//! the letter is a capital.
//!
//! On `memory` and `hostmemory` rows a small letter is an allocation at an address of its own, of 100 bytes for `a`, 200
//! for `b` and so on; its capital is the free.

use crate::{
    Collective, CollectiveKind, CopyDirection, Counter, Device, DeviceEvent, DeviceEventClass, DeviceId, Doing,
    LaunchKey, MemoryEvent, Process, ProcessId, SliceId, SliceKind, StackSample, Trace, TraceBuilder, Track, TrackId,
    TrackKind,
};
use std::collections::BTreeMap;
use stepscope_base::StringTable;

/// The trace that `drawing` shows. Every rank has one process and, when it has streams, device 0 with 10 SMs.
///
/// # Panics
/// When a row cannot be read: a mistake in the test.
pub fn drawn(drawing: &str) -> Trace {
    let mut canvas = Canvas::default();
    drawing.lines().filter(|line| !line.trim().is_empty()).for_each(|line| canvas.add_row(line));
    canvas.builder.name = "drawn".into();
    canvas.builder.finish()
}

#[derive(Default)]
struct Canvas {
    builder: TraceBuilder,
    processes: BTreeMap<u32, ProcessId>,
    devices: BTreeMap<u32, DeviceId>,
    tracks: BTreeMap<(u32, TrackKind, i64), TrackId>,
    occurrences: BTreeMap<(u32, &'static str, char), i64>,
}

impl Canvas {
    fn add_row(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let mut word = || words.next().unwrap_or_else(|| panic!("row ends too early: {line:?}"));
        assert_eq!(word(), "rank", "rows begin with 'rank N': {line:?}");
        let rank: u32 = word().parse().expect("a rank");
        let kind = word().to_string();
        let id: i64 = if kind == "step" { 0 } else { word().parse().expect("a thread or stream") };
        for (letter, start_ns, dur_ns) in runs(word()) {
            let track_kind = match kind.as_str() {
                "stream" => TrackKind::Stream,
                "overhead" => TrackKind::Other,
                _ => TrackKind::Thread,
            };
            let track = self.track(rank, track_kind, if kind == "step" { 1 } else { id });
            match kind.as_str() {
                "step" => {
                    let slice = self.slice(track, SliceKind::Step, &format!("ProfilerStep#{letter}"), start_ns, dur_ns);
                    self.builder.add_step_label(slice, i64::from(letter.to_digit(10).expect("a step's digit")));
                }
                "launch" => {
                    let slice = self.slice(track, SliceKind::Runtime, &letter.to_string(), start_ns, dur_ns);
                    self.correlate(rank, "launch", letter, slice);
                }
                "stream" => self.device_event(rank, id, track, letter, start_ns, dur_ns),
                "memory" | "hostmemory" => self.memory_event(rank, track, letter, start_ns, kind == "memory"),
                "samples" => self.stack_sample(track, letter, start_ns),
                other => drop(self.slice(track, host_kind(other), &letter.to_string(), start_ns, dur_ns)),
            }
        }
    }

    fn process(&mut self, rank: u32) -> ProcessId {
        let builder = &mut self.builder;
        *self.processes.entry(rank).or_insert_with(|| builder.add_process(Process { rank, ..Process::default() }))
    }

    fn track(&mut self, rank: u32, kind: TrackKind, id: i64) -> TrackId {
        let process = self.process(rank);
        let is_stream = kind == TrackKind::Stream;
        let device = is_stream.then(|| self.device(rank));
        let builder = &mut self.builder;
        *self.tracks.entry((rank, kind, id)).or_insert_with(|| {
            let mut track = Track::new(kind, process, format!("{} {id}", if is_stream { "stream" } else { "thread" }));
            (track.device, track.stream, track.tid) = (device, is_stream.then_some(id), (!is_stream).then_some(id));
            builder.add_track(track)
        })
    }

    fn device(&mut self, rank: u32) -> DeviceId {
        let builder = &mut self.builder;
        let device = || Device { rank, sm_count: Some(10), ..Device::default() };
        *self.devices.entry(rank).or_insert_with(|| builder.add_device(device()))
    }

    fn slice(&mut self, track: TrackId, kind: SliceKind, name: &str, start_ns: i64, dur_ns: i64) -> SliceId {
        let name = self.builder.strings.intern(name);
        self.builder.add_slice(track, kind, name, start_ns, dur_ns)
    }

    fn device_event(&mut self, rank: u32, stream: i64, track: TrackId, letter: char, start_ns: i64, dur_ns: i64) {
        let (kind, class) = match letter {
            'N' => (SliceKind::Kernel, DeviceEventClass::Communication),
            'H' => (SliceKind::Memcpy, DeviceEventClass::Memcpy(CopyDirection::HostToDevice)),
            'D' => (SliceKind::Memcpy, DeviceEventClass::Memcpy(CopyDirection::DeviceToHost)),
            'Z' => (SliceKind::Memset, DeviceEventClass::Memset),
            _ => (SliceKind::Kernel, DeviceEventClass::Compute),
        };
        let slice = self.slice(track, kind, &letter.to_string(), start_ns, dur_ns);
        let device = self.device(rank);
        self.builder.add_device_event(DeviceEvent { stream: Some(stream), ..DeviceEvent::new(slice, device, class) });
        self.correlate(rank, "event", letter, slice);
    }

    fn stack_sample(&mut self, track: TrackId, letter: char, time_ns: i64) {
        let name = letter.to_ascii_lowercase();
        let [main, frame] = ["main.py(1): main".into(), format!("{name}.py(7): {name}")]
            .map(|text: String| self.builder.strings.intern(&text));
        let main = self.builder.intern_stack(main, None);
        let stack = Some(self.builder.intern_stack(frame, Some(main)));
        let doing = if letter == name { Doing::Running } else { Doing::Sleep };
        let sample = StackSample { track, time_ns, stack, doing, ran_ns: None, runnable_ns: None };
        self.builder.add_stack_sample(sample);
    }

    fn memory_event(&mut self, rank: u32, track: TrackId, letter: char, time_ns: i64, is_on_device: bool) {
        let device = is_on_device.then(|| self.device(rank));
        let small = letter.to_ascii_lowercase();
        let bytes = 100 * (i64::from(u32::from(small)) - i64::from(u32::from('a')) + 1);
        let bytes = if letter.is_ascii_lowercase() { bytes } else { -bytes };
        let address = u64::from(u32::from(small));
        let (allocated_bytes, reserved_bytes, op) = (None, None, None);
        let event = MemoryEvent {
            time_ns,
            track,
            device,
            address,
            bytes,
            allocated_bytes,
            reserved_bytes,
            op,
            stream: None,
            stack: None,
        };
        self.builder.add_memory_event(event);
    }

    fn correlate(&mut self, rank: u32, side: &'static str, letter: char, slice: SliceId) {
        let process = self.process(rank);
        let occurrence = self.occurrences.entry((rank, side, letter)).or_insert(0);
        let correlation = i64::from(u32::from(letter)) * 1_000 + *occurrence;
        *occurrence += 1;
        self.builder.set_correlation(slice, LaunchKey { process, correlation });
    }
}

fn host_kind(row: &str) -> SliceKind {
    match row {
        "cpu" => SliceKind::Op,
        "input" => SliceKind::DataLoader,
        "label" => SliceKind::Annotation,
        "sync" => SliceKind::HostSync,
        "optimizer" => SliceKind::Optimizer,
        "python" => SliceKind::PythonFunction,
        "module" => SliceKind::Module,
        "io" => SliceKind::Io,
        "overhead" => SliceKind::Overhead,
        other => panic!("unknown kind of row {other:?}"),
    }
}

/// The runs of equal letters in `cells` as (letter, start, duration) in ns.
fn runs(cells: &str) -> Vec<(char, i64, i64)> {
    let mut runs: Vec<(char, i64, i64)> = Vec::new();
    let (mut at_ns, mut is_open) = (0, false);
    for cell in cells.chars() {
        match cell {
            '|' => is_open = false,
            '.' => {
                is_open = false;
                at_ns += 1_000;
            }
            _ => {
                match runs.last_mut() {
                    Some((letter, _, dur_ns)) if is_open && *letter == cell => *dur_ns += 1_000,
                    _ => runs.push((cell, at_ns, 1_000)),
                }
                is_open = true;
                at_ns += 1_000;
            }
        }
    }
    runs
}

/// What slices say of the collective that they are: name, element type, elements, number of the first.
pub type SaidOfCollective = (&'static str, &'static str, Option<i64>, Option<i64>);

/// [`drawn`], with what every slice of one of these names and kinds says of a collective of group `0` of two ranks.
pub fn drawn_with_collectives(drawing: &str, said: &[(&str, SliceKind, SaidOfCollective)]) -> Trace {
    let mut trace = drawn(drawing);
    for (of, slice_kind, (name, dtype, elements, number)) in said {
        let is_meant = |id: &SliceId| trace.slice_name(*id) == *of && trace.slices.kind(*id) == *slice_kind;
        let slices: Vec<SliceId> = trace.slices.ids().filter(is_meant).collect();
        let kind = match *name {
            "allreduce" => Some(CollectiveKind::AllReduce),
            "all_gather" => Some(CollectiveKind::AllGather),
            "reduce_scatter" => Some(CollectiveKind::ReduceScatter),
            "send" => Some(CollectiveKind::Send),
            "recv" => Some(CollectiveKind::Receive),
            _ => None,
        };
        for (at, slice) in slices.into_iter().enumerate() {
            let mut text = |text: &str| trace.strings.intern(text);
            let collective = Collective {
                slice,
                name: text(name),
                kind,
                dtype: text(dtype),
                input_elements: *elements,
                output_elements: *elements,
                input_split_sizes: StringTable::EMPTY,
                output_split_sizes: StringTable::EMPTY,
                group: text("0"),
                group_description: text("default_pg"),
                group_size: Some(2),
                group_ranks: text("[0, 1]"),
                group_rank: None,
                source_rank: None,
                destination_rank: None,
                is_async: None,
                sequence_number: number.map(|first| first + at as i64),
            };
            trace.collectives.push(collective);
        }
    }
    trace.collectives.sort_by_key(|said| said.slice);
    trace
}

/// Adds what was sampled of the SM clock of the first device of a rank, which has one: times, ns, and MHz.
///
/// # Panics
/// When the rank has no device: a mistake in the test.
pub fn add_sm_clock(trace: &mut Trace, rank: u32, samples: &[(i64, i64)]) {
    let device = trace.devices.iter().position(|device| device.rank == rank).expect("a device of the rank");
    let process = trace.processes.iter().position(|process| process.rank == rank).expect("a process of the rank");
    let counter = Counter {
        name: trace.strings.intern("GPU 0 SM clock (MHz)"),
        process: ProcessId::from_index(process),
        device: Some(DeviceId::from_index(device)),
        time_ns: samples.iter().map(|(time_ns, _)| *time_ns).collect(),
        value: samples.iter().map(|(_, mhz)| *mhz as f64).collect(),
    };
    trace.counters.push(counter);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_has_the_slices_it_shows() {
        let trace = drawn(
            "rank 0 step      00001111
             rank 0 cpu 1     aaaabb|b.
             rank 0 launch 1  .C......
             rank 0 stream 7  ..CC.NN.",
        );
        let ops: Vec<_> = trace
            .slices
            .ids()
            .filter(|id| trace.slices.kind(*id) == SliceKind::Op)
            .map(|id| (trace.slice_name(id), trace.slices.span(id).start_ns, trace.slices.span(id).duration_ns()))
            .collect();
        assert_eq!(ops, [("a", 0, 4_000), ("b", 4_000, 2_000), ("b", 6_000, 1_000)]);
        assert_eq!(trace.steps.len(), 2);
        let launched: Vec<_> =
            trace.device_events.iter().map(|event| event.op.map(|op| trace.slice_name(op))).collect();
        assert_eq!(launched, [Some("a"), None]);
    }

    #[test]
    fn memory_is_allocated_by_a_small_letter_and_freed_by_its_capital() {
        let trace = drawn(
            "rank 0 cpu 1        xxxx
             rank 0 memory 1     .b..B
             rank 0 hostmemory 1 a....",
        );
        let row = |event: &MemoryEvent| (event.time_ns, event.bytes, event.device.is_some(), event.op.is_some());
        let rows: Vec<_> = trace.memory.iter().map(row).collect();
        assert_eq!(rows, [(0, 100, false, true), (1_000, 200, true, true), (4_000, -200, true, false)]);
    }
}

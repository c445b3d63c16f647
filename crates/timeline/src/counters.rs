//! Values over time: what was sampled, and the memory that allocators counted.

use crate::row::{Content, Values};
use crate::timeline::within_reach;
use crate::{RowId, Timeline};
use serde::Serialize;
use stepscope_base::Span;
use stepscope_trace::{DeviceId, MemoryEvent, Trace};

/// More points than this are not given.
pub const MAX_POINTS: usize = 10_000;

/// What a counter did in a window, in parts of equal length; parts without a sample are left out.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct CounterPart {
    /// The row.
    pub row: RowId,
    /// The first sample of each part; at first the last sample before the window, when there is one.
    pub time_ns: Vec<i64>,
    /// The lowest value of each part.
    pub min: Vec<f64>,
    /// The highest value.
    pub max: Vec<f64>,
    /// The last value.
    pub last: Vec<f64>,
}

impl CounterPart {
    fn begin(&mut self, time_ns: i64, value: f64) {
        self.time_ns.push(time_ns);
        self.min.push(value);
        self.max.push(value);
        self.last.push(value);
    }

    fn add(&mut self, value: f64) {
        let at = self.last.len() - 1;
        self.min[at] = self.min[at].min(value);
        self.max[at] = self.max[at].max(value);
        self.last[at] = value;
    }
}

impl Timeline {
    /// What counters did in `window`, in at most `points` parts. Rows that are no counters are left out.
    pub fn counters(&self, trace: &Trace, rows: &[RowId], window: Span, points: usize) -> Vec<CounterPart> {
        let window = within_reach(window);
        let points = points.clamp(1, MAX_POINTS) as i64;
        let part_ns = (window.duration_ns().max(1) as u64).div_ceil(points as u64) as i64;
        let part_of = |row: &RowId| {
            let Content::Counter(values) = &self.rows.get(*row as usize)?.content else { return None };
            let (times, values) = samples(trace, values);
            let first = times.partition_point(|at_ns| *at_ns < window.start_ns);
            let mut part = CounterPart { row: *row, ..CounterPart::default() };
            if let Some(before) = first.checked_sub(1) {
                part.begin(times[before], values[before]);
            }
            let mut current = None;
            let inside = times[first..].iter().zip(&values[first..]).take_while(|(at_ns, _)| **at_ns < window.end_ns);
            for (at_ns, value) in inside {
                let number = (at_ns - window.start_ns) / part_ns;
                match current == Some(number) {
                    true => part.add(*value),
                    false => part.begin(*at_ns, *value),
                }
                current = Some(number);
            }
            Some(part)
        };
        rows.iter().filter_map(part_of).collect()
    }
}

fn samples<'a>(trace: &'a Trace, values: &'a Values) -> (&'a [i64], &'a [f64]) {
    match values {
        Values::Counter(at) => (&trace.counters[*at].time_ns, &trace.counters[*at].value),
        Values::Own { time_ns, value } => (time_ns, value),
    }
}

/// The counters of a device, or of the host, of a rank: name, unit, values, number of samples.
pub(crate) fn of(trace: &Trace, rank: u32, device: Option<DeviceId>) -> Vec<(String, &'static str, Values, usize)> {
    let is_of = |of: Option<DeviceId>, rank_of: u32| of == device && rank_of == rank;
    let mut found = Vec::new();
    for (name, value_of) in [
        ("Memory allocated", (|event| event.allocated_bytes) as fn(&MemoryEvent) -> Option<i64>),
        ("Memory reserved", |event| event.reserved_bytes),
    ] {
        let events = trace.memory.iter().filter(|event| is_of(event.device, trace.rank_of_track(event.track)));
        let values = events.filter_map(|event| Some((event.time_ns, value_of(event)? as f64)));
        let (time_ns, value): (Vec<i64>, Vec<f64>) = values.unzip();
        // An allocator that reserves nothing always says 0.
        if value.iter().any(|value| *value != 0.0) {
            let samples = value.len();
            found.push((
                name.to_string(),
                "bytes",
                Values::Own { time_ns: time_ns.into(), value: value.into() },
                samples,
            ));
        }
    }
    let sampled = trace.counters.iter().enumerate();
    let sampled = sampled.filter(|(_, of)| is_of(of.device, trace.processes[of.process.index()].rank));
    found.extend(sampled.map(|(at, counter)| {
        let name = trace.strings.get(counter.name);
        match running_total(name).filter(|_| counter.value.len() > 1) {
            Some((name, unit, per_ns)) => {
                let (time_ns, value) = growth(&counter.time_ns, &counter.value, per_ns);
                (
                    name.to_string(),
                    unit,
                    Values::Own { time_ns: time_ns.into(), value: value.into() },
                    counter.value.len(),
                )
            }
            None => (name.to_string(), unit_of(name), Values::Counter(at), counter.value.len()),
        }
    }));
    found
}

/// What recorders read as a sum since a machine or process began, by its name without the unit: what one wants to see of it is
/// how fast it grows, in a unit, of which so much is one in a ns.
fn running_total(name: &str) -> Option<(&str, &'static str, f64)> {
    const BYTES: [&str; 6] = [" read", " written", " received", " sent", " swapped in", " swapped out"];
    // Time in a time: 1 is one processor, or a disk that is always busy.
    let time = || name.strip_suffix(" (ns)").map(|name| (name, "ratio", 1.0));
    let bytes = || name.strip_suffix(" (bytes)").filter(|name| BYTES.iter().any(|way| name.ends_with(way)));
    time().or_else(|| bytes().map(|name| (name, "bytes/s", 1e9)))
}

/// How fast a sum grows from each of its samples on. What is started again begins at 0.
fn growth(time_ns: &[i64], value: &[f64], per_ns: f64) -> (Vec<i64>, Vec<f64>) {
    let pairs = time_ns.windows(2).zip(value.windows(2)).filter(|(times, _)| times[1] > times[0]);
    let rate = |(times, values): (&[i64], &[f64])| {
        (times[0], (values[1] - values[0]).max(0.0) * per_ns / (times[1] - times[0]) as f64)
    };
    pairs.map(rate).unzip()
}

/// Our own counters have their unit in their name; those of others are plain numbers.
fn unit_of(name: &str) -> &'static str {
    match name {
        _ if name.ends_with("_bytes") => "bytes",
        _ if name.ends_with("_ratio") => "ratio",
        _ => "count",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_base::StringTable;
    use stepscope_trace::{Counter, Process, ProcessId};

    fn with_counter(samples: &[(i64, f64)]) -> Trace {
        let mut trace =
            Trace { processes: vec![Process::default()], strings: StringTable::default(), ..Trace::default() };
        let (time_ns, value) = samples.iter().copied().unzip();
        let name = trace.strings.intern("used_bytes");
        trace.counters.push(Counter { name, process: ProcessId(0), device: None, time_ns, value });
        trace
    }

    proptest! {
        #[test]
        fn parts_hold_what_their_samples_say(
            gaps in prop::collection::vec((0_i64..20, -9_i32..9), 0..200), a in 0_i64..2_000, b in 0_i64..2_000, points in 1_usize..40,
        ) {
            let mut at_ns = 0;
            let samples: Vec<(i64, f64)> = gaps.iter().map(|(gap, value)| { at_ns += gap; (at_ns, f64::from(*value)) }).collect();
            let trace = with_counter(&samples);
            let timeline = Timeline::of(&trace);
            let window = Span::new(a.min(b), a.max(b));
            let parts = timeline.counters(&trace, &[0], window, points);
            let part = &parts[0];
            let inside: Vec<&(i64, f64)> = samples.iter().filter(|(at_ns, _)| window.contains(*at_ns)).collect();
            let before = samples.iter().rfind(|(at_ns, _)| *at_ns < window.start_ns);
            let skip = usize::from(before.is_some());
            prop_assert_eq!(before.map(|(at_ns, _)| *at_ns), part.time_ns.first().copied().filter(|_| skip == 1));
            prop_assert!(part.time_ns.len() <= points + skip && part.time_ns.is_sorted());
            let lowest = |values: &[f64]| values.iter().copied().reduce(f64::min);
            let summary: Vec<f64> = inside.iter().map(|(_, value)| *value).collect();
            prop_assert_eq!(lowest(&part.min[skip..]), lowest(&summary));
            prop_assert_eq!(part.max[skip..].iter().copied().reduce(f64::max), summary.iter().copied().reduce(f64::max));
            prop_assert_eq!(part.last[skip..].last(), summary.last());
        }
    }

    #[test]
    fn of_a_sum_is_shown_how_fast_it_grows() {
        let shown = |name: &str, samples: &[(i64, f64)]| {
            let mut trace = with_counter(samples);
            trace.counters[0].name = trace.strings.intern(name);
            let timeline = Timeline::of(&trace);
            let row = &timeline.rows[0].info;
            let part = timeline.counters(&trace, &[0], Span::new(0, 100), 100).remove(0);
            (row.name.clone(), row.unit.unwrap_or_default(), part.time_ns, part.last)
        };
        let samples = [(0, 1_000.0), (10, 1_015.0), (30, 1_020.0), (40, 7.0)];
        let times = vec![0, 10, 30];
        let of =
            |name: &str, unit, times: &[i64], values: &[f64]| (name.to_string(), unit, times.to_vec(), values.to_vec());
        assert_eq!(shown("host CPU user (ns)", &samples), of("host CPU user", "ratio", &times, &[1.5, 0.25, 0.0]));
        assert_eq!(shown("disk a read (bytes)", &samples), of("disk a read", "bytes/s", &times, &[1.5e9, 0.25e9, 0.0]));
        // A level, and a sum that is known once.
        let values: Vec<f64> = samples.iter().map(|(_, value)| *value).collect();
        assert_eq!(shown("memory (bytes)", &samples), of("memory (bytes)", "count", &[0, 10, 30, 40], &values));
        assert_eq!(shown("host CPU idle (ns)", &samples[..1]), of("host CPU idle (ns)", "count", &[0], &[1_000.0]));
    }

    #[test]
    fn memory_is_a_counter_of_its_device() {
        let mut trace =
            stepscope_trace::drawn::drawn("rank 0 cpu 1 aaaaaa\nrank 0 stream 7 C.....\nrank 0 memory 1 .a.b.A");
        let names = |trace: &Trace| {
            let timeline = Timeline::of(trace);
            let counters = timeline.rows.iter().filter(|row| matches!(row.content, Content::Counter(_)));
            counters.map(|row| (row.info.name.clone(), row.info.unit, row.info.slices)).collect::<Vec<_>>()
        };
        assert_eq!(names(&trace), [], "events without totals");
        trace.memory[1].allocated_bytes = Some(300);
        trace.memory[2].allocated_bytes = Some(200);
        assert_eq!(names(&trace), [("Memory allocated".to_string(), Some("bytes"), 2)]);
    }
}

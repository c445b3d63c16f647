//! Numbers of processes, threads and devices in formats that know nothing else: each is given to one only. The source's
//! own numbers are kept where they are distinct and fit.

use rustc_hash::FxHashSet;
use std::ops::RangeInclusive;
use stepscope_trace::{Device, Trace, TrackKind};

/// Numbers that no source gives begin here.
const FIRST_OWN: i64 = 1_000_001;

/// The numbers of a trace's processes, tracks and devices.
#[derive(Debug)]
pub(crate) struct Numbering {
    /// By process.
    pub(crate) pid: Vec<i64>,
    /// By track; the overflow lanes of a track have its number. Of device tracks it means nothing.
    pub(crate) tid: Vec<i64>,
    /// By device: its ordinal, or its place among all devices where ranks share ordinals.
    pub(crate) device: Vec<i64>,
}

impl Numbering {
    /// Numbers for a format in which a thread's number lies in `tids`.
    pub(crate) fn new(trace: &Trace, tids: RangeInclusive<i64>) -> Self {
        Self::of_ranks(trace, tids, |_| true)
    }

    /// Numbers where only what is of some ranks is written: the others take none away.
    pub(crate) fn of_ranks(trace: &Trace, tids: RangeInclusive<i64>, is_asked: impl Fn(u32) -> bool) -> Self {
        let pids = 1..=*tids.end();
        let pid = distinct(trace.processes.iter().map(|process| {
            let pid = process.pid.filter(|pid| pids.contains(pid));
            (usize::from(!is_asked(process.rank)), pid)
        }));
        // Threads choose first: rows of other kinds often carry a thread's number.
        let is_host = |kind: TrackKind| matches!(kind, TrackKind::Thread | TrackKind::Other);
        let mut order: Vec<usize> = (0..trace.tracks.len()).filter(|at| is_host(trace.tracks[*at].kind)).collect();
        order.retain(|at| trace.tracks[*at].lane == 0);
        order.sort_by_key(|at| trace.tracks[*at].kind);
        let wished = order.iter().map(|at| {
            let track = &trace.tracks[*at];
            (track.process.index(), track.tid.filter(|tid| tids.contains(tid)))
        });
        let mut tid = vec![0; trace.tracks.len()];
        for (at, number) in order.iter().zip(distinct(wished)) {
            tid[*at] = number;
        }
        for at in 1..tid.len() {
            if trace.tracks[at].lane > 0 {
                tid[at] = tid[at - 1];
            }
        }
        Self { pid, tid, device: device_numbers(&trace.devices, is_asked) }
    }
}

/// The wished numbers, where they are the first of their group to be wished; new ones for the rest.
fn distinct(wished: impl Iterator<Item = (usize, Option<i64>)>) -> Vec<i64> {
    let mut taken: FxHashSet<(usize, i64)> = FxHashSet::default();
    let first = |(group, number): (usize, Option<i64>)| (group, number.filter(|number| taken.insert((group, *number))));
    let given: Vec<(usize, Option<i64>)> = wished.map(first).collect();
    let mut next = FIRST_OWN;
    let number = |(group, given): (usize, Option<i64>)| {
        given.unwrap_or_else(|| {
            while !taken.insert((group, next)) {
                next += 1;
            }
            next
        })
    };
    given.into_iter().map(number).collect()
}

fn device_numbers(devices: &[Device], is_asked: impl Fn(u32) -> bool) -> Vec<i64> {
    let mut seen = FxHashSet::default();
    let mut asked = devices.iter().filter(|device| is_asked(device.rank));
    let is_distinct = asked.all(|device| (0..=1 << 16).contains(&device.ordinal) && seen.insert(device.ordinal));
    let numbers = devices.iter().zip(0..);
    numbers.map(|(device, at)| if is_distinct { device.ordinal } else { at }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::{Process, SliceKind, TraceBuilder, Track};

    #[test]
    fn numbers_are_kept_where_they_are_distinct_and_fit() {
        let mut builder = TraceBuilder::new("numbers");
        let process = builder.add_process(Process { pid: Some(40), ..Process::default() });
        builder.add_process(Process { rank: 1, pid: Some(40), ..Process::default() });
        builder.add_process(Process { rank: 2, ..Process::default() });
        let name = builder.strings.intern("x");
        for (kind, tid) in
            [(TrackKind::Other, 7), (TrackKind::Thread, 7), (TrackKind::Thread, 7), (TrackKind::Thread, 1 << 40)]
        {
            let mut track = Track::new(kind, process, "t");
            track.tid = Some(tid);
            let track = builder.add_track(track);
            builder.add_slice(track, SliceKind::Other, name, 0, 5);
            builder.add_slice(track, SliceKind::Other, name, 3, 5);
        }
        let trace = builder.finish();
        let numbers = Numbering::new(&trace, 1..=i64::from(i32::MAX));
        assert_eq!(numbers.pid, [40, 1_000_001, 1_000_002]);
        assert_eq!(numbers.tid, [1_000_003, 1_000_003, 7, 7, 1_000_001, 1_000_001, 1_000_002, 1_000_002]);
    }

    #[test]
    fn devices_of_several_ranks_are_counted_through() {
        let device = |rank, ordinal| Device { rank, ordinal, ..Device::default() };
        assert_eq!(device_numbers(&[device(0, 3), device(0, 5)], |_| true), [3, 5]);
        assert_eq!(device_numbers(&[device(0, 0), device(1, 0)], |_| true), [0, 1]);
        assert_eq!(device_numbers(&[device(0, 0), device(1, 0)], |rank| rank == 1), [0, 0]);
    }
}

//! # Definition
//! For each device, why it idles: every idle nanosecond has exactly one cause, and the causes sum to the idle time of
//! `temporal_breakdown`. The window is the same. A gap is a time in which nothing runs on the device; it is judged by
//! the device event that ends it (of several the first whose launch is known), by the API call that launched that
//! event, and by what the launching thread did.
//!
//! Of the gap up to the end of the launch, each moment belongs to the first of these that applies:
//!
//! 1. `profiler_overhead`: the profiler itself took time in the launching process;
//! 2. `launch_bound`: the thread is inside the launch;
//! 3. `host_sync`: the thread is inside a call that waits for the device;
//! 4. `input`: the thread waits for its next batch;
//! 5. `launch_bound`: the thread is inside an operator or another call of the device's API;
//! 6. `host_other`: anything else is open on the thread, such as a Python frame or a label.
//!
//! Where nothing at all is open on the launching thread, 3 to 6 are asked of the process's main thread, which is the
//! one that something is recorded of for the longest time; where nothing is open there either, it is `host_other`.
//!
//! Of the gap from the end of the launch on, all is one cause. When the launch ended inside the gap, and after all the
//! work of other streams that the event had to wait for, it is the latency of the launch: `launch_bound`. Else the
//! event was held back on the device: `peer_wait` when its stream was told to wait for an event that is recorded behind
//! a communication kernel, and that kernel is the last of what it waits for; `queue_wait` in every other case, which is
//! waiting for another stream's work or the device's own way from one piece of work to the next.
//!
//! A gap before an event whose launch is not known is `unknown`.
//!
//! `host` is what the host was in for the longest time while this was the cause: the innermost operator, call, frame or
//! label of the thread that was asked; `host_ns` is that time.
//!
//! As Holistic Trace Analysis computes it (`--compat hta`; 0.5.0), between neighbours on each stream: `host_wait` when
//! the launch of the second started after the end of the first, else `kernel_wait` when the time between them is below
//! 30 µs, else `other`. Its documentation says 30 ns; the program compares its 30 with microseconds. Where several steps are
//! labelled, it leaves out the last, and what was launched in it or by no call that is known.
//!
//! # Units
//! Nanoseconds; the ratio is a share of the device's idle time from 0 to 1; gaps are a count. `longest_ns` is the most
//! time that one gap has of this cause.
//!
//! # Source
//! Device events and their launches, calls and operators as the profiler recorded them; waits between streams where the
//! device's profiler reports them.
//!
//! # Edge cases
//! A cause that does not occur has no row; a device that never idles has none. A gap with several causes counts for
//! each. A communication kernel that waits for other ranks is not idle. Without reported waits between streams no
//! `peer_wait` is known, and such times are `queue_wait`. What a thread was in is read from its first lane. With
//! `--compat hta`, times are whole microseconds of the source's clock, computed as doubles, starts rounded up and ends down; times between
//! neighbours that overlap are negative, and reduce the sums; and `other` has a row on every stream, as they do there. What has no launch there takes
//! that of the first row of the file, which is not done here.

mod hta;

use crate::idle::{DeviceIdle, IdleCause};
use crate::{Analysis, AnalysisContext, Compat, Needs, Options, Outcome, Selection};
use std::collections::BTreeMap;
use stepscope_base::StringId;
use stepscope_trace::Trace;

columns! {
    /// The idle time of one device that has one cause.
    #[derive(Clone, Debug, PartialEq)]
    pub struct IdleCauses {
        /// The rank that uses the device.
        rank: u32 => Count,
        /// The number of the device within the rank.
        device: i64 => Count,
        /// Why the device is idle.
        cause: IdleCause => Text,
        /// Idle time with this cause.
        idle_ns: i64 => Nanoseconds,
        /// `idle_ns` as a share of all idle time of the device.
        idle_ratio: f64 => Ratio,
        /// Number of gaps in which the cause occurs.
        gaps: i64 => Count,
        /// The most idle time with this cause in one gap.
        longest_ns: i64 => Nanoseconds,
        /// What the host was in for the longest time meanwhile. Absent when nothing is known.
        host: Option<String> => Text,
        /// How long the host was in it.
        host_ns: Option<i64> => Nanoseconds,
    }
}

/// Every cause that occurs, by rank and device, the longest first.
pub fn idle_causes(trace: &Trace, selection: &Selection) -> Vec<IdleCauses> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<IdleCauses> {
    context.get::<Vec<DeviceIdle>>().iter().flat_map(|device| of_device(context.trace, device)).collect()
}

fn of_device(trace: &Trace, idle: &DeviceIdle) -> Vec<IdleCauses> {
    let total_ns: i64 = idle.gaps.iter().map(|gap| gap.span.duration_ns()).sum();
    let mut causes: BTreeMap<IdleCause, (i64, i64, i64)> = BTreeMap::new();
    for gap in 0..idle.gaps.len() {
        let parts = idle.parts_of(gap);
        for (at, part) in parts.iter().enumerate() {
            let is_first = parts[..at].iter().all(|other| other.cause != part.cause);
            let of_cause = parts[at..].iter().filter(|other| is_first && other.cause == part.cause);
            let ns: i64 = of_cause.map(|part| part.span.duration_ns()).sum();
            if is_first {
                let (idle_ns, gaps, longest_ns) = causes.entry(part.cause).or_default();
                (*idle_ns, *gaps, *longest_ns) = (*idle_ns + ns, *gaps + 1, (*longest_ns).max(ns));
            }
        }
    }
    let sum_ns: i64 = causes.values().map(|(idle_ns, _, _)| idle_ns).sum();
    assert_eq!(sum_ns, total_ns, "causes sum to the idle time");
    let device = &trace.devices[idle.device.index()];
    let row = |(cause, (idle_ns, gaps, longest_ns)): (IdleCause, (i64, i64, i64))| {
        let host = longest_host(trace, idle, cause);
        IdleCauses {
            rank: device.rank,
            device: device.ordinal,
            cause,
            idle_ns,
            idle_ratio: idle_ns as f64 / total_ns as f64,
            gaps,
            longest_ns,
            host: host.map(|(name, _)| trace.strings.get(name).to_string()),
            host_ns: host.map(|(_, ns)| ns),
        }
    };
    let mut rows: Vec<IdleCauses> = causes.into_iter().map(row).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.idle_ns), row.cause));
    rows
}

/// What the host was in for the longest time while this was the cause, and for how long.
pub(crate) fn longest_host(trace: &Trace, idle: &DeviceIdle, cause: IdleCause) -> Option<(StringId, i64)> {
    let names = idle.host_ns.iter().filter(|((of, _), ns)| *of == cause && **ns > 0);
    let names = names.map(|((_, name), ns)| (*name, *ns));
    names.max_by_key(|(name, ns)| (*ns, std::cmp::Reverse(trace.strings.get(*name))))
}

pub(crate) const ANALYSIS: Analysis =
    Analysis { options: Options { compat: &[Compat::Hta], ..Options::NONE }, ..Analysis::of(outcome) }
        .needing(Needs::EachRankKept);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    match context.selection.compat {
        Some(Compat::Hta) => Outcome::of(context, &hta::rows(context.trace, context.selection)),
        _ => Outcome::of(context, &rows(context)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream_waits::tests::add_wait;
    use crate::temporal_breakdown::temporal_breakdown;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;

    fn lines(trace: &Trace, selection: Selection) -> Vec<String> {
        let line = |row: &IdleCauses| {
            let host = row.host.as_deref().unwrap_or("-");
            let us = |ns: i64| ns / 1_000;
            format!(
                "{} {} in {}, longest {}: {host}",
                row.cause.as_str(),
                us(row.idle_ns),
                row.gaps,
                us(row.longest_ns)
            )
        };
        idle_causes(trace, &selection).iter().map(line).collect()
    }

    fn check(drawing: &str, expected: &[&str]) {
        assert_eq!(lines(&drawn(drawing), Selection::default()), expected);
    }

    #[test]
    fn a_gap_is_split_by_what_the_launching_thread_did() {
        check(
            "rank 0 python 1   ppppppppppppppppp
             rank 0 overhead 0 ........o........
             rank 0 input 1    ...ii............
             rank 0 sync 1     .....s...........
             rank 0 cpu 1      .......aaaaaaa...
             rank 0 launch 1   C..........DD....
             rank 0 stream 7   .C.............DD",
            &[
                "launch_bound 7 in 1, longest 7: a",
                "input 2 in 1, longest 2: i",
                "host_other 2 in 1, longest 2: p",
                "profiler_overhead 1 in 1, longest 1: -",
                "host_sync 1 in 1, longest 1: s",
            ],
        );
    }

    #[test]
    fn where_the_launching_thread_did_nothing_the_main_thread_is_asked() {
        check(
            "rank 0 label 1    llllllll
             rank 0 input 1    ..ii....
             rank 0 launch 2   C....D..
             rank 0 stream 7   .C....D.",
            &["input 2 in 1, longest 2: i", "launch_bound 1 in 1, longest 1: D", "host_other 1 in 1, longest 1: l"],
        );
    }

    #[test]
    fn what_was_launched_early_waited_in_its_queue_and_what_was_not_launched_is_unknown() {
        check(
            "rank 0 launch 1 CD......
             rank 0 stream 7 ..C.D..K",
            &["unknown 2 in 1, longest 2: -", "queue_wait 1 in 1, longest 1: -"],
        );
    }

    #[test]
    fn waiting_behind_communication_is_waiting_for_peers() {
        let drawing = "rank 0 launch 1 CNrwDE......
                       rank 0 stream 7 ..CC....DD.E
                       rank 0 stream 9 ....NNN.....";
        let mut trace = drawn(drawing);
        assert_eq!(lines(&trace, Selection::default()), ["queue_wait 2 in 2, longest 1: -"]);
        add_wait(&mut trace, ("w", 7), ("r", 9));
        let expected = ["queue_wait 1 in 1, longest 1: -", "peer_wait 1 in 1, longest 1: -"];
        assert_eq!(lines(&trace, Selection::default()), expected);
    }

    proptest! {
        #[test]
        fn every_idle_microsecond_has_the_first_cause_that_applies(
            host in prop::collection::vec("[.x]{30}", 5), other in prop::collection::vec("[.x]{30}", 4),
            overhead in "[.o]{30}", launches in prop::collection::vec(0_usize..25, 4), gaps in prop::collection::vec(0_usize..6, 4),
        ) {
            let at = |rows: &[String], row: usize, us: usize| rows[row].as_bytes()[us] != b'.';
            // Launches of A, B, C, D one after another, each a thread of its own lane by drawing; events follow in order.
            let mut launches = launches;
            launches.sort_unstable();
            launches.dedup();
            let letters = ['A', 'B', 'C', 'D'];
            let mut launch_row = vec!['.'; 30];
            let mut stream_row = vec!['.'; 60];
            let (mut end, mut events) = (0, Vec::new());
            for (number, start) in launches.iter().enumerate() {
                launch_row[*start] = letters[number];
                let begin = (start + gaps[number]).max(end);
                stream_row[begin] = letters[number];
                events.push((begin, *start));
                end = begin + 1;
            }
            let text = |cells: &[char]| cells.iter().collect::<String>();
            let kinds = ["python", "cpu", "input", "sync"];
            let mut drawing = format!("rank 0 overhead 0 {overhead}\nrank 0 launch 1 {}\nrank 0 stream 7 {}\n", text(&launch_row), text(&stream_row));
            drawing += &format!("rank 0 label 2 {}\n", "l".repeat(60));
            for (row, kind) in kinds.iter().enumerate() {
                drawing += &format!("rank 0 {kind} 1 {}\nrank 0 {kind} 2 {}\n", host[row], other[row]);
            }
            let trace = drawn(&drawing);
            let idle_ns = temporal_breakdown(&trace, &Selection::default())[0].idle_ns;
            let mut expected: BTreeMap<IdleCause, i64> = BTreeMap::new();
            let first_event = events[0].0;
            let busy: Vec<usize> = events.iter().map(|event| event.0).collect();
            for us in first_event..busy[busy.len() - 1] {
                if busy.contains(&us) { continue }
                let (begin, launch) = *events.iter().find(|event| event.0 > us).unwrap();
                let gap_start = (first_event..us).rev().find(|us| busy.contains(us)).unwrap() + 1;
                let ask = |rows: &[String]| match () {
                    () if at(rows, 3, us) => Some(IdleCause::HostSync),
                    () if at(rows, 2, us) => Some(IdleCause::Input),
                    () if at(rows, 1, us) => Some(IdleCause::LaunchBound),
                    () if at(rows, 0, us) => Some(IdleCause::HostOther),
                    () => None,
                };
                let _ = begin;
                let in_host = us < 30;
                let cause = match () {
                    () if us > launch => if launch >= gap_start { IdleCause::LaunchBound } else { IdleCause::QueueWait },
                    () if in_host && overhead.as_bytes()[us] != b'.' => IdleCause::ProfilerOverhead,
                    () if us == launch => IdleCause::LaunchBound,
                    () => {
                        // A launch of another event is a call too.
                        let own = match ask(&host) {
                            Some(IdleCause::HostOther) | None if launch_row.get(us) != Some(&'.') => Some(IdleCause::LaunchBound),
                            found => found,
                        };
                        own.or_else(|| ask(&other)).unwrap_or(IdleCause::HostOther)
                    }
                };
                *expected.entry(cause).or_insert(0) += 1_000;
            }
            let rows = idle_causes(&trace, &Selection::default());
            let found: BTreeMap<IdleCause, i64> = rows.iter().map(|row| (row.cause, row.idle_ns)).collect();
            prop_assert_eq!(found.values().sum::<i64>(), idle_ns);
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn causes_sum_to_the_idle_time_of_every_window(
            launch in "[.CDE|]{40}", streams in prop::collection::vec("[.CDENH|]{40}", 1..4), host in "[.x|]{40}",
        ) {
            let mut drawing = format!("rank 0 step {}{}\nrank 0 cpu 1 {host}\nrank 0 launch 1 {launch}\n", "0".repeat(20), "1".repeat(20));
            streams.iter().enumerate().for_each(|(at, row)| drawing += &format!("rank 0 stream {at} {row}\n"));
            let trace = drawn(&drawing);
            for step in [None, Some(0), Some(1)] {
                let selection = Selection { step, ..Selection::default() };
                let sum_ns: i64 = idle_causes(&trace, &selection).iter().map(|row| row.idle_ns).sum();
                let expected: i64 = temporal_breakdown(&trace, &selection).iter().map(|row| row.idle_ns).sum();
                prop_assert_eq!(sum_ns, expected);
            }
        }
    }
}

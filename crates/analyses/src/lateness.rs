//! # Definition
//! For each rank and process group, why the rank came late to collectives: its lateness divided over causes, to the
//! nanosecond. The causes of a rank and group sum to `late_ns` of `stragglers`, which defines who is late and by how much.
//!
//! - The *stretch* before a collective is the time of one rank from the end of the collective before, of the same group,
//!   to the start of this one. Every nanosecond of it belongs to the first cause that applies, of those below.
//! - A rank that is late is compared with the middle rank of the collective, which is the first with the middle duration.
//!   The collective before ended for both at about the same moment, so that the late rank's stretch is the longer one.
//! - Its lateness is divided over the causes that have more of its stretch than of the middle rank's. Where these
//!   excesses are more than the lateness, because others have less, each has its proportion of it, in whole nanoseconds
//!   by largest remainder, the cause listed first before later ones. Where they are less, each counts whole, and the
//!   rest is `unexplained`. So is all of it where the two stretches do not begin with the same collective.
//!
//! The causes, where the rank has device events:
//!
//! 1. `compute`: a computing kernel runs on a device of the rank;
//! 2. `other_collective`: a communication kernel runs, of another group: the rank was held up there, or came late to it
//!    already;
//! 3. `copy`: a memcpy or a memset runs;
//! 4. `profiler_overhead`, as `idle_causes` tells of the devices;
//! 5. `garbage_collection`: Python collects its garbage, on any thread, while a device idles because of the host;
//! 6. `allocation`: a thread is in a call that takes memory from the device or gives it back, such as `cudaMalloc`, as
//!    happens when PyTorch's allocator grows or tries again after running out of memory; likewise;
//! 7. `host_sync` and `input`, as `idle_causes` tells;
//! 8. `io`: a thread of the program is in a call on a file, while `idle_causes` has one of the next two;
//! 9. `launch_bound` and `host_other`, as `idle_causes` tells;
//! 10. `device_wait`: `queue_wait` and `peer_wait` of `idle_causes`;
//! 11. `unknown`: a device idles, and `idle_causes` does not know why.
//!
//! `slow_clock` is the part of the lateness by `compute` that the clock of the multiprocessors accounts for, where it was
//! sampled on both ranks and is lower on the late one: at most as much of the rank's own computing as its clock is lower. A
//! clock is the mean of the samples of all devices of the rank from a second before the stretch to its end.
//!
//! Of the time before the first device event and after the last, and on a rank without any: `profiler_overhead`;
//! `garbage_collection` and `allocation` on any thread; `host_sync` and `input` on a thread of the program; an
//! operator that is no collective, on any thread, which is `compute`, or `launch_bound` on a rank with device events;
//! `other_collective` while a thread of the backend carries out a collective; `io`, `launch_bound` in another call of
//! the device's API, and `host_other` on a thread of the program; else `unknown`. Threads of the program are its main
//! one and those that ask for collectives.
//!
//! # Units
//! Nanoseconds. A ratio is a share of the rank's lateness in the group, from 0 to 1. Counts of collectives.
//!
//! # Source
//! Collectives as `stragglers` matches them; device events, launches, operators, calls, frames and labels as recorded.
//! Collections of garbage are those that the recorder or `torch.profiler` writes down.
//!
//! # Edge cases
//! No clocks are compared: a stretch is of one rank. Slower kernels and more kernels are both `compute`, unless
//! the clock tells; kernels that wait for memory slow down less than it. A rank that was
//! late to a collective is compared there only; that it came late elsewhere because of this shows as `other_collective`.
//! Collectives of one group that overlap have a stretch of no length, so that lateness to the later one is `unexplained`.
//! A cause without lateness has no row. For one step, collectives that begin in it, with stretches that may begin before.

use crate::communication::matched;
use crate::stretches::{LateCause, Stretch, Stretches};
use crate::windows::Windows;
use crate::{Analysis, AnalysisContext, Needs, Outcome, Selection};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_align::Part;
use stepscope_base::StringId;
use stepscope_trace::{SliceId, Trace};

columns! {
    /// The lateness of one rank in one process group that has one cause.
    #[derive(Clone, PartialEq, Debug)]
    pub struct Lateness {
        /// The rank that comes late.
        rank: u32 => Count,
        /// The name of the process group.
        group: Option<String> => Text,
        /// Why it comes late.
        cause: LateCause => Text,
        /// The lateness with this cause.
        late_ns: i64 => Nanoseconds,
        /// `late_ns` as a share of all lateness of the rank in the group.
        late_ratio: f64 => Ratio,
        /// Number of collectives to which the rank came late with this cause.
        calls: i64 => Count,
        /// The most lateness with this cause to one collective.
        longest_ns: i64 => Nanoseconds,
        /// What the process group is for.
        group_description: Option<String> => Text,
    }
}

/// Every cause that occurs on the ranks asked for, the most lateness first, then by rank, group and cause.
pub fn lateness(trace: &Trace, selection: &Selection) -> Vec<Lateness> {
    rows(&AnalysisContext::new(trace, selection))
}

/// The same in a context, which other analyses may share.
pub fn rows(context: &AnalysisContext<'_>) -> Vec<Lateness> {
    let trace = context.trace;
    let stretches = &context.get::<Stretches>().0;
    let of_part: FxHashMap<SliceId, usize> = matched(context)
        .enumerate()
        .flat_map(|(at, parts)| parts.into_iter().map(move |part| (part.asked_by, at)))
        .collect();
    let windows = Windows::of(trace, context.selection);
    let is_asked = |part: &Part| windows.has_slice(trace, part.asked_by);
    let mut sums: BTreeMap<(u32, StringId, StringId), [Sum; LateCause::COUNT]> = BTreeMap::new();
    for parts in matched(context) {
        let middle = middle(&parts);
        for part in parts.iter().filter(|part| part.dur_ns < middle.dur_ns && is_asked(part)) {
            let sums = sums.entry((part.rank, part.group, part.group_description)).or_default();
            let stretch = |part: &Part| stretches.get(&part.asked_by);
            let pair = stretch(part).zip(stretch(middle)).filter(|(own, middle)| {
                // Both begin with the same collective.
                let before = of_part.get(&own.previous);
                before.is_some() && before == of_part.get(&middle.previous)
            });
            let causes = divide(middle.dur_ns - part.dur_ns, pair);
            sums.iter_mut().zip(causes).for_each(|(sum, ns)| sum.add(ns));
        }
    }
    let mut rows: Vec<Lateness> = sums.into_iter().flat_map(|(key, sums)| of_key(trace, key, &sums)).collect();
    rows.sort_by_key(|row| Reverse(row.late_ns));
    rows
}

/// The rank that others are compared with: the first of those with the middle duration.
fn middle(parts: &[Part]) -> &Part {
    let mut by_time: Vec<&Part> = parts.iter().collect();
    by_time.sort_by_key(|part| part.dur_ns);
    let middle_ns = by_time[by_time.len() / 2].dur_ns;
    by_time[by_time.partition_point(|part| part.dur_ns < middle_ns)]
}

/// A lateness over causes, by what the late rank and the middle one did before; they sum to it.
fn divide(late_ns: i64, stretches: Option<(&Stretch, &Stretch)>) -> [i64; LateCause::COUNT] {
    let excess = |at: usize| stretches.map_or(0, |(own, middle)| (own.parts_ns[at] - middle.parts_ns[at]).max(0));
    let excesses: [i64; LateCause::COUNT] = std::array::from_fn(excess);
    let mut causes = shares(late_ns, excesses);
    let slowed_ns =
        stretches.map_or(0, |(own, middle)| slowed_ns(own, middle)).min(causes[LateCause::Compute as usize]);
    causes[LateCause::Compute as usize] -= slowed_ns;
    causes[LateCause::SlowClock as usize] += slowed_ns;
    let left_ns = late_ns - causes.iter().sum::<i64>();
    causes[LateCause::Unexplained as usize] += left_ns;
    assert!(left_ns >= 0 && causes.iter().all(|ns| *ns >= 0), "causes sum to the lateness");
    causes
}

/// By how much less a rank would compute in its stretch if its clock were that of the middle one, where it is slower.
fn slowed_ns(own: &Stretch, middle: &Stretch) -> i64 {
    let clocks = own.clock_mhz.zip(middle.clock_mhz).filter(|(own, middle)| (0..*middle).contains(own));
    let compute_ns = i128::from(own.parts_ns[LateCause::Compute as usize]);
    clocks.map_or(0, |(own, middle)| (compute_ns * i128::from(middle - own) / i128::from(middle)) as i64)
}

/// `parts` themselves when they are no more than `whole`; else that many of them, in proportion, by largest remainder.
fn shares<const N: usize>(whole: i64, parts: [i64; N]) -> [i64; N] {
    let sum: i128 = parts.iter().map(|part| i128::from(*part)).sum();
    if sum <= i128::from(whole) {
        return parts;
    }
    let scaled = parts.map(|part| i128::from(part) * i128::from(whole));
    let mut shares = scaled.map(|scaled| (scaled / sum) as i64);
    let left = whole - shares.iter().sum::<i64>();
    let mut by_remainder: [usize; N] = std::array::from_fn(|at| at);
    by_remainder.sort_by_key(|at| Reverse(scaled[*at] % sum));
    by_remainder[..left as usize].iter().for_each(|at| shares[*at] += 1);
    shares
}

#[derive(Clone, Copy, Default)]
struct Sum {
    late_ns: i64,
    calls: i64,
    longest_ns: i64,
}

impl Sum {
    fn add(&mut self, ns: i64) {
        self.late_ns = self.late_ns.saturating_add(ns);
        self.calls += i64::from(ns > 0);
        self.longest_ns = self.longest_ns.max(ns);
    }
}

fn of_key(
    trace: &Trace,
    (rank, group, group_description): (u32, StringId, StringId),
    sums: &[Sum; LateCause::COUNT],
) -> Vec<Lateness> {
    let text = |id: StringId| trace.text(id);
    let total_ns: i128 = sums.iter().map(|sum| i128::from(sum.late_ns)).sum();
    let row = |(cause, sum): (&LateCause, &Sum)| Lateness {
        rank,
        group: text(group),
        cause: *cause,
        late_ns: sum.late_ns,
        late_ratio: sum.late_ns as f64 / total_ns as f64,
        calls: sum.calls,
        longest_ns: sum.longest_ns,
        group_description: text(group_description),
    };
    LateCause::ALL.iter().zip(sums).filter(|(_, sum)| sum.late_ns > 0).map(row).collect()
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::Condensed);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows(context))
}

#[cfg(test)]
mod tests;

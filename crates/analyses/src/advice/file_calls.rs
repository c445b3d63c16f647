//! The calls on files that rules judge by.

use super::facts::Facts;
use super::{Lacks, Place};
use crate::io_calls::IoCall;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::TrackId;

/// Fewer calls are nobody's habit.
pub(super) const LEAST_COUNT: i64 = 100;
/// Calls follow each other closely up to this time between them.
const CLOSE_NS: i64 = 50_000;

/// The calls of one rank that begin in the steps asked for.
pub(super) struct FileCalls {
    pub(super) rank: u32,
    pub(super) calls: Vec<IoCall>,
    /// The steps.
    pub(super) windows: IntervalSet,
}

impl FileCalls {
    /// Those of each rank that has any.
    pub(super) fn of(facts: &Facts) -> Result<Vec<Self>, Lacks> {
        let mut by_rank: BTreeMap<u32, Vec<IoCall>> = BTreeMap::new();
        for call in facts.context.get::<Vec<IoCall>>() {
            by_rank.entry(call.rank).or_default().push(*call);
        }
        if by_rank.is_empty() {
            return Err(Lacks("no calls on files: `stepscope record --io` records them"));
        }
        let of_rank = |(rank, mut calls): (u32, Vec<IoCall>)| {
            let windows = facts.steps_of(rank);
            calls.retain(|call| {
                let at = windows.spans().partition_point(|span| span.end_ns <= call.span.start_ns);
                windows.spans().get(at).is_some_and(|span| span.contains(call.span.start_ns))
            });
            Self { rank, calls, windows }
        };
        Ok(by_rank.into_iter().map(of_rank).collect())
    }

    /// Time of the steps.
    pub(super) fn window_ns(&self) -> i64 {
        self.windows.total_ns()
    }

    /// Time of the steps in which any of `calls` runs.
    pub(super) fn busy(&self, calls: &[&IoCall]) -> IntervalSet {
        let spans: IntervalSet = calls.iter().map(|call| call.span).collect();
        spans.intersect(&self.windows)
    }

    /// The same, with what the program does from one of them to the next where they follow each other closely: it goes
    /// with the calls.
    pub(super) fn rounds(&self, calls: &[&IoCall]) -> IntervalSet {
        let mut spans: Vec<(TrackId, Span)> = calls.iter().map(|call| (call.track, call.span)).collect();
        rounds(&mut spans).intersect(&self.windows)
    }
}

/// When calls run, each with the thread that makes it, and what is between two that follow each other closely.
pub(super) fn rounds(calls: &mut [(TrackId, Span)]) -> IntervalSet {
    calls.sort_unstable_by_key(|(track, span)| (*track, span.start_ns, span.end_ns));
    let of_threads = calls.chunk_by(|a, b| a.0 == b.0 && b.1.start_ns <= a.1.end_ns.saturating_add(CLOSE_NS));
    let round = |calls: &[(TrackId, Span)]| {
        let end_ns = calls.iter().map(|(_, span)| span.end_ns).max().unwrap_or(0);
        Span::new(calls[0].1.start_ns, end_ns)
    };
    IntervalSet::from_unsorted(of_threads.map(round))
}

/// Where the longest of `calls` is; of several the first.
pub(super) fn longest(facts: &Facts, calls: &[&IoCall]) -> Option<Place> {
    let longest = calls.iter().max_by_key(|call| (call.span.duration_ns(), Reverse(call.event.slice)))?;
    Some(Place::of(facts.trace, longest.event.slice))
}

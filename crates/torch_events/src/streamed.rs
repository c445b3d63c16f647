//! Averages without a list of events: each thread's ranges are added up as they end.
//!
//! ```text
//! begin A, begin B, end B     B is open no longer: its time is A's children's
//!          begin B, end B     a second child: both stay, and are added
//! end A                       with one child only, of A's name, A would stand for it
//! ```
//!
//! What devices' profilers reported is kept in few columns, calls among the ranges of their threads.
//!
//! What [`Events`](crate::Events) would list differently, since there only times count, is left to it: ranges that take
//! no time, clocks that go back, ranges that overlap or end on another thread. So this changes how fast averages are
//! there, never what they are.

mod device;
mod groups;
mod launched;
mod thread;
mod tree;

use crate::{Grouping, NamedAverage, event_source};
use device::StreamedActivities;
use groups::in_order;
use std::ops::Range;
use std::path::Path;
use stepscope_capture::StreamedCapture;
use stepscope_import::DEVICE_SESSION;
use stepscope_run::{RecordFilter, ThreadInclusion};
use thread::{AverageRequest, ThreadAverages};

/// The averages of what the capture at `raw` holds and `filter` selects, in order of first events; `None` when a list
/// of events is needed.
pub(crate) fn averages(raw: &Path, filter: &RecordFilter, grouping: Grouping) -> Option<Vec<NamedAverage>> {
    // Calls are listed by more than their times.
    if !filter.exclude.calls || grouping != (Grouping { by_shapes: grouping.by_shapes, ..Grouping::default() }) {
        return None;
    }
    let capture = StreamedCapture::open(raw).ok()??;
    // What they told of devices lies beside it.
    if capture.metadata_keys().any(|key| key.starts_with(DEVICE_SESSION)) {
        return None;
    }
    let spans = filter.resolved_spans_in(&capture.windows());
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else { return Some(Vec::new()) };
    let times = first.start..last.end;
    if capture.has_ends_elsewhere(&times) {
        return None;
    }
    let threads: Vec<_> = capture.threads().cloned().collect();
    let listed = event_source::listed(capture.names());
    let request = AverageRequest::new(filter, spans.clone(), grouping, &listed);
    let mut activities = StreamedActivities::of(&capture, filter, &spans, &listed);
    let names = capture.names().len() + 1 + activities.texts.len();
    // What is open at the end may have ended elsewhere later: then it has no place in the tree.
    let may_end_elsewhere = capture.has_ends_elsewhere(&(last.end..i64::MAX));
    let (mut thread_groups, mut forwards) = (Vec::new(), vec![Vec::new(); threads.len()]);
    let states = capture.profiler_states();
    let widest_thread_filter = filter.widest_thread_filter(&threads, states);
    for (thread, inclusion) in (0..).zip(filter.thread_inclusions(&threads, states)) {
        let times = match inclusion {
            ThreadInclusion::Yes => times.clone(),
            // Whether it ever ran a backward pass for a thread that is selected.
            ThreadInclusion::IfBackward => Range { start: i64::MIN, end: i64::MAX },
            ThreadInclusion::No => {
                thread_groups.push(None);
                continue;
            }
        };
        let mut averages =
            ThreadAverages::new(&request, (thread, &widest_thread_filter), names, activities.on_thread(thread));
        capture.visit_thread(thread, &times, &mut averages).ok()?;
        if averages.needs_full_decode() {
            return None;
        }
        forwards[thread as usize] = averages.take_forwards();
        thread_groups.push(averages.finish(capture.lived_until_ns(), threads.len() > 1, may_end_elsewhere));
    }
    let mut groups = Vec::new();
    let thread_filter = filter.thread_filter_from(&threads, states, &forwards);
    for (thread, thread_groups) in (0..).zip(thread_groups) {
        if thread_filter.has_thread(thread) {
            groups.push(thread_groups?);
        } else if let Some(launched) = activities.on_thread(thread) {
            // What devices did and the calls of their runtime are shown of all threads.
            groups.push(ThreadAverages::new(&request, (thread, &widest_thread_filter), names, Some(launched)).finish(
                i64::MAX,
                false,
                false,
            )?);
        }
    }
    groups.push(activities.groups(filter.exclude.device.annotations));
    Some(in_order(groups.into_iter(), &capture, &activities.texts, grouping))
}

#[cfg(test)]
mod tests;

//! Averages without a list of rows: of each thread only what is open is kept, and what leaves it is added up.
//!
//! ```text
//! A -------------   B lies in A: its time is A's children's
//!   B ---           a second child of A: both are rows, and are added up
//!        B ---      with one child only, of A's name, A would stand for it
//! ```
//!
//! Events come in lists that follow one another in time, so that not all of them are in memory.

mod device;
mod groups;
mod launches;
mod thread;
mod tree;

use crate::{Grouping, NamedAverage, event_source};
use device::JoinedActivities;
use groups::in_order;
use std::ops::Range;
use std::path::Path;
use stepscope_capture::{Capture, CaptureReader, EventList};
use stepscope_import::{DEVICE_SESSION, read_capture};
use stepscope_run::{RecordFilter, RunError, ThreadInclusion};
use thread::{AverageRequest, ThreadSums};

/// The averages of what the recording at `raw` holds and `filter` selects, without calls, in order of first events.
///
/// # Errors
/// When neither the capture nor the part that it has become can be read.
pub(crate) fn averages(raw: &Path, filter: &RecordFilter, by_shapes: bool) -> Result<Vec<NamedAverage>, RunError> {
    let has_session = |capture: &Capture| capture.metadata.iter().any(|(key, _)| key.starts_with(DEVICE_SESSION));
    if let Ok(reader) = CaptureReader::open(raw)
        && !has_session(reader.capture())
        && let Some(averages) = averages_of(&Source::Reader(&reader), filter, by_shapes)
    {
        return Ok(averages);
    }
    let capture = read_capture(raw, filter)?;
    Ok(averages_of(&Source::Capture(&capture), filter, by_shapes).unwrap_or_default())
}

/// Where events come from.
enum Source<'a> {
    Reader(&'a CaptureReader),
    /// It has them all.
    Capture(&'a Capture),
}

impl Source<'_> {
    /// All but the events.
    fn capture(&self) -> &Capture {
        match self {
            Self::Reader(reader) => reader.capture(),
            Self::Capture(capture) => capture,
        }
    }

    /// Hands over the events that a thread began within `times` and some around them. `None` when they can only be read
    /// all at once.
    fn read(&self, thread: u32, times: &Range<i64>, take: &mut dyn FnMut(&EventList, Range<usize>)) -> Option<()> {
        match self {
            Self::Reader(reader) => {
                let take = &mut |list: &EventList| take(list, 0..list.len());
                reader.read_in_lists(thread, times, take).ok()?.then_some(())
            }
            Self::Capture(capture) => {
                take(&capture.events, capture.events.of_thread(thread));
                Some(())
            }
        }
    }
}

/// `None` when all events have to be read at once.
fn averages_of(source: &Source<'_>, filter: &RecordFilter, by_shapes: bool) -> Option<Vec<NamedAverage>> {
    let capture = source.capture();
    let resolved = filter.resolve(&capture.windows);
    let spans = filter.resolved_spans_in(&capture.windows);
    let (threads, states) = (&capture.threads, &capture.profiler_states);
    let listed = event_source::listed(&capture.names);
    let request = AverageRequest::new(&resolved, filter.exclude, by_shapes, &listed);
    let mut activities = JoinedActivities::of(capture, filter, &spans, &listed);
    let names = capture.names.len() + 1 + activities.texts.len();
    let mut forwards = vec![Vec::new(); threads.len()];
    let widest_thread_filter = filter.widest_thread_filter(threads, states);
    let times_of_threads = filter.times_of_threads(capture);
    let mut groups_of_threads = Vec::new();
    for (thread, inclusion) in (0..).zip(filter.thread_inclusions(threads, states)) {
        if inclusion == ThreadInclusion::No {
            groups_of_threads.push(None);
            continue;
        }
        let launched = activities.on_thread(thread);
        let mut sums = ThreadSums::new(&request, capture, (thread, &widest_thread_filter), names, launched);
        source.read(thread, &times_of_threads[thread as usize], &mut |list, range| sums.add(list, range))?;
        forwards[thread as usize] = sums.take_forwards();
        groups_of_threads.push(Some(sums.finish()));
    }
    let mut groups = Vec::new();
    let thread_filter = filter.thread_filter_from(threads, states, &forwards);
    for (thread, of_thread) in (0..).zip(groups_of_threads) {
        let of_thread = of_thread.filter(|_| thread_filter.has_thread(thread)).or_else(|| {
            // What devices did and the calls of their runtime are shown of all threads.
            let launched = activities.on_thread(thread)?;
            let nothing = filter.nothing(threads, states);
            Some(ThreadSums::new(&request, capture, (thread, &nothing), names, Some(launched)).finish())
        });
        groups.push(of_thread.unwrap_or_default());
    }
    groups.push(activities.groups(filter.exclude.device.annotations));
    let grouping = Grouping { by_shapes, ..Grouping::default() };
    Some(in_order(groups.into_iter(), capture, &activities.texts, grouping))
}

#[cfg(test)]
mod tests;

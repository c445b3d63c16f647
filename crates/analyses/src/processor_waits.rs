//! How long threads that run steps could have run, and did not, since others had the processors.

use crate::AnalysisContext;
use crate::context::Shared;
use crate::host_lines::samples_of;
use crate::host_threads::MainThreads;
use crate::windows::{contains, steps_of_processes};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{Trace, TrackId};

/// The same in each step of the trace, ns. When exactly between two samples is not known.
pub(crate) struct StepsProcessorWaits(pub(crate) Vec<i64>);

impl Shared for StepsProcessorWaits {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let trace = context.trace;
        let mut of_steps = vec![0; trace.steps.len()];
        for (process, steps) in steps_of_processes(trace) {
            let Some(track) = context.get::<MainThreads>().0.get(&process) else { continue };
            for waited in waits(trace, *track, &steps.iter().map(|(span, _)| *span).collect()).spans() {
                let first = steps.partition_point(|(span, _)| span.end_ns <= waited.start_ns);
                for (span, at) in steps[first..].iter().take_while(|(span, _)| span.start_ns < waited.end_ns) {
                    of_steps[*at] += waited.end_ns.min(span.end_ns) - waited.start_ns.max(span.start_ns);
                }
            }
        }
        Self(of_steps)
    }
}

/// When a thread could run and does not, within some time. When exactly between two samples is not known.
pub(crate) fn waits(trace: &Trace, track: TrackId, within: &IntervalSet) -> IntervalSet {
    let inside = samples_of(trace, track).iter().filter(|sample| contains(within.spans(), sample.time_ns));
    let spans = inside.filter_map(|sample| {
        Some(Span::new(sample.time_ns.saturating_sub(sample.runnable_ns?.max(0)), sample.time_ns))
    });
    spans.collect::<IntervalSet>().intersect(within)
}

//! Steps as the TensorBoard plugin of PyTorch's profiler cuts them.
//!
//! ```text
//! host     [ step 0 ][ step 1 ][ step 2 ]
//! device     ···000000000·111111111·22···
//! plugin   [     step 0  ][ step 1 ]          each ends where its device work does, the next begins there;
//!                                             step 2 has far less device work than step 1: dropped
//! ```

use stepscope_base::Span;
use stepscope_trace::{DeviceEvent, ProcessId, SliceKind, Step, StepSource, Trace};

/// `steps`, all of one process and in order, with the plugin's windows; the last may be missing.
pub(super) fn steps(trace: &Trace, steps: &[Step]) -> Vec<Step> {
    let whole = steps.first().filter(|first| first.source == StepSource::Kernels).map(|first| unmarked(trace, first));
    let steps = whole.as_ref().map_or(steps, std::slice::from_ref);
    let mut steps: Vec<Step> = steps.iter().map(|step| with_host_window(trace, step)).collect();
    let launched = Launched::of(trace, &steps);
    if launched.by_step.iter().all(|work| work.count == 0) {
        return steps;
    }
    let mut last_end_ns = launched.end_before_first(trace, &steps);
    for (step, work) in steps.iter_mut().zip(&launched.by_step) {
        let start_ns = step.span.start_ns.max(last_end_ns);
        last_end_ns = step.span.end_ns.max(work.end_ns).max(start_ns);
        step.span = Span::new(start_ns, last_end_ns);
    }
    steps.truncate(launched.kept());
    steps
}

/// The one step that the plugin sees where nobody marked any: it does not infer them from kernels.
fn unmarked(trace: &Trace, first: &Step) -> Step {
    let span = trace.span().unwrap_or(first.span);
    Step { number: 0, span, source: StepSource::Whole, is_complete: true, ..*first }
}

/// What nobody marked is one step for the plugin too, but over operators alone.
fn with_host_window(trace: &Trace, step: &Step) -> Step {
    if step.source != StepSource::Whole {
        return *step;
    }
    let tracks = trace.tracks.iter().filter(|track| track.process == step.process);
    let ops = tracks.flat_map(|track| track.slice_ids()).filter(|id| trace.slices.kind(*id) == SliceKind::Op);
    let hull = |a: Span, b: Span| Span::new(a.start_ns.min(b.start_ns), a.end_ns.max(b.end_ns));
    Step { span: ops.map(|id| trace.slices.span(id)).reduce(hull).unwrap_or(step.span), ..*step }
}

/// The device work that one step launched.
#[derive(Clone, Copy)]
struct Work {
    start_ns: i64,
    end_ns: i64,
    count: usize,
}

struct Launched {
    by_step: Vec<Work>,
}

impl Launched {
    fn of(trace: &Trace, steps: &[Step]) -> Self {
        let mut by_step = vec![Work { start_ns: i64::MAX, end_ns: i64::MIN, count: 0 }; steps.len()];
        for event in trace.device_events.iter() {
            if let Some(at) = launching_step(trace, steps, &event) {
                let (work, span) = (&mut by_step[at], trace.slices.span(event.slice));
                work.start_ns = work.start_ns.min(span.start_ns);
                work.end_ns = work.end_ns.max(span.end_ns);
                work.count += 1;
            }
        }
        Self { by_step }
    }

    /// Where the plugin thinks that the step before the first one ended: with the last device work that no step launched
    /// and that ends before the first step's own begins.
    fn end_before_first(&self, trace: &Trace, steps: &[Step]) -> i64 {
        let (first, begin_ns) = (&self.by_step[0], steps[0].span.start_ns);
        let is_of_rank = |event: &DeviceEvent| trace.devices[event.device.index()].rank == steps[0].rank;
        let others = trace.device_events.iter().filter(is_of_rank);
        let others = others.filter(|event| launching_step(trace, steps, event).is_none());
        let ends = others.map(|event| trace.slices.span(event.slice).end_ns);
        let ends = ends.filter(|end_ns| first.count > 0 && *end_ns < first.start_ns);
        ends.fold(begin_ns, i64::max)
    }

    /// Steps up to the last that has device work, without that one when it has less than 0.8 of what the step before has.
    fn kept(&self) -> usize {
        let count = |at: usize| self.by_step[at].count;
        let last = self.by_step.iter().rposition(|work| work.count > 0).unwrap_or(self.by_step.len() - 1);
        if last > 0 && count(last - 1) * 8 > count(last) * 10 { last } else { last + 1 }
    }
}

/// The step whose host window holds all of the runtime call that launched `event`.
fn launching_step(trace: &Trace, steps: &[Step], event: &DeviceEvent) -> Option<usize> {
    let process: ProcessId = steps.first()?.process;
    let launch = event.launch.filter(|launch| trace.slices.kind(*launch) != SliceKind::Driver)?;
    let span = trace.slices.span(launch);
    let is_own = trace.tracks[trace.slices.track[launch.index()].index()].process == process;
    let at = steps.partition_point(|step| step.span.end_ns < span.end_ns);
    (is_own && steps.get(at)?.span.start_ns <= span.start_ns).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;

    /// The windows as `number start-end`, in us.
    fn check(drawing: &str, expected: &[&str]) {
        let trace = drawn(drawing);
        let line = |step: &Step| format!("{} {}-{}", step.number, step.span.start_ns / 1_000, step.span.end_ns / 1_000);
        assert_eq!(steps(&trace, &trace.steps).iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_step_ends_with_its_device_work_and_the_next_begins_there() {
        check(
            "rank 0 step     0001112222
             rank 0 launch 1 A..B..C...
             rank 0 stream 7 ..AAA.BBCC",
            &["0 0-5", "1 5-8", "2 8-10"],
        );
    }

    #[test]
    fn the_first_step_begins_after_what_was_launched_before_it() {
        check(
            "rank 0 launch 1 X.A.....
             rank 0 step     .000111.
             rank 0 stream 7 .XX.AABB",
            &["0 3-6"],
        );
    }

    #[test]
    fn a_last_step_with_far_less_device_work_is_dropped() {
        let with = |launches: &str, events: &str| {
            let steps = "rank 0 step 000011112222";
            format!("{steps}\nrank 0 launch 1 {launches}\nrank 0 stream 7 {events}")
        };
        check(&with("ABCDEFGHIJKL", ".ABCDEFGHIJKL"), &["0 0-5", "1 5-9", "2 9-13"]);
        check(&with("ABCDEFGHIJKL", ".ABCDEFGHIJK"), &["0 0-5", "1 5-9"]);
        check(&with("ABCDEFGH....", ".ABCDEFGH"), &["0 0-5", "1 5-9"]);
    }

    #[test]
    fn without_device_work_windows_are_those_of_the_host() {
        check("rank 0 step 000111\nrank 0 cpu 1 aaaaaa", &["0 0-3", "1 3-6"]);
        check("rank 0 label 1 lllll\nrank 0 cpu 1 .aaa.", &["0 1-4"]);
    }

    #[test]
    fn steps_inferred_from_kernels_are_one_to_the_plugin() {
        let drawing = "rank 0 cpu 1    oooo|oooo|oooo
                       rank 0 launch 1 EABCEABCEABC
                       rank 0 stream 7 .EABCEABCEABC";
        assert_eq!(drawn(drawing).steps.len(), 3);
        check(drawing, &["0 0-13"]);
    }
}

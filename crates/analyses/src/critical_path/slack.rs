//! How much later each device event of a step could end: one pass backwards over what waited for what.

use super::graph::Graph;
use crate::AnalysisContext;
use rustc_hash::FxHashMap;
use stepscope_base::Span;
use stepscope_trace::{DeviceEventId, SliceId, Step};

/// A device event and its slack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slack {
    pub(crate) event: DeviceEventId,
    /// Time by which it could end later, without its step ending later.
    pub(crate) slack_ns: i64,
}

/// The slack of every device event that was launched inside a step asked for; by rank.
pub(crate) fn slacks(context: &AnalysisContext<'_>) -> Vec<(u32, Vec<Slack>)> {
    let steps: Vec<&Step> = context.selection.steps(context.trace).collect();
    let graph = Graph::of(context, &context.selection.ranks);
    let of_rank = |steps: &[&Step]| (steps[0].rank, steps.iter().flat_map(|step| of_step(&graph, step)).collect());
    steps.chunk_by(|a, b| a.rank == b.rank).map(of_rank).collect()
}

fn of_step(graph: &Graph<'_>, step: &Step) -> Vec<Slack> {
    let events: Vec<DeviceEventId> = graph.launched_in(step).collect();
    let waits = waits(graph, step);
    let last = events.iter().map(|id| graph.span(*id).end_ns).max();
    let finish_ns = last.unwrap_or(i64::MIN).max(step.span.end_ns);
    let mut host_ns = vec![i64::MAX; waits.len() + 1];
    host_ns[waits.len()] = finish_ns - step.span.end_ns;
    let latest_end_ns = events.iter().map(|id| (*id, finish_ns)).collect();
    let mut pass = Pass { graph, waits: &waits, host_ns, latest_end_ns };
    // Backwards in time. At one moment a call returns before an event begins: what it launches then is late with it.
    let mut begins: Vec<(i64, DeviceEventId)> = events.iter().map(|id| (graph.span(*id).start_ns, *id)).collect();
    begins.sort_unstable();
    for (at, (wait, _)) in waits.iter().enumerate().rev() {
        while let Some((_, id)) = begins.pop_if(|(start_ns, _)| *start_ns >= wait.end_ns) {
            pass.leave_event(id);
        }
        pass.leave_wait(at);
    }
    begins.into_iter().rev().for_each(|(_, id)| pass.leave_event(id));
    let slack_ns = |id: DeviceEventId| pass.latest_end_ns[&id] - graph.span(id).end_ns;
    events.into_iter().map(|event| Slack { event, slack_ns: slack_ns(event) }).collect()
}

/// Calls inside a step in which the host waits for the device, by return.
fn waits(graph: &Graph<'_>, step: &Step) -> Vec<(Span, SliceId)> {
    let inside = graph.threads_of(step.process).flat_map(|(_, thread)| {
        let first = thread.syncs.partition_point(|(span, _)| span.start_ns < step.span.start_ns);
        thread.syncs[first..].iter().take_while(|(span, _)| span.start_ns < step.span.end_ns)
    });
    let mut waits: Vec<(Span, SliceId)> = inside.filter(|(span, _)| span.end_ns <= step.span.end_ns).copied().collect();
    waits.sort_unstable_by_key(|(span, call)| (span.end_ns, span.start_ns, *call));
    waits
}

struct Pass<'a> {
    graph: &'a Graph<'a>,
    waits: &'a [(Span, SliceId)],
    /// By how much the host may be late: before the first wait returned, after it, after the second …
    host_ns: Vec<i64>,
    latest_end_ns: FxHashMap<DeviceEventId, i64>,
}

impl Pass<'_> {
    /// How many waits had returned by a moment.
    fn returned(&self, at_ns: i64) -> usize {
        self.waits.partition_point(|(span, _)| span.end_ns <= at_ns)
    }

    fn may_end_by(&mut self, id: DeviceEventId, by_ns: i64) {
        if let Some(latest_ns) = self.latest_end_ns.get_mut(&id) {
            *latest_ns = by_ns.min(*latest_ns);
        }
    }

    /// What the host did at `at_ns`, in what it did since `since_ns`, may be done by `by_ns`.
    fn host_may_by(&mut self, since_ns: i64, at_ns: i64, by_ns: i64) {
        let at = self.returned(since_ns);
        self.host_ns[at] = self.host_ns[at].min(by_ns.saturating_sub(at_ns));
    }

    /// An event that may end by a moment: what it waited for may last until the same time before its start as ever.
    fn leave_event(&mut self, id: DeviceEventId) {
        let (event, span) = (self.graph.trace.device_events.get(id), self.graph.span(id));
        let late_ns = self.latest_end_ns[&id] - span.end_ns;
        let launch = event.launch.map(|launch| self.graph.trace.slices.span(launch));
        let launched_ns = launch.map(|launch| launch.end_ns.min(span.start_ns));
        let (on_stream, others) = self.graph.all_ahead_of(id, span.start_ns);
        let ahead: Vec<(i64, DeviceEventId)> = on_stream.into_iter().chain(others).collect();
        let last_ns = launched_ns.max(ahead.iter().map(|(end_ns, _)| *end_ns).max());
        let Some(by_ns) = last_ns.map(|last_ns| last_ns + late_ns) else { return };
        ahead.into_iter().for_each(|(_, id)| self.may_end_by(id, by_ns));
        if let (Some(launch), Some(launched_ns)) = (launch, launched_ns) {
            self.host_may_by(launch.start_ns.min(span.start_ns), launched_ns, by_ns);
        }
    }

    /// A call that may return late: so may what it waited for end, and so may the host come to it.
    fn leave_wait(&mut self, at: usize) {
        let (span, call) = self.waits[at];
        // Where another call was waiting when this one returned, the host is still late when that one returned.
        if self.waits.get(at + 1).is_some_and(|(next, _)| next.start_ns < span.end_ns) {
            self.host_ns[at + 1] = self.host_ns[at + 1].min(self.host_ns[at + 2]);
        }
        let late_ns = self.host_ns[at + 1];
        let is_known = |id: DeviceEventId| self.latest_end_ns.contains_key(&id);
        let (last_ns, waited_for) = self.graph.all_waited_for(call, span.end_ns, is_known);
        let by_ns = last_ns.unwrap_or(span.start_ns).max(span.start_ns).saturating_add(late_ns);
        waited_for.into_iter().for_each(|id| self.may_end_by(id, by_ns));
        self.host_may_by(span.start_ns, span.start_ns, by_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;
    use stepscope_trace::{DeviceEvent, SliceKind, Trace};

    /// One step run again forwards, in microseconds, with one event longer than it was: what everything waited for is
    /// looked up among all that there is, and times are put right until nothing changes.
    struct Replay<'a> {
        trace: &'a Trace,
        step: (i64, i64),
        longer: usize,
        by: i64,
        /// By how much each event begins late, and each call returns late.
        event_late: Vec<i64>,
        call_late: Vec<i64>,
    }

    impl Replay<'_> {
        fn us(&self, slice: SliceId) -> (i64, i64) {
            let span = self.trace.slices.span(slice);
            (span.start_ns / 1_000, span.end_ns / 1_000)
        }

        fn events(&self) -> Vec<DeviceEvent> {
            self.trace.device_events.iter().collect()
        }

        fn is_in_step(&self, event: &DeviceEvent) -> bool {
            event.launch.is_some_and(|launch| (self.step.0..self.step.1).contains(&self.us(launch).0))
        }

        fn calls(&self) -> Vec<(i64, i64)> {
            let ids = self.trace.slices.ids().filter(|id| self.trace.slices.kind(*id) == SliceKind::HostSync);
            let spans = ids.map(|id| self.us(id));
            spans.filter(|(from, to)| *from >= self.step.0 && *to <= self.step.1 && from < to).collect()
        }

        fn end_late(&self, at: usize) -> i64 {
            self.event_late[at] + if at == self.longer { self.by } else { 0 }
        }

        fn host_late(&self, at: i64) -> i64 {
            let calls = self.calls();
            let last = (0..calls.len()).filter(|call| calls[*call].1 <= at).max_by_key(|call| calls[*call].1);
            last.map_or(0, |call| self.call_late[call])
        }

        /// By how much something is late that waited for these, each a moment and by how much it is late.
        fn late(causes: &[(i64, i64)]) -> i64 {
            let last = causes.iter().map(|(at, _)| *at).max();
            let last_late = causes.iter().map(|(at, late)| at + late).max();
            last.zip(last_late).map_or(0, |(last, late)| late - last)
        }

        fn event_causes(&self, at: usize) -> Vec<(i64, i64)> {
            let events = self.events();
            let (begin, launch) = (self.us(events[at].slice).0, self.us(events[at].launch.unwrap()));
            let on_stream = (0..events.len()).filter(|other| events[*other].stream == events[at].stream);
            let before = on_stream.filter(|other| self.us(events[*other].slice).1 <= begin);
            let before = before.max_by_key(|other| self.us(events[*other].slice).1);
            let before = before.map(|other| {
                let late = if self.is_in_step(&events[other]) { self.end_late(other) } else { 0 };
                (self.us(events[other].slice).1, late)
            });
            before.into_iter().chain([(launch.1.min(begin), self.host_late(launch.0.min(begin)))]).collect()
        }

        fn call_causes(&self, (from, to): (i64, i64)) -> Vec<(i64, i64)> {
            let events = self.events();
            let mut causes = vec![(from, self.host_late(from))];
            for (at, event) in events.iter().enumerate() {
                let end = self.us(event.slice).1;
                if end <= to && event.launch.is_none_or(|launch| self.us(launch).0 <= from) {
                    // Late is only what no later event of its stream in the step, which then ends later, stands for.
                    let stands = |other: &&DeviceEvent| {
                        let (own_end, launch) = (self.us(other.slice).1, other.launch.map(|launch| self.us(launch).0));
                        other.stream == event.stream
                            && own_end > end
                            && own_end <= to
                            && launch <= Some(from)
                            && self.is_in_step(other)
                    };
                    let is_last = events.iter().find(stands).is_none();
                    causes.push((end, if self.is_in_step(event) && is_last { self.end_late(at) } else { 0 }));
                }
            }
            causes
        }

        fn finish(mut self) -> i64 {
            loop {
                let calls = self.calls();
                let in_step: Vec<bool> = self.events().iter().map(|event| self.is_in_step(event)).collect();
                let of_event = |at: usize| if in_step[at] { Self::late(&self.event_causes(at)) } else { 0 };
                let event_late: Vec<i64> = (0..in_step.len()).map(of_event).collect();
                let call_late: Vec<i64> = calls.iter().map(|call| Self::late(&self.call_causes(*call))).collect();
                if event_late == self.event_late && call_late == self.call_late {
                    let ends = (0..in_step.len()).filter(|at| in_step[*at]);
                    let ends = ends.map(|at| self.us(self.events()[at].slice).1 + self.end_late(at));
                    return ends.max().unwrap_or(i64::MIN).max(self.step.1 + self.host_late(self.step.1));
                }
                (self.event_late, self.call_late) = (event_late, call_late);
            }
        }
    }

    fn finish(trace: &Trace, step: &Step, longer: usize, by: i64) -> i64 {
        let step = (step.span.start_ns / 1_000, step.span.end_ns / 1_000);
        let event_late = vec![0; trace.device_events.len()];
        let mut replay = Replay { trace, step, longer, by, event_late, call_late: Vec::new() };
        replay.call_late = vec![0; replay.calls().len()];
        replay.finish()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn a_step_is_as_long_with_the_slack_of_any_event_and_longer_beyond_it(
            host in "[.axs|]{30}", launch in "[.CDNH]{30}", streams in prop::collection::vec("[.CDNHK|]{40}", 1..4),
        ) {
            let row = |cell: char| host.chars().map(|own| if own == cell || own == '|' { own } else { '.' }).collect::<String>();
            let free: String = host.chars().zip(launch.chars()).map(|(own, call)| if own == '.' { call } else { '.' }).collect();
            let mut drawing = format!(
                "rank 0 step 000000000000000111111111111111\nrank 0 cpu 1 {}\nrank 0 sync 1 {}\nrank 0 launch 1 {free}\n",
                row('a'), row('s'),
            );
            streams.iter().enumerate().for_each(|(at, row)| drawing += &format!("rank 0 stream {at} {row}\n"));
            let trace = drawn(&drawing);
            for step in &trace.steps {
                let selection = Selection { step: Some(step.number), ..Selection::default() };
                let rows: Vec<Slack> = slacks(&AnalysisContext::new(&trace, &selection)).into_iter().flat_map(|(_, rows)| rows).collect();
                for row in rows {
                    prop_assert!(row.slack_ns >= 0 && row.slack_ns % 1_000 == 0, "{row:?}");
                    let (at, slack) = (row.event.index(), row.slack_ns / 1_000);
                    let as_it_was = finish(&trace, step, at, 0);
                    prop_assert_eq!(finish(&trace, step, at, slack), as_it_was, "{}\n{:?}", drawing, row);
                    prop_assert_eq!(finish(&trace, step, at, slack + 1), as_it_was + 1, "{}\n{:?}", drawing, row);
                }
            }
        }
    }
}

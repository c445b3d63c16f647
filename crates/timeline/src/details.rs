//! Everything that a trace knows of one slice.

mod args;
mod frames;

pub use frames::Frame;

use crate::samples::sample_of;
use crate::{SliceSummary, Timeline};
use args::{device_args, host_args};
use frames::frames;
use serde::Serialize;
use stepscope_trace::{DeviceEvent, DeviceEventId, FlowKind, SliceId, SliceKind, Trace};

/// More flows and launches than this are not told of one slice.
const MAX_ENDS: usize = 1_000;

/// Everything known of a slice.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Details {
    /// The slice.
    pub slice: SliceSummary,
    /// What contains it on its track, innermost first.
    pub ancestors: Vec<SliceSummary>,
    /// How many slices it contains directly.
    pub children: u64,
    /// Its duration without them.
    pub self_ns: i64,
    /// The step that it begins in.
    pub step: Option<i64>,
    /// What else is known, in words: name and value.
    pub args: Vec<(String, String)>,
    /// Where in the program it was called, innermost first.
    pub stack: Vec<Frame>,
    /// The modules that it was called in, innermost first.
    pub module: Vec<String>,
    /// For work on a device and calls of its API: the op that it belongs to.
    pub op: Option<SliceSummary>,
    /// For work on a device: the call that launched it.
    pub launch: Option<SliceSummary>,
    /// For a call: what it launched, at most 1,000.
    pub launched: Vec<SliceSummary>,
    /// What it is joined with by arrows, at most 1,000.
    pub flows: Vec<LinkedSlice>,
}

/// The other end of an arrow.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LinkedSlice {
    /// `launch`, `forward_backward` or `batch`.
    pub kind: &'static str,
    /// `in` when the arrow ends at the slice that was asked for, else `out`.
    pub direction: &'static str,
    /// The slice at the other end.
    pub slice: SliceSummary,
}

/// Everything known of `slice`, or of a sample that stands in a row; `None` when there is no such slice.
pub fn details(timeline: &Timeline, trace: &Trace, slice: SliceId) -> Option<Details> {
    if let Some(sample) = sample_of(trace, slice) {
        return Some(timeline.sample_details(trace, slice, sample));
    }
    if slice.index() >= trace.slices.len() {
        return None;
    }
    let summary = |id: SliceId| timeline.summary(trace, id);
    // What is read for a batch is joined with what takes the batch.
    let is_fetch = |id: &SliceId| trace.flows_from(*id).iter().any(|flow| flow.kind == FlowKind::Batch);
    let fetch = trace.slices.with_ancestors(slice).find(is_fetch);
    let is_end = |flow: &&stepscope_trace::Flow| {
        flow.from == slice || flow.to == slice || flow.kind == FlowKind::Batch && Some(flow.from) == fetch
    };
    let ends: Vec<_> = trace.flows.iter().filter(is_end).take(MAX_ENDS).collect();
    let linked_slice = |flow: &&stepscope_trace::Flow| LinkedSlice {
        kind: flow.kind.as_str(),
        direction: if flow.to == slice { "in" } else { "out" },
        slice: summary(if flow.to == slice { flow.from } else { flow.to }),
    };
    let is_launched = |flow: &&&stepscope_trace::Flow| flow.kind == FlowKind::Launch && flow.from == slice;
    let launched: Vec<SliceSummary> = ends.iter().filter(is_launched).map(|flow| summary(flow.to)).collect();
    let event = device_event(trace, slice);
    let of_api = trace.slices.kind(slice).is_api_call();
    let is_op = |id: &SliceId| trace.slices.kind(*id) == SliceKind::Op;
    let around = || trace.slices.with_ancestors(slice).skip(1).find(is_op);
    let op = event.and_then(|event| event.op).or_else(|| if of_api { around() } else { None });
    // What ran on a device was asked for by a host thread: the program is there.
    let host = op.or(event.and_then(|event| event.launch)).unwrap_or(slice);
    let module = trace.slices.with_ancestors(host).filter(|id| trace.slices.kind(*id) == SliceKind::Module);
    let (children, children_ns) = children(trace, slice);
    let mut args = host_args(trace, slice);
    args.extend(event.iter().flat_map(|event| device_args(trace, event)));
    let start_ns = trace.slices.start_ns[host.index()];
    let rank = trace.rank_of_track(trace.slices.track[host.index()]);
    let step = trace.steps.iter().find(|step| step.rank == rank && step.span.contains(start_ns));
    Some(Details {
        slice: summary(slice),
        ancestors: trace.slices.with_ancestors(slice).skip(1).map(summary).collect(),
        children,
        self_ns: trace.slices.dur_ns[slice.index()] - children_ns,
        step: step.map(|step| step.number),
        args,
        stack: frames(trace, host),
        module: module.map(|id| trace.slice_name(id).to_string()).collect(),
        op: op.map(summary),
        launch: event.and_then(|event| event.launch).map(summary),
        launched,
        flows: ends.iter().map(linked_slice).collect(),
    })
}

/// How many slices one contains directly, and their time.
fn children(trace: &Trace, slice: SliceId) -> (u64, i64) {
    let track = &trace.tracks[trace.slices.track[slice.index()].index()];
    let end_ns = trace.slices.span(slice).end_ns;
    let after = (slice.index() + 1..track.slices.end as usize).take_while(|at| trace.slices.start_ns[*at] <= end_ns);
    let direct = after.filter(|at| trace.slices.parent[*at] == Some(slice));
    direct.fold((0, 0), |(count, ns), at| (count + 1, ns + trace.slices.dur_ns[at]))
}

/// The device event of a slice.
fn device_event(trace: &Trace, slice: SliceId) -> Option<DeviceEvent> {
    if !trace.slices.kind(slice).is_device_event() {
        return None;
    }
    let event = |at: usize| trace.device_events.get(DeviceEventId::from_index(at));
    let start_of = |at: usize| trace.slices.start_ns[event(at).slice.index()];
    let start_ns = trace.slices.start_ns[slice.index()];
    // They are ordered by start.
    let (mut low, mut high) = (0, trace.device_events.len());
    while low < high {
        let middle = (low + high) / 2;
        match start_of(middle) < start_ns {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    let same_start = (low..trace.device_events.len()).take_while(|at| start_of(*at) == start_ns);
    same_start.map(event).find(|event| event.slice == slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named_slice;
    use stepscope_trace::drawn::drawn;

    fn of(trace: &Trace, slice: SliceId) -> Details {
        details(&Timeline::of(trace), trace, slice).expect("such a slice")
    }

    #[test]
    fn a_kernel_leads_to_its_launch_its_op_and_its_module() {
        let trace = drawn(
            "rank 0 step     0000011111
             rank 0 module 1 mmmm......
             rank 0 cpu 1    .aaa......
             rank 0 launch 1 ..C.......
             rank 0 stream 7 ......CCN.",
        );
        let kernel = named_slice(&trace, 0, 6_000, "C").expect("the kernel");
        let kernel = of(&trace, kernel);
        assert_eq!(kernel.launch.as_ref().map(|launch| (launch.kind, launch.start_ns)), Some(("runtime", 2_000)));
        assert_eq!(kernel.op.as_ref().map(|op| op.name.as_str()), Some("a"));
        assert_eq!((kernel.module, kernel.step), (vec!["m".to_string()], Some(0)));
        assert!(kernel.args.contains(&("stream".to_string(), "7".to_string())), "{:?}", kernel.args);
        let launch = of(&trace, SliceId(kernel.launch.expect("a launch").id));
        assert_eq!(launch.launched.iter().map(|slice| slice.start_ns).collect::<Vec<_>>(), [6_000]);
        assert_eq!(launch.flows.iter().map(|end| (end.kind, end.direction)).collect::<Vec<_>>(), [("launch", "out")]);
        assert_eq!(launch.op.map(|op| op.name).as_deref(), Some("a"));
        let unlinked = of(&trace, named_slice(&trace, 0, 8_000, "N").expect("the other"));
        assert_eq!((unlinked.launch, unlinked.op, unlinked.flows), (None, None, vec![]));
    }

    #[test]
    fn own_time_is_what_children_leave() {
        let trace = drawn("rank 0 cpu 1 aaaaaabb\nrank 0 cpu 1 .xx.yy..\nrank 0 cpu 1 .z......");
        let a = of(&trace, named_slice(&trace, 0, 0, "a").expect("a"));
        assert_eq!((a.children, a.self_ns, a.ancestors.len()), (2, 2_000, 0));
        let z = of(&trace, named_slice(&trace, 0, 1_000, "z").expect("z"));
        assert_eq!(z.ancestors.iter().map(|slice| slice.name.as_str()).collect::<String>(), "xa");
        assert_eq!(details(&Timeline::of(&trace), &trace, SliceId(99)), None);
    }
}

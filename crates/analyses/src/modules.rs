//! # Definition
//! For each module: how often it was called, and the time, memory and work of its forward and its backward pass.
//! A row is a place in the tree of calls, such as `GPT_0.Block_1.Linear_0`; totals include the modules that it calls,
//! self does not. Forward host time is that of its calls. Backward host time is that of the nodes of the backward pass
//! that belong to its operators. Device time is the sum of durations of the device events launched in either pass.
//! Allocated bytes are those that its operators asked for in both passes, whatever was freed; operations (`flops`) are
//! the work of its operators in both passes.
//!
//! # Units
//! Nanoseconds; counts of calls; bytes; operations, of which a multiplication with an addition is two.
//!
//! # Source
//! Calls of `nn.Module` as the framework's profiler recorded them (`with_stack` or `with_modules`). A node of the backward
//! pass belongs to the module of its forward operator, by autograd's sequence number or the profiler's arrows; what runs
//! inside such a node belongs with it. Memory as the framework's allocators reported it (`profile_memory`), work by the
//! formulas that `operators` has.
//!
//! # Edge cases
//! A module that is called again in the backward pass (checkpointing) keeps its place below the module that asked for
//! it; its call counts, its time is backward time. What runs in no module has no row, nor has what the framework records
//! of the backward pass without a link. Without memory events or shapes, bytes and operations are absent. For one step,
//! what starts inside it on the host.

mod account;

use crate::{Analysis, AnalysisContext, Joined, Needs, Outcome, Selection};
pub(crate) use account::ModuleTree;
use stepscope_trace::Trace;

/// Time of one pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PassTime {
    /// On the host.
    pub host_total_ns: i64,
    /// The same without the modules that it calls.
    pub host_self_ns: i64,
    /// Sum of durations of device events.
    pub device_total_ns: i64,
    /// The same without the modules that it calls.
    pub device_self_ns: i64,
}

columns! {
    /// One module at one place in the tree of calls.
    #[derive(Clone, PartialEq, Eq, Debug, Default)]
    pub struct ModuleRow {
        /// The place of the module in the tree of calls: `GPT_0.Block_1.Linear_0`.
        path: String => Text,
        /// The name of the module itself.
        name: String => Text,
        /// Number of modules around it.
        depth: i64 => Count,
        /// The path of the module that calls it.
        parent: Option<String> => Text,
        /// Number of calls.
        count: i64 => Count,
        /// Time of the forward pass.
        forward: PassTime,
        /// Time of the backward pass.
        backward: PassTime,
        /// Time on the host in the forward pass, the modules that it calls included.
        forward_host_total_ns => Nanoseconds = |row| row.forward.host_total_ns,
        /// Time on the host in the forward pass, without the modules that it calls.
        forward_host_self_ns => Nanoseconds = |row| row.forward.host_self_ns,
        /// Time on the host in the backward pass, the modules that it calls included.
        backward_host_total_ns => Nanoseconds = |row| row.backward.host_total_ns,
        /// Time on the host in the backward pass, without the modules that it calls.
        backward_host_self_ns => Nanoseconds = |row| row.backward.host_self_ns,
        /// Sum of the durations of the device events of both passes, the modules that it calls included.
        device_total_ns => Nanoseconds = ModuleRow::device_total_ns,
        /// Sum of the durations of the device events of the forward pass, the modules that it calls included.
        forward_device_total_ns => Nanoseconds = |row| row.forward.device_total_ns,
        /// Sum of the durations of the device events of the forward pass, without the modules that it calls.
        forward_device_self_ns => Nanoseconds = |row| row.forward.device_self_ns,
        /// Sum of the durations of the device events of the backward pass, the modules that it calls included.
        backward_device_total_ns => Nanoseconds = |row| row.backward.device_total_ns,
        /// Sum of the durations of the device events of the backward pass, without the modules that it calls.
        backward_device_self_ns => Nanoseconds = |row| row.backward.device_self_ns,
        /// Bytes allocated, the modules that it calls included. Absent when not recorded.
        allocated_bytes: Option<i64> => Bytes,
        /// Bytes allocated, without the modules that it calls. Absent when not recorded.
        allocated_self_bytes: Option<i64> => Bytes,
        /// Number of arithmetic operations. Absent when not known.
        flops: Option<i64> => Count,
    }
}

impl ModuleRow {
    /// Sum of the durations of the device events of both passes, the modules that it calls included.
    pub fn device_total_ns(&self) -> i64 {
        self.forward.device_total_ns.saturating_add(self.backward.device_total_ns)
    }
}

/// Every module asked for, callers before what they call, in the order in which they first do anything.
pub fn modules(trace: &Trace, selection: &Selection) -> Vec<ModuleRow> {
    rows(&AnalysisContext::new(trace, selection))
}

pub(crate) fn rows(context: &AnalysisContext<'_>) -> Vec<ModuleRow> {
    let rows = context.get::<ModuleTree>().rows();
    for pass in rows.iter().flat_map(|row| [row.forward, row.backward]) {
        assert!(pass.device_self_ns <= pass.device_total_ns, "self is part of total");
        assert!(pass.host_self_ns <= pass.host_total_ns, "self is part of total");
    }
    rows
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::Joined(Joined::by::<ModuleTree>()));

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::{
        Device, DeviceEvent, DeviceEventClass, Flow, FlowKind, MemoryEvent, OpInfo, OpInputs, Process, SliceId,
        SliceKind, TraceBuilder, Track, TrackId, TrackKind,
    };

    struct Fixture {
        builder: TraceBuilder,
        forward: TrackId,
        backward: TrackId,
        stream: TrackId,
        kernels: i64,
    }

    impl Fixture {
        fn new() -> Self {
            let mut builder = TraceBuilder::new("modules");
            let process = builder.add_process(Process::default());
            builder.add_device(Device::default());
            let mut track = |kind, name| builder.add_track(Track::new(kind, process, name));
            let backward = track(TrackKind::Thread, "backward");
            let forward = track(TrackKind::Thread, "forward");
            let stream = track(TrackKind::Stream, "stream");
            Self { builder, forward, backward, stream, kernels: 0 }
        }

        fn slice(&mut self, track: TrackId, kind: SliceKind, name: &str, start: i64, end: i64) -> SliceId {
            let name = self.builder.strings.intern(name);
            self.builder.add_slice(track, kind, name, start, end - start)
        }

        fn kernel(&mut self, track: TrackId, launched_at: i64, dur_ns: i64) {
            let launch = self.slice(track, SliceKind::Runtime, "launch", launched_at, launched_at + 1);
            self.kernels += 1;
            let start = self.kernels << 30;
            let slice = self.slice(self.stream, SliceKind::Kernel, "k", start, start + dur_ns);
            let device = stepscope_trace::DeviceId(0);
            self.builder.add_device_event(DeviceEvent::new(slice, device, DeviceEventClass::Compute));
            self.builder.add_launch_link(launch, slice);
        }

        fn allocation(&mut self, track: TrackId, time_ns: i64, bytes: i64) {
            let (allocated_bytes, reserved_bytes) = (None, None);
            let event = MemoryEvent {
                time_ns,
                track,
                device: None,
                address: 0,
                bytes,
                allocated_bytes,
                reserved_bytes,
                op: None,
                stream: None,
                stack: None,
            };
            self.builder.add_memory_event(event);
        }
    }

    /// `path xcalls: forward host total/self, device total/self; backward the same; bytes; flops`.
    fn line(row: &ModuleRow) -> String {
        let pass = |pass: &PassTime| {
            let [host, host_self, device, device_self] =
                [pass.host_total_ns, pass.host_self_ns, pass.device_total_ns, pass.device_self_ns];
            format!("{host}/{host_self} {device}/{device_self}")
        };
        let (path, count, bytes, flops) = (&row.path, row.count, row.allocated_bytes, row.flops);
        format!("{path} x{count}: {}; {}; {bytes:?} {flops:?}", pass(&row.forward), pass(&row.backward))
    }

    fn two_layers() -> Fixture {
        let mut fixture = Fixture::new();
        let (forward, backward) = (fixture.forward, fixture.backward);
        fixture.slice(forward, SliceKind::Module, "Net_0", 0, 50);
        fixture.slice(forward, SliceKind::Module, "Linear_0", 10, 30);
        let mm = fixture.slice(forward, SliceKind::Op, "aten::mm", 12, 28);
        let dims = fixture.builder.strings.intern("[[4,8],[8,2]]");
        let inputs = fixture.builder.intern_inputs(OpInputs { dims, ..OpInputs::UNKNOWN });
        fixture.builder.add_op(mm, OpInfo { inputs, ..OpInfo::default() });
        fixture.allocation(forward, 15, 100);
        fixture.allocation(forward, 20, -100);
        fixture.kernel(forward, 16, 7);
        fixture.slice(forward, SliceKind::Op, "aten::add", 35, 40);
        fixture.kernel(forward, 36, 2);
        let engine = fixture.slice(backward, SliceKind::Op, "evaluate: MmBackward0", 60, 80);
        let node = fixture.slice(backward, SliceKind::Op, "MmBackward0", 61, 79);
        for to in [engine, node] {
            fixture.builder.add_flow(Flow { from: mm, to, kind: FlowKind::ForwardBackward });
        }
        fixture.slice(backward, SliceKind::Op, "aten::mm", 65, 70);
        fixture.kernel(backward, 66, 9);
        fixture.allocation(backward, 67, 11);
        fixture.kernel(backward, 90, 1_000);
        fixture
    }

    #[test]
    fn both_passes_belong_to_the_module_and_to_those_around_it() {
        let rows = modules(&two_layers().builder.finish(), &Selection::default());
        assert_eq!(
            rows.iter().map(line).collect::<Vec<_>>(),
            [
                "Net_0 x1: 50/30 9/2; 20/0 9/0; Some(111) Some(128)",
                "Net_0.Linear_0 x1: 20/20 7/7; 20/20 9/9; Some(111) Some(128)"
            ]
        );
        let places: Vec<_> = rows.iter().map(|row| (row.depth, row.parent.as_deref())).collect();
        assert_eq!(places, [(0, None), (1, Some("Net_0"))]);
    }

    #[test]
    fn a_rank_that_is_not_there_and_a_trace_without_modules_have_no_rows() {
        let trace = two_layers().builder.finish();
        assert_eq!(modules(&trace, &Selection { ranks: 3.into(), ..Selection::default() }), []);
        let drawn = stepscope_trace::drawn::drawn("rank 0 cpu 1 aabb\nrank 0 stream 7 KK");
        assert_eq!(modules(&drawn, &Selection::default()), []);
    }

    proptest! {
        /// Against one walk outwards for each slice and event; what nests is decided by the trace itself.
        #[test]
        fn sums_equal_a_walk_for_every_slice(
            slices in prop::collection::vec((0_usize..5, 0_i64..40, 1_i64..30), 0..14),
            kernels in prop::collection::vec((0_i64..60, 1_i64..100), 0..6),
        ) {
            let mut fixture = Fixture::new();
            let forward = fixture.forward;
            for (kind, start, dur) in slices {
                let (kind, name) = [
                    (SliceKind::Module, "A_0"),
                    (SliceKind::Module, "B_0"),
                    (SliceKind::Op, "aten::mm"),
                    (SliceKind::PythonFunction, "f"),
                    (SliceKind::Annotation, "label"),
                ][kind];
                fixture.slice(forward, kind, name, start, start + dur);
            }
            for (at, dur_ns) in kernels {
                fixture.kernel(forward, at, dur_ns);
            }
            let trace = fixture.builder.finish();
            let path = |id: SliceId| {
                let calls = trace.slices.with_ancestors(id).filter(|id| trace.slices.kind(*id) == SliceKind::Module);
                let mut names: Vec<&str> = calls.map(|id| trace.slice_name(id)).collect();
                names.reverse();
                names.join(".")
            };
            let calls: Vec<SliceId> =
                trace.slices.ids().filter(|id| trace.slices.kind(*id) == SliceKind::Module).collect();
            let rows = modules(&trace, &Selection::default());
            for row in &rows {
                let own: Vec<SliceId> = calls.iter().copied().filter(|id| path(*id) == row.path).collect();
                prop_assert_eq!(row.count, own.len() as i64);
                let host: i64 = own.iter().map(|id| trace.slices.dur_ns[id.index()]).sum();
                prop_assert_eq!(row.forward.host_total_ns, host);
                let launched = |is_inside: &dyn Fn(&str) -> bool| -> i64 {
                    let inside = trace.device_events.iter().filter(|event| event.launch.is_some_and(|id| is_inside(&path(id))));
                    inside.map(|event| trace.slices.dur_ns[event.slice.index()]).sum()
                };
                let below = format!("{}.", row.path);
                prop_assert_eq!(row.forward.device_self_ns, launched(&|path| path == row.path));
                prop_assert_eq!(
                    row.forward.device_total_ns,
                    launched(&|path| path == row.path || path.starts_with(&below))
                );
            }
            let self_ns: i64 = rows.iter().map(|row| row.forward.host_self_ns).sum();
            let outermost = calls.iter().filter(|id| !path(**id).contains('.'));
            prop_assert_eq!(self_ns, outermost.map(|id| trace.slices.dur_ns[id.index()]).sum::<i64>());
        }
    }
}

use super::*;
use crate::Values;
use proptest::prelude::*;
use stepscope_trace::{
    Device, DeviceEvent, DeviceEventClass, Flow, FlowKind, MemoryEvent, ModuleCall, ModuleSize, OpInfo, OpInputs,
    Process, SliceId, SliceKind, TraceBuilder, Track, TrackId, TrackKind,
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
    let (path, count, bytes, flops) = (&row.path, row.count, row.allocated_bytes, row.profile.flops());
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

/// Two blocks with one layer each, of which the first has a matrix product of 128 operations.
fn blocks() -> Fixture {
    let mut fixture = Fixture::new();
    let forward = fixture.forward;
    for (name, class, parameters, start, end) in [
        ("Net", "Net", 100, 0, 60),
        ("0", "Block", 30, 5, 25),
        ("layer", "Linear", 20, 10, 20),
        ("1", "Block", 60, 30, 50),
        ("layer", "Linear", 50, 32, 40),
        ("norm", "Norm", 10, 45, 48),
    ] {
        let slice = fixture.slice(forward, SliceKind::Module, name, start, end);
        let class = fixture.builder.strings.intern(class);
        let size = Some(ModuleSize { parameters, trainable: parameters / 2 });
        fixture.builder.add_module_call(ModuleCall { slice, class, size });
    }
    let mm = fixture.slice(forward, SliceKind::Op, "aten::mm", 12, 18);
    let dims = fixture.builder.strings.intern("[[4,8],[8,2]]");
    let inputs = fixture.builder.intern_inputs(OpInputs { dims, ..OpInputs::UNKNOWN });
    fixture.builder.add_op(mm, OpInfo { inputs, ..OpInfo::default() });
    fixture
}

/// The text of each row of a table, of some columns.
fn table(trace: &Trace, selection: &Selection, columns: &[&str]) -> Vec<String> {
    let table = outcome(&AnalysisContext::new(trace, selection)).table;
    let cell = |name: &str, row: usize| match &table.column(name).expect("a column").values {
        Values::Int(values) => values[row].map_or("-".into(), |value| value.to_string()),
        Values::Float(values) => values[row].map_or("-".into(), |value| format!("{value:.2}")),
        Values::Text(values) => values[row].as_deref().unwrap_or("-").into(),
        Values::Bool(values) => format!("{:?}", values[row]),
    };
    let cells = |row| columns.iter().map(|name| cell(name, row)).collect::<Vec<String>>().join(" ");
    (0..table.len()).map(cells).collect()
}

const PROFILE: [&str; 8] = [
    "parameters",
    "parameters_ratio",
    "trainable_parameters",
    "forward_macs",
    "forward_macs_ratio",
    "forward_ns",
    "forward_ratio",
    "forward_flops_per_s",
];

#[test]
fn a_module_has_its_size_and_its_share_of_the_outermost() {
    let trace = blocks().builder.finish();
    let columns = [&["path", "module_class"], &PROFILE[..]].concat();
    let expected = [
        "Net Net 100 1.00 50 64 1.00 60 1.00 2133333333",
        "Net.0 Block 30 0.30 15 64 1.00 20 0.33 6400000000",
        "Net.0.layer Linear 20 0.20 10 64 1.00 10 0.17 12800000000",
        "Net.1 Block 60 0.60 30 - - 20 0.33 -",
        "Net.1.layer Linear 50 0.50 25 - - 8 0.13 -",
        "Net.1.norm Norm 10 0.10 5 - - 3 0.05 -",
    ];
    assert_eq!(table(&trace, &Selection::default(), &columns), expected);
    let shown = Selection { depth: Some(1), ..Selection::default() };
    assert_eq!(table(&trace, &shown, &["path"]), ["Net", "Net.0", "Net.1"]);
    // Of the outermost three, the second is first by multiplications and the fourth by parameters.
    let top = Selection { top: Some(1), ..Selection::default() };
    assert_eq!(table(&trace, &top, &["path"]), ["Net", "Net.0", "Net.0.layer", "Net.1", "Net.1.layer"]);
}

#[test]
fn modules_of_a_class_are_one_row_at_each_depth() {
    let trace = blocks().builder.finish();
    let columns = [&["depth", "module_class", "modules", "count"], &PROFILE[..]].concat();
    let by_class = Selection { group_by: Some(GroupBy::Class), ..Selection::default() };
    let expected = [
        "0 Net 1 1 100 1.00 50 64 1.00 60 1.00 2133333333",
        "1 Block 2 2 90 0.90 45 64 1.00 40 0.67 3200000000",
        "2 Linear 2 2 70 0.70 35 64 1.00 18 0.30 7111111111",
        "2 Norm 1 1 10 0.10 5 - - 3 0.05 -",
    ];
    assert_eq!(table(&trace, &by_class, &columns), expected);
    let top = Selection { top: Some(1), depth: Some(2), ..by_class };
    assert_eq!(table(&trace, &top, &["module_class"]), ["Net", "Block", "Linear"]);
}

#[test]
fn on_devices_the_forward_pass_takes_what_they_take() {
    let mut fixture = blocks();
    let forward = fixture.forward;
    fixture.kernel(forward, 13, 700);
    fixture.kernel(forward, 46, 300);
    let trace = fixture.builder.finish();
    let expected = [
        "Net 1000 1.00",
        "Net.0 700 0.70",
        "Net.0.layer 700 0.70",
        "Net.1 300 0.30",
        "Net.1.layer 0 0.00",
        "Net.1.norm 300 0.30",
    ];
    assert_eq!(table(&trace, &Selection::default(), &["path", "forward_ns", "forward_ratio"]), expected);
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

use super::*;
use proptest::prelude::*;
use stepscope_trace::Trace;
use stepscope_trace::drawn::drawn_with_collectives;

/// A drawing with works `w` of one group and `x` of another, `g` for collections of garbage, `m` for calls that free
/// memory of a device.
fn trace_of(drawing: &str) -> Trace {
    let work = ("allreduce", "Float", Some(10), Some(0));
    let said = [("w", SliceKind::Annotation, work), ("x", SliceKind::Annotation, work)];
    let mut trace = drawn_with_collectives(drawing, &said);
    let roles = [SliceRole::GarbageCollection, SliceRole::DeviceAllocation];
    trace.roles = ["g", "m"].map(|name| trace.strings.intern(name)).into_iter().zip(roles).collect();
    trace.roles.sort_unstable();
    let other = trace.strings.intern("1");
    let is_other: Vec<bool> = trace.collectives.iter().map(|said| trace.slice_name(said.slice) == "x").collect();
    trace.collectives.iter_mut().zip(is_other).filter(|(_, other)| *other).for_each(|(said, _)| said.group = other);
    trace
}

/// The parts of the only stretch of group `0`, in us, those that are not empty.
fn parts_of(trace: &Trace) -> Vec<(LateCause, i64)> {
    let selection = Selection::default();
    let context = AnalysisContext::new(trace, &selection);
    let is_meant = |id: &SliceId| trace.slice_name(*id) == "w";
    let stretches: Vec<Stretch> =
        context.get::<Stretches>().0.iter().filter(|(id, _)| is_meant(id)).map(|(_, stretch)| *stretch).collect();
    let [stretch] = stretches[..] else { panic!("one stretch: {stretches:?}") };
    let parts = LateCause::ALL.into_iter().zip(stretch.parts_ns.map(|ns| ns / 1_000));
    parts.filter(|(_, us)| *us > 0).collect()
}

#[test]
fn without_a_device_the_host_accounts_for_a_stretch() {
    let trace = trace_of(
        "rank 0 label 2    w...........xxw
         rank 0 python 1   .pppppppp......
         rank 0 input 1    .ii............
         rank 0 cpu 1      .aaaa..........
         rank 0 io 1       .....f.........
         rank 0 python 3   .......g.......",
    );
    let expected = [
        (LateCause::Compute, 2),
        (LateCause::OtherCollective, 2),
        (LateCause::GarbageCollection, 1),
        (LateCause::Input, 2),
        (LateCause::Io, 1),
        (LateCause::HostOther, 2),
        (LateCause::Unknown, 3),
    ];
    assert_eq!(parts_of(&trace), expected);
}

#[test]
fn what_a_device_does_comes_before_what_the_host_does_meanwhile() {
    let trace = trace_of(
        "rank 0 label 2    w..............w
         rank 0 cpu 1      ...aaaaaa.......
         rank 0 launch 1   .A......BN......
         rank 0 launch 3   ....mm..........
         rank 0 python 3   gggg............
         rank 0 stream 7   ..AA......B.H...
         rank 0 stream 9   ..........NN....",
    );
    let expected = [
        (LateCause::Compute, 3),
        (LateCause::OtherCollective, 1),
        (LateCause::Copy, 1),
        (LateCause::GarbageCollection, 1),
        (LateCause::Allocation, 2),
        (LateCause::LaunchBound, 4),
        (LateCause::Unknown, 2),
    ];
    assert_eq!(parts_of(&trace), expected);
}

/// The cause of one microsecond, found by looking at everything that is drawn there.
struct Cells<'a> {
    rows: &'a [(&'static str, String)],
    idle: Vec<(Span, IdleCause)>,
    has_device: bool,
}

impl Cells<'_> {
    fn has(&self, kind: &str, letters: &str, us: usize) -> bool {
        self.rows
            .iter()
            .filter(|(row, _)| row.starts_with(kind))
            .any(|(_, cells)| letters.contains(char::from(cells.as_bytes()[us])))
    }

    fn cause(&self, us: usize) -> LateCause {
        let on_device = [("C", LateCause::Compute), ("N", LateCause::OtherCollective), ("HZ", LateCause::Copy)];
        if let Some((_, cause)) = on_device.iter().find(|(letters, _)| self.has("stream", letters, us)) {
            return *cause;
        }
        match self.idle.iter().find(|(span, _)| span.contains(us as i64 * 1_000)) {
            Some((_, cause)) => self.idle_cause(*cause, us),
            None => self.host_cause(us),
        }
    }

    fn idle_cause(&self, cause: IdleCause, us: usize) -> LateCause {
        use IdleCause::*;
        match cause {
            ProfilerOverhead => LateCause::ProfilerOverhead,
            QueueWait | PeerWait => LateCause::DeviceWait,
            Unknown => LateCause::Unknown,
            _ if self.has("python 3", "g", us) => LateCause::GarbageCollection,
            _ if self.has("launch 4", "m", us) => LateCause::Allocation,
            HostSync => LateCause::HostSync,
            Input => LateCause::Input,
            _ if self.has("io 1", "f", us) => LateCause::Io,
            LaunchBound => LateCause::LaunchBound,
            HostOther => LateCause::HostOther,
        }
    }

    fn host_cause(&self, us: usize) -> LateCause {
        let of_op = if self.has_device { LateCause::LaunchBound } else { LateCause::Compute };
        let order = [
            ("overhead", "o", LateCause::ProfilerOverhead),
            ("python 3", "g", LateCause::GarbageCollection),
            ("launch 4", "m", LateCause::Allocation),
            ("sync 1", "s", LateCause::HostSync),
            ("input 1", "i", LateCause::Input),
            ("cpu", "a", of_op),
            ("label 5", "x", LateCause::OtherCollective),
            ("io 1", "f", LateCause::Io),
            ("launch 1", "C", LateCause::LaunchBound),
            ("python 1", "p", LateCause::HostOther),
        ];
        let found = order.iter().find(|(kind, letters, _)| self.has(kind, letters, us));
        found.map_or(LateCause::Unknown, |(_, _, cause)| *cause)
    }
}

const KINDS: [&str; 12] = [
    "overhead 0",
    "python 3",
    "launch 4",
    "sync 1",
    "input 1",
    "cpu 1",
    "cpu 6",
    "label 5",
    "io 1",
    "io 6",
    "launch 1",
    "python 1",
];

proptest! {
    #[test]
    fn every_microsecond_of_a_stretch_has_the_first_cause_that_applies(
        cells in ("[.o]{36}", "[.g]{36}", "[.m]{36}", "[.s]{36}", "[.i]{36}", "[.a]{36}", "[.a]{36}", "[.x]{36}", "[.f]{36}", "[.f]{36}"),
        (launch, python) in ("[.C]{36}", "[.p]{36}"),
        mask in prop::collection::vec(any::<bool>(), KINDS.len()), streams in prop::collection::vec("[.CNHZ]{36}", 0..3),
    ) {
        let (a, b, c, d, e, f, g, h, i, j) = cells;
        let host = KINDS.into_iter().zip([a, b, c, d, e, f, g, h, i, j, launch, python]).zip(mask);
        let mut rows: Vec<(&'static str, String)> = host.filter(|(_, keep)| *keep).map(|(row, _)| row).collect();
        rows.extend(["stream 7", "stream 9"].into_iter().zip(streams));
        rows.iter_mut().for_each(|(_, cells)| *cells = format!("..{cells}.."));
        let drawn: String = rows.iter().map(|(row, cells)| format!("rank 0 {row} {cells}\n")).collect();
        let ends = format!("rank 0 label 2 ww{}ww\nrank 0 label 1 {}{}", ".".repeat(36), ".".repeat(40), "l".repeat(200));
        let trace = trace_of(&format!("{drawn}{ends}"));
        let selection = Selection::default();
        let context = AnalysisContext::new(&trace, &selection);
        let idle = context.get::<Vec<DeviceIdle>>().iter().flat_map(|device| {
            (0..device.gaps.len()).flat_map(|gap| device.parts_of(gap)).map(|part| (part.span, part.cause))
        });
        let has_device = !trace.device_events.is_empty();
        let cells = Cells { rows: &rows, idle: idle.collect(), has_device };
        let mut expected = [0; LateCause::COUNT];
        (2..38).for_each(|us| expected[cells.cause(us) as usize] += 1);
        let expected: Vec<(LateCause, i64)> =
            LateCause::ALL.into_iter().zip(expected).filter(|(_, us)| *us > 0).collect();
        prop_assert_eq!(parts_of(&trace), expected);
    }
}

use crate::open_bytes;
use stepscope_trace::{SliceKind, Trace};

/// What a pickle is made of, as far as snapshots need it.
#[derive(Clone)]
enum P {
    I(i64),
    T(&'static str),
    L(Vec<P>),
    D(Vec<(&'static str, P)>),
}
use P::{D, I, L, T};

impl P {
    fn write(&self, out: &mut Vec<u8>) {
        let text = |text: &str, out: &mut Vec<u8>| {
            out.extend([b"X".as_slice(), &(text.len() as u32).to_le_bytes(), text.as_bytes()].concat());
        };
        match self {
            I(number) => out.extend([b"\x8a\x08".as_slice(), &number.to_le_bytes()].concat()),
            T(word) => text(word, out),
            L(items) => {
                out.push(b'(');
                items.iter().for_each(|item| item.write(out));
                out.push(b'l');
            }
            D(pairs) => {
                out.push(b'(');
                for (key, value) in pairs {
                    text(key, out);
                    value.write(out);
                }
                out.push(b'd');
            }
        }
    }

    fn pickled(&self) -> Vec<u8> {
        let mut out = b"\x80\x04".to_vec();
        self.write(&mut out);
        out.push(b'.');
        out
    }
}

fn frames(functions: &[&'static str]) -> P {
    let frame = |name: &&'static str| D(vec![("name", T(name)), ("filename", T("a.py")), ("line", I(3))]);
    L(functions.iter().map(frame).collect())
}

fn block(address: i64, bytes: i64, state: &'static str) -> P {
    D(vec![
        ("address", I(address)),
        ("size", I((bytes + 511) / 512 * 512)),
        ("requested_size", I(bytes)),
        ("state", T(state)),
        ("frames", frames(&["f"])),
    ])
}

fn segment(address: i64, blocks: Vec<P>) -> P {
    let keys = [("device", I(0)), ("address", I(address)), ("total_size", I(4_096)), ("stream", I(7))];
    D(keys.into_iter().chain([("blocks", L(blocks))]).collect())
}

/// An entry at a time in us; as `alloc 5 100` at address 5.
fn entry(time_us: i64, action: &'static str, address: i64, bytes: i64) -> P {
    let keys = [("action", T(action)), ("addr", I(address)), ("size", I(bytes)), ("stream", I(7))];
    D(keys.into_iter().chain([("time_us", I(time_us)), ("frames", frames(&["g", "main"]))]).collect())
}

fn snapshot(segments: Vec<P>, entries: Vec<P>) -> P {
    D(vec![("segments", L(segments)), ("device_traces", L(vec![L(entries)]))])
}

fn open(snapshot: &P) -> Trace {
    open_bytes("s.pickle", &snapshot.pickled()).expect("a snapshot")
}

/// Events as `time: bytes @address → allocated/reserved stack`.
fn lines_of(trace: &Trace) -> Vec<String> {
    let line = |event: &stepscope_trace::MemoryEvent| {
        let stack = event.stack.map_or("-".into(), |stack| trace.stacks.text(stack, &trace.strings));
        let (allocated, reserved) = (event.allocated_bytes.unwrap_or(-1), event.reserved_bytes.unwrap_or(-1));
        format!("{}: {} @{} → {allocated}/{reserved} {stack}", event.time_ns, event.bytes, event.address)
    };
    trace.memory.iter().map(line).collect()
}

fn codes(trace: &Trace) -> Vec<(&'static str, u64)> {
    let rows = trace.findings.iter().map(|finding| (finding.code.code(), finding.count));
    rows.filter(|(code, _)| *code != "import.no_device_events").collect()
}

const MAIN: &str = "a.py(3): g;a.py(3): main";

#[test]
fn totals_run_from_what_was_there_to_what_is_there() {
    let entries = vec![
        entry(10, "segment_alloc", 8_192, 4_096),
        entry(11, "alloc", 8_192, 100),
        entry(12, "free_requested", 4_608, 50),
        entry(12, "free_completed", 4_608, 50),
        entry(14, "free_requested", 8_192, 100),
        entry(15, "alloc", 8_704, 30),
    ];
    let blocks = vec![block(4_096, 200, "active_allocated"), block(4_608, 50, "inactive")];
    let later = vec![block(8_192, 0, "active_awaiting_free"), block(8_704, 30, "active_allocated")];
    let trace = open(&snapshot(vec![segment(4_096, blocks), segment(8_192, later)], entries));
    assert_eq!(
        lines_of(&trace),
        [
            // Nobody saw when: 50 bytes that are freed later are in the totals from the start.
            "0: 200 @4096 → 250/4096 a.py(3): f".to_string(),
            format!("0: 0 @8192 → 250/8192 {MAIN}"),
            format!("1000: 100 @8192 → 350/8192 {MAIN}"),
            format!("2000: -50 @4608 → 300/8192 {MAIN}"),
            format!("4000: -100 @8192 → 200/8192 {MAIN}"),
            format!("5000: 30 @8704 → 230/8192 {MAIN}"),
        ]
    );
    assert_eq!(trace.start_unix_ns, Some(10_000));
    assert!(trace.memory.iter().all(|event| event.stream == Some(7)));
    assert_eq!(codes(&trace), [("import.memory_before_history", 1), ("import.memory_history_dropped", 1)]);
}

#[test]
fn what_the_history_does_not_lead_to_is_corrected_at_its_end() {
    let entries =
        vec![entry(10, "alloc", 4_096, 100), entry(11, "alloc", 4_608, 60), entry(12, "free_requested", 4_608, 60)];
    let blocks = vec![block(4_096, 0, "inactive"), block(4_608, 70, "active_allocated")];
    let trace = open(&snapshot(vec![segment(4_096, blocks)], entries));
    let end: Vec<String> = lines_of(&trace).split_off(3);
    assert_eq!(end, ["2000: -100 @4096 → 0/4096 -", "2000: 70 @4608 → 70/4096 a.py(3): f"]);
    assert_eq!(codes(&trace), [("import.memory_contradicted", 2)]);
    // More was given back than there ever was.
    let entries = vec![entry(10, "segment_alloc", 1, 9_000), entry(11, "segment_free", 1, 100)];
    let trace = open(&snapshot(vec![segment(4_096, vec![])], entries));
    assert_eq!(lines_of(&trace).last().unwrap(), "1000: 0 @0 → 0/4096 -");
    assert_eq!(codes(&trace), [("import.memory_contradicted", 1)]);
}

#[test]
fn a_state_without_history_is_what_is_allocated() {
    let segments = vec![segment(4_096, vec![block(4_096, 200, "active_allocated")])];
    for shape in [snapshot(segments.clone(), vec![]), L(segments)] {
        let trace = open(&shape);
        assert_eq!(lines_of(&trace), ["0: 200 @4096 → 200/4096 a.py(3): f"]);
        assert_eq!((trace.start_unix_ns, codes(&trace)), (None, vec![("import.memory_before_history", 1)]));
    }
}

#[test]
fn labels_out_of_memory_and_marks_have_their_place() {
    let label = |stage: &'static str, name: &'static str, time_us: i64| {
        D(vec![("stage", T(stage)), ("name", T(name)), ("device", I(0)), ("time_us", I(time_us))])
    };
    let labels = vec![
        label("START", "ProfilerStep#4", 5),
        label("START", "Optimizer.step#SGD.step", 8),
        label("END", "Optimizer.step#SGD.step", 11),
        label("END", "ProfilerStep#4", 12),
        label("END", "unknown", 12),
        label("START", "open", 13),
    ];
    let oom =
        D(vec![("action", T("oom")), ("device_free", I(12)), ("size", I(900)), ("stream", I(0)), ("time_us", I(10))]);
    let mark = D(vec![("action", T("snapshot")), ("time_us", I(14))]);
    let D(mut all) = snapshot(vec![], vec![entry(9, "alloc", 1, 100), oom, mark]) else { unreachable!() };
    all.push(("external_annotations", L(labels)));
    let trace = open(&D(all));
    let slice = |id| {
        (trace.slice_name(id), trace.slices.kind(id), trace.slices.span(id).start_ns, trace.slices.dur_ns[id.index()])
    };
    let slices: Vec<_> = trace.slices.ids().map(slice).collect();
    assert_eq!(
        slices,
        [
            ("ProfilerStep#4", SliceKind::Step, 0, 7_000),
            ("Optimizer.step#SGD.step", SliceKind::Optimizer, 3_000, 3_000),
            ("open", SliceKind::Annotation, 8_000, 0),
        ]
    );
    assert_eq!(trace.steps.iter().map(|step| step.number).collect::<Vec<_>>(), [4]);
    assert_eq!((trace.out_of_memory[0].bytes, trace.out_of_memory[0].time_ns), (900, 5_000));
    let names: Vec<&str> = trace.instants.name.iter().map(|name| trace.strings.get(*name)).collect();
    assert_eq!(names, ["out of memory: 12 bytes free on device 0", "snapshot"]);
    let expected = [
        ("import.unmatched_begin", 1),
        ("import.memory_contradicted", 1),
        ("capture.unfinished_slices", 1),
        ("trace.out_of_memory", 1),
    ];
    assert_eq!(codes(&trace), expected);
}

#[test]
fn without_times_entries_keep_their_order() {
    let untimed = |entry: P| {
        let D(keys) = entry else { unreachable!() };
        D(keys.into_iter().filter(|(key, _)| *key != "time_us").collect())
    };
    let entries = vec![entry(10, "alloc", 1, 100), entry(9, "free_requested", 1, 100)];
    let trace = open(&snapshot(vec![], entries.clone().into_iter().map(untimed).collect()));
    assert_eq!(trace.memory.iter().map(|event| event.time_ns).collect::<Vec<_>>(), [0, 1_000]);
    assert_eq!((trace.start_unix_ns, codes(&trace)), (None, vec![("import.memory_without_times", 1)]));
    let trace = open(&snapshot(vec![], entries));
    assert_eq!(trace.memory.iter().map(|event| event.time_ns).collect::<Vec<_>>(), [0, 0]);
    assert_eq!(codes(&trace), [("import.memory_times_unordered", 1)]);
}

#[test]
fn what_cannot_be_read_is_counted_and_the_rest_is_read() {
    let entries = vec![
        entry(1, "alloc", 1, 100),
        entry(2, "alloc", -1, 100),
        entry(3, "alloc", 2, -100),
        entry(4, "alloc", 2, i64::MAX),
        entry(-5, "alloc", 2, 1),
        entry(i64::MAX, "alloc", 2, 1),
        entry(6, "defragment", 2, 1),
        I(7),
        D(vec![("action", I(3))]),
        D(vec![]),
    ];
    let trace = open(&snapshot(vec![T("segment"), segment(0, vec![I(1)])], entries));
    assert_eq!(trace.memory.iter().filter(|event| event.bytes > 0).count(), 1);
    let found = codes(&trace);
    assert!(
        found.contains(&("import.unreadable_event", 10)) && found.contains(&("import.unsupported_event", 1)),
        "{found:?}"
    );
    // Wrong types where lists should be.
    for key in ["segments", "device_traces", "external_annotations", "allocator_settings"] {
        for wrong in [I(5), T("x"), D(vec![]), L(vec![I(1)])] {
            let D(mut all) = snapshot(vec![], vec![entry(1, "alloc", 1, 100)]) else { unreachable!() };
            all.push((key, wrong));
            open(&D(all));
        }
    }
}

#[test]
fn another_pickle_says_what_it_holds() {
    let message = |pickle: &[u8]| open_bytes("f", pickle).map(|_| ()).unwrap_err().to_string();
    let expected = "expected a memory snapshot or a dump of the Flight Recorder of PyTorch (a pickled dict with \
                    segments or entries), found";
    assert_eq!(message(&L(vec![I(1)]).pickled()), format!("{expected} a pickle of a list: f"));
    assert_eq!(message(&D(vec![("a", I(1))]).pickled()), format!("{expected} a pickle of a dict without segments: f"));
    assert_eq!(message(b"\x80\x04"), format!("{expected} an empty pickle: f"));
    assert_eq!(
        message(b"\x80\x04q\x00."),
        format!("{expected} an instruction for values that are not there at byte 2: f")
    );
    let error = open_bytes("f", &I(1).pickled()).unwrap_err();
    assert!(error.hint().unwrap().contains("_dump_snapshot"));
}

#[test]
fn cut_anywhere_it_is_read_up_to_there() {
    let entries = (0..5).map(|at| entry(at, "alloc", at + 1, 100)).collect();
    let whole = snapshot(vec![segment(4_096, vec![block(4_096, 200, "active_allocated")])], entries).pickled();
    let count = |trace: &Trace| trace.memory.iter().filter(|event| event.time_ns >= 0 && event.bytes == 100).count();
    let mut most = 0;
    for len in 0..whole.len() {
        let Ok(trace) = open_bytes("s", &whole[..len]) else { continue };
        assert_eq!(trace.findings.count(stepscope_trace::FindingCode::TruncatedInput), 1, "{len}");
        assert!(count(&trace) >= most, "{len}");
        most = count(&trace);
    }
    assert_eq!(most, 5);
}

#[test]
fn what_is_referred_to_twice_is_read_once() {
    // One entry a thousand times, in one history that is every device's.
    let mut bytes = b"\x80\x04}(X\x0d\x00\x00\x00device_traces((".to_vec();
    entry(1, "alloc", 1, 100).write(&mut bytes);
    bytes.push(0x94);
    (0..1_000).for_each(|_| bytes.extend(b"h\x00"));
    bytes.extend(b"l\x94");
    (0..1_000).for_each(|_| bytes.extend(b"h\x01"));
    bytes.extend(b"lu.");
    let trace = open_bytes("s", &bytes).map(|trace| (trace.memory.len(), codes(&trace)));
    let (events, found) = trace.expect("a snapshot");
    assert_eq!(events, 2, "the allocation, and its correction");
    assert!(found.iter().any(|(code, count)| *code == "import.unreadable_event" && *count == 2_000), "{found:?}");
}

//! A small capture, listed.

use crate::{Events, Grouping, NO_ROW, Wanted, averages};
use stepscope_capture::{Capture, Event, MemoryEvent, ProcessIdentity, State, StepRange, Thread};

/// (thread, name, scope, start, end)
pub(crate) fn capture(names: &[&str], events: &[(u32, u32, u8, i64, i64)], steps: &[(i64, i64, i64)]) -> Capture {
    let thread = |ordinal: u32| Thread {
        ordinal,
        tid: 100 + u64::from(ordinal),
        framework_thread: u64::from(ordinal),
        name: String::new(),
        handle: 0,
    };
    let event = |&(thread, name, scope, start_ns, end_ns): &(u32, u32, u8, i64, i64)| Event {
        thread,
        name,
        scope,
        start_ns,
        end_ns,
        is_unfinished: false,
        is_async: false,
        sequence_number: None,
        forward_thread: None,
        inputs: None,
        collective: None,
    };
    let step = |&(number, start_ns, end_ns): &(i64, i64, i64)| StepRange {
        thread: 0,
        number,
        start_ns,
        end_ns,
        is_unfinished: false,
    };
    Capture {
        process: ProcessIdentity { pid: 7, start_ticks: 0, pid_namespace: 0, boot_id: [0; 16] },
        parent_pid: 1,
        state: State::Closed,
        opened_ns: 0,
        unix_offset_ns: 0,
        clocks: vec![],
        last_ns: 0,
        metadata: vec![],
        threads: vec![thread(0), thread(1)],
        names: names.iter().map(|name| name.to_string()).collect(),
        events: events.iter().map(event).collect(),
        steps: steps.iter().map(step).collect(),
        optimizer_steps: vec![],
        memory: vec![],
        files: vec![],
        io: vec![],
        samples: vec![],
        stacks: vec![],
        stack_samples: vec![],
        device: Default::default(),
        overloads: vec![],
        inputs: vec![],
        ring: None,
        profiler_states: vec![],
        windows: vec![],
        dropped: 0,
        is_disk_full: false,
        damaged: vec![],
    }
}

fn listed(events: &Events) -> Vec<(&str, i64, i64, i64, u32)> {
    let row = |row: usize| {
        let name = events.names[events.name[row] as usize].as_str();
        (name, events.start_ns[row], events.dur_ns[row], events.self_ns[row], events.parent[row])
    };
    (0..events.len()).map(row).collect()
}

#[test]
fn rows_of_all_threads_are_ordered_by_start() {
    let names = ["a", "b", "aten::is_leaf", "ProfilerStep#9", "a"];
    let events = [
        (0, 0, 0, 110, 150),
        (0, 1, 0, 120, 130),
        (0, 2, 0, 125, 126),
        (0, 4, 0, 140, 145),
        (1, 1, 7, 105, 200),
        (1, 3, 7, 210, 220),
    ];
    let found = Events::of(&capture(&names, &events, &[(4, 100, 160)]), 100, Wanted::default());
    assert_eq!(
        listed(&found),
        [
            ("ProfilerStep*", 0, 60, 20, NO_ROW),
            ("b", 5, 95, 95, NO_ROW),
            ("a", 10, 40, 25, 0),
            ("b", 20, 10, 10, 2),
            ("a", 40, 5, 5, 2),
            ("ProfilerStep*", 110, 10, 10, NO_ROW),
        ]
    );
    assert_eq!(found.traced_names, [(0, "ProfilerStep#4".to_string()), (5, "ProfilerStep#9".to_string())]);
    // Without an id of the framework the system's own.
    assert_eq!(found.threads, [(100, 100), (1, 101)]);
}

#[test]
fn labels_and_operators_of_one_name_are_two_groups() {
    let events = [(0, 0, 0, 0, 10), (0, 0, 7, 20, 25), (0, 0, 0, 30, 31)];
    let found = Events::of(&capture(&["x"], &events, &[(1, 40, 50)]), 0, Wanted::default());
    let groups = averages(&[&found, &found], Grouping::default());
    let summary: Vec<_> = groups.iter().map(|group| (group.list, group.first, group.count, group.total_ns)).collect();
    assert_eq!(summary, [(0, 0, 4, 22), (0, 1, 2, 10), (0, 3, 2, 20)]);
    assert_eq!(groups.iter().map(|group| group.self_ns).sum::<i64>(), 2 * (10 + 5 + 1 + 10));
}

fn memory_event(time_ns: i64, bytes: i64, device_type: u8, address: Option<u64>) -> MemoryEvent {
    MemoryEvent {
        thread: 0,
        time_ns,
        address,
        bytes,
        allocated_bytes: None,
        reserved_bytes: None,
        device_type,
        device_index: None,
    }
}

fn memory() -> Wanted {
    Wanted { memory: true, ..Wanted::default() }
}

#[test]
fn memory_belongs_to_what_runs_at_that_moment() {
    let mut capture = capture(&["a", "b"], &[(0, 0, 0, 100, 150), (0, 1, 0, 110, 130)], &[]);
    // Of a device; of a kind of device that counts nowhere; and at last one that is outside of all events.
    capture.memory = vec![
        memory_event(105, 8, 0, Some(1)),
        memory_event(120, 32, 0, Some(2)),
        memory_event(140, -8, 0, Some(1)),
        memory_event(145, 64, 1, Some(3)),
        memory_event(146, 7, 9, Some(5)),
        memory_event(150, 1, 0, Some(6)),
        memory_event(200, -256, 0, Some(4)),
    ];
    let found = Events::of(&capture, 100, memory());
    assert_eq!(listed(&found), [("a", 0, 50, 30, NO_ROW), ("b", 10, 20, 20, 0), ("[memory]", 100, 0, 0, NO_ROW)]);
    assert_eq!((&found.cpu_bytes, &found.self_cpu_bytes), (&vec![33, 32, -256], &vec![1, 32, -256]));
    assert_eq!((&found.device_bytes, &found.self_device_bytes), (&vec![64, 0, 0], &vec![64, 0, 0]));
    assert_eq!((&found.is_memory, &found.forward_thread), (&vec![false, false, true], &vec![0, 0, 100]));
    let averages = averages(&[&found], Grouping::default());
    let bytes = averages.iter().map(|of| (of.cpu_bytes, of.self_cpu_bytes, of.device_bytes, of.self_device_bytes));
    assert_eq!(bytes.collect::<Vec<_>>(), [(33, 1, 64, 64), (32, 32, 0, 0), (-256, -256, 0, 0)]);
    let unasked = Events::of(&capture, 100, Wanted::default());
    assert_eq!((unasked.len(), unasked.cpu_bytes.len()), (2, 0));
}

#[test]
fn what_could_not_be_allocated_is_a_row_in_any_case() {
    let mut capture = capture(&["a"], &[(0, 0, 0, 100, 150)], &[]);
    capture.memory = vec![memory_event(120, 1 << 40, 0, None), memory_event(90, 5, 1, None)];
    let found = Events::of(&capture, 80, memory());
    assert_eq!(
        listed(&found),
        [("[OutOfMemory]", 10, 0, 0, NO_ROW), ("a", 20, 50, 50, NO_ROW), ("[OutOfMemory]", 40, 0, 0, 1)]
    );
    // Nothing was allocated.
    assert_eq!((&found.cpu_bytes, &found.self_cpu_bytes), (&vec![0; 3], &vec![0; 3]));
    assert!(found.device_bytes.is_empty());
}

#[test]
fn what_ends_on_another_thread_is_nobodys_parent_and_has_no_time_of_its_own() {
    let mut capture = capture(&["a", "b"], &[(0, 0, 7, 0, 50), (0, 1, 0, 10, 20)], &[]);
    capture.events.retain_mut(|event| {
        event.is_async = event.name == 0;
        true
    });
    capture.memory = vec![memory_event(15, 8, 0, Some(1))];
    let found = Events::of(&capture, 0, memory());
    assert_eq!(listed(&found), [("a", 0, 50, 0, NO_ROW), ("b", 10, 10, 10, NO_ROW)]);
    assert_eq!((found.cpu_bytes, found.self_cpu_bytes), (vec![8, 8], vec![0, 8]));
    assert_eq!(found.is_async, [true, false]);
}

#[test]
fn overloads_are_told_apart_when_they_are_wanted() {
    let events = [(0, 0, 0, 0, 10), (0, 1, 0, 20, 30), (0, 2, 0, 40, 50), (0, 0, 0, 60, 70)];
    let mut capture = capture(&["add", "add", "relu"], &events, &[(1, 80, 90)]);
    capture.overloads = ["Tensor", "out", ""].map(String::from).to_vec();
    let by = Grouping { by_overloads: true, ..Grouping::default() };
    let found = Events::of(&capture, 0, Wanted { overloads: true, ..Wanted::default() });
    let names: Vec<&str> = found.overload.iter().map(|id| found.overloads[*id as usize].as_str()).collect();
    assert_eq!(names, ["Tensor", "out", "", "Tensor", ""]);
    let counts = |grouping| averages(&[&found, &found], grouping).iter().map(|of| of.count).collect::<Vec<_>>();
    assert_eq!(counts(by), [4, 2, 2, 2]);
    assert_eq!(counts(Grouping::default()), [6, 2, 2]);
    let unwanted = Events::of(&capture, 0, Wanted::default());
    assert_eq!(averages(&[&unwanted], by).len(), 3);
}

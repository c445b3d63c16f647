//! A small capture, listed.

use crate::{Events, Grouping, NO_ROW, averages};
use stepscope_capture::{Capture, Event, MemoryEvent, ProcessIdentity, State, StepRange, Thread};

/// (thread, name, scope, start, end)
pub(crate) fn capture(names: &[&str], events: &[(u32, u32, u8, i64, i64)], steps: &[(i64, i64, i64)]) -> Capture {
    let thread = |ordinal: u32| Thread {
        ordinal,
        tid: 100 + u64::from(ordinal),
        framework_thread: u64::from(ordinal),
        name: String::new(),
    };
    let event = |&(thread, name, scope, start_ns, end_ns): &(u32, u32, u8, i64, i64)| Event {
        thread,
        name,
        scope,
        start_ns,
        end_ns,
        is_unfinished: false,
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
        last_ns: 0,
        facts: vec![],
        threads: vec![thread(0), thread(1)],
        names: names.iter().map(|name| name.to_string()).collect(),
        events: events.iter().map(event).collect(),
        steps: steps.iter().map(step).collect(),
        optimizer_steps: vec![],
        memory: vec![],
        samples: vec![],
        overloads: vec![],
        inputs: vec![],
        ring: None,
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
    let found = Events::of(&capture(&names, &events, &[(4, 100, 160)]), 100);
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
    let found = Events::of(&capture(&["x"], &events, &[(1, 40, 50)]), 0);
    let groups = averages(&[&found, &found], Grouping::default());
    let told: Vec<_> = groups.iter().map(|group| (group.list, group.first, group.count, group.total_ns)).collect();
    assert_eq!(told, [(0, 0, 4, 22), (0, 1, 2, 10), (0, 3, 2, 20)]);
    assert_eq!(groups.iter().map(|group| group.self_ns).sum::<i64>(), 2 * (10 + 5 + 1 + 10));
}

#[test]
fn memory_belongs_to_what_runs_at_that_moment() {
    let mut capture = capture(&["a", "b"], &[(0, 0, 0, 100, 150), (0, 1, 0, 110, 130)], &[]);
    let event = |time_ns, bytes, device_type, address| MemoryEvent {
        thread: 0,
        time_ns,
        address,
        bytes,
        allocated_bytes: None,
        reserved_bytes: None,
        device_type,
        device_index: None,
    };
    // Of another device, and one that failed: neither is the host's.
    capture.memory = vec![
        event(105, 8, 0, Some(1)),
        event(120, 32, 0, Some(2)),
        event(140, -8, 0, Some(1)),
        event(145, 64, 1, Some(3)),
        event(146, 128, 0, None),
        event(200, 256, 0, Some(4)),
    ];
    let found = Events::of(&capture, 100);
    assert_eq!((found.cpu_bytes, found.self_cpu_bytes), (vec![32, 32], vec![0, 32]));
}

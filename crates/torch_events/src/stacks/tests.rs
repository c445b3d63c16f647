//! Small captures with calls, listed.

use crate::events::tests::capture;
use crate::{Events, Grouping, Wanted, averages};
use proptest::prelude::*;
use stepscope_capture::layout::scope::{C_CALL, GARBAGE_COLLECTION, MODULE, PYTHON_CALL};

const NAMES: [&str; 8] =
    ["a.py(1): f", "<built-in function g>", "Net:Net", "Net:Net.b", "op", "label", "gc", "stepscope/x.py(1): own"];

fn stacks(events: &Events) -> Vec<String> {
    let line = |row: usize| {
        let stack: Vec<&str> = events.stack_of(row).collect();
        format!("{} in {}", events.names[events.name[row] as usize], stack.join(" < "))
    };
    (0..events.len()).map(line).collect()
}

#[test]
fn an_event_is_in_the_calls_that_are_open_when_it_begins() {
    // A label outlives the call that enters it, and is around nothing.
    let calls = [
        (0, 0, PYTHON_CALL, 0, 100),
        (0, 1, C_CALL, 10, 20),
        (0, 5, 7, 15, 90),
        (0, 2, MODULE, 30, 60),
        (0, 3, MODULE, 40, 50),
        (0, 4, 0, 41, 42),
        (0, 6, GARBAGE_COLLECTION, 43, 44),
        (0, 4, 0, 70, 80),
    ];
    let events = Events::of(&capture(&NAMES, &calls, &[]), 0, Wanted::default());
    assert_eq!(
        stacks(&events),
        [
            "a.py(1): f in ",
            "<built-in function g> in a.py(1): f",
            "label in <built-in function g> < a.py(1): f",
            "nn.Module: Net_0 in a.py(1): f",
            "nn.Module: Net_1 in nn.Module: Net_0 < a.py(1): f",
            "op in nn.Module: Net_1 < nn.Module: Net_0 < a.py(1): f",
            "op in a.py(1): f",
        ]
    );
    assert_eq!(events.call, [1, 2, 0, 3, 4, 0, 0]);
    assert_eq!(events.caller, [0, 1, 2, 1, 3, 4, 1]);
    assert_eq!(events.scope, [0, 0, 7, 0, 0, 0, 0]);
}

#[test]
fn functions_of_the_recorder_are_not_listed() {
    let calls = [
        (0, 0, PYTHON_CALL, 0, 100),
        (0, 7, PYTHON_CALL, 10, 50),
        (0, 0, PYTHON_CALL, 20, 40),
        (0, 4, 0, 30, 35),
        (0, 0, PYTHON_CALL, 60, 70),
        (1, 0, PYTHON_CALL, 15, 20),
    ];
    let events = Events::of(&capture(&NAMES, &calls, &[]), 0, Wanted::default());
    assert_eq!(stacks(&events).len(), 4);
    assert!(stacks(&events).contains(&"op in a.py(1): f".to_string()));
}

#[test]
fn backward_has_the_stack_of_its_forward_operator() {
    let calls = [
        (0, 0, PYTHON_CALL, 0, 100),
        (0, 1, C_CALL, 10, 20),
        (0, 4, 0, 11, 19),
        (0, 4, 0, 12, 18),
        (1, 4, 0, 50, 90),
        (1, 5, 1, 60, 80),
        (1, 4, 0, 65, 70),
    ];
    let mut capture = capture(&NAMES, &calls, &[]);
    let mut at = 0..;
    capture.events.retain_mut(|event| {
        let forward = match at.next() {
            Some(2) => None,
            Some(4 | 5) => Some(9),
            _ => return true,
        };
        (event.sequence_number, event.forward_thread) = (Some(7), forward);
        true
    });
    capture.threads[0].framework_thread = 9;
    let events = Events::of(&capture, 0, Wanted::default());
    let found = stacks(&events);
    // The engine's range is in what waits for it, and so is what is no backward node's.
    assert_eq!(found[found.len() - 3], "op in a.py(1): f");
    assert_eq!(found[found.len() - 2], "label in <built-in function g> < a.py(1): f");
    assert_eq!(found[found.len() - 1], "op in <built-in function g> < a.py(1): f");
}

#[test]
fn functions_that_torch_leaves_out_stand_in_no_stack() {
    let names = ["torch/autograd/__init__.py(255): backward", "op"];
    let events = Events::of(&capture(&names, &[(0, 0, PYTHON_CALL, 0, 9), (0, 1, 0, 1, 2)], &[]), 0, Wanted::default());
    assert_eq!(stacks(&events), ["torch/autograd/__init__.py(255): backward in ", "op in "]);
    assert_eq!(events.caller, [0, 1]);
}

#[test]
fn folded_stacks_begin_with_the_outermost() {
    let calls = [(0, 0, PYTHON_CALL, 0, 9_000), (0, 1, C_CALL, 1_000, 8_000), (0, 4, 0, 2_000, 4_999)];
    let events = Events::of(&capture(&NAMES, &calls, &[]), 0, Wanted::default());
    let mut text = Vec::new();
    events.write_folded(&mut text, false).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), "a.py(1):_f 4\na.py(1):_f;<built-in_function_g> 2\n");
}

proptest! {
    /// Averages by stack are those of a list of texts, whatever the lists have in common.
    #[test]
    fn averages_by_stack_are_those_of_a_slow_table(
        calls in prop::collection::vec((0_u32..2, 0_u32..5, 0_i64..40, 0_i64..20), 0..30), frames in 0_usize..4
    ) {
        let scopes = [PYTHON_CALL, C_CALL, MODULE, MODULE, 0];
        let mut rows: Vec<_> = calls.iter().map(|(thread, name, start, dur)| {
            (*thread, *name, scopes[*name as usize], *start, start + dur)
        }).collect();
        rows.sort_by_key(|row| (row.0, row.3, std::cmp::Reverse(row.4)));
        let (one, other) = rows.split_at(rows.len() / 2);
        let lists = [one, other].map(|rows| Events::of(&capture(&NAMES, rows, &[]), 0, Wanted::default()));
        let mut expected: Vec<((String, Vec<String>), i64)> = Vec::new();
        for list in &lists {
            for row in 0..list.len() {
                let stack = list.stack_of(row).take(frames).map(String::from).collect();
                let key = (list.names[list.name[row] as usize].clone(), stack);
                match expected.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, count)) => *count += 1,
                    None => expected.push((key, 1)),
                }
            }
        }
        let grouping = Grouping { stack_frames: frames, ..Grouping::default() };
        let found = averages(&[&lists[0], &lists[1]], grouping);
        let found: Vec<_> = found.iter().map(|average| {
            let (list, row) = (&lists[average.list], average.first as usize);
            let stack = list.stack_of(row).take(frames).map(String::from).collect();
            ((list.names[list.name[row] as usize].clone(), stack), average.count)
        }).collect();
        prop_assert_eq!(found, expected);
    }
}

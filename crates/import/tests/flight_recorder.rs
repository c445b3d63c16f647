//! Dumps of the Flight Recorder of all ranks of a job that hung, as one run.

use std::path::Path;
use stepscope_analyses::Selection;
use stepscope_analyses::hangs::{Hang, hangs};
use stepscope_import::open;

fn of_fixture(folder: &str) -> Vec<Hang> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/flight-recorder").join(folder);
    let trace = open(path).expect("a folder of dumps");
    assert_eq!(trace.ranks(), [0, 1, 2, 3]);
    let rows = hangs(&trace, &Selection::default());
    assert!(rows.iter().all(|row| row.group.as_deref() == Some("0") && row.number == 3), "only the group that hangs");
    rows
}

/// Verdicts by rank, with what the rank calls.
fn verdicts(rows: &[Hang]) -> Vec<String> {
    let line = |row: &Hang| {
        format!("{}: {}, {}: {}", row.rank, row.state.as_str(), row.name.as_deref().unwrap_or("-"), row.verdict)
    };
    rows.iter().map(line).collect()
}

#[test]
fn the_rank_that_did_not_call_the_collective_is_named() {
    let expected = [
        "2: never entered, -: ranks 0, 1, 3 wait for it",
        "0: entered, not left, all_reduce: waits for rank 2",
        "1: entered, not left, all_reduce: waits for rank 2",
        "3: entered, not left, all_reduce: waits for rank 2",
    ];
    let rows = of_fixture("missing");
    assert_eq!(verdicts(&rows), expected);
    let stack = rows[0].stack.as_deref().unwrap_or_default();
    assert!(stack.contains("hang.py(34): step;"), "where it called its last collective: {stack}");
}

#[test]
fn the_rank_that_called_another_collective_is_named() {
    let expected = [
        "2: entered, not left, broadcast: calls broadcast, not all_reduce",
        "0: entered, not left, all_reduce: waits for rank 2",
        "1: entered, not left, all_reduce: waits for rank 2",
        "3: entered, not left, all_reduce: waits for rank 2",
    ];
    assert_eq!(verdicts(&of_fixture("other")), expected);
}

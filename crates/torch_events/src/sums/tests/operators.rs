//! Averages against the analysis `operators`, which takes another way: from a trace, and on a tree of its own.

use super::{Does, capture_bytes, thread};
use crate::sums::averages;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use stepscope_analyses::Selection;
use stepscope_analyses::operators::operators;
use stepscope_run::{Exclude, RecordFilter};

/// Averages hide some names and all numbers of steps; the analysis shows what was recorded. Here only what both show
/// is recorded, by operators that begin and end on one thread.
fn shown_by_both(mut threads: Vec<Vec<(u64, Does)>>) -> Vec<Vec<(u64, Does)>> {
    for (_, does) in threads.iter_mut().flatten() {
        match does {
            Does::Begin { name, .. } => *name = [0, 1, 5][*name as usize % 3],
            Does::Rare(_) => *does = Does::End,
            _ => {}
        }
    }
    threads
}

#[test]
fn averages_and_the_analysis_of_operators_agree() {
    let filter = RecordFilter {
        spans: vec![Range { start: 0, end: 6_000 }],
        exclude: Exclude { labels: true, steps: true, calls: true, ..Exclude::default() },
        ..RecordFilter::default()
    };
    let cases = prop::collection::vec(thread(), 1..4).prop_map(shown_by_both);
    let compared = Cell::new(0);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(2_000));
    let result = runner.run(&cases, |threads| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.capture");
        std::fs::write(&path, capture_bytes(&threads)).unwrap();
        let sums = averages(&path, &filter, false).unwrap().into_iter();
        let sums = sums.map(|row| (row.name, [row.sums.count, row.sums.total_ns, row.sums.self_ns]));
        let trace = stepscope_import::open_filtered(&path, &filter).unwrap();
        let rows = operators(&trace, &Selection::default()).into_iter();
        let rows = rows.map(|row| (row.label.name, [row.count, row.host_total_ns, row.host_self_ns]));
        let (sums, rows): (BTreeMap<_, _>, BTreeMap<_, _>) = (sums.collect(), rows.collect());
        compared.set(compared.get() + rows.len());
        prop_assert_eq!(sums, rows);
        Ok(())
    });
    result.unwrap();
    assert!(compared.get() > 2_000, "{} operators", compared.get());
}

//! When tables are made again, and when not.

use super::{KeptTables, kept_tables};
use crate::tables::tests::{ints, read};
use stepscope_engine::{OpenOptions, OpenedRun, Progress};

#[test]
fn tables_are_made_again_only_when_something_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    let write = |dur: u32| {
        let event = format!(r#"{{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1000,"dur":{dur}}}"#);
        std::fs::write(&path, format!(r#"{{"traceEvents": [{event}]}}"#)).unwrap();
    };
    let kept = |options: &OpenOptions| {
        let paths = [path.clone()];
        kept_tables(&paths, options, || OpenedRun::open(&paths, options, &Progress::default())).unwrap()
    };
    write(7);
    let options = OpenOptions::default();
    let first = kept(&options);
    assert!(first.is_new && first.folder.parent() == Some(&folder.path().join(".stepscope")));
    assert_eq!(kept(&options), KeptTables { is_new: false, ..first.clone() });
    write(15);
    let second = kept(&options);
    assert!(second.is_new);
    let durations = |kept: &KeptTables| ints(&read(&kept.folder.join("slice/rank-0.parquet")), "dur_ns");
    // Who still reads the tables of before is not disturbed.
    assert_eq!((durations(&first), durations(&second)), (vec![Some(7_000)], vec![Some(15_000)]));
    // A folder of tables is taken as it is.
    let paths = [second.folder.clone()];
    let itself = kept_tables(&paths, &options, || unreachable!("it is not opened")).unwrap();
    assert_eq!((itself.folder, itself.is_new), (second.folder, false));
}

#[test]
fn a_trace_that_is_replaced_while_it_is_read_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    let write = |count: usize| {
        let event = |at: usize| format!(r#"{{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":{at},"dur":1}}"#);
        let events: Vec<String> = (0..count).map(|at| event(at * 10)).collect();
        std::fs::write(&path, format!(r#"{{"traceEvents": [{}]}}"#, events.join(","))).unwrap();
    };
    write(2);
    let (paths, options) = ([path.clone()], OpenOptions::default());
    let reads = std::sync::atomic::AtomicUsize::new(0);
    let open = || {
        let run = OpenedRun::open(&paths, &options, &Progress::default());
        if reads.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0 {
            write(5);
        }
        run
    };
    let rows = |kept: &KeptTables| ints(&read(&kept.folder.join("slice/rank-0.parquet")), "slice").len();
    let kept = kept_tables(&paths, &options, open).unwrap();
    assert_eq!((rows(&kept), kept.is_new), (5, true));
    // One that changes at each reading gives what was read, which nobody else takes for the tables of the run.
    let changing = |count: usize| {
        write(count);
        kept_tables(&paths, &options, || {
            let run = OpenedRun::open(&paths, &options, &Progress::default());
            write(reads.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 20);
            run
        })
        .unwrap()
    };
    assert!(changing(9).is_new && changing(9).is_new);
    let last = kept_tables(&paths, &options, || OpenedRun::open(&paths, &options, &Progress::default())).unwrap();
    assert_eq!(rows(&last), reads.into_inner() + 19);
}

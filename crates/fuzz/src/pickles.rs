//! Pickles: memory snapshots and dumps of the Flight Recorder of PyTorch.

use crate::sound;
use stepscope_import::open_bytes;

/// A pickle gives a sound trace or an error, the same one each time, and no total of it is below 0.
///
/// # Panics
/// When that is not so.
pub fn memory_snapshot(bytes: &[u8]) {
    // Other first bytes are those of other forms.
    let bytes = [b"\x80\x04".as_slice(), bytes.get(2..).unwrap_or_default()].concat();
    match (open_bytes("snapshot.pickle", &bytes), open_bytes("snapshot.pickle", &bytes)) {
        (Ok(once), Ok(again)) => {
            sound::check(&once);
            assert_eq!(format!("{once:?}"), format!("{again:?}"), "reading is deterministic");
            let totals = once.memory.iter().flat_map(|event| [event.allocated_bytes, event.reserved_bytes]);
            assert!(totals.flatten().all(|total| total >= 0), "no total is below 0");
            let stacks = once.memory.iter().filter_map(|event| event.stack);
            stacks.for_each(|stack| assert!(once.stacks.frames(stack).next().is_some(), "a stack has a frame"));
        }
        (Err(once), Err(again)) => assert_eq!(once.to_string(), again.to_string()),
        (once, again) => panic!("once {:?}, again {:?}", once.err(), again.err()),
    }
}

/// A dump of the Flight Recorder, as a pickle or as JSON, gives a sound trace or an error, the same one each time; each of
/// its collectives has a slice of its own.
///
/// # Panics
/// When that is not so.
pub fn flight_recorder(bytes: &[u8]) {
    match (open_bytes("trace_rank_1", bytes), open_bytes("trace_rank_1", bytes)) {
        (Ok(once), Ok(again)) => {
            sound::check(&once);
            assert_eq!(format!("{once:?}"), format!("{again:?}"), "reading is deterministic");
            assert!(once.collectives.is_sorted_by(|a, b| a.slice < b.slice), "a collective has a slice of its own");
        }
        (Err(once), Err(again)) => assert_eq!(once.to_string(), again.to_string()),
        (once, again) => panic!("once {:?}, again {:?}", once.err(), again.err()),
    }
}

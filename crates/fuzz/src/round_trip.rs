//! Chrome JSON that we write is read back as it was.

use crate::sound;
use std::collections::BTreeMap;
use stepscope_import::open_bytes;
use stepscope_trace::Trace;

/// Whatever trace these bytes are: written as Chrome JSON it has the same slices and device work, and what was written
/// once is written again to the byte.
///
/// # Panics
/// When that is not so.
pub fn round_trip(bytes: &[u8]) {
    let Ok(trace) = open_bytes("trace.json", bytes) else { return };
    let first = written(&trace);
    let Ok(again) = open_bytes("trace.json", &first) else {
        assert_eq!(told(&trace), told(&Trace::default()), "only an empty trace is none");
        return;
    };
    sound::check(&again);
    assert_eq!(told(&trace), told(&again), "the same slices and device work");
    let second = written(&again);
    let third = written(&open_bytes("trace.json", &second).expect("what was written is read"));
    assert!(second == third, "what was written once is written again to the byte");
}

fn written(trace: &Trace) -> Vec<u8> {
    let mut bytes = Vec::new();
    stepscope_export::write_chrome(trace, &mut bytes).expect("memory takes everything");
    bytes
}

/// Slices by kind with their summed time, device events with those that have a launch and an operator.
fn told(trace: &Trace) -> BTreeMap<String, i128> {
    let mut sums = BTreeMap::new();
    let mut add = |what: String, number: i64| *sums.entry(what).or_insert(0) += i128::from(number);
    for id in trace.slices.ids() {
        let kind = trace.slices.kind(id).as_str();
        add(format!("{kind} slices"), 1);
        add(format!("{kind} ns"), trace.slices.dur_ns[id.index()]);
    }
    for event in trace.device_events.iter() {
        add(format!("{} events", event.class.as_str()), 1);
        add("with a launch".into(), event.launch.is_some().into());
        add("with an operator".into(), event.op.is_some().into());
        add("bytes".into(), event.bytes.unwrap_or(0));
    }
    add("instants".into(), trace.instants.len() as i64);
    add("allocations".into(), trace.memory.len() as i64);
    add("waits".into(), trace.synchronizations.len() as i64);
    sums
}

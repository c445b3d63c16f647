//! What a process sampled of itself.

use std::collections::BTreeMap;
use stepscope_capture::Capture;
use stepscope_trace::{Counter, ProcessId, TraceBuilder};

/// Adds a counter for each quantity that was sampled.
pub(super) fn add_counters(capture: &Capture, offset_ns: i64, process: ProcessId, builder: &mut TraceBuilder) {
    let mut samples: BTreeMap<u32, (Vec<i64>, Vec<f64>)> = BTreeMap::new();
    for sample in &capture.samples {
        let (times, values) = samples.entry(sample.name).or_default();
        times.push(super::place_ns(sample.time_ns, offset_ns));
        values.push(sample.value as f64);
    }
    for (name, (time_ns, value)) in samples {
        let name = builder.strings.intern(&capture.names[name as usize]);
        builder.add_counter(Counter { name, process, device: None, time_ns, value });
    }
}

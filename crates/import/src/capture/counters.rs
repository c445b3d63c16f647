//! What a process sampled of itself and of its devices.

use super::AlignedCapture;
use super::devices::Devices;
use std::collections::BTreeMap;
use stepscope_capture::Sample;
use stepscope_capture::layout::RANGE_NUMBER;
use stepscope_trace::{Counter, ProcessId, TraceBuilder};

/// Adds a counter for each quantity that was sampled.
pub(super) fn add_counters(
    aligned: &AlignedCapture<'_>,
    (process, rank): (ProcessId, u32),
    devices: &mut Devices,
    builder: &mut TraceBuilder,
) {
    let AlignedCapture { capture, offset_ns, .. } = *aligned;
    let mut samples: BTreeMap<u32, (Vec<i64>, Vec<f64>)> = BTreeMap::new();
    let is_quantity = |sample: &&Sample| capture.names[sample.name as usize] != RANGE_NUMBER;
    for sample in capture.samples.iter().filter(is_quantity) {
        let (times, values) = samples.entry(sample.name).or_default();
        times.push(super::shifted_ns(sample.time_ns, offset_ns));
        values.push(sample.value as f64);
    }
    for (name, (time_ns, value)) in samples {
        let text = &capture.names[name as usize];
        let device = device_of(text).map(|ordinal| devices.of(rank, ordinal, builder));
        let name = builder.strings.intern(text);
        builder.add_counter(Counter { name, process, device, time_ns, value });
    }
}

/// The device that a quantity is of: the recorder says it in the name, `GPU 0: power (mW)`.
fn device_of(name: &str) -> Option<i64> {
    let (number, _) = name.strip_prefix("GPU ")?.split_once([':', ' '])?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_say_their_device() {
        assert_eq!(device_of("GPU 0: utilization (%)"), Some(0));
        assert_eq!(device_of("GPU 12: SM clock (MHz)"), Some(12));
        for other in ["GPU: power", "GPU x: power", "GPU", "GPU 0", "gpu 0: power", "allocated bytes", "GPU +1: x"] {
            assert_eq!(device_of(other), None, "{other}");
        }
    }
}

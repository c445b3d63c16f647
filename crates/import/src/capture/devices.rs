//! The devices that a run's processes use, and what their processes say of them.

use super::fact;
use serde_json::Value;
use std::collections::HashMap;
use stepscope_capture::Capture;
use stepscope_trace::{Device, DeviceId, TraceBuilder};

/// The fact that lists them.
const FACT: &str = "devices";

/// By rank and number; a process uses one kind of devices beside the host.
#[derive(Default)]
pub(super) struct Devices {
    ids: HashMap<(u32, i64), DeviceId>,
    /// What the process that is read says of its devices.
    said: Vec<Device>,
}

impl Devices {
    /// Takes in what a process says of its devices; each call of [`of`](Self::of) up to the next one is of that process.
    pub(super) fn learn(&mut self, capture: &Capture, rank: u32) {
        let listed: Vec<Value> =
            fact(capture, FACT).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        self.said = listed.iter().map(|said| device_of(said, rank)).collect();
    }

    /// The device with this number.
    pub(super) fn of(&mut self, rank: u32, ordinal: i64, builder: &mut TraceBuilder) -> DeviceId {
        let Self { ids, said } = self;
        *ids.entry((rank, ordinal)).or_insert_with(|| {
            let said = said.iter().find(|device| device.ordinal == ordinal);
            builder.add_device(said.cloned().unwrap_or(Device { rank, ordinal, ..Device::default() }))
        })
    }
}

fn device_of(said: &Value, rank: u32) -> Device {
    let whole = |key: &str| said.get(key).and_then(Value::as_i64);
    let small = |key: &str| whole(key).and_then(|number| u32::try_from(number).ok());
    Device {
        rank,
        ordinal: whole("index").unwrap_or(0),
        name: said.get("name").and_then(Value::as_str).map(str::to_string),
        memory_bytes: whole("memory_bytes"),
        sm_count: small("sm_count"),
        compute_capability: small("compute_capability_major").zip(small("compute_capability_minor")),
        max_threads_per_sm: small("max_threads_per_sm"),
        warp_size: small("warp_size"),
        registers_per_sm: small("registers_per_sm"),
        shared_bytes_per_sm: whole("shared_bytes_per_sm"),
    }
}

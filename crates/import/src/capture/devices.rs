//! The devices that a run's processes use, and what their processes say of them.

use super::metadata_value;
use serde_json::Value;
use std::collections::HashMap;
use stepscope_capture::Capture;
use stepscope_trace::{Device, DeviceId, TraceBuilder};

/// The metadata key that lists them.
const KEY: &str = "devices";

/// By rank and number; a process uses one kind of devices beside the host.
#[derive(Default)]
pub(super) struct Devices {
    ids: HashMap<(u32, i64), DeviceId>,
    /// The devices that the process that is read lists in its metadata.
    listed_devices: Vec<Device>,
}

impl Devices {
    /// Takes in what a process says of its devices; each call of [`of`](Self::of) up to the next one is of that
    /// process.
    pub(super) fn learn(&mut self, capture: &Capture, rank: u32, builder: &mut TraceBuilder) {
        self.listed_devices = listed(capture).iter().map(|entry| device_of(entry, rank)).collect();
        // Another process of the rank may have used it without a word.
        for device in &self.listed_devices {
            let known = self.ids.get(&(rank, device.ordinal)).map(|id| builder.device_mut(*id));
            known.filter(|known| known.name.is_none()).into_iter().for_each(|known| known.clone_from(device));
        }
    }

    /// The device with this number.
    pub(super) fn of(&mut self, rank: u32, ordinal: i64, builder: &mut TraceBuilder) -> DeviceId {
        let Self { ids, listed_devices } = self;
        *ids.entry((rank, ordinal)).or_insert_with(|| {
            let listed = listed_devices.iter().find(|device| device.ordinal == ordinal);
            builder.add_device(listed.cloned().unwrap_or(Device { rank, ordinal, ..Device::default() }))
        })
    }
}

/// What a process says of the devices that it uses, one object each.
pub(super) fn listed(capture: &Capture) -> Vec<Value> {
    metadata_value(capture, KEY).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Versions of driver and runtime, as `torch.profiler` names and writes them: 12.4 is 12040.
pub(super) fn versions(capture: &Capture) -> Vec<(String, String)> {
    let listed = listed(capture);
    let Some(first) = listed.first() else { return Vec::new() };
    let vendor = first.get("type").and_then(Value::as_str).unwrap_or("cuda");
    let version = |of: &str| {
        let text = first.get(format!("{of}_version"))?.as_str()?;
        let number = text.split_once('.').and_then(|(major, minor)| {
            let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
            Some(major.checked_mul(1_000)?.checked_add(minor.checked_mul(10)?)?.to_string())
        });
        let number = number.filter(|_| vendor == "cuda");
        Some((format!("{vendor}_{of}_version"), number.unwrap_or_else(|| text.to_string())))
    };
    ["runtime", "driver"].into_iter().filter_map(version).collect()
}

fn device_of(entry: &Value, rank: u32) -> Device {
    let whole = |key: &str| entry.get(key).and_then(Value::as_i64);
    let small = |key: &str| whole(key).and_then(|number| u32::try_from(number).ok());
    Device {
        rank,
        ordinal: whole("index").unwrap_or(0),
        name: entry.get("name").and_then(Value::as_str).map(str::to_string),
        memory_bytes: whole("memory_bytes"),
        sm_count: small("sm_count"),
        compute_capability: small("compute_capability_major").zip(small("compute_capability_minor")),
        max_threads_per_sm: small("max_threads_per_sm"),
        warp_size: small("warp_size"),
        registers_per_sm: small("registers_per_sm"),
        shared_bytes_per_sm: whole("shared_bytes_per_sm"),
    }
}

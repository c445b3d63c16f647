//! The link of a device by PCIe, as the recorder samples it.

use stepscope_trace::{Counter, DeviceId, Trace};

/// What a lane of each generation of PCIe carries, MB/s.
const LANE_MB_PER_S: [i64; 6] = [250, 500, 985, 1_969, 3_938, 7_563];

/// Devices whose copies from and to the host take another link, NVLink-C2C.
const WITH_OTHER_LINK: [&str; 3] = ["GH200", "GB200", "GB300"];

/// A link by PCIe.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PcieLink {
    pub(crate) generation: i64,
    pub(crate) lanes: i64,
    /// What it carries in each direction.
    pub(crate) bytes_per_s: i64,
}

impl PcieLink {
    fn new(generation: i64, lanes: i64) -> Option<Self> {
        let lane = LANE_MB_PER_S.get(usize::try_from(generation.checked_sub(1)?).ok()?)?;
        let bytes_per_s = lane.checked_mul(1_000_000)?.checked_mul(lanes)?;
        (lanes > 0).then_some(Self { generation, lanes, bytes_per_s })
    }

    /// What the link of a device was when it was sampled: it is slow while it has nothing to do.
    pub(crate) fn samples(trace: &Trace, device: DeviceId) -> impl Iterator<Item = (i64, Self)> {
        let name = trace.devices[device.index()].name.as_deref().unwrap_or_default();
        let has_other_link = WITH_OTHER_LINK.iter().any(|model| name.contains(model));
        let counters = device_counter(trace, device, "PCIe generation")
            .zip(device_counter(trace, device, "PCIe width (lanes)"))
            .filter(|_| !has_other_link);
        counters.into_iter().flat_map(|(generation, lanes)| {
            lanes.time_ns.iter().zip(&lanes.value).filter_map(|(time_ns, lanes)| {
                let before = generation.time_ns.partition_point(|other_ns| other_ns <= time_ns);
                let generation = generation.value[before.checked_sub(1)?];
                Some((*time_ns, Self::new(generation as i64, *lanes as i64)?))
            })
        })
    }

    /// The fastest that the device and its slot could have.
    pub(crate) fn highest(trace: &Trace, device: DeviceId) -> Option<Self> {
        let highest = |what| {
            let counter = device_counter(trace, device, what)?;
            counter.value.iter().map(|value| *value as i64).max()
        };
        Self::new(highest("PCIe generation highest")?, highest("PCIe width highest (lanes)")?)
    }
}

/// What was sampled of a device, as the recorder names it: `GPU 0 power (mW)`. Which process of the rank sampled it is the
/// same.
pub(crate) fn device_counter<'a>(trace: &'a Trace, device: DeviceId, what: &str) -> Option<&'a Counter> {
    let device = &trace.devices[device.index()];
    let name = format!("GPU {} {what}", device.ordinal);
    let is_of_rank = |counter: &&Counter| trace.processes[counter.process.index()].rank == device.rank;
    let mut counters = trace.counters.iter().filter(is_of_rank);
    counters.find(|counter| trace.strings.get(counter.name) == name)
}

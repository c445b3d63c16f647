//! The occupancy of a launch, from what the launch asks for and what a multiprocessor of its device has.
//!
//! This is the arithmetic of NVIDIA's occupancy calculator for compute capability 7.0 and later. A multiprocessor holds
//! as many blocks of a launch as the scarcest of four things allows: block slots, warps, registers (given out to warps
//! in units of 256, from four equal parts of the register file), and shared memory (given out to blocks in units of 128
//! bytes, 256 before 8.0; from 8.0 on the system keeps 1 KiB of each block for itself). A grid that has fewer blocks for
//! each multiprocessor holds only those. Occupancy is the threads of these blocks over the threads that fit.
//!
//! Devices of AMD have none. Their compute units are built otherwise (CDNA: four SIMDs of eight waves of 64, which share
//! 512 vector registers for each lane, accumulators among them, and 64 KiB of local memory, 160 KiB from CDNA4 on), and
//! what decides there, the vector registers of a kernel, no trace has: Kineto writes none for ROCm.

use stepscope_trace::{Device, DeviceEvent};

/// What one multiprocessor has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Limits {
    warp_size: u64,
    threads: u64,
    blocks: u64,
    registers: u64,
    shared_bytes: u64,
    shared_unit_bytes: u64,
    reserved_shared_bytes: u64,
}

/// By compute capability: threads, blocks, KiB of shared memory that a multiprocessor holds.
const CAPABILITIES: [((u32, u32), [u64; 3]); 13] = [
    ((7, 0), [2_048, 32, 96]),
    ((7, 2), [2_048, 32, 96]),
    ((7, 5), [1_024, 16, 64]),
    ((8, 0), [2_048, 32, 164]),
    ((8, 6), [1_536, 16, 100]),
    ((8, 7), [1_536, 16, 164]),
    ((8, 9), [1_536, 24, 100]),
    ((9, 0), [2_048, 32, 228]),
    ((10, 0), [2_048, 32, 228]),
    ((10, 3), [2_048, 32, 228]),
    ((11, 0), [1_536, 24, 228]),
    ((12, 0), [1_536, 24, 100]),
    ((12, 1), [1_536, 24, 100]),
];

const REGISTERS: u64 = 65_536;
const REGISTER_PARTS: u64 = 4;
const REGISTER_UNIT: u64 = 256;
const MAX_THREADS_OF_BLOCK: u64 = 1_024;

/// Occupancy of a kernel's launch, in 0..=1: as recorded, or else computed.
///
/// A recorded 0 does not count where it can be computed: a kernel that ran has an occupancy, but Kineto rounds to whole
/// percents and says 0 of every block with more than 48 KiB of shared memory.
pub fn occupancy_ratio(event: &DeviceEvent, device: &Device) -> Option<f64> {
    let recorded = event.occupancy_ratio.map(f64::from);
    recorded.filter(|ratio| *ratio > 0.0).or_else(|| computed_occupancy_ratio(event, device)).or(recorded)
}

/// Occupancy of the multiprocessors that run `event`'s kernel, in 0..=1; `None` when the launch or the device is not
/// known well enough, or the device is none that the arithmetic holds for.
pub fn computed_occupancy_ratio(event: &DeviceEvent, device: &Device) -> Option<f64> {
    let limits = limits(device)?;
    let threads = event.block?.into_iter().try_fold(1_u64, |product, size| product.checked_mul(u64::from(size)))?;
    let blocks = resident_blocks(&limits, threads, u64::from(event.registers?), event.shared_bytes?)?;
    let launched = blocks_per_sm(event, device)?;
    Some(launched.min(blocks as f64) * threads as f64 / limits.threads as f64)
}

/// Blocks of a launch over the device's multiprocessors, as recorded or else from the grid.
pub fn blocks_per_sm(event: &DeviceEvent, device: &Device) -> Option<f64> {
    let from_grid = || {
        let blocks: f64 = event.grid?.into_iter().map(f64::from).product();
        Some(blocks / f64::from(device.sm_count.filter(|count| *count > 0)?))
    };
    event.blocks_per_sm.map(f64::from).or_else(from_grid)
}

/// True for devices of AMD. Not all have waves of 64, and their versions are numbers that compute capabilities have too:
/// gfx1030 is 10.3, gfx1100 is 11.0.
fn is_of_amd(device: &Device) -> bool {
    let name = device.name.as_deref().unwrap_or("").to_lowercase();
    device.warp_size == Some(64) || ["amd", "radeon", "instinct"].iter().any(|word| name.contains(word))
}

fn limits(device: &Device) -> Option<Limits> {
    let capability = device.compute_capability.filter(|_| !is_of_amd(device))?;
    let (_, [threads, blocks, shared_kib]) = CAPABILITIES.into_iter().find(|(known, _)| *known == capability)?;
    let warp_size = u64::from(device.warp_size.unwrap_or(32));
    let is_before_8 = capability < (8, 0);
    (warp_size == 32).then(|| Limits {
        warp_size,
        threads: device.max_threads_per_sm.map(u64::from).filter(|count| *count >= warp_size).unwrap_or(threads),
        blocks,
        registers: device.registers_per_sm.map(u64::from).filter(|count| *count > 0).unwrap_or(REGISTERS),
        shared_bytes: device
            .shared_bytes_per_sm
            .and_then(|bytes| u64::try_from(bytes).ok())
            .filter(|bytes| *bytes > 0)
            .unwrap_or(shared_kib << 10),
        shared_unit_bytes: if is_before_8 { 256 } else { 128 },
        reserved_shared_bytes: if is_before_8 { 0 } else { 1 << 10 },
    })
}

/// Blocks that one multiprocessor holds at a time; `None` when it can hold none, so that the launch cannot be as said.
fn resident_blocks(limits: &Limits, threads: u64, registers: u64, shared_bytes: u64) -> Option<u64> {
    if threads == 0 || threads > MAX_THREADS_OF_BLOCK {
        return None;
    }
    let warps = threads.div_ceil(limits.warp_size);
    let by_warps = limits.threads / limits.warp_size / warps;
    let by_registers = if registers == 0 {
        u64::MAX
    } else {
        let of_warp = (registers * limits.warp_size).next_multiple_of(REGISTER_UNIT);
        limits.registers / REGISTER_PARTS / of_warp * REGISTER_PARTS / warps
    };
    let of_block = shared_bytes.checked_add(limits.reserved_shared_bytes + limits.shared_unit_bytes)?;
    let of_block = (of_block - limits.shared_unit_bytes).next_multiple_of(limits.shared_unit_bytes);
    let by_shared = limits.shared_bytes.checked_div(of_block).unwrap_or(u64::MAX);
    let blocks = limits.blocks.min(by_warps).min(by_registers).min(by_shared);
    (blocks > 0).then_some(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::{DeviceEventClass, DeviceId, SliceId};

    fn device(capability: (u32, u32)) -> Device {
        Device { compute_capability: Some(capability), sm_count: Some(100), warp_size: Some(32), ..Device::default() }
    }

    /// Occupancy in percent of a launch that has more blocks than fit.
    fn percent(capability: (u32, u32), threads: u32, registers: u32, shared_bytes: u64) -> Option<f64> {
        let event = DeviceEvent {
            grid: Some([1_000_000, 1, 1]),
            block: Some([threads, 1, 1]),
            registers: Some(registers),
            shared_bytes: Some(shared_bytes),
            ..DeviceEvent::new(SliceId(0), DeviceId(0), DeviceEventClass::Compute)
        };
        let ratio = computed_occupancy_ratio(&event, &device(capability))?;
        Some((ratio * 10_000.0).round() / 100.0)
    }

    #[test]
    fn answers_are_those_of_the_occupancy_calculator() {
        // Warps: 1,024 threads are 32 of 48 warps; two blocks do not fit.
        assert_eq!(percent((8, 6), 1_024, 32, 0), Some(66.67));
        assert_eq!(percent((7, 5), 1_024, 32, 0), Some(100.0));
        // Block slots: small blocks.
        assert_eq!(percent((7, 0), 32, 16, 0), Some(50.0));
        assert_eq!(percent((8, 0), 32, 16, 0), Some(50.0));
        assert_eq!(percent((8, 6), 32, 16, 0), Some(33.33));
        assert_eq!(percent((8, 9), 32, 16, 0), Some(50.0));
        // Registers.
        assert_eq!(percent((8, 0), 256, 32, 0), Some(100.0));
        assert_eq!(percent((8, 0), 256, 33, 0), Some(75.0));
        assert_eq!(percent((8, 0), 256, 40, 0), Some(75.0));
        assert_eq!(percent((8, 0), 256, 64, 0), Some(50.0));
        assert_eq!(percent((8, 0), 256, 128, 0), Some(25.0));
        assert_eq!(percent((8, 0), 256, 255, 0), Some(12.5));
        assert_eq!(percent((9, 0), 384, 168, 0), Some(18.75));
        // Shared memory.
        assert_eq!(percent((7, 0), 256, 32, 48 << 10), Some(25.0));
        assert_eq!(percent((8, 0), 128, 32, 80 << 10), Some(12.5));
        assert_eq!(percent((8, 0), 128, 32, 48 << 10), Some(18.75));
        assert_eq!(percent((9, 0), 128, 32, 227 << 10), Some(6.25));
    }

    #[test]
    fn a_launch_that_cannot_run_or_a_device_that_is_not_known_has_none() {
        assert_eq!(percent((8, 0), 1_025, 32, 0), None);
        assert_eq!(percent((8, 0), 0, 32, 0), None);
        assert_eq!(percent((8, 0), 1_024, 255, 0), None);
        assert_eq!(percent((8, 0), 128, 32, u64::MAX), None);
        assert_eq!(percent((3, 5), 128, 32, 0), None);
        let event = DeviceEvent::new(SliceId(0), DeviceId(0), DeviceEventClass::Compute);
        assert_eq!(computed_occupancy_ratio(&event, &device((8, 0))), None);
    }

    #[test]
    fn a_small_grid_fills_less() {
        let event = DeviceEvent {
            block: Some([16, 8, 1]),
            registers: Some(32),
            shared_bytes: Some(0),
            blocks_per_sm: Some(0.5),
            ..DeviceEvent::new(SliceId(0), DeviceId(0), DeviceEventClass::Compute)
        };
        assert_eq!(computed_occupancy_ratio(&event, &device((8, 0))), Some(0.5 * 128.0 / 2_048.0));
        let recorded = |ratio| occupancy_ratio(&DeviceEvent { occupancy_ratio: Some(ratio), ..event }, &device((8, 0)));
        assert_eq!((recorded(0.75), recorded(0.0)), (Some(0.75), Some(0.5 * 128.0 / 2_048.0)));
        let amd = Device { warp_size: Some(64), ..device((9, 0)) };
        let radeon = Device { name: Some("AMD Radeon RX 7900 XTX".into()), ..device((11, 0)) };
        let nvidia = Device { name: Some("NVIDIA Thor".into()), ..device((11, 0)) };
        let computed = [amd, radeon, nvidia].map(|device| computed_occupancy_ratio(&event, &device));
        assert_eq!(computed, [None, None, Some(0.5 * 128.0 / 1_536.0)]);
    }
}

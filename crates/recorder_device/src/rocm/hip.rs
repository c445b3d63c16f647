//! The devices that HIP has (`libamdhip64.so`).

use crate::fields::Fields;
use crate::{DeviceProperties, Library};
use std::path::{Path, PathBuf};

type Count = unsafe extern "C" fn(*mut i32) -> i32;
type Properties = unsafe extern "C" fn(*mut u8, i32) -> i32;
type Version = unsafe extern "C" fn(*mut i32) -> i32;

/// `hipDeviceProp_tR0600`, of ROCm 6 and later.
mod layout {
    pub(super) const BYTES: usize = 1472;
    pub(super) const NAME: std::ops::Range<usize> = 0..256;
    pub(super) const MEMORY: usize = 288;
    pub(super) const WARP: usize = 308;
    pub(super) const MAJOR: usize = 360;
    pub(super) const MINOR: usize = 364;
    pub(super) const PROCESSORS: usize = 388;
    pub(super) const THREADS: usize = 624;
    pub(super) const SHARED: usize = 640;
    pub(super) const REGISTERS: usize = 648;
    pub(super) const ARCHITECTURE: std::ops::Range<usize> = 1160..1416;
}

const NAMES: &[&str] = &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"];
/// The most devices that are looked at.
const MOST: i32 = 64;

/// The devices, by HIP's numbers, which are PyTorch's. Begins to use them, unless the process does.
pub(super) fn devices(hip: Library) -> Vec<DeviceProperties> {
    // SAFETY: the types are those of `hip_runtime_api.h`.
    let (count, properties, runtime, driver) = unsafe {
        (
            hip.function::<Count>(c"hipGetDeviceCount"),
            hip.function::<Properties>(c"hipGetDevicePropertiesR0600"),
            hip.function::<Version>(c"hipRuntimeGetVersion"),
            hip.function::<Version>(c"hipDriverGetVersion"),
        )
    };
    let (Some(count), Some(properties)) = (count, properties) else { return Vec::new() };
    let version = |read: Option<Version>| {
        let mut version = 0;
        // SAFETY: the address of a number.
        let status = unsafe { read?(&raw mut version) };
        (status == 0 && version > 0).then(|| version_text(version))
    };
    let (runtime_version, driver_version) = (version(runtime), version(driver));
    let mut found = 0;
    // SAFETY: the address of a number.
    if unsafe { count(&raw mut found) } != 0 {
        return Vec::new();
    }
    let device = |index: i32| {
        // Words, for their alignment, and room for what a later release may add.
        let mut words = vec![0u64; layout::BYTES / 8 * 2];
        // SAFETY: more room than the structure has, which the function of this name fills.
        let status = unsafe { properties(words.as_mut_ptr().cast(), index) };
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let found = properties_of(index, &bytes);
        let versions = DeviceProperties {
            runtime_version: runtime_version.clone(),
            driver_version: driver_version.clone(),
            ..found
        };
        (status == 0).then_some(versions)
    };
    (0..found.clamp(0, MOST)).filter_map(device).collect()
}

/// HIP, where the process has it loaded already.
pub(super) fn loaded() -> Option<Library> {
    NAMES.iter().find_map(|name| Library::loaded(Path::new(name)))
}

/// HIP, as it lies beside other libraries of ROCm, or where the system's loader finds it.
pub(super) fn load(beside: &[PathBuf]) -> Option<Library> {
    let folders = beside.iter().filter_map(|path| path.parent()).chain([Path::new("")]);
    let mut paths = folders.flat_map(|folder| NAMES.iter().map(move |name| folder.join(name)));
    paths.find_map(|path| Library::load(&path).ok())
}

fn properties_of(index: i32, bytes: &[u8]) -> DeviceProperties {
    let fields = Fields(bytes);
    let number = |at| Some(u64::from(fields.u32(at))).filter(|number| *number > 0);
    let long = |at| Some(fields.u64(at)).filter(|number| *number > 0);
    let text = |range: std::ops::Range<usize>| {
        let text = bytes[range].split(|byte| *byte == 0).next().unwrap_or_default();
        Some(String::from_utf8_lossy(text).into_owned()).filter(|text| !text.is_empty())
    };
    let major = number(layout::MAJOR);
    DeviceProperties {
        kind: "hip",
        index: index as u32,
        name: text(layout::NAME).or_else(|| text(layout::ARCHITECTURE)),
        memory_bytes: long(layout::MEMORY),
        sm_count: number(layout::PROCESSORS),
        compute_capability_major: major,
        compute_capability_minor: major.map(|_| u64::from(fields.u32(layout::MINOR))),
        max_threads_per_sm: number(layout::THREADS),
        warp_size: number(layout::WARP),
        registers_per_sm: number(layout::REGISTERS),
        shared_bytes_per_sm: long(layout::SHARED),
        ..DeviceProperties::default()
    }
}

/// `6.2.41133` of 60241133.
fn version_text(version: i32) -> String {
    format!("{}.{}.{}", version / 10_000_000, version / 100_000 % 100, version % 100_000)
}

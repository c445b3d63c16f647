//! The devices that Intel's driver has, by Level Zero (`libze_loader.so.1`).

use crate::fields::Fields;
use crate::{DeviceProperties, Library, Refusal};
use std::path::Path;

type Init = unsafe extern "C" fn(u32) -> u32;
type List = unsafe extern "C" fn(usize, *mut u32, *mut usize) -> u32;
type Drivers = unsafe extern "C" fn(*mut u32, *mut usize) -> u32;
type Properties = unsafe extern "C" fn(usize, *mut u8) -> u32;
type Memories = unsafe extern "C" fn(usize, *mut u32, *mut u8) -> u32;

/// Loaded by whatever uses the devices.
const LOADER: &str = "libze_loader.so.1";
/// The most drivers, devices or memories that are looked at.
const MOST: usize = 64;

/// `ze_device_properties_t`, `ze_driver_properties_t` and `ze_device_memory_properties_t`: what says which of them it
/// is, how long it is, and where in it things stand.
mod layout {
    pub(super) const DEVICE: (u32, usize) = (3, 368);
    pub(super) const TYPE: usize = 16;
    pub(super) const SUBSLICES: usize = 68;
    pub(super) const SLICES: usize = 72;
    pub(super) const UUID: usize = 96;
    pub(super) const NAME: std::ops::Range<usize> = 112..368;
    pub(super) const DRIVER: (u32, usize) = (1, 40);
    pub(super) const DRIVER_VERSION: usize = 32;
    pub(super) const MEMORY: (u32, usize) = (7, 296);
    pub(super) const MEMORY_BYTES: usize = 32;
    /// The type of a device that is a GPU.
    pub(super) const GPU: u32 = 1;
}

/// A GPU, and what identifies it everywhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Gpu {
    pub(super) uuid: [u8; 16],
    pub(super) properties: DeviceProperties,
}

/// The loader's functions, from `library` if it has them.
fn loader(library: Library) -> Option<Library> {
    // SAFETY: only whether it is there is looked at.
    let is_in = unsafe { library.function::<Init>(c"zeInit") }.is_some();
    if is_in { Some(library) } else { Library::load(Path::new(LOADER)).ok() }
}

/// The GPUs, in the driver's order, which is PyTorch's. Begins to use the driver only with `may_initialize`; without,
/// there are none in a process that has not begun to.
///
/// # Errors
/// With `may_initialize`, why the driver cannot be used.
pub(super) fn gpus(library: Library, may_initialize: bool) -> Result<Vec<Gpu>, Refusal> {
    let Some(loader) = loader(library) else {
        return Err(Refusal(format!("{LOADER} cannot be loaded: the driver of Intel GPUs is not installed")));
    };
    // SAFETY: the functions' types are those of `ze_api.h`.
    let (init, drivers, devices, device, driver, memories) = unsafe {
        (
            loader.required::<Init>(c"zeInit")?,
            loader.required::<Drivers>(c"zeDriverGet")?,
            loader.required::<List>(c"zeDeviceGet")?,
            loader.required::<Properties>(c"zeDeviceGetProperties")?,
            loader.function::<Properties>(c"zeDriverGetProperties"),
            loader.function::<Memories>(c"zeDeviceGetMemoryProperties"),
        )
    };
    if may_initialize {
        // SAFETY: no pointer; as often as one likes.
        match unsafe { init(0) } {
            0 => {}
            status => {
                return Err(Refusal(format!("the driver of Intel GPUs does not start (zeInit gave {status:#x})")));
            }
        }
    }
    let mut gpus = Vec::new();
    // SAFETY: no list, or one as long as the count says.
    let driver_list = |count, list| unsafe { drivers(count, list) };
    // SAFETY: as above, of a driver that was listed.
    let device_list = |driver, count, list| unsafe { devices(driver, count, list) };
    // SAFETY: a device that was listed, and properties that say what they are.
    let device_properties = |handle, at| unsafe { device(handle, at) };
    for handle in listed(driver_list) {
        let version = driver.and_then(|read| {
            // SAFETY: a driver that was listed, and properties that say what they are.
            properties(layout::DRIVER, |at| unsafe { read(handle, at) })
        });
        let version = version.map(|bytes| version_text(Fields(&bytes).u32(layout::DRIVER_VERSION)));
        for handle in listed(|count, list| device_list(handle, count, list)) {
            let Some(bytes) = properties(layout::DEVICE, |at| device_properties(handle, at)) else { continue };
            let fields = Fields(&bytes);
            if fields.u32(layout::TYPE) != layout::GPU {
                continue;
            }
            let memory_bytes = memories.and_then(|read| {
                // SAFETY: a device that was listed, and no properties, or as many as the count says.
                memory_of(|count, at| unsafe { read(handle, count, at) })
            });
            let sm_count = u64::from(fields.u32(layout::SLICES)) * u64::from(fields.u32(layout::SUBSLICES));
            let properties = DeviceProperties {
                kind: "xpu",
                index: gpus.len() as u32,
                name: text(&bytes[layout::NAME]),
                memory_bytes,
                sm_count: Some(sm_count).filter(|count| *count > 0),
                driver_version: version.clone(),
                ..DeviceProperties::default()
            };
            gpus.push(Gpu { uuid: fields.bytes16(layout::UUID), properties });
        }
    }
    Ok(gpus)
}

/// Handles of a list that says its length when asked without room.
fn listed(list: impl Fn(*mut u32, *mut usize) -> u32) -> Vec<usize> {
    let mut count = 0;
    if list(&raw mut count, std::ptr::null_mut()) != 0 {
        return Vec::new();
    }
    let mut handles = vec![0; (count as usize).min(MOST)];
    count = handles.len() as u32;
    let is_listed = count > 0 && list(&raw mut count, handles.as_mut_ptr()) == 0;
    handles.truncate(if is_listed { count as usize } else { 0 });
    handles
}

/// Properties of which the first four bytes say what they are.
fn properties((what, size): (u32, usize), read: impl Fn(*mut u8) -> u32) -> Option<Vec<u8>> {
    // Words, for their alignment, and room for what a later driver may add.
    let mut words = vec![0u64; size / 8 + 32];
    words[0] = u64::from(what);
    (read(words.as_mut_ptr().cast()) == 0)
        .then(|| words.iter().flat_map(|word| word.to_ne_bytes()).take(size).collect())
}

fn memory_of(read: impl Fn(*mut u32, *mut u8) -> u32) -> Option<u64> {
    let (what, size) = layout::MEMORY;
    let mut count = 0;
    if read(&raw mut count, std::ptr::null_mut()) != 0 || count == 0 {
        return None;
    }
    count = count.min(MOST as u32);
    let each = size / 8;
    let mut words = vec![0u64; each * count as usize];
    (0..count as usize).for_each(|index| words[index * each] = u64::from(what));
    if read(&raw mut count, words.as_mut_ptr().cast()) != 0 {
        return None;
    }
    let total = (0..count as usize).map(|index| words[index * each + layout::MEMORY_BYTES / 8]).sum::<u64>();
    Some(total).filter(|bytes| *bytes > 0)
}

/// As the driver's own tools write it.
fn version_text(version: u32) -> String {
    format!("{}.{}.{}", version >> 24, version >> 16 & 0xff, version & 0xffff)
}

/// A text that ends with a zero.
fn text(bytes: &[u8]) -> Option<String> {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    Some(String::from_utf8_lossy(text).into_owned()).filter(|text| !text.is_empty())
}

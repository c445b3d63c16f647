//! What NVML says of the devices now and then: how busy, how full, how fast, at what power.

use super::driver::Driver;
use crate::Library;
use crate::library::functions;
use std::ffi::{c_char, c_void};
use std::path::Path;

type Code = u32;
type Device = *mut c_void;
const SUCCESS: Code = 0;

/// Numbers of clocks.
const CLOCK_SM: u32 = 1;
const CLOCK_MEMORY: u32 = 2;
/// How many samples go by before devices are looked for again.
const LOOK_EVERY: u32 = 25;

/// Samples the devices in use.
#[derive(Default)]
pub(super) struct Sampler {
    nvml: Option<Nvml>,
    has_tried: bool,
    devices: Vec<(Names, Device)>,
    samples: u32,
}

// SAFETY: NVML may be called on any thread, and its handles are of the process.
unsafe impl Send for Sampler {}

functions! {
    struct Nvml {
        required init: unsafe extern "C" fn() -> Code = c"nvmlInit_v2";
        required handle: unsafe extern "C" fn(*const c_char, *mut Device) -> Code = c"nvmlDeviceGetHandleByPciBusId_v2";
        required utilization: unsafe extern "C" fn(Device, *mut [u32; 2]) -> Code = c"nvmlDeviceGetUtilizationRates";
        required memory: unsafe extern "C" fn(Device, *mut [u64; 3]) -> Code = c"nvmlDeviceGetMemoryInfo";
        required clock: unsafe extern "C" fn(Device, u32, *mut u32) -> Code = c"nvmlDeviceGetClockInfo";
        required power: unsafe extern "C" fn(Device, *mut u32) -> Code = c"nvmlDeviceGetPowerUsage";
    }
}

/// What the quantities of a device are called.
struct Names {
    utilization: String,
    memory: String,
    clock: String,
    memory_clock: String,
    power: String,
}

impl Names {
    fn of(index: u32) -> Self {
        Self {
            utilization: format!("GPU {index} utilization (%)"),
            memory: format!("GPU {index} memory used (bytes)"),
            clock: format!("GPU {index} SM clock (MHz)"),
            memory_clock: format!("GPU {index} memory clock (MHz)"),
            power: format!("GPU {index} power (mW)"),
        }
    }
}

impl Sampler {
    /// Gives what NVML says now. What it does not say is left out.
    pub(super) fn sample(&mut self, driver: &Driver, counter: &mut dyn FnMut(&str, i64)) {
        if self.samples.is_multiple_of(LOOK_EVERY) || self.devices.is_empty() {
            self.look(driver);
        }
        self.samples = self.samples.wrapping_add(1);
        let Some(nvml) = self.nvml else { return };
        for (names, device) in &self.devices {
            nvml.sample(names, *device, counter);
        }
    }

    fn look(&mut self, driver: &Driver) {
        let bus_ids = driver.bus_ids();
        if bus_ids.is_empty() || (self.has_tried && self.nvml.is_none()) {
            return;
        }
        if !self.has_tried {
            self.has_tried = true;
            self.nvml = Nvml::load();
        }
        let Some(nvml) = self.nvml else { return };
        let handle = |(index, bus_id): &(u32, [c_char; 32])| {
            let mut device = std::ptr::null_mut();
            // SAFETY: a text with its zero, and a writable handle.
            let code = unsafe { (nvml.handle)(bus_id.as_ptr(), &mut device) };
            (code == SUCCESS).then(|| (Names::of(*index), device))
        };
        self.devices = bus_ids.iter().filter_map(handle).collect();
    }
}

impl Nvml {
    /// Loads it and has it begin; `None` when there is none that does.
    fn load() -> Option<Self> {
        let library = Library::load(Path::new("libnvidia-ml.so.1")).ok()?;
        // SAFETY: the types are those of NVML's header, which keeps old functions.
        unsafe {
            let nvml = Self::find(library).ok()?;
            ((nvml.init)() == SUCCESS).then_some(nvml)
        }
    }

    fn sample(self, names: &Names, device: Device, counter: &mut dyn FnMut(&str, i64)) {
        let (mut percent, mut bytes, mut number) = ([0; 2], [0; 3], 0);
        // SAFETY: handles of NVML's own, and variables as large as it writes.
        unsafe {
            // Of kernels, and of memory.
            if (self.utilization)(device, &mut percent) == SUCCESS {
                counter(&names.utilization, percent[0].into());
            }
            // In all, free, used.
            if (self.memory)(device, &mut bytes) == SUCCESS {
                counter(&names.memory, bytes[2] as i64);
            }
            for (clock, name) in [(CLOCK_SM, &names.clock), (CLOCK_MEMORY, &names.memory_clock)] {
                if (self.clock)(device, clock, &mut number) == SUCCESS {
                    counter(name, number.into());
                }
            }
            if (self.power)(device, &mut number) == SUCCESS {
                counter(&names.power, number.into());
            }
        }
    }
}

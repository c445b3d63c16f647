//! What NVML says of the devices now and then: how busy, how full, how fast, how hot, at what power, behind what link.

use super::driver::Driver;
use crate::Library;
use crate::library::functions;
use std::ffi::{c_char, c_void};
use std::path::Path;

type Code = u32;
type Device = *mut c_void;
type Number = unsafe extern "C" fn(Device, *mut u32) -> Code;
type NumberOf = unsafe extern "C" fn(Device, u32, *mut u32) -> Code;
type Bits = unsafe extern "C" fn(Device, *mut u64) -> Code;
const SUCCESS: Code = 0;

/// Numbers of clocks.
const CLOCK_SM: u32 = 1;
const CLOCK_MEMORY: u32 = 2;
/// The number of the sensor in the chip.
const SENSOR: u32 = 0;
/// How many samples go by before devices are looked for again, and what is fixed is sampled again.
const LOOK_EVERY: u32 = 25;

/// Samples the devices in use.
#[derive(Default)]
pub(super) struct Sampler {
    nvml: Option<Nvml>,
    has_tried: bool,
    devices: Vec<(u32, Device)>,
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
        required clock: NumberOf = c"nvmlDeviceGetClockInfo";
        required power: Number = c"nvmlDeviceGetPowerUsage";
        optional highest_clock: NumberOf = c"nvmlDeviceGetMaxClockInfo";
        optional temperature: NumberOf = c"nvmlDeviceGetTemperature";
        optional event_reasons: Bits = c"nvmlDeviceGetCurrentClocksEventReasons";
        /// The same in older drivers.
        optional throttle_reasons: Bits = c"nvmlDeviceGetCurrentClocksThrottleReasons";
        optional power_limit: Number = c"nvmlDeviceGetEnforcedPowerLimit";
        optional power_limits: unsafe extern "C" fn(Device, *mut u32, *mut u32) -> Code =
            c"nvmlDeviceGetPowerManagementLimitConstraints";
        optional link_generation: Number = c"nvmlDeviceGetCurrPcieLinkGeneration";
        optional link_width: Number = c"nvmlDeviceGetCurrPcieLinkWidth";
        optional highest_link_generation: Number = c"nvmlDeviceGetMaxPcieLinkGeneration";
        optional highest_link_width: Number = c"nvmlDeviceGetMaxPcieLinkWidth";
    }
}

impl Sampler {
    /// Gives what NVML says now. What it does not say is left out.
    pub(super) fn sample(&mut self, driver: &Driver, counter: &mut dyn FnMut(&str, i64)) {
        let looks = self.samples.is_multiple_of(LOOK_EVERY) || self.devices.is_empty();
        if looks {
            self.look(driver);
        }
        self.samples = self.samples.wrapping_add(1);
        let Some(nvml) = self.nvml else { return };
        for (index, device) in &self.devices {
            let mut say = |what: &str, value: Option<i64>| {
                if let Some(value) = value {
                    counter(&format!("GPU {index} {what}"), value);
                }
            };
            if looks {
                nvml.sample_fixed(*device, &mut say);
            }
            nvml.sample(*device, &mut say);
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
            (code == SUCCESS).then_some((*index, device))
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

    /// What the device and its slot allow, and what an administrator has set.
    fn sample_fixed(self, device: Device, say: &mut dyn FnMut(&str, Option<i64>)) {
        say("SM clock highest (MHz)", number_of(self.highest_clock, device, CLOCK_SM));
        say("power limit (mW)", number(self.power_limit, device));
        let highest = self.power_limits.and_then(|limits| {
            let mut lowest = 0;
            // SAFETY: a handle of NVML's own, and numbers that it writes.
            ask(|highest: &mut u32| unsafe { limits(device, &mut lowest, highest) })
        });
        say("power limit highest (mW)", highest.map(i64::from));
        say("PCIe generation highest", number(self.highest_link_generation, device));
        say("PCIe width highest (lanes)", number(self.highest_link_width, device));
    }

    /// What changes. The reasons come last: what else is known at their time is of the same sample.
    fn sample(self, device: Device, say: &mut dyn FnMut(&str, Option<i64>)) {
        // SAFETY: handles of NVML's own, and variables as large as it writes.
        let (percent, bytes, reasons) = unsafe {
            let reasons = self.event_reasons.or(self.throttle_reasons);
            (
                ask(|percent| (self.utilization)(device, percent)),
                ask(|bytes| (self.memory)(device, bytes)),
                reasons.and_then(|reasons| ask(|bits: &mut u64| reasons(device, bits))),
            )
        };
        // Of kernels, and of memory.
        say("utilization (%)", percent.map(|[kernels, _]| kernels.into()));
        // In all, free, used.
        say("memory used (bytes)", bytes.map(|[_, _, used]| used as i64));
        say("SM clock (MHz)", number_of(Some(self.clock), device, CLOCK_SM));
        say("memory clock (MHz)", number_of(Some(self.clock), device, CLOCK_MEMORY));
        say("power (mW)", number(Some(self.power), device));
        say("temperature (°C)", number_of(self.temperature, device, SENSOR));
        say("PCIe generation", number(self.link_generation, device));
        say("PCIe width (lanes)", number(self.link_width, device));
        say("clock event reasons (bits)", reasons.map(|bits| bits as i64));
    }
}

fn number(function: Option<Number>, device: Device) -> Option<i64> {
    // SAFETY: a handle of NVML's own, and a number that it writes.
    function.and_then(|function| ask(|number: &mut u32| unsafe { function(device, number) })).map(i64::from)
}

fn number_of(function: Option<NumberOf>, device: Device, which: u32) -> Option<i64> {
    // SAFETY: as above.
    function.and_then(|function| ask(|number: &mut u32| unsafe { function(device, which, number) })).map(i64::from)
}

/// What a function writes where it succeeds.
fn ask<T: Default>(function: impl FnOnce(&mut T) -> Code) -> Option<T> {
    let mut value = T::default();
    (function(&mut value) == SUCCESS).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// What the NVML of the tests says of a device; `flags` are the compiler's.
    fn said(flags: &[&str], device: usize) -> Vec<(String, i64)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nvml.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fake_cupti/nvml.c");
        let mut compiler = Command::new("cc");
        compiler.args(flags).args(["-shared", "-fPIC", "-o"]).args([&path, &source]);
        assert!(compiler.status().expect("a C compiler").success());
        // SAFETY: its functions have the types of NVML's.
        let nvml = unsafe { Nvml::find(Library::load(&path).unwrap()) }.unwrap();
        let mut said = Vec::new();
        let mut say = |what: &str, value: Option<i64>| said.extend(value.map(|value| (what.to_string(), value)));
        nvml.sample_fixed(device as Device, &mut say);
        nvml.sample(device as Device, &mut say);
        said
    }

    #[test]
    fn all_quantities_are_told() {
        let expected = [
            ("SM clock highest (MHz)", 2100),
            ("power limit (mW)", 350_000),
            ("power limit highest (mW)", 700_000),
            ("PCIe generation highest", 5),
            ("PCIe width highest (lanes)", 16),
            ("utilization (%)", 40),
            ("memory used (bytes)", 1 << 30),
            ("SM clock (MHz)", 1980),
            ("memory clock (MHz)", 2619),
            ("power (mW)", 350_000),
            ("temperature (°C)", 61),
            ("PCIe generation", 4),
            ("PCIe width (lanes)", 8),
            ("clock event reasons (bits)", 0x24),
        ];
        assert_eq!(said(&[], 100), expected.map(|(what, value)| (what.to_string(), value)));
        assert_eq!(said(&["-DHAS_NEW_NAME"], 100).last().unwrap().1, 0x40);
    }

    #[test]
    fn what_a_driver_or_a_device_does_not_tell_is_left_out() {
        let names = |flags: &[&str], device| said(flags, device).into_iter().map(|(what, _)| what).collect::<Vec<_>>();
        let old = ["utilization (%)", "memory used (bytes)", "SM clock (MHz)", "memory clock (MHz)"];
        assert_eq!(names(&["-DIS_OLD"], 101), old);
        assert_eq!(names(&["-DIS_OLD"], 100), [&old[..], &["power (mW)"]].concat());
        assert!(!names(&[], 101).contains(&"power (mW)".to_string()));
    }
}

//! Intel's GPUs, which PyTorch calls XPU: listened to by PTI, the library that PyTorch's own profiler uses.
//!
//! Checked against the libraries of six releases, without a GPU: [`records`] says what of.

mod level_zero;
mod library;
mod records;

use crate::{DeviceProfiler, DeviceProperties, Found, Library, Refusal, Wanted, Write, library_search};
use level_zero::Gpu;
use library::{POOL, Pti};
use records::{Decoder, Sizes, view};
use std::path::{Path, PathBuf};

/// PyTorch's number.
const DEVICE_TYPE: u8 = 12;
/// Names another library, for tests and odd installations.
const VARIABLE: &str = "STEPSCOPE_PTI";
const STEM: &str = "libpti_view.so";
const NAMES: &[&str] = &["libpti_view.so.1", "libpti_view.so.0", "libpti_view.so"];
/// Intel's number among the vendors of PCI devices.
const VENDOR: &str = "0x8086";

/// What is said wherever this is used.
const NOT_VERIFIED: &str = "recording of Intel GPUs is not verified on hardware";
const FORKS: &str = "a process that is forked while Intel's PTI listens may hang (intel/torch-xpu-ops issue 5287): \
                     start DataLoader workers before, or with multiprocessing_context=\"spawn\"";

/// Listens to PTI.
#[derive(Default)]
pub(crate) struct Xpu {
    active: Option<ActiveSession>,
    dropped: u64,
}

struct ActiveSession {
    pti: Pti,
    sizes: Sizes,
    decoder: Decoder<Pti>,
    enabled: Vec<u32>,
    gpus: Vec<Gpu>,
}

/// The library, where it lies, and its functions.
fn open(libraries: &[PathBuf]) -> Result<(Library, PathBuf, Pti), Refusal> {
    if !library_search::is_named(VARIABLE) && !has_gpu() {
        return Err(Refusal("there is no Intel GPU".into()));
    }
    let (library, path) = library_search::open(VARIABLE, STEM, libraries, NAMES)
        .map_err(|why| Refusal(format!("Intel's PTI (the package intel-pti) cannot be loaded: {why}")))?;
    Ok((library, path, Pti::of(library)?))
}

/// True on a machine with a GPU of Intel's. PTI ends a process that it finds without one.
fn has_gpu() -> bool {
    let Ok(devices) = std::fs::read_dir("/sys/class/drm") else { return false };
    let is_intel =
        |path: &Path| std::fs::read_to_string(path.join("device/vendor")).is_ok_and(|id| id.trim() == VENDOR);
    let renders = devices.flatten().filter(|device| device.file_name().to_string_lossy().starts_with("renderD"));
    renders.into_iter().any(|device| is_intel(&device.path())) || Path::new("/dev/dxg").exists()
}

impl DeviceProfiler for Xpu {
    fn device_type(&self) -> u8 {
        DEVICE_TYPE
    }

    fn find(&mut self, libraries: &[PathBuf], may_initialize: bool) -> Result<Found, Refusal> {
        let (library, path, pti) = open(libraries)?;
        let sizes = pti.sizes();
        require_kernels(&pti, &sizes)?;
        // Without `may_initialize` a driver that is not in use yet is no trouble.
        let gpus = level_zero::gpus(library, may_initialize);
        let gpus = if may_initialize { gpus? } else { gpus.unwrap_or_default() };
        Ok(found(path, &pti, &gpus, Vec::new()))
    }

    fn start(&mut self, wanted: &Wanted) -> Result<Found, Refusal> {
        let (library, path, pti) = open(&wanted.libraries)?;
        let sizes = pti.sizes();
        require_kernels(&pti, &sizes)?;
        // PTI uses the driver as soon as it is enabled, and ends the process where that cannot be used.
        let gpus = level_zero::gpus(library, true)?;
        if gpus.is_empty() {
            return Err(Refusal("the driver has no Intel GPU".into()));
        }
        POOL.open(wanted.buffer_limit_bytes);
        let (enabled, refused) = match enable(&pti, &sizes, wanted) {
            Ok(both) => both,
            Err(why) => {
                POOL.close();
                return Err(why);
            }
        };
        let found = found(path, &pti, &gpus, refused);
        let uuids: Vec<_> = gpus.iter().map(|gpu| gpu.uuid).collect();
        let decoder = Decoder::new(pti, &uuids);
        library::take_dropped();
        self.active = Some(ActiveSession { pti, sizes, decoder, enabled, gpus });
        Ok(found)
    }

    fn flush(&mut self) {
        POOL.tend();
        if let Some(active) = &self.active {
            active.pti.flush();
        }
    }

    fn write(&mut self, write: Write<'_>) {
        let Some(active) = &mut self.active else { return };
        POOL.tend();
        while let Some(full) = POOL.next_full() {
            if !full.is_current {
                continue;
            }
            for record in active.sizes.split(full.bytes()) {
                let is_read = record.is_ok_and(|(kind, fields)| active.decoder.decode(kind, fields, write));
                self.dropped += u64::from(!is_read);
            }
        }
    }

    fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped) + library::take_dropped()
    }

    fn clock_ns(&self) -> Option<i64> {
        self.active.as_ref()?.pti.timestamp_ns()
    }

    fn devices(&self) -> Vec<DeviceProperties> {
        self.active.iter().flat_map(|active| &active.gpus).map(|gpu| gpu.properties.clone()).collect()
    }

    fn stop(&mut self) {
        let Some(active) = &self.active else { return };
        active.enabled.iter().for_each(|kind| active.pti.disable(*kind));
        active.pti.flush();
    }
}

impl Drop for Xpu {
    fn drop(&mut self) {
        if self.active.take().is_some() {
            POOL.close();
        }
    }
}

fn found(library: PathBuf, pti: &Pti, gpus: &[Gpu], mut remarks: Vec<String>) -> Found {
    remarks.extend([NOT_VERIFIED, FORKS].map(String::from));
    Found {
        library,
        version: pti.version(),
        interface: "PTI views".into(),
        devices: gpus.iter().map(|gpu| gpu.properties.clone()).collect(),
        remarks,
    }
}

fn require_kernels(pti: &Pti, sizes: &Sizes) -> Result<(), Refusal> {
    if sizes.is_known(view::KERNEL) {
        return Ok(());
    }
    let size = sizes.0[view::KERNEL as usize];
    if size == 0 {
        return Err(Refusal(format!("Intel's PTI {} does not find its own parts, or the driver's", pti.version())));
    }
    Err(Refusal(format!("Intel's PTI {} lays kernels out in a way that is not known ({size} bytes)", pti.version())))
}

/// Turns on what is wanted and known: the kinds, and what is said of those that are not.
fn enable(pti: &Pti, sizes: &Sizes, wanted: &Wanted) -> Result<(Vec<u32>, Vec<String>), Refusal> {
    pti.set_callbacks().map_err(|why| Refusal(format!("Intel's PTI does not start: {why}")))?;
    let kinds = [
        (view::KERNEL, "kernels", true),
        (view::COPY, "copies", true),
        (view::COPY_BETWEEN, "copies between devices", true),
        (view::FILL, "fills", true),
        (view::RUNTIME_API, "calls of SYCL", wanted.has_calls),
        (view::DRIVER_API, "calls of Level Zero", wanted.has_calls),
        (view::SYNCHRONIZATION, "waits", wanted.has_synchronizations),
        (view::OVERHEAD, "overhead", true),
    ];
    let (mut enabled, mut refused) = (Vec::new(), Vec::new());
    for (kind, what, _) in kinds.into_iter().filter(|(.., is_wanted)| *is_wanted) {
        let size = sizes.0[kind as usize];
        let outcome = match () {
            () if sizes.is_known(kind) => pti.enable(kind),
            () if size == 0 => Err("this release has none".into()),
            () => Err(format!("they are laid out in a way that is not known ({size} bytes)")),
        };
        match outcome {
            Ok(()) => enabled.push(kind),
            Err(why) if kind == view::KERNEL => {
                return Err(Refusal(format!("Intel's PTI {} does not record kernels: {why}", pti.version())));
            }
            Err(why) => refused.push(format!("{what} of Intel GPUs are not recorded: {why}")),
        }
    }
    if wanted.has_calls {
        pti.select_calls();
    }
    Ok((enabled, refused))
}

//! AMD's GPUs, which PyTorch calls CUDA, too: listened to by roctracer, the library that PyTorch's wheels for ROCm
//! bring.

mod hip;
mod library;
mod records;

use crate::{DeviceProfiler, DeviceProperties, Found, Library, Refusal, Wanted, Write, library_search};
use library::{Opened, POOL, Roctracer};
use records::{Decoder, domain};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// PyTorch's number of HIP. Its own profiler shows such devices as CUDA.
const DEVICE_TYPE: u8 = 6;
/// Names another library, for tests and odd installations.
const VARIABLE: &str = "STEPSCOPE_ROCTRACER";
const STEM: &str = "libroctracer64.so";
const NAMES: &[&str] = &["libroctracer64.so.4", "libroctracer64.so"];
/// The library that follows it, which cannot be listened to in this way.
const SUCCESSORS: &[&str] = &["librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0", "librocprofiler-sdk.so"];
/// Through which every process uses AMD's GPUs.
const DRIVER: &str = "/dev/kfd";
/// The release whose records are known.
const MAJOR: u32 = 4;

/// Calls that only ask or remember something, and are made before each launch. PyTorch's own profiler leaves them out,
/// too.
const LEFT_OUT: &[&str] = &[
    "hipGetDevice",
    "hipSetDevice",
    "hipGetLastError",
    "hipPeekAtLastError",
    "__hipPushCallConfiguration",
    "__hipPopCallConfiguration",
];

/// What is said wherever this is used.
const NOT_VERIFIED: &str = "recording of AMD GPUs is not verified on hardware";

/// Listens to roctracer.
#[derive(Default)]
pub(crate) struct Rocm {
    active: Option<ActiveSession>,
    dropped: u64,
}

struct ActiveSession {
    roctracer: Roctracer,
    pool: Option<Opened>,
    decoder: Decoder<Roctracer>,
    enabled: Vec<u32>,
    /// Asked for once: HIP takes a while.
    devices: OnceCell<Vec<DeviceProperties>>,
}

/// The library, where it lies, and its functions.
fn open(libraries: &[PathBuf], may_load_hip: bool) -> Result<(PathBuf, Roctracer), Refusal> {
    let is_named = library_search::is_named(VARIABLE);
    if !is_named && !Path::new(DRIVER).exists() {
        return Err(Refusal(format!("there is no AMD GPU, or no driver for it ({DRIVER})")));
    }
    let hip = hip::loaded().or_else(|| if may_load_hip { hip::load(libraries) } else { None });
    if !is_named && hip.is_none() {
        return Err(Refusal(
            "the process has not loaded HIP (libamdhip64.so): this PyTorch is not for AMD GPUs".into(),
        ));
    }
    let (library, path) = library_search::open(VARIABLE, STEM, libraries, NAMES).map_err(|why| match successor() {
        Some(name) => Refusal(format!(
            "this ROCm has {name} alone, which a program must set up before its first use of HIP: not recorded yet, \
             --gpu=torch takes the GPU's rows from torch.profiler"
        )),
        None => Refusal(format!("roctracer cannot be loaded: {why}")),
    })?;
    let roctracer = Roctracer::of(library)?;
    let (major, minor) = roctracer.version();
    if major != MAJOR {
        return Err(Refusal(format!("roctracer {major}.{minor} is not known, only {MAJOR}")));
    }
    Ok((path, roctracer))
}

fn successor() -> Option<&'static str> {
    SUCCESSORS.iter().copied().find(|name| Library::loaded(Path::new(name)).is_some())
}

impl DeviceProfiler for Rocm {
    fn device_type(&self) -> u8 {
        DEVICE_TYPE
    }

    fn find(&mut self, libraries: &[PathBuf], may_initialize: bool) -> Result<Found, Refusal> {
        let (path, roctracer) = open(libraries, may_initialize)?;
        let devices = hip::loaded().filter(|_| may_initialize).map(hip::devices);
        Ok(found(path, roctracer, devices.unwrap_or_default(), Vec::new()))
    }

    fn start(&mut self, wanted: &Wanted) -> Result<Found, Refusal> {
        let (path, roctracer) = open(&wanted.libraries, false)?;
        POOL.open(wanted.buffer_limit_bytes);
        library::take_dropped();
        // SAFETY: always succeeds.
        let own_thread = unsafe { libc::gettid() } as u32;
        let decoder = Decoder::new(roctracer, own_thread);
        let mut active =
            ActiveSession { roctracer, pool: None, decoder, enabled: Vec::new(), devices: OnceCell::new() };
        match active.enable(wanted.has_calls) {
            Ok(refused) => {
                self.active = Some(active);
                Ok(found(path, roctracer, Vec::new(), refused))
            }
            Err(why) => {
                active.close();
                POOL.close();
                Err(Refusal(format!("roctracer does not record AMD GPUs: {why}")))
            }
        }
    }

    fn flush(&mut self) {
        POOL.tend();
        if let Some(active) = &self.active {
            active.pool.iter().for_each(|pool| active.roctracer.flush(pool));
        }
    }

    fn write(&mut self, write: Write<'_>) {
        let Some(active) = &mut self.active else { return };
        POOL.tend();
        while let Some(full) = POOL.next_full() {
            if !full.is_current {
                continue;
            }
            for (fields, name) in records::written(full.bytes()) {
                self.dropped += u64::from(!active.decoder.decode(fields, name, write));
            }
        }
    }

    fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped) + library::take_dropped()
    }

    fn clock_ns(&self) -> Option<i64> {
        self.active.as_ref()?.roctracer.timestamp_ns()
    }

    fn devices(&self) -> Vec<DeviceProperties> {
        // Work on a device means that the process uses it; HIP itself would begin to.
        let Some(active) = self.active.as_ref().filter(|active| active.decoder.has_work) else { return Vec::new() };
        active.devices.get_or_init(|| hip::loaded().map(hip::devices).unwrap_or_default()).clone()
    }

    fn stop(&mut self) {
        if let Some(active) = &mut self.active {
            active.close();
        }
    }
}

impl Drop for Rocm {
    fn drop(&mut self) {
        if let Some(mut active) = self.active.take() {
            active.close();
            POOL.close();
        }
    }
}

impl ActiveSession {
    /// What could not be enabled, in words; an error where that is the devices' work itself.
    fn enable(&mut self, has_calls: bool) -> Result<Vec<String>, String> {
        let pool = self.pool.insert(self.roctracer.open()?);
        self.roctracer.enable(domain::OPERATIONS, pool)?;
        self.enabled.push(domain::OPERATIONS);
        let mut refused = Vec::new();
        if has_calls {
            match self.roctracer.enable(domain::CALLS, pool) {
                Ok(()) => self.enabled.push(domain::CALLS),
                Err(why) => refused.push(format!("calls of HIP are not recorded: {why}")),
            }
            LEFT_OUT.iter().for_each(|name| self.roctracer.leave_out(domain::CALLS, name));
        }
        Ok(refused)
    }

    /// Has everything handed over, and listens no longer.
    fn close(&mut self) {
        self.enabled.drain(..).for_each(|domain| self.roctracer.disable(domain));
        if let Some(pool) = self.pool.take() {
            self.roctracer.flush(&pool);
            self.roctracer.close(pool);
        }
    }
}

fn found(library: PathBuf, roctracer: Roctracer, devices: Vec<DeviceProperties>, mut remarks: Vec<String>) -> Found {
    let (major, minor) = roctracer.version();
    remarks.push(NOT_VERIFIED.into());
    Found { library, version: format!("{major}.{minor}"), interface: "roctracer".into(), devices, remarks }
}

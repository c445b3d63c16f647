//! CUDA: CUPTI's activity API, by `dlopen`.
//!
//! Of its records only fields are read that have stood in the same place since CUDA 11.8, the oldest that is used; how
//! long a record is follows from where the next one begins. [`records`] has the places, and a test compares them with
//! the headers of CUPTI where they are installed.

mod api;
mod callbacks;
mod calls;
mod driver;
mod functions;
mod kinds;
mod markers;
mod nvml;
mod places;
mod read;
mod records;
mod workload;

use crate::proof::Workload;
use crate::{DeviceProfiler, DeviceProperties, Found, Pool, Refusal, Wanted, Write, library_search};
use api::Cupti;
use driver::Driver;
use kinds::Enabled;
use nvml::Sampler;
use read::Reader;
use std::path::PathBuf;

/// What CUPTI is given to fill.
static POOL: Pool = Pool::new();

/// Names a library to use in place of all others: for tests, and for installations that nobody foresaw.
const LIBRARY_VARIABLE: &str = "STEPSCOPE_CUPTI";
const STEM: &str = "libcupti.so";
/// Where the loader may find one when nobody knows better.
const NAMES: [&str; 3] = ["libcupti.so.13", "libcupti.so.12", "libcupti.so"];

/// What is said where somebody else is CUPTI's subscriber. What it enables while it is idle goes nowhere: CUPTI has one
/// receiver of buffers, which it must become again before it listens, as PyTorch's profiler does.
const BESIDE_A_SUBSCRIBER: &str = "another profiler of the process is CUPTI's subscriber and idle: the GPU is recorded \
                                   without a subscription, and not while that profiler runs";

/// Work that is known, on a device by its number.
///
/// # Errors
/// Why the device does none.
pub(crate) fn workload(device: u32) -> Result<Box<dyn Workload>, Refusal> {
    Ok(Box::new(workload::CudaWorkload::prepare(device)?))
}

/// Listens to CUPTI.
#[derive(Default)]
pub(crate) struct Cuda {
    active: Option<ActiveSession>,
    driver: Option<Driver>,
    sampler: Sampler,
}

struct ActiveSession {
    cupti: Cupti,
    enabled: Enabled,
    reader: Reader,
}

impl Cuda {
    /// The driver and CUPTI. The driver comes first: without one nothing else is loaded.
    fn open(&mut self, libraries: &[PathBuf]) -> Result<(Cupti, PathBuf), Refusal> {
        let driver = Driver::load()?;
        self.driver = Some(driver);
        let (library, path) = library_search::open(LIBRARY_VARIABLE, STEM, libraries, &NAMES)
            .map_err(|why| Refusal(format!("CUPTI (libcupti.so) cannot be loaded: {why}")))?;
        Ok((Cupti::find(library)?, path))
    }

    fn found(&self, cupti: &Cupti, path: PathBuf, remarks: Vec<String>) -> Found {
        Found {
            library: path,
            version: cupti.version_text(),
            interface: cupti.interface_text().into(),
            devices: self.devices(),
            remarks,
        }
    }
}

impl DeviceProfiler for Cuda {
    fn device_type(&self) -> u8 {
        1
    }

    fn find(&mut self, libraries: &[PathBuf], may_initialize: bool) -> Result<Found, Refusal> {
        let (mut cupti, path) = self.open(libraries)?;
        if let (Some(driver), true) = (&mut self.driver, may_initialize) {
            driver.initialize()?;
            // Whether this user may profile at all is only said when something is enabled.
            cupti.subscribe(false)?;
            Enabled::try_one(&cupti)?;
        }
        Ok(self.found(&cupti, path, Vec::new()))
    }

    fn start(&mut self, wanted: &Wanted) -> Result<Found, Refusal> {
        let (mut cupti, path) = self.open(&wanted.libraries)?;
        cupti.subscribe(wanted.others_are_idle)?;
        cupti.set_clock();
        POOL.open(wanted.buffer_limit_bytes);
        let enabled = cupti.register().and_then(|()| Enabled::enable(&cupti, wanted));
        let (enabled, mut remarks) = enabled.inspect_err(|_| POOL.close())?;
        if !cupti.is_subscribed() {
            remarks.push(BESIDE_A_SUBSCRIBER.into());
        }
        // The count starts anew: these were dropped for an earlier listener.
        cupti.dropped();
        let found = self.found(&cupti, path, remarks);
        self.active = Some(ActiveSession { cupti, enabled, reader: Reader::default() });
        Ok(found)
    }

    fn flush(&mut self) {
        if let Some(active) = &self.active {
            active.cupti.flush(false);
        }
    }

    fn write(&mut self, write: Write<'_>) {
        if let Some(active) = &mut self.active {
            active.reader.write(&active.cupti, &POOL, write);
            POOL.tend();
        }
    }

    fn take_dropped(&mut self) -> u64 {
        self.active.as_mut().map_or(0, |active| active.reader.take_dropped() + active.cupti.dropped())
    }

    fn clock_ns(&self) -> Option<i64> {
        self.active.as_ref()?.cupti.now_ns()
    }

    fn devices(&self) -> Vec<DeviceProperties> {
        self.driver.as_ref().map_or_else(Vec::new, Driver::devices)
    }

    fn stop(&mut self) {
        if let Some(active) = &mut self.active {
            active.enabled.disable(&active.cupti);
            // Complete ones first: what a forced flush finds unfinished has no end.
            active.cupti.flush(false);
            active.cupti.flush(true);
            active.reader.end(active.cupti.now_ns());
            POOL.close();
        }
    }

    fn sample(&mut self, counter: &mut dyn FnMut(&str, i64)) {
        if let Some(driver) = &self.driver {
            self.sampler.sample(driver, counter);
        }
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        if self.active.take().is_some() {
            // Those that were read last are free now.
            POOL.close();
        }
    }
}

//! What a vendor's profiler must be able to do to be listened to.

use crate::DeviceProperties;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use stepscope_recorder::device::ActivityRecord;

/// Takes one activity record: what it says, and the text of its name where it has one (whose id in the record is then
/// ignored).
pub type Write<'a> = &'a mut dyn FnMut(ActivityRecord, Option<&str>);

/// A vendor's profiler. All of it is called on the thread `stepscope gpu` alone, one call at a time; a call that hangs
/// is left alone with its thread after a while, so nothing may be shared with the job's threads but a `Pool`.
pub trait DeviceProfiler: Send {
    /// PyTorch's number of the kind of device: 1 CUDA, 6 HIP, 12 XPU.
    fn device_type(&self) -> u8;

    /// Looks what there is, without listening. With `may_initialize` the process may begin to use the devices.
    ///
    /// # Errors
    /// As [`Self::start`].
    fn find(&mut self, libraries: &[PathBuf], may_initialize: bool) -> Result<Found, Refusal>;

    /// Begins to listen. What it turned on before it failed is off again when this returns.
    ///
    /// # Errors
    /// One line that a user understands: what is missing, and what to do.
    fn start(&mut self, wanted: &Wanted) -> Result<Found, Refusal>;

    /// Has the vendor's library hand over what is complete.
    fn flush(&mut self);

    /// Writes what was handed over since the last time, in the vendor's own time ([`Self::clock_ns`]).
    fn write(&mut self, write: Write<'_>);

    /// How many activity records were dropped since the last time: there was no room, or they could not be read.
    fn take_dropped(&mut self) -> u64;

    /// The vendor's clock, that its activity records' times are of; `None` when it cannot be read.
    fn clock_ns(&self) -> Option<i64>;

    /// The devices that the process uses; empty as long as it has not begun to use any. Must not begin to.
    fn devices(&self) -> Vec<DeviceProperties>;

    /// Listens no longer, and has everything handed over, for one last [`Self::write`]. What ran at full speed before
    /// `start` does so again.
    fn stop(&mut self);

    /// Samples quantities of the devices (utilization, memory, clocks, power …), each under a name that says device and
    /// unit: `GPU 0 utilization (%)`. Called a few times a second.
    fn sample(&mut self, _counter: &mut dyn FnMut(&str, i64)) {}
}

/// What is to be recorded of devices, and with what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Where the vendor's library may be, best first: paths, or bare names that the loader looks for.
    pub libraries: Vec<PathBuf>,
    /// The most memory that buffers may take.
    pub buffer_limit_bytes: usize,
    /// How often activity records are fetched.
    pub flush_period: Duration,
    /// How often quantities are sampled; `None`: not at all.
    pub sample_period: Option<Duration>,
    /// Calls of the runtime and of the driver.
    pub has_calls: bool,
    /// Waits, and events that are recorded into streams.
    pub has_synchronizations: bool,
    /// The nodes of graphs that are launched; else each launch is one piece of work, which costs less.
    pub has_graph_nodes: bool,
    /// Ranges that the program marks for the vendor's tools (NVTX).
    pub has_ranges: bool,
    /// Any other subscriber of the vendor's profiler is known to be idle and to stay so: PyTorch's own profiler
    /// subscribes when it first runs, and stays subscribed.
    pub others_are_idle: bool,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            libraries: Vec::new(),
            buffer_limit_bytes: 256 << 20,
            flush_period: Duration::from_secs(1),
            sample_period: Some(Duration::from_millis(200)),
            has_calls: true,
            has_synchronizations: true,
            has_graph_nodes: true,
            has_ranges: false,
            others_are_idle: false,
        }
    }
}

/// What a vendor's library is able to do here.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// The library that was loaded.
    pub library: PathBuf,
    /// Its version, as it says it.
    pub version: String,
    /// How it is listened to, in a word or two.
    pub interface: String,
    /// The devices in use, or with `may_initialize` all that can be; empty when the process has not begun to use any.
    pub devices: Vec<DeviceProperties>,
    /// What is to be known before anyone trusts it: "not verified on hardware".
    pub remarks: Vec<String>,
}

/// Why a device is not recorded, in one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

//! Records what devices do, as their own profilers tell it: CUPTI for CUDA, and whatever implements [`DeviceProfiler`].
//!
//! Nothing is compiled against a vendor's library. It is found by `dlopen`, its functions by name, the fields of its
//! records by offsets that no release has moved. A vendor's threads and the job's only ever take a buffer from
//! a [`Pool`] or put one back, without lock or allocation; one thread of ours, `stepscope gpu`, decodes and writes.
//! What cannot be used is refused in one line, and everything else is recorded.

#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

mod cuda;
mod demangle;
mod device_properties;
mod fields;
mod forked;
mod library;
mod library_search;
mod numbers;
mod pool;
mod profiler;
mod proof;
mod rocm;
mod session;
mod wakeup;
mod worker;
mod xpu;

pub use device_properties::DeviceProperties;
pub use library::Library;
pub use pool::{BUFFER_BYTES, Full, Pool};
pub use profiler::{DeviceProfiler, Found, Refusal, Wanted, Write};
pub use proof::{End, Proof, Verdict, prove, run_child, run_limited};
pub use session::{find, flush, start, start_with, stop};
pub use wakeup::Wakeup;

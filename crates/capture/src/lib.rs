//! The file that a recorded process writes while it runs, and how it is read back.
//!
//! One process writes one capture: a header page and equal segments, mapped shared, so that the kernel keeps every
//! complete record when the process is killed. [`layout`] is the format, [`CaptureFile`] the writing half (all that a
//! recorded process needs), [`read`] the reading half. `docs/format.md` describes the bytes.

mod clock;
pub mod collectives;
mod decode;
#[cfg(target_os = "linux")]
mod descriptor;
pub mod device;
mod error;
#[cfg(target_os = "linux")]
mod file;
mod header;
mod huge;
pub mod inputs;
pub mod io;
pub mod layout;
mod liveness;
pub mod memory;
mod read;
mod ring;
pub mod short;
pub mod stack_samples;

pub use clock::{ClockPoint, ClockSnapshot, TickClock};
pub use decode::{CollectiveOf, Event, EventList, Mark, ProfilerState, Sample, StepRange, Window};
pub use device::DeviceActivity;
pub use error::CaptureError;
#[cfg(target_os = "linux")]
pub use file::{CaptureFile, NewCapture};
pub use huge::prefer_large_pages;
pub use inputs::Inputs;
pub use io::IoCall;
pub use liveness::{ProcessIdentity, State};
pub use memory::MemoryEvent;
pub use read::{Capture, CaptureReader, Thread, read, read_head};
#[cfg(target_os = "linux")]
pub use ring::Snapshot;
pub use ring::{RingWindow, definitions};
pub use stack_samples::{Called, Doing, StackSample};

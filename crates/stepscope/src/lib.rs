//! Records a Rust program: its steps, what it does in them, on all its threads.
//!
//! ```no_run
//! use stepscope::Schedule;
//!
//! # fn main() -> Result<(), stepscope::RecordError> {
//! let _run = stepscope::record("runs/a")
//!     .schedule(Schedule::new().wait(5).warmup(2).active(6).repeat(2))
//!     .start()?;
//! for _batch in 0..100 {
//!     {
//!         stepscope::scope!("forward");
//!         // …
//!     }
//!     stepscope::step();
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The run is the same folder that `stepscope record` writes, and is read by the same commands: `stepscope report
//! runs/a`. Records go to a mapped file, so that a program that is killed loses nothing. Where nothing records, a
//! [`scope!`] costs a load and a branch.
//!
//! # What happens in the process
//!
//! A file `raw/PID-TIME.capture` in the run folder grows by 256 KiB at a time. One thread called `stepscope`, with all
//! signals blocked, prepares space ahead of need and reads the clocks once a second. Nothing else: no lock, no system
//! call and no allocation where a scope begins and ends. A forked child writes a file of its own as soon as it records
//! something; started programs that use this crate, or PyTorch below `stepscope record`, join the run when the variable
//! `STEPSCOPE_RUN` names it.
//!
//! In trouble, such as a full disk, records are dropped and counted, and the program runs on. Recording works on Linux;
//! elsewhere [`Recording::start`] says so, and everything else does nothing.
//!
//! # Features
//!
//! `tracing`: [`TracingLayer`] records the spans and events of the `tracing` crate.

#[cfg(not(target_os = "linux"))]
mod no_recorder;
mod process_metadata;
mod run;
mod schedule;
mod scope;
#[cfg(feature = "tracing")]
mod tracing_layer;

pub use run::{RecordError, Recording, Run, is_recording, record, set_fact, step};
pub use schedule::Schedule;
pub use scope::{Scope, name_thread};
#[cfg(feature = "tracing")]
pub use tracing_layer::TracingLayer;

#[cfg(not(target_os = "linux"))]
use no_recorder as recorder;
#[cfg(target_os = "linux")]
use stepscope_recorder as recorder;

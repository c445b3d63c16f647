//! From segments to events, in stages.
//!
//! ```text
//! segments ─▶ scan ─▶ what holds for all threads (process, devices), and where each one's records lie (parts)
//!               └─▶ replay     each thread by itself: begins matched with ends, ticks become ns
//!                     └─▶ elsewhere, threads: what one thread ended for another; all in their final order
//! ```
//!
//! Segments are read one at a time where the file stays as it is. Of what was recorded at other times than those that
//! are asked for only what it takes to understand these is replayed.
//!
//! A **new record** is a tag of [`layout`](crate::layout), its length in `record.rs`, and what it says: of the process
//! in `process.rs`, of a thread in `replay.rs`.

mod activities;
mod device;
mod elsewhere;
mod event_list;
mod events;
mod inputs;
mod parts;
mod paths;
mod process;
mod rare_events;
mod record;
mod replay;
mod scan;
mod segments;
mod texts;
mod threads;

pub(crate) use device::finish as finish_devices;
pub use event_list::EventList;
pub use events::{CollectiveOf, Event, Mark, ProfilerState, Sample, StepRange, Window};
pub(crate) use rare_events::RareEvents;
pub(crate) use record::{body_len, short_len};
pub(crate) use scan::Scan;
pub(crate) use segments::Segments;
pub(crate) use threads::{EVER, Threads, last_moment};

#[cfg(test)]
mod tests;

//! Records what a process does with files: a library that `stepscope record` has the system load into it, before the C
//! library, whose functions for files it stands for.
//!
//! ```text
//! a call ─▶ hooks ─▶ descriptors: which file is it? ─ none that is watched ─▶ the C library
//!                         └─▶ the C library, between two readings of the clock ─▶ recorded: one record
//! ```
//!
//! Where nothing is watched, a call costs two loads. Nothing here allocates from the program's allocator, and what the
//! recorder itself does with files is never recorded: a thread inside the recorder passes its calls through. What a signal
//! handler does that interrupts the recording of a call waits until that is written.

#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

mod aio_requests;
mod bound;
mod descriptors;
mod ends;
mod faults;
mod files;
mod hooks;
mod imports;
mod late;
mod libraries;
mod mapped;
mod mapped_files;
mod memory;
mod memory_maps;
mod open_files;
mod paths;
#[cfg(not(target_arch = "x86_64"))]
mod process_id;
mod programs;
mod real;
mod recorded;
mod refused;
mod sockets;
mod start;
mod thread_sums;
mod unseen;
mod uring;

//! What must hold for any bytes that a reader is given: no panic, a sound trace or an error, nothing lost on the way.
//!
//! Each [`Target`] is a plain function that panics when its law is broken. The tests of this crate run all of them on
//! stable Rust, over [`seeds`] that are damaged at random; `fuzz/` hands the same functions to libFuzzer.

mod captures;
mod packed;
mod pickles;
mod round_trip;
mod run_folders;
mod seeds;
mod sound;
mod texts;

pub use captures::capture;
pub use packed::packed;
pub use pickles::{flight_recorder, memory_snapshot};
pub use round_trip::round_trip;
pub use run_folders::{manifest, part};
pub use seeds::seeds;
pub use texts::{dftracer, kineto};

/// A law, and what it is called in `fuzz/`.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of its binary and of its folder of seeds.
    pub name: &'static str,
    /// Panics when the law does not hold for these bytes.
    pub check: fn(&[u8]),
}

/// Every law, one a form of input.
pub const TARGETS: &[Target] = &[
    Target { name: "kineto", check: kineto },
    Target { name: "dftracer", check: dftracer },
    Target { name: "packed", check: packed },
    Target { name: "capture", check: capture },
    Target { name: "part", check: part },
    Target { name: "manifest", check: manifest },
    Target { name: "memory_snapshot", check: memory_snapshot },
    Target { name: "flight_recorder", check: flight_recorder },
    Target { name: "round_trip", check: round_trip },
];

//! The functions of the C library that this one stands for.

mod descriptors;
mod directories;
mod ends;
#[cfg(target_arch = "x86_64")]
mod formatted;
mod maps;
mod names;
mod others;
mod positions;
mod streams;
mod transfers;

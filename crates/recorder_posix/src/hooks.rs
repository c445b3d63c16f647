//! The functions that this library stands for: of the C library, and of those that a program may have loaded.

mod aio;
mod descriptors;
mod directories;
mod ends;
mod forks;
#[cfg(target_arch = "x86_64")]
mod formatted;
mod hdf5;
#[cfg(target_arch = "x86_64")]
mod loads;
mod maps;
mod mpi;
mod mpi_split;
mod names;
mod others;
mod positions;
mod sockets;
mod streams;
mod temporary;
mod transfers;
mod uring;
#[cfg(target_arch = "x86_64")]
mod vfork;

use crate::imports::Hook;
#[cfg(target_arch = "x86_64")]
pub(crate) use vfork::is_vforked;

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Hook> {
    let lists = [
        aio::HOOKS,
        descriptors::HOOKS,
        directories::HOOKS,
        ends::HOOKS,
        forks::HOOKS,
        maps::HOOKS,
        names::HOOKS,
        others::HOOKS,
        positions::HOOKS,
        sockets::HOOKS,
        streams::HOOKS,
        temporary::HOOKS,
        transfers::HOOKS,
    ];
    let all = lists.into_iter().flatten();
    #[cfg(target_arch = "x86_64")]
    let all = all.chain(formatted::HOOKS).chain(formatted::VARIADIC).chain(loads::HOOKS).chain(vfork::HOOKS);
    all.chain(of_libraries())
}

/// Those that the system does not find here, wherever this library stands.
pub(crate) fn of_libraries() -> impl Iterator<Item = &'static Hook> {
    [hdf5::HOOKS, mpi::HOOKS, mpi_split::HOOKS, uring::HOOKS].into_iter().flatten()
}

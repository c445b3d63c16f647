//! The functions of the C library that this one stands for.

mod aio;
mod descriptors;
mod directories;
mod ends;
#[cfg(target_arch = "x86_64")]
mod formatted;
mod maps;
mod names;
mod others;
mod positions;
mod sockets;
mod streams;
mod transfers;
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
        maps::HOOKS,
        names::HOOKS,
        others::HOOKS,
        positions::HOOKS,
        sockets::HOOKS,
        streams::HOOKS,
        transfers::HOOKS,
    ];
    let all = lists.into_iter().flatten();
    #[cfg(target_arch = "x86_64")]
    let all = all.chain(formatted::HOOKS).chain(formatted::VARIADIC).chain(vfork::HOOKS);
    all
}

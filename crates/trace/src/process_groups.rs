//! Between whom a process communicates.

use serde::{Deserialize, Serialize};

/// A group of ranks that has collectives of its own, as one of its members knows it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ProcessGroup {
    /// Its name, which is a number as a rule.
    pub name: String,
    /// What it is for: `default_pg`, `mesh_dp`.
    pub description: String,
    /// What carries its collectives, one a kind of device: `cpu:gloo,cuda:nccl`.
    pub backend: String,
    /// How many ranks it has; `None` when not told.
    pub size: Option<u32>,
    /// Its ranks, in the order that they have in it; empty when not told.
    pub ranks: Vec<u32>,
}

//! The processes of a run.

use crate::{Selection, Trace};
use serde::Serialize;
use std::collections::HashSet;

/// One process that was recorded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ProcessRow {
    /// Its rank; helpers carry the rank they serve.
    pub rank: u32,
    /// Process id on its host.
    pub pid: Option<i64>,
    /// What a person calls it.
    pub name: String,
    /// True for a process that another recorded process of its rank started: a DataLoader worker.
    pub is_helper: bool,
}

/// The processes of the ranks asked for, in the trace's order. One that was recorded several times is one.
pub(super) fn process_rows(trace: &Trace, selection: &Selection) -> Vec<ProcessRow> {
    let mut seen = HashSet::new();
    let mut is_new = |process: &stepscope_trace::Process| {
        process.pid.is_none() || seen.insert((process.rank, process.pid, process.host.clone(), process.name.clone()))
    };
    let wanted = trace.processes.iter().filter(|process| selection.has_rank(process.rank) && is_new(process));
    let row = |process: &stepscope_trace::Process| {
        let is_parent =
            |other: &&stepscope_trace::Process| other.rank == process.rank && other.pid == process.parent_pid;
        ProcessRow {
            rank: process.rank,
            pid: process.pid,
            name: process.name.clone(),
            is_helper: process.parent_pid.is_some() && trace.processes.iter().any(|other| is_parent(&other)),
        }
    };
    wanted.map(row).collect()
}

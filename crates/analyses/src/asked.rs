//! What is asked of a trace, and what several analyses need for their answers: each part is computed when an analysis
//! first needs it, and once, also when analyses run on several threads.

use crate::allocations::{Pool, pools};
use crate::critical_path::{Paths, paths};
use crate::device_busy::{DeviceBusy, device_busy};
use crate::device_windows::{DeviceWindow, device_windows};
use crate::flops::Works;
use crate::groups::{Groups, OPERATOR_GROUPS, groups};
use crate::host_threads::{Thread, main_threads, thread};
use crate::idle::{DeviceIdle, idle};
use crate::io_calls::{IoCall, io_calls};
use crate::op_tree::OpTree;
use crate::stream_waits::StreamWaits;
use crate::{Coverage, GroupBy, Selection};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use stepscope_trace::{ProcessId, Trace, TrackId};

/// A part of a trace that analyses are asked about.
pub struct Asked<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// What of it, and how to answer.
    pub selection: &'a Selection,
    coverage: OnceLock<Coverage>,
    device_windows: OnceLock<Vec<DeviceWindow>>,
    device_busy: OnceLock<Vec<DeviceBusy>>,
    /// By track, those of lane 0.
    threads: Vec<OnceLock<Thread>>,
    main_threads: OnceLock<BTreeMap<ProcessId, TrackId>>,
    stream_waits: OnceLock<StreamWaits>,
    op_tree: OnceLock<OpTree>,
    /// By what they are grouped by, in the order of [`OPERATOR_GROUPS`].
    op_groups: [OnceLock<Groups>; OPERATOR_GROUPS.len()],
    works: OnceLock<Works>,
    idle: OnceLock<Vec<DeviceIdle>>,
    paths: OnceLock<Paths>,
    pools: OnceLock<Vec<Pool>>,
    io_calls: OnceLock<Vec<IoCall>>,
}

impl<'a> Asked<'a> {
    /// Asks `trace` about what `selection` names; nothing is computed yet.
    pub fn new(trace: &'a Trace, selection: &'a Selection) -> Self {
        Self {
            trace,
            selection,
            coverage: OnceLock::new(),
            device_windows: OnceLock::new(),
            device_busy: OnceLock::new(),
            threads: trace.tracks.iter().map(|_| OnceLock::new()).collect(),
            main_threads: OnceLock::new(),
            stream_waits: OnceLock::new(),
            op_tree: OnceLock::new(),
            op_groups: Default::default(),
            works: OnceLock::new(),
            idle: OnceLock::new(),
            paths: OnceLock::new(),
            pools: OnceLock::new(),
            io_calls: OnceLock::new(),
        }
    }

    /// What a result over all device events asked for rests on.
    pub(crate) fn coverage(&self) -> Coverage {
        *self.coverage.get_or_init(|| Coverage::of(self.trace, self.selection.device_events(self.trace)))
    }

    /// The window of every device that has device events asked for, ordered by rank and device.
    pub(crate) fn device_windows(&self) -> &[DeviceWindow] {
        self.device_windows.get_or_init(|| device_windows(self.trace, self.selection))
    }

    /// When each device of the trace is busy.
    pub(crate) fn device_busy(&self) -> &[DeviceBusy] {
        self.device_busy.get_or_init(|| device_busy(self.trace))
    }

    /// What a thread does, by its first lane.
    pub(crate) fn thread(&self, first: TrackId) -> &Thread {
        self.threads[first.index()].get_or_init(|| thread(self.trace, first))
    }

    /// Where the program of each process runs.
    pub(crate) fn main_threads(&self) -> &BTreeMap<ProcessId, TrackId> {
        self.main_threads.get_or_init(|| main_threads(self.trace))
    }

    /// For what other streams' work streams waited.
    pub(crate) fn stream_waits(&self) -> &StreamWaits {
        self.stream_waits.get_or_init(|| StreamWaits::of(self.trace))
    }

    /// The operators of the trace.
    pub(crate) fn op_tree(&self) -> &OpTree {
        self.op_tree.get_or_init(|| OpTree::of(self.trace))
    }

    /// What operators are grouped by, as was asked.
    pub(crate) fn op_group_by(&self) -> GroupBy {
        self.selection.group_by.filter(|by| OPERATOR_GROUPS.contains(by)).unwrap_or(OPERATOR_GROUPS[0])
    }

    /// The operators of the trace, grouped by one of [`OPERATOR_GROUPS`].
    pub(crate) fn op_groups(&self, by: GroupBy) -> &Groups {
        let at = OPERATOR_GROUPS.iter().position(|group| *group == by).unwrap_or(0);
        self.op_groups[at].get_or_init(|| groups(self.trace, self.op_tree(), OPERATOR_GROUPS[at]))
    }

    /// The work of the operators.
    pub(crate) fn works(&self) -> &Works {
        self.works.get_or_init(|| Works::of(self.trace, self.op_tree()))
    }

    /// The idle time of every device asked for.
    pub(crate) fn idle(&self) -> &[DeviceIdle] {
        self.idle.get_or_init(|| idle(self))
    }

    /// The critical paths of the steps asked for.
    pub(crate) fn paths(&self) -> &Paths {
        self.paths.get_or_init(|| paths(self))
    }

    /// Every memory of the ranks asked for that has events, by rank, the host's first.
    pub(crate) fn pools(&self) -> &[Pool] {
        self.pools.get_or_init(|| pools(self.trace, self.selection))
    }

    /// The calls on files asked for.
    pub(crate) fn io_calls(&self) -> &[IoCall] {
        self.io_calls.get_or_init(|| io_calls(self.trace, self.selection))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, catalogue};
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;

    proptest! {
        #[test]
        fn what_is_shared_changes_no_answer(
            host in "[.axsi|]{30}", launch in "[.CDN|]{30}", streams in prop::collection::vec("[.CDNH|]{30}", 1..3),
            memory in "[.abcABC]{30}", steps in "0{1,20}1{1,20}", backwards in any::<bool>(),
        ) {
            let mut drawing = format!("rank 0 step {steps}\nrank 0 cpu 1 {host}\nrank 0 launch 1 {launch}\nrank 0 memory 1 {memory}\n");
            streams.iter().enumerate().for_each(|(at, row)| drawing += &format!("rank 0 stream {at} {row}\n"));
            let trace = drawn(&drawing);
            for step in [None, Some(1)] {
                let selection = Selection { step, ..Selection::default() };
                let alone = catalogue().iter().map(|analysis| (analysis.run)(&Asked::new(&trace, &selection)));
                let asked = Asked::new(&trace, &selection);
                let mut together: Vec<Outcome> = Vec::new();
                for at in 0..catalogue().len() {
                    let at = if backwards { catalogue().len() - 1 - at } else { at };
                    together.push((catalogue()[at].run)(&asked));
                }
                if backwards {
                    together.reverse();
                }
                prop_assert_eq!(together, alone.collect::<Vec<_>>());
            }
        }
    }
}

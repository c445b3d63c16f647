//! The kinds of records that are asked for.

use super::api::{Cupti, Domain};
use super::calls;
use crate::{Refusal, Wanted};

/// CUPTI's numbers of them.
pub(super) mod kind {
    pub(in crate::cuda) const MEMCPY: u32 = 1;
    pub(in crate::cuda) const MEMSET: u32 = 2;
    pub(in crate::cuda) const KERNEL: u32 = 3;
    pub(in crate::cuda) const DRIVER: u32 = 4;
    pub(in crate::cuda) const RUNTIME: u32 = 5;
    pub(in crate::cuda) const CONCURRENT_KERNEL: u32 = 10;
    pub(in crate::cuda) const MARKER: u32 = 12;
    pub(in crate::cuda) const OVERHEAD: u32 = 17;
    pub(in crate::cuda) const MEMCPY2: u32 = 22;
    pub(in crate::cuda) const CUDA_EVENT: u32 = 36;
    pub(in crate::cuda) const SYNCHRONIZATION: u32 = 38;
    pub(in crate::cuda) const GRAPH_TRACE: u32 = 51;
}

/// Without these there is nothing to record.
const NEEDED: [(u32, &str); 3] =
    [(kind::CONCURRENT_KERNEL, "kernels"), (kind::MEMCPY, "copies"), (kind::MEMSET, "fills")];

/// The variable by which NVTX finds who listens to it.
const NVTX_VARIABLE: &str = "NVTX_INJECTION64_PATH";

/// The kinds that are on.
pub(super) struct Enabled(Vec<u32>);

impl Enabled {
    /// Turns on what is wanted. Gives remarks on what cannot be.
    pub(super) fn enable(cupti: &Cupti, wanted: &Wanted) -> Result<(Self, Vec<String>), Refusal> {
        let mut enabled = Self(Vec::new());
        let mut remarks = Vec::new();
        for (kind, what) in NEEDED {
            if let Err(why) = enabled.turn_on(cupti, kind, what) {
                enabled.disable(cupti);
                return Err(why);
            }
        }
        for (kind, what) in optional(wanted) {
            if let Err(why) = enabled.turn_on(cupti, kind, what) {
                remarks.push(format!("no {what}: {why}"));
            }
        }
        if wanted.has_calls {
            // Not the wanted ones on, one by one: CUPTI 13.0 accepts that, and reports none where a context is there.
            calls::turn_off_unwanted(cupti, Domain::Runtime);
            calls::turn_off_unwanted(cupti, Domain::Driver);
        }
        if wanted.has_ranges && std::env::var_os(NVTX_VARIABLE).is_none() {
            remarks.push(format!("no ranges of NVTX: {NVTX_VARIABLE} does not name CUPTI's library"));
        }
        Ok((enabled, remarks))
    }

    /// Turns one kind on and off again.
    pub(super) fn try_one(cupti: &Cupti) -> Result<(), Refusal> {
        let mut enabled = Self(Vec::new());
        let result = enabled.turn_on(cupti, NEEDED[0].0, NEEDED[0].1);
        enabled.disable(cupti);
        result
    }

    /// Turns all of them off.
    pub(super) fn disable(&mut self, cupti: &Cupti) {
        for kind in self.0.drain(..) {
            cupti.disable(kind);
        }
    }

    fn turn_on(&mut self, cupti: &Cupti, kind: u32, what: &str) -> Result<(), Refusal> {
        cupti.enable(kind, what)?;
        self.0.push(kind);
        Ok(())
    }
}

fn optional(wanted: &Wanted) -> impl Iterator<Item = (u32, &'static str)> {
    let kinds = [
        (true, kind::MEMCPY2, "copies between devices"),
        (true, kind::OVERHEAD, "time of CUPTI itself"),
        (wanted.has_calls, kind::RUNTIME, "calls of the runtime"),
        (wanted.has_calls, kind::DRIVER, "calls of the driver"),
        (wanted.has_synchronizations, kind::SYNCHRONIZATION, "waits"),
        (wanted.has_synchronizations, kind::CUDA_EVENT, "events"),
        (!wanted.has_graph_nodes, kind::GRAPH_TRACE, "graphs as a whole"),
        (wanted.has_ranges, kind::MARKER, "ranges of NVTX"),
    ];
    kinds.into_iter().filter(|(is_wanted, ..)| *is_wanted).map(|(_, kind, what)| (kind, what))
}

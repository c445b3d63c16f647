//! Calls of the runtime and of the driver: which are recorded, and under what name.

use super::api::{Cupti, Domain};

/// Which are, and which are not.
const RULES: &str = include_str!("../../data/cuda_calls.txt");
/// More calls than any CUDA has.
const MOST: u32 = 4096;
/// CUPTI's numbers have gaps, where a call is gone.
const LONGEST_GAP: u32 = 64;

/// The names that were asked for so far, by domain and number.
#[derive(Default)]
pub(super) struct Names {
    of_driver: Vec<Option<Named>>,
    of_runtime: Vec<Option<Named>>,
}

#[derive(Clone, Copy)]
enum Named {
    Recorded(&'static str),
    Left,
}

impl Names {
    /// The name of a call that is recorded. `None`: it is not.
    pub(super) fn of(&mut self, cupti: &Cupti, domain: Domain, call: u32) -> Option<&'static str> {
        let names = match domain {
            Domain::Driver => &mut self.of_driver,
            Domain::Runtime => &mut self.of_runtime,
        };
        if call >= MOST {
            return Some("unknown");
        }
        let at = call as usize;
        names.resize(names.len().max(at + 1), None);
        let known = *names[at].get_or_insert_with(|| named(cupti, domain, call));
        match known {
            Named::Recorded(name) => Some(name),
            Named::Left => None,
        }
    }
}

fn named(cupti: &Cupti, domain: Domain, call: u32) -> Named {
    // A name that is not known says nothing about what the call does, so that it is shown.
    let name = cupti.call_name(domain, call).and_then(|name| name.to_str().ok()).map_or("unknown", without_version);
    if name == "unknown" || is_recorded(domain, name) { Named::Recorded(name) } else { Named::Left }
}

/// `cudaLaunchKernel_v7000` without the CUDA in which it came; `cuMemAlloc_v2` is the name of a function.
fn without_version(name: &'static str) -> &'static str {
    match name.rsplit_once("_v") {
        Some((name, version)) if version.len() >= 4 && version.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => name,
    }
}

/// What the rules say of a call.
fn is_recorded(domain: Domain, name: &str) -> bool {
    let domain = match domain {
        Domain::Driver => "driver",
        Domain::Runtime => "runtime",
    };
    let rules = RULES.lines().filter_map(|line| line.strip_prefix(domain)?.trim_start().split_once(' '));
    let mut has_other_rule = false;
    for (rule, pattern) in rules {
        let is_hit = pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start));
        if is_hit {
            return rule == "record";
        }
        has_other_rule |= rule == "record";
    }
    // Where some are named to be recorded, the others are not.
    !has_other_rule
}

/// Calls of a domain with their numbers.
fn calls(cupti: &Cupti, domain: Domain) -> impl Iterator<Item = (u32, &'static str)> {
    let mut gap = 0;
    (1..MOST)
        .map(move |call| (call, cupti.call_name(domain, call)))
        .take_while(move |(_, name)| {
            gap = if name.is_some() { 0 } else { gap + 1 };
            gap < LONGEST_GAP
        })
        .filter_map(|(call, name)| Some((call, without_version(name?.to_str().ok()?))))
}

/// Has CUPTI leave out what would be left out anyhow, of a domain whose calls are on.
pub(super) fn turn_off_unwanted(cupti: &Cupti, domain: Domain) {
    for (call, _) in calls(cupti, domain).filter(|(_, name)| !is_recorded(domain, name)) {
        cupti.turn_off_call(domain, call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_enqueues_work_is_recorded_and_what_only_asks_is_not() {
        for name in ["cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize", "cudaEventRecord", "cudaFree"] {
            assert!(is_recorded(Domain::Runtime, name), "{name}");
        }
        for name in ["cudaGetDevice", "cudaSetDevice", "cudaGetLastError", "cudaEventCreateWithFlags"] {
            assert!(!is_recorded(Domain::Runtime, name), "{name}");
        }
        for name in ["cuLaunchKernel", "cuLaunchKernelEx_ptsz", "cuGraphLaunch", "cuMemcpyHtoDAsync_v2"] {
            assert!(is_recorded(Domain::Driver, name), "{name}");
        }
        // All of which torch.profiler shows.
        for name in ["Create", "Map", "Unmap", "Release", "ExportToShareableHandle", "ImportFromShareableHandle"] {
            assert!(is_recorded(Domain::Driver, &format!("cuMem{name}")), "{name}");
        }
        for name in ["cuCtxGetCurrent", "cuGetProcAddress_v2", "cuMemGetInfo_v2", "cuMemAlloc_v2", "cuMemSetAccess"] {
            assert!(!is_recorded(Domain::Driver, name), "{name}");
        }
    }

    #[test]
    fn a_version_of_cuda_is_no_part_of_a_name() {
        assert_eq!(without_version("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
        assert_eq!(without_version("cudaGraphAddNode_v12020"), "cudaGraphAddNode");
        assert_eq!(without_version("cudaLaunchKernel_ptsz_v7000"), "cudaLaunchKernel_ptsz");
        assert_eq!(without_version("cuMemcpyHtoDAsync_v2"), "cuMemcpyHtoDAsync_v2");
        assert_eq!(without_version("cuLaunchKernel"), "cuLaunchKernel");
    }
}

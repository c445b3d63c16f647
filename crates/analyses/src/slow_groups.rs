//! # Definition
//! For each process group, kind of collective and size: how long the transfer takes, beside that of the other groups of
//! the same description. It finds the group with a slow link.
//!
//! - Collectives are matched across ranks as in `stragglers`, and transfer is what one takes on the rank that comes last.
//!   Waiting for other ranks is not in it, and no clocks are compared.
//! - *Siblings* are the groups of the same description and number of ranks that carry out the same kind of collective of
//!   the same size, as the tensor-parallel groups of a job do; the group itself is one of them.
//! - Each group has a middle transfer time, over its collectives. That of the siblings is the middle one of these, so that
//!   a group counts once however much it communicates.
//! - The bus bandwidth is that of nccl-tests, as in `collectives`, but of the middle transfer: waiting is not in it. The peak
//!   of the link is what the NVLink links of a device carry in one direction, all together, by its product name.
//! - The excess is what collectives of the group take beyond the middle of the siblings, of those that take longer.
//!
//! # Units
//! Nanoseconds, bytes of one collective, bytes in a second, rounded. Counts of ranks, groups and collectives. A ratio of 1 is as the siblings.
//!
//! # Source
//! What operators, ranges and kernels say of the collectives that they are, and their size, as in `collectives`.
//! The peaks of links: `crates/analyses/data/devices.tsv`, with its documents.
//!
//! # Edge cases
//! With fewer than three siblings nobody knows who is slow: what compares them is absent. The middle one of an even number
//! is the shorter of the two in the middle. Of ranks that say different sizes the largest counts. A collective is left out
//! when not all ranks of its group are known to be in the run, since the last of all may be missing then; when it is of a
//! kind after which a rank may leave before the others have come, as from a broadcast; and when its size is not known,
//! unless it is a barrier. Groups on links of different kinds, within a host and between hosts, are siblings too: the slower ones have a
//! ratio above 1 then without a fault. The share of the link's peak is absent unless NCCL carries the collectives out on devices
//! that the table knows, of the same peak, and the ranks are known to be on one host. It can be above 1, as where switches
//! reduce, and few ranks without a switch between them cannot use all links. For one rank, the groups that it is in, beside all their siblings; for one step,
//! collectives that the first rank of the group asks for in it.

use crate::collectives::{bus_bandwidth, size_bytes};
use crate::communication::matched;
use crate::roofline::devices::link_bytes_per_s;
use crate::windows::Windows;
use crate::{Analysis, AnalysisContext, Needs, Outcome, Ranks, Selection};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use stepscope_align::{Calls, Part};
use stepscope_base::percentiles::{nearest_rank, nearest_rank_of_unsorted};
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{Collective, CollectiveKind, CommBackend, Trace};

columns! {
    /// Collectives of one kind and size of one process group, beside those of its siblings.
    #[derive(Clone, PartialEq, Debug)]
    pub struct SlowGroup {
        /// The name of the process group.
        group: Option<String> => Text,
        /// The ranks of the group, as far as the source lists them.
        ranks: String => Text,
        /// What the collective does: `all_reduce`, `all_gather`.
        kind: &'static str => Text,
        /// Bytes that go into one collective or come out of it, whichever are more. Absent for a barrier.
        size_bytes: Option<i64> => Bytes,
        /// Number of collectives.
        calls: i64 => Count,
        /// The transfer time of the middle one of them.
        median_transfer_ns: i64 => Nanoseconds,
        /// That of the middle one of the siblings. Absent with fewer than three siblings.
        sibling_transfer_ns: Option<i64> => Nanoseconds,
        /// `median_transfer_ns` over `sibling_transfer_ns`.
        transfer_ratio: Option<f64> => Ratio,
        /// Sum of the times by which collectives take longer than `sibling_transfer_ns`.
        excess_ns: Option<i64> => Nanoseconds,
        /// Number of siblings, with the group itself.
        siblings: i64 => Count,
        /// The size over `median_transfer_ns`, times the share of it that crosses the links of each rank.
        bus_bandwidth_bytes_per_s: Option<i64> => BytesPerSecond,
        /// `bus_bandwidth_bytes_per_s` over the peak of the links between the devices. Absent when it is not known, as between
        /// hosts and over PCIe.
        link_peak_ratio: Option<f64> => Ratio,
        /// Sum of the transfer times.
        transfer_ns: i64 => Nanoseconds,
        /// Number of ranks in the process group.
        group_size: i64 => Count,
        /// What the process group is for.
        group_description: Option<String> => Text,
    }
}

/// Groups are compared with each other from this number on: of two, nobody knows which one is as it should be.
const MIN_SIBLINGS: usize = 3;

/// Every group asked for, those with the most excess first, then by description, group, kind and size.
pub fn slow_groups(trace: &Trace, selection: &Selection) -> Vec<SlowGroup> {
    rows(&AnalysisContext::new(trace, selection))
}

/// The same in a context, which other analyses may share.
pub(crate) fn rows(context: &AnalysisContext<'_>) -> Vec<SlowGroup> {
    let families = families(context);
    let mut rows: Vec<SlowGroup> =
        families.iter().flat_map(|(family, groups)| compared(context, family, groups)).collect();
    rows.sort_by_cached_key(|row| {
        let names = (row.group_description.clone(), row.group.clone(), row.ranks.clone());
        (Reverse(row.excess_ns), names, row.kind, Reverse(row.size_bytes))
    });
    rows
}

/// What siblings have in common: description, number of ranks, kind and size.
type Family = (StringId, i64, CollectiveKind, Option<i64>);

/// A group by its name and by its ranks as the source lists them.
type GroupKey = (StringId, StringId);

#[derive(Default)]
struct Group {
    ranks: BTreeSet<u32>,
    /// What each collective takes on the rank that comes last.
    transfers_ns: Vec<i64>,
    /// What the links between the devices of each collective carry at best.
    links: BTreeSet<Option<i64>>,
}

/// What links carry at best, bytes per second, by device.
struct Links(Vec<Option<i64>>);

impl Links {
    fn of(trace: &Trace) -> Self {
        Self(trace.devices.iter().map(link_bytes_per_s).collect())
    }

    /// Those between the devices that carry out a collective of NCCL; `None` when they are not known to be of one host and
    /// alike.
    fn between(&self, trace: &Trace, parts: &[Part]) -> Option<i64> {
        let of = |part: &Part| {
            let process = &trace.processes[part.process.index()];
            let device = trace.tracks[trace.slices.track[part.carried_by.index()].index()].device?;
            let is_nccl = process.comm_backend == Some(CommBackend::Nccl);
            Some((process.host.as_deref()?, self.0[device.index()]?)).filter(|_| is_nccl)
        };
        let first = of(&parts[0])?;
        parts.iter().all(|part| of(part) == Some(first)).then_some(first.1)
    }
}

fn families(context: &AnalysisContext<'_>) -> BTreeMap<Family, BTreeMap<GroupKey, Group>> {
    let (trace, links) = (context.trace, Links::of(context.trace));
    // Siblings are compared, whichever rank is asked for.
    let windows = Windows::of(trace, &Selection { ranks: Ranks::default(), ..context.selection.clone() });
    let mut families: BTreeMap<Family, BTreeMap<GroupKey, Group>> = BTreeMap::new();
    for parts in matched(context).filter(|parts| windows.has_slice(trace, parts[0].asked_by)) {
        let Some((family, group)) = family(context, &parts) else { continue };
        let group = families.entry(family).or_default().entry(group).or_default();
        group.ranks.extend(parts.iter().map(|part| part.rank));
        group.transfers_ns.extend(parts.iter().map(|part| part.dur_ns).min());
        group.links.insert(links.between(trace, &parts));
    }
    families
}

/// The family and the group of a matched collective; `None` where its shortest part may not be the transfer.
fn family(context: &AnalysisContext<'_>, parts: &[Part]) -> Option<(Family, GroupKey)> {
    let (trace, calls) = (context.trace, context.get::<Calls>());
    let said = |part: &Part| -> Option<&Collective> {
        let call = calls.around(trace, part.asked_by).map(|at| &calls.calls[at].said);
        call.or_else(|| calls.of_kernel(trace, part.asked_by))
    };
    let first = said(&parts[0])?;
    let kind = first.kind.filter(|kind| kind.ends_together())?;
    let group_size = first.group_size.filter(|size| *size == parts.len() as i64)?;
    let size_bytes = parts.iter().filter_map(|part| size_bytes(trace, said(part)?)).max();
    // What is said of a barrier is one element that nobody asked for, or nothing.
    let size_bytes = size_bytes.filter(|_| kind != CollectiveKind::Barrier);
    let is_known = size_bytes.is_some() || kind == CollectiveKind::Barrier;
    let family = (first.group_description, group_size, kind, size_bytes);
    is_known.then_some((family, (first.group, first.group_ranks)))
}

/// The rows of siblings that were asked for.
fn compared(context: &AnalysisContext<'_>, family: &Family, groups: &BTreeMap<GroupKey, Group>) -> Vec<SlowGroup> {
    let median = |group: &Group| {
        let mut transfers_ns = group.transfers_ns.clone();
        nearest_rank_of_unsorted(&mut transfers_ns, 50).expect("a group has collectives")
    };
    let mut medians: Vec<i64> = groups.values().map(median).collect();
    medians.sort_unstable();
    let usual_ns = nearest_rank(&medians, 50).filter(|_| groups.len() >= MIN_SIBLINGS);
    let is_asked = |group: &Group| group.ranks.iter().any(|rank| context.selection.has_rank(*rank));
    let asked = groups.iter().filter(|(_, group)| is_asked(group));
    asked.map(|(key, group)| row(context.trace, family, key, group, median(group), (groups.len(), usual_ns))).collect()
}

fn row(
    trace: &Trace,
    &(description, group_size, kind, size_bytes): &Family,
    &(name, listed): &GroupKey,
    group: &Group,
    median_ns: i64,
    (siblings, usual_ns): (usize, Option<i64>),
) -> SlowGroup {
    let sum = |of: &dyn Fn(i64) -> i64| group.transfers_ns.iter().fold(0_i64, |sum, ns| sum.saturating_add(of(*ns)));
    let bus_bandwidth = size_bytes.and_then(|size| bus_bandwidth(kind, group_size, size, median_ns));
    let link = group.links.first().copied().flatten().filter(|_| group.links.len() == 1);
    let ranks = || format!("{:?}", group.ranks.iter().collect::<Vec<_>>());
    SlowGroup {
        group: trace.text(name),
        ranks: if listed == StringTable::EMPTY { ranks() } else { trace.strings.get(listed).to_string() },
        kind: kind.as_str(),
        size_bytes,
        calls: group.transfers_ns.len() as i64,
        median_transfer_ns: median_ns,
        sibling_transfer_ns: usual_ns,
        transfer_ratio: usual_ns.map(|usual_ns| median_ns as f64 / usual_ns as f64),
        excess_ns: usual_ns.map(|usual_ns| sum(&|ns| (ns - usual_ns).max(0))),
        siblings: siblings as i64,
        bus_bandwidth_bytes_per_s: bus_bandwidth,
        link_peak_ratio: bus_bandwidth.zip(link).map(|(bandwidth, link)| bandwidth as f64 / link as f64),
        transfer_ns: sum(&|ns| ns),
        group_size,
        group_description: trace.text(description),
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::Condensed);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::without_coverage(context, &rows(context))
}

#[cfg(test)]
mod tests;

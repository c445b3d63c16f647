//! Collectives of which no rank states the process group, as operators of oneCCL, and labels of NCCL and Gloo in traces of
//! `torch.profiler` without metadata.

use crate::{Calls, Matched, Part, parts};
use stepscope_trace::{Collective, CollectiveKind, FindingCode, ProcessGroup, Trace};

/// Whether all ranks of a run can be taken for the group of a collective that states none.
#[derive(Debug)]
pub struct WholeRun {
    /// How many ranks the run has, also those that no file is of.
    ranks: i64,
    /// What is done in groups that are stated.
    in_groups: Vec<CollectiveKind>,
    /// Whether a process is known to be in a group of some of the ranks.
    is_divided: bool,
}

impl WholeRun {
    /// What `trace` says of groups.
    pub fn of(trace: &Trace) -> Self {
        let mut in_groups: Vec<CollectiveKind> =
            trace.collectives.iter().filter(|said| said.states_group()).filter_map(|said| said.kind).collect();
        in_groups.sort_unstable();
        in_groups.dedup();
        let stated = trace.processes.iter().filter_map(|process| process.world_size).max();
        let ranks = stated.map_or_else(|| trace.ranks().len() as i64, i64::from);
        let mut groups = trace.processes.iter().flat_map(|process| &process.process_groups);
        Self { ranks, in_groups, is_divided: groups.any(|group| size_of(group).is_some_and(|size| size < ranks)) }
    }

    /// True when `said` states no group and all ranks are taken for it: no rank states one for what it does, and nothing
    /// is known of smaller groups.
    pub fn is_group_of(&self, said: &Collective) -> bool {
        let is_in_groups = |kind: CollectiveKind| kind.is_between_two() || self.in_groups.contains(&kind);
        !said.states_group()
            && !self.is_divided
            && said.kind.is_some_and(|kind| !is_in_groups(kind))
            && said.group_size.is_none_or(|size| size == self.ranks)
    }
}

/// The number of ranks of a group; `None` when it is not known, or the rank is alone.
fn size_of(group: &ProcessGroup) -> Option<i64> {
    let size = group.size.map_or(group.ranks.len() as i64, i64::from);
    Some(size).filter(|size| *size > 1)
}

/// Adds a finding for each collective that was matched since all ranks were taken for its group.
pub(crate) fn report_assumed_groups(trace: &mut Trace) {
    let mut findings = std::mem::take(&mut trace.findings);
    findings.forget(FindingCode::CollectiveGroupAssumed);
    if trace.ranks().len() > 1 && trace.collectives.iter().any(|said| !said.states_group()) {
        let parts = parts(trace, &Calls::of(trace));
        let example = |part: &Part, ranks: usize| {
            let kind = part.kind.map_or("", CollectiveKind::as_str);
            format!("{kind} in {} on {ranks} ranks", trace.slice_name(part.asked_by))
        };
        for same in Matched::of(&parts).places() {
            let part = &parts[same[0] as usize];
            if part.is_group_assumed {
                findings.add(FindingCode::CollectiveGroupAssumed, || example(part, same.len()));
            }
        }
    }
    trace.findings = findings;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Align, aligned, together};
    use proptest::prelude::*;
    use stepscope_base::StringTable;
    use stepscope_trace::drawn::drawn_with_collectives;
    use stepscope_trace::simulated::{Job, Schedule};
    use stepscope_trace::{Drift, SliceId, SliceKind};

    /// What carries out each matched collective, by rank, in the order of the slices.
    fn matched(trace: &Trace) -> Vec<Vec<SliceId>> {
        let parts = parts(trace, &Calls::of(trace));
        let carried = |same: Vec<Part>| same.iter().map(|part| part.carried_by).collect();
        let mut matched: Vec<Vec<SliceId>> = Matched::of(&parts).each(&parts).map(carried).collect();
        matched.sort_unstable();
        matched
    }

    fn without_group(said: &mut Collective) {
        let empty = StringTable::EMPTY;
        (said.group, said.group_description, said.group_ranks) = (empty, empty, empty);
        (said.group_size, said.sequence_number) = (None, None);
    }

    fn schedules() -> impl Strategy<Value = Schedule> {
        prop_oneof![
            (1_u32..4, any::<bool>()).prop_map(|(buckets, overlaps)| Schedule::Ddp { buckets, overlaps }),
            (1_u32..4, any::<bool>()).prop_map(|(layers, prefetches)| Schedule::Fsdp { layers, prefetches }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn collectives_of_all_ranks_are_matched_as_if_they_stated_it(
            schedule in schedules(), ranks in 2_u32..6, steps in 1_i64..3, has_devices in any::<bool>(), seed in any::<u64>(),
        ) {
            let stated = Job { ranks, steps, schedule, has_devices, jitter_ns: 9_000, seed, ..Job::default() };
            let unstated = Job { states_groups: false, ..stated.clone() };
            let (stated, unstated) = (stated.run().trace(), unstated.run().trace());
            let expected = matched(&stated);
            prop_assert!(!expected.is_empty());
            prop_assert_eq!(&matched(&unstated), &expected);
            let counted = |trace: Trace| aligned(trace, Align::Auto).findings.count(FindingCode::CollectiveGroupAssumed);
            prop_assert_eq!((counted(stated), counted(unstated)), (0, expected.len() as u64));
        }
    }

    #[test]
    fn a_finding_says_what_was_assumed() {
        let trace = Job { ranks: 3, states_groups: false, ..Job::default() }.run().trace();
        let trace = aligned(aligned(trace, Align::None), Align::Auto);
        let found = trace.findings.iter().find(|found| found.code == FindingCode::CollectiveGroupAssumed);
        let found = found.map(|found| (found.count, found.examples[0].as_str()));
        assert_eq!(found, Some((2 * 3, "all_reduce in ncclDevKernel on 3 ranks")));
        let alone = aligned(Job { ranks: 1, states_groups: false, ..Job::default() }.run().trace(), Align::Auto);
        assert_eq!(alone.findings.count(FindingCode::CollectiveGroupAssumed), 0);
    }

    #[test]
    fn nothing_is_assumed_where_groups_are_known_otherwise() {
        let job = Job { schedule: Schedule::Fsdp { layers: 2, prefetches: true }, ..Job::default() };
        let whole = job.run().trace();
        let all = matched(&whole).len();
        let kinds = |kind: CollectiveKind| whole.collectives.iter().filter(move |said| said.kind == Some(kind));
        let gathers = kinds(CollectiveKind::AllGather).count() / 4;
        let unstated = |is_meant: &dyn Fn(&Collective) -> bool| {
            let mut trace = whole.clone();
            trace.collectives.iter_mut().filter(|said| is_meant(said)).for_each(without_group);
            trace
        };
        let is_gather = |said: &Collective| said.kind == Some(CollectiveKind::AllGather);
        assert_eq!(matched(&unstated(&|_| true)).len(), all);
        // Of one kind all, or all but those of a rank.
        assert_eq!(matched(&unstated(&is_gather)).len(), all);
        let rank_of = |said: &Collective| whole.rank_of_track(whole.slices.track[said.slice.index()]);
        let of_some = unstated(&|said| is_gather(said) && rank_of(said) > 0);
        assert_eq!(matched(&of_some).len(), all - gathers);
        let parts = parts(&of_some, &Calls::of(&of_some));
        assert_eq!(parts.len(), 4 * all, "they stay, and are alone");
        assert_eq!(together(&parts).places().filter(|same| same.len() == 1).count(), 4 * gathers);
        // The source says that there are smaller groups, or how many ranks take part.
        let mut divided = unstated(&|_| true);
        let group = |size: u32| ProcessGroup { size: Some(size), ..ProcessGroup::default() };
        divided.processes[2].process_groups = vec![group(4), group(1)];
        assert_eq!(matched(&divided).len(), all);
        divided.processes[2].process_groups = vec![group(4), group(2)];
        assert_eq!(matched(&divided).len(), 0);
        let mut sized = unstated(&|_| true);
        sized.collectives.iter_mut().filter(|said| is_gather(said)).for_each(|said| said.group_size = Some(2));
        assert_eq!(matched(&sized).len(), all - gathers);
        sized.collectives.iter_mut().for_each(|said| said.group_size = Some(4));
        assert_eq!(matched(&sized).len(), all);
    }

    #[test]
    fn what_goes_from_one_rank_to_another_is_of_no_group() {
        let schedule = Schedule::Pipeline { stages: 2, micro_batches: 3 };
        let trace = Job { ranks: 2, schedule, states_groups: false, ..Job::default() }.run().trace();
        assert!(parts(&trace, &Calls::of(&trace)).iter().all(|part| !part.is_between_two()));
    }

    #[test]
    fn a_rank_that_missed_one_shifts_no_collective_of_another_size() {
        let drawing = "rank 0 label 1 aabbccbb
                       rank 1 label 1 ..bbccbb
                       rank 2 label 1 aabbcc..";
        let said = |name, kind, elements| (name, SliceKind::Annotation, (kind, "Float", Some(elements), None));
        let all = [said("a", "allreduce", 5), said("b", "allreduce", 6), said("c", "all_gather", 6)];
        let mut trace = drawn_with_collectives(drawing, &all);
        trace.collectives.iter_mut().for_each(without_group);
        let place = |id: &SliceId| {
            let rank = trace.rank_of_track(trace.slices.track[id.index()]);
            format!("{rank}{}{}", trace.slice_name(*id), trace.slices.start_ns[id.index()] / 1_000)
        };
        let lines = matched(&trace).iter().map(|same| same.iter().map(place).collect::<Vec<_>>().join(" ")).collect();
        let lines: Vec<String> = lines;
        assert_eq!(lines, ["0a0 2a0", "0b2 1b2 2b2", "0c4 1c4 2c4", "0b6 1b6"]);
    }

    #[test]
    fn clocks_that_are_stated_are_not_corrected_by_what_was_assumed() {
        let hosts = vec![(0, Drift(0)), (5_000_000, Drift(0))];
        let offsets = |states_groups: bool, align: Align, is_unrelated: bool| {
            let mut trace = Job { hosts: hosts.clone(), states_groups, ..Job::default() }.run().trace();
            trace.findings.add_count(FindingCode::ClocksUnrelated, u64::from(is_unrelated));
            aligned(trace, align).clocks.iter().map(|clock| clock.offset_ns).collect::<Vec<_>>()
        };
        let corrected = vec![0, 0, -5_000_000, -5_000_000];
        assert_eq!(offsets(true, Align::Auto, false), corrected);
        assert_eq!(offsets(false, Align::Auto, false), [0; 0]);
        assert_eq!(offsets(false, Align::Auto, true), corrected);
        assert_eq!(offsets(false, Align::Collectives, false), corrected);
    }
}

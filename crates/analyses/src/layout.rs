//! # Definition
//! What each process group of the run is for: the dimension along which its ranks share the work. It is read from the
//! group's description, or else guessed from who communicates how; `reason` says which.
//!
//! A description is cut into words, without regard to case. `dp`, `ddp`, `fsdp`, `hsdp`, `data`, `replicate`, `shard` name
//! `data`; `tp`, `tensor` name `tensor`; `pp`, `pipe`, `pipeline` name `pipeline`; `ep`, `expert`, `experts`, `moe` name
//! `expert`; `cp`, `context`, `sp`, `sequence`, `ulysses` name `context`. A description that names several is `other`. Of a
//! group whose description names none, as of `default_pg` and `undefined`, the first that applies counts:
//!
//! 1. `unknown`: no collective of a known kind was recorded of it;
//! 2. `pipeline`: what it has is only sends and receives, barriers aside;
//! 3. `expert`: it has an all-to-all, and neither sends nor receives;
//! 4. of groups with an all-reduce, an all-gather or a reduce-scatter, and neither sends nor receives: `data` for a group
//!    of all ranks beside which no other group communicates, and for a group of ranks that lie equally far apart, more than
//!    1; `tensor` for a group of neighbouring ranks, when a group of ranks that lie equally far apart communicates too;
//! 5. `other`: everything else.
//!
//! # Units
//! Counts of ranks and of collectives.
//!
//! # Source
//! The groups of each process as its metadata lists them, and what operators, ranges and kernels say of the collectives
//! that they are.
//!
//! # Edge cases
//! A guess from use can be wrong: shards of data may lie on neighbouring ranks, and sequences may be exchanged by
//! all-to-all. A row is a name with its ranks: groups of one name on different ranks are different groups. Where nothing
//! tells the ranks, or the source cut their list short, the size alone is known. For one rank, the groups that it says
//! it is in, judged by all that the run says; for one step, all groups, with the collectives that begin in it.

use crate::windows::Windows;
use crate::{Analysis, AnalysisContext, Needs, Outcome, Ranks, Selection};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use stepscope_align::Calls;
use stepscope_base::StringId;
use stepscope_trace::{Collective, CollectiveKind, SliceId, Trace, listed};

columns! {
    /// A process group and what it is for.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Layout {
        /// The name of the process group.
        group: Option<String> => Text,
        /// What it is for: `data`, `tensor`, `pipeline`, `expert`, `context`, `other`, `unknown`.
        dimension: &'static str => Text,
        /// Number of ranks in the group.
        group_size: Option<i64> => Count,
        /// The ranks, in their order in the group.
        ranks: Option<String> => Text,
        /// What the source calls it.
        group_description: Option<String> => Text,
        /// How the dimension is known.
        reason: String => Text,
        /// Number of ranks of the run that say that they are in it.
        recorded_ranks: i64 => Count,
        /// Number of its collectives, of all ranks together.
        calls: i64 => Count,
    }
}

/// Every process group of the ranks asked for, by ranks and name.
pub fn layout(trace: &Trace, selection: &Selection) -> Vec<Layout> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<Layout> {
    let groups = groups(context);
    let of_job = Job::of(&groups);
    let asked = groups.iter().filter(|(_, group)| group.members.iter().any(|rank| context.selection.has_rank(*rank)));
    asked.map(|(key, group)| row(key, group, &of_job)).collect()
}

/// A group: its ranks, where they are known, and its name.
type Key = (Vec<u32>, String);

/// What the ranks of a group say of it.
#[derive(Default)]
struct Group {
    description: String,
    size: Option<i64>,
    /// The ranks that say so.
    members: BTreeSet<u32>,
    kinds: BTreeSet<CollectiveKind>,
    /// Collectives asked for.
    calls: i64,
}

fn groups(context: &AnalysisContext<'_>) -> BTreeMap<Key, Group> {
    let trace = context.trace;
    let mut groups: BTreeMap<Key, Group> = BTreeMap::new();
    // What a process lists tells the ranks of a group that its collectives only name.
    let mut ranks_of: BTreeMap<(u32, &str), &[u32]> = BTreeMap::new();
    for process in &trace.processes {
        for of_process in &process.process_groups {
            let group = groups.entry((of_process.ranks.clone(), of_process.name.clone())).or_default();
            group.members.insert(process.rank);
            group.size = group.size.or(of_process.size.map(i64::from));
            group.description.clone_from(&of_process.description);
            ranks_of.insert((process.rank, &of_process.name), &of_process.ranks);
        }
    }
    let windows = Windows::of(trace, &Selection { ranks: Ranks::default(), ..context.selection.clone() });
    // Each collective of each rank has a list of all ranks of its group: it is read once.
    let mut lists: FxHashMap<StringId, Option<Vec<u32>>> = FxHashMap::default();
    let mut add = |slice: SliceId, said: &Collective| {
        let text = |id: StringId| trace.strings.get(id);
        if !said.states_group() {
            return;
        }
        let rank = trace.rank_of_track(trace.slices.track[slice.index()]);
        let ranks = lists.entry(said.group_ranks).or_insert_with(|| listed(text(said.group_ranks))).clone();
        let ranks = ranks.or_else(|| ranks_of.get(&(rank, text(said.group))).map(|ranks| ranks.to_vec()));
        let group = groups.entry((ranks.unwrap_or_default(), text(said.group).to_string())).or_default();
        group.members.insert(rank);
        group.size = group.size.or(said.group_size);
        if group.description.is_empty() {
            group.description = text(said.group_description).to_string();
        }
        group.kinds.extend(said.kind);
        group.calls += i64::from(windows.has_slice(trace, slice) && context.selection.has_rank(rank));
    };
    let calls = context.get::<Calls>();
    calls.calls.iter().for_each(|call| add(call.slice, &call.said));
    for event in trace.device_events.iter() {
        let is_in_call = event.op.is_some_and(|op| calls.around(trace, op).is_some());
        if let Some(said) = calls.of_kernel(trace, event.slice).filter(|_| !is_in_call) {
            add(event.slice, said);
        }
    }
    groups
}

/// What is to be known of all groups to judge one.
struct Job {
    size: i64,
    /// Groups of several ranks of which collectives were recorded.
    communicating: usize,
    /// Whether one of them has ranks that lie equally far apart, more than 1.
    has_strided: bool,
}

impl Job {
    fn of(groups: &BTreeMap<Key, Group>) -> Self {
        let size = |((ranks, _), group): (&Key, &Group)| size_of(ranks, group).unwrap_or(0);
        let last = groups.iter().flat_map(|((ranks, _), group)| ranks.iter().chain(&group.members)).max();
        let communicating = || groups.iter().filter(|(_, group)| !group.kinds.is_empty());
        Self {
            size: groups.iter().map(size).max().unwrap_or(0).max(last.map_or(0, |rank| i64::from(*rank) + 1)),
            communicating: communicating().filter(|group| size(*group) > 1).count(),
            has_strided: communicating().any(|((ranks, _), _)| stride(ranks).is_some_and(|stride| stride > 1)),
        }
    }
}

fn size_of(ranks: &[u32], group: &Group) -> Option<i64> {
    group.size.or((!ranks.is_empty()).then_some(ranks.len() as i64))
}

/// How far apart neighbours in a group are, when all are equally far.
fn stride(ranks: &[u32]) -> Option<u32> {
    let mut steps = ranks.windows(2).map(|pair| pair[1].checked_sub(pair[0]));
    let first = steps.next()??;
    steps.all(|step| step == Some(first)).then_some(first)
}

fn row((ranks, name): &Key, group: &Group, job: &Job) -> Layout {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_string());
    let (dimension, reason) = by_description(&group.description).unwrap_or_else(|| by_use(ranks, group, job));
    Layout {
        group: text(name),
        dimension,
        group_size: size_of(ranks, group),
        ranks: (!ranks.is_empty()).then(|| format!("{ranks:?}")),
        group_description: text(&group.description),
        reason,
        recorded_ranks: group.members.len() as i64,
        calls: group.calls,
    }
}

const WORDS: [(&str, &[&str]); 5] = [
    ("data", &["dp", "ddp", "fsdp", "hsdp", "data", "replicate", "shard"]),
    ("tensor", &["tp", "tensor"]),
    ("pipeline", &["pp", "pipe", "pipeline"]),
    ("expert", &["ep", "expert", "experts", "moe"]),
    ("context", &["cp", "context", "sp", "sequence", "ulysses"]),
];

/// The dimension that a description names, with the reason; `None` when it names none.
fn by_description(description: &str) -> Option<(&'static str, String)> {
    let description = description.to_ascii_lowercase();
    let words: Vec<&str> = description.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
    let named = WORDS.iter().filter(|(_, names)| names.iter().any(|name| words.contains(name)));
    let named: Vec<&'static str> = named.map(|(dimension, _)| *dimension).collect();
    match named[..] {
        [] => None,
        [dimension] => Some((dimension, "its description".into())),
        _ => Some(("other", format!("its description names {}", named.join(" and ")))),
    }
}

/// The dimension that the use of a group suggests, with the reason.
fn by_use(ranks: &[u32], group: &Group, job: &Job) -> (&'static str, String) {
    use CollectiveKind::*;
    let has = |kind: CollectiveKind| group.kinds.contains(&kind);
    let has_messages = group.kinds.iter().any(|kind| kind.is_between_two());
    let (stride, size) = (stride(ranks), size_of(ranks, group));
    let shares = [AllReduce, AllGather, ReduceScatter].into_iter().any(has);
    let is_whole = size.is_some_and(|size| size > 1 && size == job.size);
    let (dimension, reason) = match stride {
        _ if group.kinds.is_empty() => ("unknown", "no collective of a known kind"),
        _ if has_messages && group.kinds.iter().all(|kind| kind.is_between_two() || *kind == Barrier) => {
            ("pipeline", "only sends and receives")
        }
        _ if has_messages => ("other", "sends and receives beside collectives"),
        _ if has(AllToAll) => ("expert", "all-to-all"),
        _ if shares && is_whole && job.communicating == 1 => ("data", "all ranks, and no other group communicates"),
        Some(2..) if shares => ("data", "ranks equally far apart share or reduce"),
        Some(1) if shares && !is_whole && job.has_strided => {
            ("tensor", "neighbouring ranks share or reduce, and distant ones too")
        }
        _ => ("other", "neither its description nor its use names a dimension"),
    };
    (dimension, reason.into())
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::Condensed);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::without_coverage(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_base::StringTable;
    use stepscope_trace::drawn::drawn;
    use stepscope_trace::{ProcessGroup, SliceKind};

    /// A run of `world` ranks, each with one collective of each of these kinds in its groups.
    fn trace_of(world: u32, groups: &[(&str, Vec<u32>, &str, Option<CollectiveKind>)]) -> Trace {
        let cells = "a|".repeat(groups.len().max(1));
        let mut trace = drawn(&(0..world).map(|rank| format!("rank {rank} cpu 1 {cells}\n")).collect::<String>());
        let ids: Vec<SliceId> = trace.slices.ids().filter(|id| trace.slices.kind(*id) == SliceKind::Op).collect();
        let mut at: BTreeMap<u32, usize> = BTreeMap::new();
        for id in ids {
            let rank = trace.rank_of_track(trace.slices.track[id.index()]);
            let next = at.entry(rank).or_default();
            let Some((name, ranks, description, kind)) = groups.get(*next) else { continue };
            *next += 1;
            if let Some(kind) = kind.filter(|_| ranks.contains(&rank)) {
                let said = said(&mut trace, id, kind, (name, ranks, description));
                trace.collectives.push(said);
            }
        }
        trace
    }

    fn said(
        trace: &mut Trace,
        slice: SliceId,
        kind: CollectiveKind,
        (name, ranks, description): (&str, &[u32], &str),
    ) -> Collective {
        let mut text = |text: &str| trace.strings.intern(text);
        Collective {
            slice,
            name: text("any"),
            kind: Some(kind),
            dtype: StringTable::EMPTY,
            input_elements: Some(1),
            output_elements: Some(1),
            input_split_sizes: StringTable::EMPTY,
            output_split_sizes: StringTable::EMPTY,
            group: text(name),
            group_description: text(description),
            group_size: Some(ranks.len() as i64),
            group_ranks: text(&format!("{ranks:?}")),
            group_rank: None,
            source_rank: None,
            destination_rank: None,
            is_async: None,
            sequence_number: None,
        }
    }

    fn line(row: &Layout) -> String {
        let [group, ranks] = [&row.group, &row.ranks].map(|text| text.as_deref().unwrap_or("-"));
        let said = format!("{} ranks, {} calls: {}", row.recorded_ranks, row.calls, row.reason);
        format!("{group} {ranks} of {}: {}, {said}", row.group_size.unwrap_or(-1), row.dimension)
    }

    fn lines(trace: &Trace, selection: Selection) -> Vec<String> {
        layout(trace, &selection).iter().map(line).collect()
    }

    #[test]
    fn a_description_names_the_dimension() {
        let dimension = |description: &str| by_description(description).map(|(dimension, _)| dimension);
        for (description, expected) in [
            ("mesh_tp", Some("tensor")),
            ("mesh_dp_shard", Some("data")),
            ("TENSOR_MODEL_PARALLEL_GROUP", Some("tensor")),
            ("pipeline-parallel", Some("pipeline")),
            ("ep", Some("expert")),
            ("mesh_cp", Some("context")),
            ("mesh_dp_cp", Some("other")),
            ("default_pg", None),
            ("undefined", None),
            ("http", None),
            ("", None),
        ] {
            assert_eq!(dimension(description), expected, "{description}");
        }
    }

    #[test]
    fn the_only_group_shares_data() {
        let trace = trace_of(2, &[("0", vec![0, 1], "default_pg", Some(CollectiveKind::AllReduce))]);
        let expected = ["0 [0, 1] of 2: data, 2 ranks, 2 calls: all ranks, and no other group communicates"];
        assert_eq!(lines(&trace, Selection::default()), expected);
        let of_rank = lines(&trace, Selection { ranks: 1.into(), ..Selection::default() });
        assert_eq!(of_rank, [expected[0].replace("2 calls", "1 calls")]);
    }

    #[test]
    fn groups_are_judged_by_description_before_use() {
        use CollectiveKind::*;
        let trace = trace_of(
            4,
            &[
                ("0", vec![0, 1, 2, 3], "default_pg", Some(Barrier)),
                ("1", vec![0, 1], "mesh_pp", Some(AllReduce)),
                ("2", vec![2, 3], "", Some(AllToAll)),
                ("3", vec![1, 3], "", Some(PointToPoint)),
            ],
        );
        let expected = [
            "0 [0, 1, 2, 3] of 4: other, 4 ranks, 4 calls: neither its description nor its use names a dimension",
            "1 [0, 1] of 2: pipeline, 2 ranks, 2 calls: its description",
            "3 [1, 3] of 2: pipeline, 2 ranks, 2 calls: only sends and receives",
            "2 [2, 3] of 2: expert, 2 ranks, 2 calls: all-to-all",
        ];
        let mut found = lines(&trace, Selection::default());
        found.sort();
        let mut expected = expected.map(String::from).to_vec();
        expected.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn groups_that_only_metadata_lists_are_there_too() {
        let mut trace = drawn("rank 0 cpu 1 a");
        trace.processes[0].process_groups = vec![ProcessGroup {
            name: "7".into(),
            description: "undefined".into(),
            size: Some(3),
            ranks: vec![0, 2, 4],
            ..ProcessGroup::default()
        }];
        let expected = ["7 [0, 2, 4] of 3: unknown, 1 ranks, 0 calls: no collective of a known kind"];
        assert_eq!(lines(&trace, Selection::default()), expected);
    }

    #[test]
    fn ranks_that_were_cut_short_are_not_known() {
        assert_eq!(listed("[0, 2]"), Some(vec![0, 2]));
        assert_eq!(["[0, ..., 9]", "[]", "", "0, 1"].map(listed::<u32>), [None, None, None, None]);
        assert_eq!(
            [&[0, 2, 4][..], &[0, 1], &[0, 1, 3], &[3], &[2, 0]].map(stride),
            [Some(2), Some(1), None, None, None]
        );
    }

    proptest! {
        /// The ranks of a mesh, of which the last dimension lies on neighbours: a group for each line of ranks.
        #[test]
        fn dimensions_of_a_mesh_are_found_without_names([data, stages, width] in prop::array::uniform3(2_u32..4)) {
            let world = data * stages * width;
            let place = |rank: u32| [rank / (stages * width), rank / width % stages, rank % width];
            let kinds = [CollectiveKind::AllReduce, CollectiveKind::PointToPoint, CollectiveKind::AllGather];
            let mut groups: Vec<(String, Vec<u32>, Option<CollectiveKind>, &str)> = Vec::new();
            for (dimension, name) in ["data", "pipeline", "tensor"].into_iter().enumerate() {
                let others = |rank: u32| { let mut place = place(rank); place[dimension] = 0; place };
                let lines: BTreeSet<[u32; 3]> = (0..world).map(others).collect();
                for line in lines {
                    let ranks = (0..world).filter(|rank| others(*rank) == line).collect();
                    groups.push((format!("{name} {line:?}"), ranks, Some(kinds[dimension]), name));
                }
            }
            let drawn: Vec<_> =
                groups.iter().map(|(name, ranks, kind, _)| (name.as_str(), ranks.clone(), "undefined", *kind)).collect();
            let rows = layout(&trace_of(world, &drawn), &Selection::default());
            prop_assert_eq!(rows.len(), groups.len());
            for (name, ranks, _, dimension) in &groups {
                let row = rows.iter().find(|row| row.group.as_ref() == Some(name)).expect("it was drawn");
                prop_assert_eq!(row.dimension, *dimension);
                prop_assert_eq!(row.recorded_ranks, ranks.len() as i64);
            }
        }
    }
}

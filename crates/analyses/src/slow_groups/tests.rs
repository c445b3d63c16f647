use super::*;
use proptest::prelude::*;
use stepscope_trace::SliceKind;
use stepscope_trace::drawn::{SaidOfCollective as Said, drawn_with_collectives};
use stepscope_trace::simulated::{Job, Schedule, SlowGroup as Slow, Straggler};

const MEAN: Said = ("allreduce", "Float", Some(1_000), None);
const GATHER: Said = ("all_gather", "Half", Some(1_000), None);

/// A collective of a group of two ranks: whether it gathers, and the µs that it takes on each.
type Done = (bool, [i64; 2]);

/// Groups of two ranks each, group `g` of ranks 2g and 2g+1, which do this in order.
fn trace_of(groups: &[Vec<Done>]) -> Trace {
    let name = |rank: usize, gathers: bool| char::from(b'a' + rank as u8 * 2 + u8::from(gathers)).to_string();
    let mut drawing = String::new();
    let mut said = Vec::new();
    for rank in 0..groups.len() * 2 {
        let rows = |cell: &dyn Fn(&Done) -> String| groups[rank / 2].iter().map(cell).collect::<String>();
        let kernel = |us: i64| format!(".{}", "N".repeat(us as usize)) + &".".repeat(7 - us as usize);
        drawing += &format!("rank {rank} cpu 1 {}\n", rows(&|(gathers, _)| name(rank, *gathers).repeat(2) + "......"));
        drawing += &format!("rank {rank} launch 1 {}\n", rows(&|_| "N.......".into()));
        drawing += &format!("rank {rank} stream 7 {}\n", rows(&|(_, us)| kernel(us[rank % 2])));
        said.extend([(name(rank, false), MEAN), (name(rank, true), GATHER)]);
    }
    let said: Vec<_> = said.iter().map(|(name, said)| (name.as_str(), SliceKind::Op, *said)).collect();
    let mut trace = drawn_with_collectives(&drawing, &said);
    for at in 0..trace.collectives.len() {
        let rank = trace.rank_of_track(trace.slices.track[trace.collectives[at].slice.index()]);
        let ranks = format!("[{}, {}]", rank / 2 * 2, rank / 2 * 2 + 1);
        let [group, group_ranks] = [format!("tp {}", rank / 2), ranks].map(|text| trace.strings.intern(&text));
        (trace.collectives[at].group, trace.collectives[at].group_ranks) = (group, group_ranks);
    }
    trace
}

fn line(row: &SlowGroup) -> String {
    let us = |ns: Option<i64>| ns.map_or("-".into(), |ns| (ns / 1_000).to_string());
    let [median, usual] = [Some(row.median_transfer_ns), row.sibling_transfer_ns].map(us);
    format!(
        "{} {} {} {:?}: {median} us of {usual}, {} beyond in {}, {} siblings",
        row.group.as_deref().unwrap_or("-"),
        row.ranks,
        row.kind,
        row.size_bytes.unwrap_or_default(),
        us(row.excess_ns),
        row.calls,
        row.siblings
    )
}

#[track_caller]
fn check(trace: &Trace, selection: Selection, expected: &[&str]) {
    assert_eq!(slow_groups(trace, &selection).iter().map(line).collect::<Vec<_>>(), expected);
}

#[test]
fn waiting_is_no_transfer() {
    // On every rank but those of the last group a collective takes longest, waiting for the other rank.
    let trace = trace_of(&[vec![(false, [2, 7])], vec![(false, [6, 2])], vec![(false, [4, 4])]]);
    let expected = [
        "tp 2 [4, 5] all_reduce 4000: 4 us of 2, 2 beyond in 1, 3 siblings",
        "tp 0 [0, 1] all_reduce 4000: 2 us of 2, 0 beyond in 1, 3 siblings",
        "tp 1 [2, 3] all_reduce 4000: 2 us of 2, 0 beyond in 1, 3 siblings",
    ];
    check(&trace, Selection::default(), &expected);
    // Its siblings still count.
    check(&trace, Selection { ranks: 5.into(), ..Selection::default() }, &expected[..1]);
}

#[test]
fn the_share_of_the_link_is_known_within_a_host_and_of_devices_in_the_table() {
    let ratios = |name: &str, change: &dyn Fn(&mut Trace)| {
        let mut trace = trace_of(&[vec![(false, [2, 4])], vec![(true, [5, 5])]]);
        for process in &mut trace.processes {
            process.comm_backend = Some(CommBackend::Nccl);
            process.host = Some(format!("host{}", process.rank / 2));
        }
        trace.devices.iter_mut().for_each(|device| device.name = Some(name.into()));
        change(&mut trace);
        let rows = slow_groups(&trace, &Selection::default());
        rows.iter().map(|row| (row.bus_bandwidth_bytes_per_s, row.link_peak_ratio)).collect::<Vec<_>>()
    };
    // 4,000 bytes in 2 us cross the links once, and half of 2,000 in 5 us.
    let bandwidths = [2_000_000_000, 200_000_000];
    let known = |peak: f64| bandwidths.map(|bandwidth| (Some(bandwidth), Some(bandwidth as f64 / peak))).to_vec();
    let unknown = bandwidths.map(|bandwidth| (Some(bandwidth), None)).to_vec();
    assert_eq!(ratios("NVIDIA H100 80GB HBM3", &|_| {}), known(450e9));
    assert_eq!(ratios("NVIDIA A100-SXM4-80GB", &|_| {}), known(300e9));
    assert_eq!(ratios("NVIDIA A100 80GB PCIe", &|_| {}), unknown);
    let sxm = "NVIDIA H100 80GB HBM3";
    assert_eq!(ratios(sxm, &|trace| trace.processes.iter_mut().for_each(|process| process.host = None)), unknown);
    assert_eq!(ratios(sxm, &|trace| trace.processes[1].host = Some("host1".into()))[0], unknown[0]);
    assert_eq!(ratios(sxm, &|trace| trace.processes[0].comm_backend = Some(CommBackend::Gloo))[0], unknown[0]);
    let other = |trace: &mut Trace| trace.devices[0].name = Some("NVIDIA A100-SXM4-80GB".into());
    assert_eq!(ratios(sxm, &other), [unknown[0], known(450e9)[1]]);
}

#[test]
fn two_groups_are_compared_with_nobody() {
    let trace = trace_of(&[vec![(false, [2, 2])], vec![(false, [6, 6])], vec![(true, [3, 3])]]);
    let expected = [
        "tp 0 [0, 1] all_reduce 4000: 2 us of -, - beyond in 1, 2 siblings",
        "tp 1 [2, 3] all_reduce 4000: 6 us of -, - beyond in 1, 2 siblings",
        "tp 2 [4, 5] all_gather 2000: 3 us of -, - beyond in 1, 1 siblings",
    ];
    check(&trace, Selection::default(), &expected);
}

#[test]
fn what_is_not_known_to_be_transfer_is_left_out() {
    let groups = vec![vec![(false, [2, 2])]; 3];
    let rows_when = |change: &dyn Fn(&mut Collective)| {
        let mut trace = trace_of(&groups);
        trace.collectives.iter_mut().for_each(change);
        slow_groups(&trace, &Selection::default()).len()
    };
    assert_eq!(rows_when(&|_| {}), 3);
    assert_eq!(rows_when(&|said| said.group_size = Some(3)), 0, "a rank is missing");
    assert_eq!(rows_when(&|said| said.group_size = None), 0);
    assert_eq!(rows_when(&|said| said.kind = Some(CollectiveKind::Broadcast)), 0);
    assert_eq!(rows_when(&|said| said.dtype = StringTable::EMPTY), 0);
    let barrier = |said: &mut Collective| (said.kind, said.dtype) = (Some(CollectiveKind::Barrier), StringTable::EMPTY);
    assert_eq!(rows_when(&barrier), 3);
}

/// Jobs with at least three groups that do the same, whose ranks come at different times.
fn jobs() -> impl Iterator<Item = (Job, Vec<u32>)> {
    let pairs = (0..4).map(|group| vec![2 * group, 2 * group + 1]).collect();
    let schedules = [(Schedule::Groups(pairs), vec![4, 5]), (Schedule::Moe { layers: 2, experts: 2 }, vec![0, 1])];
    schedules.into_iter().flat_map(|(schedule, slow)| {
        [true, false].map(|has_devices| {
            let stragglers = vec![Straggler { rank: 2, op: None, percent: 40 }];
            let schedule = schedule.clone();
            let job =
                Job { ranks: 8, steps: 3, schedule, has_devices, stragglers, jitter_ns: 70_000, ..Job::default() };
            (job, slow.clone())
        })
    })
}

#[test]
fn the_group_that_is_slow_is_the_one_that_is_found() {
    for (job, slow) in jobs() {
        let slow_groups_of = vec![Slow { ranks: slow.clone(), percent: 50 }];
        let trace = Job { slow_groups: slow_groups_of, ..job.clone() }.run().trace();
        let rows = slow_groups(&trace, &Selection::default());
        let (found, others) = rows.split_first().expect("groups communicate");
        assert_eq!((found.ranks.clone(), found.transfer_ratio), (format!("{slow:?}"), Some(1.5)), "{job:?}");
        assert_eq!(found.excess_ns, Some(found.calls * job.transfer_ns / 2));
        assert_eq!(others.iter().filter(|row| row.siblings > 1).count(), 3);
        let others = others.iter().filter(|row| row.siblings > 1);
        others.for_each(|row| assert_eq!((row.transfer_ratio, row.excess_ns), (Some(1.0), Some(0)), "{row:?}"));
    }
}

#[test]
fn without_a_slow_group_none_stands_out_whoever_is_late() {
    for (job, _) in jobs() {
        let rows = slow_groups(&job.run().trace(), &Selection::default());
        assert!(rows.iter().filter(|row| row.siblings == 4).count() == 4);
        for row in rows.iter().filter(|row| row.siblings == 4) {
            assert_eq!((row.transfer_ratio, row.excess_ns), (Some(1.0), Some(0)), "{row:?} of {job:?}");
        }
    }
}

/// The lower middle of values.
fn middle(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    values[(values.len() - 1) / 2]
}

proptest! {
    #[test]
    fn sums_are_those_found_by_looking_at_each_group(
        groups in prop::collection::vec(prop::collection::vec((any::<bool>(), [1_i64..8, 1..8]), 1..6), 1..6),
    ) {
        let rows = slow_groups(&trace_of(&groups), &Selection::default());
        let mut expected_rows = 0;
        for gathers in [false, true] {
            let of_kind = |group: &Vec<Done>| -> Vec<i64> {
                let of_kind = group.iter().filter(|(kind, _)| *kind == gathers);
                of_kind.map(|(_, [a, b])| *a.min(b)).collect()
            };
            let transfers: Vec<Vec<i64>> = groups.iter().map(of_kind).collect();
            let medians: Vec<i64> = transfers.iter().filter(|of| !of.is_empty()).map(|of| middle(of.clone())).collect();
            for (group, own) in transfers.iter().enumerate().filter(|(_, own)| !own.is_empty()) {
                expected_rows += 1;
                let kind = if gathers { "all_gather" } else { "all_reduce" };
                let name = Some(format!("tp {group}"));
                let row = rows.iter().find(|row| row.kind == kind && row.group == name).expect("it has a row");
                let us = |ns: i64| ns / 1_000;
                prop_assert_eq!(us(row.median_transfer_ns), middle(own.clone()));
                prop_assert_eq!((row.calls, us(row.transfer_ns)), (own.len() as i64, own.iter().sum::<i64>()));
                let usual = (medians.len() >= 3).then(|| middle(medians.clone()));
                prop_assert_eq!(row.sibling_transfer_ns.map(us), usual);
                let beyond = usual.map(|usual| own.iter().map(|us| (us - usual).max(0)).sum::<i64>());
                prop_assert_eq!(row.excess_ns.map(us), beyond);
                let ratio = usual.map(|usual| middle(own.clone()) as f64 / usual as f64);
                prop_assert_eq!(row.transfer_ratio, ratio);
            }
        }
        prop_assert_eq!(rows.len(), expected_rows);
    }
}

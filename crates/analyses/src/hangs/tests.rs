use super::*;
use proptest::prelude::*;
use stepscope_base::StringId;
use stepscope_trace::drawn::{SaidOfCollective as Said, drawn_with_collectives};
use stepscope_trace::simulated::Job;
use stepscope_trace::{Collective, SliceKind};

fn line(row: &Hang) -> String {
    let (state, since) = (row.state.as_str(), row.since_ns.map_or("-".into(), |ns| (ns / 1_000).to_string()));
    let last = row.last_number.map_or("-".into(), |number| number.to_string());
    format!("rank {} at {}: {state} since {since}, last {last}: {}", row.rank, row.number, row.verdict)
}

fn lines(trace: &Trace) -> Vec<String> {
    hangs(trace, &Selection::default()).iter().map(line).collect()
}

/// Works `a`, `b`, `c` … numbered from 0 on every rank; capitals are works without an end.
fn works(drawing: &str, said_of: impl Fn(char) -> Said) -> Trace {
    let letters: Vec<String> = ('a'..='h').chain('A'..='H').map(String::from).collect();
    let number = |letter: &str| i64::from(letter.to_lowercase().as_bytes()[0] - b'a');
    // One row of a letter at a time: numbers count on within one.
    let mut trace = drawn_with_collectives(drawing, &[]);
    for rank in trace.ranks() {
        for letter in &letters {
            let (name, dtype, elements, _) = said_of(letter.chars().next().unwrap_or_default());
            let said = [(letter.as_str(), SliceKind::Annotation, (name, dtype, elements, Some(number(letter))))];
            let other = drawn_with_collectives(drawing, &said);
            let of_rank = |said: &&Collective| trace.rank_of_track(trace.slices.track[said.slice.index()]) == rank;
            let own: Vec<Collective> = other.collectives.iter().filter(of_rank).copied().collect();
            // Texts that were interned in another trace.
            let intern = |trace: &mut Trace, id: StringId| trace.strings.intern(other.strings.get(id));
            for said in own {
                let texts = [said.name, said.dtype, said.group, said.group_description, said.group_ranks];
                let [name, dtype, group, group_description, _] = texts.map(|id| intern(&mut trace, id));
                let group_ranks = trace.strings.intern(&format!("{:?}", trace.ranks()));
                let size = Some(trace.ranks().len() as i64);
                let said = Collective { name, dtype, group, group_description, group_ranks, group_size: size, ..said };
                trace.collectives.push(Collective { sequence_number: Some(number(letter)), ..said });
            }
        }
    }
    trace.collectives.sort_by_key(|said| said.slice);
    for slice in trace.slices.ids() {
        let is_open = trace.slice_name(slice).chars().all(char::is_uppercase);
        trace.slices.is_unfinished[slice.index()] = is_open;
    }
    trace
}

fn mean(_: char) -> Said {
    ("allreduce", "Float", Some(10), None)
}

#[test]
fn a_run_that_does_not_hang_has_no_rows_also_where_a_rank_was_recorded_longer() {
    assert!(lines(&works("rank 0 label 1 a.b.c\nrank 1 label 1 aab.", mean)).is_empty());
}

#[test]
fn the_rank_that_never_entered_stands_before_those_that_wait_for_it() {
    let trace = works("rank 0 label 1 a.b.CCC\nrank 1 label 1 aabb..\nrank 2 label 1 a.b..C", mean);
    let expected = [
        "rank 1 at 2: never entered since 4, last 1: ranks 0, 2 wait for it",
        "rank 0 at 2: entered, not left since 4, last 2: waits for rank 1",
        "rank 2 at 2: entered, not left since 5, last 2: waits for rank 1",
    ];
    assert_eq!(lines(&trace), expected);
    let of_one = hangs(&trace, &Selection { ranks: 2.into(), ..Selection::default() });
    assert_eq!(of_one.iter().map(line).collect::<Vec<_>>(), expected[2..]);
}

/// With a column of a second.
fn in_seconds(mut trace: Trace) -> Trace {
    trace.slices.start_ns.iter_mut().chain(&mut trace.slices.dur_ns).for_each(|ns| *ns *= 1_000_000);
    trace
}

#[test]
fn what_ends_though_a_rank_never_entered_it_ended_with_an_error() {
    let of = |drawing: &str| lines(&in_seconds(works(drawing, mean)));
    let expected = [
        "rank 1 at 2: never entered since 4000000, last 1: rank 0 waits for it",
        "rank 0 at 2: entered, not left since 4000000, last 2: waits for rank 1",
    ];
    assert_eq!(of("rank 0 label 1 a.b.ccccc\nrank 1 label 1 aabb...."), expected);
    assert!(of("rank 0 label 1 a.b.cccc\nrank 1 label 1 aabb...").is_empty(), "less than five seconds");
    assert!(of("rank 0 label 1 a.b.cccccd\nrank 1 label 1 aabb.....").is_empty(), "the rank goes on");
    assert!(of("rank 0 label 1 a.b.ccccc\nrank 1 label 1 aabbccccc").is_empty(), "all entered it");
}

#[test]
fn what_ends_though_ranks_call_different_things_ended_with_an_error() {
    let said = |letter: char| if letter == 'b' { ("all_gather", "Float", Some(10), None) } else { mean(letter) };
    let mut trace = in_seconds(works("rank 0 label 1 a.bbbbb\nrank 1 label 1 a.ccccc\nrank 2 label 1 a.ccccc", said));
    // Both are the second one.
    trace
        .collectives
        .iter_mut()
        .for_each(|said| said.sequence_number = said.sequence_number.map(|number| number.min(1)));
    let states: Vec<_> =
        hangs(&trace, &Selection::default()).iter().map(|row| (row.rank, row.is_waited_for, row.state)).collect();
    let entered = HangState::Entered;
    assert_eq!(states, [(0, true, entered), (1, false, entered), (2, false, entered)]);
}

#[test]
fn works_that_queue_behind_the_one_that_hangs_are_not_it() {
    let trace = works("rank 0 label 1 a.BBBBB\nrank 0 label 2 ...CCC\nrank 1 label 1 aa....", mean);
    let expected = [
        "rank 1 at 1: never entered since 2, last 0: rank 0 waits for it",
        "rank 0 at 1: entered, not left since 2, last 2: waits for rank 1",
    ];
    assert_eq!(lines(&trace), expected);
}

#[test]
fn what_a_rank_calls_instead_is_named() {
    let drawing = "rank 0 label 1 aBB\nrank 1 label 1 aCC\nrank 2 label 1 aBB";
    let at = |said: Said| {
        let mut trace = works(drawing, |letter| if letter == 'C' { said } else { mean(letter) });
        let is_other = |slice: SliceId, trace: &Trace| trace.slice_name(slice) == "C";
        for at in 0..trace.collectives.len() {
            if is_other(trace.collectives[at].slice, &trace) {
                trace.collectives[at].sequence_number = Some(1);
            }
        }
        lines(&trace)
    };
    let expected = |verdict: &str| {
        vec![
            format!("rank 1 at 1: entered, not left since 1, last 1: {verdict}"),
            "rank 0 at 1: entered, not left since 1, last 1: waits for rank 1".to_string(),
            "rank 2 at 1: entered, not left since 1, last 1: waits for rank 1".to_string(),
        ]
    };
    assert_eq!(at(("all_gather", "Float", Some(10), None)), expected("calls all_gather, not allreduce"));
    assert_eq!(at(("allreduce", "Double", Some(10), None)), expected("carries Double, not Float"));
    assert_eq!(at(("allreduce", "Float", Some(12), None)), expected("has 12 elements in, not 10"));
    let alike = "entered, not left since 1, last 1: all known ranks are in it";
    assert_eq!(at(("allreduce", "Float", None, None)), [0, 1, 2].map(|rank| format!("rank {rank} at 1: {alike}")));
}

#[test]
fn ranks_that_are_not_known_are_not_blamed() {
    let mut trace = works("rank 0 label 1 aBB\nrank 1 label 1 ..d\nrank 2 label 1 ab.", mean);
    let ranks = trace.strings.intern("[0, 1, 2, 7]");
    trace.collectives.iter_mut().for_each(|said| said.group_ranks = ranks);
    let expected = [
        "rank 1 at 1: not known since -, last 3: only later ones are recorded",
        "rank 7 at 1: not known since -, last -: the run has no file of it",
        "rank 0 at 1: entered, not left since 1, last 1: waits, ranks 1, 7 not known",
        "rank 2 at 1: completed since 1, last 1: has left it",
    ];
    assert_eq!(lines(&trace), expected);
}

#[test]
fn a_rank_that_others_wait_for_may_be_in_a_collective_of_another_group() {
    let mut trace = works("rank 0 label 1 aBBBB\nrank 1 label 1 a..CC", mean);
    let (group, ranks) = (trace.strings.intern("5"), trace.strings.intern("[1, 2]"));
    let is_other = |slice: SliceId, trace: &Trace| trace.slice_name(slice) == "C";
    for at in 0..trace.collectives.len() {
        if is_other(trace.collectives[at].slice, &trace) {
            (trace.collectives[at].group, trace.collectives[at].group_ranks) = (group, ranks);
        }
    }
    let expected = [
        "rank 1 at 1: never entered since 1, last 0: rank 0 waits for it; it is in allreduce 2 of group 5",
        "rank 0 at 1: entered, not left since 1, last 1: waits for rank 1",
        "rank 2 at 2: not known since -, last -: the run has no file of it",
        "rank 1 at 2: entered, not left since 3, last 2: waits, rank 2 not known",
    ];
    assert_eq!(lines(&trace), expected);
}

#[test]
fn what_goes_from_one_rank_to_another_is_compared_with_nobody() {
    let trace = works("rank 0 label 1 aBB\nrank 1 label 1 a..", |_| ("send", "Float", Some(10), None));
    assert_eq!(lines(&trace), ["rank 0 at 1: entered, not left since 1, last 1: waits for the other side"]);
}

/// Calls return at once; what carries them out runs on a device.
const ON_DEVICE: &str = "rank 0 cpu 1    a.b.c.
                         rank 0 sync 1   .....s
                         rank 0 launch 1 N.....
                         rank 0 stream 7 NN....
                         rank 1 cpu 1    a.....
                         rank 1 launch 1 N.....
                         rank 1 stream 7 NN....";

#[test]
fn without_a_kernel_a_call_is_not_left_in_a_recording_that_was_cut() {
    let said = |letter, number| (letter, SliceKind::Op, ("allreduce", "Float", Some(10), Some(number)));
    let mut trace = drawn_with_collectives(ON_DEVICE, &[said("a", 0), said("b", 1), said("c", 2)]);
    // In a drawing numbers count on over ranks.
    for at in 0..trace.collectives.len() {
        let track = trace.slices.track[trace.collectives[at].slice.index()];
        if trace.rank_of_track(track) == 1 {
            trace.collectives[at].sequence_number = Some(0);
        }
    }
    assert!(lines(&trace).is_empty(), "a recording that ended by itself");
    let wait = trace.slices.ids().find(|id| trace.slice_name(*id) == "s").expect("it is drawn");
    trace.slices.is_unfinished[wait.index()] = true;
    let expected = [
        "rank 1 at 1: never entered since 1, last 0: rank 0 waits for it",
        "rank 0 at 1: entered, not left since 2, last 2: waits for rank 1",
    ];
    assert_eq!(lines(&trace), expected);
    let rows = hangs(&trace, &Selection::default());
    assert_eq!(rows[1].doing, Some(wait), "what has no end");
    assert_eq!(rows[0].doing.map(|slice| trace.slice_name(slice)), Some("N"), "what began last");
}

proptest! {
    /// Whatever ranks do: a slow twin that looks at one rank and number at a time, from the drawing.
    #[test]
    fn states_are_those_of_the_drawing(ranks in prop::collection::vec((0_usize..5, any::<bool>()), 1..4)) {
        // A rank leaves that many works, and may be in one more.
        let row = |(rank, (left, is_in)): (usize, &(usize, bool))| {
            let (lower, upper) = (&"abcdefgh"[..*left], &"ABCDEFGH"[*left..*left + usize::from(*is_in)]);
            format!("rank {rank} label 1 {lower}{upper}.\nrank {rank} cpu 2 x")
        };
        let drawing: Vec<String> = ranks.iter().enumerate().map(row).collect();
        let rows = hangs(&works(&drawing.join("\n"), mean), &Selection::default());
        let at = ranks.iter().filter(|(_, is_in)| *is_in).map(|(left, _)| *left).min();
        prop_assert_eq!(rows.len(), if at.is_some() { ranks.len() } else { 0 });
        let at = at.unwrap_or_default();
        for row in &rows {
            let (left, is_in) = ranks[row.rank as usize];
            let state = match () {
                () if left > at => HangState::Completed,
                () if left == at && is_in => HangState::Entered,
                () => HangState::NeverEntered,
            };
            prop_assert_eq!((row.state, row.number), (state, at as i64));
            let last = (left + usize::from(is_in)).checked_sub(1).map(|last| last as i64);
            prop_assert_eq!(row.last_number, last);
        }
    }
}

#[test]
fn a_list_of_ranks_that_the_source_cut_does_not_say_who_is_missing() {
    let mut trace = works("rank 0 label 1 BBB\nrank 1 cpu 1 x..\nrank 2 label 1 BBB", mean);
    let cut = trace.strings.intern("[0, ..., 2]");
    trace.collectives.iter_mut().for_each(|said| said.group_ranks = cut);
    trace.processes.iter_mut().for_each(|process| process.world_size = Some(3));
    let verdicts: Vec<String> = hangs(&trace, &Selection::default()).into_iter().map(|row| row.verdict).collect();
    assert_eq!(verdicts, ["ranks 0, 2 wait for it", "waits for rank 1", "waits for rank 1"]);
}

/// A job in which rank 1 does not come to its last collective, so that the others do not leave it.
fn hung(job: &Job) -> Trace {
    let mut trace = job.run().trace();
    let rank_of = |trace: &Trace, slice: SliceId| trace.rank_of_track(trace.slices.track[slice.index()]);
    let calls = Calls::of(&trace);
    let of_call = |at: usize| {
        let call = &calls.calls[at];
        let is_of_it = |event: &stepscope_trace::DeviceEvent| event.op == Some(call.slice);
        let kernels = trace.device_events.iter().filter(is_of_it).map(|event| event.slice);
        kernels.chain([call.slice]).chain(call.work).collect::<Vec<SliceId>>()
    };
    let last = |rank: u32| {
        let of_rank = (0..calls.calls.len()).filter(|at| rank_of(&trace, calls.calls[*at].slice) == rank);
        of_call(of_rank.max_by_key(|at| trace.slices.start_ns[calls.calls[*at].slice.index()]).expect("it has calls"))
    };
    let slices: Vec<Vec<SliceId>> = trace.ranks().into_iter().map(last).collect();
    for (rank, slices) in slices.iter().enumerate() {
        if rank == 1 {
            trace.collectives.retain(|said| !slices.contains(&said.slice));
            let is_kept = |event: &stepscope_trace::DeviceEvent| !slices.contains(&event.slice);
            trace.device_events = trace.device_events.iter().filter(is_kept).collect();
        } else {
            slices.iter().for_each(|slice| trace.slices.is_unfinished[slice.index()] = true);
        }
    }
    trace
}

#[test]
fn a_job_whose_collectives_state_no_group_hangs_like_one_whose_do() {
    for has_devices in [true, false] {
        let verdicts = |states_groups: bool| {
            let rows = hangs(&hung(&Job { has_devices, states_groups, ..Job::default() }), &Selection::default());
            let verdict = |row: &Hang| (row.rank, row.state, row.number, row.last_number, row.verdict.clone());
            (rows.iter().map(verdict).collect::<Vec<_>>(), rows.iter().map(|row| row.group_size).collect::<Vec<_>>())
        };
        let unstated = verdicts(false);
        let is_first = |row: &(u32, HangState, i64, Option<i64>, String)| {
            (row.0, row.1) == (1, HangState::NeverEntered) && row.4 == "ranks 0, 2, 3 wait for it"
        };
        assert!(is_first(&unstated.0[0]), "{unstated:?}");
        assert_eq!(unstated, verdicts(true), "devices: {has_devices}");
    }
}

#[test]
fn ranks_without_a_file_may_be_missing_where_no_group_is_stated() {
    let mut trace = hung(&Job { states_groups: false, ..Job::default() });
    trace.processes.iter_mut().for_each(|process| process.world_size = Some(5));
    let first: Vec<String> = lines(&trace).into_iter().take(2).collect();
    assert!(
        first[0].starts_with("rank 1 at 5: never entered") && first[1].starts_with("rank 4 at 5: not known"),
        "{first:?}"
    );
}

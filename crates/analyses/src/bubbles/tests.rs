use super::*;
use proptest::prelude::*;
use stepscope_trace::SliceKind;
use stepscope_trace::drawn::{SaidOfCollective as Said, drawn_with_collectives};

const SEND: Said = ("send", "Float", Some(10), None);
const RECEIVE: Said = ("recv", "Float", Some(10), None);

/// A drawing in which operators `n` send to the next rank and `m` receive from it, `p` send to the rank before and `q`
/// receive from it.
fn trace_of(drawing: &str) -> Trace {
    let said = [("n", SEND), ("p", SEND), ("m", RECEIVE), ("q", RECEIVE)];
    let mut trace = drawn_with_collectives(drawing, &said.map(|(name, said)| (name, SliceKind::Op, said)));
    for at in 0..trace.collectives.len() {
        let slice = trace.collectives[at].slice;
        let rank = i64::from(trace.rank_of_track(trace.slices.track[slice.index()]));
        let name = trace.slice_name(slice).to_string();
        let peer = Some(if matches!(name.as_str(), "n" | "m") { rank + 1 } else { rank - 1 });
        let said = &mut trace.collectives[at];
        match name.as_str() {
            "n" | "p" => said.destination_rank = peer,
            _ => said.source_rank = peer,
        }
    }
    trace
}

fn line(row: &Bubbles) -> String {
    let [total, idle, warm_up, steady, drain] =
        [row.total_ns, row.idle_ns, row.warm_up_ns, row.steady_ns, row.drain_ns].map(|ns| ns / 1_000);
    let known = |count: Option<i64>| count.map_or("-".into(), |count| count.to_string());
    format!(
        "rank {} step {}: idle {idle} of {total} = {warm_up} + {steady} + {drain}, {} stages, {} micro-batches, ideal {:?}",
        row.rank,
        known(row.step),
        known(row.stages),
        known(row.micro_batches),
        row.ideal_ratio
    )
}

#[track_caller]
fn check(trace: &Trace, selection: Selection, expected: &[&str]) {
    assert_eq!(bubbles(trace, &selection).iter().map(line).collect::<Vec<_>>(), expected);
}

const TWO_STAGES: &str = "rank 0 step     0000000000001111
                          rank 0 cpu 1    .n.n...m|m......
                          rank 0 stream 7 CCCC..CC..CC....
                          rank 1 step     000000000000....
                          rank 1 cpu 1    .q|q.p..p.......
                          rank 1 stream 7 ..CCCCCCCC......
                          rank 2 step     000000000000....
                          rank 2 stream 7 C...............";

#[test]
fn idle_time_is_before_between_and_after_computing() {
    let trace = trace_of(TWO_STAGES);
    let expected = [
        "rank 0 step 0: idle 4 of 12 = 0 + 4 + 0, 2 stages, 2 micro-batches, ideal Some(0.3333333333333333)",
        "rank 1 step 0: idle 4 of 12 = 2 + 0 + 2, 2 stages, 2 micro-batches, ideal Some(0.3333333333333333)",
    ];
    check(&trace, Selection::default(), &expected);
    check(&trace, Selection { ranks: 1.into(), ..Selection::default() }, &expected[1..]);
    check(&trace, Selection { step: Some(1), ..Selection::default() }, &[]);
}

#[test]
fn a_step_in_which_nothing_computes_is_idle_before() {
    let expected = ["rank 0 step 0: idle 3 of 3 = 3 + 0 + 0, - stages, - micro-batches, ideal None"];
    let mut trace = trace_of("rank 0 step 000\nrank 0 cpu 1 .n.\nrank 0 stream 7 ...C");
    check(&trace, Selection::default(), &expected);
    // Nobody says what is at the other end.
    trace.collectives[0].destination_rank = None;
    check(&trace, Selection::default(), &expected);
}

#[test]
fn stages_are_known_of_a_chain_whose_ranks_were_all_recorded() {
    let stages = |drawing: &str| -> Vec<(Option<i64>, Option<i64>)> {
        bubbles(&trace_of(drawing), &Selection::default()).iter().map(|row| (row.stages, row.micro_batches)).collect()
    };
    let three = "rank 0 step 0000\nrank 0 cpu 1 nm..\nrank 1 step 0000\nrank 1 cpu 1 qnmp\nrank 2 step 0000\nrank 2 cpu 1 qp..\n";
    assert_eq!(stages(three), [(Some(3), Some(1)); 3]);
    // The last rank was not recorded, or sends one more.
    assert_eq!(stages(three.split("rank 2").next().unwrap()), [(None, None); 2]);
    assert_eq!(stages(&three.replace("qp..", "qp|p")), [(Some(3), None); 3]);
    // Nothing comes back.
    assert_eq!(stages("rank 0 step 00\nrank 0 cpu 1 n.\nrank 1 step 00\nrank 1 cpu 1 q."), [(Some(2), None); 2]);
}

#[test]
fn ranks_in_a_ring_have_no_number_of_stages() {
    let drawing = "rank 0 step 00\nrank 0 cpu 1 nq\nrank 1 step 00\nrank 1 cpu 1 nq\nrank 2 step 00\nrank 2 cpu 1 nq";
    let mut trace = trace_of(drawing);
    for said in &mut trace.collectives {
        said.destination_rank = said.destination_rank.map(|rank| rank.rem_euclid(3));
        said.source_rank = said.source_rank.map(|rank| rank.rem_euclid(3));
    }
    assert_eq!(bubbles(&trace, &Selection::default()).iter().map(|row| row.stages).collect::<Vec<_>>(), [None; 3]);
}

proptest! {
    #[test]
    fn parts_are_those_found_by_looking_at_every_microsecond(
        streams in prop::collection::vec("[.CN]{14}", 1..3), messages in "[.n]{14}", cut in 1_usize..14,
    ) {
        let mut drawing = format!("rank 0 step {}{}\nrank 0 cpu 1 {messages}\n", "0".repeat(cut), "1".repeat(14 - cut));
        streams.iter().enumerate().for_each(|(at, row)| drawing += &format!("rank 0 stream {at} {row}\n"));
        let rows = bubbles(&trace_of(&drawing), &Selection::default());
        let begins = |at: usize| &messages[at..=at] == "n" && (at == 0 || &messages[at - 1..at] != "n");
        let computes = |at: &usize| streams.iter().any(|row| row.as_bytes()[*at] == b'C');
        let has_device = streams.iter().any(|row| row.contains(['C', 'N']));
        prop_assume!(has_device);
        let mut rows = rows.iter();
        for (number, step) in [(0, 0..cut), (1, cut..14)] {
            let sends = step.clone().filter(|at| begins(*at)).count() as i64;
            if sends == 0 {
                continue;
            }
            let row = rows.next().expect("the rank sends in it");
            let first = step.clone().find(computes).unwrap_or(step.end);
            let last = step.clone().rev().find(computes).map_or(step.end, |at| at + 1);
            let mut expected = [0; 3];
            for at in step.clone().filter(|at| !computes(at)) {
                expected[if at < first { 0 } else if at < last { 1 } else { 2 }] += 1_000;
            }
            prop_assert_eq!([row.warm_up_ns, row.steady_ns, row.drain_ns], expected);
            prop_assert_eq!((row.step, row.sends, row.receives), (Some(number), sends, 0));
        }
        prop_assert_eq!(rows.next(), None);
    }
}

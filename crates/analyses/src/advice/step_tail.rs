//! Some steps take much longer than most, again and again.

use super::facts::Facts;
use super::loops::{Loop, median};
use super::step_parts::StepParts;
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use stepscope_base::IntervalSet;
use stepscope_base::units::{format_count, format_ns};

/// Steps at the beginning that are not judged: what is set up once falls there.
pub(super) const WARM_UP: usize = 2;
/// With fewer nobody knows what happens again and again.
const LEAST_STEPS: usize = 10;
/// Long steps needed: one alone may be anything.
const LEAST_LONG: usize = 2;
/// Long steps are at most this part of all, else there are two sorts of steps.
const LONG_PART: usize = 4;
/// Of long steps those count that are longer by this part of what the longest is, where there are as many: others are long
/// for reasons of their own.
const PART_OF_LONGEST: i64 = 10;

pub(super) const RULE: Rule = Rule {
    code: "step.tail",
    fault: "Some steps are much longer than the others",
    disproof: "Without this part the long steps are as long.",
    evidence: "step_breakdown",
    to_do: "Look at what the long steps do that the others do not. What is done every N steps, such as evaluation, \
            logging and checkpoints, can run in a thread or a process of its own, less often, or on less data.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    facts.steps_are_alike()?;
    let mut loops = facts.loops()?.iter().filter(|of| of.steps.len() >= WARM_UP + LEAST_STEPS).peekable();
    if loops.peek().is_none() {
        return Err(Lacks("fewer than twelve complete steps: record more"));
    }
    Ok(loops.filter_map(|of| of_loop(facts, of)).collect())
}

fn of_loop(facts: &Facts, of: &Loop) -> Option<Advice> {
    let trace = facts.trace;
    let dur_ns = |step: usize| of.steps[step].span.duration_ns();
    let judged = WARM_UP..of.steps.len();
    let usual_ns = median(judged.clone().map(dur_ns));
    // Half as long again as the median.
    let (mut long, usual): (Vec<usize>, Vec<usize>) = judged.clone().partition(|step| dur_ns(*step) > usual_ns / 2 * 3);
    let excess_of = |step: usize| dur_ns(step) - usual_ns;
    let most_ns = long.iter().map(|step| excess_of(*step)).max()?;
    let is_much = |step: &usize| excess_of(*step) >= most_ns / PART_OF_LONGEST;
    if long.iter().filter(|step| is_much(step)).count() >= LEAST_LONG {
        long.retain(is_much);
    }
    if long.len() < LEAST_LONG || long.len() > judged.len() / LONG_PART {
        return None;
    }
    let excess_ns: i64 = long.iter().map(|step| excess_of(*step)).sum();
    let row = of.row(excess_ns)?;
    let parts = StepParts::of(trace, of)?;
    let longest = long.iter().copied().max_by_key(|step| (dur_ns(*step), std::cmp::Reverse(*step)))?;
    let more_operators = more_operators(&parts, &usual, &long);
    let tail = match parts.growth(&usual, &long, excess_ns) {
        Some(growth) if growth.is_wait(facts, of) => return None,
        Some(growth) => Tail {
            most: format!("Most of it is {}.", growth.words(trace)),
            // What is done in them only is more than its longest part.
            gain_ns: if more_operators.is_some() { excess_ns } else { growth.excess_ns.min(excess_ns) },
            place: growth.place(trace),
            time: growth.time(trace, of, &long),
        },
        None => Tail {
            most: more_operators?,
            gain_ns: excess_ns,
            place: Place::at(trace, of.steps[longest].span.start_ns, of.label(trace, of.steps[longest].span)),
            time: IntervalSet::from_unsorted(long.iter().map(|step| of.steps[*step].span)),
        },
    };
    Some(Advice {
        says: format!(
            "{} of {} steps take more than half as long again as the median of {}, up to {}. {}",
            format_count(long.len() as i64),
            format_count(judged.len() as i64),
            format_ns(usual_ns),
            format_ns(dur_ns(longest)),
            tail.most
        ),
        count: Some(long.len() as i64),
        gain: Some((tail.gain_ns, GainEstimate::Removal)),
        place: Some(tail.place),
        time: tail.time,
        ..row
    })
}

/// What makes steps long: what takes most of it in words, what there is to gain without it, where it is, and when.
struct Tail {
    most: String,
    gain_ns: i64,
    place: Place,
    time: IntervalSet,
}

/// Of steps that are long by no single part: each of them has more operators than any usual one. Without that, everything
/// is slower there, as when something else runs on the machine.
fn more_operators(parts: &StepParts, usual: &[usize], long: &[usize]) -> Option<String> {
    let operators = |steps: &[usize]| steps.iter().map(|step| parts.operators[*step]).collect::<Vec<_>>();
    let (usual, long) = (operators(usual), operators(long));
    let more = median(long.iter().copied()) - median(usual.iter().copied());
    (long.iter().min() > usual.iter().max()).then(|| {
        format!(
            "Each of them has more operators ({} at the median), none of which takes half of it.",
            format_count(more)
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::loops::tests::joined;
    use crate::advice::tests::{check, drawn_us};

    const USUAL: &[(&str, &str)] = &[("cpu 1", "aaaaaabbb.")];

    /// Sixteen steps of 1 ms, three of which are another.
    fn steps(long: &'static [(&'static str, &'static str)]) -> String {
        let mut steps = vec![USUAL; 16];
        [5, 9, 13].into_iter().for_each(|at| steps[at] = long);
        joined(&steps)
    }

    #[test]
    fn long_steps_now_and_then_are_said_with_what_they_do_longer() {
        check(
            &drawn_us(&steps(&[("cpu 1", "aaaaaabbb........")]), 100),
            "step.tail",
            &[
                "2100 of 18100 removal high: 3 of 14 steps take more than half as long again as the median of 1.00 ms, up to 1.70 ms. Most of it is in no operator, behind `b` (800 µs against 100 µs).",
            ],
        );
        check(
            &drawn_us(&steps(&[("cpu 1", "aaaaaabbb.cccccc")]), 100),
            "step.tail",
            &[
                "1800 of 17800 removal high: 3 of 14 steps take more than half as long again as the median of 1.00 ms, up to 1.60 ms. Most of it is in `c` (600 µs against 0 ns).",
            ],
        );
    }

    #[test]
    fn all_that_only_long_steps_do_is_to_be_gained() {
        // Its priority is that of the time it is named by, 9.5 % in `c`.
        check(
            &drawn_us(&steps(&[("cpu 1", "aaaaaabbb.ccccccdddd")]), 100),
            "step.tail",
            &[
                "3000 of 19000 removal medium: 3 of 14 steps take more than half as long again as the median of 1.00 ms, up to 2.00 ms. Most of it is in `c` (600 µs against 0 ns).",
            ],
        );
    }

    #[test]
    fn long_steps_that_do_more_are_said_where_no_part_has_half_of_it() {
        check(
            &drawn_us(&steps(&[("cpu 1", "aaaaaabbb.cccdddeeefff")]), 100),
            "step.tail",
            &[
                "3600 of 19600 removal high: 3 of 14 steps take more than half as long again as the median of 1.00 ms, up to 2.20 ms. Each of them has more operators (4 at the median), none of which takes half of it.",
            ],
        );
        // The same operators, all of them slower.
        check(&drawn_us(&steps(&[("cpu 1", "aaaaaaaaaaaaaabbbbbb......")]), 100), "step.tail", &[]);
    }

    #[test]
    fn steps_that_are_long_by_far_less_are_not_of_the_same_cause() {
        let mut all = vec![USUAL; 24];
        [3, 4, 6, 7].into_iter().for_each(|at| all[at] = &[("cpu 1", "aaaaaabbb.......")]);
        [9, 17].into_iter().for_each(|at| {
            all[at] = &[("cpu 1", "aaaaaabbb.cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc")]
        });
        check(
            &drawn_us(&joined(&all), 100),
            "step.tail",
            &[
                "12400 of 38800 removal high: 2 of 22 steps take more than half as long again as the median of 1.00 ms, up to 7.20 ms. Most of it is in `c` (6.20 ms against 0 ns).",
            ],
        );
    }

    #[test]
    fn steps_that_are_a_little_longer_are_usual() {
        check(&drawn_us(&steps(&[("cpu 1", "aaaaaabbb......")]), 100), "step.tail", &[]);
    }

    #[test]
    fn one_long_step_is_no_habit() {
        let mut steps = vec![USUAL; 16];
        steps[8] = &[("cpu 1", "aaaaaabbb......................")];
        check(&drawn_us(&joined(&steps), 100), "step.tail", &[]);
        // Nor are the first ones, which set things up.
        let mut steps = vec![USUAL; 16];
        steps[0] = &[("cpu 1", "aaaaaabbb......................")];
        steps[1] = steps[0];
        check(&drawn_us(&joined(&steps), 100), "step.tail", &[]);
    }

    #[test]
    fn where_everything_takes_longer_no_part_is_the_cause() {
        check(&drawn_us(&steps(&[("cpu 1", "aaaaaaaaaabbbbbbb....")]), 100), "step.tail", &[]);
    }
}

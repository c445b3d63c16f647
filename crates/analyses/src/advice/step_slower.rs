//! Steps get slower over the run.

use super::cpu_steal::stolen_shares;
use super::facts::Facts;
use super::loops::{Loop, median};
use super::step_parts::StepParts;
use super::step_tail::WARM_UP;
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use stepscope_base::IntervalSet;
use stepscope_base::units::{format_count, format_ns, format_ratio};

/// How much the last quarter takes more than the first, as a share of that.
const THRESHOLD: i64 = 10;
/// One in this many of the first quarter, where one operator of a host grows: on a processor that is shared, steps of the same
/// products took 17 % longer.
const THRESHOLD_OF_AN_OPERATOR: i64 = 5;
/// With fewer a trend is chance.
const LEAST_STEPS: usize = 20;
/// The trend is that of medians of stretches where there are more steps.
const MOST_POINTS: usize = 400;

pub(super) const RULE: Rule = Rule {
    code: "step.slower",
    fault: "Steps get slower over the run",
    disproof: "Late steps are as long with what grows cleared.",
    evidence: "step_breakdown",
    to_do: "Find what grows: a list of losses or outputs that is gone through or kept with its graph, hooks that are \
            registered in every step, a cache that is searched, data that get longer. Clear it, or keep numbers only \
            (`.item()`, `.detach()`).",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    facts.steps_are_alike()?;
    let mut loops = facts.loops()?.iter().filter(|of| of.steps.len() >= WARM_UP + LEAST_STEPS).peekable();
    if loops.peek().is_none() {
        return Err(Lacks("fewer than 22 complete steps: record more"));
    }
    Ok(loops.filter_map(|of| of_loop(facts, of)).collect())
}

fn of_loop(facts: &Facts, of: &Loop) -> Option<Advice> {
    let trace = facts.trace;
    let judged: Vec<usize> = (WARM_UP..of.steps.len()).collect();
    // What the devices do beside it takes longer to find.
    slower(&judged.iter().map(|step| of.steps[*step].span.duration_ns()).collect::<Vec<_>>())?;
    let paces = of.paces(trace);
    let durations = &paces[WARM_UP..];
    let (first_ns, last_ns) = slower(durations)?;
    // As long as they would be if a hypervisor ran no other machines meanwhile.
    let shares = stolen_shares(facts, of);
    let own = |step: &usize| (paces[*step] as f64 * (1.0 - shares[*step])) as i64;
    let own_durations: Vec<i64> = judged.iter().map(own).collect();
    let (own_first_ns, _) = slower(&own_durations)?;
    let quarter = judged.len() / 4;
    let (first, last) = (&judged[..quarter], &judged[judged.len() - quarter..]);
    let excess_ns: i64 = own_durations.iter().map(|ns| (ns - own_first_ns).max(0)).sum();
    of.row(excess_ns)?;
    // What it grew by within the first quarter goes as well, but no step gets shorter than the shortest is.
    let shortest_ns = own_durations.iter().copied().min()?;
    let begin_ns = Line::of(&own_durations).begin_ns.clamp(shortest_ns, own_first_ns);
    let gain_ns = own_durations.iter().map(|ns| (ns - begin_ns).max(0)).sum::<i64>().min(of.window_ns());
    let row = of.row(gain_ns)?;
    let excess_of_last_ns: i64 = last.iter().map(|step| paces[*step] - first_ns).sum();
    let parts = StepParts::of(trace, of)?;
    let operators = |steps: &[usize]| median(steps.iter().map(|step| parts.operators[*step]));
    let (operators_first, operators_last) = (operators(first), operators(last));
    // More work, and not the same work at a slower pace.
    let is_more_work = (operators_last - operators_first) as i128 * first_ns as i128 * 2
        >= (last_ns - first_ns) as i128 * operators_first as i128;
    let (cause, place, time) = match is_more_work && operators_last > operators_first {
        true => {
            let more = format!(
                "the number of operators in a step: {} against {}",
                format_count(operators_last),
                format_count(operators_first)
            );
            let step = of.steps[*last.last()?].span;
            (more, Place::at(trace, step.start_ns, of.label(trace, step)), IntervalSet::default())
        }
        false => {
            let growth = parts.growth(first, last, excess_of_last_ns)?;
            // Where the rest grows alike, the processors got slower, and the job has nothing that grows.
            if growth.is_wait(facts, of) || growth.is_of_all(first_ns, last_ns) {
                return None;
            }
            let is_slight = last_ns - first_ns < first_ns / THRESHOLD_OF_AN_OPERATOR;
            if is_slight && growth.is_operator(trace) && of.device.is_empty() {
                return None;
            }
            (format!("the time {}", growth.words(trace)), growth.place(trace), growth.time(trace, of, &judged))
        }
    };
    Some(Advice {
        says: format!(
            "Steps get slower: the median of the last quarter is {}, that of the first {} ({} more). What grows is {cause}.",
            format_ns(last_ns),
            format_ns(first_ns),
            format_ratio((last_ns - first_ns) as f64 / first_ns as f64)
        ),
        count: Some(judged.len() as i64),
        gain: Some((gain_ns, GainEstimate::Bound)),
        place: Some(place),
        time,
        ..row
    })
}

/// The medians of the first and of the last quarter of steps that take longer and longer.
fn slower(durations: &[i64]) -> Option<(i64, i64)> {
    let quarter = durations.len() / 4;
    let median_of = |durations: &[i64]| median(durations.iter().copied());
    let (first_ns, last_ns) = (median_of(&durations[..quarter]), median_of(&durations[durations.len() - quarter..]));
    let least_ns = first_ns / THRESHOLD;
    let is_slower = last_ns - first_ns >= least_ns && Line::of(durations).rise_ns >= least_ns && is_steady(durations);
    is_slower.then_some((first_ns, last_ns))
}

/// The line of Theil and Sen through durations, which single long ones do not bend.
struct Line {
    begin_ns: i64,
    /// How much they rise from the first to the last.
    rise_ns: i64,
}

impl Line {
    fn of(durations: &[i64]) -> Self {
        let chunks = durations.chunks(durations.len().div_ceil(MOST_POINTS));
        let points: Vec<i64> = chunks.map(|chunk| median(chunk.iter().copied())).collect();
        let steps = points.len() as i64 - 1;
        let from = |a: usize| (a + 1..points.len()).map(move |b| (a, b));
        let pairs = (0..points.len()).flat_map(from);
        let rise_ns = median(pairs.map(|(a, b)| (points[b] - points[a]).saturating_mul(steps) / (b - a) as i64));
        let begins = (0..).zip(&points).map(|(at, ns)| ns - rise_ns.saturating_mul(at) / steps.max(1));
        Self { begin_ns: median(begins), rise_ns }
    }
}

/// Whether each quarter takes at least about as long as the one before.
fn is_steady(durations: &[i64]) -> bool {
    let quarters: Vec<i64> =
        durations.chunks(durations.len().div_ceil(4)).map(|chunk| median(chunk.iter().copied())).collect();
    quarters.is_sorted_by(|a, b| *b >= a - a / 50)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
    use crate::advice::advice;
    use crate::advice::loops::tests::joined;
    use crate::advice::quantities::tests::sample;
    use crate::advice::tests::{check, drawn_us};
    use proptest::prelude::*;

    /// Steps of 1 ms in which `grow` and more come at the end, one column more every four steps.
    fn steps(grow: impl Fn(usize) -> String) -> String {
        let cells: Vec<String> = (0..26).map(|step| format!("aaaaaabbb.{}", grow(step / 4))).collect();
        let rows: Vec<[(&str, &str); 1]> = cells.iter().map(|cells| [("cpu 1", cells.as_str())]).collect();
        let steps: Vec<&[(&str, &str)]> = rows.iter().map(|row| row.as_slice()).collect();
        joined(&steps)
    }

    #[test]
    fn steps_that_grow_are_said_with_the_part_that_does() {
        check(
            &drawn_us(&steps(|more| "c".repeat(more)), 100),
            "step.slower",
            &[
                "7200 of 33200 bound high: Steps get slower: the median of the last quarter is 1.50 ms, that of the first 1.10 ms (36.4 % more). What grows is the time in `c` (500 µs against 100 µs).",
            ],
        );
    }

    #[test]
    fn steps_with_more_and_more_operators_are_said_to_have_more_work() {
        check(
            &drawn_us(&steps(|more| "c|".repeat(more).replace('|', ".")), 100),
            "step.slower",
            &[
                "14400 of 40400 bound high: Steps get slower: the median of the last quarter is 2.00 ms, that of the first 1.20 ms (66.7 % more). What grows is the number of operators in a step: 7 against 3.",
            ],
        );
    }

    #[test]
    fn a_host_that_runs_ahead_of_its_device_at_first_does_not_get_slower() {
        // Eight short steps fill the queue; then each waits until the device has done the work of another.
        let (short, long) = (("C....", 8), ("C.........wwwww.....", 20));
        let steps = [short, long].into_iter().flat_map(|(cells, count)| vec![cells; count]).collect::<Vec<_>>();
        let row = |from: char, to: char| {
            let cells =
                |cells: &&str| cells.chars().map(|cell| if cell == from { to } else { '.' }).collect::<String>();
            steps.iter().map(cells).collect::<Vec<_>>()
        };
        let marks = (0..steps.len()).map(|at| (at % 10).to_string().repeat(steps[at].len())).collect::<String>();
        let launches = row('C', 'C').join("|");
        let (waits, kernels) = (row('w', 's').concat(), vec!["C".repeat(16); steps.len()].join("|"));
        let drawing = format!(
            "rank 0 step {marks}\nrank 0 launch 1 {launches}\nrank 0 sync 1 {waits}\nrank 0 stream 7 .{kernels}\n"
        );
        check(&drawn_us(&drawing, 100), "step.slower", &[]);
    }

    #[test]
    fn steps_whose_processors_a_hypervisor_takes_more_and_more_do_not_get_slower() {
        let mut trace = drawn_us(&steps(|more| "c".repeat(more)), 100);
        check(
            &trace,
            "step.slower",
            &[
                "7200 of 33200 bound high: Steps get slower: the median of the last quarter is 1.50 ms, that of the first 1.10 ms (36.4 % more). What grows is the time in `c` (500 µs against 100 µs).",
            ],
        );
        // Of the processors' time programs have 2.4 ms in each stretch, and the hypervisor more each time.
        let stolen: Vec<i64> = (0..11).map(|at| 60_000 * at * at).collect();
        sample(&mut trace, "host CPU user (ns)", 3_320_000, &(0..11).map(|at| at * 2_400_000).collect::<Vec<_>>());
        sample(&mut trace, "host CPU system (ns)", 3_320_000, &[0; 11]);
        sample(&mut trace, "host CPU stolen (ns)", 3_320_000, &stolen);
        check(&trace, "step.slower", &[]);
    }

    #[test]
    fn steps_of_which_all_parts_take_longer_alike_are_those_of_a_slower_processor() {
        let steps = |rest: usize| {
            let cells: Vec<String> = (0..26)
                .map(|step| format!("{}{}.", "a".repeat(8 + step / 4 * 2), "b".repeat(4 + step / 4 * rest)))
                .collect();
            let rows: Vec<[(&str, &str); 1]> = cells.iter().map(|cells| [("cpu 1", cells.as_str())]).collect();
            joined(&rows.iter().map(|row| row.as_slice()).collect::<Vec<_>>())
        };
        check(&drawn_us(&steps(1), 100), "step.slower", &[]);
        check(
            &drawn_us(&steps(0), 100),
            "step.slower",
            &[
                "14400 of 48200 bound high: Steps get slower: the median of the last quarter is 2.30 ms, that of the first 1.50 ms (53.3 % more). What grows is the time in `a` (1.80 ms against 1.00 ms).",
            ],
        );
    }

    #[test]
    fn an_operator_of_a_shared_processor_takes_a_little_longer() {
        // Steps of 2 ms at first, and of 2.3 ms at the end.
        let grown = |with: &str| {
            let cells: Vec<String> =
                (0..26).map(|step| format!("aaaaaaaaaaaaabbbbbb{}", with.repeat(1 + step / 6))).collect();
            let rows: Vec<[(&str, &str); 1]> = cells.iter().map(|cells| [("cpu 1", cells.as_str())]).collect();
            drawn_us(&joined(&rows.iter().map(|row| row.as_slice()).collect::<Vec<_>>()), 100)
        };
        check(&grown("c"), "step.slower", &[]);
        check(
            &grown("."),
            "step.slower",
            &[
                "4400 of 56400 bound medium: Steps get slower: the median of the last quarter is 2.30 ms, that of the first 2.00 ms (15.0 % more). What grows is the time in no operator, behind `b` (400 µs against 100 µs).",
            ],
        );
    }

    #[test]
    fn no_step_gets_shorter_than_the_shortest_is() {
        // The line through steps that grow faster and faster begins below all of them.
        let rows = advice(&drawn_us(&steps(|more| "c".repeat(more * more)), 100), &Selection::default());
        let row = rows.iter().find(|row| row.rule.as_str() == "step.slower").expect("they get slower");
        assert_eq!((row.gain_ns(), row.window_ns), (Some(29_200_000), Some(55_200_000)));
    }

    #[test]
    fn steps_that_stay_as_they_are_are_healthy() {
        check(&drawn_us(&steps(|_| String::new()), 100), "step.slower", &[]);
        // A sawtooth has no trend.
        check(&drawn_us(&steps(|step| "c".repeat(step % 2 * 3)), 100), "step.slower", &[]);
    }

    #[test]
    fn where_everything_gets_slower_no_part_is_the_cause() {
        let cells: Vec<String> = (0..26)
            .map(|step| {
                let more = step / 4;
                format!("{}{}{}", "a".repeat(4 + more), "b".repeat(4 + more), ".".repeat(4 + more))
            })
            .collect();
        let rows: Vec<[(&str, &str); 1]> = cells.iter().map(|cells| [("cpu 1", cells.as_str())]).collect();
        let steps: Vec<&[(&str, &str)]> = rows.iter().map(|row| row.as_slice()).collect();
        check(&drawn_us(&joined(&steps), 100), "step.slower", &[]);
    }

    proptest! {
        #[test]
        fn a_line_rises_by_what_it_does_whatever_a_few_points_are(
            slope in 0_i64..100, len in 20_usize..900, outliers in prop::collection::vec((0_usize..900, 0_i64..1_000_000), 0..2),
        ) {
            let mut durations: Vec<i64> = (0..len as i64).map(|at| 1_000 + slope * at).collect();
            for (at, ns) in outliers {
                durations[at % len] = ns;
            }
            let expected = slope * (len as i64 - 1);
            let Line { begin_ns, rise_ns } = Line::of(&durations);
            prop_assert!((rise_ns - expected).abs() <= expected / 20 + slope, "{rise_ns} {expected}");
            prop_assert!((begin_ns - 1_000).abs() <= expected / 20 + 2 * slope, "{begin_ns}");
        }
    }
}

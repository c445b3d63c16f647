//! One step is much longer than all others. What happens once is no habit and gains nothing in a longer job, but a run in
//! which it takes much of the time is not simply healthy.

use super::facts::Facts;
use super::loops::{Loop, median};
use super::step_parts::StepParts;
use super::{Advice, Judged, Lacks, Place, Rule};
use stepscope_base::units::{format_count, format_ns, format_ratio};

/// Of steps that are this part as much longer as the longest, there are several: that is for other rules.
const PART_OF_LONGEST: i64 = 2;

pub(super) const RULE: Rule = Rule {
    code: "step.once",
    fault: "One step is much longer than the others",
    disproof: "In a longer recording as much is lost again and again: other rules then name it.",
    evidence: "step_breakdown",
    to_do: "Look at what happened there: a checkpoint, an evaluation, a compilation, a collection of garbage, something else on \
            the machine. If it belongs to the job, record for longer to see how often it comes.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    facts.steps_are_alike()?;
    let loops = facts.loops()?;
    if loops.is_empty() {
        return Err(Lacks("fewer than five complete steps: record more"));
    }
    Ok(loops.iter().filter_map(|of| of_loop(facts, of)).collect())
}

/// Without a gain: it happens once, and what that is worth hangs on how long the job runs.
fn of_loop(facts: &Facts, of: &Loop) -> Option<Advice> {
    let trace = facts.trace;
    let paces = of.paces(trace);
    // The first one has a rule of its own.
    let longest = (1..paces.len()).max_by_key(|step| (paces[*step], std::cmp::Reverse(*step)))?;
    let others: Vec<usize> = (1..paces.len()).filter(|step| *step != longest).collect();
    let usual_ns = median(others.iter().map(|step| paces[*step]));
    let excess_ns = paces[longest] - usual_ns;
    if others.iter().any(|step| paces[*step] - usual_ns >= excess_ns / PART_OF_LONGEST) {
        return None;
    }
    let row = of.row(excess_ns)?;
    let growth = StepParts::of(trace, of).and_then(|parts| parts.growth(&others, &[longest], excess_ns));
    let step = &of.steps[longest];
    let most = growth.as_ref().map_or(String::new(), |growth| format!(" Most of it is {}.", growth.words(trace)));
    Some(Advice {
        says: format!(
            "Step {} takes {}, {} longer than the median of the {} others behind the first: {} of all steps.{most}",
            step.number,
            format_ns(paces[longest]),
            format_ns(excess_ns),
            format_count(others.len() as i64),
            format_ratio(row.measured_ratio?),
        ),
        count: Some(1),
        place: Some(match &growth {
            Some(growth) => growth.place(trace),
            None => Place::at(trace, step.span.start_ns, of.label(trace, step.span)),
        }),
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::loops::tests::joined;
    use crate::advice::tests::{check, drawn_us};

    const USUAL: &[(&str, &str)] = &[("cpu 1", "aaaaaabbb.")];
    const LONG: &[(&str, &str)] = &[("cpu 1", "aaaaaabbb.cccccccccccccccccccc")];

    fn steps(long: &[usize]) -> String {
        let mut steps = vec![USUAL; 10];
        long.iter().for_each(|at| steps[*at] = LONG);
        joined(&steps)
    }

    #[test]
    fn one_long_step_is_said_with_its_place_and_its_share_and_gains_nothing() {
        check(
            &drawn_us(&steps(&[4]), 100),
            "step.once",
            &[
                "- of 12000 - low: Step 4 takes 3.00 ms, 2.00 ms longer than the median of the 8 others behind the first: 16.7 % of all steps. Most of it is in `c` (2.00 ms against 0 ns).",
            ],
        );
    }

    #[test]
    fn where_all_of_the_step_is_longer_no_part_is_named() {
        let mut of = vec![USUAL; 10];
        of[4] = &[("cpu 1", "aaaaaaaaaaaabbbbbbbbb.........")];
        check(
            &drawn_us(&joined(&of), 100),
            "step.once",
            &[
                "- of 12000 - low: Step 4 takes 3.00 ms, 2.00 ms longer than the median of the 8 others behind the first: 16.7 % of all steps.",
            ],
        );
    }

    #[test]
    fn the_first_step_several_long_ones_and_short_ones_are_not_for_this_rule() {
        check(&drawn_us(&steps(&[0]), 100), "step.once", &[]);
        check(&drawn_us(&steps(&[4, 7]), 100), "step.once", &[]);
        check(&drawn_us(&steps(&[]), 100), "step.once", &[]);
        check(&drawn_us(&steps(&[4]), 20), "step.once", &[]);
    }
}

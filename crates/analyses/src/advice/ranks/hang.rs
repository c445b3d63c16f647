//! A collective that some ranks never entered while the others wait in it.

use super::super::words::quoted;
use super::super::{Advice, Lacks, Place, Priority, Rule};
use super::facts::{JobFacts, middle};
use super::{JobRule, Said};
use crate::hangs::{self, Hang, HangState};
use stepscope_base::units::format_ns;
use stepscope_trace::{SliceId, StepSource, Trace};

pub(super) const RULE: JobRule = Rule {
    code: "job.hang",
    fault: "The job hangs",
    disproof: "The ranks go on after a while.",
    evidence: "hangs",
    to_do: "Look at what the missing rank did last (`stepscope analyze hangs`, its stack with `stepscope record --stacks`): \
            a branch that not all ranks take, data that ran out on one of them, an exception that was caught, a call that \
            blocks.",
    judge,
};

/// Ranks wait for each other for as many steps in jobs that do not hang.
const LEAST_STEPS: i64 = 5;
/// And for this long.
const LEAST_WAIT_NS: i64 = 1_000_000_000;

fn judge(facts: &JobFacts) -> Result<Said, Lacks> {
    let rows = hangs::rows(facts.context);
    let groups = rows.chunk_by(|a, b| (&a.group, a.number, a.group_size) == (&b.group, b.number, b.group_size));
    // The first group that got stuck is why others are.
    let row = groups.filter_map(|of_group| row(facts, of_group)).next();
    let row = row.map(|row| Advice { says: row.says.clone() + facts.so_far(), ..row });
    Ok(Said { rows: row.into_iter().collect(), ..Said::default() })
}

fn row(facts: &JobFacts, of_group: &[Hang]) -> Option<Advice> {
    let trace = facts.context.trace;
    let waited_for: Vec<&Hang> = of_group.iter().filter(|row| row.is_waited_for).collect();
    let waiting: Vec<&Hang> =
        of_group.iter().filter(|row| row.state == HangState::Entered && !row.is_waited_for).collect();
    let culprit = waited_for.first()?;
    // Ranks that do not do the same never finish together, however soon the job ends by it: nothing has to be long.
    let differs = culprit.state != HangState::NeverEntered;
    let Some(first) = waiting.iter().min_by_key(|row| row.since_ns) else {
        return differs.then(|| nobody_waits(trace, culprit));
    };
    let since_ns = first.since_ns?;
    // Where clocks are not related, only the rank's own says for how long it waits.
    let is_comparable = |id: &SliceId| {
        facts.clocks_are_related().is_ok() || trace.rank_of_track(trace.slices.track[id.index()]) == first.rank
    };
    let end_ns = trace.slices.ids().filter(is_comparable).map(|id| trace.slices.span(id).end_ns).max()?;
    let waited_ns = end_ns - since_ns;
    if !differs && !is_long(trace, waited_ns) {
        return None;
    }
    let named = |rows: &[&Hang]| match rows {
        [one] => format!("rank {}", one.rank),
        few if few.len() <= 8 => {
            format!("ranks {}", few.iter().map(|row| row.rank.to_string()).collect::<Vec<_>>().join(", "))
        }
        many => format!("{} ranks", many.len()),
    };
    let (who, whom) = (named(&waiting), named(&waited_for));
    let wait = if waiting.len() == 1 { "waits" } else { "wait" };
    let name = first.name.as_deref().unwrap_or("collective");
    let group = of_group_words(first);
    let why = match culprit.state {
        HangState::NeverEntered => "which never entered it".to_string(),
        _ => format!("which does not do the same: {}", culprit.verdict),
    };
    let last =
        culprit.doing.map_or_else(String::new, |doing| format!(" It was last in {}.", quoted(trace.slice_name(doing))));
    let long = if waited_ns > 0 { format!(" for {}", format_ns(waited_ns)) } else { String::new() };
    Some(Advice {
        rank: (waited_for.len() == 1).then_some(culprit.rank),
        priority: Priority::High,
        says: format!(
            "The job hangs: {who} {wait}{long} in {} {}{group} for {whom}, {why}.{last}",
            quoted(name),
            first.number
        ),
        measured_ns: Some(waited_ns).filter(|ns| *ns > 0),
        count: Some(waiting.len() as i64),
        place: culprit.doing.map(|doing| Place::of(trace, doing)),
        ..Advice::default()
    })
}

/// The others have left it, as with an error that a rank had which got another number of bytes than it asked for.
fn nobody_waits(trace: &Trace, culprit: &Hang) -> Advice {
    let name = quoted(culprit.name.as_deref().unwrap_or("collective"));
    Advice {
        rank: Some(culprit.rank),
        priority: Priority::High,
        says: format!(
            "The job hangs: in {name} {}{} rank {} does not do the same as the others, which have left it: {}.",
            culprit.number,
            of_group_words(culprit),
            culprit.rank,
            culprit.verdict
        ),
        count: Some(1),
        place: culprit.doing.map(|doing| Place::of(trace, doing)),
        ..Advice::default()
    }
}

fn of_group_words(row: &Hang) -> String {
    row.group.as_ref().map_or_else(String::new, |group| format!(" of group {group}"))
}

/// Whether ranks wait for longer than they do at times. Without steps, what did not end is all that there is to go by.
fn is_long(trace: &Trace, waited_ns: i64) -> bool {
    let known = trace.steps.iter().filter(|step| step.is_complete && step.source != StepSource::Whole);
    let Some(step_ns) = middle(known.map(|step| step.span.duration_ns())) else { return true };
    waited_ns >= LEAST_WAIT_NS && waited_ns >= LEAST_STEPS * step_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
    use crate::advice::advice;
    use crate::advice::tests::check;
    use stepscope_trace::drawn::{drawn, drawn_with_collectives};
    use stepscope_trace::{ClockSource, FindingCode, Joined, SliceKind};

    /// Works `a`, `b` and `c` of three ranks, numbered from 0 on each; `C` does not end.
    fn job(last: [&str; 3]) -> Trace {
        let of_rank = |(rank, last): (usize, &str)| format!("rank {rank} label 1 a.b.{last}\n");
        let drawing: String = last.into_iter().enumerate().map(of_rank).collect();
        let said = |name, number| (name, SliceKind::Annotation, ("allreduce", "Float", Some(10), Some(number)));
        let mut trace = drawn_with_collectives(&drawing, &[said("a", 0), said("b", 1), said("C", 2)]);
        for at in 0..trace.collectives.len() {
            let name = trace.slice_name(trace.collectives[at].slice);
            trace.collectives[at].sequence_number =
                Some(["a", "b", "C"].iter().position(|of| *of == name).expect("drawn") as i64);
        }
        for slice in trace.slices.ids() {
            trace.slices.is_unfinished[slice.index()] = trace.slice_name(slice) == "C";
        }
        trace
    }

    #[test]
    fn a_rank_that_never_came_is_named() {
        check(
            &job(["CCCC", "xxx.", "CCCC"]),
            "job.hang",
            &[
                "- of - - high: The job hangs: ranks 0, 2 wait for 4.00 µs in `allreduce` 2 of group 0 for rank 1, which never entered it. It was last in `x`.",
            ],
        );
    }

    /// That job in steps that take as long as the wait; rank 1 has other elements in the last collective.
    fn job_of_unlike_ranks(elements: i64, has_left: bool) -> Trace {
        let mut trace = job(["CCCC", "CCCC", "CCCC"]);
        trace.steps = drawn("rank 0 step 0011223344").steps;
        for at in 0..trace.collectives.len() {
            let slice = trace.collectives[at].slice;
            let rank = trace.rank_of_track(trace.slices.track[slice.index()]);
            let is_last = trace.slice_name(slice) == "C";
            if rank == 1 && is_last {
                trace.collectives[at].input_elements = Some(elements);
            }
            if rank != 1 && is_last && has_left {
                trace.slices.is_unfinished[slice.index()] = false;
            }
        }
        trace
    }

    #[test]
    fn a_rank_that_does_not_do_the_same_need_not_be_waited_for_for_long() {
        check(
            &job_of_unlike_ranks(12, false),
            "job.hang",
            &[
                "- of - - high: The job hangs: ranks 0, 2 wait for 4.00 µs in `allreduce` 2 of group 0 for rank 1, which does not do the same: has 12 elements in, not 10. It was last in `C`.",
            ],
        );
        check(
            &job_of_unlike_ranks(12, true),
            "job.hang",
            &[
                "- of - - high: The job hangs: in `allreduce` 2 of group 0 rank 1 does not do the same as the others, which have left it: has 12 elements in, not 10.",
            ],
        );
        check(&job_of_unlike_ranks(10, false), "job.hang", &[]);
    }

    #[test]
    fn clocks_that_are_not_related_say_nothing_of_the_wait_and_a_run_that_goes_on_says_so_far() {
        let says = |trace: &Trace| {
            let rows = advice(trace, &Selection::default());
            rows.iter().find(|row| row.rule.as_str() == "job.hang").map(|row| row.says.clone()).expect("a row")
        };
        let mut trace = job(["CCCC", "xxxxxxxx", "CCCC"]);
        assert!(says(&trace).contains(" wait for 8.00 µs in "), "{}", says(&trace));
        trace.joined = Some(Joined { clocks: ClockSource::BegunTogether, ..Joined::default() });
        assert!(says(&trace).contains(" wait for 4.00 µs in "), "{}", says(&trace));
        trace.findings.add(FindingCode::ProcessRunning, || "rank 0".into());
        assert!(says(&trace).ends_with(" That is so far: ranks are still being recorded."), "{}", says(&trace));
    }

    #[test]
    fn a_recording_that_ends_while_all_ranks_are_in_a_collective_is_no_hang() {
        check(&job(["CCCC", ".CCC", "CCCC"]), "job.hang", &[]);
        check(&job(["....", "....", "...."]), "job.hang", &[]);
    }

    #[test]
    fn a_wait_as_there_are_in_other_steps_is_no_hang() {
        let steps = drawn("rank 0 step 00112233");
        assert!(!is_long(&steps, 2_000));
        assert!(!is_long(&steps, 900_000_000));
        assert!(is_long(&steps, 1_000_000_000));
        assert!(is_long(&drawn("rank 0 cpu 1 a"), 0));
    }
}

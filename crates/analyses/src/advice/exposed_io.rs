//! The training process reads or writes files while its devices do nothing.

use super::facts::{Facts, share};
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{IoEvent, ProcessId};

const THRESHOLD: f64 = 0.05;

pub(super) const RULE: Rule = Rule {
    code: "io.exposed",
    fault: "The training process is in calls on files while devices do nothing",
    disproof: "Steps are as long with the files in memory (`/dev/shm`).",
    evidence: "step_breakdown",
    to_do: "Read and write beside the computing: data in workers of the `DataLoader`, checkpoints with \
            `torch.distributed.checkpoint.async_save` or in a thread of their own, logs every so many steps.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    if facts.trace.io.is_empty() {
        return Err(Lacks("no calls on files: `stepscope record --io` records them"));
    }
    let mut ranks: Vec<u32> = facts.devices()?.iter().map(|device| device.rank).collect();
    ranks.dedup();
    Ok(ranks.into_iter().filter_map(|rank| of_rank(facts, rank)).collect())
}

/// Only of the processes that run steps: what their helpers read in advance holds nobody up.
fn of_rank(facts: &Facts, rank: u32) -> Option<Advice> {
    let trace = facts.trace;
    let windows = facts.steps_of(rank);
    let steps = facts.selection.steps(trace).filter(|step| step.rank == rank);
    let processes: Vec<ProcessId> = steps.map(|step| step.process).collect();
    let process = |event: &IoEvent| trace.tracks[trace.slices.track[event.slice.index()].index()].process;
    let own: Vec<&IoEvent> = trace.io.iter().filter(|event| processes.contains(&process(event))).collect();
    if own.is_empty() {
        return None;
    }
    let io: IntervalSet =
        own.iter().map(|event| trace.slices.span(event.slice)).collect::<Vec<Span>>().into_iter().collect();
    let of_rank = trace.device_events.iter().filter(|event| trace.devices[event.device.index()].rank == rank);
    let busy: IntervalSet =
        of_rank.map(|event| trace.slices.span(event.slice)).collect::<Vec<Span>>().into_iter().collect();
    let exposed = io.intersect(&windows).subtract(&busy);
    let exposed_ns = exposed.total_ns();
    let row = share(exposed_ns, windows.total_ns(), THRESHOLD)?;
    let longest =
        own.iter().max_by_key(|event| (trace.slices.dur_ns[event.slice.index()], std::cmp::Reverse(event.slice)))?;
    let (time, ratio) = (format_ns(exposed_ns), format_ratio(row.measured_ratio?));
    Some(Advice {
        rank: Some(rank),
        says: format!(
            "The training process is in calls on files for {time} ({ratio}) of {} while its devices do nothing.",
            format_ns(windows.total_ns())
        ),
        count: Some(own.len() as i64),
        gain: Some((exposed_ns, GainEstimate::Bound)),
        place: Some(Place::of(trace, longest.slice)),
        time: exposed,
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_ms, with_io};

    #[test]
    fn calls_on_files_beside_which_no_device_works_are_said() {
        let trace = |drawing: &str| with_io(drawn_ms(drawing), "r", 1);
        check(
            &trace("rank 0 step 0000000000\nrank 0 python 1 .rrr\nrank 0 stream 7 CCC"),
            "io.exposed",
            &[
                "1000 of 10000 bound high: The training process is in calls on files for 1.00 ms (10.0 %) of 10.0 ms while its devices do nothing.",
            ],
        );
        check(&trace("rank 0 step 0000000000\nrank 0 python 1 .rrr\nrank 0 stream 7 CCCCC"), "io.exposed", &[]);
        check(&trace("rank 0 step 0000000000\nrank 0 python 1 .rrr"), "io.exposed", &[]);
    }
}

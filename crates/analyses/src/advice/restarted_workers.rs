//! The loader ends its workers with each pass over the data, and starts new ones.
//!
//! ```text
//! workers      ·aaa··bbb············ccc··
//! main thread  ···n·····n··eee········nn·    e finds the end of a pass, the last n waits for new workers
//! restart      ············███████████···
//! ```

use super::facts::Facts;
use super::loops::Loop;
use super::words::counted;
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use crate::batches::{Batch, Batches, PlacedRange};
use crate::host_threads::{Doing, Threads};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{ProcessId, SliceId, SliceKind};

/// Passes that begin in the steps; fewer are no habit.
const LEAST_RESTARTS: usize = 3;

pub(super) const RULE: Rule = Rule {
    code: "input.restarted_workers",
    fault: "The loader's workers are started again for each pass",
    disproof: "Steps are as long with `persistent_workers=True`.",
    evidence: "io_workers",
    to_do: "Pass `persistent_workers=True` to the `DataLoader`, or make passes longer: a sampler that goes over the data \
            several times (`RandomSampler(replacement=True, num_samples=…)`), and evaluation with a loader of its own that \
            is kept.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let loops = facts.loops()?;
    let batches: &Batches = facts.context.get();
    if batches.batches.iter().all(|batch| batch.fetch.said.worker.is_none()) {
        return Err(Lacks("no workers of a loader: `stepscope record` records them"));
    }
    Ok(loops.iter().filter_map(|of| of_loop(facts, of, batches)).collect())
}

/// Which process made the batch that a wait took, of the worker with which number, and when.
type Makers = FxHashMap<SliceId, (ProcessId, i64, Span)>;

fn of_loop(facts: &Facts, of: &Loop, batches: &Batches) -> Option<Advice> {
    let (trace, thread) = (facts.trace, of.thread?);
    let maker = |batch: &Batch| {
        let fetch = &batch.fetch;
        Some((batch.next.as_ref()?.said.slice, (fetch.process, fetch.said.worker?, fetch.span)))
    };
    let makers: Makers = batches.batches.iter().filter_map(maker).collect();
    let is_own = |next: &&PlacedRange| next.process == of.process && next.thread == thread;
    let took = batches.nexts.iter().filter(is_own).filter(|next| makers.contains_key(&next.said.slice));
    // What took no batch found the end of a pass.
    let slices = trace.lanes(thread).flat_map(|lane| trace.tracks[lane.index()].slice_ids());
    let took_none = |id: &SliceId| trace.slices.kind(*id) == SliceKind::DataLoader && !makers.contains_key(id);
    let mut ends: Vec<SliceId> = slices.filter(took_none).collect();
    ends.sort_unstable_by_key(|id| trace.slices.start_ns[id.index()]);
    // The last process of each worker.
    let mut known: FxHashMap<i64, ProcessId> = FxHashMap::default();
    let (mut waits, mut restarts, mut before) = (Vec::<(Span, SliceId)>::new(), 0, None::<&PlacedRange>);
    let mut fetches = Vec::new();
    for next in took {
        if let Some((process, worker, fetch)) = makers.get(&next.said.slice)
            && known.insert(*worker, *process).is_some_and(|other| other != *process)
            && of.has(next.span.end_ns - 1)
        {
            // What found the end of the pass before waited for its workers.
            let at = ends.partition_point(|id| trace.slices.start_ns[id.index()] < next.span.start_ns);
            let end = at.checked_sub(1).map(|at| ends[at]);
            let end =
                end.filter(|id| before.is_some_and(|before| trace.slices.span(*id).start_ns >= before.span.end_ns));
            restarts += usize::from(end.is_some());
            fetches.push(*fetch);
            let first = end.unwrap_or(next.said.slice);
            waits.push((Span::new(trace.slices.start_ns[first.index()], next.span.end_ns), first));
        }
        before = Some(next);
    }
    let workers = known.len() as i64;
    let (_, longest) = *waits.iter().max_by_key(|(span, slice)| (span.duration_ns(), Reverse(*slice)))?;
    let spans: Vec<Span> = waits.into_iter().map(|(span, _)| span).collect();
    let operators = facts.context.get::<Threads>().get(trace, thread).doing(Doing::Op);
    let exposed = IntervalSet::from_unsorted(spans).intersect(&of.windows).subtract(operators).subtract(&of.device);
    let row = of.row(exposed.total_ns()).filter(|_| restarts >= LEAST_RESTARTS)?;
    // Workers that are kept make a first batch, too, all of them at once, and take no processor from others while they start.
    let starts = exposed.subtract(&IntervalSet::from_unsorted(fetches));
    Some(Advice {
        says: format!(
            "The loader ends its {} and starts anew {} in {} steps: until the first batches are there, {} ({}) of {} pass.",
            counted(workers, "worker"),
            counted(restarts as i64, "time"),
            of.steps.len(),
            format_ns(exposed.total_ns()),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(restarts as i64),
        gain: Some((starts.total_ns(), GainEstimate::Floor)),
        place: Some(Place::of(trace, longest)),
        time: exposed,
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, stretched};
    use crate::batches::tests::with_batches;
    use stepscope_trace::Trace;

    /// Six steps of 1 ms, each of which takes a batch of each of `workers`, which are other processes than those of the
    /// step before; but for the first, a step begins with a wait that finds the end of a pass.
    fn passes(workers: usize, has_new_workers: bool) -> Trace {
        let steps: String = (0..6).map(|step| step.to_string().repeat(10)).collect();
        let letters: Vec<char> = ('a'..).take(6 * workers).collect();
        // No worker makes `z`.
        let waits: String = letters
            .chunks(workers)
            .map(|batches| match batches[0] {
                'a' => format!("..{:.<8}", String::from_iter(batches)),
                _ => format!("zz..{:.<6}", String::from_iter(batches)),
            })
            .collect();
        let mut drawing =
            format!("rank 0 step {steps}\nrank 0 cpu 1 {}\nrank 0 input 1 {waits}\n", "......oooo".repeat(6));
        for (nth, letter) in letters.iter().enumerate() {
            let rank = if has_new_workers { nth + 1 } else { nth % workers + 1 };
            let (before, fetch) = (".".repeat(nth / workers * 10), letter.to_string().repeat(workers));
            drawing += &format!("rank {rank} label 1 {before}{fetch}\n");
        }
        let mut trace = with_batches(&stretched(&drawing, 100));
        let numbers = trace.dataflow.iter_mut().filter_map(|range| range.worker.as_mut());
        numbers.for_each(|worker| *worker %= workers as i64);
        trace
    }

    #[test]
    fn workers_that_are_started_for_each_pass_are_said() {
        check(
            &passes(1, true),
            "input.restarted_workers",
            &[
                "2000 of 6000 floor high: The loader ends its 1 worker and starts anew 5 times in 6 steps: until the first batches are there, 2.50 ms (41.7 %) of 6.00 ms pass.",
            ],
        );
        // What is left of the waits takes batches that were made before.
        check(&passes(1, true), "input.dataloader", &[]);
    }

    #[test]
    fn workers_make_their_first_batches_at_once() {
        check(
            &passes(2, true),
            "input.restarted_workers",
            &[
                "2000 of 6000 floor high: The loader ends its 2 workers and starts anew 5 times in 6 steps: until the first batches are there, 3.00 ms (50.0 %) of 6.00 ms pass.",
            ],
        );
    }

    #[test]
    fn workers_that_are_kept_are_healthy() {
        check(&passes(2, false), "input.restarted_workers", &[]);
    }
}

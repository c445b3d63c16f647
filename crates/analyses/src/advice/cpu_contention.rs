//! The thread that runs the steps could run, and other threads have the processors.

use super::facts::{Facts, share};
use super::{Advice, GainEstimate, Judged, Lacks, Rule};
use crate::host_lines::HostTime;
use crate::processor_waits::waits;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_trace::Trace;

/// Less is the usual lot of a machine whose processors are all in use: loops of two healthy ranks, which with the threads of
/// their collectives fill two processors, wait for up to 12 %.
const THRESHOLD: f64 = 0.13;

pub(super) const RULE: Rule = Rule {
    code: "host.cpu_contention",
    fault: "The loop waits for a processor",
    disproof: "Steps are as long when nothing else runs on the machine.",
    evidence: "host_lines",
    to_do: "Leave this job processors of its own: stop or move what runs beside it, give its container more (`cpus`), \
            and start no more threads than there are processors (`OMP_NUM_THREADS`, `torch.set_num_threads`, workers of \
            the `DataLoader`).",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    if facts.trace.stack_samples.iter().all(|sample| sample.runnable_ns.is_none()) {
        return Err(Lacks("how long threads could have run: `stepscope record` asks the system"));
    }
    let times: &Vec<HostTime> = facts.context.get();
    Ok(times.iter().filter_map(|time| of_rank(facts.trace, time)).collect())
}

fn of_rank(trace: &Trace, time: &HostTime) -> Option<Advice> {
    let spans = waits(trace, time.track, &time.steps);
    let ns = spans.total_ns();
    let row = share(ns, time.steps.total_ns(), THRESHOLD).filter(|_| time.step_count > 0)?;
    let (waits, window, ratio) = (format_ns(ns), format_ns(time.steps.total_ns()), format_ratio(row.measured_ratio?));
    Some(Advice {
        rank: Some(time.rank),
        says: format!(
            "The thread that runs the loop waits {waits} ({ratio}) of {window} for a processor: it could run, and others do."
        ),
        gain: Some((ns, GainEstimate::Bound)),
        time: spans,
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_ms};

    #[test]
    fn a_thread_that_could_run_and_does_not_is_said_beyond_what_is_usual() {
        let trace = |runnable_ns: i64| {
            let mut trace = drawn_ms("rank 0 step 0000000000\nrank 0 cpu 1 aaaaaaaaaa\nrank 0 samples 1 .f|f.......");
            trace.stack_samples.iter_mut().for_each(|sample| sample.runnable_ns = Some(runnable_ns));
            trace
        };
        let samples = trace(0).stack_samples.len() as i64;
        check(
            &trace(2_000_000 / samples),
            "host.cpu_contention",
            &[
                "2000 of 10000 bound high: The thread that runs the loop waits 2.00 ms (20.0 %) of 10.0 ms for a processor: it could run, and others do.",
            ],
        );
        check(&trace(1_200_000 / samples), "host.cpu_contention", &[]);
    }
}

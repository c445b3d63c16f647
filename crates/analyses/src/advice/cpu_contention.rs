//! The thread that runs the steps could run, and other threads have the processors.

use super::facts::{Facts, share};
use super::host_lines::with_runner;
use super::quantities::{CPU_QUOTA, Quantity};
use super::settings::settings;
use super::{Advice, GainEstimate, Judged, Lacks, Rule};
use crate::host_lines::HostTime;
use crate::processor_waits::waits;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span};

/// Less is the usual lot of a machine whose processors are all in use: loops of two healthy ranks, which with the threads of
/// their collectives fill two processors, wait for up to 12 %.
const THRESHOLD: f64 = 0.13;
/// Of the steps, as many tenths have to lie between samples of the machine.
const LEAST_TENTHS: i64 = 8;

/// A thread of the job that uses less than this part of the waits is not what has the processors.
const LEAST_PART: i64 = 4;

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
    Ok(times.iter().filter_map(|time| of_rank(facts, time)).collect())
}

fn of_rank(facts: &Facts, time: &HostTime) -> Option<Advice> {
    let spans = waits(facts.trace, time.track, &time.steps);
    let ns = spans.total_ns();
    let row = share(ns, time.steps.total_ns(), THRESHOLD).filter(|_| time.step_count > 0)?;
    let (waits, window, ratio) = (format_ns(ns), format_ns(time.steps.total_ns()), format_ratio(row.measured_ratio?));
    let others_ns = used_by_others(facts, time.rank);
    // What waits for others has other threads that wait as well; what waits for its own threads has to have fewer.
    let is_for_others = others_ns.is_some_and(|others_ns| others_ns >= ns);
    let others = others_ns.map_or_else(String::new, |others_ns| {
        let used = format!(" Programs that are not recorded use processors for {} meanwhile", format_ns(others_ns));
        used + if others_ns < ns / 2 { ": most of what runs instead are the job's own threads." } else { "." }
    });
    let row = Advice {
        rank: Some(time.rank),
        says: format!(
            "The thread that runs the loop waits {waits} ({ratio}) of {window} for a processor: it could run, and others \
             do.{others}"
        ),
        gain: Some((ns, if is_for_others { GainEstimate::Floor } else { GainEstimate::Bound })),
        time: spans,
        ..row
    };
    // A thread that runs now and then waits for processors as well.
    let least_ran_ns = ns / LEAST_PART;
    Some(if is_for_others { row } else { with_runner(facts, row, least_ran_ns) })
}

/// How long processors of the machine ran in steps for programs of which nothing is recorded; `None` where that is not known,
/// or the machine has other ranks as well, or processors that the job may not use.
fn used_by_others(facts: &Facts, rank: u32) -> Option<i64> {
    let of = facts.loops().ok()?.iter().find(|of| of.rank == rank)?;
    let settings = settings(facts, of);
    let has_all = settings.cores.is_some() && settings.cores == settings.cores_allowed;
    if settings.ranks != Some(1) || !has_all || Quantity::of(facts.trace, of, CPU_QUOTA).is_some() {
        return None;
    }
    let spans = Quantity::of(facts.trace, of, "host CPU user (ns)")?.spans(of);
    let covered = IntervalSet::from_unsorted(spans.clone()).intersect(&of.windows);
    if covered.total_ns() < of.window_ns() / 10 * LEAST_TENTHS {
        return None;
    }
    let host = facts.trace.processes[of.process.index()].host.as_ref();
    // A process that starts meanwhile has used nothing before.
    let used = |quantity: Quantity, span: &Span| {
        quantity.at(span.end_ns).unwrap_or(0) - quantity.at(span.start_ns).unwrap_or(0)
    };
    let sum = |who: &str| -> i64 {
        let of_kind = |kind: &str| {
            let name = format!("{who} CPU {kind} (ns)");
            Quantity::of_all(facts.trace, host, &name).collect::<Vec<_>>()
        };
        let all = ["user", "system"].into_iter().flat_map(of_kind);
        all.map(|quantity| spans.iter().map(|span| used(quantity, span)).sum::<i64>()).sum()
    };
    Some((sum("host") - sum("process")).max(0))
}

#[cfg(test)]
mod tests {
    use crate::advice::loops::tests::repeated;
    use crate::advice::quantities::tests::sample;
    use crate::advice::tests::{check, drawn_ms};
    use stepscope_trace::Settings;

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

    #[test]
    fn a_thread_that_has_the_processors_is_named_and_one_that_runs_now_and_then_is_not() {
        let says = |ran_ns: i64| {
            let rows = "rank 0 step 0000000000\nrank 0 cpu 1 aaaaaaaaaa\nrank 0 samples 1 .f|f|f|f|f.....\n";
            let mut trace = drawn_ms(&format!("{rows}rank 0 cpu 2 b.........\nrank 0 samples 2 .g|g|g|g|g.....\n"));
            let main = trace.stack_samples[0].track;
            for sample in &mut trace.stack_samples {
                let is_main = sample.track == main;
                sample.runnable_ns = Some(if is_main { 1_000_000 } else { 0 });
                sample.ran_ns = Some(if is_main { 0 } else { ran_ns });
            }
            let found = crate::advice::advice(&trace, &crate::Selection::default());
            let row = found.into_iter().find(|row| row.rule.as_str() == "host.cpu_contention");
            row.is_some_and(|row| row.says.contains("Meanwhile the thread `thread 2` is most often in `g.py(7): g`"))
        };
        assert!(says(500_000));
        assert!(!says(100_000));
    }

    #[test]
    fn what_waits_for_other_programs_gains_more_than_it_waits() {
        // Of 50 ms in steps the loop waits for 14; the process uses a processor all the time.
        let says = |machine: i64| {
            let mut trace = drawn_ms(&repeated(5, &[("cpu 1", "aaaaaaaaaa"), ("samples 1", ".f|f......")]));
            let samples = trace.stack_samples.len() as i64;
            trace.stack_samples.iter_mut().for_each(|sample| sample.runnable_ns = Some(20_000_000 / samples));
            trace.processes[0].settings =
                Settings { ranks: Some(1), cores: Some(2), cores_allowed: Some(2), ..Settings::default() };
            let each = |ns: i64| (0..=5).map(|at| at * ns).collect::<Vec<_>>();
            sample(&mut trace, "host CPU user (ns)", 10_000_000, &each(machine));
            sample(&mut trace, "host CPU system (ns)", 10_000_000, &each(1_000_000));
            sample(&mut trace, "process CPU user (ns)", 10_000_000, &each(9_000_000));
            sample(&mut trace, "process CPU system (ns)", 10_000_000, &each(1_000_000));
            trace
        };
        let waits = "The thread that runs the loop waits 14.0 ms (28.0 %) of 50.0 ms for a processor: it could run, and others do. Programs that are not recorded use processors for";
        check(
            &says(13_000_000),
            "host.cpu_contention",
            &[&format!("14000 of 50000 floor high: {waits} 20.0 ms meanwhile.")],
        );
        check(
            &says(10_000_000),
            "host.cpu_contention",
            &[&format!(
                "14000 of 50000 bound high: {waits} 5.00 ms meanwhile: most of what runs instead are the job's own threads."
            )],
        );
    }
}

//! The thread that runs the steps could run, and the quota of its control group is used up.

use super::facts::Facts;
use super::loops::Loop;
use super::quantities::{CPU_QUOTA, Quantity};
use super::words::counted;
use super::{Advice, GainEstimate, Judged, Lacks, Rule};
use crate::processor_waits::waits;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span};

/// Fewer periods may be those of a burst, such as where the job starts. A period is a tenth of a second as a rule.
const LEAST_PERIODS: i64 = 10;

pub(super) const RULE: Rule = Rule {
    code: "host.cpu_quota",
    fault: "The quota of the control group stops the loop",
    disproof: "`nr_throttled` in `cpu.stat` of the group does not grow, or steps are as long with a larger quota.",
    evidence: "host_lines",
    to_do: "Raise the quota: `--cpus` of the container, `limits.cpu` in Kubernetes, `CPUQuota` of the service. Until then \
            compute on no more threads than it has processors: `torch.set_num_threads(…)` or `OMP_NUM_THREADS`, and fewer \
            workers of the `DataLoader`.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let loops = facts.loops()?;
    if loops.iter().all(|of| throttled(facts, of).is_none()) {
        return Err(Lacks(
            "how often its control group was stopped: `stepscope record` samples it, where there is such a group",
        ));
    }
    if facts.trace.stack_samples.iter().all(|sample| sample.runnable_ns.is_none()) {
        return Err(Lacks("how long threads could have run: `stepscope record` asks the system"));
    }
    Ok(loops.iter().filter_map(|of| of_loop(facts, of)).collect())
}

/// Periods, and those in which the group was stopped.
fn throttled<'a>(facts: &Facts<'a>, of: &Loop) -> Option<[Quantity<'a>; 2]> {
    let quantity = |name| Quantity::of(facts.trace, of, name);
    Some([quantity("control group CPU periods")?, quantity("control group CPU periods throttled")?])
}

fn of_loop(facts: &Facts, of: &Loop) -> Option<Advice> {
    let [periods, throttled] = throttled(facts, of)?;
    let waits = waits(facts.trace, of.thread?, &of.windows);
    let (mut time, mut gain_ns, mut sums) = (IntervalSet::default(), 0, [0; 2]);
    for span in throttled.spans(of) {
        let (all, stopped) = (periods.growth(span)?, throttled.growth(span)?);
        if stopped > 0 && stopped <= all {
            let waits = waits.clip(span);
            // In the other periods the thread waits for others.
            gain_ns += (i128::from(waits.total_ns()) * i128::from(stopped) / i128::from(all)) as i64;
            time = time.union(&waits);
        }
        sums = [sums[0] + all, sums[1] + stopped];
    }
    let [all, stopped] = sums;
    let row = of.row(gain_ns).filter(|_| stopped >= LEAST_PERIODS)?;
    let last_ns = of.windows.spans().last().map_or(0, |span: &Span| span.end_ns);
    let quota = Quantity::of(facts.trace, of, CPU_QUOTA).and_then(|quota| quota.at(last_ns));
    let threads = facts.trace.processes[of.process.index()].settings.threads;
    let may = match (quota.map(processors), threads) {
        (Some(quota), Some(threads)) => {
            format!("The control group may take {quota}, and operators compute on {}", counted(threads, "thread"))
        }
        (Some(quota), None) => format!("The control group may take {quota}"),
        (None, _) => "The control group has a quota".into(),
    };
    Some(Advice {
        says: format!(
            "{may}: it was stopped in {stopped} of {all} periods of the steps, in which the thread that runs the loop waits {} \
             ({}) of {} for the next period.",
            format_ns(gain_ns),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns()),
        ),
        count: Some(stopped),
        // Threads that compute with it are stopped as well, and it waits for them.
        gain: Some((gain_ns, GainEstimate::Floor)),
        time,
        ..row
    })
}

/// Thousandths of a processor in words.
fn processors(thousandths: i64) -> String {
    let are = if thousandths == 1_000 { "processor" } else { "processors" };
    format!("{} {are}", thousandths as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::super::loops::tests::repeated;
    use super::super::quantities::{CPU_QUOTA, tests::sample};
    use super::super::tests::{check, drawn_us};
    use stepscope_trace::{Settings, Trace};

    /// Five steps of 2 ms, in each of which the thread waits for 800 µs, with two periods a millisecond.
    fn steps(quota: i64, stopped: [i64; 6]) -> Trace {
        let mut trace =
            drawn_us(&repeated(5, &[("cpu 1", "aaaaaaaaaaaaaaaaaaaa"), ("samples 1", "..........f|f........")]), 100);
        trace.stack_samples.iter_mut().for_each(|sample| sample.runnable_ns = None);
        trace.stack_samples.iter_mut().step_by(2).for_each(|sample| sample.runnable_ns = Some(800_000));
        trace.processes[0].settings = Settings { threads: Some(4), ..Settings::default() };
        sample(&mut trace, CPU_QUOTA, 2_000_000, &[quota; 6]);
        sample(&mut trace, "control group CPU periods", 2_000_000, &[0, 4, 8, 12, 16, 20]);
        sample(&mut trace, "control group CPU periods throttled", 2_000_000, &stopped);
        trace
    }

    #[test]
    fn a_group_that_is_stopped_in_most_periods_is_said_with_its_quota() {
        check(
            &steps(1_500, [1, 4, 7, 10, 13, 16]),
            "host.cpu_quota",
            &[
                "3000 of 10000 floor high: The control group may take 1.5 processors, and operators compute on 4 threads: it was stopped in 15 of 20 periods of the steps, in which the thread that runs the loop waits 3.00 ms (30.0 %) of 10.0 ms for the next period.",
            ],
        );
        check(&steps(1_000, [1, 4, 7, 10, 13, 16]), "host.cpu_contention", &[]);
    }

    #[test]
    fn a_group_that_is_stopped_a_few_times_is_not() {
        check(&steps(1_500, [1, 4, 7, 10, 10, 10]), "host.cpu_quota", &[]);
        check(&steps(1_500, [7; 6]), "host.cpu_quota", &[]);
        let says = &steps(1_500, [7; 6]);
        assert!(
            super::super::advice(says, &crate::Selection::default())
                .iter()
                .any(|row| row.rule.as_str() == "host.cpu_contention")
        );
    }
}

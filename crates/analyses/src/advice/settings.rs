//! What a program set before its loop holds the loop up: fewer threads than there are cores for, or anomaly mode.

use super::facts::Facts;
use super::loops::Loop;
use super::quantities::{CPU_QUOTA, Quantity};
use super::step_operators::StepOp;
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Lacks, Priority, Rule};
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::Settings;

/// Operators that take less have too little to share out.
const LONG_NS: i64 = 200_000;

pub(super) const THREADS: Rule = Rule {
    code: "host.few_threads",
    fault: "Operators compute on fewer cores than there are",
    disproof: "Steps are as long with a thread on each core.",
    evidence: "operators",
    to_do: "Give each rank as many threads as it has cores: `torch.set_num_threads(…)` or `OMP_NUM_THREADS`, and these cores \
            to run on: `taskset`, `numactl`, `--cpus-per-task` of Slurm, or `cpuset` of the container.",
    judge: judge_threads,
};

pub(super) const ANOMALY_MODE: Rule = Rule {
    code: "debug.anomaly_mode",
    fault: "Anomaly mode is on",
    disproof: "Steps are as long without it.",
    evidence: "operators",
    to_do: "Take `torch.autograd.set_detect_anomaly(True)` out, and turn it on where a NaN is looked for: it keeps the stack of \
            each operator, and looks at each gradient.",
    judge: judge_anomaly_mode,
};

pub(super) const DEBUG_VARIABLES: Rule = Rule {
    code: "debug.environment",
    fault: "Variables for finding faults are set",
    disproof: "Steps are as long without them.",
    evidence: "operators",
    to_do: "Start the job without them: each launch waits for its kernel with `CUDA_LAUNCH_BLOCKING`, each tensor is allocated by \
            the driver with `PYTORCH_NO_CUDA_MEMORY_CACHING`, and each collective is compared between ranks with \
            `TORCH_DISTRIBUTED_DEBUG=DETAIL`.",
    judge: judge_debug_variables,
};

pub(super) fn settings(facts: &Facts, of: &Loop) -> Settings {
    facts.trace.processes[of.process.index()].settings
}

fn judge_threads(facts: &Facts) -> Judged {
    let loops = facts.host_operators()?;
    let is_known = |of: &Loop| {
        let Settings { threads, cores, cores_allowed, .. } = settings(facts, of);
        threads.is_some() && cores.is_some() && cores_allowed.is_some()
    };
    if !loops.iter().any(|(of, _)| is_known(of)) {
        return Err(Lacks("how many threads and cores there are: `stepscope record` says it"));
    }
    Ok(loops.into_iter().filter_map(|(of, operators)| few_threads(facts, of, operators)).collect())
}

fn few_threads(facts: &Facts, of: &Loop, operators: &[StepOp]) -> Option<Advice> {
    let settings = settings(facts, of);
    let (threads, cores, allowed) = (settings.threads?, settings.cores?, settings.cores_allowed?);
    // More threads would only use up the quota of the control group sooner.
    let last_ns = of.windows.spans().last()?.end_ns;
    let quota = Quantity::of(facts.trace, of, CPU_QUOTA).and_then(|quota| quota.at(last_ns));
    let cores_of_quota = quota.map_or(i64::MAX, |thousandths| (thousandths + 999) / 1_000);
    let share = (cores / settings.ranks.unwrap_or(1).max(1)).min(cores_of_quota);
    let used = threads.min(allowed);
    // Threads that share too few cores are meant to have more; a machine may lend fewer cores than it has.
    let wanted = if allowed < threads { threads.min(share) } else { allowed.min(share) };
    if used < 1 || used >= wanted {
        return None;
    }
    let long: Vec<Span> = operators.iter().map(|op| op.span).filter(|span| span.duration_ns() >= LONG_NS).collect();
    let long = IntervalSet::from_unsorted(long).intersect(&of.windows);
    let gain_ns = long.total_ns() - long.total_ns() * used / wanted;
    let row = of.row(gain_ns)?;
    Some(Advice {
        says: format!(
            "Operators have {} on {} of the machine's {cores}, where this rank could have {wanted} on as many. Those of \
             200 µs and more take {} ({}) of {}.",
            counted(threads, "thread"),
            counted(allowed, "core"),
            format_ns(long.total_ns()),
            format_ratio(long.total_ns() as f64 / of.window_ns() as f64),
            format_ns(of.window_ns())
        ),
        count: Some(used),
        gain: Some((gain_ns, GainEstimate::Bound)),
        time: long,
        ..row
    })
}

fn judge_anomaly_mode(facts: &Facts) -> Judged {
    let loops = facts.loops()?;
    if loops.iter().all(|of| settings(facts, of).is_anomaly_mode_on.is_none()) {
        return Err(Lacks("whether anomaly mode is on: `stepscope record` says it"));
    }
    let is_on = |of: &&Loop| settings(facts, of).is_anomaly_mode_on == Some(true);
    Ok(loops.iter().filter(is_on).map(anomaly_mode).collect())
}

/// Without a gain: what it costs is spread over all operators.
fn anomaly_mode(of: &Loop) -> Advice {
    Advice {
        rank: Some(of.rank),
        priority: Priority::High,
        says: format!(
            "Anomaly mode was on when the first of {} steps ended: each operator of the forward pass keeps a stack, and each \
             gradient is searched for NaN.",
            of.steps.len()
        ),
        ..Advice::default()
    }
}

fn judge_debug_variables(facts: &Facts) -> Judged {
    let loops = facts.loops()?;
    // Both are recorded, or neither.
    if loops.iter().all(|of| settings(facts, of).is_anomaly_mode_on.is_none()) {
        return Err(Lacks("the environment of the job: `stepscope record` says it"));
    }
    Ok(loops.iter().filter_map(|of| debug_variables(facts, of)).collect())
}

/// Without a gain: nobody knows what the same calls take without them.
fn debug_variables(facts: &Facts, of: &Loop) -> Option<Advice> {
    let costs = |variable: &&String| match variable.starts_with("TORCH_DISTRIBUTED_DEBUG=") {
        true => settings(facts, of).ranks > Some(1),
        false => !of.device.is_empty(),
    };
    let set = facts.trace.processes[of.process.index()].debug_variables.iter().filter(costs);
    let quoted: Vec<String> = set.map(|variable| quoted(variable)).collect();
    (!quoted.is_empty()).then(|| Advice {
        rank: Some(of.rank),
        priority: Priority::High,
        says: format!("The job of {} runs with {}.", counted(of.steps.len() as i64, "step"), quoted.join(", ")),
        ..Advice::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::loops::tests::repeated;
    use crate::advice::quantities::tests::sample;
    use crate::advice::tests::{check, drawn_us};
    use stepscope_trace::Trace;

    /// Five steps of 2 ms, half of them in a long operator.
    fn set_to(settings: Settings) -> Trace {
        let mut trace = drawn_us(&repeated(5, &[("cpu 1", "aaaaaaaaaab.c.d.e...")]), 100);
        trace.processes[0].settings = settings;
        trace
    }

    fn threads(threads: i64, cores_allowed: i64, ranks: i64) -> Trace {
        let (threads, cores_allowed) = (Some(threads), Some(cores_allowed));
        set_to(Settings { threads, cores: Some(8), cores_allowed, ranks: Some(ranks), ..Settings::default() })
    }

    #[test]
    fn threads_without_cores_and_cores_without_threads_are_said() {
        let says = |gain, what| {
            format!(
                "{gain} of 10000 bound high: Operators have {what} on as many. Those of 200 µs and more take 5.00 ms (50.0 %) of 10.0 ms."
            )
        };
        let one = says(4375, "1 thread on 8 cores of the machine's 8, where this rank could have 8");
        check(&threads(1, 8, 1), "host.few_threads", &[&one]);
        let pinned = says(2500, "4 threads on 2 cores of the machine's 8, where this rank could have 4");
        check(&threads(4, 2, 1), "host.few_threads", &[&pinned]);
    }

    #[test]
    fn a_thread_for_each_core_that_a_rank_has_is_healthy() {
        check(&threads(8, 8, 1), "host.few_threads", &[]);
        check(&threads(2, 8, 4), "host.few_threads", &[]);
        // The machine lends fewer.
        check(&threads(2, 2, 1), "host.few_threads", &[]);
        check(&set_to(Settings::default()), "host.few_threads", &[]);
        // So does a quota.
        let mut trace = threads(2, 8, 1);
        sample(&mut trace, CPU_QUOTA, 1_000_000, &[1_500]);
        check(&trace, "host.few_threads", &[]);
    }

    #[test]
    fn variables_for_finding_faults_are_said_where_they_cost() {
        let set = |ranks, device: &str| {
            let rows = [("cpu 1", "aaaaaaaaaab.c.d.e..."), ("stream 7", device)];
            let mut trace = drawn_us(&repeated(5, &rows), 100);
            trace.processes[0].settings =
                Settings { is_anomaly_mode_on: Some(false), ranks: Some(ranks), ..Settings::default() };
            let variables = ["CUDA_LAUNCH_BLOCKING=1", "TORCH_DISTRIBUTED_DEBUG=DETAIL"];
            trace.processes[0].debug_variables = variables.iter().map(ToString::to_string).collect();
            trace
        };
        let says = |variables: &str| format!("- of - - high: The job of 5 steps runs with {variables}.");
        let (busy, idle) = ("CCCCCCCCCC..........", "....................");
        let both = says("`CUDA_LAUNCH_BLOCKING=1`, `TORCH_DISTRIBUTED_DEBUG=DETAIL`");
        check(&set(2, busy), "debug.environment", &[&both]);
        check(&set(1, busy), "debug.environment", &[&says("`CUDA_LAUNCH_BLOCKING=1`")]);
        check(&set(2, idle), "debug.environment", &[&says("`TORCH_DISTRIBUTED_DEBUG=DETAIL`")]);
        check(&set(1, idle), "debug.environment", &[]);
        let mut none = set(2, busy);
        none.processes[0].debug_variables.clear();
        check(&none, "debug.environment", &[]);
    }

    #[test]
    fn anomaly_mode_is_said() {
        let set = |is_on| set_to(Settings { is_anomaly_mode_on: is_on, ..Settings::default() });
        check(
            &set(Some(true)),
            "debug.anomaly_mode",
            &[
                "- of - - high: Anomaly mode was on when the first of 5 steps ended: each operator of the forward pass keeps a stack, and each gradient is searched for NaN.",
            ],
        );
        check(&set(Some(false)), "debug.anomaly_mode", &[]);
    }
}

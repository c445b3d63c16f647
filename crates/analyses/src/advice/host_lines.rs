//! What the thread that runs the steps does outside of operators, by samples of its stack: it runs Python, sleeps, or waits
//! for others.

use super::facts::{Facts, share};
use super::lines::{line_of, line_of_samples};
use super::own_lines::{OwnLines, outermost_first};
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Lacks, Rule};
use crate::host_lines::HostTime;
use crate::windows::contains;
use stepscope_base::IntervalSet;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_trace::{Doing, StackSample};

const THRESHOLD: f64 = 0.05;
/// Of a loop, what is in fewer of its steps is no habit: the first one sets things up.
const LEAST_STEPS: usize = 3;
/// With fewer samples nothing is said of where time goes.
const LEAST_SAMPLES: usize = 8;

pub(super) const PYTHON: Rule = Rule {
    code: "host.python",
    fault: "Python code outside of operators",
    disproof: "Steps are as long with this code left out.",
    evidence: "host_lines",
    to_do: "Take this code out of the step: do it once before the loop, every so many steps, in the workers of the \
            `DataLoader`, or with operators on whole tensors.",
    judge: |facts| judge(facts, PYTHON_RUNS, "runs Python"),
};

/// What a system says that does not tell what threads wait for: then it is known only that it is in this line.
const PYTHON_RUNS: &[Doing] = &[Doing::Running, Doing::Unknown];

pub(super) const SLEEP: Rule = Rule {
    code: "host.sleep",
    fault: "The loop sleeps",
    disproof: "Steps are as long without the sleep.",
    evidence: "host_lines",
    to_do: "Take the sleep out of the step, or wait for the event itself.",
    judge: |facts| judge(facts, &[Doing::Sleep], "sleeps"),
};

const LOCKS: &[Doing] = &[Doing::Lock];

pub(super) const LOCK: Rule = Rule {
    code: "host.lock_wait",
    fault: "The loop waits for another thread",
    disproof: "Steps are as long with the other thread stopped.",
    evidence: "host_lines",
    to_do: "Hold the lock for less time on the other thread, hand data over by a queue that is filled ahead, or have the \
            other thread work on a copy.",
    judge: |facts| judge(facts, LOCKS, "waits for another thread"),
};

pub(super) const INTERPRETER: Rule = Rule {
    code: "host.gil_wait",
    fault: "Another thread holds the interpreter's lock",
    disproof: "Steps are as long with the other thread stopped.",
    evidence: "host_lines",
    to_do: "Run the other thread's Python code in a process of its own (`multiprocessing`), or let it do less while the \
            loop runs.",
    judge: |facts| {
        let how = "waits for the interpreter's lock, which another thread holds,";
        Ok(judge(facts, &[Doing::InterpreterLock], how)?.into_iter().map(|row| with_holder(facts, row)).collect())
    },
};

const OUTSIDE: &[Doing] = &[Doing::File, Doing::Connection, Doing::Process, Doing::System];

pub(super) const OTHERS: Rule = Rule {
    code: "host.outside_wait",
    fault: "The loop waits for something outside of it",
    disproof: "Steps are as long without the call.",
    evidence: "host_lines",
    to_do: "Do this in a thread or process of its own, before the step needs what it gives.",
    judge: |facts| judge(facts, OUTSIDE, "waits for a file, a connection, a process or the system"),
};

/// What these rules lack where much is outside of operators in a rank, and next to nothing is known of it.
pub const TOO_FEW_SAMPLES: &str = "too few samples of Python's stacks: record more steps";

fn judge(facts: &Facts, doing: &[Doing], how: &str) -> Judged {
    if facts.trace.stack_samples.is_empty() {
        return Err(Lacks("no samples of Python's stacks: `stepscope record` takes them"));
    }
    let times: &Vec<HostTime> = facts.context.get();
    if times.iter().all(|time| time.step_count < LEAST_STEPS) {
        return Err(Lacks("fewer than three complete steps: record more"));
    }
    let rows: Vec<Advice> = times.iter().filter_map(|time| of_rank(facts, time, doing, how)).collect();
    let is_much = |time: &&HostTime| share(time.exposed.total_ns(), time.steps.total_ns(), THRESHOLD).is_some();
    match rows.is_empty() && times.iter().filter(is_much).any(has_few_samples) {
        true => Err(Lacks(TOO_FEW_SAMPLES)),
        false => Ok(rows),
    }
}

/// Whether a rank has enough samples of nothing that a thread may do.
fn has_few_samples(time: &HostTime) -> bool {
    let kinds = [PYTHON_RUNS, &[Doing::Sleep], LOCKS, &[Doing::InterpreterLock], OUTSIDE];
    let count = |kind: &[Doing]| time.samples.iter().filter(|sample| kind.contains(&sample.doing)).count();
    kinds.into_iter().all(|kind| count(kind) < LEAST_SAMPLES)
}

fn of_rank(facts: &Facts, time: &HostTime, doing: &[Doing], how: &str) -> Option<Advice> {
    let trace = facts.trace;
    // PyTorch's own Python between operators is no code that could be left out; and who waits for a backward pass, which
    // has a thread of its own where there is a device, waits for operators.
    let is_own = |sample: &StackSample| {
        let innermost = sample.stack.and_then(|stack| trace.stacks.frames(stack).next());
        let not_own = if PYTHON_RUNS.contains(&sample.doing) { "torch/" } else { "torch/autograd/" };
        innermost.is_none_or(|line| !trace.strings.get(line).starts_with(not_own))
    };
    let samples: Vec<&StackSample> =
        time.samples.iter().filter(|sample| doing.contains(&sample.doing) && is_own(sample)).collect();
    // A thread that waits while its rank communicates waits for other ranks.
    let may_wait = |sample: &&StackSample| [LOCKS, OUTSIDE, &[Doing::Unknown]].concat().contains(&sample.doing);
    let communicates = match samples.iter().any(may_wait) {
        true => facts.communication(time.rank),
        false => IntervalSet::default(),
    };
    let waits = |sample: &&StackSample| may_wait(sample) && contains(communicates.spans(), sample.time_ns);
    let samples: Vec<&StackSample> = samples.into_iter().filter(|sample| !waits(sample)).collect();
    let is_unknown = samples.iter().any(|sample| sample.doing == Doing::Unknown);
    let how = if is_unknown { "runs Python, or waits," } else { how };
    if samples.len() < LEAST_SAMPLES {
        return None;
    }
    let mut steps: Vec<usize> = samples.iter().map(|sample| step_of(time, sample)).collect();
    steps.dedup();
    if steps.len() < LEAST_STEPS {
        return None;
    }
    let count = samples.len() as i64;
    let when = time.before(trace, &samples).subtract(&communicates);
    let exposed = when.intersect(&time.exposed);
    let all_ns = time.parts(std::iter::once(count))[0];
    // Where devices work beside it, it holds nothing up.
    let ns = match when.total_ns() {
        0 => 0,
        when_ns => (i128::from(all_ns) * i128::from(exposed.total_ns()) / i128::from(when_ns)) as i64,
    };
    let exposed_count = samples.iter().filter(|sample| contains(time.exposed.spans(), sample.time_ns)).count();
    let error_ns = 2 * time.error_ns(exposed_count as i64);
    // Also if there were less of it than samples say, by two standard errors.
    share(ns - error_ns, time.steps.total_ns(), THRESHOLD)?;
    let row = share(ns, time.steps.total_ns(), THRESHOLD)?;
    let stacks: Vec<_> = samples.iter().map(|sample| outermost_first(trace, sample)).collect();
    let (innermost, _) = line_of(trace, &stacks)?;
    let own: &OwnLines = facts.context.get();
    let stacks: Vec<_> = stacks.into_iter().map(|stack| own.part(trace, time.track, stack)).collect();
    let (line, part) = line_of(trace, &stacks)?;
    let calls = match innermost == line {
        true => String::new(),
        false => format!(", which calls {}", quoted(&innermost)),
    };
    let at = match part {
        part if part > 0.995 => format!("{}{calls}", quoted(&line)),
        part => format!("{} for {} of it{calls}", quoted(&line), format_ratio(part)),
    };
    let (spent, window, ratio) = (format_ns(ns), format_ns(time.steps.total_ns()), format_ratio(row.measured_ratio?));
    let (error, samples) = (format_ns(error_ns), counted(count, "sample"));
    Some(Advice {
        rank: Some(time.rank),
        says: format!("The loop {how} for about {spent} ({ratio}) of {window}, in {at} ({samples}, ± {error})."),
        count: Some(count),
        gain: Some((ns, GainEstimate::Removal)),
        error_ns,
        line: Some(line),
        time: exposed,
        ..row
    })
}

/// A row about the interpreter's lock with the thread that has it.
fn with_holder(facts: &Facts, row: Advice) -> Advice {
    // Who waits for the lock has it for shorter times as well.
    let row = Advice { gain: row.gain.map(|(ns, _)| (ns, GainEstimate::Floor)), ..row };
    with_runner(facts, row, 0)
}

/// A row about a wait with the line of the other thread of the process that most often runs meanwhile: that one has to
/// change. One that used a processor for less than `least_ran_ns` then is none.
pub(super) fn with_runner(facts: &Facts, row: Advice, least_ran_ns: i64) -> Advice {
    let (trace, times) = (facts.trace, facts.context.get::<Vec<HostTime>>());
    let Some(main) = times.iter().find(|time| Some(time.rank) == row.rank).map(|time| time.track) else { return row };
    let process = trace.tracks[main.index()].process;
    let others = trace.stack_samples.chunk_by(|a, b| a.track == b.track);
    let others =
        others.filter(|samples| samples[0].track != main && trace.tracks[samples[0].track.index()].process == process);
    let running = |samples: &[StackSample]| {
        let meanwhile = || samples.iter().filter(|sample| contains(row.time.spans(), sample.time_ns));
        let ran_ns: i64 = meanwhile().filter_map(|sample| sample.ran_ns).sum();
        let running = meanwhile().filter(|sample| sample.doing == Doing::Running);
        (ran_ns >= least_ran_ns).then(|| running.copied().collect::<Vec<StackSample>>())
    };
    let Some(running) = others.filter_map(running).max_by_key(Vec::len) else { return row };
    let Some(line) = line_of_samples(facts, &running, &row.time) else { return row };
    let thread = quoted(&trace.tracks[running[0].track.index()].name);
    let says = format!("{} Meanwhile the thread {thread} is most often in {}.", row.says, quoted(&line));
    Advice { says, line: Some(line), ..row }
}

/// The number of the step that a sample is in.
fn step_of(time: &HostTime, sample: &StackSample) -> usize {
    time.starts_ns.partition_point(|start_ns| *start_ns <= sample.time_ns)
}

#[cfg(test)]
mod tests {
    use super::TOO_FEW_SAMPLES;
    use crate::advice::tests::{check, drawn_ms};
    use crate::advice::{advice, rules_judged};
    use crate::{AnalysisContext, Selection};
    use stepscope_trace::{Doing, Trace};

    /// Three steps of 20 ms, of which operators take the first `busy`; a sample each ms of the rest.
    fn steps(busy: usize, letter: char) -> Trace {
        let own = 20 - busy;
        let ops = format!("{}{}", "C".repeat(busy), ".".repeat(own)).repeat(3);
        let samples = format!("{}{}", ".".repeat(busy), format!("{letter}|").repeat(own)).repeat(3);
        let steps = ["0", "1", "2"].map(|step| step.repeat(20)).concat();
        drawn_ms(&format!("rank 0 step {steps}\nrank 0 cpu 1 {ops}\nrank 0 samples 1 {samples}\n"))
    }

    #[test]
    fn python_outside_of_operators_is_named_with_its_line() {
        let trace = steps(8, 'f');
        let rows = advice(&trace, &Selection::default());
        let row = rows.iter().find(|row| row.rule.as_str() == "host.python");
        assert_eq!(row.and_then(|row| row.line.as_deref()), Some("f.py(7): f"));
        check(
            &trace,
            "host.python",
            &[
                "36000 of 60000 removal high: The loop runs Python for about 36.0 ms (60.0 %) of 60.0 ms, in `f.py(7): f` (36 samples, ± 0 ns).",
            ],
        );
        check(&steps(19, 'f'), "host.python", &[]);
    }

    #[test]
    fn what_a_library_runs_is_said_with_the_line_that_calls_it() {
        let mut trace = steps(8, 'f');
        trace.processes[0].library_files = vec!["f.py".into()];
        let rows = advice(&trace, &Selection::default());
        let row = rows.iter().find(|row| row.rule.as_str() == "host.python");
        assert_eq!(row.and_then(|row| row.line.as_deref()), Some("main.py(1): main"));
        check(
            &trace,
            "host.python",
            &[
                "36000 of 60000 removal high: The loop runs Python for about 36.0 ms (60.0 %) of 60.0 ms, in `main.py(1): main`, which calls `f.py(7): f` (36 samples, ± 0 ns).",
            ],
        );
    }

    #[test]
    fn a_rank_with_too_few_samples_is_not_judged_by_another() {
        let drawing = |samples: &str| {
            let (ops, samples, step) =
                (".".repeat(60), format!("{samples:.<60}"), ["0", "1", "2"].map(|at| at.repeat(20)));
            let of = |rank: u32, samples: &str| {
                format!(
                    "rank {rank} step {}\nrank {rank} cpu 1 {ops}\nrank {rank} samples 1 {samples}\n",
                    step.concat()
                )
            };
            of(0, &"fgfgfgfgfgfgfgfgfgfg".repeat(3)) + &of(1, &samples)
        };
        let lacks = |samples: &str| {
            let trace = drawn_ms(&drawing(samples));
            let judged = rules_judged(&AnalysisContext::new(&trace, &Selection::default()));
            judged.not_judged.iter().find(|(rule, _)| *rule == "host.sleep").map(|(_, lacks)| lacks.clone())
        };
        assert_eq!(lacks("f.f").as_deref(), Some(TOO_FEW_SAMPLES));
        assert_eq!(lacks(&"fg".repeat(30)), None);
    }

    #[test]
    fn what_only_the_first_step_does_is_no_habit() {
        let with_samples = |samples: [&str; 3]| {
            let (ops, steps) = ("CCCCC.....", ["0", "1", "2"].map(|step| step.repeat(10)).concat());
            let (ops, samples) = (ops.repeat(3), samples.concat());
            drawn_ms(&format!("rank 0 step {steps}\nrank 0 cpu 1 {ops}\nrank 0 samples 1 {samples}\n"))
        };
        let (some, none) = (".....F|F|F|F|F|", "..........");
        check(&with_samples([".....F|F|F|F|F|", none, none]), "host.sleep", &[]);
        check(
            &with_samples([some, some, some]),
            "host.sleep",
            &[
                "15000 of 30000 removal high: The loop sleeps for about 15.0 ms (50.0 %) of 30.0 ms, in `f.py(7): f` (15 samples, ± 0 ns).",
            ],
        );
    }

    /// What each of the waits is called, and what says so.
    #[test]
    fn each_wait_has_its_rule() {
        const OUTSIDE: &str = "waits for a file, a connection, a process or the system";
        let waits = [
            (Doing::Lock, "host.lock_wait", "removal", "waits for another thread"),
            (
                Doing::InterpreterLock,
                "host.gil_wait",
                "floor",
                "waits for the interpreter's lock, which another thread holds,",
            ),
            (Doing::File, "host.outside_wait", "removal", OUTSIDE),
            (Doing::Connection, "host.outside_wait", "removal", OUTSIDE),
            (Doing::Process, "host.outside_wait", "removal", OUTSIDE),
            (Doing::System, "host.outside_wait", "removal", OUTSIDE),
            // Where the system does not say what a thread does, its line is known all the same.
            (Doing::Unknown, "host.python", "removal", "runs Python, or waits,"),
        ];
        for (doing, rule, method, how) in waits {
            let mut trace = steps(8, 'F');
            trace.stack_samples.iter_mut().for_each(|sample| sample.doing = doing);
            let says = format!(
                "36000 of 60000 {method} high: The loop {how} for about 36.0 ms (60.0 %) of 60.0 ms, in `f.py(7): f` (36 samples, ± 0 ns)."
            );
            check(&trace, rule, &[&says]);
            for other in ["host.lock_wait", "host.gil_wait", "host.outside_wait", "host.sleep", "host.python"] {
                if other != rule {
                    check(&trace, other, &[]);
                }
            }
            let mut few = steps(19, 'F');
            few.stack_samples.iter_mut().for_each(|sample| sample.doing = doing);
            check(&few, rule, &[]);
        }
    }

    #[test]
    fn of_fewer_than_three_steps_nothing_is_forecast() {
        let mut trace = steps(8, 'f');
        trace.steps.truncate(2);
        check(&trace, "host.python", &[]);
        let judged = rules_judged(&AnalysisContext::new(&trace, &Selection::default()));
        let lacks = judged.not_judged.iter().find(|(rule, _)| *rule == "host.python").map(|(_, lacks)| lacks.as_str());
        assert_eq!(lacks, Some("fewer than three complete steps: record more"));
    }

    #[test]
    fn what_a_thread_waits_for_is_told_apart() {
        let trace = steps(8, 'F');
        check(&trace, "host.python", &[]);
        check(
            &trace,
            "host.sleep",
            &[
                "36000 of 60000 removal high: The loop sleeps for about 36.0 ms (60.0 %) of 60.0 ms, in `f.py(7): f` (36 samples, ± 0 ns).",
            ],
        );
    }
}

//! A device waits for the host to launch, and every step launches the same: a graph could launch it at once.

use super::facts::{Facts, LAUNCH_WAIT_THRESHOLD, gpu, share_of_device};
use super::loops::Loop;
use super::pauses::Pauses;
use super::words::counted;
use super::{Advice, GainEstimate, Judged, Lacks, Rule};
use crate::idle::IdleCause;
use crate::temporal_breakdown::TemporalBreakdown;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use stepscope_base::Span;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_trace::{CopyDirection, DeviceEvent, DeviceEventClass, SliceId, SliceKind, SliceRole, Trace};

/// Fewer kernels are launched as fast by themselves.
const LEAST_KERNELS: usize = 10;
/// The share of the steps, in parts of a hundred, that has to launch the same, without a wait.
const MOST_STEPS: usize = 90;
/// The first step, in which much is set up, need not.
const WARM_UP: usize = 1;

pub(super) const RULE: Rule = Rule {
    code: "launch.graph_possible",
    fault: "The host launches the same kernels one by one in every step",
    disproof: "Steps that replay a captured graph take as long.",
    evidence: "idle_causes",
    to_do: "Let a graph launch them: `torch.compile(mode=\"reduce-overhead\")`, `torch.cuda.make_graphed_callables(…)` around \
            the model, or `torch.cuda.graph(…)` around the whole step with an optimizer that is `capturable=True`. Copy each \
            batch into the tensors that were captured, and keep what changes from step to step, such as a learning rate, in \
            tensors.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    facts.steps_are_alike()?;
    let pauses: Vec<_> = facts.pauses()?.collect();
    let loops = facts.loops()?;
    if facts.trace.device_events.iter().all(|event| event.launch.is_none()) {
        return Err(Lacks("no launches of kernels: record activity of the CPU as well"));
    }
    let of_device = |(device, pauses): (&TemporalBreakdown, &Pauses)| {
        let of = loops.iter().find(|of| of.rank == device.rank)?;
        // Of kernels that are shorter than their launch another rule says it.
        let is_short = facts.short_events_ratio(device.rank).is_some();
        of_device(facts, of, device, pauses).filter(|_| !is_short)
    };
    Ok(pauses.into_iter().filter_map(of_device).collect())
}

fn of_device(facts: &Facts, of: &Loop, device: &TemporalBreakdown, pauses: &Pauses) -> Option<Advice> {
    let pause = pauses.of(IdleCause::LaunchBound);
    let row = share_of_device(device, pause.total_ns, LAUNCH_WAIT_THRESHOLD).filter(|row| pause.is_habit(row))?;
    let same = launches_alike(facts.trace, of)?;
    Some(Advice {
        says: format!(
            "In {} of {} the host launches the same {}, one by one, and waits for none between: {} waits {} ({}) of {} for \
             these launches.",
            same.steps,
            counted(same.of_steps as i64, "step"),
            counted(same.kernels as i64, "kernel"),
            gpu(device.device),
            format_ns(pause.total_ns),
            format_ratio(row.measured_ratio?),
            format_ns(device.span_ns)
        ),
        count: Some(same.steps as i64),
        gain: Some((pause.total_ns, GainEstimate::Bound)),
        place: pause.place(facts.trace),
        time: pause.spans.clone(),
        ..row
    })
}

/// What nearly all steps launch alike.
pub(super) struct Alike {
    /// Number of steps that do, of those that were looked at.
    pub(super) steps: usize,
    of_steps: usize,
    /// Kernels, copies and fills that such a step launches.
    pub(super) kernels: usize,
}

/// The launches of a step.
#[derive(Default)]
struct Launches {
    /// When they begin, each with what it launches.
    launched: Vec<(i64, u64)>,
    /// When something is launched that no graph can hold.
    others: Vec<i64>,
}

/// What the steps of a loop launch, where nearly all launch the same in the same order, with no wait of the host, no copy
/// from memory that is not pinned and no call that takes memory from the driver between the first and the last; `None` where
/// they do not, or where a graph does so already.
pub(super) fn launches_alike(trace: &Trace, of: &Loop) -> Option<Alike> {
    let mut steps: Vec<Launches> = of.steps.iter().map(|_| Launches::default()).collect();
    for event in trace.device_events.iter().filter(|event| trace.devices[event.device.index()].rank == of.rank) {
        let start_ns = event.launch.map(|launch| trace.slices.start_ns[launch.index()]);
        let Some((start_ns, step)) = start_ns.and_then(|start_ns| Some((start_ns, of.step_at(start_ns)?))) else {
            continue;
        };
        match event.class {
            _ if event.graph.is_some() => return None,
            DeviceEventClass::Memcpy(CopyDirection::HostToDevice) if event.is_pageable != Some(false) => {
                steps[step].others.push(start_ns);
            }
            // What is read from the device, or written to it from a fixed place, is done at the edges of a step.
            DeviceEventClass::Memcpy(CopyDirection::HostToDevice | CopyDirection::DeviceToHost) => {}
            _ => steps[step].launched.push((start_ns, kind_of(trace, &event))),
        }
    }
    // While a graph is captured, no memory is taken from the driver or given back to it.
    let is_other = |id: &SliceId| {
        trace.slices.kind(*id) == SliceKind::HostSync || trace.role(*id) == Some(SliceRole::DeviceAllocation)
    };
    for start_ns in of.slices(trace).filter(is_other).map(|id| trace.slices.start_ns[id.index()]) {
        if let Some(step) = of.step_at(start_ns) {
            steps[step].others.push(start_ns);
        }
    }
    let judged = &mut steps[WARM_UP..];
    let mut counts: FxHashMap<(u64, usize), usize> = FxHashMap::default();
    for step in judged.iter_mut() {
        step.launched.sort_unstable();
        let (Some((first_ns, _)), Some((last_ns, _))) = (step.launched.first(), step.launched.last()) else { continue };
        let span = Span::new(*first_ns, *last_ns);
        if !step.others.iter().any(|at_ns| span.contains(*at_ns)) {
            let mut hasher = FxHasher::default();
            step.launched.iter().for_each(|(_, kind)| kind.hash(&mut hasher));
            *counts.entry((hasher.finish(), step.launched.len())).or_default() += 1;
        }
    }
    let ((_, kernels), alike) = counts.into_iter().max_by_key(|(sequence, count)| (*count, *sequence))?;
    let is_it = alike * 100 >= judged.len() * MOST_STEPS && kernels >= LEAST_KERNELS;
    is_it.then_some(Alike { steps: alike, of_steps: judged.len(), kernels })
}

/// What a launch has to have in common with that of another step: the kernel, its size, and the shapes of the inputs.
fn kind_of(trace: &Trace, event: &DeviceEvent) -> u64 {
    let mut hasher = FxHasher::default();
    let dims = event.op.and_then(|op| trace.ops.get(op)).map(|info| trace.ops.inputs(info.inputs).dims);
    (trace.slices.name[event.slice.index()], event.grid, event.block, event.bytes, dims).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use crate::Selection;
    use crate::advice::advice;
    use crate::advice::loops::tests::joined;
    use crate::advice::tests::{check, drawn_us, with_events};
    use stepscope_trace::{SliceKind, SliceRole, Trace};

    /// Steps of eleven periods of 150 us: an operator for 50, its launch for 50, its kernel for 100. The letters are the
    /// kernels of each step; `s` is a wait of the host, `H` a copy.
    fn launched(steps: &[&str]) -> Trace {
        let row = |of: &str, cells: fn(char) -> String| of.chars().map(cells).collect::<String>();
        let rows: Vec<[(&str, String); 4]> = steps
            .iter()
            .map(|of| {
                [
                    ("cpu 1", row(of, |_| "aa.".into())),
                    ("sync 1", row(of, |kernel| if kernel == 's' { ".s.".into() } else { "...".into() })),
                    ("launch 1", row(of, |kernel| if kernel == 's' { "...".into() } else { format!(".{kernel}.") })),
                    ("stream 7", row(of, |kernel| if kernel == 's' { "...".into() } else { format!("..{kernel}") })),
                ]
            })
            .collect();
        let rows: Vec<Vec<(&str, &str)>> =
            rows.iter().map(|step| step.iter().map(|(head, cells)| (*head, cells.as_str())).collect()).collect();
        drawn_us(&joined(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>()), 50)
    }

    const SAME: &str = "CEFGCEFGCEFG";

    #[test]
    fn the_same_launches_in_every_step_are_said_and_the_time_is_theirs() {
        // Of 72 periods all but the first wait for 100 us.
        let trace = launched(&[SAME; 6]);
        check(
            &trace,
            "launch.graph_possible",
            &[
                "7100 of 10700 bound high: In 5 of 5 steps the host launches the same 12 kernels, one by one, and waits for none between: GPU 0 waits 7.10 ms (66.4 %) of 10.7 ms for these launches.",
            ],
        );
        let rows = advice(&trace, &Selection::default());
        assert!(rows.iter().all(|row| row.rule.as_str() != "host.launch_bound"), "{rows:?}");
    }

    #[test]
    fn what_changes_or_waits_within_is_no_graph() {
        let changes = ["CEFGCEFGCEFG", "CEFGCEFGCEGF", "CEFGCEFGCFEG", "CEFGCEFGCFGE", "CEFGCEFGCGFE", "CEFGCEFGCGEF"];
        let of_others: &[&[&str]] = &[&changes, &["CEFGCEsFGCEFG"; 6], &["CEFGCEHFGCEFG"; 6], &["CEFG"; 12]];
        for steps in of_others {
            check(&launched(steps), "launch.graph_possible", &[]);
        }
        let rows = advice(&launched(&changes), &Selection::default());
        assert!(rows.iter().any(|row| row.rule.as_str() == "host.launch_bound"), "{rows:?}");
        let mut allocating = launched(&["CEsFGCEFGCEFG"; 6]);
        for kind in allocating.slices.kind.iter_mut().filter(|kind| **kind == SliceKind::HostSync) {
            *kind = SliceKind::Runtime;
        }
        assert_eq!(advice(&allocating, &Selection::default())[0].rule.as_str(), "launch.graph_possible");
        let name = allocating.strings.intern("s");
        allocating.roles.push((name, SliceRole::DeviceAllocation));
        check(&allocating, "launch.graph_possible", &[]);
        // At the edges a wait or a copy is in the way of nothing.
        let said = |steps: &[&str]| {
            let rows = advice(&launched(steps), &Selection::default());
            rows.iter().filter(|row| row.rule.as_str() == "launch.graph_possible").count()
        };
        assert_eq!(said(&["HCEFGCEFGCEFGs"; 6]), 1);
    }

    #[test]
    fn a_graph_and_launches_of_other_sizes_are_not_said() {
        let graph = with_events(launched(&[SAME; 6]), |_, event| event.graph = Some(1));
        check(&graph, "launch.graph_possible", &[]);
        let mut trace = launched(&[SAME; 6]);
        let mut number = 0;
        let changed = trace.device_events.iter().map(|mut event| {
            number += 1;
            event.grid = Some([number, 1, 1]);
            event
        });
        trace.device_events = changed.collect();
        check(&trace, "launch.graph_possible", &[]);
    }

    #[test]
    fn a_device_that_the_host_is_ahead_of_needs_no_graph() {
        let busy = "rank 0 step 000000000011111111112222222222333333333344444444445555555555";
        let launch = "rank 0 launch 1 C|E|F|G|C|E|F|G|C|E|".to_string() + &"C|E|F|G|C|E|F|G|C|E|".repeat(5);
        let stream = format!("rank 0 stream 7 .{}", "C|E|F|G|C|E|F|G|C|E|".repeat(6));
        check(&drawn_us(&format!("{busy}\n{launch}\n{stream}"), 50), "launch.graph_possible", &[]);
    }
}

//! An operator computes on the host what the device could: its inputs come from the device and its outputs go back.
//!
//! ```text
//! host     ··copy·operator·copy··    nothing is launched in the operator
//! device   ····D···········H····     from the start of one copy to the end of the other the device computes nothing
//! ```

use super::facts::Facts;
use super::loops::Loop;
use super::step_operators::StepOp;
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Place, Rule};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span, StringId};
use stepscope_trace::{CopyDirection, DeviceEventClass, SliceId, Trace};

/// Shorter operators compute nothing.
const LEAST_NS: i64 = 50_000;
/// Operators between a copy and the one that computes, such as views.
const NEAR: usize = 8;

pub(super) const RULE: Rule = Rule {
    code: "host.cpu_fallback",
    fault: "An operator computes on the host between two copies",
    disproof: "Steps are as long with the operator left out.",
    evidence: "operators",
    to_do: "Keep the tensors on the device: make them there (`device=…`), take a type or an operator that the device \
            has a kernel for, or do this once before the loop. `PYTORCH_ENABLE_MPS_FALLBACK` and `.cpu()` in a module \
            hide such copies.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let loops = facts.step_operators()?;
    facts.devices()?;
    Ok(loops.filter_map(|(of, operators)| of_loop(facts, of, operators)).collect())
}

/// What an operator has the device do.
#[derive(Clone, Copy, Default)]
struct Launched {
    is_any: bool,
    /// The last copy to the host.
    to_host: Option<Span>,
    /// The first copy to the device.
    to_device: Option<Span>,
}

fn of_loop(facts: &Facts, of: &Loop, operators: &[StepOp]) -> Option<Advice> {
    let trace = facts.trace;
    let launched = launched(trace, operators);
    let mut found: Vec<&StepOp> = Vec::new();
    let mut waits = Vec::new();
    for (at, op) in operators.iter().enumerate() {
        if op.span.duration_ns() < LEAST_NS || launched[at].is_any {
            continue;
        }
        let near = |other: &usize| operators[*other].step == op.step;
        let before = (at.saturating_sub(NEAR)..at).rev().filter(near);
        let before = before.take_while(|other| !launched[*other].is_any || launched[*other].to_host.is_some());
        let from = before.filter_map(|other| launched[other].to_host).next();
        let after = (at + 1..(at + 1 + NEAR).min(operators.len())).filter(near);
        let to = after.filter_map(|other| launched[other].to_device).next();
        if let (Some(from), Some(to)) = (from, to)
            && from.end_ns <= to.start_ns
        {
            found.push(op);
            waits.push(Span::new(from.start_ns, to.end_ns));
        }
    }
    if found.len() < of.steps.len() {
        return None;
    }
    let computing = facts.computing(of.rank);
    let idle = waits.into_iter().collect::<IntervalSet>().intersect(&of.windows).subtract(&computing);
    let row = of.row(idle.total_ns())?;
    let mut by_name: FxHashMap<StringId, i64> = FxHashMap::default();
    found.iter().for_each(|op| *by_name.entry(op.name).or_default() += op.span.duration_ns());
    let (name, _) = by_name.into_iter().max_by_key(|(name, ns)| (*ns, Reverse(*name)))?;
    let longest = found.iter().max_by_key(|op| (op.name == name, op.span.duration_ns(), Reverse(op.slice)))?;
    Some(Advice {
        says: format!(
            "{} a step compute on the host what comes from the device and goes back to it, most of the time {}: the device \
             computes nothing for {} ({}) of {} meanwhile.",
            counted(of.per_step(found.len() as i64), "operator"),
            quoted(trace.strings.get(name)),
            format_ns(idle.total_ns()),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(found.len() as i64),
        gain: Some((idle.total_ns(), GainEstimate::Bound)),
        place: Some(Place::of(trace, longest.slice)),
        time: idle,
        ..row
    })
}

/// What each of the operators has the device do, with those inside it.
fn launched(trace: &Trace, operators: &[StepOp]) -> Vec<Launched> {
    let slots: FxHashMap<SliceId, usize> = operators.iter().enumerate().map(|(at, op)| (op.slice, at)).collect();
    let mut launched = vec![Launched::default(); operators.len()];
    for event in trace.device_events.iter() {
        let around = event
            .launch
            .and_then(|launch| trace.slices.with_ancestors(launch).find_map(|slice| slots.get(&slice).copied()));
        let Some(at) = around else { continue };
        let (span, of) = (trace.slices.span(event.slice), &mut launched[at]);
        of.is_any = true;
        match event.class {
            DeviceEventClass::Memcpy(CopyDirection::DeviceToHost) => {
                of.to_host = Some(span);
            }
            DeviceEventClass::Memcpy(CopyDirection::HostToDevice) => {
                of.to_device = of.to_device.or(Some(span));
            }
            _ => {}
        }
    }
    launched
}

#[cfg(test)]
mod tests {
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::{check, drawn_us};

    /// Five steps of 1.4 ms.
    const STREAM: &str = "CCCDD.......HC";

    #[test]
    fn an_operator_between_a_copy_to_the_host_and_one_back_is_said() {
        let rows = [("cpu 1", "cddddeeeeeehh."), ("launch 1", "CD.........H.C"), ("stream 7", STREAM)];
        check(
            &drawn_us(&repeated(5, &rows), 100),
            "host.cpu_fallback",
            &[
                "5000 of 7000 bound high: 1 operator a step compute on the host what comes from the device and goes back to it, most of the time `e`: the device computes nothing for 5.00 ms (71.4 %) of 7.00 ms meanwhile.",
            ],
        );
    }

    #[test]
    fn an_operator_that_launches_or_gives_nothing_back_is_no_fallback() {
        let rows = [("cpu 1", "cddddeeeeeehh."), ("launch 1", "CD...........C"), ("stream 7", STREAM)];
        check(&drawn_us(&repeated(5, &rows), 100), "host.cpu_fallback", &[]);
        let rows = [("cpu 1", "cddddeeeeeehh."), ("launch 1", "CD...E.....H.C"), ("stream 7", "CCCDD.E.....HC")];
        check(&drawn_us(&repeated(5, &rows), 100), "host.cpu_fallback", &[]);
    }
}

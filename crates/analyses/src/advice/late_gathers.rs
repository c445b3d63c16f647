//! Sharded parameters of a layer are gathered when the layer before has been computed, and not beside it.
//!
//! ```text
//! computing   ██████······██████······██████     from the end of the gather before
//! gathers     ······▒▒▒▒▒▒······▒▒▒▒▒▒·····     as much of it could hide as was computed meanwhile
//! ```

use super::facts::{Facts, gpu};
use super::loops::Loop;
use super::words::counted;
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use crate::device_busy::DeviceBusy;
use crate::temporal_breakdown::TemporalBreakdown;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use stepscope_align::Calls;
use stepscope_base::units::{format_count, format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{CollectiveKind, DeviceEvent, DeviceEventClass, DeviceId, SliceId, SliceRole};

/// Gathers a step that come too late; with fewer it is not how layers are gathered.
const LEAST_LATE: usize = 2;
/// The share of the steps, in parts of a hundred, that has such gathers.
const MOST_STEPS: usize = 90;

pub(super) const RULE: Rule = Rule {
    code: "comm.late_gathers",
    fault: "Sharded parameters are gathered only when they are needed",
    disproof: "With prefetching the gathers begin as late, since the host asks for them as late.",
    evidence: "overlap",
    to_do: "Gather the parameters of the next layer beside this one: FSDP with `forward_prefetch=True`, \
            `BackwardPrefetch.BACKWARD_PRE` and `limit_all_gathers=False`; `fully_shard` with \
            `set_modules_to_forward_prefetch` and `set_modules_to_backward_prefetch`; ZeRO 3 with a larger \
            `stage3_prefetch_bucket_size`. Larger units (whole blocks in the wrapping policy) make fewer and longer gathers. Where \
            memory allows, `reshard_after_forward=False` gathers once a step.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let trace = facts.trace;
    facts.devices()?;
    let loops = facts.loops()?;
    if !trace.roles.iter().any(|(_, role)| *role == SliceRole::ParameterGather) {
        let calls = facts.context.get::<Calls>();
        let gathers = calls.calls.iter().any(|call| call.said.kind == Some(CollectiveKind::AllGather));
        return match gathers {
            true => Err(Lacks("no labels of FSDP or ZeRO 3 that say which all-gathers are of parameters")),
            false => Ok(Vec::new()),
        };
    }
    let of_loop = |of| Loop::devices(of, trace).filter_map(move |device| of_device(facts, of, device));
    Ok(loops.iter().flat_map(of_loop).collect())
}

/// What this rule says could be hidden on a device: it is no other rule's. 0 where it says nothing.
pub(super) fn hideable_ns(facts: &Facts, device: &TemporalBreakdown) -> i64 {
    let rows = facts.late_gathers();
    let of = rows.iter().find(|row| (row.rank, row.device) == (Some(device.rank), Some(device.device)));
    of.and_then(Advice::gain_ns).unwrap_or(0)
}

/// The rows of this rule.
pub(super) fn rows(facts: &Facts) -> Vec<Advice> {
    judge(facts).unwrap_or_default()
}

/// The gathers of parameters that a device carries out, by start, each with the step that asks for it.
fn gathers(facts: &Facts, of: &Loop, device: DeviceId) -> Vec<(usize, SliceId, Span)> {
    let (trace, calls) = (facts.trace, facts.context.get::<Calls>());
    let is_gather = |event: &DeviceEvent| {
        let said = calls.of_kernel(trace, event.slice).map(|said| said.kind);
        let asked = || event.op.and_then(|op| calls.around(trace, op)).map(|at| calls.calls[at].said.kind);
        matches!(said.or_else(asked).flatten(), None | Some(CollectiveKind::AllGather))
    };
    let mut found = Vec::new();
    for event in trace.device_events.iter() {
        if event.device != device || event.class != DeviceEventClass::Communication {
            continue;
        }
        let Some(from) = event.launch.or(event.op) else { continue };
        let gathers = |slice: SliceId| trace.role(slice) == Some(SliceRole::ParameterGather);
        let step = of.step_at(trace.slices.start_ns[event.launch.unwrap_or(from).index()]);
        if let Some(step) = step
            && trace.slices.with_ancestors(from).any(gathers)
            && is_gather(&event)
        {
            found.push((step, event.slice, trace.slices.span(event.slice)));
        }
    }
    found.sort_by_key(|(_, slice, span)| (span.start_ns, *slice));
    found
}

fn of_device(facts: &Facts, of: &Loop, device: DeviceId) -> Option<Advice> {
    let trace = facts.trace;
    let busy = &facts.context.get::<Vec<DeviceBusy>>()[device.index()];
    let gathers = gathers(facts, of, device);
    let free = busy.compute.subtract(&busy.comm);
    let (mut hidden, mut late, mut longest) = (Vec::new(), FxHashMap::<usize, usize>::default(), None);
    // The first gather of a step waits for the optimizer, which changes what is gathered.
    for pair in gathers.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let [(_, _, before), (step, slice, span)] = *pair else { continue };
        let exposed = IntervalSet::of(span).subtract(&busy.compute);
        // It was asked for in time when something is computed as it begins.
        let begins_late = exposed.spans().first().is_some_and(|first| first.start_ns == span.start_ns);
        if !begins_late || before.end_ns >= span.start_ns {
            continue;
        }
        let free_ns = free.clip(Span::new(before.end_ns, span.start_ns)).total_ns();
        let could_hide = first_of(&exposed, free_ns);
        if could_hide.is_empty() {
            continue;
        }
        *late.entry(step).or_default() += 1;
        longest = longest.max(Some((could_hide.iter().map(|span| span.duration_ns()).sum::<i64>(), Reverse(slice))));
        hidden.extend(could_hide);
    }
    let steps = late.values().filter(|count| **count >= LEAST_LATE).count();
    if steps * 100 < of.steps.len() * MOST_STEPS {
        return None;
    }
    let count: usize = late.values().sum();
    let time = IntervalSet::from_unsorted(hidden).intersect(&of.windows);
    let row = of.row(time.total_ns())?;
    let (_, Reverse(longest)) = longest?;
    let ordinal = trace.devices[device.index()].ordinal;
    let all_ns: i64 = gathers.iter().map(|(_, _, span)| span.duration_ns()).sum();
    Some(Advice {
        device: Some(ordinal),
        says: format!(
            "On {} {} of {} of sharded parameters begin when the layer before has been computed: of {} that they all take, \
             {} ({} of {}) could run beside it.",
            gpu(ordinal),
            format_count(count as i64),
            counted(gathers.len() as i64, "gather"),
            format_ns(all_ns),
            format_ns(time.total_ns()),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(count as i64),
        gain: Some((time.total_ns(), GainEstimate::Overlap)),
        place: Some(Place::of(trace, longest)),
        time,
        ..row
    })
}

/// The first parts of a set, up to so much in all.
fn first_of(set: &IntervalSet, mut left_ns: i64) -> Vec<Span> {
    let mut first = Vec::new();
    for span in set.spans() {
        let taken = Span::new(span.start_ns, span.end_ns.min(span.start_ns.saturating_add(left_ns)));
        left_ns -= taken.duration_ns();
        if !taken.is_empty() {
            first.push(taken);
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use crate::Selection;
    use crate::advice::advice;
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::{check, drawn_us};
    use stepscope_trace::{SliceRole, Trace};

    /// Five steps of 2 ms; in `g` parameters are gathered.
    fn gathering(rows: &[(&str, &str)]) -> Trace {
        let mut trace = drawn_us(&repeated(5, rows), 100);
        let name = trace.strings.intern("g");
        trace.roles.push((name, SliceRole::ParameterGather));
        trace
    }

    /// The host asks for all at once: one call a column.
    fn rows(compute: &'static str, communication: &'static str) -> [(&'static str, &'static str); 4] {
        [
            ("label 1", "g.g.g.g............."),
            ("launch 1", "NCNCNCNC............"),
            ("stream 7", compute),
            ("stream 9", communication),
        ]
    }

    #[test]
    fn gathers_behind_the_layer_before_are_said_up_to_what_it_computes() {
        let late = rows("...CC..CCC..CC....C.", ".NN..NN...NN..NNN...");
        let trace = gathering(&late);
        check(
            &trace,
            "comm.late_gathers",
            &[
                "3000 of 10000 overlap high: On GPU 0 15 of 20 gathers of sharded parameters begin when the layer before has been computed: of 4.50 ms that they all take, 3.00 ms (30.0 % of 10.0 ms) could run beside it.",
            ],
        );
        // Of communication in general 4 ms could be hidden, of which these are 3.
        let rows = advice(&trace, &Selection::default());
        let overlap = rows.iter().find(|row| row.rule.as_str() == "comm.overlap").expect("a row");
        assert_eq!((overlap.gain_ns(), overlap.own_gain_ns), (Some(4_000_000), Some(1_000_000)));
    }

    #[test]
    fn gathers_beside_the_layer_before_are_healthy() {
        check(&gathering(&rows("...CCCCCCCCCCCCCC...", ".NN.NN....NN..NNN...")), "comm.late_gathers", &[]);
        // They begin in time, and are longer than what is computed.
        check(&gathering(&rows("...CC.....C....C...C", ".NN|NNNNNN|NNNN|NNN.")), "comm.late_gathers", &[]);
        // One a step is no habit.
        check(&gathering(&rows("...CC..CCCCCCCCCCCC.", ".NN..NN.N..N........")), "comm.late_gathers", &[]);
    }

    #[test]
    fn other_collectives_are_not_judged() {
        let late = rows("...CC..CCC..CC....C.", ".NN..NN...NN..NNN...");
        check(&drawn_us(&repeated(5, &late), 100), "comm.late_gathers", &[]);
    }
}

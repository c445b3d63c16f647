//! A device waits for launches that take longer than what they launch.

use super::facts::{Facts, LAUNCH_WAIT_THRESHOLD, SHORT_EVENTS_THRESHOLD, gpu, share_of_device};
use super::graph_possible::launches_alike;
use super::pauses::Pauses;
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Rule};
use crate::idle::IdleCause;
use crate::temporal_breakdown::TemporalBreakdown;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stepscope_base::units::{format_count, format_ns, format_ratio};

pub(super) const RULE: Rule = Rule {
    code: "launch.short_kernels",
    fault: "Kernels are shorter than their launch",
    disproof: "Steps of twice the batch take twice as long.",
    evidence: "launch_statistics",
    to_do: "Launch many kernels at once or make them fewer and longer: `torch.compile(mode=\"reduce-overhead\")`, CUDA \
            graphs (`torch.cuda.make_graphed_callables`), optimizers with `fused=True`, larger batches.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    Ok(facts.pauses()?.filter_map(|(device, pauses)| of_device(facts, device, pauses)).collect())
}

fn of_device(facts: &Facts, device: &TemporalBreakdown, pauses: &Pauses) -> Option<Advice> {
    let pause = pauses.of(IdleCause::LaunchBound);
    let row = share_of_device(device, pause.total_ns, LAUNCH_WAIT_THRESHOLD).filter(|row| pause.is_habit(row))?;
    let (short_ratio, launches) = (facts.short_events_ratio(device.rank)?, facts.launches(device.rank)?);
    let (gpu, window) = (gpu(device.device), format_ns(device.span_ns));
    let (short, all) = (format_count(launches.short_events), format_count(launches.device_events));
    let (idle, ratio) = (format_ns(pause.total_ns), format_ratio(row.measured_ratio?));
    let most = most(facts, device.rank)
        .map_or_else(String::new, |(name, count)| format!(" {} of them are of {}.", format_count(count), quoted(name)));
    let of = facts.loops().ok().and_then(|loops| loops.iter().find(|of| of.rank == device.rank));
    let same = of.and_then(|of| launches_alike(facts.trace, of)).map_or_else(String::new, |same| {
        format!(" Steps launch the same {}: a graph could do so at once.", counted(same.kernels as i64, "kernel"))
    });
    Some(Advice {
        says: format!(
            "{short} of {all} kernels, copies and fills take less time than their launch, and {gpu} waits {idle} \
             ({ratio}) of {window} for the host to launch.{most}{same}"
        ),
        measured_ratio: Some(short_ratio),
        threshold_ratio: Some(SHORT_EVENTS_THRESHOLD),
        count: Some(launches.short_events),
        gain: Some((pause.total_ns, GainEstimate::Bound)),
        place: pause.place(facts.trace),
        time: pause.spans.clone(),
        ..row
    })
}

/// The operator that most of what is shorter than its launch is of.
fn most<'a>(facts: &Facts<'a>, rank: u32) -> Option<(&'a str, i64)> {
    let (trace, slices) = (facts.trace, &facts.trace.slices);
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for event in facts.selection.device_events(trace).filter(|event| trace.devices[event.device.index()].rank == rank) {
        let Some((launch, op)) = event.launch.zip(event.op) else { continue };
        if slices.dur_ns[event.slice.index()] < slices.dur_ns[launch.index()] {
            *counts.entry(trace.slice_name(op)).or_default() += 1;
        }
    }
    counts.into_iter().max_by_key(|(name, count)| (*count, Reverse(*name)))
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_us};

    /// Twenty launches of three columns each, and their kernels of `kernel` columns.
    fn launched(kernel: usize) -> String {
        let (kernel, idle) = ("C".repeat(kernel), ".".repeat(kernel));
        let launch = format!("CCC|{idle}").repeat(20);
        format!("rank 0 launch 1 {launch}\nrank 0 stream 7 {}", format!("...{kernel}").repeat(20))
    }

    #[test]
    fn kernels_shorter_than_their_launch_are_said_where_the_device_waits_for_them() {
        check(
            &drawn_us(&launched(2), 50),
            "launch.short_kernels",
            &[
                "2850 of 4850 bound high: 20 of 20 kernels, copies and fills take less time than their launch, and GPU 0 waits 2.85 ms (58.8 %) of 4.85 ms for the host to launch.",
            ],
        );
        check(&drawn_us(&launched(2), 50), "host.launch_bound", &[]);
        check(&drawn_us(&launched(3), 50), "launch.short_kernels", &[]);
    }
}

//! Copies between host and device are as slow as their link, which has fewer lanes, or a lower rate, than it could have.

use super::cases::Cases;
use super::facts::{Facts, gpu};
use super::loops::Loop;
use super::words::counted;
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use crate::pcie_link::PcieLink;
use stepscope_base::units::{format_bytes_per_s, format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{CopyDirection, DeviceEventClass, DeviceId};

/// Fewer samples may all be of a link that has not woken up. There are five a second.
const LEAST_SAMPLES: usize = 3;

pub(super) const RULE: Rule = Rule {
    code: "device.slow_link",
    fault: "The link to the device is slower than it could be",
    disproof: "While copies run, `nvidia-smi -q` shows the highest generation and width.",
    evidence: "copies",
    to_do: "Take out the device and its riser, and seat them anew. Look in the firmware of the machine at what is set for \
            the slot, and whether it shares its lanes with another one. `nvidia-smi -q` shows the link, and `lspci -vv` with \
            `LnkSta` beside `LnkCap`.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    facts.devices()?;
    let of_loops = facts.loops()?.iter().flat_map(|of| of.devices(facts.trace).map(move |device| (of, device)));
    let linked: Vec<_> = of_loops.filter_map(|(of, device)| Some((of, device, both(facts, of, device)?))).collect();
    if linked.is_empty() {
        return Err(Lacks("how fast the links of devices are: `stepscope record` samples it through NVML"));
    }
    Ok(linked.iter().filter_map(|(of, device, links)| of_device(facts, of, *device, links)).collect())
}

/// The fastest that was sampled in steps, and what it could be.
fn both(facts: &Facts, of: &Loop, device: DeviceId) -> Option<[PcieLink; 2]> {
    let in_steps = PcieLink::samples(facts.trace, device).filter(|(time_ns, _)| of.has(*time_ns));
    let links: Vec<PcieLink> = in_steps.map(|(_, link)| link).collect();
    let fastest = links.iter().copied().max_by_key(|link| link.bytes_per_s)?;
    let highest = PcieLink::highest(facts.trace, device)?;
    (links.len() >= LEAST_SAMPLES).then_some([fastest, highest])
}

fn words(link: PcieLink) -> String {
    format!("PCIe {} with {}", link.generation, counted(link.lanes, "lane"))
}

fn of_device(facts: &Facts, of: &Loop, device: DeviceId, [link, highest]: &[PcieLink; 2]) -> Option<Advice> {
    let missing = highest.bytes_per_s.checked_sub(link.bytes_per_s).filter(|missing| *missing > 0)?;
    let trace = facts.trace;
    let (mut spans, mut ends, mut longest) = (Vec::new(), Vec::new(), None);
    let mut sum = (0_i128, 0_i128);
    for event in trace.device_events.iter().filter(|event| event.device == device) {
        let is_over_link =
            matches!(event.class, DeviceEventClass::Memcpy(CopyDirection::HostToDevice | CopyDirection::DeviceToHost));
        let (span, Some(bytes)) = (trace.slices.span(event.slice), event.bytes) else { continue };
        if !is_over_link || !of.has(span.start_ns) {
            continue;
        }
        // One that is much slower is so for another reason, and one that is faster goes another way.
        let carried = i128::from(link.bytes_per_s) * i128::from(span.duration_ns());
        let (moved, dur_ns) = (i128::from(bytes) * 1_000_000_000, i128::from(span.duration_ns()));
        if moved * 2 < carried || moved > carried {
            continue;
        }
        let saved_ns = (dur_ns * i128::from(missing) / i128::from(highest.bytes_per_s)) as i64;
        spans.push(span);
        ends.push(Span::new(span.end_ns - saved_ns, span.end_ns));
        sum = (sum.0 + moved, sum.1 + dur_ns);
        longest = longest.max(Some((span.duration_ns(), std::cmp::Reverse(event.slice))));
    }
    let (_, std::cmp::Reverse(longest)) = longest?;
    let computing = facts.computing(of.rank);
    let count = spans.len() as i64;
    let exposed = |spans: Vec<Span>| IntervalSet::from_unsorted(spans).subtract(&computing).intersect(&of.windows);
    let cases = Cases::of(&spans);
    let (copies_ns, time) = (exposed(spans).total_ns(), exposed(ends));
    let row = of.row(copies_ns).filter(|row| cases.are_habit(row))?;
    let ordinal = trace.devices[device.index()].ordinal;
    Some(Advice {
        device: Some(ordinal),
        says: format!(
            "{} has a link of {}, and could have {}. {} from or to the host go at {}, of {} that the link carries, and \
             take {} ({}) of {} in which nothing is computed.",
            gpu(ordinal),
            words(*link),
            words(*highest),
            counted(count, "copy"),
            format_bytes_per_s((sum.0 / sum.1.max(1)) as i64),
            format_bytes_per_s(link.bytes_per_s),
            format_ns(copies_ns),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns()),
        ),
        count: Some(count),
        gain: Some((time.total_ns(), GainEstimate::Removal)).filter(|(gain_ns, _)| *gain_ns > 0),
        place: Some(Place::of(trace, longest)),
        time,
        ..row
    })
}

#[cfg(test)]
mod tests {
    use super::super::loops::tests::repeated;
    use super::super::quantities::tests::sample;
    use super::super::tests::{check, drawn_us, with_events};
    use stepscope_trace::Trace;

    /// Five steps of 1 ms, each with a copy of 400 µs and `bytes`; a tenth of the time the link is as given, else asleep.
    fn steps(bytes: i64, [generation, lanes]: [i64; 2], cells: &'static str) -> Trace {
        let drawing = repeated(5, &[("stream 7", cells), ("stream 8", "....CCCC..")]);
        let mut trace = with_events(drawn_us(&drawing, 100), |name, event| {
            (event.bytes, event.is_pageable) = (Some(bytes).filter(|_| name == "H"), Some(false));
        });
        let mut add = |what: &str, values: &[i64]| sample(&mut trace, &format!("GPU 0 {what}"), 1_000_000, values);
        add("PCIe generation highest", &[4]);
        add("PCIe width highest (lanes)", &[16]);
        add("PCIe generation", &[1, 1, generation, 1, 1]);
        add("PCIe width (lanes)", &[lanes; 5]);
        trace
    }

    #[test]
    fn copies_over_a_quarter_of_the_lanes_are_said() {
        // 2.4 MB in 400 µs are 6 GB/s, of 7.876 that four lanes carry. Three quarters of 5 times 400 µs.
        check(
            &steps(2_400_000, [4, 4], "HHHH......"),
            "device.slow_link",
            &[
                "1500 of 5000 removal high: GPU 0 has a link of PCIe 4 with 4 lanes, and could have PCIe 4 with 16 lanes. 5 copies from or to the host go at 6.00 GB/s, of 7.88 GB/s that the link carries, and take 2.00 ms (40.0 %) of 5.00 ms in which nothing is computed.",
            ],
        );
    }

    #[test]
    fn a_full_link_and_copies_that_it_does_not_hold_up_are_not() {
        check(&steps(2_400_000, [4, 16], "HHHH......"), "device.slow_link", &[]);
        // What two steps copy is no habit.
        let few = with_events(steps(2_400_000, [4, 4], "HHHH......"), |name, event| {
            event.bytes = event.bytes.filter(|_| name == "H" && event.slice.index() % 3 == 0);
        });
        assert!(few.device_events.iter().filter(|event| event.bytes.is_some()).count() < 3);
        check(&few, "device.slow_link", &[]);
        // These go at less than half of what the link carries, faster than it can, and while kernels run.
        check(&steps(1_500_000, [4, 4], "HHHH......"), "device.slow_link", &[]);
        check(&steps(3_200_000, [4, 4], "HHHH......"), "device.slow_link", &[]);
        check(&steps(2_400_000, [4, 4], "....HHHH.."), "device.slow_link", &[]);
    }
}

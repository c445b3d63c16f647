//! A device copies from or to memory that it cannot reach by itself, and does nothing else meanwhile.

use super::cases::Cases;
use super::facts::{Facts, gpu, share_of_device};
use super::words::counted;
use super::{Advice, GainEstimate, Judged, Lacks, Rule};
use crate::copies::{Copies, copies};
use crate::temporal_breakdown::TemporalBreakdown;
use stepscope_base::units::{format_bytes, format_bytes_per_s, format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::DeviceEvent;

const THRESHOLD: f64 = 0.01;

pub(super) const RULE: Rule = Rule {
    code: "copy.pageable",
    fault: "Copies from memory that is not pinned",
    disproof: "Copies from pinned memory take as long.",
    evidence: "copies",
    to_do: "Copy from pinned memory: `DataLoader(pin_memory=True)` or `tensor.pin_memory()`, then \
            `.to(device, non_blocking=True)`, so that the copy is faster and runs beside kernels.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let devices = facts.devices()?;
    let rows = copies(facts.trace, facts.of_devices.selection);
    if !rows.is_empty() && rows.iter().all(|row| row.is_pageable.is_none()) {
        return Err(Lacks("copies do not say whether memory is pinned: record with activity of CUDA"));
    }
    Ok(devices.iter().filter_map(|device| of_device(facts, device, &rows)).collect())
}

/// The copies of a device from or to memory that is not pinned.
fn pageable(facts: &Facts, device: &TemporalBreakdown) -> Vec<Span> {
    let trace = facts.trace;
    let is_it = |event: &DeviceEvent| {
        let of = &trace.devices[event.device.index()];
        event.is_pageable == Some(true) && (of.rank, of.ordinal) == (device.rank, device.device)
    };
    let events = facts.of_devices.selection.device_events(trace).filter(is_it);
    events.map(|event| trace.slices.span(event.slice)).collect()
}

/// What the copies take, and no more than the device's copies take by themselves.
fn of_device(facts: &Facts, device: &TemporalBreakdown, rows: &[Copies]) -> Option<Advice> {
    let is_pageable =
        |row: &&Copies| (row.rank, row.device, row.is_pageable) == (device.rank, device.device, Some(true));
    let rows = || rows.iter().filter(is_pageable);
    let copy_ns = rows().fold(0_i64, |sum, row| sum.saturating_add(row.total_ns));
    let bytes = rows().filter_map(|row| row.bytes).reduce(i64::saturating_add);
    let count: i64 = rows().map(|row| row.count).sum();
    let exposed_ns = copy_ns.min(device.exposed_copy_ns);
    let spans = pageable(facts, device);
    let row = share_of_device(device, exposed_ns, THRESHOLD).filter(|row| Cases::of(&spans).are_habit(row))?;
    let rate = rows().max_by_key(|row| row.total_ns).and_then(|row| row.bandwidth_bytes_per_s);
    let size = bytes.map_or_else(String::new, |bytes| format!(", {} together", format_bytes(bytes)));
    let rate = rate.map_or_else(String::new, |rate| format!(", at {}", format_bytes_per_s(rate)));
    let (gpu, copies) = (gpu(device.device), counted(count, "copy"));
    let (took, ratio) = (format_ns(copy_ns), format_ratio(row.measured_ratio?));
    Some(Advice {
        says: format!(
            "{gpu} takes {took} for {copies} from or to pageable host memory{size}{rate}; for up to {} of that, {ratio} \
             of {}, nothing else runs.",
            format_ns(exposed_ns),
            format_ns(device.span_ns)
        ),
        measured_bytes: bytes,
        count: Some(count),
        gain: Some((exposed_ns, GainEstimate::Bound)),
        place: facts.longest_event(device, |event| event.is_pageable == Some(true)),
        time: IntervalSet::from_unsorted(spans).subtract(&facts.computing(device.rank)),
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_ms, with_events};

    #[test]
    fn exposed_copies_of_pageable_memory_are_said() {
        let trace = |copies: &str, is_pageable: Option<bool>| {
            let drawing = format!("rank 0 stream 7 CCCC{copies}CC\nrank 0 stream 8 .....CC...");
            with_events(drawn_ms(&drawing), |name, event| {
                if name == "H" {
                    (event.is_pageable, event.bytes) = (is_pageable, Some(1 << 20));
                }
            })
        };
        check(
            &trace("H|H|H|H", Some(true)),
            "copy.pageable",
            &[
                "2000 of 10000 bound high: GPU 0 takes 4.00 ms for 4 copies from or to pageable host memory, 4.00 MiB together, at 1.05 GB/s; for up to 2.00 ms of that, 20.0 % of 10.0 ms, nothing else runs.",
            ],
        );
        check(&trace("H|H|H|H", Some(false)), "copy.pageable", &[]);
        check(&trace("H|H|H|H", None), "copy.pageable", &[]);
        // One copy is no habit.
        check(&trace("HHHH", Some(true)), "copy.pageable", &[]);
    }
}

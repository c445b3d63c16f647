//! A device runs dry because the host waited for it instead of launching ahead.

use super::facts::{Facts, gpu, share_of_device};
use super::pauses::Pauses;
use super::words::quoted;
use super::{Advice, GainEstimate, Judged, Rule};
use crate::synchronizations::{self, Synchronizations};
use crate::temporal_breakdown::TemporalBreakdown;
use stepscope_base::units::{format_count, format_ns, format_ratio};
use stepscope_trace::SyncKind;

const THRESHOLD: f64 = 0.02;

pub(super) const RULE: Rule = Rule {
    code: "host.sync",
    fault: "The host waits for the device in the step",
    disproof: "Steps are as long without the wait.",
    evidence: "synchronizations",
    to_do: "Keep the host ahead of the device: no `.item()`, `.cpu()`, `print(tensor)`, `nonzero` or boolean masks in \
            the step, losses collected on the device and read every so many steps, copies with `non_blocking=True` from \
            pinned memory, no `torch.cuda.synchronize()`. `torch.cuda.set_sync_debug_mode(\"warn\")` names each.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let suspects: Vec<_> = facts.pauses()?.filter(|(device, pauses)| row_of(device, pauses).is_some()).collect();
    let waits = if suspects.is_empty() { Vec::new() } else { synchronizations::rows(facts.of_devices) };
    Ok(suspects.into_iter().filter_map(|(device, pauses)| of_device(facts, device, pauses, &waits)).collect())
}

fn row_of(device: &TemporalBreakdown, pauses: &Pauses) -> Option<Advice> {
    share_of_device(device, pauses.synced.total_ns, THRESHOLD).filter(|row| pauses.synced.is_habit(row))
}

fn of_device(facts: &Facts, device: &TemporalBreakdown, pauses: &Pauses, waits: &[Synchronizations]) -> Option<Advice> {
    let row = row_of(device, pauses)?;
    let (gpu, window) = (gpu(device.device), format_ns(device.span_ns));
    let (idle, ratio) = (format_ns(pauses.synced.total_ns), format_ratio(row.measured_ratio?));
    let of_host = |row: &&Synchronizations| {
        row.rank == device.rank && row.waits_for != SyncKind::StreamWaitEvent && row.call.is_some()
    };
    // What idles longest meanwhile: a wait with a busy device is only where the host is ahead.
    let most = waits.iter().filter(of_host).max_by_key(|row| (row.idle_ns, row.total_ns));
    let most = most.map_or_else(String::new, |row| {
        let inside = row.inside.as_ref().map_or_else(String::new, |name| format!(" in {}", quoted(name)));
        let call = row.call.as_deref().unwrap_or_default();
        format!("; most idle time is in {} × {}{inside}", format_count(row.count), quoted(call))
    });
    Some(Advice {
        says: format!(
            "{gpu} idles {idle} ({ratio}) of {window} in gaps in which the host waited for it and then had to launch \
             anew{most}."
        ),
        count: Some(pauses.synced.count),
        gain: Some((pauses.synced.total_ns, GainEstimate::Bound)),
        place: pauses.synced.place(facts.trace),
        time: pauses.synced.spans.clone(),
        ..row
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_us};

    /// As often as said, the host waits to one column behind the end of C, then is in an operator for three, then launches the
    /// next C.
    fn synced(kernel: usize, times: usize) -> String {
        let (kernel, rest) = ("C".repeat(kernel), ".".repeat(kernel));
        let row = |cells: String| cells.repeat(times);
        format!(
            "rank 0 cpu 1    {}\nrank 0 sync 1   {}\nrank 0 launch 1 {}C\nrank 0 stream 7 {}.CCC",
            row(format!(".{rest}.aaa")),
            row(format!(".{}s...", "s".repeat(rest.len()))),
            row(format!("C{rest}....")),
            row(format!(".{kernel}....")),
        )
    }

    #[test]
    fn the_gap_behind_a_wait_is_said_with_the_call_that_waits() {
        // A gap is 5 columns of 100 us: one of waiting, three of the operator, one of the launch.
        check(
            &drawn_us(&synced(30, 4), 100),
            "host.sync",
            &[
                "2000 of 14300 bound high: GPU 0 idles 2.00 ms (14.0 %) of 14.3 ms in gaps in which the host waited for it and then had to launch anew; most idle time is in 4 × `s`.",
            ],
        );
        check(&drawn_us(&synced(300, 4), 100), "host.sync", &[]);
        check(&drawn_us(&synced(30, 4).replace("rank 0 sync", "rank 0 cpu"), 100), "host.sync", &[]);
        // Once or twice is no habit, whatever it takes.
        check(&drawn_us(&synced(30, 2), 100), "host.sync", &[]);
    }
}

//! Every step leaves more memory allocated than it found: a leak.

use super::facts::{Facts, gpu};
use super::{Advice, Judged, Lacks, Place, Priority, Rule};
use crate::allocations::Pool;
use crate::memory_summary::{MemorySummary, growth_of_steps};
use stepscope_base::units::{format_bytes, format_count};

/// What the least of all growths is at least.
const LEAST_BYTES: i64 = 1 << 20;
/// Growths needed: one may be the optimizer's state.
const LEAST_GROWTHS: usize = 2;

pub(super) const RULE: Rule = Rule {
    code: "memory.growth",
    fault: "Memory grows with every step",
    disproof: "Over many more steps the memory stays as it is.",
    evidence: "memory_curve",
    to_do: "Find what keeps tensors: losses summed up without `.item()` or `.detach()` every so many steps, outputs in \
            lists, graphs kept by `retain_graph=True`, caches that grow with new shapes. `memory_events` lists what is \
            never freed.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let rows: Vec<&MemorySummary> = facts.device_memory()?.collect();
    if rows.iter().all(|row| row.growth_bytes_per_step.is_none()) {
        return Err(Lacks("fewer than two complete steps: record more"));
    }
    let grows = |row: &&MemorySummary| row.growth_bytes_per_step.is_some_and(|bytes| bytes >= LEAST_BYTES);
    Ok(rows.into_iter().filter(grows).filter_map(|row| of_device(facts, row)).collect())
}

fn of_device(facts: &Facts, row: &MemorySummary) -> Option<Advice> {
    let pool = facts
        .context
        .get::<Vec<Pool>>()
        .iter()
        .find(|pool| (pool.rank, pool.ordinal(facts.trace)) == (row.rank, row.device))?;
    let steps = growth_of_steps(facts.trace, pool);
    let least_bytes = steps.iter().map(|step| step.bytes).min()?;
    let (gpu, last) = (gpu(row.device?), *steps.last()?);
    let left = row.memory_bytes.map(|bytes| bytes.saturating_sub(last.bytes_at_end).max(0) / least_bytes.max(1));
    let left = left.map_or_else(String::new, |steps| {
        format!("; at this pace the device is full after {} steps more", format_count(steps))
    });
    (steps.len() >= LEAST_GROWTHS && least_bytes >= LEAST_BYTES).then(|| Advice {
        rank: Some(row.rank),
        device: row.device,
        priority: Priority::High,
        says: format!(
            "Each of {} steps leaves at least {} more on {gpu} than it found{left}.",
            steps.len(),
            format_bytes(least_bytes)
        ),
        measured_bytes: Some(least_bytes),
        count: Some(steps.len() as i64),
        place: Some(Place { start_ns: last.end_ns, slice: None }),
        ..Advice::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, drawn_ms};
    use stepscope_trace::Trace;

    /// Allocated in the middle of steps of 2 ms, in MiB.
    fn levels(mib: &[i64]) -> Trace {
        let steps: String = (0..mib.len()).map(|step| step.to_string().repeat(2)).collect();
        let letters: String = (b'a'..).take(mib.len()).map(|letter| format!("{}.", char::from(letter))).collect();
        let mut trace = drawn_ms(&format!("rank 0 step .{steps}.\nrank 0 memory 1 .{letters}"));
        for (event, mib) in trace.memory.iter_mut().zip(mib) {
            event.allocated_bytes = Some(mib << 20);
        }
        trace.devices[0].memory_bytes = Some(100 << 20);
        trace
    }

    #[test]
    fn memory_that_grows_with_every_step_is_said() {
        check(
            &levels(&[10, 30, 35, 40]),
            "memory.growth",
            &[
                "- of - - high: Each of 3 steps leaves at least 5.00 MiB more on GPU 0 than it found; at this pace the device is full after 12 steps more.",
            ],
        );
    }

    #[test]
    fn the_optimizers_state_and_ups_and_downs_are_no_leak() {
        check(&levels(&[10, 30, 30, 30]), "memory.growth", &[]);
        check(&levels(&[10, 30, 29, 40]), "memory.growth", &[]);
        check(&levels(&[10, 30]), "memory.growth", &[]);
    }
}

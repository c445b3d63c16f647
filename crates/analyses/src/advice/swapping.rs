//! The machine reads memory back from its swap while steps run.

use super::facts::Facts;
use super::loops::Loop;
use super::quantities::Quantity;
use super::{Advice, GainEstimate, Judged, Lacks, Priority, Rule};
use stepscope_base::units::{format_bytes, format_ns, format_ratio};

/// One moment may be chance. There is a sample about once a second.
const LEAST_SAMPLES: usize = 3;
/// From a sample to the next; less is what the system moves at any time.
const LEAST_BYTES: i64 = 1 << 20;

pub(super) const RULE: Rule = Rule {
    code: "host.swapping",
    fault: "Memory is read back from swap",
    disproof: "`si` of `vmstat 1` is 0 while steps are as long.",
    evidence: "step_breakdown",
    to_do: "Let the job take less of the host's memory: fewer workers of the `DataLoader`, a smaller `prefetch_factor`, no \
            copy of the data set in each worker, less pinned memory. Or stop what else runs there, or take a host with more \
            memory.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let loops = facts.loops()?;
    let read = |of: &Loop| Quantity::of(facts.trace, of, "host swapped in (bytes)");
    if loops.iter().all(|of| read(of).is_none()) {
        return Err(Lacks("what is read from swap: `stepscope record` samples it"));
    }
    Ok(loops.iter().filter_map(|of| of_loop(facts, of, read(of)?)).collect())
}

fn of_loop(facts: &Facts, of: &Loop, read: Quantity) -> Option<Advice> {
    let quantity = |name| Quantity::of(facts.trace, of, name);
    let spans = read.spans(of);
    let bytes: Vec<i64> = spans.iter().filter_map(|span| read.growth(*span)).collect();
    let often = bytes.iter().filter(|bytes| **bytes >= LEAST_BYTES).count();
    if often < LEAST_SAMPLES {
        return None;
    }
    let own = quantity("process swap (bytes)").and_then(|own| own.at(spans.last()?.end_ns));
    let own = own.map_or(String::new(), |bytes| format!("; {} of this process are there", format_bytes(bytes)));
    let all = bytes.iter().sum();
    let says =
        format!("The machine reads {} back from swap, in {often} of {} samples{own}.", format_bytes(all), spans.len());
    let row = Advice { measured_bytes: Some(all), count: Some(often as i64), ..Advice::default() };
    // How long threads wait for it the system says only where it is built to.
    let Some(waits) = quantity("host some threads wait for memory (ns)") else {
        return Some(Advice { rank: Some(of.rank), priority: Priority::Medium, says, ..row });
    };
    let gain_ns = spans.iter().filter_map(|span| waits.growth(*span)).sum::<i64>().min(of.window_ns());
    let of_steps = of.row(gain_ns)?;
    Some(Advice {
        says: format!(
            "{says} Some threads wait for memory for {} ({}) of {}.",
            format_ns(gain_ns),
            format_ratio(of_steps.measured_ratio?),
            format_ns(of.window_ns()),
        ),
        gain: Some((gain_ns, GainEstimate::Removal)),
        measured_bytes: row.measured_bytes,
        count: row.count,
        ..of_steps
    })
}

#[cfg(test)]
mod tests {
    use super::super::loops::tests::repeated;
    use super::super::quantities::tests::sample;
    use super::super::tests::{check, drawn_us};
    use stepscope_trace::Trace;

    /// Five steps of 2 ms.
    fn steps(read_mib: [i64; 6]) -> Trace {
        let mut trace = drawn_us(&repeated(5, &[("cpu 1", "aaaaaaaaaaaaaaaaaaaa")]), 100);
        sample(&mut trace, "host swapped in (bytes)", 2_000_000, &read_mib.map(|mib| mib << 20));
        trace
    }

    fn with_waits(mut trace: Trace, us: i64) -> Trace {
        let waits = [0, 1, 2, 3, 4, 5].map(|at| at * us * 1_000);
        sample(&mut trace, "host some threads wait for memory (ns)", 2_000_000, &waits);
        sample(&mut trace, "process swap (bytes)", 2_000_000, &[64 << 20; 6]);
        trace
    }

    #[test]
    fn memory_that_is_read_back_again_and_again_is_said() {
        check(
            &steps([7, 17, 27, 37, 47, 57]),
            "host.swapping",
            &["- of - - medium: The machine reads 50.0 MiB back from swap, in 5 of 5 samples."],
        );
        check(
            &with_waits(steps([7, 17, 27, 37, 47, 57]), 500),
            "host.swapping",
            &[
                "2500 of 10000 removal high: The machine reads 50.0 MiB back from swap, in 5 of 5 samples; 64.0 MiB of this process are there. Some threads wait for memory for 2.50 ms (25.0 %) of 10.0 ms.",
            ],
        );
    }

    #[test]
    fn once_is_chance_and_waiting_of_no_thread_is_nothing() {
        check(&steps([7, 57, 57, 57, 57, 57]), "host.swapping", &[]);
        check(&with_waits(steps([7, 17, 27, 37, 47, 57]), 5), "host.swapping", &[]);
    }
}

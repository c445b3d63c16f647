//! The machine is a virtual one, and its processors are not run when there is work for them.

use super::facts::Facts;
use super::loops::{Loop, THRESHOLD};
use super::quantities::Quantity;
use super::{Advice, GainEstimate, Judged, Lacks, Rule};
use stepscope_base::Span;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_trace::Step;

/// One moment may be chance. There is a sample about once a second.
const LEAST_SAMPLES: usize = 3;

pub(super) const RULE: Rule = Rule {
    code: "host.cpu_steal",
    fault: "The hypervisor runs other machines on the processors",
    disproof: "`st` of `top` or `vmstat 1` is 0 while steps are as long.",
    evidence: "step_breakdown",
    to_do: "Take a machine whose processors are its own: an instance that is neither burstable nor overcommitted, or another \
            host.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let loops = facts.loops()?;
    if loops.iter().all(|of| Processors::of(facts, of).is_none()) {
        return Err(Lacks("what a hypervisor takes of the processors: `stepscope record` samples it"));
    }
    Ok(loops.iter().filter_map(|of| of_loop(of, &Processors::of(facts, of)?)).collect())
}

/// Time of all processors of the machine.
struct Processors<'a> {
    stolen: Quantity<'a>,
    /// By programs and the system.
    used: [Quantity<'a>; 2],
}

impl<'a> Processors<'a> {
    fn of(facts: &Facts<'a>, of: &Loop) -> Option<Self> {
        let quantity = |what: &str| Quantity::of(facts.trace, of, &format!("host CPU {what} (ns)"));
        Some(Self { stolen: quantity("stolen")?, used: [quantity("user")?, quantity("system")?] })
    }
}

/// For each step the share of the time wanted of the processors that the hypervisor gave to others then; 0 where that is not
/// known.
pub(super) fn stolen_shares(facts: &Facts, of: &Loop) -> Vec<f64> {
    let Some(processors) = Processors::of(facts, of) else { return vec![0.0; of.steps.len()] };
    let spans = processors.stolen.spans(of);
    let share = |span: &Span| {
        let stolen = processors.stolen.growth(*span).unwrap_or(0);
        let used: i64 = processors.used.iter().filter_map(|used| used.growth(*span)).sum();
        stolen as f64 / (stolen + used).max(1) as f64
    };
    let shares: Vec<f64> = spans.iter().map(share).collect();
    let of_step = |step: &Step| {
        let middle_ns = step.span.start_ns + step.span.duration_ns() / 2;
        spans.iter().position(|span| span.contains(middle_ns)).map_or(0.0, |at| shares[at])
    };
    of.steps.iter().map(of_step).collect()
}

fn of_loop(of: &Loop, processors: &Processors) -> Option<Advice> {
    let (mut stolen_ns, mut wanted_ns, mut often) = (0_i64, 0_i64, 0);
    let spans = processors.stolen.spans(of);
    for span in &spans {
        let stolen = processors.stolen.growth(*span)?;
        let used: i64 = processors.used.iter().filter_map(|used| used.growth(*span)).sum();
        often += usize::from(stolen as f64 > THRESHOLD * (stolen + used) as f64);
        (stolen_ns, wanted_ns) = (stolen_ns + stolen, wanted_ns + stolen + used);
    }
    let gain_ns = (i128::from(of.window_ns()) * i128::from(stolen_ns) / i128::from(wanted_ns.max(1))) as i64;
    let row = of.row(gain_ns).filter(|_| often >= LEAST_SAMPLES)?;
    Some(Advice {
        says: format!(
            "Of the {} in which the machine wanted processors, the hypervisor gave them to others for {} ({}), in {often} of {} \
             samples.",
            format_ns(wanted_ns),
            format_ns(stolen_ns),
            format_ratio(row.measured_ratio?),
            spans.len(),
        ),
        count: Some(often as i64),
        gain: Some((gain_ns, GainEstimate::Removal)),
        ..row
    })
}

#[cfg(test)]
mod tests {
    use super::super::loops::tests::repeated;
    use super::super::quantities::tests::sample;
    use super::super::tests::{check, drawn_us};
    use stepscope_trace::Trace;

    /// Five steps of 2 ms on two processors, of which programs have one.
    fn steps(stolen_us: [i64; 6]) -> Trace {
        let mut trace = drawn_us(&repeated(5, &[("cpu 1", "aaaaaaaaaaaaaaaaaaaa")]), 100);
        sample(&mut trace, "host CPU user (ns)", 2_000_000, &[0, 1, 2, 3, 4, 5].map(|ms| ms * 1_500_000));
        sample(&mut trace, "host CPU system (ns)", 2_000_000, &[0, 1, 2, 3, 4, 5].map(|ms| ms * 500_000));
        sample(&mut trace, "host CPU stolen (ns)", 2_000_000, &stolen_us.map(|us| us * 1_000));
        trace
    }

    #[test]
    fn processors_that_are_taken_again_and_again_are_said() {
        check(
            &steps([0, 500, 1_000, 1_500, 2_000, 2_500]),
            "host.cpu_steal",
            &[
                "2000 of 10000 removal high: Of the 12.5 ms in which the machine wanted processors, the hypervisor gave them to others for 2.50 ms (20.0 %), in 5 of 5 samples.",
            ],
        );
    }

    #[test]
    fn once_is_chance_and_little_is_nothing() {
        check(&steps([0, 0, 2_500, 2_500, 2_500, 2_500]), "host.cpu_steal", &[]);
        check(&steps([0, 50, 100, 150, 200, 250]), "host.cpu_steal", &[]);
    }
}

//! The device lowers its clock while it computes: it is hot, at its power limit, or short of power.

use super::facts::{Facts, gpu};
use super::loops::Loop;
use super::quantities::Quantity;
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use crate::device_busy::DeviceBusy;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{DeviceEventClass, DeviceId};

/// How far below the highest clock counts, and of how many samples, in parts of a hundred.
const LOWER: i64 = 10;
const THRESHOLD: i64 = 10;
/// Fewer samples are chance. There are five a second.
const LEAST_SAMPLES: usize = 3;
/// A sample tells of the time until the next, and no more than of this.
const HOLDS_NS: i64 = 1_000_000_000;

/// Bits of NVML.
const POWER_CAP: i64 = 0x04;
const HARDWARE: i64 = 0x08;
const TEMPERATURE: i64 = 0x20 | 0x40;
const POWER_BRAKE: i64 = 0x80;
/// Those that lower a clock which nobody has set, and what they mean.
const CAUSES: [(i64, &str); 4] = [
    (TEMPERATURE, "its temperature"),
    (POWER_CAP, "its power limit"),
    (POWER_BRAKE, "the power brake of the machine"),
    (HARDWARE, "a slowdown by the hardware"),
];

pub(super) const RULE: Rule = Rule {
    code: "device.throttled",
    fault: "The device lowers its clock while it computes",
    disproof: "With the highest clock the same kernels take as long: they wait for memory, and not for the clock.",
    evidence: "kernels",
    to_do: "Where it is the temperature, look after the cooling: fans, dust, the air that the device gets. Where it is the \
            power limit, raise it: `nvidia-smi -pl WATTS`. Where it is the power brake or the hardware, look at the power \
            supply and its cables. `nvidia-smi -q -d PERFORMANCE` names what lowers the clock now.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    facts.devices()?;
    let of_loops = facts.loops()?.iter().flat_map(|of| of.devices(facts.trace).map(move |device| (of, device)));
    let sampled: Vec<_> =
        of_loops.filter_map(|(of, device)| Some((of, device, Clock::of(facts, of, device)?))).collect();
    if sampled.is_empty() {
        return Err(Lacks("why devices lower their clocks: `stepscope record` samples it through NVML"));
    }
    Ok(sampled.iter().filter_map(|(of, device, clock)| of_device(facts, of, *device, clock)).collect())
}

/// What was sampled of the clock of a device.
struct Clock {
    highest_mhz: i64,
    /// The limit that holds, and the highest that may be set.
    power_mw: Option<[i64; 2]>,
    samples: Vec<Sample>,
}

struct Sample {
    time_ns: i64,
    /// Of [`CAUSES`], those for which the clock is well below the highest.
    causes: i64,
    mhz: i64,
    celsius: Option<i64>,
    /// Taken in a step, while a kernel ran.
    computes: bool,
}

impl Clock {
    fn of(facts: &Facts, of: &Loop, device: DeviceId) -> Option<Self> {
        let quantity = |what| Quantity::of_device(facts.trace, device, what);
        let reasons = quantity("clock event reasons (bits)")?;
        let (clock, temperature) = (quantity("SM clock (MHz)")?, quantity("temperature (°C)"));
        let highest_mhz = quantity("SM clock highest (MHz)").map(Quantity::greatest).filter(|mhz| *mhz > 0)?;
        let limit = |what| quantity(what)?.at(i64::MAX);
        let power_mw = limit("power limit (mW)").zip(limit("power limit highest (mW)")).map(<[i64; 2]>::from);
        // What a device always does at its own limit is no fault.
        let expected = if power_mw.is_some_and(|[limit, highest]| limit >= highest) { POWER_CAP } else { 0 };
        let computing = &facts.context.get::<Vec<DeviceBusy>>()[device.index()].compute;
        let sample = |(time_ns, bits): (i64, i64)| {
            let mhz = clock.at(time_ns)?;
            let is_lower = i128::from(mhz) * 100 <= i128::from(highest_mhz) * i128::from(100 - LOWER);
            // Heat and brake have a second bit, that of the hardware.
            let named = if bits & (TEMPERATURE | POWER_BRAKE) == 0 { bits } else { bits & !HARDWARE };
            let all = CAUSES.iter().fold(0, |all, (cause, _)| all | cause);
            Some(Sample {
                time_ns,
                causes: if is_lower { named & all & !expected } else { 0 },
                mhz: mhz.max(0),
                celsius: temperature.and_then(|temperature| temperature.at(time_ns)),
                computes: of.has(time_ns) && !computing.clip(Span::new(time_ns, time_ns.saturating_add(1))).is_empty(),
            })
        };
        Some(Self { highest_mhz, power_mw, samples: reasons.samples().filter_map(sample).collect() })
    }

    /// What of a kernel a full clock would save, by the sample before it began.
    fn lost_ns(&self, kernel: Span) -> i64 {
        let before = self.samples.partition_point(|sample| sample.time_ns <= kernel.start_ns);
        let sample = before.checked_sub(1).map(|at| &self.samples[at]);
        let is_slowed = |of: &&Sample| of.causes != 0 && kernel.start_ns.saturating_sub(of.time_ns) < HOLDS_NS;
        sample.filter(is_slowed).map_or(0, |of| {
            let missing = i128::from(self.highest_mhz - of.mhz);
            (i128::from(kernel.duration_ns()) * missing / i128::from(self.highest_mhz)) as i64
        })
    }
}

fn of_device(facts: &Facts, of: &Loop, device: DeviceId, clock: &Clock) -> Option<Advice> {
    let trace = facts.trace;
    let all: Vec<&Sample> = clock.samples.iter().filter(|sample| sample.computes).collect();
    let low: Vec<&Sample> = all.iter().copied().filter(|sample| sample.causes != 0).collect();
    if low.len() < LEAST_SAMPLES || (low.len() as i64) * 100 < all.len() as i64 * THRESHOLD {
        return None;
    }
    let is_kernel =
        |event: &stepscope_trace::DeviceEvent| event.device == device && event.class == DeviceEventClass::Compute;
    let kernels = trace.device_events.iter().filter(is_kernel).map(|event| event.slice);
    let losses = kernels.map(|kernel| (clock.lost_ns(trace.slices.span(kernel)), kernel));
    let losses: Vec<_> = losses.filter(|(_, kernel)| of.has(trace.slices.start_ns[kernel.index()])).collect();
    let ends = losses.iter().map(|(lost_ns, kernel)| {
        let end_ns = trace.slices.span(*kernel).end_ns;
        Span::new(end_ns - lost_ns, end_ns)
    });
    let time = IntervalSet::from_unsorted(ends.collect::<Vec<Span>>()).intersect(&of.windows);
    let gain_ns = time.total_ns();
    let row = of.row(gain_ns)?;
    let (_, worst) = losses.into_iter().max_by_key(|(lost_ns, kernel)| (*lost_ns, std::cmp::Reverse(*kernel)))?;
    let ordinal = trace.devices[device.index()].ordinal;
    let mhz = low.iter().map(|sample| i128::from(sample.mhz)).sum::<i128>() / low.len() as i128;
    let celsius = low.iter().filter_map(|sample| sample.celsius).max();
    let heat = celsius.map_or_else(String::new, |celsius| format!(", at up to {celsius} °C"));
    Some(Advice {
        device: Some(ordinal),
        says: format!(
            "{} lowers the clock of its multiprocessors in {} of {} samples in which it computes, for {}: to {mhz} MHz of \
             {} MHz{heat}. At the highest clock its kernels would take up to {} ({}) of {} less.",
            gpu(ordinal),
            low.len(),
            all.len(),
            causes(clock, &low, all.len()),
            clock.highest_mhz,
            format_ns(gain_ns),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns()),
        ),
        count: Some(low.len() as i64),
        gain: Some((gain_ns, GainEstimate::Bound)),
        place: Some(Place::of(trace, worst)),
        time,
        ..row
    })
}

/// Each cause with its share of all samples.
fn causes(clock: &Clock, low: &[&Sample], all: usize) -> String {
    let said = CAUSES.iter().filter_map(|(cause, words)| {
        let count = low.iter().filter(|sample| sample.causes & cause != 0).count();
        let watts = clock.power_mw.filter(|_| *cause == POWER_CAP).map_or_else(String::new, |[limit, highest]| {
            format!(", {} W of at most {} W", limit / 1_000, highest / 1_000)
        });
        (count > 0).then(|| format!("{words} ({} of the samples{watts})", format_ratio(count as f64 / all as f64)))
    });
    said.collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::super::loops::tests::joined;
    use super::super::quantities::tests::sample;
    use super::super::tests::{check, drawn_us};
    use super::super::{Advice, advice, rules_judged};
    use crate::{AnalysisContext, Selection};
    use stepscope_trace::Trace;

    /// Sixteen steps of 1 ms in which kernels take 400 µs, and 800 µs in the second half, with a sample in each. The clock
    /// and its reasons are those of the halves.
    fn steps(mhz: [i64; 2], reasons: [i64; 2]) -> Trace {
        let (early, late): (&[_], &[_]) = (&[("stream 7", "CCCC......")], &[("stream 7", "CCCCCCCC..")]);
        let mut trace = drawn_us(&joined(&[vec![early; 8], vec![late; 8]].concat()), 100);
        let each = |halves: [i64; 2]| halves.map(|value| [value; 8]).concat();
        sample(&mut trace, "GPU 0 SM clock highest (MHz)", 1_000_000, &[2_000]);
        sample(&mut trace, "GPU 0 SM clock (MHz)", 1_000_000, &each(mhz));
        sample(&mut trace, "GPU 0 temperature (°C)", 1_000_000, &each([60, 88]));
        sample(&mut trace, "GPU 0 clock event reasons (bits)", 1_000_000, &each(reasons));
        trace
    }

    fn rules(trace: &Trace) -> Vec<&'static str> {
        let of_device = |row: &Advice| row.rule.as_str().starts_with("device.").then(|| row.rule.as_str());
        advice(trace, &Selection::default()).iter().filter_map(of_device).collect()
    }

    #[test]
    fn a_clock_that_heat_lowers_is_said_and_is_why_kernels_get_slower() {
        let trace = steps([2_000, 1_000], [0, 0x48]);
        // Of 8 times 800 µs at half of the clock, half.
        check(
            &trace,
            "device.throttled",
            &[
                "3200 of 16000 bound high: GPU 0 lowers the clock of its multiprocessors in 8 of 16 samples in which it computes, for its temperature (50.0 % of the samples): to 1000 MHz of 2000 MHz, at up to 88 °C. At the highest clock its kernels would take up to 3.20 ms (20.0 %) of 16.0 ms less.",
            ],
        );
        check(&trace, "device.slowing", &[]);
        // The same kernels without a reason: the device gets slower, and nobody knows why.
        assert!(rules(&steps([2_000, 2_000], [0, 0])).contains(&"device.slowing"));
    }

    #[test]
    fn each_cause_has_its_share() {
        let mut trace = steps([1_500, 1_500], [0x04, 0x88]);
        sample(&mut trace, "GPU 0 power limit (mW)", 1_000_000, &[350_000]);
        sample(&mut trace, "GPU 0 power limit highest (mW)", 1_000_000, &[700_000]);
        check(
            &trace,
            "device.throttled",
            &[
                "2400 of 16000 bound high: GPU 0 lowers the clock of its multiprocessors in 16 of 16 samples in which it computes, for its power limit (50.0 % of the samples, 350 W of at most 700 W) and the power brake of the machine (50.0 % of the samples): to 1500 MHz of 2000 MHz, at up to 88 °C. At the highest clock its kernels would take up to 2.40 ms (15.0 %) of 16.0 ms less.",
            ],
        );
        let hardware = advice(&steps([1_500, 1_500], [0, 0x08]), &Selection::default());
        assert!(hardware.iter().any(|row| row.says.contains("a slowdown by the hardware (50.0 % of the samples)")));
    }

    #[test]
    fn a_clock_that_is_high_or_was_set_or_is_at_the_devices_own_limit_is_not() {
        check(&steps([1_801, 1_801], [0x20, 0x20]), "device.throttled", &[]);
        check(&steps([1_000, 1_000], [0x112, 0x01]), "device.throttled", &[]);
        let mut trace = steps([1_000, 1_000], [0x04, 0x04]);
        assert!(rules(&trace).contains(&"device.throttled"));
        sample(&mut trace, "GPU 0 power limit (mW)", 1_000_000, &[700_000]);
        sample(&mut trace, "GPU 0 power limit highest (mW)", 1_000_000, &[700_000]);
        check(&trace, "device.throttled", &[]);
    }

    #[test]
    fn what_was_sampled_while_nothing_ran_counts_for_nothing() {
        let mut trace = steps([1_000, 1_000], [0x20, 0x20]);
        trace.counters.iter_mut().for_each(|counter| counter.time_ns.iter_mut().for_each(|at| *at += 900_000));
        check(&trace, "device.throttled", &[]);
    }

    #[test]
    fn without_samples_neither_clock_nor_link_is_judged() {
        let trace = drawn_us(&joined(&[&[("stream 7", "CCCC......")] as &[_]; 16]), 100);
        let all = Selection::default();
        let judged = rules_judged(&AnalysisContext::new(&trace, &all));
        for rule in ["device.throttled", "device.slow_link"] {
            assert!(judged.not_judged.iter().any(|(code, lacks)| *code == rule && lacks.contains("NVML")), "{rule}");
        }
    }
}

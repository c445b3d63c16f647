//! Numbers of a run that have a name, for a program that holds a run against limits.
//!
//! A number that the run cannot say is unknown, with the reason: it is never 0.

use crate::{EngineError, Envelope, Needs, OpenedRun, Selection, Unit, Values, find_analysis};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use stepscope_analyses::advice::{TOO_FEW_SAMPLES, rules_judged};
use stepscope_base::percentiles::nearest_rank;

/// A number of a run.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// What a person types.
    pub name: &'static str,
    /// Nanoseconds, bytes, a ratio or a count.
    pub unit: Unit,
    /// What it is, in a few words.
    pub says: &'static str,
    of: fn(&Measurements<'_>) -> Result<Measured, EngineError>,
}

/// What a run has of a [`Metric`].
#[derive(Clone, PartialEq, Debug)]
pub enum Measured {
    /// Nanoseconds, bytes or a count.
    Whole(i64),
    /// A share from 0 to 1.
    Ratio(f64),
    /// The run does not say it, and why.
    Unknown(String),
}

impl Measured {
    /// The number, if it is known.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Whole(value) => Some(*value as f64),
            Self::Ratio(value) => Some(*value),
            Self::Unknown(_) => None,
        }
    }
}

macro_rules! metrics {
    ($($name:literal $unit:ident $says:literal = $of:expr;)*) => {
        /// Every number that has a name.
        pub const METRICS: &[Metric] =
            &[$(Metric { name: $name, unit: Unit::$unit, says: $says, of: $of }),*];
    };
}

metrics! {
    "steps" Count "number of complete steps, of all ranks" = |run| Ok(Measured::Whole(run.steps()?.len() as i64));
    "step_mean" Nanoseconds "mean duration of a step" = |run| {
        let steps = run.steps()?;
        Ok(known(steps.iter().sum::<i64>().checked_div(steps.len() as i64), NO_STEPS))
    };
    "step_min" Nanoseconds "the shortest step" = |run| Ok(known(run.steps()?.first().copied(), NO_STEPS));
    "step_p50" Nanoseconds "the median: half of the steps take no longer" = |run| run.percentile(50);
    "step_p90" Nanoseconds "90 of 100 steps take no longer; of 10 steps or more" = |run| run.percentile(90);
    "step_p95" Nanoseconds "95 of 100 steps take no longer; of 20 steps or more" = |run| run.percentile(95);
    "step_p99" Nanoseconds "99 of 100 steps take no longer; of 100 steps or more" = |run| run.percentile(99);
    "step_max" Nanoseconds "the longest step" = |run| Ok(known(run.steps()?.last().copied(), NO_STEPS));
    "input_wait_ratio" Ratio "share of step time that the loop waits for data, and no device works"
        = |run| run.step_ratio("dataloader_ns");
    "comm_exposed_ratio" Ratio "share of step time in which communication runs that no computing hides"
        = |run| match run.has_device()? {
            true => run.step_ratio("comm_ns"),
            false => Ok(Measured::Unknown(NO_DEVICE.into())),
        };
    "idle_ratio" Ratio "share of time in which a device does nothing, from its first event to its last, of all devices"
        = |run| run.ratio_of_sums("temporal_breakdown", "idle_ns", "span_ns");
    "gpu_utilization" Ratio "share of time in which a kernel runs, from the first event of a device to its last, of all devices"
        = |run| run.ratio_of_sums("gpu_utilization", "busy_ns", "span_ns");
    "peak_memory" Bytes "the most bytes that PyTorch had allocated on a device; without devices, on the host"
        = |run| run.memory("peak_bytes");
    "reserved_memory" Bytes "the most bytes that PyTorch's allocator held on a device"
        = |run| run.memory("reserved_bytes_max");
    "advice_high" Count "rows of advice of high priority" = |run| run.of_advice(|advice| {
        Measured::Whole(texts(advice, "priority").filter(|priority| *priority == Some("high")).count() as i64)
    });
    "top_gain_ratio" Ratio "the largest gain of any advice, as a share of its window; 0 without advice that has one"
        = |run| run.of_advice(|advice| {
            let gains = match advice.results.column("gain_ratio").map(|column| &column.values) {
                Some(Values::Float(gains)) => gains.iter().flatten().copied().fold(0.0, f64::max),
                _ => 0.0,
            };
            Measured::Ratio(gains)
        });
    "findings" Count "kinds of findings that make numbers doubtful: suspect or severe"
        = |run| run.findings(&["suspect", "severe"]);
    "findings_severe" Count "kinds of findings that say that data is missing or contradictory"
        = |run| run.findings(&["severe"]);
}

/// The share of the steps from which on a gain is of high priority.
const HIGH: f64 = 0.10;
const NO_STEPS: &str = "the run has no complete step; label steps with `prof.step()` or `stepscope.step_end()`";
const NOT_JUDGED: &str = "there are no steps and no work of a device that advice could judge; label steps with `prof.step()` or `stepscope.step_end()`";
const NO_DEVICE: &str = "no work of a device was recorded";
const NO_MEMORY: &str = "no memory was recorded";
const NO_DEVICE_MEMORY: &str = "no memory of a device was recorded";

fn known(value: Option<i64>, otherwise: &str) -> Measured {
    value.map_or_else(|| Measured::Unknown(otherwise.into()), Measured::Whole)
}

impl Metric {
    /// The one of this name; `-` and `_` are the same.
    pub fn named(name: &str) -> Option<&'static Self> {
        let name = name.replace('-', "_");
        METRICS.iter().find(|metric| metric.name == name)
    }
}

/// The numbers of a run; each result that they are taken from is computed once.
pub struct Measurements<'a> {
    run: &'a OpenedRun,
    results: RefCell<BTreeMap<&'static str, Rc<Envelope>>>,
}

impl<'a> Measurements<'a> {
    /// Those of `run`; nothing is computed yet.
    pub fn of(run: &'a OpenedRun) -> Self {
        Self { run, results: RefCell::default() }
    }

    /// What the run has of `metric`.
    ///
    /// # Errors
    /// As [`OpenedRun::analyze`].
    pub fn measured(&self, metric: &Metric) -> Result<Measured, EngineError> {
        (metric.of)(self)
    }

    fn result(&self, name: &'static str) -> Result<Rc<Envelope>, EngineError> {
        if let Some(result) = self.results.borrow().get(name) {
            return Ok(Rc::clone(result));
        }
        let result = Rc::new(self.run.analyze(find_analysis(name)?, &Selection::default())?);
        self.results.borrow_mut().insert(name, Rc::clone(&result));
        Ok(result)
    }

    /// What advice says; where no rule could judge, or neither steps nor devices were there to judge, it says nothing.
    fn of_advice(&self, of: impl Fn(&Envelope) -> Measured) -> Result<Measured, EngineError> {
        let advice = self.result("advice")?;
        let judged = self.run.with_context(&Selection::default(), Needs::RowsTogether, rules_judged)?;
        if judged.not_judged.iter().any(|(_, lacks)| lacks == TOO_FEW_SAMPLES) {
            // What nothing names may gain as much as it takes.
            let unnamed = match self.step_ratio("other_ns")? {
                Measured::Ratio(unnamed) => unnamed,
                _ => 1.0,
            };
            let measured = of(&advice);
            let is_known = match measured {
                Measured::Whole(high) => high > 0 || unnamed < HIGH,
                Measured::Ratio(gain) => gain >= unnamed,
                Measured::Unknown(_) => true,
            };
            let says = format!("nothing names what runs outside of operators, with {TOO_FEW_SAMPLES}");
            return Ok(if is_known { measured } else { Measured::Unknown(says) });
        }
        if !advice.results.is_empty() {
            return Ok(of(&advice));
        }
        let has_subject = !self.steps()?.is_empty() || self.has_device()?;
        match judged.rules > 0 && has_subject {
            true => Ok(of(&advice)),
            false => Ok(Measured::Unknown(NOT_JUDGED.into())),
        }
    }

    /// The rows of `step_breakdown` that are complete steps.
    fn complete_steps(&self) -> Result<(Rc<Envelope>, Vec<usize>), EngineError> {
        let result = self.result("step_breakdown")?;
        let is_complete = match result.results.column("is_complete").map(|column| &column.values) {
            Some(Values::Bool(values)) => values.to_vec(),
            _ => Vec::new(),
        };
        let sources: Vec<bool> = texts(&result, "source").map(|source| source != Some("whole")).collect();
        let is_step = |at: &usize| is_complete[*at] == Some(true) && sources[*at];
        let rows = (0..is_complete.len()).filter(is_step).collect();
        Ok((result, rows))
    }

    /// The durations of complete steps, the shortest first.
    fn steps(&self) -> Result<Vec<i64>, EngineError> {
        let (result, rows) = self.complete_steps()?;
        let totals: Vec<Option<i64>> = numbers(&result, "total_ns").collect();
        let mut steps: Vec<i64> = rows.into_iter().filter_map(|at| totals[at]).collect();
        steps.sort_unstable();
        Ok(steps)
    }

    /// A percentile of steps, of as many as it takes to tell it from the longest one.
    fn percentile(&self, percent: u32) -> Result<Measured, EngineError> {
        let steps = self.steps()?;
        let needed = if percent > 50 { 100 / (100 - percent as usize) } else { 1 };
        Ok(match nearest_rank(&steps, percent) {
            None => Measured::Unknown(NO_STEPS.into()),
            Some(_) if steps.len() < needed => Measured::Unknown(format!(
                "of {} complete steps, fewer than {needed}, it would be the longest one; use step_max",
                steps.len()
            )),
            Some(ns) => Measured::Whole(ns),
        })
    }

    /// The share of all complete steps that a class has.
    fn step_ratio(&self, class: &str) -> Result<Measured, EngineError> {
        let (result, rows) = self.complete_steps()?;
        let sum = |name: &str| {
            let values: Vec<Option<i64>> = numbers(&result, name).collect();
            rows.iter().filter_map(|at| values[*at]).map(i128::from).sum::<i128>()
        };
        Ok(ratio(sum(class), sum("total_ns"), NO_STEPS))
    }

    fn has_device(&self) -> Result<bool, EngineError> {
        Ok(numbers(&*self.result("temporal_breakdown")?, "span_ns").flatten().any(|ns| ns > 0))
    }

    fn ratio_of_sums(&self, analysis: &'static str, part: &str, whole: &str) -> Result<Measured, EngineError> {
        let result = self.result(analysis)?;
        let sum = |name: &str| numbers(&result, name).flatten().map(i128::from).sum::<i128>();
        Ok(ratio(sum(part), sum(whole), NO_DEVICE))
    }

    /// The largest of the devices; the host's is that of a job without one.
    fn memory(&self, column: &str) -> Result<Measured, EngineError> {
        let result = self.result("memory_summary")?;
        let rows: Vec<(bool, i64)> = numbers(&result, "device")
            .zip(numbers(&result, column))
            .filter_map(|(device, bytes)| Some((device.is_some(), bytes?)))
            .collect();
        let most = |is_device| rows.iter().filter(|row| row.0 == is_device).map(|row| row.1).max();
        if self.has_device()? {
            return Ok(known(most(true), NO_DEVICE_MEMORY));
        }
        Ok(known(most(true).or_else(|| most(false)), NO_MEMORY))
    }

    fn findings(&self, severities: &[&str]) -> Result<Measured, EngineError> {
        let result = self.result("findings")?;
        let count = texts(&result, "severity").flatten().filter(|severity| severities.contains(severity)).count();
        Ok(Measured::Whole(count as i64))
    }
}

fn ratio(part: i128, whole: i128, otherwise: &str) -> Measured {
    if whole > 0 { Measured::Ratio(part as f64 / whole as f64) } else { Measured::Unknown(otherwise.into()) }
}

fn texts<'e>(envelope: &'e Envelope, name: &str) -> impl Iterator<Item = Option<&'e str>> {
    let values = match envelope.results.column(name).map(|column| &column.values) {
        Some(Values::Text(values)) => values.as_slice(),
        _ => &[],
    };
    values.iter().map(|text| text.as_deref())
}

fn numbers<'e>(envelope: &'e Envelope, name: &str) -> impl Iterator<Item = Option<i64>> + 'e {
    let values = match envelope.results.column(name).map(|column| &column.values) {
        Some(Values::Int(values)) => values.as_slice(),
        _ => &[],
    };
    values.iter().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;

    fn measured(drawing: &str, names: &[&str]) -> Vec<Measured> {
        let run = OpenedRun::of(drawn(drawing));
        let measurements = Measurements::of(&run);
        names.iter().map(|name| measurements.measured(Metric::named(name).unwrap()).unwrap()).collect()
    }

    #[test]
    fn numbers_are_over_the_complete_steps_of_all_ranks() {
        let drawing = "rank 0 step     00011111
                       rank 0 input 1  i.......
                       rank 0 stream 7 .CCC.N..
                       rank 1 step     44......";
        use Measured::{Ratio, Whole};
        let names = ["steps", "step_min", "step_p50", "step_max", "step_mean"];
        assert_eq!(measured(drawing, &names), [Whole(3), Whole(2_000), Whole(3_000), Whole(5_000), Whole(3_333)]);
        let names = ["input_wait_ratio", "comm_exposed_ratio", "idle_ratio", "gpu_utilization"];
        assert_eq!(measured(drawing, &names), [Ratio(0.1), Ratio(0.1), Ratio(0.2), Ratio(0.8)]);
        assert_eq!(
            measured(drawing, &["findings_severe", "advice-high", "top_gain_ratio"]),
            [Whole(0), Whole(0), Ratio(0.0)]
        );
    }

    /// A row each of whose cells is `times` as long.
    fn stretched(row: &str, times: usize) -> String {
        let (head, cells) = row.rsplit_once(' ').expect("a row ends with its cells");
        format!("{head} {}\n", cells.chars().map(|cell| cell.to_string().repeat(times)).collect::<String>())
    }

    #[test]
    fn what_a_run_does_not_say_is_unknown_and_not_nothing() {
        let unknown = |text: &str| Measured::Unknown(text.into());
        let names = ["step_p50", "step_mean", "input_wait_ratio", "idle_ratio", "comm_exposed_ratio", "peak_memory"];
        let [steps, device, memory] = [NO_STEPS, NO_DEVICE, NO_MEMORY].map(unknown);
        for nothing_to_judge in ["rank 0 cpu 1 aab", "rank 0 step 0011"] {
            let found = measured(nothing_to_judge, &["advice_high", "top_gain_ratio"]);
            assert_eq!(found, [unknown(NOT_JUDGED), unknown(NOT_JUDGED)], "{nothing_to_judge}");
        }
        let few_samples = "rank 0 step 0011223344\nrank 0 cpu 1 aaaaa.....\nrank 0 samples 1 .......f..";
        let few_samples: String = few_samples.lines().map(|row| stretched(row, 1_000)).collect();
        let lacks =
            "nothing names what runs outside of operators, with too few samples of Python's stacks: record more steps";
        assert_eq!(measured(&few_samples, &["advice_high", "top_gain_ratio"]), [unknown(lacks), unknown(lacks)]);
        let expected = [&steps, &steps, &steps, &device, &device, &memory];
        assert_eq!(measured("rank 0 cpu 1 aab", &names).iter().collect::<Vec<_>>(), expected);
        let with_device = "rank 0 step 0011\nrank 0 stream 7 C.C.\nrank 0 hostmemory 1 a..A";
        assert_eq!(measured(with_device, &["peak_memory"]), [unknown(NO_DEVICE_MEMORY)]);
    }

    #[test]
    fn memory_is_that_of_the_fullest_device_or_of_a_host_without_one() {
        let of_devices =
            "rank 0 stream 7 C\nrank 0 memory 1 ab.AB\nrank 1 stream 7 C\nrank 1 memory 1 c.C\nrank 1 hostmemory 1 h";
        assert_eq!(measured(of_devices, &["peak_memory"]), [Measured::Whole(300)]);
        assert_eq!(measured("rank 0 hostmemory 1 b.", &["peak_memory"]), [Measured::Whole(200)]);
    }

    #[test]
    fn a_percentile_takes_as_many_steps_as_tell_it_from_the_longest() {
        let steps = |count: usize| format!("rank 0 step {}", "01".repeat(count / 2));
        let unknown =
            |ten: &str| matches!(&measured(ten, &["step_p90"])[0], Measured::Unknown(why) if why.contains("step_max"));
        assert!(unknown(&steps(8)));
        assert_eq!(measured(&steps(10), &["step_p90"]), [Measured::Whole(1_000)]);
        assert!(matches!(measured(&steps(98), &["step_p99"])[0], Measured::Unknown(_)));
        assert_eq!(measured(&steps(100), &["step_p99"]), [Measured::Whole(1_000)]);
    }
}

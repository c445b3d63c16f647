//! How what the recorder samples about once a second grew within the steps of a loop.

use super::loops::Loop;
use crate::pcie_link::device_counter;
use stepscope_base::Span;
use stepscope_trace::{Counter, DeviceId, Trace};

/// The limit of a control group, or of one around it, in thousandths of a processor.
pub(super) const CPU_QUOTA: &str = "control group CPU quota (millicores)";

/// A quantity that the process of a loop sampled.
#[derive(Clone, Copy)]
pub(super) struct Quantity<'a>(&'a Counter);

impl<'a> Quantity<'a> {
    /// The one that the recorder calls so.
    pub(super) fn of(trace: &'a Trace, of: &Loop, name: &str) -> Option<Self> {
        let mut counters = trace.counters.iter().filter(|counter| counter.process == of.process);
        counters.find(|counter| trace.strings.get(counter.name) == name).map(Self)
    }

    /// Those that the processes of a host sampled which the recorder calls so.
    pub(super) fn of_all(trace: &'a Trace, host: Option<&String>, name: &str) -> impl Iterator<Item = Self> {
        let is_it = move |counter: &&Counter| {
            trace.strings.get(counter.name) == name && trace.processes[counter.process.index()].host.as_ref() == host
        };
        trace.counters.iter().filter(is_it).map(Self)
    }

    /// That of a device, as [`device_counter`].
    pub(super) fn of_device(trace: &'a Trace, device: DeviceId, what: &str) -> Option<Self> {
        device_counter(trace, device, what).map(Self)
    }

    /// When it was sampled, and what was.
    pub(super) fn samples(self) -> impl Iterator<Item = (i64, i64)> + 'a {
        self.0.time_ns.iter().zip(&self.0.value).map(|(time_ns, value)| (*time_ns, *value as i64))
    }

    /// The greatest sample, of a quantity that does not change.
    pub(super) fn greatest(self) -> i64 {
        self.samples().map(|(_, value)| value).max().unwrap_or(0)
    }

    /// What was sampled last up to a moment.
    pub(super) fn at(self, at_ns: i64) -> Option<i64> {
        let count = self.0.time_ns.partition_point(|time_ns| *time_ns <= at_ns);
        Some(self.0.value[count.checked_sub(1)?] as i64)
    }

    /// By how much it grew in a span that begins and ends with samples.
    pub(super) fn growth(self, span: Span) -> Option<i64> {
        Some(self.at(span.end_ns)?.saturating_sub(self.at(span.start_ns)?).max(0))
    }

    /// From each sample to the next, where that is more than half in steps.
    pub(super) fn spans(self, of: &Loop) -> Vec<Span> {
        let spans = self.0.time_ns.windows(2).map(|pair| Span::new(pair[0], pair[1]));
        spans.filter(|span| of.windows.clip(*span).total_ns() > span.duration_ns() / 2).collect()
    }
}

/// Samples of drawn traces, for tests.
#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use stepscope_trace::ProcessId;

    /// Adds a quantity of the first process with a sample every `period_ns`.
    pub(in crate::advice) fn sample(trace: &mut Trace, name: &str, period_ns: i64, values: &[i64]) {
        let name = trace.strings.intern(name);
        let time_ns = (0..values.len() as i64).map(|at| at * period_ns).collect();
        let value = values.iter().map(|value| *value as f64).collect();
        trace.counters.push(Counter { name, process: ProcessId(0), device: None, time_ns, value });
    }
}

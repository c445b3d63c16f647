//! Whether what was reported is what was launched.

use super::{Expected, Launched, Moment, Reported};
use std::collections::HashSet;
use stepscope_recorder::device::{Call, DeviceWork, Kernel, Memcpy, Memset, WorkKind};

/// How far times of a device and of the host may lie apart, beside what it takes to compare the clocks: profilers bring
/// a device's clock to the host's by comparing them, too.
const SLACK_NS: i64 = 1_000_000;

/// What is counted: how it is launched, and how reported.
type Counted = (&'static str, fn(&Expected) -> bool, fn(&DeviceWork) -> bool);
const KINDS: [Counted; 4] = [
    ("kernels", |one| matches!(one, Expected::Kernel { is_of_graph: false, .. }), |work| is_kernel(work, false)),
    (
        "kernels of graphs",
        |one| matches!(one, Expected::Kernel { is_of_graph: true, .. }),
        |work| is_kernel(work, true),
    ),
    ("copies", |one| matches!(one, Expected::Memcpy { .. }), |work| matches!(work.kind, WorkKind::Memcpy(_))),
    ("fills", |one| matches!(one, Expected::Memset { .. }), |work| matches!(work.kind, WorkKind::Memset(_))),
];

/// Where it ran.
pub(super) struct Target {
    pub(super) device: u32,
    /// The thread that launched, as the profiler names it.
    pub(super) thread: u32,
    /// The name of all kernels.
    pub(super) kernel: &'static str,
}

/// Compares; all of it ran on one stream, in the order in which it was launched.
///
/// # Errors
/// What is wrong, in one line.
pub(super) fn verify(launched: &[Launched], reported: &Reported, target: &Target) -> Result<(), String> {
    counts(launched, reported)?;
    let clock = Clock::of(&reported.moments)?;
    let mut works: Vec<&(DeviceWork, String)> = reported.works.iter().collect();
    works.sort_by_key(|(work, _)| work.start_ns);
    let mut works = works.into_iter();
    let mut correlations = HashSet::new();
    let mut streams = HashSet::new();
    let end_ns = launched.last().map_or(0, |last| last.after_ns);
    for call in launched {
        let mut of_call: Vec<&DeviceWork> = Vec::new();
        for expected in &call.works {
            let (work, name) = works.next().ok_or("a piece of work is missing")?;
            same(expected, work, name, target.kernel)?;
            times(work, &clock, call.before_ns, end_ns)?;
            if work.device != target.device {
                return Err(format!("what ran on device {} is reported of device {}", target.device, work.device));
            }
            if !matches!(expected, Expected::Kernel { is_of_graph: true, .. }) {
                streams.insert((work.context, work.stream));
            }
            of_call.push(work);
        }
        let Some(first) = of_call.first() else { continue };
        let correlation = first.correlation;
        if of_call.iter().any(|work| work.correlation != correlation) || !correlations.insert(correlation) {
            return Err(format!("what {} launched is not joined with it alone", call.call));
        }
        joined(call, correlation, &reported.calls, &clock, target.thread)?;
        let nodes: HashSet<u64> = of_call.iter().map(|work| work.graph_node).collect();
        if nodes.len() < of_call.len() || of_call.iter().any(|work| work.graph != first.graph) {
            return Err("the nodes of a graph are not told apart, or not as of one graph".into());
        }
    }
    match streams.len() {
        1 => Ok(()),
        count => Err(format!("what ran on one stream is reported of {count}")),
    }
}

fn is_kernel(work: &DeviceWork, is_of_graph: bool) -> bool {
    matches!(work.kind, WorkKind::Kernel(_)) && (work.graph != 0) == is_of_graph
}

fn counts(launched: &[Launched], reported: &Reported) -> Result<(), String> {
    if reported.dropped > 0 {
        return Err(format!("it lost {} reports, or they could not be read", reported.dropped));
    }
    for (what, is_launched, is_reported) in KINDS {
        let launched = launched.iter().flat_map(|call| &call.works).filter(|work| is_launched(work)).count();
        let reported_count = reported.works.iter().filter(|(work, _)| is_reported(work)).count();
        if launched != reported_count {
            return Err(format!("{launched} {what} were launched, and it reports {reported_count}"));
        }
    }
    Ok(())
}

/// What it is, and with what.
fn same(expected: &Expected, work: &DeviceWork, name: &str, kernel_name: &str) -> Result<(), String> {
    let is_same = match (*expected, work.kind) {
        (Expected::Kernel { grid, block, is_of_graph }, WorkKind::Kernel(kernel)) => {
            if name != kernel_name {
                return Err(format!("it calls the kernel {kernel_name} {name:?}"));
            }
            (Some(grid), Some(block), is_of_graph) == (kernel.grid, kernel.block, work.graph != 0)
        }
        (Expected::Memcpy { direction, bytes }, WorkKind::Memcpy(copy)) => {
            (direction, Some(bytes)) == (copy.direction, copy.bytes)
        }
        (Expected::Memset { bytes }, WorkKind::Memset(fill)) => Some(bytes) == fill.bytes,
        _ => false,
    };
    if is_same {
        Ok(())
    } else {
        Err(format!("{} was launched, and it reports {}", launched_text(expected), text(work)))
    }
}

fn launched_text(expected: &Expected) -> String {
    match expected {
        Expected::Kernel { grid, block, is_of_graph } => kernel_text(*grid, *block, *is_of_graph),
        Expected::Memcpy { direction, bytes } => format!("a copy ({direction:?}) of {bytes} bytes"),
        Expected::Memset { bytes } => format!("a fill of {bytes} bytes"),
    }
}

fn text(work: &DeviceWork) -> String {
    match work.kind {
        WorkKind::Kernel(Kernel { grid: Some(grid), block: Some(block), .. }) => {
            kernel_text(grid, block, work.graph != 0)
        }
        WorkKind::Kernel(_) => "a kernel of an unknown size".into(),
        WorkKind::Memcpy(Memcpy { direction, bytes, .. }) => {
            format!("a copy ({direction:?}) of {} bytes", bytes_text(bytes))
        }
        WorkKind::Memset(Memset { bytes, .. }) => format!("a fill of {} bytes", bytes_text(bytes)),
        WorkKind::Graph => "a graph".into(),
    }
}

fn bytes_text(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "an unknown number of".into(), |bytes| bytes.to_string())
}

fn kernel_text(grid: [u32; 3], block: [u32; 3], is_of_graph: bool) -> String {
    let whose = if is_of_graph { "a graph's kernel" } else { "a kernel" };
    format!("{whose} (grid {grid:?}, block {block:?})")
}

/// That it took time, after its launch and before it had been waited for.
fn times(work: &DeviceWork, clock: &Clock, launch_ns: i64, end_ns: i64) -> Result<(), String> {
    let took_ns = work.end_ns - work.start_ns;
    if took_ns <= 0 {
        return Err(format!("it reports work that took {took_ns} ns"));
    }
    let (began_ns, ended_ns) = (clock.host_ns(work.start_ns), clock.host_ns(work.end_ns));
    let slack_ns = SLACK_NS + clock.took_ns;
    let (early_ns, late_ns) = (launch_ns.saturating_sub(began_ns), ended_ns.saturating_sub(end_ns));
    match () {
        () if early_ns > slack_ns => Err(format!("it reports work {early_ns} ns before it was launched")),
        () if late_ns > slack_ns => Err(format!("it reports work {late_ns} ns after all was done")),
        () => Ok(()),
    }
}

/// The call that launched it has the same number, and was made when and where it was.
fn joined(
    launched: &Launched,
    correlation: u32,
    calls: &[(Call, String)],
    clock: &Clock,
    thread: u32,
) -> Result<(), String> {
    let mut of_number = calls.iter().filter(|(call, _)| call.correlation == correlation);
    let (Some((call, name)), None) = (of_number.next(), of_number.next()) else {
        return Err(format!("it reports no call, or several, that launched what {} did", launched.call));
    };
    if !name.starts_with(launched.call) || call.status != 0 {
        return Err(format!("what {} launched is joined with {name:?}, status {}", launched.call, call.status));
    }
    if call.thread != thread {
        return Err(format!("it says that thread {:#x} called {name}, which thread {thread:#x} did", call.thread));
    }
    let slack_ns = SLACK_NS + clock.took_ns;
    let (began_ns, ended_ns) = (clock.host_ns(call.start_ns), clock.host_ns(call.end_ns));
    let is_inside = began_ns >= launched.before_ns - slack_ns && ended_ns <= launched.after_ns + slack_ns;
    match is_inside && began_ns <= ended_ns {
        true => Ok(()),
        false => Err(format!("{name} took place at another time than it reports")),
    }
}

/// From the profiler's clock to the monotonic one.
struct Clock {
    first: Moment,
    last: Moment,
    took_ns: i64,
}

impl Clock {
    fn of(moments: &[Moment]) -> Result<Self, String> {
        let (Some(first), Some(last)) = (moments.first().copied(), moments.last().copied()) else {
            return Err("its clock cannot be read".into());
        };
        if last.host_ns <= first.host_ns || last.device_ns <= first.device_ns {
            return Err("its clock stands still, or runs backward".into());
        }
        Ok(Self { first, last, took_ns: first.took_ns.max(last.took_ns) })
    }

    fn host_ns(&self, device_ns: i64) -> i64 {
        let (first, last) = (self.first, self.last);
        let since = i128::from(device_ns) - i128::from(first.device_ns);
        let host_ns = since * i128::from(last.host_ns - first.host_ns) / i128::from(last.device_ns - first.device_ns);
        let host_ns = i128::from(first.host_ns) + host_ns;
        i64::try_from(host_ns).unwrap_or(if host_ns < 0 { i64::MIN } else { i64::MAX })
    }
}

#[cfg(test)]
mod tests;

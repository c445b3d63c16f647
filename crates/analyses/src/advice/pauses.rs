//! The idle time of a device as rules see it: by cause, with what the host did in one long call set apart.

use super::cases::Cases;
use super::words::quoted;
use super::{Advice, Place};
use crate::AnalysisContext;
use crate::idle::{DeviceIdle, IdleCause, IdlePart};
use crate::idle_causes::longest_host;
use crate::temporal_breakdown::TemporalBreakdown;
use stepscope_base::{IntervalSet, StringId};
use stepscope_trace::Trace;

/// A pause of the host this long is an event of its own and not the pace of the host.
const LONG_NS: i64 = 10_000_000;
/// In short windows a pause of this part of the window is one.
const LONG_PART_OF_WINDOW: i64 = 10;
/// Shorter ones never are.
const LONG_LEAST_NS: i64 = 100_000;

/// Idle time that has something in common.
#[derive(Clone, Default)]
pub(super) struct Pause {
    pub(super) total_ns: i64,
    /// The same time.
    pub(super) spans: IntervalSet,
    pub(super) count: i64,
    /// The longest single one.
    pub(super) longest_ns: i64,
    longest: Option<IdlePart>,
}

impl Pause {
    fn add(&mut self, part: &IdlePart) {
        self.spans.push(part.span);
        self.add_time(part.span.duration_ns(), part);
    }

    /// Adds a gap, when the host waits for the device in it.
    fn add_gap(&mut self, parts: &[IdlePart], long_ns: i64) {
        let Some(wait) = parts.iter().find(|part| part.cause == IdleCause::HostSync) else { return };
        let is_of_host = |part: &&IdlePart| {
            let is_host = matches!(part.cause, IdleCause::HostSync | IdleCause::LaunchBound | IdleCause::HostOther);
            is_host && kind_of(part, long_ns) == Kind::Pace
        };
        parts.iter().filter(is_of_host).for_each(|part| self.spans.push(part.span));
        self.add_time(parts.iter().filter(is_of_host).map(|part| part.span.duration_ns()).sum(), wait);
    }

    /// Whether what a row says of it is a habit.
    pub(super) fn is_habit(&self, row: &Advice) -> bool {
        Cases { count: self.count, total_ns: self.total_ns, longest_ns: self.longest_ns }.are_habit(row)
    }

    fn add_time(&mut self, ns: i64, at: &IdlePart) {
        self.total_ns += ns;
        self.count += 1;
        if ns > self.longest_ns {
            (self.longest_ns, self.longest) = (ns, Some(*at));
        }
    }

    /// Where the longest is: from when on the host is in what it is in for most of it.
    pub(super) fn place(&self, trace: &Trace) -> Option<Place> {
        self.longest.map(|part| {
            let host_ns = part.host.map_or(i64::MIN, |slice| trace.slices.start_ns[slice.index()]);
            Place::at(trace, part.span.start_ns.max(host_ns), part.host)
        })
    }
}

/// Why a device idles.
#[derive(Default)]
pub(super) struct Pauses {
    /// All idle time by cause.
    total_ns: Vec<(IdleCause, i64)>,
    /// By cause, without what is `long` or `held`.
    by_cause: [Pause; IdleCause::COUNT],
    host: [Option<StringId>; IdleCause::COUNT],
    /// The host is in its own code or in one sequence of calls for long.
    pub(super) long: Pause,
    /// Work was launched and is held back on the device: in a queue, by peers, or for so long after its launch that no
    /// launch explains it.
    pub(super) held: Pause,
    /// Gaps in which the host waits for the device: what follows in such a gap is counted too, since a host that does
    /// not wait runs ahead; but not what is `long` by itself.
    pub(super) synced: Pause,
}

impl Pauses {
    /// Idle time with this cause, without what is `long` or `held`.
    pub(super) fn of(&self, cause: IdleCause) -> &Pause {
        &self.by_cause[cause as usize]
    }

    /// What the host was in for the longest time while this was the cause, to go on a sentence with; nothing when it is
    /// not known.
    pub(super) fn longest_in(&self, trace: &Trace, cause: IdleCause) -> String {
        let name = self.host[cause as usize].map(|name| quoted(trace.strings.get(name)));
        name.map_or_else(String::new, |name| format!(", the longest in {name}"))
    }

    /// What of the `held` time is behind communication.
    pub(super) fn behind_peers_ns(&self) -> i64 {
        self.total_ns.iter().find(|(cause, _)| *cause == IdleCause::PeerWait).map_or(0, |(_, ns)| *ns)
    }

    /// The cause with the most time, and that time.
    pub(super) fn main_cause(&self) -> Option<(IdleCause, i64)> {
        let causes = self.total_ns.iter().copied().filter(|(_, ns)| *ns > 0);
        causes.reduce(|a, b| if b.1 > a.1 { b } else { a })
    }
}

/// What a part of a gap counts as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Held,
    Long,
    /// Anything else: what makes up the pace of the host, and other causes.
    Pace,
}

fn kind_of(part: &IdlePart, long_ns: i64) -> Kind {
    let is_long = part.span.duration_ns() >= long_ns;
    match part.cause {
        IdleCause::QueueWait | IdleCause::PeerWait => Kind::Held,
        // Without a thread it is the time from the end of a launch on.
        IdleCause::LaunchBound if is_long && part.thread.is_none() => Kind::Held,
        IdleCause::LaunchBound | IdleCause::HostOther if is_long => Kind::Long,
        _ => Kind::Pace,
    }
}

/// The pauses of each of `devices`.
pub(super) fn pauses(context: &AnalysisContext<'_>, devices: &[TemporalBreakdown]) -> Vec<Pauses> {
    let idle = context.get::<Vec<DeviceIdle>>();
    let of = |device: &TemporalBreakdown| {
        let is_it = |idle: &&DeviceIdle| {
            let known = &context.trace.devices[idle.device.index()];
            (known.rank, known.ordinal) == (device.rank, device.device)
        };
        idle.iter().find(is_it).map(|idle| of_device(context.trace, idle, device.span_ns)).unwrap_or_default()
    };
    devices.iter().map(of).collect()
}

fn of_device(trace: &Trace, idle: &DeviceIdle, span_ns: i64) -> Pauses {
    let long_ns = LONG_NS.min(span_ns / LONG_PART_OF_WINDOW).max(LONG_LEAST_NS);
    let mut pauses = Pauses::default();
    for gap in 0..idle.gaps.len() {
        let parts = idle.parts_of(gap);
        for part in parts {
            match pauses.total_ns.iter_mut().find(|(cause, _)| *cause == part.cause) {
                Some((_, ns)) => *ns += part.span.duration_ns(),
                None => pauses.total_ns.push((part.cause, part.span.duration_ns())),
            }
            let counted = match kind_of(part, long_ns) {
                Kind::Held => &mut pauses.held,
                Kind::Long => &mut pauses.long,
                Kind::Pace => &mut pauses.by_cause[part.cause as usize],
            };
            counted.add(part);
        }
        pauses.synced.add_gap(parts, long_ns);
    }
    pauses.total_ns.sort_unstable();
    for cause in [IdleCause::LaunchBound, IdleCause::HostOther] {
        pauses.host[cause as usize] = longest_host(trace, idle, cause).map(|(name, _)| name);
    }
    pauses
}

#[cfg(test)]
mod tests {
    use crate::advice::facts::Facts;
    use crate::advice::tests::drawn_us;
    use crate::{AnalysisContext, Selection};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_idle_nanosecond_is_in_one_pause(
            launch in "[.CDE|]{30}", streams in prop::collection::vec("[.CDEN|]{30}", 1..3), host in "[.x|]{30}",
            sync in "[.s]{30}", column_us in prop::sample::select(vec![100_usize, 4_000]),
        ) {
            let mut drawing = format!("rank 0 cpu 1 {host}\nrank 0 sync 1 {sync}\nrank 0 launch 1 {launch}\n");
            streams.iter().enumerate().for_each(|(at, row)| drawing += &format!("rank 0 stream {at} {row}\n"));
            let trace = drawn_us(&drawing, column_us);
            let selection = Selection::default();
            let context = AnalysisContext::new(&trace, &selection);
            let facts = Facts::new(&context, &context);
            let Ok(found) = facts.pauses() else { return Ok(()) };
            for (device, pauses) in found {
                let by_cause: i64 = pauses.by_cause.iter().map(|pause| pause.total_ns).sum();
                prop_assert_eq!(by_cause + pauses.long.total_ns + pauses.held.total_ns, device.idle_ns);
                prop_assert_eq!(pauses.total_ns.iter().map(|(_, ns)| ns).sum::<i64>(), device.idle_ns);
                prop_assert!(pauses.synced.total_ns <= by_cause);
            }
        }
    }
}

//! How much memory was allocated, less what was freed, while an event ran; and what was while none did.

use stepscope_capture::MemoryEvent;

/// PyTorch's kinds of devices that use the host's memory: the host, MKLDNN, IDEEP.
const HOST: [u8; 3] = [0, 2, 5];
/// Those that have memory of their own: CUDA, HIP, XPU, PrivateUse1.
const DEVICE: [u8; 4] = [1, 6, 12, 20];

/// Bytes of the host's memory and of devices'; what is of neither kind counts nowhere, as in `torch.profiler`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Bytes {
    pub(crate) host: i64,
    pub(crate) device: i64,
}

impl Bytes {
    pub(crate) fn of(event: &MemoryEvent) -> Self {
        let if_in = |kinds: &[u8]| if kinds.contains(&event.device_type) { event.bytes } else { 0 };
        Self { host: if_in(&HOST), device: if_in(&DEVICE) }
    }
}

/// Bytes over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    /// Ascending.
    times_ns: Vec<i64>,
    /// Sum of the bytes up to and with the same row of `times_ns`.
    sums: Vec<Bytes>,
}

impl Usage {
    /// Of allocations (above 0) and frees (below 0), in any order.
    pub(crate) fn new(mut changes: Vec<(i64, Bytes)>) -> Self {
        changes.sort_by_key(|(time_ns, _)| *time_ns);
        let sum = |sum: &mut Bytes, (_, bytes): &(i64, Bytes)| {
            sum.host = sum.host.saturating_add(bytes.host);
            sum.device = sum.device.saturating_add(bytes.device);
            Some(*sum)
        };
        let sums = changes.iter().scan(Bytes::default(), sum).collect();
        Self { times_ns: changes.iter().map(|(time_ns, _)| *time_ns).collect(), sums }
    }

    /// From `start_ns` to `end_ns`, both included.
    pub(crate) fn between(&self, start_ns: i64, end_ns: i64) -> Bytes {
        let before = |found: usize| found.checked_sub(1).map_or(Bytes::default(), |last| self.sums[last]);
        let start = self.times_ns.partition_point(|time_ns| *time_ns < start_ns);
        let end = self.times_ns.partition_point(|time_ns| *time_ns <= end_ns).max(start);
        let (start, end) = (before(start), before(end));
        Bytes { host: end.host.saturating_sub(start.host), device: end.device.saturating_sub(start.device) }
    }
}

/// When something ran: the moments that lie in one of many spans, both ends included.
pub(crate) struct Covered {
    /// Ascending.
    starts_ns: Vec<i64>,
    /// The latest end of the spans up to and with the same row.
    latest_ends_ns: Vec<i64>,
}

impl Covered {
    /// By spans (start, end), in order of their start.
    pub(crate) fn by(spans: impl Iterator<Item = (i64, i64)>) -> Self {
        let mut covered = Self { starts_ns: Vec::new(), latest_ends_ns: Vec::new() };
        let mut latest = i64::MIN;
        for (start_ns, end_ns) in spans {
            latest = latest.max(end_ns);
            covered.starts_ns.push(start_ns);
            covered.latest_ends_ns.push(latest);
        }
        covered
    }

    pub(crate) fn contains(&self, time_ns: i64) -> bool {
        let begun = self.starts_ns.partition_point(|start_ns| *start_ns <= time_ns);
        begun.checked_sub(1).is_some_and(|last| self.latest_ends_ns[last] >= time_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_ends_belong_to_it() {
        let host = |host| Bytes { host, device: 0 };
        let usage = Usage::new(vec![(30, host(-5)), (10, host(8)), (20, Bytes { host: 4, device: 1 })]);
        assert_eq!(
            [(10, 10), (11, 19), (10, 20), (20, 30), (31, 99)].map(|(a, b)| usage.between(a, b)),
            [host(8), host(0), Bytes { host: 12, device: 1 }, Bytes { host: -1, device: 1 }, host(0)]
        );
        assert_eq!(Usage::default().between(0, 9), host(0));
    }

    proptest! {
        #[test]
        fn a_moment_is_covered_when_some_span_has_it(mut spans in prop::collection::vec((0_i64..30, 0_i64..9), 0..9)) {
            spans.iter_mut().for_each(|span| span.1 += span.0);
            spans.sort_unstable();
            let covered = Covered::by(spans.iter().copied());
            for moment in -1..42 {
                let slowly = spans.iter().any(|(start, end)| (*start..=*end).contains(&moment));
                prop_assert_eq!(covered.contains(moment), slowly, "{}", moment);
            }
        }
    }
}

//! Many ranks put on one clock, in memory: how long that takes, and how near the clocks come to those that were planted.

use super::job::{HOST_RANKS, HostClock};
use crate::random::Random;
use crate::resources::{Spent, forget_peak, peak_resident_bytes, resident_bytes, timed};
use serde::{Deserialize, Serialize};
use stepscope_align::{Align, Calls, Matched, aligned, parts};
use stepscope_base::StringTable;
use stepscope_trace::{
    Collective, CollectiveKind, Device, DeviceEvent, DeviceEventClass, Process, SliceKind, Trace, TraceBuilder, Track,
    TrackKind,
};

/// What it took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Aligned {
    /// Putting the trace on one clock.
    pub(super) align: Spent,
    /// What it added to the memory of the process, at most.
    pub(super) align_bytes: Option<u64>,
    /// Matching alone, once more.
    pub(super) matching: Spent,
    /// What that added.
    pub(super) matching_bytes: Option<u64>,
    /// Collectives, each on each of its ranks.
    pub(super) parts: u64,
    /// The clock that is furthest from the first, before and after, at any moment of the job.
    pub(super) planted_ns: i64,
    pub(super) error_ns: i64,
}

/// From one collective to the next: a rank computes for so long, up to so much longer, and they take so long, ns.
const COMPUTE_NS: i64 = 500_000;
const JITTER_NS: u64 = 100_000;
const TRANSFER_NS: i64 = 60_000;
const LEAVE_NS: u64 = 2_000;

/// Builds the trace of a job and puts it on one clock.
pub(super) fn measure(ranks: usize, collectives: usize) -> Aligned {
    let trace = trace(ranks, collectives);
    // Times of the trace count from the earliest that any clock showed.
    let zero_ns = trace.start_source_ns;
    let (align_bytes, (aligned, align)) = with_peak(|| timed(|| aligned(trace, Align::Collectives)));
    let (matching_bytes, (parts, matching)) = with_peak(|| {
        timed(|| Matched::of(&parts(&aligned, &Calls::of(&aligned))).places().map(<[u32]>::len).sum::<usize>())
    });
    let end_ns = aligned.slices.ids().map(|id| aligned.slices.span(id).end_ns).max().unwrap_or(0);
    let off_ns = |correct: &dyn Fn(usize, i64) -> i64| {
        let at =
            |true_ns: i64, rank: usize| correct(rank, HostClock::of(rank / HOST_RANKS).shown_ns(true_ns, 0) - zero_ns);
        let moments = [0, end_ns / 2, end_ns];
        moments.iter().flat_map(|ns| (0..ranks).map(|rank| (at(*ns, rank) - at(*ns, 0)).abs())).max().unwrap_or(0)
    };
    Aligned {
        align,
        align_bytes,
        matching,
        matching_bytes,
        parts: parts as u64,
        planted_ns: off_ns(&|_, ns| ns),
        error_ns: off_ns(&|rank, ns| aligned.clocks[rank].corrected(ns)),
    }
}

/// Runs `work`; what it added to the memory of the process at most, and its result.
fn with_peak<T>(work: impl FnOnce() -> T) -> (Option<u64>, T) {
    let before = forget_peak().and_then(|()| resident_bytes());
    let result = work();
    (before.zip(peak_resident_bytes()).map(|(before, after)| after.saturating_sub(before)), result)
}

/// All ranks reduce together, again and again: a kernel on each says so.
fn trace(ranks: usize, collectives: usize) -> Trace {
    let mut builder = TraceBuilder::new("job");
    let mut intern = |text: &str| builder.strings.intern(text);
    let [name, dtype, group, description] = ["allreduce", "BFloat16", "0", "default_pg"].map(&mut intern);
    let group_ranks = intern(&format!("[0, ..., {}]", ranks - 1));
    let kernel_name = intern("ncclDevKernel_AllReduce_Sum_bf16_RING_LL");
    let rows = (0..ranks).map(|rank| {
        let host = Some(format!("node{}", rank / HOST_RANKS));
        let (rank, world_size) = (rank as u32, Some(ranks as u32));
        let process = builder.add_process(Process { rank, world_size, host, ..Process::default() });
        let device = builder.add_device(Device { rank, ..Device::default() });
        let mut track = Track::new(TrackKind::Stream, process, "stream 40");
        (track.device, track.stream) = (Some(device), Some(40));
        (builder.add_track(track), device)
    });
    let rows: Vec<_> = rows.collect();
    let mut now_ns = vec![0; ranks];
    for number in 0..collectives {
        let mut random = Random::of([4, number as u64, 0, 0]);
        now_ns.iter_mut().for_each(|now_ns| *now_ns += COMPUTE_NS + random.below(JITTER_NS) as i64);
        let done_ns = now_ns.iter().copied().max().unwrap_or(0) + TRANSFER_NS;
        for (rank, (track, device)) in rows.iter().enumerate() {
            let (come_ns, leave_ns) = (now_ns[rank], done_ns + random.below(LEAVE_NS) as i64);
            now_ns[rank] = leave_ns;
            let [start_ns, end_ns] = [come_ns, leave_ns].map(|ns| HostClock::of(rank / HOST_RANKS).shown_ns(ns, 0));
            let slice = builder.add_slice(*track, SliceKind::Kernel, kernel_name, start_ns, end_ns - start_ns);
            let class = DeviceEventClass::Communication;
            builder.add_device_event(DeviceEvent { stream: Some(40), ..DeviceEvent::new(slice, *device, class) });
            builder.add_collective(Collective {
                slice,
                name,
                kind: Some(CollectiveKind::AllReduce),
                dtype,
                input_elements: Some(12_850_176),
                output_elements: Some(12_850_176),
                input_split_sizes: StringTable::EMPTY,
                output_split_sizes: StringTable::EMPTY,
                group,
                group_description: description,
                group_size: Some(ranks as i64),
                group_ranks,
                group_rank: None,
                source_rank: None,
                destination_rank: None,
                is_async: None,
                sequence_number: Some(number as i64),
            });
        }
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_come_out_as_they_were_planted() {
        // Drift is told of more than a second.
        let aligned = measure(20, 3_000);
        assert_eq!(aligned.parts, 20 * 3_000);
        assert!(aligned.planted_ns > 100_000 && aligned.error_ns < 4_000, "{aligned:?}");
    }
}
